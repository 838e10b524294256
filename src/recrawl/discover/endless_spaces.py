"""Endless URL spaces, known by what their pages bring (spec K3).

A calendar has a page for each month of each year, a shop one for each combination of its filters, a server with session
ids in its paths a new copy of the site at each request. No rule about URLs tells them from a blog by date or a list of
many pages. What they bring does: page after page leads to new URLs, and says nothing that the pages before it did not
say.

URLs of one *space* have the same host, first directory and shape; a *wide* space has any first directory. A page brings
news if it has words that are new to its space, or new pairs or triples of neighbouring words. Words of its URL and of
those that it leads to are names: new ones are no news, and of pairs only those of two names count, so that a name that
was made up brings none. Numbers are news only if many are new, in pairs or in rows with words: dates,
ids and the time of day are not. A page without news is barren. Three things end:

- Barren pages that lead to new URLs of their own space raise its score, others lower it. Above `LIMIT` the space is
  endless: barren pages find no more pages in it, and what they have found in it is not requested. Right behind a page
  with news that needs a higher score: parts of a site that differ in their names alone lead only a step or two further.
- The same in the wide space, for URLs of first directories that no page has had yet.
- More than `LIMIT` barren pages in a row, each found on the one before, lead no further, whatever their URLs look like;
  more than `_FEW` lead into no space that is endless.

The memory of a space is two rows of bits, the younger of which replaces the older when it is an eighth full: it holds
the last few thousand words and pairs, so that a copy of a part that was read long before, as the documentation of
another version, is no trap. Of many spaces, those that were used last are kept.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from recrawl.columns import Bytes, Ints, unique
from recrawl.words import words

LIMIT = 40
"""Score above which a space is endless, and barren pages in a row that lead no further."""
_FEW = 5
"""Barren pages in a row that lead into no endless space, wherever they are."""
_NEWS, _SOME_NEWS, _LITTLE_NEWS = (3, 10, 10, 10, 15, 24), (1, 2, 1, 2, 8, 12), (1, 1, 1, 2, 8, 12)
"""What is news, some and little: so many new words, pairs and triples of words, pairs of names, pairs and triples of
numbers, or rows of four words of which two or more are numbers."""
_GOOD, _SOME, _LITTLE = 5, 3, 1
"""What a page with news, with some and with little takes from the score."""
_DEEP = 2
"""Barren pages in a row behind which the limit holds; nearer it is twice as high."""
_MOST = 3 * LIMIT
_BITS = 1 << 16
_FULL = _BITS // 8
_SPACES = 256
"""Spaces that are remembered."""
_LONGEST, _SLICE = 200_000, 2_000
"""Characters of a page that are read, and after how many to stop if there were news."""
_DIGIT = re.compile(r"\d")
_NONE = np.zeros(0, np.int64)
_CENTURIES = ("18", "19", "20", "21")
"""How years begin."""
_FOLDERS = 10_000
"""First directories of a wide space that are remembered."""


class Judged(NamedTuple):
    """What a page's new links are worth."""

    refused: set[str]
    """Links that lead further into an endless space."""
    behind: int
    """How many barren pages in a row lead to the others."""


@dataclass(slots=True)
class _Space:
    score: int = 0
    young: Bytes = field(default_factory=lambda: np.zeros(_BITS >> 3, np.uint8))
    old: Bytes = field(default_factory=lambda: np.zeros(_BITS >> 3, np.uint8))
    fill: int = 0
    folders: set[int] = field(default_factory=set)
    """Of a wide space: first directories of its pages."""

    @property
    def endless(self) -> bool:
        return self.score > LIMIT

    def ends(self, behind: int) -> bool:
        """Whether what a barren page has found is refused, `behind` so many others in a row."""
        return self.score > (LIMIT if behind >= _DEEP else 2 * LIMIT)

    def note(self, slices: Iterable[Sequence[Ints]]) -> int:
        """Remember what a page says, up to its first news, and return how much news it has."""
        total = np.zeros(len(_NEWS), np.int64)
        for kinds in slices:
            total += [self._new(spots) for spots in kinds]
            if (total >= _NEWS).any():
                return _GOOD
        return _SOME if (total >= _SOME_NEWS).any() else _LITTLE if (total >= _LITTLE_NEWS).any() else 0

    def _new(self, spots: Ints) -> int:
        cells, bits = spots >> 3, (1 << (spots & 7)).astype(np.uint8)
        new = int((((self.young[cells] | self.old[cells]) & bits) == 0).sum())
        self.fill += int(((self.young[cells] & bits) == 0).sum())
        np.bitwise_or.at(self.young, cells, bits)
        if self.fill > _FULL:
            self.young, self.old, self.fill = np.zeros(_BITS >> 3, np.uint8), self.young, 0
        return new

    def count(self, news: int) -> None:
        """Raise the score for a page without news; lower it by the news of another."""
        self.score = max(0, self.score - news) if news else min(self.score + 1, _MOST)


class EndlessSpaces:
    """The spaces of a crawl: which new URLs of a page lie in an endless one, and which pages need no request.

    >>> spaces = EndlessSpaces()
    >>> behind = asked = 0
    >>> found = set()
    >>> while not found:
    ...     month, after = (f"https://a.example/cal/{2026 + i // 12}/{i % 12 + 1}/" for i in (asked, asked + 1))
    ...     found, behind = spaces.judge(month, "Calendar for this month", [after], behind)
    ...     asked += 1
    >>> asked
    42
    """

    def __init__(self, stored: str = "") -> None:
        self._spaces: dict[str, _Space] = {}
        for name in json.loads(stored or "[]"):
            if isinstance(name, str):  # not so for a while before version 1
                self._spaces[name] = _Space(_MOST)

    @property
    def any(self) -> bool:
        """Whether there is an endless space."""
        return any(space.endless for space in self._spaces.values())

    def judge(self, url: str, text: str, new: Sequence[str], behind: int = 0) -> Judged:
        """Judge the new URLs that a page leads to; call it once for each page.

        `behind` is how many barren pages in a row led to this one.
        """
        if not new and not behind:
            return Judged(set(), 0)
        own, wide = space_of(url), wide_space_of(url)
        near = {found for found in new if space_of(found) == own}
        space = self._space(wide)
        if len(space.folders) > _FOLDERS:
            space.folders.clear()
        space.folders.add(hash(own))
        far = {found for found in new if wide_space_of(found) == wide and hash(space_of(found)) not in space.folders}
        slices = _Slices(text, set(words(" ".join([url, *new]))))
        news, refused = space.note(slices), set[str]()
        if far:
            space.count(news)
            refused |= far if not news and space.ends(behind) else set()
        if near or behind:
            space = self._space(own)
            news_here = space.note(slices)
            space.count(news_here)
            refused |= near if not news_here and space.ends(behind) else set()
            news = min(news, news_here)
        behind = 0 if news == _GOOD else max(1, behind) if news else behind + 1
        if behind > LIMIT:
            return Judged(set(new), behind)
        if behind > _FEW:
            refused.update(found for found in new if self._is_endless(space_of(found)))
        return Judged(refused, behind)

    def leads_on(self, found_on: str, url: str, behind: int = LIMIT) -> bool:
        """Whether a URL that was found on a page, the last of `behind` barren ones, is further in an endless space."""
        own, before = space_of(url), space_of(found_on)
        if self._is_endless(own):
            return before == own or behind > _FEW
        wide = wide_space_of(url)
        return before != own and wide_space_of(found_on) == wide and self._is_endless(wide)

    def _is_endless(self, name: str) -> bool:
        space = self._spaces.get(name)
        return space is not None and space.endless

    def stored(self) -> str:
        """The endless spaces, for the next run."""
        names = [name for name, space in self._spaces.items() if space.endless]
        return json.dumps(names) if names else ""

    def _space(self, name: str) -> _Space:
        """A space, which becomes the one that was used last."""
        space = self._spaces.pop(name, None) or _Space()
        self._spaces[name] = space
        if len(self._spaces) > _SPACES:
            del self._spaces[next(iter(self._spaces))]
        return space


def space_of(url: str) -> str:
    """The space of a URL: its host, first directory and shape; numbers, names and queries are alike.

    >>> space_of("https://a.example/cal/2031/5/") == space_of("https://a.example/cal/2032/11/")
    True
    >>> space_of("https://a.example/shop/red/m/") == space_of("https://a.example/shop/m/red/large/")
    True
    """
    host, first, shape = _parts(url)
    return f"{host}/{first}{shape}"


def wide_space_of(url: str) -> str:
    """The wide space of a URL: its host and shape.

    >>> wide_space_of("https://a.example/red/m/") == wide_space_of("https://a.example/blue/s/")
    True
    """
    host, _, shape = _parts(url)
    return f"{host}/*{shape}"


def _parts(url: str) -> tuple[str, str, str]:
    place, mark, _ = url.partition("://")[2].partition("?")
    host, *segments = place.split("/")
    last = segments.pop() if segments else ""
    first = segments[0] if segments else ""
    inside = "".join(sorted(set(map(_kind, segments[1:]))))
    return host, first if _kind(first) == "*" else "#", f"/{inside}/{_kind(last) if last else ''}{mark}"


def _kind(segment: str) -> str:
    return "#" if any(map(str.isdigit, segment)) else "*"


class _Slices:
    """Places in a row of bits of what a text says, slice by slice, in the order of `_NEWS`."""

    def __init__(self, text: str, named: Set[str]) -> None:
        self._text, self._named = text[:_LONGEST], named
        self._read: list[list[Ints]] = []

    def __iter__(self) -> Iterator[list[Ints]]:
        yield from self._read
        while self._text:
            end = self._text.find(" ", _SLICE) + 1 or len(self._text)
            found, self._text = words(self._text[:end]), self._text[end:]
            self._read.append(self._spots(found))
            yield self._read[-1]

    def _spots(self, found: Sequence[str]) -> list[Ints]:
        hashes = np.fromiter((zlib.crc32(word.encode("utf-8", "replace")) for word in found), np.int64, len(found))
        digits = np.fromiter(map(_has_digits, found), np.bool_, len(found))
        named = np.fromiter(map(self._named.__contains__, found), np.bool_, len(found))
        plain, names = ~digits & ~named, ~digits & named
        two = _joined(hashes[:-1], hashes[1:])
        three = _joined(two[:-1], hashes[2:])
        pairs = plain[:-1] & plain[1:]
        kinds = [hashes[plain], two[pairs], three[pairs[:-1] & pairs[1:]], two[names[:-1] & names[1:]]]
        if not digits.any():
            return [*map(_spots, kinds), _NONE, _NONE]
        year = np.fromiter((len(word) == 4 and word[:2] in _CENTURIES for word in found), np.bool_, len(found))
        number, other = digits & ~year, ~year & ~(digits & named)
        numbers = (two[digits[:-1] | digits[1:]], three[number[:-2] & number[1:-1] & number[2:]])
        rows = other[:-3] & other[1:-2] & other[2:-1] & other[3:]
        rows &= number[:-3].astype(np.int8) + number[1:-2] + number[2:-1] + number[3:] > 1
        return [*map(_spots, [*kinds, np.concatenate(numbers), _joined(three[:-1], hashes[3:])[rows]])]


def _joined(first: Ints, second: Ints) -> Ints:
    """Hashes of what follows each other."""
    return (first * 1_000_003 + second) & 0xFFFFFFFFFF


def _spots(hashes: Ints) -> Ints:
    return unique((hashes ^ (hashes >> 16)) % _BITS)


def _has_digits(word: str) -> bool:
    return not word.isalpha() and _DIGIT.search(word) is not None
