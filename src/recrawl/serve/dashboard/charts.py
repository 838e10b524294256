"""Chart geometry: turns numbers into coordinates, which the templates render as SVG.

Charts are laid out on the server, so they need no script. Colours are CSS classes, for light and dark themes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 520, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 12, 26
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area and the ticks of its axes."""

    left: float
    right: float
    top: float
    bottom: float
    y: tuple[Tick, ...]
    x: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class LineChart:
    """A line with its uncertainty band, as SVG path data."""

    frame: Frame
    line: str
    band: str
    dots: tuple[tuple[float, float, str], ...]
    """x, y, label."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One segment of a stacked column."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked columns; `marks` are reference levels."""

    frame: Frame
    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, float, float, str], ...] = ()
    """Left x, right x, y, label."""


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


def curve(
    xs: Sequence[float],
    ys: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    texts: Sequence[str],
    ticks: Sequence[str],
    top: float | None = None,
    percent: bool = True,
) -> LineChart:
    """Lay out a line over time. `texts` label the points; the first and last of `ticks` label the x axis.

    >>> drawn = curve([0, 1], [0.5, 1.0], [0.4, 0.9], [0.6, 1.0], texts=["a", "b"], ticks=["then", "now"], top=1.0)
    >>> drawn.line
    'M46,93L512,12'
    """
    most = top if top is not None else max([*high, 1e-9])
    frame, place = _framed(most, percent)
    begin, end = min(xs, default=0.0), max(xs, default=1.0)
    across = [
        frame.left + (frame.right - frame.left) * ((x - begin) / (end - begin) if end > begin else 1.0) for x in xs
    ]
    line = _path(zip(across, map(place, ys), strict=True))
    edge = [*zip(across, map(place, high), strict=True), *reversed([*zip(across, map(place, low), strict=True)])]
    dots = tuple((x, place(y), text) for x, y, text in zip(across, ys, texts, strict=True))
    marks = _ends(frame, ticks)
    return LineChart(_with_x(frame, marks), line, _path(edge) + "Z" if edge else "", dots)


def bars(
    columns: Sequence[Sequence[tuple[str, float]]],
    *,
    texts: Sequence[str],
    ticks: Sequence[str],
    marks: Sequence[float | None] = (),
    percent: bool = False,
    labels: bool = False,
) -> Bars:
    """Lay out columns of stacked (kind, size). `marks` has a level per column; `labels` shows all ticks.

    >>> drawn = bars([[("new", 1.0), ("changed", 1.0)]], texts=["cycle 1"], ticks=["1"])
    >>> [(bar.kind, round(bar.height)) for bar in drawn.bars]
    [('new', 81), ('changed', 81)]
    """
    levels = [level for level in marks if level is not None]
    most = max([*(sum(size for _, size in column) for column in columns), *levels, 1e-9])
    frame, place = _framed(most, percent)
    step = (frame.right - frame.left) / max(1, len(columns))
    width = min(step * 0.78, 44.0)
    parts: list[Bar] = []
    for k, (column, text) in enumerate(zip(columns, texts, strict=True)):
        x, level = frame.left + step * (k + 0.5) - width / 2, 0.0
        for kind, size in column:
            y = place(level + size)
            parts.append(Bar(round(x, 2), round(y, 2), round(width, 2), round(place(level) - y, 2), kind, text))
            level += size
    lines = tuple(
        (
            frame.left + step * (k + 0.5) - width / 2 - 2,
            frame.left + step * (k + 0.5) + width / 2 + 2,
            place(level),
            texts[k],
        )
        for k, level in enumerate(marks)
        if level is not None
    )
    centres = tuple(Tick(frame.left + step * (k + 0.5), text) for k, text in enumerate(ticks))
    return Bars(_with_x(frame, centres if labels else _ends(frame, ticks)), tuple(parts), lines)


def heat(
    rows: Sequence[tuple[str, str, Sequence[tuple[str, str]]]],
    ticks: Sequence[str],
    *,
    left: float = 280.0,
    width: float = 1000.0,
    size: float = 18.0,
) -> Heat:
    """Lay out a heat map: each row is a label, its link, and (kind, text) per column; an empty kind draws no cell."""
    columns = max((len(row) for _, _, row in rows), default=0)
    step = min(44.0, (width - left) / max(1, columns))
    cells: list[Cell] = []
    labels = []
    for r, (label, link, row) in enumerate(rows):
        labels.append((r * size + size * 0.72, label, link))
        cells += [Cell(round(left + c * step, 2), r * size, kind, text) for c, (kind, text) in enumerate(row) if kind]
    right = left + columns * step
    marks = (Tick(left, ticks[0]), Tick(max(right, left + 180), ticks[-1])) if len(ticks) else ()
    return Heat(width, len(rows) * size + 24, round(step, 2), size, tuple(cells), tuple(labels), marks, left)


def tick_step(most: float) -> float:
    """Return a round step that gives about four ticks.

    >>> tick_step(1.0), tick_step(37), tick_step(0.08)
    (0.25, 10.0, 0.02)
    """
    rough = max(most, 1e-12) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * 0.999)


def _framed(most: float, percent: bool) -> tuple[Frame, _Scale]:
    step = tick_step(most)
    top = step * math.ceil(most / step - 1e-9)
    scale = _Scale(top)
    marks, level = [], 0.0
    while level <= top * 1.001:
        marks.append(Tick(scale(level), f"{level:.0%}" if percent else _short(level)))
        level += step
    return Frame(_LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM, tuple(marks), ()), scale


class _Scale:
    """Maps values to y coordinates."""

    def __init__(self, top: float) -> None:
        self._top = top

    def __call__(self, value: float) -> float:
        high = HEIGHT - _BOTTOM - _TOP
        return round(HEIGHT - _BOTTOM - high * min(1.0, max(0.0, value / self._top)), 2)


def _with_x(frame: Frame, marks: tuple[Tick, ...]) -> Frame:
    return Frame(frame.left, frame.right, frame.top, frame.bottom, frame.y, marks)


def _ends(frame: Frame, ticks: Sequence[str]) -> tuple[Tick, ...]:
    if not ticks:
        return ()
    if len(ticks) == 1:
        return (Tick((frame.left + frame.right) / 2, ticks[0]),)
    return (Tick(frame.left, ticks[0]), Tick(frame.right, ticks[-1]))


def _path(points: object) -> str:
    assert hasattr(points, "__iter__")
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
