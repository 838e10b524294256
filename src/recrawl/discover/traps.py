"""Endless URL spaces, and how the crawler avoids them (spec K3).

Some servers create a new URL for every link that a crawler follows: a calendar with an endless "next month", a relative
link that lengthens the path each time, a session id in the path, every combination of a shop's filters. Two kinds of
check stop that. One examines the URL alone: repeated segments, too many segments, implausible years. The other counts:
children of a directory, queries of a path, dates under a prefix, URLs that differ only in a random token. Beyond its
limit a place gets no new pages; known pages stay.

The counts are kept in a count-min sketch of constant size: two rows of counters, indexed by a hash of the place. It
never undercounts, and overcounts only by collisions in both rows.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime

_BITS = 20
_MASK = (1 << _BITS) - 1

_YEAR = re.compile(r"/\d{4}(?!\d)")  # a cheap test that most paths fail
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
    r"(?:^|&)(?:(?:[^=&]{0,60}(?:[_.-]|%5B))?(?:date|day|month|week|year|yr|ym)(?:%5D)?=(\d{4})(?:-?\d\d){0,2}(?=&|$)"
    r"|[^=&]{0,60}=(\d{4})-\d\d(?:-\d\d)?(?=[&T]|$))",
    re.IGNORECASE,
)
# A URL that is only a date: /archive/2024/05/, /day/2024-05-12.html.
_ONLY_DATE = re.compile(r"/(?:19|20)\d\d(?:[-/]\d\d?){1,2}(?:/(?:index\.html?)?|\.html?)?$")
# A segment that may be random, long or a UUID, and not the last one.
_TOKEN = re.compile(r"/[0-9A-Za-z]{8}(?:[0-9A-Za-z]{12,}|(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?=/.)")


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Limits beyond which a place counts as a trap."""

    repeats: int = 3
    """Occurrences of one path segment that count as a loop."""
    segments: int = 25
    """Maximum number of path segments."""
    first_year: int = 1990
    years_ahead: int = 1
    """Dates before `first_year`, or more years ahead than this, belong to a calendar."""
    dates: int = 4000
    """Maximum number of URLs under one prefix that are only a date."""
    tokens: int = 100
    """Maximum number of URLs that differ only in a random path segment."""
    children: int = 50_000
    """Maximum number of URLs in one directory."""
    queries: int = 5000
    """Maximum number of queries of one path."""


class TrapGuard:
    """Decides whether a new URL may become a page. Call `admits` once per new URL, `note` for known ones.

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
        """None if the canonical URL is accepted, which counts it; otherwise the reason."""
        path, _, query = url.partition("?")
        places = _places(url)
        reason = self._path(path.rstrip("/").split("/")[3:]) or self._year(path, query)
        for place in places:
            reason = reason or self._crowded(place)
        if reason is None:
            for place in places:
                self._add(place)
        return reason

    def note(self, url: str, times: int = 1) -> None:
        """Count the URL of a known page, so that the counts go on after a restart.

        For a sample of the pages, `times` is the inverse of its share.
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
        """Conservative update: raise only the cells below the new estimate, since larger ones contain collisions."""
        first, second = self._rows
        spot = hash(place)
        one, two = spot & _MASK, (spot >> _BITS) & _MASK
        count = min(first[one], second[two]) + times
        first[one] = max(first[one], count)
        second[two] = max(second[two], count)


def _places(url: str) -> list[str]:
    """The places where a URL is counted. The last character is the kind of the place."""
    mark = url.find("?")
    if mark >= 0:
        places = [url[: mark + 1]]
    else:
        slash = url.rfind("/", 0, len(url) - 1)  # a directory counts as a child of its parent
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
    """Only tokens are removed: they mix letters and digits, unlike long words and numbers."""
    text = segment[0]
    return text if text[1:].isalpha() or text[1:].isdigit() else "/"


def _repeats(segments: list[str], limit: int) -> bool:
    """Whether a segment occurs `limit` times, or a run of two or more repeats itself. Numbers may, as in dates."""
    words = [segment for segment in segments if segment and not segment.isdigit()]
    if any(words.count(word) >= limit for word in set(words)):
        return True
    for size in range(2, len(segments) // 2 + 1):
        for i in range(len(segments) - 2 * size + 1):
            run = segments[i : i + size]
            if run == segments[i + size : i + 2 * size] and not all(map(str.isdigit, run)):
                return True
    return False
