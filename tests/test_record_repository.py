"""The folder as a whole: made, found, locked, committed in order, mended after a crash."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.reindex import reindex
from recrawl.discover.scope import Scopes
from recrawl.errors import NoRepository, RepositoryBusy, RepositoryError
from recrawl.model import Outcome, State
from recrawl.record import storage, warc
from recrawl.record.index import Document, Index
from recrawl.record.rows import Batch, NewPage, VersionRow, VisitRow, unvisited
from recrawl.record.storage import Storage
from tests.crashes import image, judge, site_row
from tests.test_record_index import old_index
from tests.world import connection

_OPTIONS = CrawlOptions(clock=lambda: 0.0, timer=lambda: 0.0, agent="recrawl", scopes=Scopes([]))
_SITE = site_row(0, "https://a.example")
_HEADERS = (("Content-Type", "text/html; charset=utf-8"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    storage.create(tmp_path / "repo", "[settings]\n")
    return tmp_path / "repo"


@contextmanager
def writing(folder: Path, *, roll_bytes: int = 1 << 30) -> Iterator[Storage]:
    with Storage(folder) as made:
        made.writing("test", lambda _: False, roll_bytes=roll_bytes, info=())
        yield made


def put(made: Storage, page: int, words: str, outcome: Outcome = Outcome.NEW) -> bytes:
    """Record the first version of a page, as the engine does it; its body."""
    url, at = f"https://a.example/{page}", 1000.0 + page
    body = f"<title>T{page}</title><p>{words}".encode()
    payload, digest = hashlib.sha1(body).digest(), hashlib.md5(words.encode()).digest()
    version = VersionRow(
        page, page, at, 1, None, None, 0, 1, len(body), 0, 0, 0, payload, digest, f"T{page}", "text/html", "utf-8"
    )
    state = unvisited(page)._replace(
        state=int(State.LIVE), visits=1, changes=1, version=page, version_at=at, payload=payload, digest=digest
    )
    batch = Batch(
        pages=[NewPage(page, page, 0, 0, 0, -1, at, 0, 0, 0, url)],
        visits=[VisitRow(page, page, 0, at, int(outcome), 200, 9, 0.1, page, None, None, None, None)],
        states=[state],
        sites=[_SITE],
        documents=[Document(page, url, _SITE.origin, f"T{page}", words, at)],
    )
    made.commit(batch, [(version, warc.response(url, at, "", 200, _HEADERS, body, payload, b"GET / HTTP/1.1\r\n\r\n"))])
    return body


def found(made: Storage, word: str) -> set[int]:
    return {hit.page for hit in made.index.search(word)}


# -- making and finding --------------------------------------------------------------------------------------


def test_a_repository_is_found_from_folders_within_it(folder: Path, tmp_path: Path) -> None:
    inside = folder / "notes" / "deep"
    inside.mkdir(parents=True)
    assert storage.find(folder) == folder
    assert storage.find(inside).resolve() == folder.resolve()
    with pytest.raises(NoRepository, match="make one with 'recrawl init'"):
        storage.find(tmp_path)


def test_a_second_one_is_not_made_in_the_same_place(folder: Path) -> None:
    with pytest.raises(RepositoryError, match="already a repository"):
        storage.create(folder, "")
    assert (folder / "recrawl.toml").read_text() == "[settings]\n"


def test_making_one_that_was_interrupted_can_be_repeated(folder: Path) -> None:
    (folder / "recrawl.toml").unlink()  # the last thing that is made
    storage.create(folder, "[settings]\n")
    assert storage.find(folder) == folder


def test_one_writer_at_a_time_but_readers_always(folder: Path) -> None:
    with writing(folder) as writer:
        body = put(writer, 0, "word")
        with Storage(folder) as reader:
            version = reader.store.versions.get(0)
            assert version is not None
            assert reader.body(version) == (200, (*_HEADERS, ("Content-Length", str(len(body)))), body)
            with pytest.raises(RepositoryBusy, match=r"recrawl test \(process \d+\) is working on this repository"):
                reader.writing("crawl", lambda _: False, roll_bytes=1, info=())


def test_after_a_refused_attempt_to_write_it_can_be_written(folder: Path) -> None:
    with writing(folder), Storage(folder) as second, pytest.raises(RepositoryBusy):
        second.writing("crawl", lambda _: False, roll_bytes=1, info=())
    with writing(folder) as third:
        put(third, 0, "word")


# -- commits ---------------------------------------------------------------------------------------------------


def test_what_was_committed_is_there_when_it_is_opened_again(folder: Path) -> None:
    with writing(folder, roll_bytes=400) as made:
        bodies = [put(made, page, f"word{page} " * 50) for page in range(4)]
        made.commit_index(3)
    judge_without_cycles(folder)
    with Storage(folder) as made:
        assert len(made.archive.names) > 1
        for page, body in enumerate(bodies):
            version = made.store.versions.get(page)
            assert version is not None
            assert made.body(version)[2] == body
            assert found(made, f"word{page}") == {page}
        assert made.unindexed() == []


def judge_without_cycles(folder: Path) -> None:
    """These visits were made by hand, so give them the cycle that they name."""
    with Storage(folder) as made:
        connection(made.store).execute("INSERT OR IGNORE INTO cycles VALUES (0, 'crawl', '', 0, 0, 0, 0, 0, 0, '')")
    judge(folder)


def test_pages_that_go_are_taken_out_of_the_index(folder: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
        put(made, 1, "word")
        made.commit(Batch(removals=[0]), [])
        made.commit_index(1)
        assert found(made, "word") == {1}


# -- crashes -----------------------------------------------------------------------------------------------------


def test_a_crash_between_archive_and_store_leaves_no_trace(folder: Path, tmp_path: Path) -> None:
    with writing(folder, roll_bytes=500) as made:
        put(made, 0, "word")
        made.archive.append(b"x" * 1000, 2000.0)
        made.archive.append(b"y" * 1000, 2000.0)
        made.archive.sync()
        crashed = image(folder, tmp_path / "crashed")
    assert len(list((crashed / "archive").iterdir())) > 1
    with writing(crashed) as made:
        reindex(made, _OPTIONS)
        version = made.store.versions.get(0)
        assert version is not None
        assert b"word" in made.body(version)[2]
        put(made, 1, "more")
        made.commit_index(1)
    judge_without_cycles(crashed)


def test_pages_are_indexed_again_after_a_crash_between_store_and_index(folder: Path, tmp_path: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "first")
        made.commit_index(0)
        put(made, 1, "second")
        put(made, 2, "third")
        crashed = image(folder, tmp_path / "crashed")
    with writing(crashed) as made:
        assert found(made, "second") == set()
        assert sorted(made.unindexed()) == [1, 2]
        assert reindex(made, _OPTIONS) == 2
        assert [found(made, word) for word in ("first", "second", "third")] == [{0}, {1}, {2}]
        assert made.unindexed() == []
        assert reindex(made, _OPTIONS) == 0
    judge_without_cycles(crashed)


def test_a_version_that_differs_only_in_the_frame_is_indexed_after_a_crash_too(folder: Path, tmp_path: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "first")
        made.commit_index(0)
        put(made, 1, "second", Outcome.UNCHANGED)
        crashed = image(folder, tmp_path / "crashed")
    with writing(crashed) as made:
        assert made.unindexed() == [1]
        reindex(made, _OPTIONS)
        assert found(made, "second") == {1}


def test_an_index_that_was_deleted_is_made_again(folder: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
        put(made, 1, "word")
        made.commit_index(1)
    shutil.rmtree(folder / "index")
    with writing(folder) as made:
        assert reindex(made, _OPTIONS) == 2
        assert found(made, "word") == {0, 1}


def test_an_index_that_was_deleted_is_made_again_even_after_a_search(folder: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
        made.commit_index(0)
    shutil.rmtree(folder / "index")
    with Storage(folder) as reader:
        assert found(reader, "word") == set()
    with writing(folder) as made:
        assert reindex(made, _OPTIONS) == 1
        assert found(made, "word") == {0}


def test_an_index_that_was_being_made_again_when_a_crash_came_is_made_again(folder: Path, tmp_path: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
        made.commit_index(0)
    shutil.rmtree(folder / "index")
    with writing(folder) as made:
        assert len(made.index) == 0  # it is there, but nothing is in it yet
        crashed = image(folder, tmp_path / "crashed")
    assert (crashed / "index").is_dir()
    with writing(crashed) as made:
        assert reindex(made, _OPTIONS) == 1
        assert found(made, "word") == {0}


def test_an_index_of_an_earlier_shape_is_made_again_by_whoever_writes(folder: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
        put(made, 1, "word")
        made.commit_index(1)
    shutil.rmtree(folder / "index")
    old_index(folder / "index", Document(0, "https://a.example/0", _SITE.origin, "T0", "word", 1000.0))
    with Storage(folder) as reader:
        assert found(reader, "word") == {0}
        assert reader.unindexed() == []
    with writing(folder) as made:
        assert reindex(made, _OPTIONS) == 2
        assert made.index.current
        assert found(made, "word") == {0, 1}
    with writing(folder) as made:
        assert reindex(made, _OPTIONS) == 0


def test_an_index_that_was_interrupted_goes_on_where_it_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, _all: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with writing(folder) as made:
        for page in range(5):
            put(made, page, "word")
        made.drop_index()
        with pytest.raises(KeyboardInterrupt):
            reindex(made, _OPTIONS, stop)
    indexed = list[int]()
    whole = Index.put

    def put_and_note(index: Index, document: Document) -> str:
        indexed.append(document.page)
        return whole(index, document)

    monkeypatch.setattr(Index, "put", put_and_note)
    with writing(folder) as made:
        assert found(made, "word") == {0, 1}
        reindex(made, _OPTIONS)
        assert found(made, "word") == {0, 1, 2, 3, 4}
        assert sorted(indexed) == [2, 3, 4]
        assert made.unindexed() == []


def test_a_shortened_archive_is_refused_and_left_as_it_is(folder: Path) -> None:
    with writing(folder) as made:
        put(made, 0, "word")
    (path,) = (folder / "archive").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    size = path.stat().st_size
    with pytest.raises(RepositoryError, match="restore it from a copy"), writing(folder):
        pass
    assert path.stat().st_size == size
