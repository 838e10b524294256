"""The stretches of a page's text, and where elements begin and end that tell frame from content.

The tree is written as HTML and cut at the tags. What the parser writes is regular: every element ends, comments aside
`<` and `>` stand for tags alone, and values are in double quotes. Elements within a text (`a`, `b`, `span` ...) do not
end a stretch; all others do. The versions of a page have most of that HTML in common, and it is read once.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from turbohtml import Document, Element, Text

from recrawl.compare.common_ends import common_ends
from recrawl.compare.parsing.text import BREAK, INLINE

_FRAME_NAME = (
    "nav", "navbar", "navigation", "menu", "footer", "sidebar", "breadcrumb", "breadcrumbs", "related", "recent", "toc",
    "pagination", "pager", "header", "masthead", "topbar", "banner", "social", "share", "copyright", "cookie", "widget",
)  # fmt: skip
_FRAME_CLASS = re.compile(rf"(?:^|[\s_-])(?:{'|'.join(_FRAME_NAME)})(?:$|[\s_-]|\d)", re.IGNORECASE)
FRAME_TAGS = ("nav", "footer", "aside")
FRAME_ROLES = ("navigation", "contentinfo", "complementary", "banner", "search")
FRAME_ELEMENTS = ",".join([*FRAME_TAGS, *(f"[role={role}]" for role in FRAME_ROLES)])
"""Elements that belong to the frame of a site on any page, as a selector."""
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_NEVER_FRAME = frozenset(("html", "body", "main", "article", *_HEADINGS))
_BY_LINE = frozenset(("pre", "textarea", "listing"))
"""Elements in which a new line ends a stretch."""
_RAW = frozenset(("iframe", "xmp", "noembed", "noframes", "plaintext", "template"))
"""Elements whose contents are not written as other texts are."""
_VOID = frozenset((
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
    "meta", "param", "source", "track", "wbr",
))  # fmt: skip
_MAX_NAMED = 2_000
"""Classes and ids that are examined; a page with more is judged by these."""
_CACHED_LENGTH = 200
_TAG = re.compile(r"<(!--.*?--|[^>]*)>", re.DOTALL)
_ATTRIBUTE = re.compile(r' ([^ ]*?)="([^"]*)"')
_SOUGHT = re.compile(r' (?:class|id|role)="')
_ENDS = ("</p>", "</li>", "</div>", "</td>")
"""Tags at which the common ends of two versions may be cut off."""
_NEAR = 1_000
"""Characters in which such a tag is looked for."""
ELEMENT, NAMED, HEADING, OWN = ("\x01", "\x02"), ("\x03", "\x04"), ("\x05", "\x06"), ("\x07", "\x08")
"""Marks in the text where an element begins and ends: frame by its tag, by its class or id, a heading, content."""


class RawTextFound(Exception):
    """The page has elements that must be replaced (`replace_raw`) before its HTML is cut."""


class _Element(NamedTuple):
    """An element that is more than a break: its name, and what stands in the text for its start and its end."""

    name: str
    start: str
    end: str
    by_line: bool


_Kind = str | _Element
"""What stands for a tag: nothing, a break, or an element with marks."""


class Scanner:
    """Cuts the HTML of a page into stretches, piece by piece. Between two pieces there is a tag that ends a stretch."""

    def __init__(self, left: int) -> None:
        self._opened: list[tuple[_Element, int]] = []
        """Elements that have not ended, and how many others of the same name have not ended within each."""
        self._left = left
        """Classes and ids that may still be examined; negative if the page cannot reach the limit."""

    def copy(self) -> Scanner:
        """A scanner in the same state."""
        other = Scanner(self._left)
        other._opened = self._opened.copy()
        return other

    def same(self, other: Scanner) -> bool:
        """Whether both would read the next piece alike."""
        return (self._opened, self._left) == (other._opened, other._left)

    def parts(self, piece: str) -> list[str]:
        """The stretches of a piece, without white space around them, and the marks; raises `RawTextFound`."""
        tokens = _TAG.split(piece)
        tags = tokens[1::2]
        kinds: list[_Kind] = [_kind(tag) if len(tag) < _CACHED_LENGTH else _kind_of(tag) for tag in tags]
        if self._left >= 0:
            kinds = [self._limited(tag, kind) for tag, kind in zip(tags, kinds, strict=True)]
        tokens[1::2] = kinds
        if self._opened or not _PLAIN.issuperset(kinds):
            self._mark(tokens, tags, kinds)
        text = "".join(tokens)
        return list(filter(None, map(str.strip, (html.unescape(text) if "&" in text else text).split(BREAK))))

    def _limited(self, tag: str, kind: _Kind) -> _Kind:
        """The kind of a tag whose class and id may be beyond the limit."""
        if not self._left:
            return _kind_of(tag, by_name=False)
        self._left = max(0, self._left - _names(tag))
        return kind

    def _mark(self, tokens: list[Any], tags: list[str], kinds: list[_Kind]) -> None:
        """Put marks where elements begin and end, and breaks into those that are read by line."""
        opened, self._opened = self._opened, []
        begun = [(-1, *element) for element in opened]
        begun += [(place, kind, 0) for place, kind in enumerate(kinds) if kind.__class__ is _Element]
        for place, element, nested in begun:
            end, nested = _find_end(tags, element.name, place + 1, nested)  # noqa: PLW2901
            if place >= 0:
                tokens[2 * place + 1] = element.start
            if end < len(tags):
                tokens[2 * end + 1] = element.end
            else:
                self._opened.append((element, nested))
            if element.by_line:
                texts = slice(2 * place + 2, 2 * end + 1, 2)
                tokens[texts] = [text.replace("\n", BREAK) for text in tokens[texts]]


def _find_end(tags: list[str], name: str, start: int, nested: int) -> tuple[int, int]:
    """Where an element ends, and how many others of its name have not ended within it: none, unless it ends later."""
    try:
        while True:
            end = tags.index(f"/{name}", start)
            nested += _count(tags[start:end], name) - 1
            if nested < 0:
                return end, 0
            start = end + 1
    except ValueError:
        return len(tags), nested + _count(tags[start:], name)


def _count(tags: list[str], name: str) -> int:
    return tags.count(name) + sum(map(str.startswith, tags, repeat(f"{name} ")))


def _kind_of(tag: str, *, by_name: bool = True) -> _Kind:
    """What stands for a tag, given without its brackets; by the class and id of its element only if `by_name`."""
    name = tag.partition(" ")[0]
    plain = "" if name.removeprefix("/") in INLINE else BREAK
    if name in _RAW:
        raise RawTextFound
    if name[:1] in "!?":
        return ""  # between two texts of one line, as scripts write them
    if name[:1] == "/" or name in _VOID:
        return plain
    said = dict(reversed(_ATTRIBUTE.findall(tag))) if _SOUGHT.search(tag) else {}
    kinds = [HEADING] if name in _HEADINGS else []
    if name in FRAME_TAGS or said.get("role") in FRAME_ROLES:
        kinds.append(ELEMENT)
    if by_name and name not in _NEVER_FRAME and _names_frame(said.get("class", ""), said.get("id", "")):
        kinds.append(NAMED)
    if not kinds and name not in _BY_LINE:
        return plain
    start, end = (BREAK.join(["", *(kind[at] for kind in kinds), ""]) or BREAK for at in (0, 1))
    return _Element(name, start, end, name in _BY_LINE)


_kind = lru_cache(maxsize=16_384)(_kind_of)
_PLAIN = frozenset(("", BREAK))


def _names(tag: str) -> int:
    return sum(name in ("class", "id") for name, _ in _ATTRIBUTE.findall(tag))


@lru_cache(maxsize=4_096)
def _names_frame(classes: str, identity: str) -> bool:
    """Whether a class or the id of an element is a name of the frame; cached, because most elements share theirs."""
    return _FRAME_CLASS.search(html.unescape(f"{classes} {identity}")) is not None


def body_html(tree: Document) -> tuple[str, int]:
    """The contents of the body as HTML, and how many of its classes and ids are examined; negative if
    it has no more than that."""
    body = tree.find("body")
    tag, _, written = (body.html if body is not None else "").partition(">")
    many = len(written) > 6 * _MAX_NAMED and written.count("<") >= _MAX_NAMED // 2
    many = many and written.count(' class="') + written.count(' id="') >= _MAX_NAMED - 2
    return written.removesuffix("</body>"), _MAX_NAMED - _names(tag) if many else -1


def replace_raw(tree: Document) -> None:
    """Replace elements whose contents are written unescaped, or not part of the text, by others with the same text."""
    for node in tree.select(",".join(_RAW)):
        named = {name: node.attr(name) for name in ("class", "id", "role") if name in node.attrs}
        node.replace_with(Element("pre" if node.tag == "xmp" else "div", named, [Text(node.text)]))


def common_pieces(old: str, new: str) -> tuple[str, str, str, str]:
    """Cut two versions into their common start, what differs of each, and their common end, beside tags.

    >>> common_pieces("<p>a</p><p>b</p><p>c</p>", "<p>a</p><p>B</p><p>c</p>")
    ('<p>a</p>', '<p>b', '<p>B', '</p><p>c</p>')
    """
    start, end = common_ends(old, new)
    ends = [at + len(tag) for tag in _ENDS if (at := old.rfind(tag, max(0, start - _NEAR), start)) >= 0]
    begin = len(old) - end
    begins = [at for tag in _ENDS if (at := old.find(tag, begin, begin + _NEAR)) >= 0]
    cut, rest = max(ends, default=0), min(begins, default=len(old))
    if "<!--" in old:
        rest = len(old) if _in_comment(old, rest) else rest
        cut = 0 if _in_comment(old, cut) else cut
    tail = len(old) - rest
    return old[:cut], old[cut : len(old) - tail], new[cut : len(new) - tail], old[len(old) - tail :]


def _in_comment(written: str, place: int) -> bool:
    return written.rfind("<!--", 0, place) > written.rfind("-->", 0, place)
