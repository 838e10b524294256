"""The part of a page's text that answers a query best, and the words in it that the query looks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recrawl.record.search_query import QueryWords
from recrawl.record.search_words import Stems, folded, unaccented
from recrawl.words import word_places

_QUOTED = 200
"""Maximum characters of a quote."""
_LEAD = 60
"""Characters before the first marked word, at most."""
_LONGEST = 500_000
"""Characters of a text that are searched."""
_ENDS = "\n.!?。！？।؟"


_Place = tuple[str, int, int]
"""A word of a text, its start and its end."""


class Quote(NamedTuple):
    """A part of a text; `marks` are its matching words."""

    text: str
    marks: tuple[tuple[int, int], ...]


class _MarkedPlace(NamedTuple):
    """A place that a query looks for; `what` is the same for equal words."""

    start: int
    end: int
    what: object


def quote(text: str, wanted: QueryWords, stems: Stems, languages: Sequence[str]) -> Quote:
    """The part of a text with most of what is wanted, otherwise its beginning: whole words, with whole words marked.

    `languages` are those of the page.
    """
    text = text[:_LONGEST]
    places = list(word_places(text.replace("_", " ")))
    found = list(_found(places, wanted, stems, languages))
    if not found:
        return Quote(_beginning(text, places), ())
    start = _start(text, places, _best(found))
    end = start + _QUOTED
    if end >= len(text):
        end = len(text)
    else:
        end = max((last for _, _, last in places if start < last <= end), default=end)
        while end < start + _QUOTED and text[end] in _ENDS:
            end += 1
    marks = tuple(
        (place.start - start, place.end - start) for place in found if start <= place.start < place.end <= end
    )
    return Quote(text[start:end], marks)


def _found(places: list[_Place], wanted: QueryWords, stems: Stems, languages: Sequence[str]) -> Iterator[_MarkedPlace]:
    """The places that are wanted, in order and without overlap."""
    plain = {word: "".join(folded(word).split()) or "_" for word in {word for word, _, _ in places}}
    exact = dict(zip(plain, unaccented(list(plain.values())), strict=True))
    stem = dict[str, str]()
    for spoken in wanted.stems.keys() & set(languages):
        of = stems.of(spoken, plain.values())
        stem |= {word: found for word, found in zip(plain, of, strict=True) if found in wanted.stems[spoken]}
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted(wanted.phrases, key=len, reverse=True):
        by_first.setdefault(phrase[0], []).append(phrase)
    korean = [phrase[0] for phrase in wanted.phrases if len(phrase) == 1 and "가" <= phrase[0] <= "힣"]
    at = 0
    while at < len(places):
        word, start, end = places[at]
        length = 0
        for phrase in by_first.get(exact[word], ()):
            if tuple(exact[w] for w, _, _ in places[at : at + len(phrase)]) == phrase:
                length = len(phrase)
                yield _MarkedPlace(start, places[at + length - 1][2], phrase)
                break
        if not length and (word in stem or any(part in exact[word] for part in korean)):
            yield _MarkedPlace(start, end, stem.get(word, word))
        at += max(1, length)


def _best(found: list[_MarkedPlace]) -> int:
    """Where the stretch begins that has most different words of the query, and then most of them."""
    inside: Counter[object] = Counter()
    best, begin, last = (0, 0), 0, 0
    for place in found:
        while last < len(found) and found[last].end <= place.start + _QUOTED - _LEAD:
            inside[found[last].what] += 1
            last += 1
        value = len(+inside), inside.total()
        if value > best:
            best, begin = value, place.start
        inside[place.what] -= 1
    return begin


def _start(text: str, places: list[_Place], begin: int) -> int:
    """Where a quote of a place begins: with its sentence if that is near, otherwise some words before."""
    if begin <= _LEAD:
        return 0
    near = [start for _, start, _ in places if begin - _LEAD <= start <= begin]
    sentences = [start for start in near if any(sign in _ENDS for sign in text[start - 2 : start])]
    return (sentences or near or [begin])[0]


def _beginning(text: str, places: list[_Place]) -> str:
    """The beginning of a text, cut after a word."""
    if len(text) <= _QUOTED:
        return text
    return text[: max((end for _, _, end in places if end <= _QUOTED), default=_QUOTED)]
