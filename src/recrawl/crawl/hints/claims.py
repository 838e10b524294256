"""From the dates that a source claims to rows of the store: which are signals, which are ignored and why."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recrawl.learn.hints.claims import MAX_AHEAD, plausible, signals_change
from recrawl.record.rows import HintRow, SourceRow
from recrawl.record.store import Store

_MIN_DATES = 20
"""Fewer dates than this can all be new by coincidence."""
_JUST_NOW = 60.0
"""Seconds: a date this close to the time of reading was generated for the answer."""


def claims(
    store: Store, site: int, kind: str, dates: Mapping[int, float], seen: float, *, whole: bool = True, bad: int = 0
) -> tuple[list[HintRow], SourceRow]:
    """Rows for pages whose date has changed, and the row of the source. `bad` is the number of invalid dates.

    `whole` means that the source was read completely, so that pages it does not list count as unchanged.
    """
    page = np.fromiter(dates, np.int64, len(dates))
    date = np.fromiter(dates.values(), np.float64, len(dates))
    known = store.hints.claims(kind, dates)
    order = np.argsort(known["page"])
    place = (
        order[np.minimum(np.searchsorted(known["page"][order], page), max(len(order) - 1, 0))] if len(order) else page
    )
    there = known["page"][place] == page if len(order) else np.zeros(len(page), bool)
    page, date, place = page[there], date[there], place[there]
    last, before = known["last"][place], known["before"][place]
    valid = plausible(date, seen)
    signalled = signals_change(date, np.where(before < 0, np.nan, before), last, seen)
    rows = [
        HintRow(number, kind, seen, value, int(signal))
        for number, value, signal in zip(
            page[valid & (date != before)].tolist(),
            date[valid & (date != before)].tolist(),
            signalled[valid & (date != before)].tolist(),
            strict=True,
        )
    ]
    ignored = int(np.count_nonzero(~valid)) + bad
    source = SourceRow(
        site, kind, seen if whole else 0.0, int(signalled.sum()), ignored, _problem(date, valid, seen, bad)
    )
    return rows, source


def add_claim(dates: dict[int, float], page: int, date: float, now: float) -> None:
    """Add a date that a source names for a page; of several, the newest that is not in the future counts."""
    before = dates.get(page)
    if before is None or (date > before and date <= now + MAX_AHEAD) or before > now + MAX_AHEAD:
        dates[page] = date


def promises(store: Store, kind: str, values: Mapping[int, float], seen: float) -> list[HintRow]:
    """Rows for pages whose promised interval of change, in seconds, or priority is new."""
    known = store.hints.values(kind, values)
    return [HintRow(page, kind, seen, value, 0) for page, value in values.items() if known.get(page) != value]


def _problem(date: np.ndarray, valid: np.ndarray, seen: float, bad: int) -> str:
    """Problems with the dates, for display; empty if there are none."""
    wrong = []
    future = int(np.count_nonzero(date[~valid] > seen))
    if future:
        wrong.append(f"{future:,} dates lie in the future")
    if bad:
        wrong.append(f"{bad:,} dates cannot be read")
    if len(date) >= _MIN_DATES and (np.abs(date - seen) < _JUST_NOW).all():
        wrong.append("every date is the time of the reading")
    return "; ".join(wrong)
