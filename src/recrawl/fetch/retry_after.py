"""The Retry-After header: seconds or a date (spec K2)."""

from __future__ import annotations

from recrawl.columns import DAY

MAX_RETRY_AFTER = DAY


def parse_retry_after(text: str, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, at most a day; None if it is invalid (spec K2).

    >>> parse_retry_after("120", 0.0), parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 0.0)
    (120.0, 60.0)
    >>> parse_retry_after("soon", 0.0)
    """
    text = text.strip()
    if not 0 < len(text) <= 64 or not text.isascii():
        return None
    if text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # lazy: loads ten modules

    try:
        date = parsedate_to_datetime(text)
        seconds = date.timestamp() - now if date.tzinfo else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)
