"""Endless URL spaces, known by what their pages bring (spec K3).

A calendar has a page for each month of each year, a shop one for each combination of its filters, a server with session
ids in its paths a new copy of the site at each request. No rule about URLs tells them from a blog by date or a list of
many pages. What they bring does: page after page leads to new URLs, and says nothing that the pages before it did not
say.

URLs of one *space* have the same host, first directory and shape; a *wide* space has any first directory. A page brings
news if it has words that are new to its space, or new pairs or triples of neighbouring words. Words of its URL and of
those that it leads to are names: new ones are no news, and only pairs and triples of names alone count, so that a name
that was made up brings none. Numbers are news only if many are new, in pairs or in rows with words: dates,
ids and the time of day are not. Nor is a line of some words that an earlier page had.

A URL that has all words of the one that it was found on and more, or one other word, is *made*: filters, queries and
relative links grow so. Such pages choose from what others show, in ever new rows; therefore only what stands within one
line counts there, and names of the page's own URL do not. A page without news is barren. Three things end:

- Barren pages that lead to new URLs of their own space raise its score, others lower it. Above `LIMIT` the space is
  endless: barren pages find no more pages in it, and what they have found in it is not requested. Right behind a page
  with news that needs a higher score: parts of a site that differ in their names alone lead only a step or two further.
- The same in the wide space, for URLs of first directories that no page has had yet.
- More than `LIMIT` barren pages in a row, each found on the one before, lead no further, whatever their URLs look like;
  more than `_FEW` lead into no space that is endless.

The memory of a space is a row of cells, in which what was seen grows old when an eighth of them is full, and is then
forgotten: it holds the last few thousand words, pairs and lines, so that a copy of a part that was read long before,
as the documentation of another version, is no trap. Of many spaces, those that were used last are kept.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

import numpy as np

from recrawl.columns import Bytes, Flags, Ints, unique
from recrawl.words import words

LIMIT = 40
"""Score above which a space is endless, and barren pages in a row that lead no further."""
_FEW = 5
"""Barren pages in a row that lead into no endless space, wherever they are."""
_NEWS, _SOME_NEWS, _LITTLE_NEWS = (3, 10, 10, 10, 10, 15, 24), (1, 2, 1, 2, 4, 8, 12), (1, 1, 1, 2, 1, 8, 12)
"""What is news, some and little: so many new words, pairs and triples of words, pairs and triples of names, pairs and
triples of numbers, or rows of four words of which two or more are numbers."""
_WORDS, _PAIRS, _TRIPLES, _NAME_PAIRS, _NAME_TRIPLES, _NUMBERS, _ROWS = range(len(_NEWS))
_GOOD, _SOME, _LITTLE = 5, 3, 1
"""What a page with news, with some and with little takes from the score."""
_DEEP = 2
"""Barren pages in a row behind which the limit holds; nearer it is twice as high."""
_MOST = 3 * LIMIT
_CELLS = 1 << 16
_FULL = _CELLS // 8
_SPACES = 256
"""Spaces that are remembered."""
MOST_SAID = 100_000
"""Characters of a page that are read."""
_SLICE = 1_000
"""Characters after which to stop if there were news."""
_LINE = 3
"""Words of a line, without numbers, that is no news when it is seen again."""
_BREAK = "_"
"""The word between two lines."""
_DIGIT = re.compile(r"\d")
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
    made: Set[str] = frozenset()
    """Links that are made of the page's own URL."""


class _Slice(NamedTuple):
    """Places in the memory of what a part of a page says, and of its longer lines."""

    told: Ints
    """`_CELLS` times the kind, plus the place."""
    first: Ints
    """The line of the first word of each; `last` that of its last one."""
    last: Ints
    lines: Ints
    """The place of each line, -1 for short ones."""


@dataclass(slots=True)
class _Space:
    score: int = 0
    cells: Bytes = field(default_factory=lambda: np.zeros(_CELLS, np.uint8))
    """2 for what was seen lately, 1 for what was seen before that, 0 for what was not."""
    fill: int = 0
    folders: set[int] = field(default_factory=set)
    """Of a wide space: first directories of its pages."""

    @property
    def endless(self) -> bool:
        return self.score > LIMIT

    def ends(self, behind: int) -> bool:
        """Whether what a barren page has found is refused, `behind` so many others in a row."""
        return self.score > (LIMIT if behind >= _DEEP else 2 * LIMIT)

    def note(self, slices: Iterable[_Slice]) -> int:
        """Remember what a page says, up to its first news, and return how much news it has."""
        total = np.zeros(len(_NEWS), np.int64)
        for part in slices:
            total += self._new(part)
            if (total >= _NEWS).any():
                return _GOOD
        return _SOME if (total >= _SOME_NEWS).any() else _LITTLE if (total >= _LITTLE_NEWS).any() else 0

    def _new(self, part: _Slice) -> Ints:
        """How much of each kind is new; what a line says that was seen before is not."""
        again = (part.lines >= 0) & (self.cells[part.lines] > 0)
        told = part.told[~(again[part.first] | again[part.last])] if again.any() else part.told
        told = unique(told)
        places = told & (_CELLS - 1)
        found = self.cells[places]
        lines = part.lines[part.lines >= 0]
        self.fill += int((found < 2).sum()) + int((self.cells[lines] < 2).sum())
        self.cells[places] = 2
        self.cells[lines] = 2
        if self.fill > _FULL:
            self.cells >>= 1
            self.fill = 0
        return np.bincount(told[found == 0] // _CELLS, minlength=len(_NEWS))

    def count(self, news: int, made: bool) -> None:
        """Raise the score for a page without news; lower it by the news of another, half for one that is made."""
        news //= 1 + made
        self.score = max(0, self.score - news) if news else min(self.score + 1, _MOST)


class EndlessSpaces:
    """The spaces of a crawl: which new URLs of a page lie in an endless one, and which pages need no request.

    >>> spaces = EndlessSpaces()
    >>> behind = asked = 0
    >>> found = set()
    >>> while not found:
    ...     month, after = (f"https://a.example/cal/{2026 + i // 12}/{i % 12 + 1}/" for i in (asked, asked + 1))
    ...     found, behind, _ = spaces.judge(month, "Calendar for this month", [after], behind)
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

    def judge(self, url: str, text: str, new: Sequence[str], behind: int = 0, made: bool = False) -> Judged:
        """Judge the new URLs that a page leads to; call it once for each page.

        `text` is what the page says, line by line; `behind` is how many barren pages in a row led to it; `made` is
        whether its URL is made of that of the page that it was found on.
        """
        if not new and not behind:
            return Judged(set(), 0)
        own, wide = _spaces_of(url)
        spaces = [(found, *_spaces_of(found)) for found in new]
        near = {found for found, its_own, _ in spaces if its_own == own}
        space = self._space(wide)
        if len(space.folders) > _FOLDERS:
            space.folders.clear()
        space.folders.add(hash(own))
        far = {found for found, its, its_wide in spaces if its_wide == wide and hash(its) not in space.folders}
        slices = _Slices(text, set(words(url)), set(words(" ".join(new))), made)
        news, refused = space.note(slices), set[str]()
        if far:
            space.count(news, made)
            refused |= far if not news and space.ends(behind) else set()
        if near or behind:
            space = self._space(own)
            news_here = space.note(slices)
            if new or news_here or space.score < LIMIT:  # pages that lead nowhere make no space endless
                space.count(news_here, made)
            refused |= near if not news_here and space.ends(behind) else set()
            news = min(news, news_here)
        behind = 0 if news == _GOOD else max(1, behind - news // 2) if news else behind + 1
        if behind > LIMIT:
            return Judged(set(new), behind)
        if behind > _FEW:
            refused.update(found for found, its_own, _ in spaces if self._is_endless(its_own))
        return Judged(refused, behind, _made(url, near | far))

    def leads_on(self, found_on: str, url: str, behind: int = LIMIT, made: bool = False) -> bool:
        """Whether a URL that was found on a page, the last of `behind` barren ones, is further in an endless space."""
        own, before = space_of(url), space_of(found_on)
        if not behind:
            return made and before == own and own in self._spaces and self._spaces[own].ends(0)
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
    return _spaces_of(url)[0]


def wide_space_of(url: str) -> str:
    """The wide space of a URL: its host and shape.

    >>> wide_space_of("https://a.example/red/m/") == wide_space_of("https://a.example/blue/s/")
    True
    """
    return _spaces_of(url)[1]


def _spaces_of(url: str) -> tuple[str, str]:
    place, mark, _ = url.partition("://")[2].partition("?")
    host, *segments = place.split("/")
    last = segments.pop() if segments else ""
    first = segments[0] if segments else ""
    inside = "".join(sorted(set(map(_kind, segments[1:])))) if len(segments) > 1 else ""
    shape = f"/{inside}/{_kind(last) if last else ''}{mark}"
    return f"{host}/{first if _kind(first) == '*' else '#'}{shape}", f"{host}/*{shape}"


def _kind(segment: str) -> str:
    return "#" if _has_digits(segment) else "*"


def _made(url: str, found: Set[str]) -> set[str]:
    """The URLs that have all words of another one and more, or but one word more that is no number.

    >>> sorted(_made("https://a.example/shop/red/", {"https://a.example/shop/red/xl/", "https://a.example/team/news/"}))
    ['https://a.example/shop/red/xl/']
    """
    if not found:
        return set()
    own = words(url)
    before, made = set(own), set[str]()
    for one in found:
        after = words(one)
        more = set(after) - before
        if (len(after) > len(own) and before.issubset(after)) or (len(more) == 1 and not _has_digits(*more)):
            made.add(one)
    return made


class _Slices:
    """What a page says, part by part."""

    def __init__(self, text: str, own: Set[str], linked: Set[str], made: bool) -> None:
        middle = text.find("\n", len(text) // 3) + 1 if len(text) > 2 * _SLICE else 0  # pages begin with menus
        self._rest, self._made = text[middle:] + text[:middle], made
        self._named = own | linked
        self._silent = own if made else frozenset[str]()
        self._read: list[_Slice] = []

    def __iter__(self) -> Iterator[_Slice]:
        yield from self._read
        while self._rest:
            end = self._rest.find("\n", _SLICE) + 1 or len(self._rest)
            if end > 2 * _SLICE:
                end = self._rest.find(" ", _SLICE) + 1 or end
            part, self._rest = self._rest[:end], self._rest[end:]
            self._read.append(self._slice(part))
            yield self._read[-1]

    def _slice(self, part: str) -> _Slice:
        found = words(part.replace("\n", f" {_BREAK} "))
        count = len(found)
        breaks = np.fromiter(map(_BREAK.__eq__, found), np.bool_, count)
        line = np.cumsum(breaks, dtype=np.int64)
        hashes = np.fromiter(map(zlib.crc32, " ".join(found).encode("utf-8", "replace").split(b" ")), np.int64, count)
        if breaks.any():
            stays = ~breaks
            found, line, hashes = list(compress(found, stays)), line[stays], hashes[stays]
            count = len(found)
        named = np.fromiter(map(self._named.__contains__, found), np.bool_, count)
        letters = np.fromiter(map(str.isalpha, found), np.bool_, count)
        digits, year = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for at in (~letters).nonzero()[0].tolist():
            digits[at] = _has_digits(found[at])
            year[at] = len(found[at]) == 4 and found[at][:2] in _CENTURIES
        plain, names = ~(digits | named), ~digits & named
        if self._silent:
            names &= ~np.fromiter(map(self._silent.__contains__, found), np.bool_, count)
        return self._kinds(hashes, line, plain, names, digits, digits & named, year)

    def _kinds(
        self, hashes: Ints, line: Ints, plain: Flags, names: Flags, digits: Flags, own_numbers: Flags, year: Flags
    ) -> _Slice:
        two = _joined(hashes[:-1], hashes[1:])
        three = _joined(two[:-1], hashes[2:])
        pairs, name_pairs = plain[:-1] & plain[1:], names[:-1] & names[1:]
        four, triples = _joined(three[:-1], hashes[3:]), pairs[:-1] & pairs[1:]
        told = [(_WORDS, 1, hashes, plain), (_PAIRS, 2, two, pairs), (_TRIPLES, 3, three, triples)]
        told += [(_TRIPLES, 4, four, triples[:-1] & triples[1:])]
        told += [(_NAME_PAIRS, 2, two, name_pairs), (_NAME_TRIPLES, 3, three, name_pairs[:-1] & name_pairs[1:])]
        if digits.any():
            number, other = digits & ~year, ~(year | own_numbers)
            told += [(_NUMBERS, 2, two, digits[:-1] | digits[1:])]
            told += [(_NUMBERS, 3, three, number[:-2] & number[1:-1] & number[2:])]
            rows = other[:-3] & other[1:-2] & other[2:-1] & other[3:]
            rows &= number[:-3].astype(np.int8) + number[1:-2] + number[2:-1] + number[3:] > 1
            told += [(_ROWS, 4, four, rows)]
        at = [chosen.nonzero()[0] for _, _, _, chosen in told]
        starts, sizes = np.concatenate(at), [len(places) for places in at]
        places = np.concatenate([hashed[places] for (_, _, hashed, _), places in zip(told, at, strict=True)])
        kinds = np.repeat([kind for kind, *_ in told], sizes)
        first, last = line[starts], line[starts + np.repeat([size - 1 for _, size, *_ in told], sizes)]
        told_at = kinds * _CELLS + _place(places)
        if self._made:
            inside = first == last
            told_at, first, last = told_at[inside], first[inside], last[inside]
        return _Slice(told_at, first, last, _long_lines(hashes, line, digits))


def _long_lines(hashes: Ints, line: Ints, digits: Flags) -> Ints:
    """The places of the lines, -1 for those of few words."""
    if not len(line):
        return np.full(1, -1)
    long = np.bincount(line, ~digits) >= _LINE
    starts = np.searchsorted(line, np.arange(len(long)))
    order = np.arange(len(line)) - starts[line] + 1
    sums = np.zeros(len(long), np.int64)
    np.add.at(sums, line, (hashes * order) & 0xFFFFFFFFFF)
    return np.where(long, _place(_joined(sums, np.int64(1))), -1)


def _joined(first: Ints, second: Ints | np.int64) -> Ints:
    """Hashes of what follows each other."""
    return (first * 1_000_003 + second) & 0xFFFFFFFFFF


def _place(hashes: Ints) -> Ints:
    return (hashes ^ (hashes >> 16)) % _CELLS


def _has_digits(word: str) -> bool:
    return not word.isalpha() and _DIGIT.search(word) is not None
