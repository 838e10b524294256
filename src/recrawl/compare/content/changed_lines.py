"""The lines that a change removed and added, reduced to what tells frame from content.

Lines are compared as a multiset: a line that only moved has not changed. A removed and an added line in the same place,
or alike up to numbers and dates, are one edited line.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from recrawl.compare.common_ends import common_ends
from recrawl.compare.content.judge import LineChange
from recrawl.compare.content.lines import Line
from recrawl.compare.noise.date_words import STAMP_WORDS, date_words

_DATE_WORD = (
    r"\d+(?:st|nd|rd|th|z)?|t\d+|jan\w*|feb\w*|mar|march|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*"
    r"|mon|monday|tue\w*|wed\w*|thu\w*|fri|friday|sat\w*|sun|sunday|am|pm|utc|gmt|ces?t|[ep][sd]t|[0-9a-f]{7,40}"
    r"|\d+(?:[년월일시분초er\u00bao]|h\d*|-?го|uhr)|[〇零一二三四五六七八九十廿卅]+"
)
_DATES = re.compile(rf"(?:{_DATE_WORD})\Z")
_SKELETON = re.compile(rf"\b(?:{_DATE_WORD})\b")
_STAMP = re.compile(
    r"\b(?:updated?|modified|generated|revised|rebuilt|built|edited|changed|compiled|rendered|retrieved|accessed|cached"
    r"|crawled|exp|as of|copyright|mise? à jour|cập nhật|chỉnh sửa|bản quyền)\b"
)
_NUMBER = re.compile(r"\d")
_NO_LINE = Line("", 0)
_MIN_ALIKE = 0.4
_NEAR = (-2, -1, 1, 2)


@dataclass(slots=True)
class _Item:
    line: Line
    place: int
    """Its index in its version."""
    partner: Line | None = None
    """The same line before or after the edit."""
    instead: Line | None = None
    """The line in its place, alike or not."""


def changed_lines(old: Sequence[Line], new: Sequence[Line]) -> list[LineChange]:
    """The changed lines of two versions: first the removed ones, then the added ones.

    >>> old = list(map(Line.of, ("Menu", "Updated: 1 May 2024", "Tea is out")))
    >>> new = list(map(Line.of, ("Menu", "Updated: 2 May 2024", "Coffee is out")))
    >>> [(change.added, change.mechanical) for change in changed_lines(old, new)]
    [(False, True), (False, False), (True, True), (True, False)]
    """
    keys, new_keys = [line.key for line in old], [line.key for line in new]
    start, end = common_ends(keys, new_keys)
    before, after = Counter(keys[start : len(keys) - end]), Counter(new_keys[start : len(new_keys) - end])
    removed, added = _surplus(old, keys, before - after), _surplus(new, new_keys, after - before)
    if removed and added:
        _pair(removed, added, (keys, new_keys))
    return [_change(item, old, added=False) for item in removed] + [_change(item, new, added=True) for item in added]


def _surplus(version: Sequence[Line], keys: list[int], surplus: Counter[int]) -> list[_Item]:
    """The first lines with these keys, as many of each as it has too many."""
    found = []
    for place, key in enumerate(keys):
        if key in surplus and surplus[key] > 0:
            surplus[key] -= 1
            found.append(_Item(version[place], place))
    return found


def _change(item: _Item, version: Sequence[Line], *, added: bool) -> LineChange:
    line = item.line
    near = tuple(version[item.place + step].key for step in _NEAR if 0 <= item.place + step < len(version))
    edits = _edited_words(line, item.partner)
    dated = _date_words(line.text) | _date_words(item.partner.text) if item.partner else frozenset[str]()
    numbers = edits is not None and all(word in dated or _DATES.match(word) for word in edits)
    return LineChange(
        key=line.key,
        added=added,
        framed=line.framed,
        mechanical=edits == [] or _is_stamp(line.text, only_dates=numbers),
        own=line.own,
        fact=line.heading or _NUMBER.search(line.text) is not None,
        words=line.text.count(" ") + 1,
        near=near,
        instead=(item.partner or item.instead or _NO_LINE).key,
        slot=_slot(line.text) if numbers and edits else 0,
    )


def _edited_words(line: Line, partner: Line | None) -> list[str] | None:
    """The words in which an edited line differs from its partner; None without one."""
    if partner is None:
        return None
    mine, other = Counter(line.text.split()), Counter(partner.text.split())
    return list((mine - other) + (other - mine))


def _is_stamp(text: str, *, only_dates: bool) -> bool:
    """Whether a changed line says when something was updated, and nothing else of it changed."""
    words = text.split()
    if STAMP_WORDS.isdisjoint(words) and not _STAMP.search(text):
        return False
    dated = _date_words(text)
    dates = sum(1 for word in words if word in dated or _DATES.match(word))
    return (only_dates and dates > 0) or (dates >= 2 and dates + 3 >= len(words))


@lru_cache(maxsize=4096)
def _date_words(text: str) -> frozenset[str]:
    return date_words(text.split(), numbers=_DATES)


def _skeleton(text: str) -> str:
    """A line up to its numbers and dates."""
    found = _date_words(text)
    text = _SKELETON.sub("0", text)
    return " ".join("0" if word in found else word for word in text.split()) if found else text


def _slot(text: str) -> int:
    return Line.of(_skeleton(text)).key


def _pair(removed: list[_Item], added: list[_Item], keys: tuple[list[int], list[int]]) -> None:
    """Find the partners: first lines that are alike up to dates, then lines in the same place that share words."""
    by_skeleton: defaultdict[str, list[_Item]] = defaultdict(list)
    for item in reversed(removed):
        by_skeleton[_skeleton(item.line.text)].append(item)
    for item in added:
        alike = by_skeleton.get(_skeleton(item.line.text))
        if alike:
            _join(alike.pop(), item)
    common = set(keys[0]).intersection(keys[1])
    places: defaultdict[int, list[_Item]] = defaultdict(list)
    for item, anchor in zip(removed, _anchors(removed, keys[0], common), strict=True):
        if item.partner is None:
            places[anchor].append(item)
    for item, anchor in zip(added, _anchors(added, keys[1], common), strict=True):
        if item.partner is None and places[anchor]:
            other = places[anchor].pop(0)
            item.instead, other.instead = other.line, item.line
            if _alike(other.line, item.line):
                _join(other, item)


def _anchors(items: list[_Item], keys: list[int], common: set[int]) -> list[int]:
    """For each changed line, the key of the nearest line before it that both versions have; 0 at the start."""
    anchors, anchor, place = [], 0, 0
    for item in items:
        anchor = next((key for key in reversed(keys[place : item.place]) if key in common), anchor)
        place = item.place
        anchors.append(anchor)
    return anchors


def _alike(a: Line, b: Line) -> bool:
    one, other = Counter(a.text.split()), Counter(b.text.split())
    return 2 * (one & other).total() >= _MIN_ALIKE * (one.total() + other.total())


def _join(removed: _Item, added: _Item) -> None:
    removed.partner, added.partner = added.line, removed.line
