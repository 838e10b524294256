"""How often a page is likely to change, by its first download: its URL, and the years and numbers in its text.

A page that was downloaded once has no history. Its place in the site tells something: front and listing pages change
often, pages in deep or dated directories rarely, and a page that names the current year is maintained. `change_prior`
returns the logarithm of the expected rate of content changes relative to that of an average page: 0 is neutral. It is a
weighted sum of about fifty features; the weights (`change_prior.json`) were fitted on many sites and are the same for
all. `python -m benchmarks.prior ARCHIVE...` fits them again and measures them on sites that were held out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from math import log1p
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recrawl.columns import Floats

FURTHEST = 3.0
"""Features are limited to this many standard deviations from their mean."""
LARGEST = 3.0
"""The prior is limited to this, a factor of 20 either way."""
_MAX_TEXT = 50_000
"""Characters of the text that are read; the rest of a longer page tells little more."""
_YEARS = frozenset(str(year).encode() for year in range(1980, 2050))
_TOPICS = {
    "news": "news headline headlines latest recent press",
    "posts": "blog post posts article articles journal weblog entry entries",
    "events": "event events calendar schedule agenda meeting meetings meetup upcoming program programme conference "
    "workshop workshops talk talks",
    "changes": "changelog changes release releases history log update updates roadmap status todo now version versions",
    "lists": "index list archive archives all sitemap content contents toc overview directory catalog catalogue links "
    "resources",
    "tags": "tag tags category categories topic topics author authors label labels keyword keywords search",
    "people": "people team member members staff about contact committers contributor contributors community sponsors "
    "partners job jobs",
    "work": "publication publications paper papers research project projects software slides course courses teaching "
    "class lecture lectures syllabus",
    "manual": "doc docs documentation manual guide tutorial tutorials reference faq howto help spec specs standard api",
    "downloads": "download downloads mirror mirrors install get packages ports security errata bugs issues advisory "
    "advisories cve",
    "legal": "legal license privacy terms copyright impressum imprint thanks policy policies",
    "former": "old archived legacy deprecated attic obsolete draft test demo example examples sample templates",
}
_TOPIC_OF = {word: topic for topic, words in _TOPICS.items() for word in words.split()}
_WORD = re.compile(r"[a-z]+")
_EXTENSION = re.compile(r"\.(?:x?html?|php|aspx?|jsp)$")
_DATE = re.compile(r"(?:^|/)((?:19|20)\d\d)(?:[/_-](\d\d?))?(?:[/_-]\d\d?)?(?=[/_.-]|$)")
_PAGED = re.compile(r"page[/-]?\d|/p/?\d")
_INDEX = frozenset(("", "index", "home", "default"))

FEATURES = (
    *("depth", "index", "root", "folder_index", "top", "query", "length", "hyphens", "digits", "name_digits"),
    *("numbered", "paged", "dated", "dated_by_month", "date_age", "date_recent"),
    *(f"name_{topic}" for topic in _TOPICS),
    *(f"folder_{topic}" for topic in _TOPICS),
    *("characters", "numbers", "number_share", "years", "different_years", "newest_year", "this_year", "next_year"),
    "last_year",
)
"""The features, in the order of the weights."""


class PriorWeights(NamedTuple):
    """The fitted weights, one per feature."""

    mean: Floats
    spread: Floats
    weight: Floats
    constant: float


def change_prior(url: str, text: str, at: float) -> float:
    """Return the prior of a page with this text, downloaded at a time in seconds since 1970.

    >>> front = change_prior("https://a.example/", "News of 2024: 12 new pages", 1.72e9)
    >>> front > change_prior("https://a.example/docs/v1/2009/page-17.html", "Chapter 17", 1.72e9)
    True
    """
    return change_priors([(url, text, at)])[0]


def change_priors(pages: Sequence[tuple[str, str, float]]) -> list[float]:
    """Return the priors of pages: URL, text and time of each. Many at once cost a third of one by one."""
    if not pages:
        return []
    mean, spread, weight, constant = _weights()
    scaled = (np.array(_features(pages), np.float64) - mean) / spread
    terms = np.full((len(pages), 1 + len(FEATURES)), constant)
    np.multiply(weight, np.minimum(np.maximum(scaled, -FURTHEST), FURTHEST), out=terms[:, 1:])
    # One after the other: the rounding of other sums depends on the versions of Python and numpy.
    sums = np.add.accumulate(terms, axis=1)[:, -1]
    priors: list[float] = np.minimum(np.maximum(sums, -LARGEST), LARGEST).tolist()
    return priors


def features(url: str, text: str, at: float) -> list[float]:
    """Return the values of `FEATURES`."""
    return _features([(url, text, at)])[0]


def _features(pages: Sequence[tuple[str, str, float]]) -> list[list[float]]:
    years = [datetime.fromtimestamp(min(max(at, 0.0), 4e9), UTC).year for _, _, at in pages]
    of_texts = _of_texts([text[:_MAX_TEXT] for _, text, _ in pages], years)
    of_urls = [_of_url(url, at, year) for (url, _, at), year in zip(pages, years, strict=True)]
    return [of_url + of_text for of_url, of_text in zip(of_urls, of_texts, strict=True)]


def _of_url(url: str, at: float, year: int) -> list[float]:
    path, _, query = url.lower().partition("://")[2].partition("/")[2].partition("?")
    *folders, last = path.split("/")
    name, depth = _EXTENSION.sub("", last), len(folders)
    index = name in _INDEX
    dated = _DATE.search(path)
    age = -1.0
    if dated:
        passed = year - int(dated[1]) + (at / 86400 / 365.25 % 1) - (int(dated[2] or 6) - 0.5) / 12
        age = min(max(passed, -1.0), 15.0)
    return [
        *(depth, index, index and depth == 0, index and depth == 1, depth == 0, bool(query)),
        *(log1p(len(name)), log1p(name.count("-") + name.count("_")), _digits(path), _digits(name)),
        *(name.isdigit(), bool(_PAGED.search(path)), dated is not None, dated is not None and dated[2] is not None),
        *(age, dated is not None and age < 0.6),
        *_topics(name),
        *_topics("/".join(folders)),
    ]


def _of_texts(texts: Sequence[str], years: Sequence[int]) -> Iterator[list[float]]:
    """The features of texts, found in all of them at once; between two texts there are spaces."""
    coded = [b" %b " % text.encode("utf-8", "replace") for text in texts]
    joined = b"".join(coded)
    codes = np.frombuffer(joined, np.uint8)
    digit, space = codes - ord("0") < 10, codes == ord(" ")  # other codes wrap around
    edges = (digit[1:] != digit[:-1]).nonzero()[0]
    first, last = edges[::2], edges[1::2]
    four = first[last - first == 4]
    ends = np.cumsum([len(code) for code in coded])
    numbers, fours = np.searchsorted(first, ends).tolist(), np.searchsorted(four, ends).tolist()
    places, start, before, written = four.tolist(), 0, 0, 0
    for text, year, end, number, many in zip(texts, years, ends.tolist(), numbers, fours, strict=True):
        named = [joined[place + 1 : place + 5] for place in places[written:many]]
        spaces = int(np.count_nonzero(space[start:end])) - 2
        yield _of_numbers(len(text), number - before, spaces, [name for name in named if name in _YEARS], year)
        start, before, written = end, number, many


def _of_numbers(length: int, numbers: int, spaces: int, years: list[bytes], year: int) -> list[float]:
    different = set(years)
    newest = max((int(one) for one in different if int(one) <= year + 1), default=year - 30)
    return [
        *(log1p(length), log1p(numbers), numbers / (spaces + 1)),
        *(log1p(len(years)), len(different), min(year - newest, 30)),
        *(log1p(years.count(b"%d" % one)) for one in (year, year + 1, year - 1)),
    ]


@lru_cache(maxsize=4096)
def _topics(path: str) -> tuple[bool, ...]:
    """For each topic whether a part of a path names it; cached, since pages share their folders."""
    found = {_TOPIC_OF.get(word) for word in _WORD.findall(path)}
    return tuple([topic in found for topic in _TOPICS])


def _digits(text: str) -> float:
    return sum(map(str.isdecimal, text)) / max(len(text), 1)


@cache
def _weights() -> PriorWeights:
    kept = json.loads(Path(__file__).with_name("change_prior.json").read_text(encoding="utf-8"))
    mean, spread, weight = (np.array(kept[name], np.float64) for name in ("mean", "spread", "weight"))
    return PriorWeights(mean, spread, weight, float(kept["constant"]))
