"""The probability that a page has changed by now, and why, from the visits in the store alone. Nothing is written.

The newest visits of the page's site are replayed once, as the policy `predicted` does: what was known before each
visit, and what it found, are the training rows of a model (`learn.pooled.model`), which then predicts the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.crawl.state.load_book import turns
from recrawl.learn.pooled import model as pooled
from recrawl.learn.pooled.features import BASELINE, feature_names, features
from recrawl.learn.pooled.ledger import Ledger
from recrawl.record.store import Store

_MAX_VISITS = 200_000
"""Newest visits of a site that are used."""
MIN_COMPARISONS = 3
"""Minimum number of comparisons for a page's own history to be sufficient."""
_Z = 1.28
"""Standard errors on each side of an 80 % interval."""

Visits = NDArray[np.void]
"""One row per visit: page, cycle, at, changed."""


@dataclass(frozen=True, slots=True)
class OwnHistory:
    """A page's own history."""

    visits: int
    """Answered visits, including the first."""
    compared: int
    changes: int
    first: float | None
    last: float | None
    last_change: float | None
    low: float
    high: float
    """80 % interval of its change rate per visit."""


@dataclass(frozen=True, slots=True)
class ChangeEstimate:
    """The probability that a page has changed by now."""

    probability: float | None
    """None for a page that was never downloaded."""
    basis: str
    """What it is based on: `model`, `history` (the page's own) or `site` (the site's mean)."""
    rows: int
    """Training rows of the model."""
    site_rate: float | None
    """The share of visits to other pages of the site that found a change."""


def site_visits(store: Store, site: int) -> Visits:
    """The answered visits of a site's pages, oldest first."""
    return store.visits.of_site(site, _MAX_VISITS)


def own_history(visits: Visits, page: int) -> OwnHistory:
    """Summary of a page's own visits."""
    mine = visits[visits["page"] == page]
    later = mine[1:]
    changed = later["at"][later["changed"]]
    low, high = wilson_interval(int(later["changed"].sum()), len(later))
    return OwnHistory(
        visits=len(mine),
        compared=len(later),
        changes=len(changed),
        first=float(mine["at"][0]) if len(mine) else None,
        last=float(mine["at"][-1]) if len(mine) else None,
        last_change=float(changed[-1]) if len(changed) else None,
        low=low,
        high=high,
    )


def change_estimate(store: Store, visits: Visits, page: int, now: float) -> ChangeEstimate:
    """The probability that a page has changed by now."""
    numbers, place = np.unique(np.append(visits["page"], page), return_inverse=True)
    folder = _folders(store, numbers)
    ledger = Ledger.of(np.zeros(len(numbers), np.int64), folder)
    rows, labels, when = _folded(ledger, visits, place[:-1])
    mine = int(place[-1])
    others = np.arange(len(numbers)) != mine
    compared = int(ledger.compared[others].sum())
    rate = float(ledger.changed[others].sum() / compared) if compared else None
    if np.isnan(ledger.last[mine]):
        return ChangeEstimate(None, "nothing", 0, rate)
    model = pooled.fit(rows, labels, when, feature_names(depth=False).index(BASELINE), np.random.default_rng(1))
    mine_now = features(ledger, np.array([mine]), max(now, float(ledger.last[mine])))
    trained = len(model.trees) > 0
    basis = "model" if trained else "history" if ledger.compared[mine] else "site"
    return ChangeEstimate(float(model.probability(mine_now)[0]), basis, len(labels) if trained else 0, rate)


def wilson_interval(changed: int, of: int) -> tuple[float, float]:
    """80 % interval of a share (Wilson); (0, 1) without observations.

    >>> [round(value, 2) for value in wilson_interval(0, 10)], wilson_interval(0, 0)
    ([0.0, 0.14], (0.0, 1.0))
    """
    if not of:
        return 0.0, 1.0
    share, extra = changed / of, _Z**2 / of
    middle = (share + extra / 2) / (1 + extra)
    half = _Z * math.sqrt(share * (1 - share) / of + extra / (4 * of)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


def _folders(store: Store, pages: Ints) -> Ints:
    """A number for each page's directory."""
    return np.unique(store.pages.folders_of(pages.tolist()), return_inverse=True)[1].reshape(-1)


def _folded(ledger: Ledger, visits: Visits, place: Ints) -> tuple[Float32s, Flags, Floats]:
    """Replay the visits: features before each, whether it found a change, and its time."""
    width = len(feature_names(depth=False))
    rows: list[Float32s] = [np.zeros((0, width), np.float32)]
    labels: list[Flags] = [np.zeros(0, np.bool_)]
    when: list[Floats] = [np.zeros(0)]
    for part in _runs(visits, place):
        pages, at, changed = place[part], visits["at"][part], visits["changed"][part]
        known = ~np.isnan(ledger.last[pages])
        rows.append(features(ledger, pages[known], at[known]))
        labels.append(changed[known])
        when.append(at[known])
        ledger.note(pages, at, changed)
    return np.concatenate(rows), np.concatenate(labels), np.concatenate(when)


def _runs(visits: Visits, place: Ints) -> Iterator[Ints]:
    """The visits in order, cycle by cycle, each page at most once per part."""
    cuts = np.flatnonzero(np.diff(visits["cycle"])) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(visits)], strict=True):
        for rows in turns(place[begin:end]):
            yield rows + begin
