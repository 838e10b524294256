"""Which of several recorded things to keep: the rules of backup tools, as people know them from restic and borg.

`last=3, daily=7, monthly=12` keeps the last three, the newest of each of the last seven days that have one, and the
newest of each of the last twelve months that have one. What any part keeps is kept. Days and months are those of UTC.
Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from recrawl.errors import UsageError

ALL = "all"
_PART = re.compile(r"\s*([a-z]+)\s*=\s*(\d{1,6})\s*")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class KeepRule:
    """How many to keep; all if nothing is said."""

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0

    @property
    def everything(self) -> bool:
        """Whether it keeps all."""
        return self == _EVERYTHING


_EVERYTHING = KeepRule()
_PERIODS: dict[str, Callable[[datetime], object]] = {
    "hourly": lambda at: (at.year, at.month, at.day, at.hour),
    "daily": lambda at: (at.year, at.month, at.day),
    "weekly": lambda at: at.isocalendar()[:2],
    "monthly": lambda at: (at.year, at.month),
    "yearly": lambda at: at.year,
}


def keep_rule(text: str) -> KeepRule:
    """Read a rule; `UsageError` says what is wrong with it.

    >>> keep_rule("last=3, daily=7")
    KeepRule(last=3, hourly=0, daily=7, weekly=0, monthly=0, yearly=0)
    >>> keep_rule("all").everything
    True
    """
    if text.strip() in ("", ALL):
        return _EVERYTHING
    found: dict[str, int] = {}
    known = [item.name for item in fields(KeepRule)]
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or match[1] not in known or match[1] in found or not 0 < int(match[2]) <= _MOST:
            raise UsageError(
                f"invalid rule '{text}' of what to keep; use all, or numbers from 1 on as in last=3, daily=7, "
                f"monthly=12 ({', '.join(known)})"
            )
        found[match[1]] = int(match[2])
    return KeepRule(**found)


def kept(times: Sequence[float], rule: KeepRule) -> list[bool]:
    """Which of these, oldest first, the rule keeps.

    >>> day = 86400.0
    >>> kept([0.0, 0.1 * day, 1.0 * day, 1.5 * day, 9.0 * day], KeepRule(last=1, daily=2))
    [False, False, False, True, True]
    """
    if rule.everything:
        return [True] * len(times)
    keep = [place >= len(times) - rule.last for place in range(len(times))]
    moments = [datetime.fromtimestamp(at, UTC) for at in times]
    for name, period_of in _PERIODS.items():
        left, before = getattr(rule, name), None
        for place in reversed(range(len(times))):
            if not left:
                break
            period = period_of(moments[place])
            if period != before:
                keep[place], before, left = True, period, left - 1
    return keep
