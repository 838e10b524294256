"""B's world and tables: fitted numbers are reproduced, and measures are right on hand-made histories."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import UsageError
from recrawl.lab.experiments.barbosa2003 import published
from recrawl.lab.experiments.barbosa2003.measures import (
    book_at,
    case_study,
    figure_2,
    recommended,
    replayed,
    scope_at,
    table_1,
    version_at,
)
from recrawl.lab.experiments.barbosa2003.world import BWorld, RateMix, layer_sizes, slow_rate
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.histories.history import ABSENT, History, LinkLists, assemble

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture(scope="module", params=["alike", "two-kinds"])
def world(request: pytest.FixtureRequest) -> History:
    nature: RateMix = request.param
    return BWorld(sites=3, days=20, mix=nature).build()


def test_printed_numbers_are_consistent() -> None:
    assert sum(layer_sizes()) == published.PAGES
    assert np.cumsum(layer_sizes())[1:4].tolist() == [group.pages for group in published.TABLE_1]
    hours = published.PAGES / published.PER_MINUTE / 60
    assert hours == pytest.approx(published.UNIFORM_HOURS["from its figures"], abs=0.01)
    assert round(0.41 * 15_230) == 6_244, "what the text prints fits table 1, not its own 42 %"
    for nature in ("alike", "two-kinds"):
        assert 0.01 < slow_rate(nature) * DAY < 0.1


def test_fitted_numbers_are_reproduced(world: History) -> None:
    where = scope_at(world)
    for row in table_1(where):
        assert row["success"] == pytest.approx(row["published_success"], abs=0.04)
        assert row["pages"] * 61 / 3 == pytest.approx(row["published_pages"], rel=0.02)
    uniform, group = case_study(where)
    assert uniform["success"] == pytest.approx(0.22, abs=0.02)
    assert group["success"] == pytest.approx(0.41, abs=0.04)
    assert uniform["hours"] == pytest.approx(174.35, abs=0.1)
    assert group["hours"] == pytest.approx(1.8, abs=0.05)
    assert group["delay_hours_of_group"] == pytest.approx(3.0, abs=0.3)
    assert uniform["delay_hours"] == pytest.approx(87, abs=6)


def test_change_decreases_with_depth(world: History) -> None:
    shares = [row["changed"] for row in figure_2(scope_at(world), days=3)]
    assert shares == sorted(shares, reverse=True)


def test_the_recommended_n_is_bs_choice(world: History) -> None:
    assert recommended(scope_at(world))["n"] == published.CHOSEN_N


def test_depths_of_the_world_are_those_of_its_links(world: History) -> None:
    """The given depths equal those found from the anchors."""
    from recrawl.learn.structure.depth import from_anchors

    where = scope_at(world)
    assert len(where.anchor) == 3
    np.testing.assert_array_equal(from_anchors(book_at(world, np.full(3, 10 * DAY)), where.anchor), where.depth)


def test_the_policies_replayed() -> None:
    where = scope_at(BWorld(sites=1, days=15).build())
    rows = replayed(where)
    assert [row["policy"].partition("(")[0] for row in rows] == ["round-robin", *["anchor-depth"] * 3]
    assert [row["reading"] for row in rows] == ["", *(one.name for one in SENTENCES["slow"].readings)]
    for row in rows:
        assert 0.1 < row["success"] < 0.5
        assert row["found"] == pytest.approx(row["success"] * row["visits"])
    uniform, slow, alone, rest = (row["requests_a_day"] for row in rows)
    assert alone < slow < 0.7 * uniform, "a slow group makes fewer requests than uniform visits"
    assert rest == pytest.approx(uniform, rel=0.01), "what is left of the pace is as many requests"


def small() -> History:
    """A constant root links to a list that changes daily; a page appears on day 5 and is gone on day 7."""
    urls = ["http://a.example/", "http://a.example/x/list", "http://a.example/x/new"]
    times = [[0.0], [k * DAY for k in range(10)], [5 * DAY, 7 * DAY]]
    page = np.repeat(np.arange(3), [len(some) for some in times])
    version = np.array([0, *range(10), 0, ABSENT])
    links = LinkLists(np.array([0, *([1] * 10), 2, 2], np.int32), np.array([0, 1, 2, 2]), np.array([1, 2], np.int32))
    return assemble(urls, page, np.concatenate(times) + 1e9, version, change="text", carries=frozenset(), links=links)


def test_current_versions() -> None:
    history = small()
    for day, wanted in ((0, [0, 0, ABSENT]), (5.5, [0, 5, 0]), (8, [0, 8, ABSENT])):
        assert version_at(history, np.arange(3), np.full(3, day * DAY)).tolist() == wanted


def test_the_book_of_daily_visits() -> None:
    book = book_at(small(), np.array([6 * DAY]))
    assert book.visits.tolist() == [7, 7, 2]
    assert book.changes.tolist() == [1, 7, 1]
    assert book.known.tolist() == [True, True, True]
    assert book_at(small(), np.array([8 * DAY])).known.tolist() == [True, True, False]
    assert book.last_change.tolist() == [0.0, 6 * DAY, 5 * DAY]


def test_shares_of_a_history_made_by_hand() -> None:
    """The anchor found is the list, which leads to new pages; the root cannot be reached from it."""
    where = scope_at(small(), share=6 / 9)
    assert where.anchor.tolist() == [1]
    assert where.depth.tolist() == [-1, 0, 1]
    (first, *deeper) = figure_2(where, days=2)
    assert (first["pages"], first["changed"]) == (1, 0.5), "it stays for a day, then it is gone"
    assert all(row["changed"] is None for row in deeper)


def test_links_are_needed() -> None:
    bare = assemble(
        ["http://a.example/"],
        np.zeros(1, np.int64),
        np.zeros(1),
        np.zeros(1, np.int64),
        change="text",
        carries=frozenset(),
    )
    with pytest.raises(UsageError, match="links"):
        scope_at(bare)
    with pytest.raises(UsageError, match="at least 1 site"):
        BWorld(sites=0)
