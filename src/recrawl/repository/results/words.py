"""Small words for people."""

from __future__ import annotations

PROGRESS = "progress: "
"""What begins a line of a command that tells how far it is, for a program that has asked for such lines."""


def shared_text(site: str, title: str, pages: int, recent: int, since: str) -> str:
    """
    >>> shared_text("https://a.example", "For sale", 18, 20, "2026-01-02 03:04")[:78]
    "https://a.example: 18 of the 20 pages visited last show the same text ('For sa"
    """
    named = f" ('{title}')" if title else ""
    return (
        f"{site}: {pages} of the {recent} pages visited last show the same text{named}, since {since}; "
        "their stored versions are kept until they differ again"
    )


def percent(share: float | None) -> str:
    """A share as a percentage, with a decimal where the whole number would say 0 or 100 of what is neither.

    >>> percent(0.123), percent(0.001), percent(0.9996), percent(1.0), percent(None)
    ('12 %', '0.1 %', '> 99.9 %', '100 %', '-')
    """
    if share is None:
        return "-"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{share * 100:.0f} %" if share in (0, 1) or 0.095 <= share < 0.995 else f"{share * 100:.1f} %"


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "page"), count(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def held_text(site: str, right: int, visits: int) -> str:
    """That a site is held to its share of the budget, why, and how to allow it more."""
    return (
        f"{site} is held to its share ({visits:,} visits a cycle, {right:,} by right), since other sites have a use "
        "for theirs; a [[share]] with at_least, or site_share, allows more"
    )


def size(value: float | None) -> str:
    """Format a number of bytes.

    >>> size(512), size(20_480), size(3_500_000_000), size(None)
    ('512 B', '20 kB', '3.5 GB', '-')
    """
    if value is None:
        return "-"
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= limit:
            return f"{value / limit:.2g} {unit}" if value / limit < 10 else f"{value / limit:,.0f} {unit}"
    return f"{value:.0f} B"
