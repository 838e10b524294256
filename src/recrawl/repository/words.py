"""Small words for people."""

from __future__ import annotations

PROGRESS = "progress: "
"""What begins a line of a command that tells how far it is, for a program that has asked for such lines."""


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "page"), count(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
