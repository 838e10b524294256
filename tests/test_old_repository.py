"""A repository that recrawl 0.1 wrote: this version reads all of it, refreshes it and loses nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import tarfile
from pathlib import Path

import pytest

from recrawl.crawl.state.array_files import read_arrays
from recrawl.discover.urls import key
from recrawl.record.rows import Columns
from recrawl.record.store.sql.tables.visits import SqlVisits
from tests.old_repository import DAYS, NEWS, ORIGIN, PLANTS, pages, served_at, set_clock
from tests.world import Repo, Site, page

PACKED = Path(__file__).parent / "data" / "repository-0.1.tar.gz"
KNOWN = 3 + len(PLANTS) + NEWS


@pytest.fixture
def old(tmp_path: Path) -> Repo:
    """The repository on the day after its last cycle."""
    with tarfile.open(PACKED) as archive:
        archive.extractall(tmp_path, filter="data")
    repo = Repo(tmp_path / "repository")
    set_clock(repo, DAYS)
    return repo


def test_status_and_lists_read_it(old: Repo) -> None:
    status = old.json("status")
    assert (status["sites"], status["pages"], status["searchable"]) == (1, KNOWN, KNOWN)
    assert {name: n for name, n in status["states"].items() if n} == {"live": KNOWN - 1, "missing": 1}
    assert [(row["kind"], row["policy"]) for row in status["cycles"]] == [("cycle", "shock")] * 3 + [
        ("crawl", "explore")
    ]
    assert [row["missing"] for row in status["cycles"]] == [1, 0, 0, 0], "a page was missing on the last day"
    assert {row["url"] for row in old.json("pages")} == {f"{ORIGIN}{path}" for path in pages(0)}
    assert [row["url"] for row in old.json("sites")] == [ORIGIN]


def test_changes_log_show_and_diff_read_it(old: Repo) -> None:
    changed = [row["url"] for row in old.json("changes", "--since", "10d") if row["outcome"] == "changed"]
    assert changed.count(f"{ORIGIN}/") == DAYS - 1
    assert f"{ORIGIN}/news/2" in changed
    visits = old.visits(f"{ORIGIN}/")
    assert [visit["outcome"] for visit in visits] == ["new", "changed", "changed", "changed"]
    assert len(old.json("log", f"{ORIGIN}/")) == DAYS
    for day in range(DAYS):
        assert f"Garden diary of day {day}" in old.run("show", f"{ORIGIN}/", "--at", day + 1).out
    difference = old.run("diff", f"{ORIGIN}/news/2").out
    assert "[-quiet-]" in difference
    assert "{+seedlings+}" in difference


def test_search_finds_what_was_indexed(old: Repo) -> None:
    assert old.found("seedlings") == {f"{ORIGIN}/news/2"}
    assert old.found("title:Aster") == {f"{ORIGIN}/plants/Aster"}


def test_a_cycle_goes_on_from_it_and_loses_nothing(old: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    (memory,) = (old.folder / "models").glob("shock-*.npz")
    saved = read_arrays(memory)
    assert saved is not None
    upto = int(saved["upto"])
    read: list[int] = []
    usual = SqlVisits.between

    def between(table: SqlVisits, first: int, end: int) -> Columns:
        read.append(first)
        return usual(table, first, end)

    monkeypatch.setattr(SqlVisits, "between", between)
    before = {name: old.sql(f"SELECT * FROM {name} ORDER BY id") for name in ("visits", "versions", "cycles")}
    urls = old.sql("SELECT id, key, url FROM pages ORDER BY id")
    with Site(pages(DAYS)) as site, served_at(site.port):
        site["/plants/Aster"] = page("The asters have moved to the north bed", title="Aster")
        told = old.cycle(KNOWN)
    assert (told["visits"], told["failed"]) == (KNOWN, 0)
    assert upto == len(before["visits"])
    assert min(read) >= upto - 1, "the policy's memory was taken as it is, not learned again from the first visit on"
    for name, rows in before.items():
        now = old.sql(f"SELECT * FROM {name} ORDER BY id")[: len(rows)]
        assert [row[: len(rows[0])] for row in now] == rows, "columns that later versions add come last"
    assert old.sql("SELECT id, key, url FROM pages ORDER BY id") == urls
    assert len(old.sql("SELECT id FROM visits")) == len(before["visits"]) + KNOWN
    assert old.found("north bed") == {f"{ORIGIN}/plants/Aster"}
    after = read_arrays(memory)
    assert after is not None
    assert int(after["upto"]) == upto + KNOWN
    assert len(after["known"]) == KNOWN


def test_pages_in_an_older_spelling_are_found_and_not_made_twice(tmp_path: Path) -> None:
    """An older version stored `[`, `|` and `%28` as they were written, and `srsltid` as a parameter of the page."""
    repo = Repo.create(tmp_path / "repo")
    now = {"/a%5B1%5D": "/a[1]", "/b%7C": "/b|", "/c(1)": "/c%281%29", "/d": "/d?srsltid=7", "/e(1)": "/e%281%29"}
    with Site({"/": page("root", *now), "/e%281%29": page("a second page")}) as site:
        site.pages |= {new: page(f"walrus {new}") for new in now}
        repo.crawl(site.url("/"))
        rows = {site.url(new): site.url(old) for new, old in now.items() if new != "/e(1)"}
        with contextlib.closing(sqlite3.connect(repo.folder / "recrawl.db")) as db:
            for new, old in rows.items():
                db.execute("UPDATE pages SET url = ?, key = ? WHERE url = ?", (old, key(old), new))
            db.execute("DELETE FROM meta WHERE name = 'old_spellings'")
            db.commit()
        before = repo.sql("SELECT id, key, url FROM pages")
        for old in rows.values():
            assert repo.json("log", old)[0]["number"] == 1, "found as it is stored, before anything is written"
        site.pages |= {old: site[new] for new, old in now.items() if new != "/e(1)"}
        site["/"] = page("root, changed", *now, *now.values())
        repo.later(hours=2)
        repo.cycle()
        repo.crawl()
    assert repo.sql("SELECT id, key, url FROM pages") == before
    for new, old in rows.items():
        assert repo.json("log", new)[0]["url"] == repo.json("log", old)[0]["url"] == old
