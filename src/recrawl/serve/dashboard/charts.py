"""Geometry of charts: numbers in, positions and labels for the SVG templates out.

Charts are laid out on the server, so they are there without a script; the page's script adds tooltips and zoom. Colours
are CSS classes, for light and dark themes. Every axis has a title with its unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from recrawl.columns import DAY
from recrawl.repository.alerts.trial import WatchedValue
from recrawl.repository.reports.overview import CycleFigures
from recrawl.repository.results import words
from recrawl.repository.results.words import count
from recrawl.serve.dashboard.render import number, percent
from recrawl.times import moment, stamp

_RANGES = (("day", "Last day", DAY), ("week", "Week", 7 * DAY), ("month", "Month", 30 * DAY), ("all", "All", None))


_DEFAULT = "month"


_POINTS = 200
"""Values in the chart of a watched value."""
_LAST_TIME = 253402300799.0


"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """What a page's charts show: from `since` to `until`."""

    name: str
    """day, week, month or all; empty after a zoom."""
    since: float
    until: float

    @property
    def links(self) -> list[tuple[str, str, bool]]:
        """Query, label, and whether it is chosen, of each range."""
        return [(f"?range={name}", label, name == self.name) for name, label, _ in _RANGES]

    @property
    def zoomed(self) -> str:
        """The range in words after a zoom, else empty."""
        return "" if self.name else f"{stamp(self.since)[:16]} to {stamp(self.until)[:16]} UTC"


def time_range(request: Request, now: float) -> TimeRange:
    """Return the range that a request names; invalid values count as none."""
    given = request.query_params
    begin, end = _moment(given.get("from", "")), _moment(given.get("to", ""))
    if begin is not None and end is not None and begin < end:
        return TimeRange("", begin, end)
    lengths = {name: length for name, _, length in _RANGES}
    name = given.get("range", "")
    name = name if name in lengths else _DEFAULT
    length = lengths[name]
    return TimeRange(name, 0.0 if length is None else now - length, _LAST_TIME)


def time_labels(times: Sequence[float]) -> list[str]:
    """Return labels as exact as the distance between times asks for.

    >>> time_labels([0.0, 3600.0]), time_labels([0.0, 3 * 86400.0]), time_labels([0.0, 90 * 86400.0])
    (['00:00', '01:00'], ['1 Jan 00:00', '4 Jan 00:00'], ['1 Jan', '1 Apr'])
    """
    length = max(times, default=0.0) - min(times, default=0.0)
    moments = [datetime.fromtimestamp(at, UTC) for at in times]
    if len(times) > 1 and length <= 1.5 * DAY:
        return [f"{at:%H:%M}" for at in moments]
    if length <= 21 * DAY:
        return [f"{at.day} {at:%b %H:%M}" for at in moments]
    return [f"{at.day} {at:%b}" if length <= 330 * DAY else f"{at:%b %Y}" for at in moments]


def _moment(text: str) -> float | None:
    """Return a time in seconds since 1970; None if it is none.

    >>> _moment("12"), _moment("x"), _moment("1e99")
    (12.0, None, None)
    """
    return float(text) if text.isascii() and text.isdigit() and float(text) <= _LAST_TIME else None


WIDTH, HEIGHT = 520, 236


_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 30, 48


_STEPS = (1, 2, 2.5, 5, 10)


_TICKS = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick on an axis; a minor one is hidden on small screens."""

    at: float
    text: str
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Axes:
    """Titles of both axes, with units."""

    x: str
    y: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area, the titles and the ticks of its axes."""

    left: float
    right: float
    top: float
    bottom: float
    axes: Axes
    y: tuple[Tick, ...]
    x: tuple[Tick, ...] = ()
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a line."""

    x: float
    y: float
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class LineChart:
    """A line with its uncertainty band, as SVG path data."""

    frame: Frame
    line: str
    band: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One segment of a stacked column, or a bar of a row."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str
    at: float | None = None
    """The time of the column, for zoom."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked columns; `marks` are reference levels."""

    frame: Frame
    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, float, float, str], ...] = ()
    """Left x, right x, y, label."""


def curve(
    times: Sequence[float],
    ys: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    texts: Sequence[str],
    axes: Axes,
    top: float | None = None,
    percent: bool = True,
) -> LineChart:
    """Lay out shares over time, or with `percent` false other values. `texts` label the points.

    >>> times, axes = [0.0, 86400.0], Axes("Time (UTC)", "Fresh pages (%)")
    >>> drawn = curve(times, [0.5, 1.0], [0.4, 0.9], [0.6, 1.0], texts=["a", "b"], axes=axes, top=1.0)
    >>> drawn.line, [tick.text for tick in drawn.frame.x]
    ('M46,109L512,30', ['00:00', '08:00', '16:00', '00:00'])
    """
    most = top if top is not None else max([*high, 1e-9])
    frame, place = _framed(most, axes, percent=percent)
    begin, end = min(times, default=0.0), max(times, default=1.0)
    wide = frame.right - frame.left
    across = [frame.left + wide * ((at - begin) / (end - begin) if end > begin else 0.5) for at in times]
    line = _path(list(zip(across, map(place, ys), strict=True)))
    edge = [*zip(across, map(place, high), strict=True), *reversed([*zip(across, map(place, low), strict=True)])]
    dots = tuple(Dot(round(x, 1), place(y), text, at) for x, y, text, at in zip(across, ys, texts, times, strict=True))
    shares = [k / (_TICKS - 1) for k in range(_TICKS)] if end > begin else [0.5]
    moments = [begin + share * (end - begin) for share in shares]
    marks = ticks([frame.left + share * wide for share in shares], time_labels(moments))
    return LineChart(replace(frame, x=marks), line, _path(edge) + "Z" if edge else "", dots)


def bars(
    columns: Sequence[Sequence[tuple[str, float]]],
    *,
    texts: Sequence[str],
    axes: Axes,
    labels: Sequence[str] = (),
    times: Sequence[float] = (),
    marks: Sequence[float | None] = (),
    percent: bool = False,
) -> Bars:
    """Lay out columns of stacked (kind, size), each with its label or time. `marks` has a level per column.

    >>> drawn = bars([[("new", 1.0), ("changed", 1.0)]], texts=["cycle 1"], labels=["1"], axes=Axes("Cycle", "Pages"))
    >>> [(bar.kind, round(bar.height)) for bar in drawn.bars]
    [('new', 79), ('changed', 79)]
    """
    levels = [level for level in marks if level is not None]
    most = max([*(sum(size for _, size in column) for column in columns), *levels, 0.0])
    most = most or (0.01 if percent else 1.0)  # nothing to show has a scale, too
    frame, place = _framed(most, axes, percent=percent)
    step = (frame.right - frame.left) / max(1, len(columns))
    width = min(step * 0.78, 44.0)
    centres = [frame.left + step * (k + 0.5) for k in range(len(columns))]
    parts: list[Bar] = []
    for k, (column, text) in enumerate(zip(columns, texts, strict=True)):
        level = 0.0
        for kind, size in column:
            y, below = place(level + size), place(level)
            at = times[k] if times else None
            left = round(centres[k] - width / 2, 2)
            parts.append(Bar(left, y, round(width, 2), round(below - y, 2), kind, text, at))
            level += size
    half = width / 2 + 2
    lines = tuple(
        (centres[k] - half, centres[k] + half, place(level), texts[k])
        for k, level in enumerate(marks)
        if level is not None
    )
    if times:
        chosen = spread(len(columns))
        x = ticks([centres[k] for k in chosen], time_labels([times[k] for k in chosen]))
    else:
        x = tuple(Tick(centre, label) for centre, label in zip(centres, labels, strict=True))
    return Bars(replace(frame, x=x), tuple(parts), lines)


def tick_step(most: float) -> float:
    """Return a round step that gives about four ticks.

    >>> tick_step(1.0), tick_step(37), tick_step(0.08)
    (0.25, 10.0, 0.02)
    """
    rough = max(most, 1e-12) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * 0.999)


def _framed(most: float, axes: Axes, *, percent: bool) -> tuple[Frame, _Scale]:
    step = tick_step(most)
    top = step * math.ceil(most / step - 1e-9)
    scale = _Scale(top)
    marks, level = [], 0.0
    while level <= top * 1.001:
        marks.append(Tick(scale(level), f"{level * 100:g}" if percent else _short(level)))
        level += step
    return Frame(_LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM, axes, tuple(marks)), scale


class _Scale:
    """Maps values to y coordinates."""

    def __init__(self, top: float) -> None:
        self._top = top

    def __call__(self, value: float) -> float:
        high = HEIGHT - _BOTTOM - _TOP
        return round(HEIGHT - _BOTTOM - high * min(1.0, max(0.0, value / self._top)), 2)


def spread(number: int) -> list[int]:
    """Return up to four evenly spread places.

    >>> spread(3), spread(10)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    if number <= _TICKS:
        return list(range(number))
    return [round(k * (number - 1) / (_TICKS - 1)) for k in range(_TICKS)]


def ticks(places: Sequence[float], labels: Sequence[str]) -> tuple[Tick, ...]:
    """Return ticks; those between the first and the last are minor."""
    last = len(places) - 1
    both = zip(places, labels, strict=True)
    return tuple(Tick(round(at, 1), text, minor=0 < k < last) for k, (at, text) in enumerate(both))


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if k else 'M'}{x:g},{y:g}" for k, (x, y) in enumerate(points))


def _short(value: float) -> str:
    """Format a number with a unit prefix.

    >>> _short(1500), _short(2_000_000), _short(0.5)
    ('1.5k', '2M', '0.5')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


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


Values = dict[str, Any]


"""Variables for a template."""


TIME = "Start of the cycle (UTC)"


_NO_CHART: Values = {"chart": None, "rows": [], "summary": ""}


def freshness(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of freshness at the end of each cycle."""
    rows = [row for row in cycles if row.fresh is not None]
    if not rows:
        return _NO_CHART
    parts = [(row.fresh or 0.0, row.low or 0.0, row.high or 0.0) for row in rows]
    fresh, low, high = (list(column) for column in zip(*parts, strict=True))
    texts = [f"{_when(row)}\n{percent(row.fresh)} fresh\n{percent(row.low)} to {percent(row.high)}" for row in rows]
    axes = Axes(TIME, "Fresh pages (%)")
    chart = curve([row.started for row in rows], fresh, low, high, texts=texts, axes=axes, top=1.0)
    summary = f"From {percent(fresh[0])} to {percent(fresh[-1])} over {count(len(rows), 'cycle')}."
    table = [(stamp(row.started), percent(row.fresh), percent(row.low), percent(row.high)) for row in rows]
    return {"chart": chart, "summary": summary, "rows": table}


def updates(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of updates found, beside the expected number."""
    if not cycles:
        return _NO_CHART
    columns = [[("changed", row.changed), ("new", row.new), ("gone", row.gone)] for row in cycles]
    texts = [
        f"{_when(row)}\n{row.changed:,} changed, {row.new:,} new, {row.gone:,} gone\n{row.expected:,.0f} expected"
        for row in cycles
    ]
    axes = Axes(TIME, f"Updates{_per(cycles)} (pages)")
    times, marks = [row.started for row in cycles], [row.expected for row in cycles]
    chart = bars(columns, texts=texts, times=times, marks=marks, axes=axes)
    summary = f"{count(sum(row.found for row in cycles), 'update')} in {count(_total(cycles), 'cycle')}."
    table = [
        (stamp(row.started), *(number(value) for value in (row.changed, row.new, row.gone)), number(row.expected))
        for row in cycles
    ]
    return {"chart": chart, "summary": summary, "rows": table}


def visits(cycles: Sequence[CycleFigures]) -> Values:
    """Return the chart of visits by outcome."""
    if not cycles:
        return _NO_CHART
    columns = [
        [
            *(("changed", row.found), ("unchanged", row.unchanged)),
            *(("missing", row.missing), ("skipped", row.skipped), ("failed", row.failed)),
        ]
        for row in cycles
    ]
    texts = [
        f"{_when(row)}\n{count(row.visits, 'visit')}, {words.size(row.received)}\n"
        f"{row.found:,} updates, {row.unchanged:,} unchanged\n"
        f"{row.missing:,} missing, {row.skipped:,} skipped, {row.failed:,} failed"
        for row in cycles
    ]
    axes = Axes(TIME, f"Visits{_per(cycles)}")
    chart = bars(columns, texts=texts, times=[row.started for row in cycles], axes=axes)
    received = words.size(sum(row.received for row in cycles))
    summary = f"{count(sum(row.visits for row in cycles), 'visit')}, {received} received."
    table = [
        (
            stamp(row.started),
            *(number(value) for value in (row.visits, row.found, row.unchanged)),
            *(number(value) for value in (row.missing, row.skipped, row.failed, row.unmodified)),
            words.size(row.received),
        )
        for row in cycles
    ]
    return {"chart": chart, "summary": summary, "rows": table}


def ages(classes: Sequence[tuple[str, int]]) -> Values:
    """Return the chart of pages by time since their last visit."""
    if not sum(pages for _, pages in classes):
        return _NO_CHART
    texts = [f"{'up to ' if name != 'longer' else ''}{name}\n{count(pages, 'page')}" for name, pages in classes]
    columns = [[("plain", float(pages))] for _, pages in classes]
    axes = Axes("Time since the last visit, up to", "Pages")
    chart = bars(columns, texts=texts, labels=[name for name, _ in classes], axes=axes)
    most = max(classes, key=lambda row: row[1])
    summary = f"At the end of the last cycle, most pages ({most[1]:,}) are in the class up to {most[0]}."
    return {"chart": chart, "summary": summary, "rows": [(name, number(pages)) for name, pages in classes]}


def _when(row: CycleFigures) -> str:
    more = "" if row.cycles == 1 else f", {row.cycles} cycles"
    return f"{stamp(row.started)[:16]}{more}"


def _per(cycles: Sequence[CycleFigures]) -> str:
    most = max(row.cycles for row in cycles)
    return "" if most == 1 else f" per {most} cycles"


def _total(cycles: Sequence[CycleFigures]) -> int:
    return sum(row.cycles for row in cycles)


def values_chart(values: Sequence[WatchedValue]) -> dict[str, Any]:
    """Return the chart of the numbers among the values, and all values as rows, newest first."""
    rows = [(value.at[:19].replace("T", " "), value.text or "(nothing)") for value in reversed(values)]
    numbers = [(moment(value.at, 0.0), value.number, value.text) for value in values if value.number is not None]
    numbers = numbers[-_POINTS:]
    if len(numbers) < 2 or min(number for _, number, _ in numbers) < 0:
        return {"chart": None, "rows": rows, "summary": ""}
    times, ys, texts = [row[0] for row in numbers], [row[1] for row in numbers], [row[2] for row in numbers]
    chart = curve(times, ys, ys, ys, texts=texts, axes=Axes("Time (UTC)", "Value"), percent=False)
    return {"chart": chart, "rows": rows, "summary": f"{count(len(numbers), 'value')}, from {ys[0]:g} to {ys[-1]:g}."}
