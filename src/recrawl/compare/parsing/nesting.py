"""Estimate of the HTML parser's work on a page, in linear time and without building a tree.

The parser follows the HTML Standard, whose rules look back through the open elements: work grows with depth times
tags, and formatting elements that are never closed (`<font size=1><p><font size=2><p>…`) are opened again in every
block. A page of 100,000 nested elements takes the parser 20 s. This walk keeps its own stack of open elements, by the
main rules only: optional end tags, scopes closed off by tables and objects, and end tags that do not match. `effort`
counts steps of about 1 ns.

The estimate errs on the high side. It stops once it passes the limit, which also bounds its own time.
"""

from __future__ import annotations

import re
from collections import defaultdict


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Possessive quantifiers (`++`) keep matching linear; a tag without an end runs to the end of the page.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s"'>][^\s>]*+)"""
_ONE = rf"[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE}?+)?+"
_ATTRIBUTES = rf"(?:[\s/]++|{_ONE})*+"
_ATTRIBUTE = re.compile(_ONE)
_TAG = rf"<(/?+[A-Za-z][^\s/>]*+)({_ATTRIBUTES})(?:>|\Z)"
_COMMENT = r"<!--(?:-?>|.*?(?:--!?>|\Z))"
_RAW = "script|style|textarea|title|xmp|iframe|noembed|noframes"
_RAW_ELEMENT = rf"<({_RAW})(?=[\s/>]){_ATTRIBUTES}(?:>|\Z)(?:.*?(?=</\3[\s/>])|.*)"
# Inside <svg> and <math>, script and style contain ordinary markup, so they are not skipped there.
_TAGS = re.compile(rf"{_COMMENT}|{_TAG}", re.DOTALL)
_TAGS_AND_RAW = re.compile(rf"{_COMMENT}|(?!<(?:{_RAW})[\s/>]){_TAG}|{_RAW_ELEMENT}", re.DOTALL | re.IGNORECASE)
_FOREIGN = re.compile(r"<(?:svg|math)[\s/>]", re.IGNORECASE)

_VOID = _names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr "
    "head tbody thead tfoot tr colgroup"
)
_FORMATTING = _names("b big code em font i s small strike strong tt u")
_ENDS_P = _names(
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search "
    "section summary table ul xmp"
)
_SPECIAL = _ENDS_P | _names("body button html iframe optgroup option select")
_CELLS = frozenset(("td", "th", "caption"))
_TABLE_PARTS = _CELLS | {"tr", "tbody", "thead", "tfoot", "col", "colgroup"}
_WALLS = _names("applet object marquee template foreignobject desc annotation-xml mi mo mn ms mtext")
_ENDS_SIBLING = {"li": ("li",), "dd": ("dd", "dt"), "dt": ("dd", "dt")}
_WALK = 30
"""The parser steps that one step of this walk takes as long as."""
_REOPENED = 400
"""Steps to open a formatting element again, which creates a node."""


def attributes(html: str, at: int) -> int:
    """Count the attributes of the tag that starts at `at`, in its first 64,000 characters.

    >>> attributes("<p a b=1 c='d e'>x y", 0)
    3
    """
    tag = _TAGS.match(html, at, at + 64_000)
    return len(_ATTRIBUTE.findall(tag[2] or "")) if tag else 0


class _Scope:
    """The open elements inside one table, cell or object; end tags inside it close nothing outside."""

    __slots__ = ("active", "kinds", "open", "stack", "waiting", "wall")

    def __init__(self, wall: str) -> None:
        self.wall = wall
        self.stack: list[str] = []
        self.open: defaultdict[str, int] = defaultdict(int)
        self.active: defaultdict[str, list[str]] = defaultdict(list)
        """Unclosed formatting elements by name; at most three equal ones."""
        self.kinds: defaultdict[str, int] = defaultdict(int)
        self.waiting: dict[str, int] = {}
        """Number of them that another end tag closed: the parser opens them again before the next content."""


def effort(html: str, limit: int) -> tuple[int, int]:
    """Return the parser's steps and the depth reached; stop counting above the limit.

    >>> effort("<div>" * 10_000, 10**9)
    (50005000, 10000)
    >>> effort("<p>a<b>b</b></p>" * 10_000, 10**9)[1]
    2
    """
    walk = _Walk()
    pattern = _TAGS if _FOREIGN.search(html) else _TAGS_AND_RAW
    for match in pattern.finditer(html):
        tag = match[1]
        if tag:
            walk.take(tag.lower(), match[2])
            if walk.steps > limit:
                break
    return walk.steps, walk.deepest


class _Walk:
    """The state of one walk over a page's tags."""

    def __init__(self) -> None:
        self.scope = _Scope("")
        self.scopes = [self.scope]
        self.depth = 0
        self.deepest = 0
        self.steps = 0
        self.merged = 0

    def take(self, tag: str, attributes: str) -> None:
        if tag[0] == "/":
            self._end(tag[1:])
        elif tag in _TABLE_PARTS or tag == "table":
            self._table_part(tag)
        elif tag in ("html", "body"):
            # The parser merges their attributes into those of the first, comparing one by one.
            self.merged += attributes.count("=") + attributes.count(" ")
            self.steps += self.merged
        elif tag not in _VOID:
            self._start(tag, attributes)
        self.steps += self.depth
        # The parser compares a tag's attributes with one another.
        if len(attributes) > 2000:
            self.steps += 2 * len(_ATTRIBUTE.findall(attributes)) ** 2

    def _start(self, tag: str, attributes: str) -> None:
        scope = self.scope
        if attributes.endswith("/") and (scope.open["svg"] or scope.open["math"]) and tag not in _SPECIAL:
            return
        if tag in _ENDS_P and scope.open["p"]:
            self._pop_to("p")
        if tag in _ENDS_SIBLING:
            self._end_sibling(_ENDS_SIBLING[tag])
        elif tag == "option" and scope.stack and scope.stack[-1] == tag:
            self._pop(1)
        elif tag == "a" and scope.open["a"]:
            self._end_ordinary(tag)
        block = tag in _ENDS_P
        if scope.waiting and not block:
            self._reopen()
        if tag in _FORMATTING:
            self._activate(tag, attributes)
        if tag in _WALLS:
            self._enter(tag)
        else:
            self._push(tag)
        if scope.waiting and block:
            self._reopen()

    def _end(self, tag: str) -> None:
        if tag in _WALLS or tag == "table" or tag in _TABLE_PARTS:
            self._end_scope(tag)
            return
        scope = self.scope
        if tag in _FORMATTING and scope.active[tag]:
            scope.kinds[scope.active[tag].pop()] -= 1
        if not scope.open[tag]:
            return
        if scope.stack[-1] == tag:
            scope.stack.pop()
            scope.open[tag] -= 1
            self.depth -= 1
        elif tag in _SPECIAL:
            self._pop_to(tag)
        else:
            self._end_ordinary(tag)

    def _end_ordinary(self, tag: str) -> None:
        """Handle an end tag that cannot close a block in between; a formatting element alone is removed."""
        scope = self.scope
        for back, name in enumerate(reversed(scope.stack), 1):
            self.steps += _WALK
            if name == tag:
                self._pop(back)
                return
            if name in _SPECIAL:
                break
        if tag in _FORMATTING or tag == "a":
            self.steps += len(scope.stack)
            del scope.stack[len(scope.stack) - 1 - scope.stack[::-1].index(tag)]
            scope.open[tag] -= 1
            self.depth -= 1

    def _end_sibling(self, names: tuple[str, ...]) -> None:
        """Close the previous sibling: `<li>` ends an open `<li>`, unless a list was opened in between."""
        for back, name in enumerate(reversed(self.scope.stack), 1):
            self.steps += _WALK
            if name in names:
                self._pop(back)
                return
            if name in _SPECIAL and name not in ("address", "div", "p"):
                return

    def _table_part(self, tag: str) -> None:
        if tag == "table":
            if self.scope.open["p"]:
                self._pop_to("p")
            self._enter(tag)
            return
        if self.scope.wall in _CELLS:
            self._leave(1)
        if tag in _CELLS and self.scope.wall == "table":
            self._enter(tag)

    def _end_scope(self, tag: str) -> None:
        """Leave a scope; `</table>` also ends the cell around it."""
        if self.scope.wall == tag or (self.scope.wall in _CELLS and tag in _TABLE_PARTS - _CELLS):
            self._leave(1)
        elif tag == "table" and self.scope.wall in _CELLS:
            self._leave(2)

    def _enter(self, wall: str) -> None:
        self.scope = _Scope(wall)
        self.scopes.append(self.scope)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def _leave(self, count: int) -> None:
        for _ in range(count):
            self.depth -= len(self.scopes.pop().stack) + 1
        self.scope = self.scopes[-1]

    def _push(self, tag: str) -> None:
        self.scope.stack.append(tag)
        self.scope.open[tag] += 1
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def _pop_to(self, tag: str) -> None:
        back = 1
        while self.scope.stack[-back] != tag:
            back += 1
        self._pop(back)

    def _pop(self, count: int) -> None:
        scope = self.scope
        for _ in range(count):
            name = scope.stack.pop()
            scope.open[name] -= 1
            if name in _FORMATTING and scope.active[name]:
                scope.waiting[name] = scope.waiting.get(name, 0) + 1
        self.depth -= count

    def _activate(self, tag: str, attributes: str) -> None:
        kind = tag + attributes
        if self.scope.kinds[kind] < 3:
            self.scope.kinds[kind] += 1
            self.scope.active[tag].append(kind)

    def _reopen(self) -> None:
        for tag, closed in self.scope.waiting.items():
            count = min(closed, len(self.scope.active[tag]))
            self.steps += _REOPENED * count
            for _ in range(count):
                self._push(tag)
        self.scope.waiting.clear()
