"""Heat map of a site: pages by time intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recrawl.model import Outcome
from recrawl.repository.reader import Reader
from recrawl.repository.reports.directory_tree import PageCounts

_ROWS = 30
_COLUMNS = 32
_VISITS = 300
"""Only the newest visits of a page are read."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One page: visits and updates found, per interval."""

    page: int
    url: str
    visits: list[int]
    updates: list[int]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Pages by time; `edges` are the starts of the intervals and the end of the last one."""

    rows: list[HeatRow]
    edges: list[float]


def heat_map(repo: Reader, pages: Sequence[PageCounts], since: float = 0.0, until: float = math.inf) -> HeatMap:
    """Return the heat map of the pages that changed most, of this time; their first visits are left out."""
    top = sorted((row for row in pages if row[2] > 1), key=lambda row: (-row[3], -row[2], row[0]))[:_ROWS]
    visits = {page: [(at, new) for at, new in _visits(repo, page) if since <= at <= until] for page, _, _, _ in top}
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


def _visits(repo: Reader, page: int) -> list[tuple[float, bool]]:
    """Return times of visits, newest first, and whether each found an update; without the page's first visit."""
    rows = repo.storage.store.visits.of_page(page, _VISITS)
    first = 1 if len(rows) < _VISITS else 0
    return [(at, outcome != int(Outcome.UNCHANGED)) for at, outcome in rows[: len(rows) - first]]
