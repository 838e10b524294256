"""Change priors of pages in a repository: computed at the first download, kept, and the same for a resumed cycle."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from recrawl.compare.change_prior import change_prior
from recrawl.crawl.state.book_columns import delete_columns, equip
from recrawl.crawl.state.load_book import load_book
from recrawl.lab.formats.archive import write
from recrawl.lab.histories.history import History
from recrawl.record.storage import Storage
from tests.world import Repo, Site, page

PAGES = {"/": page("Welcome", "/a/b/c.html"), "/a/b/c.html": page("Chapter 3")}


def priors(repo: Repo) -> dict[str, float | None]:
    return dict(repo.sql("SELECT url, prior FROM pages"))


def set_priors(repo: Repo, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(repo.folder / "recrawl.db")) as db, db:
        db.execute(statement)


def test_a_crawl_computes_the_prior_of_each_page_once(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(PAGES) as site:
        repo.crawl(site.url("/"))
        first = priors(repo)
        site["/"] = page("Welcome in 2026, 2026 and 2026", "/a/b/c.html")
        repo.later(days=1)
        repo.cycle()
        assert repo.outcomes(site.url("/")) == ["new", "changed"]
    ((at,),) = repo.sql("SELECT at FROM versions WHERE page = 0 ORDER BY id LIMIT 1")
    assert first[site.url("/")] == pytest.approx(change_prior(site.url("/"), "Welcome c.html", at), abs=0.2)
    front, chapter = first[site.url("/")], first[site.url("/a/b/c.html")]
    assert front is not None
    assert chapter is not None
    assert front > chapter
    assert priors(repo) == first


def test_pages_whose_text_counts_have_a_prior_too(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", change="text")
    with Site(PAGES) as site:
        repo.crawl(site.url("/"))
    assert None not in priors(repo).values()


def test_a_page_without_a_prior_gets_one_when_it_is_downloaded_again(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(PAGES) as site:
        repo.crawl(site.url("/"))
        set_priors(repo, "UPDATE pages SET prior = NULL")
        site["/"] = page("Other words", "/a/b/c.html")
        repo.later(days=1)
        repo.cycle()
    assert {url: prior is not None for url, prior in priors(repo).items()} == {
        site.url("/"): True,
        site.url("/a/b/c.html"): False,
    }


def test_a_resumed_cycle_has_the_priors_that_it_began_with(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(PAGES) as site:
        repo.crawl(site.url("/"))
    set_priors(repo, "UPDATE pages SET prior = iif(id = 0, 0.5, NULL)")

    def prior_of(cycle: int, *, begin: bool) -> list[float]:
        with Storage(repo.folder) as storage:
            row = storage.store.cycles.newest()[0]._replace(id=cycle, first_visit=2)
            book = load_book(storage.store, row, {})
            equip(book, storage, row, frozenset({"prior"}), begin=begin)
            assert book.prior is not None
            return [float(prior) for prior in np.nan_to_num(book.prior, nan=-9)]

    assert prior_of(7, begin=True) == [0.5, -9]
    set_priors(repo, "UPDATE pages SET prior = 1.5")
    assert prior_of(7, begin=True) == [0.5, -9], "the cycle is resumed"
    assert prior_of(8, begin=False) == [1.5, 1.5], "another cycle"
    with Storage(repo.folder) as storage:
        delete_columns(storage)
    assert prior_of(7, begin=False) == [1.5, 1.5]


def test_a_history_has_the_priors_of_first_versions(tmp_path: Path) -> None:
    urls = ["https://a.example/", "https://a.example/", "https://a.example/x/y/1.html"]
    html = [b"<p>In 2024", b"<p>In 1999, 2000 and 2001", b"<p>Chapter"]
    write(tmp_path / "a.parquet", urls, [1_720_000_000, 1_730_000_000, 1_720_000_000], html)
    history = History.read(tmp_path / "a.parquet")
    expected = [change_prior(urls[0], "In 2024", 1.72e9), change_prior(urls[2], "Chapter", 1.72e9)]
    assert history.prior is not None
    np.testing.assert_allclose(history.prior, expected, rtol=1e-5)
