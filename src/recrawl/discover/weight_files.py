"""Files of page weights: one URL and number per line, a click log of URLs, or the access log of a server or proxy.

    https://example.org/news,5          a weight or a count, after a comma or a tab
    https://example.org/about           in a click log: one click
    1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET /about HTTP/1.1" 200 2326 "-" "Mozilla/5.0 ..."

The last is the common or combined log format, with the name of the host before it (Apache's vhost_combined), with whole
URLs (a proxy's log), or with paths, which need the site: `clicks:PATH,https://example.org`. A request counts as a click
if it is a GET that was answered with 2xx or 304 and is not from a robot. An invalid first line counts as a heading.
Files are read line by line; invalid lines are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from recrawl.columns import Floats, Ints
from recrawl.discover.urls import UrlRules, canonical, keys
from recrawl.errors import UsageError

_MAX_LINE = 10_000
"""Characters; longer lines are invalid."""
_BATCH = 50_000
_ACCESS = re.compile(
    r'(?:(?P<host>\S+) )?\S+ \S+ \S+ \[[^\]]*\] "(?P<method>[A-Z]+) (?P<target>\S+)(?: HTTP/[\d.]+)?" (?P<status>\d{3})'
    r' (?:\d+|-)(?: "[^"]*" "(?P<agent>[^"]*)")?'
)
_ROBOT = re.compile(r"bot\b|crawl|spider|slurp|curl|wget|python", re.IGNORECASE)

Rows = tuple[Ints, Floats, int]
"""Keys of URLs, the number of each, and the number of invalid lines."""


def split_base(text: str) -> tuple[str, str]:
    """Split the path of a file from the site that paths in an access log belong to; the site is empty if not given.

    >>> split_base("access.log,https://example.org"), split_base("clicks.csv")
    (('access.log', 'https://example.org'), ('clicks.csv', ''))
    """
    path, comma, base = text.rpartition(",")
    return (path.strip(), base.strip()) if comma and base.strip().startswith(("http://", "https://")) else (text, "")


def read_weights(path: Path, rules: UrlRules, *, clicks: bool, base: str = "") -> Rows:
    """Read a file of weights; with `clicks`, a line without a number, or of an access log, is one click."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            # Bounded, so that a file without line ends is not read as one line.
            return _read(iter(lambda: file.readline(_MAX_LINE + 1), ""), rules, clicks, base)
    except OSError as error:
        raise UsageError(f"cannot read the weight file {path}: {error.strerror or error}") from error


def _read(lines: Iterable[str], rules: UrlRules, clicks: bool, base: str) -> Rows:
    found: list[Ints] = [np.zeros(0, np.int64)]
    numbers: list[float] = []
    urls: list[str] = []
    invalid = 0
    for row, line in enumerate(lines):
        access = _ACCESS.match(line) if clicks and len(line) <= _MAX_LINE else None
        entry = _click(access, rules, base) if access else parse_line(line, rules, clicks=clicks)
        if access and not _by_a_user(access):
            continue
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


def _by_a_user(access: re.Match[str]) -> bool:
    """Whether a request got a page and is not from a robot."""
    answered = access["status"].startswith("2") or access["status"] == "304"
    return access["method"] == "GET" and answered and not _ROBOT.search(access["agent"] or "")


def _click(access: re.Match[str], rules: UrlRules, base: str) -> tuple[str, float] | None:
    """URL of a request in an access log, and one click; None if its site is not known."""
    target, host = access["target"], access["host"]
    if target.startswith("/"):
        site = f"http{'s' if host.endswith(':443') else ''}://{host}" if host else base.rstrip("/")
        target = site + target if site else ""
    url = canonical(target, rules=rules)
    return None if url is None else (url, 1.0)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().strip('"'))
    except ValueError:
        return None
