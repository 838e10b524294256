"""The Jinja environment: templates with autoescaping, and their filters."""

from __future__ import annotations

from collections.abc import Callable

import jinja2

from recrawl.columns import DAY
from recrawl.repository.reports.pages import side_by_side, stretches
from recrawl.repository.results import words
from recrawl.repository.results.addresses import readable_url
from recrawl.repository.results.values import SearchHit
from recrawl.times import iso, span, stamp

_HEAT = (0.02, 0.1, 0.25, 0.5)
"""Shares of changed visits at which the colour becomes one step darker."""


def environment(now: Callable[[], float]) -> jinja2.Environment:
    """Return the environment; relative times are computed from `now`."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("recrawl.serve.dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        {
            "ago": lambda at: ago(at, now()),
            "bytes": words.size,
            "heat": heat,
            "clock": lambda at: stamp(at)[11:19],
            "iso": iso,
            "short": "{:g}".format,
            "minute": lambda at: stamp(at)[:16],
            "number": number,
            "percent": percent,
            "readable": readable_url,
            "quoted": quoted,
            "rate": rate,
            "side_by_side": side_by_side,
            "span": lambda seconds: "-" if seconds is None else span(seconds),
            "stamp": stamp,
            "stretches": stretches,
        }
    )
    return made


def ago(at: float, now: float) -> str:
    """Format a time relative to now.

    >>> ago(100.0, 160.0), ago(100.0, 100.0), ago(100.0, 40.0)
    ('60 s ago', 'just now', 'in 60 s')
    """
    passed = now - at
    if abs(passed) < 1:
        return "just now"
    return f"{span(passed)} ago" if passed > 0 else f"in {span(-passed)}"


def number(value: float | None) -> str:
    """Format a number; "-" for None.

    >>> number(12345), number(2.34), number(None)
    ('12,345', '2.3', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.1f}"


def percent(share: float | None) -> str:
    """Format a share as a percentage that does not break at the end of a line.

    >>> percent(0.123), percent(None)
    ('12\xa0%', '-')
    """
    return words.percent(share).replace(" ", "\xa0")


def rate(per_day: float | None) -> str:
    """Format a change rate.

    >>> rate(3.0), rate(0.1), rate(0.0), rate(None)
    ('3.0 per day', 'every 10 d', 'no change yet', '-')
    """
    if per_day is None:
        return "-"
    if per_day <= 0:
        return "no change yet"
    return f"{per_day:.1f} per day" if per_day >= 1 else f"every {span(DAY / per_day)}"


def heat(share: float | None) -> str:
    """Return the CSS class for a share of changed visits.

    >>> heat(None), heat(0.0), heat(0.01), heat(0.3), heat(1.0)
    ('h0', 'h0', 'h1', 'h4', 'h5')
    """
    if not share:
        return "h0"
    return f"h{1 + sum(share >= limit for limit in _HEAT)}"


def quoted(hit: SearchHit) -> list[tuple[bool, str]]:
    """Split a snippet into (matches the query, text) pieces."""
    pieces, at = [], 0
    for start, end in hit.marks:
        pieces += [(False, hit.snippet[at:start]), (True, hit.snippet[start:end])]
        at = end
    pieces.append((False, hit.snippet[at:]))
    return [piece for piece in pieces if piece[1]]
