"""Small words for people."""

from __future__ import annotations


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "page"), count(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
