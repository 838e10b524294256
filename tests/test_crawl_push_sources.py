"""Sources of pushes are judged by later visits: one that is mostly wrong is no longer preferred, until it improves."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from recrawl.crawl import hints
from recrawl.crawl.hints import judge_sources, note, pushers, troubles
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from tests.world import Repo, Site, connection, page

DAY = 86400.0


@pytest.fixture
def opened(repo: Repo) -> Iterator[Storage]:
    with Storage(repo.folder) as found:
        yield found


def visited(opened: Storage, page_number: int, at: float, outcome: Outcome) -> None:
    connection(opened.store).execute(
        """INSERT INTO visits
           (page, cycle, at, outcome, status, received, seconds, version, score, why, failure, detail, hints)
           VALUES (?, 0, ?, ?, 200, 0, 0, -1, 0, 0, '', '', 0)""",
        (page_number, at, int(outcome)),
    )


def rounds(opened: Storage, source: str, right: int, wrong: int, begin: float = 0.0) -> list[str]:
    """Pushes of as many pages, each visited a little later; what is told of it."""
    many = right + wrong
    note(opened.store, [(number, source, "indexnow", begin) for number in range(many)])
    for number in range(many):
        visited(opened, number, begin + 60, Outcome.CHANGED if number < right else Outcome.UNCHANGED)
    return judge_sources(opened.store, begin + 100)


def test_a_source_that_is_mostly_wrong_loses_its_privilege_and_can_get_it_back(opened: Storage) -> None:
    assert rounds(opened, "good", 20, 10) == []
    (told,) = rounds(opened, "bad", 2, 30, 1000.0)
    assert told == "pushes of bad: 6% were right; they are no longer preferred"
    assert opened.store.pushes.untrusted() == {"bad"}
    first, second = pushers(opened.store)
    assert (first["source"], first["trusted"], first["precision"]) == ("bad", False, 0.0625)
    assert (second["source"], second["trusted"], second["precision"]) == ("good", True, 0.6667)
    assert "6% of the pushed pages had changed" in troubles(opened.store)[0]
    assert rounds(opened, "bad", 90, 0, 2000.0) == ["pushes of bad: 75% were right; they are preferred again"]
    assert opened.store.pushes.untrusted() == set()


def test_a_few_visits_settle_nothing(opened: Storage) -> None:
    assert rounds(opened, "new", 0, 19) == []
    assert opened.store.pushes.untrusted() == set()


def test_what_is_long_ago_fades(opened: Storage) -> None:
    rounds(opened, "old friend", 100, 0)
    rounds(opened, "old friend", 0, 100, 1000.0)
    (told,) = rounds(opened, "old friend", 0, 150, 2000.0)
    assert "no longer" in told


def test_only_the_visit_that_followed_tells(opened: Storage) -> None:
    db = connection(opened.store)
    visited(opened, 1, 50.0, Outcome.CHANGED)  # before the push
    note(
        opened.store,
        [(1, "s", "websub", 100.0), (1, "s", "websub", 200.0), (2, "s", "websub", 100.0), (3, "s", "websub", 100.0)],
    )
    visited(opened, 1, 150.0, Outcome.FAILED)  # says nothing
    judge_sources(opened.store, 160.0)
    assert pushers(opened.store)[0]["right"] == pushers(opened.store)[0]["wrong"] == 0
    visited(opened, 1, 300.0, Outcome.UNCHANGED)
    visited(opened, 2, 300.0, Outcome.GONE)
    visited(opened, 3, 100.0 + 8 * DAY, Outcome.CHANGED)  # by then it may have changed anyway
    judge_sources(opened.store, 100.0 + 8 * DAY)
    (row,) = pushers(opened.store)
    assert (row["right"], row["wrong"], row["heard"]) == (1, 1, 4)
    assert db.execute("SELECT count(*) FROM pushed").fetchone() == (0,)


def test_pages_of_a_doubted_source_are_ordinary_in_a_cycle(repo: Repo) -> None:
    now = time.time_ns() / 1e9
    with Site({"/": page("Start", *(f"/p{number}" for number in range(4))), "/p1": b"a", "/p2": b"b"}) as site:
        repo.crawl(site.url())
        repo.later(days=2)
        with Storage(repo.folder) as opened:
            connection(opened.store).execute("INSERT INTO push_sources VALUES ('liar', 'indexnow', 30, 0, 30, 0, 0)")
            for name, path in (("liar", "/p1"), ("friend", "/p2")):
                hints.accept(opened, [site.url(path)], "indexnow", name, now + 2 * DAY)
        repo.cycle(1)
    said = repo.sql("SELECT p.url FROM hints h JOIN pages p ON p.id = h.page WHERE h.kind = 'indexnow'")
    assert said == [(site.url("/p2"),)]
    assert sorted(repo.sql("SELECT source, heard FROM push_sources")) == [("friend", 1), ("liar", 31)]


def test_a_doubted_source_does_not_get_in_the_way_of_another(opened: Storage, repo: Repo) -> None:
    connection(opened.store).execute("INSERT INTO sites (id, origin) VALUES (0, 'https://a.example')")
    for source in ("liar", "friend"):
        assert hints.accept(opened, ["https://a.example/x"], "indexnow", source, 5.0).taken == 1
    assert repo.sql("SELECT count(*) FROM pushes") == [(2,)]
