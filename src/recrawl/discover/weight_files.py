"""Files that say how much pages matter: an address and a number a line, or addresses that were clicked.

    https://example.org/news,5          a weight or a count, after a comma or a tab
    https://example.org/about           in a click log: one click

A first line that is no such thing is a heading. Files are read line by line; what cannot be understood is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recrawl.discover.urls import UrlRules, canonical, keys
from recrawl.errors import UsageError

_LONGEST = 10_000
"""Characters of a line; a longer one is no address."""
_AT_ONCE = 50_000

Rows = tuple[NDArray[np.int64], NDArray[np.float64], int]


def read_weights(path: Path, rules: UrlRules, *, clicks: bool) -> Rows:
    """Keys of addresses, what is said of each, and how many lines say nothing; with `clicks` a line may be a click."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            # Bounded, so that a file without line ends is not read as one line.
            return _read(iter(lambda: file.readline(_LONGEST + 1), ""), rules, clicks)
    except OSError as error:
        raise UsageError(f"the file of weights {path} cannot be read: {error.strerror or error}") from error


def _read(lines: Iterable[str], rules: UrlRules, clicks: bool) -> Rows:
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    numbers: list[float] = []
    urls: list[str] = []
    lost = 0
    for place, line in enumerate(lines):
        told = parsed(line, rules, clicks=clicks)
        if told is None:
            lost += bool(line.strip()) and place > 0
            continue
        urls.append(told[0])
        numbers.append(told[1])
        if len(urls) >= _AT_ONCE:
            found.append(keys(urls))
            urls = []
    found.append(keys(urls))
    return np.concatenate(found), np.array(numbers, np.float64), lost


def parsed(line: str, rules: UrlRules, *, clicks: bool) -> tuple[str, float] | None:
    """Address and number of a line, None for what is none.

    >>> parsed("https://a.example/x,y,2.5", UrlRules(), clicks=False)
    ('https://a.example/x,y', 2.5)
    >>> parsed("https://a.example/x,y", UrlRules(), clicks=True)
    ('https://a.example/x,y', 1.0)
    >>> parsed("url,weight", UrlRules(), clicks=False)
    """
    text = line.strip()
    if not text or len(text) > _LONGEST:
        return None
    left, mark, right = text.rpartition("\t" if "\t" in text else ",")
    number = _number(right) if mark else None
    address, value = (left, number) if number is not None else (text, 1.0 if clicks else None)
    url = canonical(address.strip().strip('"'), rules=rules) if value is not None else None
    return None if url is None or value is None else (url, value)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().strip('"'))
    except ValueError:
        return None
