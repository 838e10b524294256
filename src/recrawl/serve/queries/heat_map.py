"""Which pages of a site changed when: rows of pages, columns of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recrawl.model import Outcome
from recrawl.record.store import Store
from recrawl.serve.queries.directory_tree import Found

_ROWS = 30
_COLUMNS = 32
_VISITS = 300
"""Visits of one page that are looked at: the newest."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One page: in each stretch of time its visits and those that found an update."""

    page: int
    url: str
    visits: list[int]
    updates: list[int]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Pages by time; `edges` are where the stretches begin, and the end of the last."""

    rows: list[HeatRow]
    edges: list[float]


def heat_map(store: Store, pages: Sequence[Found]) -> HeatMap:
    """The pages that changed most, the most changed first; their first visits are no change and left out."""
    top = sorted((row for row in pages if row[2] > 1), key=lambda row: (-row[3], -row[2], row[0]))[:_ROWS]
    visits = {page: _visits(store, page) for page, _, _, _ in top}
    times = [at for rows in visits.values() for at, _ in rows]
    if not times:
        return HeatMap([], [])
    begin, end = min(times), max(times)
    columns = max(1, min(_COLUMNS, len({round(at, -3) for at in times})))
    step = max((end - begin) / columns, 1e-6)
    edges = [begin + k * step for k in range(columns + 1)]
    return HeatMap([_row(page, url, visits[page], begin, step, columns) for page, url, _, _ in top], edges)


def _row(page: int, url: str, visits: list[tuple[float, bool]], begin: float, step: float, columns: int) -> HeatRow:
    seen, updates = [0] * columns, [0] * columns
    for at, changed in visits:
        column = min(columns - 1, int((at - begin) / step))
        seen[column] += 1
        updates[column] += changed
    return HeatRow(page, url, seen, updates)


def _visits(store: Store, page: int) -> list[tuple[float, bool]]:
    """When a page was visited, newest first, and whether an update was found; its first visit is left out."""
    rows = store.visits.of_page(page, _VISITS)
    first = 1 if len(rows) < _VISITS else 0
    return [(at, outcome != int(Outcome.UNCHANGED)) for at, outcome in rows[: len(rows) - first]]
