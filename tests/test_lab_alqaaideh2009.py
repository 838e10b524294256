"""Q's experiments: its numbers are copied correctly, and the results have the expected shape."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.experiments.alqaaideh2009.measures import (
    WORLDS,
    accuracy,
    estimate,
    example_2_5_4,
    figure_2_2,
    nine_sites,
    one_cycle,
    table_4_1,
    tables_4,
)
from recrawl.lab.experiments.alqaaideh2009.meta_updates import compare_crawlers, follow, in_turn, tag_days
from recrawl.lab.experiments.alqaaideh2009.variation import accuracy_by_versions

days_of_pages = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12)


def test_the_example_gives_the_printed_numbers() -> None:
    assert example_2_5_4() == q.EXAMPLE


def test_the_printed_figures_agree_with_each_other() -> None:
    """An error in copying table 4.2 would break its averages."""
    assert sum(site.pages for site in q.SITES) == q.PAGES
    real = np.array([site.rate_in_4_2 for site in q.SITES])
    for policy, averages in q.AVERAGE_ACCURACY.items():
        printed = np.array([site.greedy if policy == "greedy" else site.frequency_greedy for site in q.SITES])
        assert accuracy(real[:, None], printed).mean(axis=0).tolist() == pytest.approx(averages, abs=0.011)


@pytest.mark.parametrize(("policy", "days"), [("greedy", 21), ("frequency_greedy", 20)])
def test_printed_estimates_are_whole_percentages_divided_by_the_days(policy: str, days: int) -> None:
    printed = np.array([getattr(site, policy) for site in q.SITES])
    assert np.abs(printed - np.round(printed * days) / days).max() < 0.0051


def test_a_sample_of_everything_is_exact() -> None:
    site, changed = nine_sites("alike", 1)
    real = 100 * np.array([changed[:, site == w].mean() for w in range(9)])
    whole = estimate(site, changed, 10**6, 1, np.random.default_rng(1))
    assert whole.tolist() == pytest.approx(real.tolist())


def test_with_two_kinds_of_pages_history_adds_nothing_and_is_right() -> None:
    site, changed = nine_sites("two-kinds", 1)
    assert (changed == changed[0]).all()
    for versions in (1, 2, 5):
        whole = estimate(site, changed, 10**6, versions, np.random.default_rng(1))
        assert whole.tolist() == pytest.approx([100 * changed[0, site == w].mean() for w in range(9)])


def test_tables_4_have_all_rows_and_the_printed_values() -> None:
    rows = tables_4(runs=2, samples=(10, 30, 100))
    assert len(rows) == 2 * 3 * 10
    for row in rows:
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["accuracy"] == pytest.approx(fmean(row["by_seed"]))
        assert max(row["by_seed"]) <= 100
        assert (row["published_accuracy"] is None) == (row["sample"] == 30)
    averages = {(row["policy"], row["sample"]): row for row in rows if row["site"] == "average"}
    assert averages["greedy", 10]["published_accuracy"] == 83.52
    # The reserve of 10/20 rounds to 0, so with 10 pages most sites are never sampled again.
    assert averages["greedy", 10]["accuracy"] < 93 < 97 < averages["greedy", 100]["accuracy"]


def test_table_4_1_has_the_rates_of_the_world_near_the_printed_ones() -> None:
    for row in table_4_1(nitc=9.09):
        chance = row["published_rate"] / 100
        spread = 100 * (chance * (1 - chance) / (row["pages"] * q.DAYS)) ** 0.5
        assert abs(row["rate"] - row["published_rate"]) <= 4 * spread


def test_figure_2_2_begins_above_round_robin_and_ends_on_it() -> None:
    rows = figure_2_2(runs=6, worlds=WORLDS[:1])
    ratio = {(row["policy"], row["sample"]): row["change_ratio"] for row in rows}
    assert {sample for _, sample in ratio} == {1, 2, 3, 5, 7, 10, 15, 20, 30, 50}
    assert ratio["greedy", 10] > ratio["proportional", 10] > ratio["round-robin", 10]
    assert ratio["greedy", 50] == pytest.approx(ratio["proportional", 50])
    assert ratio["greedy", 50] == pytest.approx(0.55, abs=0.05)


def test_one_cycle_changes_pages_at_their_sites_rates() -> None:
    history = one_cycle(WORLDS[2], 1)
    assert len(history) == 10_000
    changed = np.diff(history.first) == 2
    assert changed[history.site >= 90].mean() > 0.9 > 0.1 > changed[history.site < 10].mean()


# -- figures 1.3 and 4.1 -----------------------------------------------------------------------------------------


@given(days_of_pages, st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_a_needless_crawl_is_a_visit_that_finds_nothing_new(changed: list[list[bool]], days: list[int]) -> None:
    """Against a page at a time: it is visited every `days` days, and finds what changed since the last visit."""
    visits = found = 0
    fresh = np.ones((len(changed), 3))
    for page, every in enumerate(days):
        since = 0
        for day in range(1, len(changed) + 1):
            news = any(changed[past][page] for past in range(since, day))
            if day - since >= every:
                visits, found, since = visits + 1, found + news, day
            else:
                fresh[day - 1, page] = not news
    got = follow(np.array(changed), np.array(days))
    assert (got["visits"], got["found"], got["needless"]) == (visits, found, visits - found)
    assert got["freshness"] == pytest.approx(fresh.mean())


def test_in_turn_spends_the_visits_evenly() -> None:
    changed = np.zeros((4, 5), bool)
    changed[0, :] = True
    got = in_turn(changed, 10)
    assert (got["visits"], got["found"]) == (10, 5)
    assert got["freshness"] == pytest.approx((2 / 5 + 1 + 1 + 1) / 4)


def test_a_tag_saves_needless_crawls_and_no_finds_when_it_is_exact() -> None:
    """Pages that change every day or never: tags of 1 and 90 days find everything, with no needless crawl."""
    changed = np.tile(np.arange(10) < 3, (21, 1))
    figures = compare_crawlers(changed, tag_days(changed.mean(axis=0)))
    assert figures["meta-updates"] == {"visits": 63, "found": 63, "needless": 0, "freshness": 1.0}
    assert figures["ordinary"] == {"visits": 210, "found": 63, "needless": 147, "freshness": 1.0}


def test_the_rate_of_the_last_week_by_versions() -> None:
    """Two sites of which one begins to change daily in the last week: 5 versions show it, 20 show 7 of 20."""
    site = np.repeat([0, 1], 30)
    changed = np.zeros((21, 60), bool)
    changed[-7:, :30] = True
    accuracy = accuracy_by_versions(site, changed, runs=2)
    assert accuracy == {"V = 5": 100.0, "V = 20": pytest.approx(100 - 50 * 13 / 20), "auto": 100.0}
