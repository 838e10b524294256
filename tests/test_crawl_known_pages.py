"""The pages of known URLs: the same ones, whatever file of keys is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recrawl.crawl.state import known_pages
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.known_pages import known_urls
from recrawl.discover.urls import UrlRules, directory, key
from recrawl.record.rows import Batch, NewPage
from recrawl.record.storage import Storage, create
from recrawl.record.store.sql.tables.pages import SqlPages
from recrawl.settings import TEMPLATE

URLS = [f"https://a.example/{number}" for number in range(600)]
RULES = UrlRules()


def add(storage: Storage, urls: list[str]) -> None:
    first = storage.store.next_id("pages")
    rows = [
        NewPage(first + n, key(url), 0, key(directory(url)), 1, -1, 0.0, 0, 0, 0, url) for n, url in enumerate(urls)
    ]
    storage.store.commit(Batch(pages=rows), [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create(tmp_path / "repository", TEMPLATE)
    return tmp_path / "repository"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first page of each reading of keys from the store; files are written for 10 new pages."""
    monkeypatch.setattr(known_pages, "_MIN_ADDED", 10)
    begins: list[int] = []
    keys = SqlPages.keys

    def counted(pages: SqlPages, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        begins.append(first)
        return keys(pages, first)

    monkeypatch.setattr(SqlPages, "keys", counted)
    return begins


def check(storage: Storage, urls: list[str]) -> None:
    known = known_urls(storage, RULES)
    assert len(known) == len(urls)
    assert known.find(np.array([key(url) for url in urls])).tolist() == list(range(len(urls)))
    assert known.get(key("https://a.example/unknown")) == -1


def test_a_file_saves_reading_its_pages(folder: Path, read: list[int]) -> None:
    with Storage(folder) as storage:
        add(storage, URLS[:500])
        check(storage, URLS[:500])
        add(storage, URLS[500:505])
        check(storage, URLS[:505])
        add(storage, URLS[505:])
        check(storage, URLS)
        check(storage, URLS)
    assert read == [0, 500, 500, 600]  # five pages do not make a new file


@pytest.mark.parametrize(
    "file", ["of other pages", "of more pages", "with other last pages", "damaged", "of another form"]
)
def test_a_file_that_does_not_fit_is_not_used(folder: Path, read: list[int], file: str) -> None:
    path = folder / "models" / "url-keys.npz"
    with Storage(folder) as storage:
        add(storage, URLS)
        check(storage, URLS)
        kept = read_arrays(path)
        assert kept is not None
        if file == "of other pages":
            write_arrays(path, {"key": kept["key"] + 1, "page": kept["page"]})
        elif file == "of more pages":
            write_arrays(path, {"key": np.append(kept["key"], 2**63 - 1), "page": np.append(kept["page"], 600)})
        elif file == "with other last pages":  # as after a backup was restored
            last = kept["page"] >= 590
            kept["page"][last] = kept["page"][last][::-1].copy()
            write_arrays(path, kept)
        elif file == "damaged":
            path.write_bytes(path.read_bytes()[:-100])
        else:
            write_arrays(path, {"key": kept["key"]})
        check(storage, URLS)
    assert read == [0, 0]


def test_small_repositories_have_no_file(folder: Path) -> None:
    with Storage(folder) as storage:
        add(storage, URLS)
        check(storage, URLS)
    assert not (folder / "models" / "url-keys.npz").exists()
