"""Sums at a cycle's end: they are what a scan would give, and estimates that are right where the truth is known."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.reports.figures import AGES
from recrawl.crawl.reports.summaries import catch_up
from recrawl.learn.rates import estimated_changes, fit_rates, share_deviation
from recrawl.record.store import SqliteStore
from tests.world import Repo, Site, page


def summaries(repo: Repo, table: str) -> list[dict[str, object]]:
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        cursor = store.db.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def lived(repo: Repo, site: Callable[..., Site]) -> None:
    """A site of four pages: a crawl, then cycles that find a change and a failure."""
    web = site({"/": page("Start", "/a", "/b", "/c"), "/a": b"<p>one", "/b": b"<p>two", "/c": b"<p>three"})
    repo.crawl(web.url())
    repo.later(days=1)
    web["/a"] = b"<p>quite another text"
    repo.cycle()
    repo.later(days=1)
    repo.cycle()


def test_they_are_what_a_scan_gives(repo: Repo, site: Callable[..., Site]) -> None:
    lived(repo, site)
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        scanned = {row["cycle"]: row for row in store.reports.cycles(10)}
    rows = summaries(repo, "cycle_summaries")
    assert [row["cycle"] for row in rows] == sorted(scanned)
    for row in rows:
        for name in ("visits", "changed", "new", "gone", "unchanged", "failed", "received"):
            assert row[name] == scanned[row["cycle"]][name], name
    (one,) = summaries(repo, "site_summaries")
    sums = "count(*), sum(state = 1), sum(visits), sum(changes), max(last_visit)"
    names = ("pages", "live", "visits", "changes", "last_visit")
    assert tuple(one[name] for name in names) == repo.sql(f"SELECT {sums} FROM pages")[0]
    assert sum(row["visits"] for row in summaries(repo, "site_cycles")) == sum(row["visits"] for row in rows)  # type: ignore[misc]


def test_freshness_is_a_share_with_its_deviation(repo: Repo, site: Callable[..., Site]) -> None:
    lived(repo, site)
    last = summaries(repo, "cycle_summaries")[-1]
    assert 0.9 < float(str(last["freshness"])) <= 1.0  # all were just looked at
    assert 0.0 <= float(str(last["freshness_sd"])) < 0.5
    assert last["pages"] == 4
    ages = json.loads(str(last["ages"]))
    assert len(ages) == len(AGES) + 1
    assert sum(ages) == 4


def test_little_is_expected_of_pages_that_never_change(repo: Repo, site: Callable[..., Site]) -> None:
    repo.crawl(site({"/": page("Start", "/a", "/b"), "/a": b"<p>one", "/b": b"<p>two"}).url())
    for _ in range(4):
        repo.later(days=1)
        repo.cycle()
    expected = [float(str(row["expected"])) for row in summaries(repo, "cycle_summaries")[1:]]
    assert all(earlier > later for earlier, later in itertools.pairwise(expected))
    assert expected[-1] < 0.3  # of three visits
    (one,) = summaries(repo, "site_summaries")
    assert float(str(one["rate"])) < 0.1


def test_a_crawl_in_the_middle_of_a_cycle_does_not_hide_its_visits(repo: Repo, site: Callable[..., Site]) -> None:
    lived(repo, site)
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        db = store.db
        last = db.execute("SELECT max(id) FROM cycles").fetchone()[0]
        # As if a crawl had begun after the cycle's second visit, and the cycle had gone on then.
        first = db.execute("SELECT first_visit FROM cycles WHERE id = ?", (last,)).fetchone()[0]
        db.execute(
            """INSERT INTO cycles (id, kind, policy, budget, seed, started, finished, first_visit, known)
               SELECT id + 1, 'crawl', 'explore', 0, 0, started, finished, ?, known FROM cycles WHERE id = ?""",
            (first + 2, last),
        )
        db.execute("DELETE FROM cycle_summaries")
        catch_up(store, 0.0)
    assert [row["visits"] for row in summaries(repo, "cycle_summaries")] == [4, 4, 4, 0]


def test_old_repositories_are_caught_up_with(repo: Repo, site: Callable[..., Site]) -> None:
    lived(repo, site)
    whole = {table: summaries(repo, table) for table in ("cycle_summaries", "site_cycles")}
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        for table in ("cycle_summaries", "site_cycles", "site_summaries"):
            store.db.execute(f"DELETE FROM {table}")
        assert catch_up(store, 0.0) == 3
        assert catch_up(store, 0.0) == 0
    again = summaries(repo, "cycle_summaries")
    for before, after in zip(whole["cycle_summaries"], again, strict=True):
        for name in ("visits", "changed", "new", "failed", "received", "not_modified"):
            assert after[name] == before[name]
    assert again[0]["freshness"] is None
    assert again[-1]["freshness"] is not None
    assert [row["visits"] for row in summaries(repo, "site_cycles")] == [row["visits"] for row in whole["site_cycles"]]


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 2.0))
def test_the_estimate_is_close_to_the_truth(seed: int, rate: float) -> None:
    """Poisson pages, visited daily for a month, then left alone for two days."""
    chance = np.random.default_rng(seed)
    rates = chance.gamma(2.0, rate / 2.0, 3000) / 86400.0
    days = 30
    changed = chance.random((days, 3000)) < 1 - np.exp(-rates * 86400.0)
    model = fit_rates(
        np.zeros(3000, int), np.full(3000, days + 1), changed.sum(axis=0), np.full(3000, days * 86400.0), 1
    )
    gap = 2 * 86400.0
    truth = float(np.exp(-rates * gap).mean())
    guess = model.unchanged(np.full(3000, gap))
    assert abs(float(guess.mean()) - truth) < 0.03
    assert share_deviation(float((guess * (1 - guess)).sum()), 3000) < 0.02


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_more_changes_were_there_than_were_seen(visits: int, changes: int) -> None:
    happened = float(estimated_changes(np.array([visits]), np.array([changes]))[0])
    assert happened >= min(changes, max(visits - 1, 0)) * 0.5
    assert np.isfinite(happened)


def test_nothing_at_all() -> None:
    assert share_deviation(0.0, 0) == 0.0
