"""Chart geometry: turns numbers into coordinates, which the templates render as SVG.

Charts are laid out on the server, so they are there without a script; the page's script adds tooltips and zoom. Colours
are CSS classes, for light and dark themes. Every axis has a title with its unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recrawl.serve.dashboard.charts.time_axis import time_labels

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
) -> LineChart:
    """Lay out shares over time. `texts` label the points.

    >>> times, axes = [0.0, 86400.0], Axes("Time (UTC)", "Fresh pages (%)")
    >>> drawn = curve(times, [0.5, 1.0], [0.4, 0.9], [0.6, 1.0], texts=["a", "b"], axes=axes, top=1.0)
    >>> drawn.line, [tick.text for tick in drawn.frame.x]
    ('M46,109L512,30', ['00:00', '08:00', '16:00', '00:00'])
    """
    most = top if top is not None else max([*high, 1e-9])
    frame, place = _framed(most, axes, percent=True)
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
