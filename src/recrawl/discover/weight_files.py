"""Files of page weights: one URL and number per line, or a click log of URLs.

    https://example.org/news,5          a weight or a count, after a comma or a tab
    https://example.org/about           in a click log: one click

An invalid first line counts as a heading. Files are read line by line; invalid lines are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from recrawl.columns import Floats, Ints
from recrawl.discover.urls import UrlRules, canonical, keys
from recrawl.errors import UsageError

_MAX_LINE = 10_000
"""Characters; longer lines are invalid."""
_BATCH = 50_000

Rows = tuple[Ints, Floats, int]
"""Keys of URLs, the number of each, and the number of invalid lines."""


def read_weights(path: Path, rules: UrlRules, *, clicks: bool) -> Rows:
    """Read a file of weights; with `clicks`, a line without a number is one click."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            # Bounded, so that a file without line ends is not read as one line.
            return _read(iter(lambda: file.readline(_MAX_LINE + 1), ""), rules, clicks)
    except OSError as error:
        raise UsageError(f"cannot read the weight file {path}: {error.strerror or error}") from error


def _read(lines: Iterable[str], rules: UrlRules, clicks: bool) -> Rows:
    found: list[Ints] = [np.zeros(0, np.int64)]
    numbers: list[float] = []
    urls: list[str] = []
    invalid = 0
    for row, line in enumerate(lines):
        entry = parse_line(line, rules, clicks=clicks)
        if entry is None:
            invalid += bool(line.strip()) and row > 0
            continue
        urls.append(entry[0])
        numbers.append(entry[1])
        if len(urls) >= _BATCH:
            found.append(keys(urls))
            urls = []
    found.append(keys(urls))
    return np.concatenate(found), np.array(numbers, np.float64), invalid


def parse_line(line: str, rules: UrlRules, *, clicks: bool) -> tuple[str, float] | None:
    """URL and number of a line, None if it is invalid.

    >>> parse_line("https://a.example/x,y,2.5", UrlRules(), clicks=False)
    ('https://a.example/x,y', 2.5)
    >>> parse_line("https://a.example/x,y", UrlRules(), clicks=True)
    ('https://a.example/x,y', 1.0)
    >>> parse_line("url,weight", UrlRules(), clicks=False)
    """
    text = line.strip()
    if not text or len(text) > _MAX_LINE:
        return None
    left, mark, right = text.rpartition("\t" if "\t" in text else ",")
    number = _number(right) if mark else None
    link, value = (left, number) if number is not None else (text, 1.0 if clicks else None)
    url = canonical(link.strip().strip('"'), rules=rules) if value is not None else None
    return None if url is None or value is None else (url, value)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().strip('"'))
    except ValueError:
        return None
