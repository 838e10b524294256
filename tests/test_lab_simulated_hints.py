"""Sources of hints in replays: what they say is what they were made to say."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import UsageError
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.replays.hint_sources import SimulatedSitemap, parse_source

DAY = 86400.0


def living(pages: int = 200, days: int = 60, rate: float = 0.1, seed: int = 1) -> History:
    """Pages of two sites that change at random."""
    rng = np.random.default_rng(seed)
    rows = [(page, 0.0) for page in range(pages)]
    rows += [(page, at) for page in range(pages) for at in np.sort(rng.random(rng.poisson(rate * days))) * days * DAY]
    rows.sort()
    urls = [f"http://s{page % 2}.example/{page}" for page in range(pages)]
    page, time = (np.array(column) for column in zip(*rows, strict=True))
    return assemble(urls, page, time, np.arange(len(rows)), change="text", carries=frozenset())


def changed_between(history: History, start: float, end: float) -> np.ndarray:
    later = history.time > 0
    pages = history.page_of[later & (history.time > start) & (history.time <= end)]
    return np.isin(np.arange(len(history)), pages)


def test_a_correct_sitemap_signals_exactly_the_changes() -> None:
    history = living()
    source, last = SimulatedSitemap(history, "sitemap:honest", 1), np.zeros(len(history))
    for day in range(1, 30):
        hints = source.read(day * DAY, last)
        assert np.array_equal(hints.signals[0] > 0, [changed_between(history, last[0], day * DAY)][0])
        if day % 10 == 0:
            last[:] = day * DAY
    assert (hints.until == 29 * DAY).all()


def test_a_late_sitemap_omits_changes_already_seen() -> None:
    history = living()
    source, last = SimulatedSitemap(history, "sitemap:late:5", 1), np.zeros(len(history))
    assert not source.read(4 * DAY, last).signals.any()
    last[:] = 6.1 * DAY
    hints = source.read(11 * DAY, last)
    assert not hints.signals.any(), "all that it tells of was before the visit"
    hints = source.read(14 * DAY, last)
    assert np.array_equal(hints.signals[0] > 0, changed_between(history, 6.1 * DAY, 9 * DAY))


def test_a_noisy_sitemap_has_the_precision_and_recall_it_was_given() -> None:
    history = living(pages=2000)
    source, right, told, there = SimulatedSitemap(history, "sitemap:noisy:0.25,0.6", 1), 0, 0, 0
    for day in range(1, 60):
        signalled = source.read(day * DAY, np.full(2000, (day - 1) * DAY)).signals[0] > 0
        changed = changed_between(history, (day - 1) * DAY, day * DAY)
        told, there, right = told + signalled.sum(), there + changed.sum(), right + (signalled & changed).sum()
    # Two events of a page in a day are one signal, and a false one can fall on a change.
    assert right / told == pytest.approx(0.25, abs=0.06)
    assert right / there == pytest.approx(0.6, abs=0.08)


@pytest.mark.parametrize("how", ["lying", "random"])
def test_false_sitemaps_signal_all_pages(how: str) -> None:
    history = living()
    source = SimulatedSitemap(history, f"sitemap:{how}", 1)
    counts = [source.read(day * DAY, np.zeros(len(history))).signals[0].min() for day in (1.5, 2.5, 3.5)]
    assert counts == [1, 2, 3]


@pytest.mark.parametrize("how", ["future", "silent", "never"])
def test_other_sources_signal_nothing(how: str) -> None:
    history = living()
    source = SimulatedSitemap(history, f"sitemap:{how}", 1)
    for day in (1.5, 2.5):
        hints = source.read(day * DAY, np.full(len(history), DAY))
        assert not hints.signals.any()
    assert np.isfinite(hints.until).all() == (how == "silent"), "only silence of a source that has dates says something"


WRONG = """
honest feed:honest sitemap: sitemap:honest:1 sitemap:late sitemap:late:-1 sitemap:late:nan sitemap:late:inf
sitemap:noisy:1 sitemap:noisy:0,1 sitemap:noisy:0.5,2 sitemap:noisy:a,b
"""


@pytest.mark.parametrize("text", WRONG.split())
def test_invalid_sources_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid hints"):
        parse_source(text)
