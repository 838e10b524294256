"""Times as people write them: durations (`6h`), moments (`2026-03-01`, `2d` for two days ago), and back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from recrawl.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_DAY = 86400.0
_SPOKEN_UNITS = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY
}  # fmt: skip
_AGO = re.compile(rf"(\d+|an?|last|past) ({'|'.join(_SPOKEN_UNITS)})s?(?: ago)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)


SKEW = 300.0
"""Clocks differ by up to this, in seconds."""


def elapsed(since: float, now: float, ahead: float = 0.0) -> float:
    """Seconds since a stored time; infinity if it lies in the future, for it was stored while the clock was wrong.

    `ahead` is how far in the future it may rightly lie. A few minutes count as none: clocks differ.

    >>> elapsed(100.0, 160.0), elapsed(170.0, 160.0), elapsed(9999.0, 160.0)
    (60.0, -10.0, inf)
    """
    return now - since if since <= now + ahead + SKEW else math.inf


def remaining(until: float, now: float, longest: float) -> float:
    """Seconds until a stored time; 0 if it is past, or farther away than the `longest` wait that is ever stored.

    >>> remaining(100.0, 40.0, 3600.0), remaining(100.0, 160.0, 3600.0), remaining(99_999.0, 40.0, 3600.0)
    (60.0, 0.0, 0.0)
    """
    left = until - now
    return left if 0.0 < left <= longest + SKEW else 0.0


def duration(text: str) -> float:
    """Seconds.

    >>> duration("90s"), duration("1h30m"), duration("2d")
    (90.0, 5400.0, 172800.0)
    """
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise UsageError(f"invalid duration '{text}'; use 30s, 10m, 6h, 2d or 1w")
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)


def moment(text: str, now: float) -> float:
    """A point in time: an ISO date or time (UTC unless it says otherwise), how long ago, or a word.

    >>> moment("1970-01-02", 0.0), moment("1h", 7200.0), moment("1970-01-01T00:00:10+00:00", 0.0)
    (86400.0, 3600.0, 10.0)
    >>> noon = 10.5 * 86400
    >>> [moment(text, noon) / 86400 for text in ("today", "yesterday", "last week", "2 days ago", "an hour ago")]
    [10.0, 9.0, 3.5, 8.5, 10.458333333333334]
    """
    words = " ".join(text.lower().split())
    midnight = now // _DAY * _DAY
    spoken = {"now": now, "today": midnight, "yesterday": midnight - _DAY}
    if words in spoken:
        return spoken[words]
    ago = _AGO.fullmatch(words)
    if ago:
        number = 1.0 if ago[1] in ("a", "an", "last", "past") else float(ago[1])
        return now - number * _SPOKEN_UNITS[ago[2]]
    if _DURATION.match(text.strip()) and not _DURATION.sub("", text).strip():
        return now - duration(text)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(
            f"invalid time '{text}'; use 2026-03-01, 2026-03-01T12:00, 2d (ago), today, yesterday or 'last week'"
        ) from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def stamp(at: float | None) -> str:
    """
    >>> stamp(0), stamp(None)
    ('1970-01-01 00:00:00Z', 'never')
    """
    if at is None or at == float("-inf"):
        return "never"
    return datetime.fromtimestamp(math.floor(at), UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def iso(at: float | None) -> str | None:
    """For machines."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def span(seconds: float) -> str:
    """
    >>> span(5), span(300), span(7200), span(3 * 86400)
    ('5 s', '5 min', '2 h', '3 d')
    """
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (129600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


class QuietHours(NamedTuple):
    """A part of each day, in minutes since midnight; it may go over midnight. Empty when both ends are equal."""

    begin: int = 0
    end: int = 0
    zone: str = "UTC"

    def covers(self, minute: int) -> bool:
        """Whether a minute of the day lies in it."""
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_QUIET = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)(?:\s+(\S+))?")


def quiet_hours(text: str) -> QuietHours:
    """Quiet hours as people write them; UTC unless a time zone follows.

    >>> quiet_hours("22:00-06:30 Europe/Berlin"), quiet_hours("")
    (QuietHours(begin=1320, end=390, zone='Europe/Berlin'), QuietHours(begin=0, end=0, zone='UTC'))
    """
    if not text.strip():
        return QuietHours()
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # lazy: few settings name a time zone

    match = _QUIET.fullmatch(text.strip())
    if not match:
        raise UsageError(f"invalid quiet hours '{text}'; use 22:00-06:00, or 22:00-06:00 Europe/Berlin")
    zone = match[5] or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(f"unknown time zone '{zone}' in the quiet hours; use a name such as Europe/Berlin") from error
    begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begin == end:
        raise UsageError(f"quiet hours '{text}' begin and end at the same time; leave them empty for none")
    return QuietHours(begin, end, zone)


def weekday_numbers(names: Sequence[str]) -> frozenset[int]:
    """The days of the week of these names, 0 for Monday; all days for none.

    >>> sorted(weekday_numbers(["sat", "Sunday"])), len(weekday_numbers([]))
    ([5, 6], 7)
    """
    short = [name.strip().lower()[:3] for name in names]
    for given, name in zip(names, short, strict=True):
        if name not in WEEKDAYS:
            raise UsageError(f"invalid weekday '{given}'; use {', '.join(WEEKDAYS)}")
    return frozenset(map(WEEKDAYS.index, short)) if short else frozenset(range(7))


def next_allowed(at: float, quiet: str, weekdays: Sequence[str]) -> float:
    """The first time from `at` on that lies on one of the weekdays and outside the quiet hours.

    >>> stamp(next_allowed(moment("2026-03-06T23:00", 0), "22:00-06:00", ["mon", "tue"]))
    '2026-03-09 06:00:00Z'
    """
    from zoneinfo import ZoneInfo  # lazy: few settings name a time zone

    hours, days = quiet_hours(quiet), weekday_numbers(weekdays)
    zone = ZoneInfo(hours.zone)
    for _ in range(16):  # a week of days, each with its quiet hours
        local = datetime.fromtimestamp(at, zone)
        minute = local.hour * 60 + local.minute
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        if local.weekday() not in days:
            at = (midnight + timedelta(days=1)).timestamp()
        elif hours.covers(minute):
            later = timedelta(days=int(minute >= hours.end), minutes=hours.end)
            at = (midnight + later).timestamp()
        else:
            break
    return at
