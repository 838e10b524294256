"""Dates in sitemaps, feeds and HTTP headers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

_W3C = re.compile(
    r"(?ia)(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T\s]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d\d):?(\d\d)?)?)?)?)?"
)

_NO_DATE = re.compile(r"\b0{2,3}\d{1,2}\b(?=\s+\d+:)")
"""The year 0001, which site generators write for pages without a date; the parser would make it 2001."""


def parse_date(text: str) -> float | None:
    """Seconds since 1970 UTC of a W3C date of any precision or an RFC 822 date; None if invalid.

    Without a time zone, UTC is assumed.

    >>> parse_date("1970-01-01T01:00+01:00"), parse_date("1971"), parse_date("yesterday")
    (0.0, 31536000.0, None)
    >>> parse_date("Thu, 01 Jan 1970 00:01:00 GMT"), parse_date("Mon, 01 Jan 0001 00:00:00 +0000")
    (60.0, None)
    """
    text = text.strip()
    return _timestamp(text) if 4 <= len(text) <= 64 else None


@lru_cache(maxsize=4096)
def _timestamp(text: str) -> float | None:
    found = _W3C.fullmatch(text)
    try:
        if found:
            year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
            # Second 60 is a leap second.
            hour, minute, second = int(found[4] or 0), int(found[5] or 0), min(int(found[6] or 0), 59)
            offset = timedelta(hours=int(found[8] or 0), minutes=int(found[9] or 0))
            if offset > timedelta(hours=14):  # no time zone is further from UTC
                return None
            zone = timezone(-offset if found[7] == "-" else offset)
            parsed = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        elif _NO_DATE.search(text):
            return None
        else:
            from email.utils import parsedate_to_datetime  # lazy: few pages have such a date

            parsed = parsedate_to_datetime(text)
        timestamp = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return timestamp if 0.0 <= timestamp < 4_102_444_800.0 else None  # up to the year 2100
