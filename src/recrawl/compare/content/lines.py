"""The lines of a page as content detection sees them: normal form, key, and place in the page.

A line is a stretch of text without a block element or line break, as in `compare.parsing.text.lines`. Its key is a hash
of its letters and digits alone, in lower case: other spacing, punctuation, quotes or upper case make no other line.
Keys must not change from version to version, since tables of them are stored.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing import text as page_text

_WORD = re.compile(r"\w+")
# Directives of templates that were published unrendered, and keywords that version control replaces at every commit.
_DIRECTIVE = re.compile(r"\{%.{0,500}?%\}|\{\{[^{}\"']{0,200}\}\}|\$[A-Z]\w{1,20}(?::[^$\n]{0,200})?\$")
_FRAME_NAME = (
    "nav", "navbar", "navigation", "menu", "footer", "sidebar", "breadcrumb", "breadcrumbs", "related", "recent", "toc",
    "pagination", "pager", "header", "masthead", "topbar", "banner", "social", "share", "copyright", "cookie", "widget",
)  # fmt: skip
_FRAME_CLASS = re.compile(rf"(?:^|[\s_-])(?:{'|'.join(_FRAME_NAME)})(?:$|[\s_-]|\d)", re.IGNORECASE)
FRAME_ELEMENTS = (
    "nav,footer,aside,[role=navigation],[role=contentinfo],[role=complementary],[role=banner],[role=search]"
)
"""Elements that belong to the frame of a site on any page."""
_NEVER_FRAME = frozenset(("html", "body", "main", "article", "h1", "h2", "h3", "h4", "h5", "h6"))
_MAX_NAMED = 2_000
"""Elements with a class or id that are examined; a page with more is judged by the others."""
_MOSTLY = 0.95
"""If classes and ids name this share of a page's words as frame, they are not believed."""
_ELEMENT, _NAMED, _HEADING, _OWN = 0, 1, 2, 3
_MARKS = {
    mark: (kind, step)
    for kind, marks in enumerate(("\x01\x02", "\x03\x04", "\x05\x06", "\x07\x08"))
    for mark, step in zip(marks, (1, -1), strict=True)
}
"""Marks in the text where an element begins or ends: frame by its tag, by its class or id, a heading, content."""


class Line(NamedTuple):
    """One line of a page."""

    text: str
    """Its words in normal form, separated by spaces."""
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
        return _line(text, (False, False, False))


@lru_cache(maxsize=100_000)
def _line(text: str, place: tuple[bool, bool, bool]) -> Line:
    """The line of a text, in the frame, a heading or content by the user's choice; cached, because most lines of a page
    stand on its other versions and pages too."""
    if "{" in text or "$" in text:
        text = _DIRECTIVE.sub(" ", " ".join(text.split()))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    words = _WORD.findall(text.casefold())
    seal = hashlib.blake2b("".join(words).encode("utf-8", "replace"), digest_size=8)
    return Line(" ".join(words), int.from_bytes(seal.digest(), "big") >> 1, *place)


def lines(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> list[Line]:
    """The lines of a page, in order, without empty ones. Changes the tree.

    >>> page = LexborHTMLParser("<nav><p>Home</nav><p>Welcome, <b>all</b>!<footer>(c)")
    >>> [(line.text, line.framed) for line in lines(page)]
    [('home', True), ('welcome all', False), ('c', True)]
    """
    _mark_places(tree, noise)
    parts = page_text.lines(tree, noise) if noise.patterns else map(str.strip, page_text.stretches(tree, noise))
    depth, place = [0, 0, 0, 0], (False, False, False)
    found: list[Line] = []
    named: list[bool] = []
    for part in parts:
        if part in _MARKS:
            kind, step = _MARKS[part]
            depth[kind] += step
            place = (depth[_ELEMENT] > 0, depth[_HEADING] > 0, depth[_OWN] > 0)
        elif part:
            line = _line(part, place)
            if line.text:
                found.append(line)
                named.append(depth[_NAMED] > 0)
    if any(named) and _share_of_words(found, named) <= _MOSTLY:
        found = [line._replace(framed=True) if by_name else line for line, by_name in zip(found, named, strict=True)]
    return found


def _share_of_words(found: Sequence[Line], chosen: Sequence[bool]) -> float:
    sizes = [len(line.text) for line in found]
    return sum(size for size, mine in zip(sizes, chosen, strict=True) if mine) / max(sum(sizes), 1)


def _mark_places(tree: LexborHTMLParser, noise: Noise) -> None:
    """Put marks into the text where elements of the frame, and headings, begin and end."""
    body = tree.body
    if body is None:
        return
    for node in body.css("h1,h2,h3,h4,h5,h6"):
        _surround(node, "\x05", "\x06")
    for selector in (FRAME_ELEMENTS, *noise.frame):
        for node in _selected(body, selector):
            _surround(node, "\x01", "\x02")
    for selector in noise.content:
        for node in _selected(body, selector):
            _surround(node, "\x07", "\x08")
    for node in body.css("[class],[id]")[:_MAX_NAMED]:
        attributes = node.attributes  # a new dictionary each time
        if _names_frame(attributes.get("class"), attributes.get("id")) and node.tag not in _NEVER_FRAME:
            _surround(node, "\x03", "\x04")


@lru_cache(maxsize=4_096)
def _names_frame(classes: str | None, identity: str | None) -> bool:
    """Whether a class or the id of an element is a name of the frame; cached, because most elements share theirs."""
    return _FRAME_CLASS.search(f"{classes or ''} {identity or ''}") is not None


def _selected(body: LexborNode, selector: str) -> list[LexborNode]:
    try:
        return body.css(selector)
    except SelectolaxError:
        return []  # `Noise.check` has told the user


def _surround(node: LexborNode, before: str, after: str) -> None:
    node.insert_before(f"{page_text.BREAK}{before}{page_text.BREAK}")
    node.insert_after(f"{page_text.BREAK}{after}{page_text.BREAK}")
