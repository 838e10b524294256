"""The lines of a page as content detection sees them: normal form, key, and place in the page.

A line is a stretch of text without a block element or line break. Its key is a hash
of its letters and digits alone, in lower case: other spacing, punctuation, quotes or upper case make no other line.
Keys must not change from version to version, since tables of them are stored.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, compress, product, repeat
from typing import NamedTuple

from turbohtml import Document, Element, Text

from recrawl.compare.content.places import (
    ELEMENT,
    HEADING,
    NAMED,
    OWN,
    RawTextFound,
    Scanner,
    body_html,
    common_pieces,
    replace_raw,
)
from recrawl.compare.noise.date_words import unspaced_words
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing import text as page_text
from recrawl.words import has_spaceless, plain_words
from recrawl.words import words as words_of

_WORD = re.compile(r"\w+")
_FOLD = bytes(ord(chr(code).lower()) if _WORD.match(chr(code)) else ord(" ") for code in range(128)) + bytes(128)
"""The normal form of ASCII characters: lower case, with spaces between words."""
# Directives of templates that were published unrendered, and keywords that version control replaces at every commit.
_DIRECTIVE = re.compile(r"\{%.{0,500}?%\}|\{\{[^{}\"']{0,200}\}\}|\$[A-Z]\w{1,20}(?::[^$\n]{0,200})?\$")
_MOSTLY = 0.95
"""If classes and ids name this share of a page's words as frame, they are not believed."""
_KEPT_CHARACTERS = 4_000_000
"""Of the lines of each place."""
_KINDS = (ELEMENT, NAMED, HEADING, OWN)
_MARKS = {mark: (kind, step) for kind, marks in enumerate(_KINDS) for mark, step in zip(marks, (1, -1), strict=True)}


class Line(NamedTuple):
    """One line of a page."""

    text: str
    """Its words in normal form, separated by spaces; letters in scripts without spaces."""
    key: int
    framed: bool = False
    """Whether it is inside an element that by its name belongs to the site: navigation, footer, sidebar ..."""
    heading: bool = False
    own: bool = False
    """Whether the user says that it is content."""

    @classmethod
    def of(cls, text: str) -> Line:
        """The line of a text outside the frame.

        >>> Line.of("Last  update: Today!") == Line.of("last UPDATE today")
        True
        >>> Line.of("{% include 'menu.html' %}").text
        ''
        """
        return _KNOWN[False, False, False][text]


class _Lines(dict[str, Line]):
    """The lines of texts in the same place; kept, because most of a page stand on its other versions and pages too."""

    def __init__(self, place: tuple[bool, ...]) -> None:
        super().__init__()
        self._place = place
        self._room = _KEPT_CHARACTERS

    def __missing__(self, text: str) -> Line:
        self._room -= len(text)
        if self._room < 0:
            self.clear()
            self._room = _KEPT_CHARACTERS - len(text)
        self[text] = line = _line(text, self._place)
        return line


def _line(text: str, place: tuple[bool, ...]) -> Line:
    """The line of a text, in the frame, a heading or content by the user's choice."""
    if "{" in text or "$" in text:
        text = _DIRECTIVE.sub(" ", " ".join(text.split()))
    shown = ""
    if text.isascii():  # most lines: the same, in half the time
        words = text.encode().translate(_FOLD).split()
    else:
        normal = unicodedata.normalize("NFKC", text).casefold()
        words = [word.encode("utf-8", "replace") for word in _WORD.findall(normal)]
        if plain_words(normal) is None:  # marks are letters of their words, and spaces may be missing
            shown = " ".join(unspaced_words(normal) if has_spaceless(normal) else words_of(normal))
    seal = hashlib.blake2b(b"".join(words), digest_size=8)
    return Line(shown or b" ".join(words).decode(), int.from_bytes(seal.digest(), "big") >> 1, *place)


_KNOWN = {place: _Lines(place) for place in product((False, True), repeat=3)}


def lines(tree: Document, noise: Noise = NO_NOISE) -> list[Line]:
    """The lines of a page, in order, without empty ones. Changes the tree.

    >>> from recrawl.compare.parsing.document import parse
    >>> page = parse("<nav><p>Home</nav><p>Welcome, <b>all</b>!<footer>(c)")
    >>> [(line.text, line.framed) for line in lines(page)]
    [('home', True), ('welcome all', False), ('c', True)]
    """
    _mark_chosen(tree, noise)
    page_text.visible_root(tree, noise)
    try:
        return _lines(tree, noise)
    except RawTextFound:
        replace_raw(tree)
        return _lines(tree, noise)


def version_lines(old: Document, new: Document, noise: Noise = NO_NOISE) -> list[list[Line]]:
    """The `lines` of two versions of a page, after their text has been read; what they share is read once."""
    if noise.patterns or old.find("body") is None or new.find("body") is None:
        return [lines(old, noise), lines(new, noise)]
    for tree in (old, new):
        _mark_chosen(tree, noise)
        if noise.selectors:
            page_text.visible_root(tree, noise)
    try:
        return _version_lines(old, new)
    except RawTextFound:
        for tree in (old, new):
            replace_raw(tree)
        return _version_lines(old, new)


def _lines(tree: Document, noise: Noise) -> list[Line]:
    if tree.find("body") is None:  # it has frames, or the noise filter has removed the body
        parts = page_text.stretches(tree, noise)
        return _Placer().place(page_text.folded_lines(parts, noise)).believed()
    written, left = body_html(tree)
    parts = Scanner(left).parts(written)
    return _Placer().place(page_text.folded_lines(parts, noise) if noise.patterns else parts).believed()


def _version_lines(old: Document, new: Document) -> list[list[Line]]:
    (old_html, old_left), (new_html, new_left) = body_html(old), body_html(new)
    if (old_left, new_left) != (-1, -1):  # a class or id beyond the limit may be within it in the other version
        return [_lines(old, NO_NOISE), _lines(new, NO_NOISE)]
    start, *middles, end = common_pieces(old_html, new_html)
    scanner, placer = Scanner(-1), _Placer()
    before = placer.place(scanner.parts(start))
    last, depth, after = None, placer.depth, before
    found: list[list[Line]] = []
    for middle in middles:
        scan, place = scanner.copy(), _Placer(placer.depth)
        between = place.place(scan.parts(middle))
        if last is None or not (scan.same(last) and place.depth == depth):
            last, depth = scan.copy(), place.depth.copy()
            after = place.place(scan.parts(end))
        found.append(before.joined(between, after).believed())
    return found


class _Found(NamedTuple):
    """Lines, and for each whether a class or id names it as frame."""

    lines: list[Line]
    named: list[bool]

    def joined(self, *others: _Found) -> _Found:
        """These lines and others."""
        return _Found(*(list(chain(*lists)) for lists in zip(self, *others, strict=True)))

    def believed(self) -> list[Line]:
        """The lines; those that are named are frame, if not nearly all are."""
        if True not in self.named:
            return self.lines
        sizes = [len(line.text) for line in self.lines]
        if sum(compress(sizes, self.named)) / max(sum(sizes), 1) > _MOSTLY:
            return self.lines
        return [
            Line(line[0], line[1], True, line[3], line[4]) if by_name else line
            for line, by_name in zip(self.lines, self.named, strict=True)
        ]


class _Placer:
    """Makes lines of stretches, and follows the marks between them."""

    def __init__(self, depth: Sequence[int] = (0, 0, 0, 0)) -> None:
        self.depth = list(depth)
        """Elements of each kind that have begun and not ended."""

    def place(self, parts: Sequence[str]) -> _Found:
        """The lines of stretches."""
        depth, found, start = self.depth, _Found([], []), 0
        marks = [place for place, part in enumerate(parts) if part in _MARKS]
        for end in (*marks, len(parts)):
            if start < end:
                known = _KNOWN[depth[0] > 0, depth[2] > 0, depth[3] > 0]
                lines = [line for line in map(known.__getitem__, parts[start:end]) if line[0]]
                found.lines.extend(lines)
                found.named.extend(repeat(depth[1] > 0, len(lines)))
            if end < len(parts):
                kind, step = _MARKS[parts[end]]
                depth[kind] += step
            start = end + 1
        return found


def _mark_chosen(tree: Document, noise: Noise) -> None:
    """Put marks around what the user calls frame or content."""
    for selectors, (before, after) in ((noise.frame, ELEMENT), (noise.content, OWN)):
        for selector in selectors:
            for node in _selected(tree.find("body"), selector):
                node.insert_before(Text(f"{page_text.BREAK}{before}{page_text.BREAK}"))
                node.insert_after(Text(f"{page_text.BREAK}{after}{page_text.BREAK}"))


def _selected(body: Element | None, selector: str) -> list[Element]:
    try:
        return body.select(selector) if body is not None else []
    except ValueError:
        return []  # `Noise.check` has told the user
