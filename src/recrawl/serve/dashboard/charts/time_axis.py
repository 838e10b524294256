"""Time ranges of charts, chosen by links or by zoom, and the labels of time axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request

from recrawl.columns import DAY
from recrawl.times import stamp

_RANGES = (("day", "Last day", DAY), ("week", "Week", 7 * DAY), ("month", "Month", 30 * DAY), ("all", "All", None))
_DEFAULT = "month"
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
