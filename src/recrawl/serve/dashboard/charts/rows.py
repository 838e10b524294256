"""Geometry of charts with a label for each row: horizontal bars, and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recrawl.serve.dashboard.charts.lines_and_columns import Bar, Tick, spread, ticks
from recrawl.serve.dashboard.charts.time_axis import time_labels

_ROW = 26
_CHARACTER = 7.0
"""Width of a character of a label, in units of the drawing."""


@dataclass(frozen=True, slots=True)
class BarRow:
    """One row of a chart of rows: its label and value in full."""

    label: str
    value: str
    y: float
    bar: Bar


@dataclass(frozen=True, slots=True)
class BarRows:
    """Horizontal bars with whole labels."""

    width: float
    height: float
    left: float
    rows: tuple[BarRow, ...]
    title: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a heat map."""

    x: float
    y: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Heat:
    """A heat map; `labels` are left of the rows."""

    width: float
    height: float
    step: float
    size: float
    """Height of a cell with its margin; `step` is the width."""
    cells: tuple[Cell, ...]
    labels: tuple[tuple[float, str, str], ...]
    """y, label, link."""
    x: tuple[Tick, ...]
    left: float


def bar_rows(rows: Sequence[tuple[str, str, str, float]], title: str, width: float = 960.0) -> BarRows:
    """Lay out horizontal bars: each row is a label, the text of its value, a kind and a share from 0 to 1.

    >>> drawn = bar_rows([("shock, 35 visits", "84 %", "changed", 0.84)], "Changes found (%)")
    >>> drawn.rows[0].bar.x == drawn.left, drawn.left > 7 * len("shock, 35 visits")
    (True, True)
    """
    left = _CHARACTER * max((len(label) for label, *_ in rows), default=0) + 14
    room = width - left - 64
    made = []
    for k, (label, value, kind, share) in enumerate(rows):
        bar = Bar(left, k * _ROW + 4.0, round(max(1.0, room * share), 2), _ROW - 8.0, kind, f"{label}: {value}")
        made.append(BarRow(label, value, k * _ROW + _ROW * 0.66, bar))
    return BarRows(width, len(rows) * _ROW + 24, left, tuple(made), title)


def heat(
    rows: Sequence[tuple[str, str, Sequence[tuple[str, str]]]],
    edges: Sequence[float],
    *,
    left: float = 290.0,
    width: float = 1000.0,
    size: float = 18.0,
) -> Heat:
    """Lay out a heat map over the whole width: each row is a label, its link, and (kind, text) per column.

    `edges` are the times at which columns begin, and the end of the last one; an empty kind draws no cell.
    """
    columns = max((len(row) for _, _, row in rows), default=0)
    step = (width - left) / max(1, columns)
    cells: list[Cell] = []
    labels = []
    for r, (label, link, row) in enumerate(rows):
        labels.append((r * size + size * 0.72, label, link))
        cells += [Cell(round(left + c * step, 2), r * size, kind, text) for c, (kind, text) in enumerate(row) if kind]
    chosen = spread(len(edges))
    marks = ticks([left + step * k for k in chosen], time_labels([edges[k] for k in chosen]))
    return Heat(width, len(rows) * size + 24, round(step, 2), size, tuple(cells), tuple(labels), marks, left)
