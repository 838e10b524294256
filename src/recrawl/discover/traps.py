"""Address spaces without end, and how to keep out of them (spec K3).

Some servers make a new address for every link one follows: a calendar with a "next month" for ever, a
relative link that makes the path longer each time, a session id in the path, a shop's filters in every
combination. Two kinds of check stop that. One looks at an address alone: segments that repeat, too many of
them, years that no page is about. The other counts: children of a directory, queries of a path, dates under a
prefix, addresses that differ by a random token only. Past its limit a place gets no new pages; the pages that
are known stay.

Counting takes the same memory for ten pages and for a hundred million: a count-min sketch, two rows of
counters addressed by a hash of the place. It never counts too little, and too much only by what else fell on
both cells.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime

_BITS = 20
_MASK = (1 << _BITS) - 1

_YEAR = re.compile(r"/\d{4}(?!\d)")  # most paths have none, and are spared the rest
# /2031/05/12 and /2031-05-12, where a path segment starts.
_DATE = re.compile(r"/(\d{4})([-/])(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12]\d|3[01])(?=[/?.-]|$)")
# A year or a month alone is a date only where the path says so: /calendar/2031, /month/2031-5.
_NAMED_DATE = re.compile(
    r"(?:calendar|calendrier|calendario|kalender|agenda|month|week|day|date)[^/?]{0,20}/"
    r"(?:[^/?]{1,40}/)?(\d{4})(?:[-/]\d{1,2}){0,2}(?=[/?]|$)",
    re.IGNORECASE,
)
# year=2031, date=20310512, event[month]=2031-05; and any parameter that is 2031-05 or 2031-05-12.
_QUERY_DATE = re.compile(
    r"(?:^|&)(?:(?:[^=&]{0,60}[_.\[-])?(?:date|day|month|week|year|yr|ym)\]?=(\d{4})(?:-?\d\d){0,2}(?=&|$)"
    r"|[^=&]{0,60}=(\d{4})-\d\d(?:-\d\d)?(?=[&T]|$))",
    re.IGNORECASE,
)
# An address that is a date and nothing more: /archive/2024/05/, /day/2024-05-12.html.
_ONLY_DATE = re.compile(r"/(?:19|20)\d\d(?:[-/]\d\d?){1,2}(?:/(?:index\.html?)?|\.html?)?$")
# A segment that may be drawn by lot, with something behind it: long, or a UUID.
_TOKEN = re.compile(r"/[0-9A-Za-z]{8}(?:[0-9A-Za-z]{12,}|(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?=/.)")


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Where a place stops looking like a site and starts looking like a trap."""

    repeats: int = 3
    """A path segment that occurs this often is a loop."""
    segments: int = 25
    """The most segments of a path."""
    first_year: int = 1990
    years_ahead: int = 1
    """Dates before the first year, or more years ahead than this, are a calendar's."""
    dates: int = 4000
    """The most addresses under one prefix that are a date and nothing more."""
    tokens: int = 100
    """The most addresses that differ by a random path segment only."""
    children: int = 50_000
    """The most addresses in one directory."""
    queries: int = 5000
    """The most queries of one path."""


class TrapGuard:
    """Says whether a new address may become a page. Ask once for each; note those that were known before.

    >>> guard = TrapGuard(TrapLimits(queries=2), now=1_700_000_000)
    >>> [guard.admits(f"https://a.example/shop?sort={i}") for i in range(3)]
    [None, None, 'query-growth']
    >>> guard.admits("https://a.example/x/y/x/y/x/y")
    'repeating-path'
    """

    def __init__(self, limits: TrapLimits, now: float) -> None:
        self._limits = limits
        self._last_year = datetime.fromtimestamp(now, UTC).year + limits.years_ahead
        self._rows = array("I", bytes(4 << _BITS)), array("I", bytes(4 << _BITS))

    def admits(self, url: str) -> str | None:
        """None when the canonical address is fine, and then it is counted; else a word for what is wrong."""
        path, _, query = url.partition("?")
        places = _places(url)
        reason = (
            self._path(path.rstrip("/").split("/")[3:])
            or self._year(path, query)
            or next(filter(None, map(self._crowded, places)), None)
        )
        if reason is None:
            for place in places:
                self._add(place)
        return reason

    def note(self, url: str, times: int = 1) -> None:
        """Count an address that is a page already, so that a restart goes on where it stopped.

        Of very many pages a sample is enough, each counted as often as the sample is smaller than the whole.
        """
        for place in _places(url):
            self._add(place, times)

    def _path(self, segments: list[str]) -> str | None:
        if len(segments) > self._limits.segments:
            return "path-too-deep"
        if len(set(segments)) < len(segments) and _repeats(segments, self._limits.repeats):
            return "repeating-path"
        return None

    def _year(self, path: str, query: str) -> str | None:
        found = (_DATE.search(path) or _NAMED_DATE.search(path)) if _YEAR.search(path) else None
        if found is None and query:
            found = _QUERY_DATE.search(query)
        if found is None:
            return None
        year = int(found[1] or found[2])
        return None if self._limits.first_year <= year <= self._last_year else "calendar"

    def _crowded(self, place: str) -> str | None:
        limits = self._limits
        kind = place[-1]
        if kind == "/":
            limit, reason = limits.children, "directory-growth"
        elif kind == "?":
            limit, reason = limits.queries, "query-growth"
        elif kind == "#":
            limit, reason = limits.dates, "calendar"
        else:
            limit, reason = limits.tokens, "session-id"
        return reason if self._count(place) >= limit else None

    def _count(self, place: str) -> int:
        spot = hash(place)
        return min(self._rows[0][spot & _MASK], self._rows[1][(spot >> _BITS) & _MASK])

    def _add(self, place: str, times: int = 1) -> None:
        """A cell grows only as far as the smaller one says: the larger one already counts something else as well."""
        first, second = self._rows
        spot = hash(place)
        one, two = spot & _MASK, (spot >> _BITS) & _MASK
        count = min(first[one], second[two]) + times
        first[one] = max(first[one], count)
        second[two] = max(second[two], count)


def _places(url: str) -> list[str]:
    """Where an address is counted. The last character says what kind of place it is."""
    mark = url.find("?")
    if mark >= 0:
        places = [url[: mark + 1]]
    else:
        slash = url.rfind("/", 0, len(url) - 1)  # a directory is its parent's child, not its own
        places = [url[: slash + 1]] if slash > 7 else []
        if "/20" in url or "/19" in url:
            date = _ONLY_DATE.search(url)
            if date:
                places.append(url[: date.start()] + "#")
    if _TOKEN.search(url, 8):
        masked = _TOKEN.sub(_without_token, url)
        if masked != url:
            places.append(masked + "*")
    return places


def _without_token(segment: re.Match[str]) -> str:
    """Long words and long numbers are names of something; a token has letters and digits."""
    text = segment[0]
    return text if text[1:].isalpha() or text[1:].isdigit() else "/"


def _repeats(segments: list[str], most: int) -> bool:
    """Whether a segment occurs too often, or a run of two or more follows itself. Numbers may: dates do."""
    words = [segment for segment in segments if segment and not segment.isdigit()]
    if any(words.count(word) >= most for word in set(words)):
        return True
    for size in range(2, len(segments) // 2 + 1):
        for i in range(len(segments) - 2 * size + 1):
            run = segments[i : i + size]
            if run == segments[i + size : i + 2 * size] and not all(map(str.isdigit, run)):
                return True
    return False
