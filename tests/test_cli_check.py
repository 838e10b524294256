"""`recrawl check`: what it finds in damaged repositories, and what it repairs."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.record.storage import Storage
from tests.crashes import ask
from tests.world import Reply, Repo, Site, page


@pytest.fixture
def web(site: Callable[..., Site]) -> Site:
    pages = {f"/{number}": page(f"apple number {number}", title=f"Page {number}") for number in range(6)}
    return site({"/": page("front apple", *pages), **pages})


@pytest.fixture
def refreshed(repo: Repo, web: Site) -> Repo:
    """Two versions of one page, a page that is gone, revisits of the others."""
    repo.crawl(web.url())
    for _ in range(2):
        repo.later(days=3)
        web["/1"] = page("apple once more")
        web["/5"] = Reply(page("no"), 410)
        repo.cycle()
    return repo


def change(repo: Repo, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(repo.folder / "recrawl.db")) as db:
        db.execute(sql, values)
        db.commit()


def check(repo: Repo, *arguments: str, code: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(repo.run("check", "--json", *arguments, code=code).out)
    return found


def archive_file(repo: Repo) -> Path:
    (file,) = (repo.folder / "archive").iterdir()
    return file


def place(repo: Repo, url: str) -> tuple[int, int]:
    """Start and length of the newest record of a page."""
    sql = "SELECT v.start, v.length FROM versions v JOIN pages p ON p.version = v.id WHERE p.url = ?"
    start, length = ask(repo.folder, sql, url)[0]
    return start, length


def spoil(repo: Repo, url: str) -> None:
    start, length = place(repo, url)
    with archive_file(repo).open("r+b") as file:
        file.seek(start + length // 3)
        file.write(b"\x55" * 20)


def test_a_sound_repository_has_no_problem(refreshed: Repo) -> None:
    found = check(refreshed, code=0)
    assert (found["clean"], found["problems"], found["notes"]) == (True, [], [])
    assert found["checked"]["pages"] == 7
    assert found["checked"]["versions"] == 8
    assert found["checked"]["bytes"] == archive_file(refreshed).stat().st_size
    assert refreshed.run("check").out.startswith("no problem in 7 pages, 8 versions, ")
    with recrawl.open(refreshed.folder) as repo:
        report = repo.check()
        assert report.clean
        assert report.as_dict() == found
        assert repo.status().pages == 7, "it can be used afterwards"


def test_an_empty_repository_has_no_problem(repo: Repo) -> None:
    assert check(repo, code=0)["clean"]


def test_an_imported_history_has_no_problem(refreshed: Repo, tmp_path: Path) -> None:
    refreshed.run("export", tmp_path / "all.parquet")
    other = Repo.create(tmp_path / "other")
    other.run("import", tmp_path / "all.parquet")
    assert check(other, code=0)["checked"]["versions"] == 8


def test_what_a_crash_leaves_is_no_problem(refreshed: Repo) -> None:
    with archive_file(refreshed).open("ab") as file:
        file.write(b"half a rec")
    (refreshed.folder / "archive" / "recrawl-20260101000000-00001.warc.gz").write_bytes(b"")
    change(refreshed, "UPDATE meta SET value = 0 WHERE name = 'indexed'")
    found = check(refreshed, code=0)
    assert found["problems"] == []
    assert len(found["notes"]) == 3
    assert any("10 bytes that were never committed" in note for note in found["notes"])
    assert check(refreshed, "--repair", code=0)["problems"] == []
    assert check(refreshed, code=0)["notes"] == []


# -- the archive -------------------------------------------------------------------------------------------


def test_a_damaged_record_is_found_marked_and_downloaded_again(refreshed: Repo, web: Site, tmp_path: Path) -> None:
    url = web.url("/2")
    spoil(refreshed, url)
    found = check(refreshed, code=1)
    assert [problem["part"] for problem in found["problems"]] == ["archive", "archive"]
    assert any(url in problem["what"] for problem in found["problems"])
    assert any("the record at byte" in problem["what"] for problem in found["problems"])
    assert all(problem["repaired"] == "" for problem in found["problems"])
    repaired = check(refreshed, "--repair", code=0)
    assert repaired["clean"]
    assert all(problem["repaired"] for problem in repaired["problems"])
    lost = refreshed.run("show", url, code=1)
    assert "is lost" in lost.err
    assert "Traceback" not in lost.err
    assert refreshed.json("export", tmp_path / "all.parquet")["rows"] == 8  # 7 versions and a removal
    refreshed.later(days=3)
    refreshed.cycle()
    assert "number 2" in refreshed.run("show", url).out
    assert refreshed.outcomes(url)[-1] == "unchanged"
    assert url in refreshed.found("apple")


def test_a_damaged_old_version_is_marked(refreshed: Repo, web: Site) -> None:
    (start, _), *_ = ask(
        refreshed.folder,
        "SELECT v.start, v.id FROM versions v JOIN pages p ON p.id = v.page WHERE p.url = ? ORDER BY v.id",
        web.url("/1"),
    )
    with archive_file(refreshed).open("r+b") as file:
        file.seek(start)
        file.write(b"\0\0")
    check(refreshed, "--repair", code=0)
    assert "once more" in refreshed.run("show", web.url("/1")).out
    assert "is lost" in refreshed.run("show", web.url("/1"), "--at", 1, code=1).err
    found = check(refreshed, code=1)
    assert [problem["what"].partition(":")[0] for problem in found["problems"]] == [
        f"archive/{archive_file(refreshed).name}"
    ]
    assert found["notes"] == ["1 versions are marked as lost"]


@pytest.mark.parametrize("left", ["torn", "half", "nothing", "missing"])
def test_an_archive_that_lost_its_end_is_cut_after_its_last_record(refreshed: Repo, web: Site, left: str) -> None:
    file = archive_file(refreshed)
    start, length = place(refreshed, web.url("/1"))  # the newest version
    if left == "missing":
        file.unlink()
    else:
        os.truncate(file, {"torn": start + length // 2, "half": start // 2, "nothing": 0}[left])
    check(refreshed, code=1)
    assert "shorter" in refreshed.run("cycle", code=1).err
    check(refreshed, "--repair", code=0)
    assert file.stat().st_size == ask(refreshed.folder, "SELECT length FROM warcs")[0][0]
    refreshed.later(days=3)
    refreshed.cycle()
    assert "once more" in refreshed.run("show", web.url("/1")).out
    found = check(refreshed, code=0)
    assert len(found["notes"]) == 1
    assert "marked as lost" in found["notes"][0]


# -- the index ---------------------------------------------------------------------------------------------


def test_a_changed_byte_in_the_index_is_found_and_the_index_rebuilt(refreshed: Repo) -> None:
    store = next((refreshed.folder / "index").glob("*.store"))
    data = bytearray(store.read_bytes())
    data[len(data) // 3] ^= 1
    store.write_bytes(data)
    (problem,) = check(refreshed, code=1)["problems"]
    assert problem["part"] == "index"
    assert store.name in problem["what"]
    (problem,) = check(refreshed, "--repair", code=0)["problems"]
    assert problem["repaired"] == "rebuilt from database and archive"
    assert len(refreshed.found("apple")) == 6
    assert check(refreshed, code=0)["clean"]


@pytest.mark.parametrize("what", ["missing", "extra", "old", "gone"])
def test_an_index_that_is_at_odds_with_the_database_is_rebuilt(refreshed: Repo, web: Site, what: str) -> None:
    number = ask(refreshed.folder, "SELECT id FROM pages WHERE url = ?", web.url("/1"))[0][0]
    with Storage(refreshed.folder) as held:
        held.writing("test", lambda _: False, roll_bytes=1 << 30, info=())
        from recrawl.record.index import Document

        if what == "missing":
            held.index.remove(number)
        elif what == "old":
            held.index.put(Document(number, web.url("/1"), "", "Page 1", "apple", 1.0))
        elif what == "extra":
            held.index.put(Document(4711, web.url("/x"), "", "x", "apple", 1.0, new=True))
    if what == "gone":
        shutil.rmtree(refreshed.folder / "index")
        assert check(refreshed, code=0)["notes"] == ["7 pages wait to be indexed by the next writing command"]
    else:
        (problem,) = check(refreshed, code=1)["problems"]
        assert problem["part"] == "index"
    check(refreshed, "--repair", code=0)
    assert len(refreshed.found("apple")) == 6
    assert check(refreshed, code=0)["notes"] == []


def test_without_an_index_none_is_missed(refreshed: Repo) -> None:
    refreshed.config(index=False)
    shutil.rmtree(refreshed.folder / "index")
    assert check(refreshed, code=0)["problems"] == []


# -- the database ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE pages SET visits = visits + 1 WHERE id = 2", "wrong counts"),
        ("UPDATE pages SET changes = 0", "wrong counts"),
        ("UPDATE pages SET version = 0 WHERE id = 2", "newest version"),
    ],
)
def test_what_follows_from_other_tables_is_computed_again(refreshed: Repo, sql: str, what: str) -> None:
    change(refreshed, sql)
    problems = [problem["what"] for problem in check(refreshed, code=1)["problems"]]
    assert any(what in problem for problem in problems)
    assert check(refreshed, "--repair", code=0)["clean"]
    assert check(refreshed, code=0)["problems"] == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM visits WHERE version = 3",
        "DELETE FROM pages WHERE id = 3",
        "UPDATE visits SET cycle = 99 WHERE id = 3",
        "DELETE FROM warcs",
    ],
)
def test_rows_that_are_lost_are_reported(refreshed: Repo, sql: str) -> None:
    change(refreshed, sql)
    assert not check(refreshed, code=1)["clean"]
    files = sorted((refreshed.folder / "archive").iterdir())
    found = check(refreshed, "--repair", code=1)
    assert any("cannot be repaired" in note for note in found["notes"])
    assert sorted((refreshed.folder / "archive").iterdir()) == files


def test_no_archive_file_is_deleted_because_the_database_has_forgotten_it(refreshed: Repo) -> None:
    change(refreshed, "DELETE FROM warcs")
    assert "has lost its list of archive files" in refreshed.run("crawl", code=1).err
    assert archive_file(refreshed).stat().st_size


def test_a_damaged_index_of_a_table_is_rebuilt(refreshed: Repo) -> None:
    root = ask(refreshed.folder, "SELECT rootpage FROM sqlite_schema WHERE name = 'visits_by_page'")[0][0]
    size = ask(refreshed.folder, "PRAGMA page_size")[0][0]
    with (refreshed.folder / "recrawl.db").open("r+b") as file:
        file.seek(root * size - 40)
        file.write(b"\x07" * 30)
    found = check(refreshed, code=1)
    assert any("recrawl.db is damaged" in problem["what"] for problem in found["problems"])
    check(refreshed, "--repair", code=0)
    assert check(refreshed, code=0)["clean"]


def test_a_database_that_cannot_be_opened_is_a_problem_like_others(refreshed: Repo) -> None:
    (refreshed.folder / "recrawl.db").write_bytes(b"garbage " * 1000)
    for words in ((), ("--repair",)):
        (problem,) = check(refreshed, *words, code=1)["problems"]
        assert problem["part"] == "database"
        assert "damaged" in problem["what"]
    told = refreshed.run("check", code=1)
    assert "Traceback" not in told.err
    assert told.out.startswith("database: ")


def test_it_waits_for_no_writer_unless_told_so(refreshed: Repo) -> None:
    with Storage(refreshed.folder) as held:
        held.writing("test", lambda _: False, roll_bytes=1 << 30, info=())
        assert "is working on this repository" in refreshed.run("check", code=1).err
