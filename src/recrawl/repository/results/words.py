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


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "page"), count(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
