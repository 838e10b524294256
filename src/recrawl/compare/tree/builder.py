"""Make the content tree of an HTML page, in one pass over its elements.

Nothing is recursive: pages may be nested as deeply as they like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ada_url import join_url
from turbohtml import Document, Element, Text

from recrawl.compare.parsing.text import BREAK, INLINE
from recrawl.compare.tree.blocks import (
    CODE,
    EMPHASIS,
    STRONG,
    STRUCK,
    Ancestor,
    BlockKind,
    Container,
    ContainerKind,
    ContentBlock,
    ContentTree,
    Span,
    spans_text,
)
from recrawl.compare.tree.stated import Statements, statements

_SKIPPED = frozenset(("script", "style", "template", "head", "link", "meta", "noscript"))
_OTHER = frozenset((
    "svg", "iframe", "object", "canvas", "audio", "video", "map", "select", "datalist", "noframes", "noembed", "math",
    "textarea",
))  # fmt: skip
"""Elements whose text is kept, but not read."""
_STYLES = {
    "b": STRONG, "strong": STRONG, "em": EMPHASIS, "i": EMPHASIS, "cite": EMPHASIS, "dfn": EMPHASIS, "var": EMPHASIS,
    "code": CODE, "kbd": CODE, "samp": CODE, "tt": CODE, "del": STRUCK, "s": STRUCK, "strike": STRUCK,
}  # fmt: skip
_CONTAINERS = {
    "ul": ContainerKind.LIST, "ol": ContainerKind.LIST, "menu": ContainerKind.LIST, "dir": ContainerKind.LIST,
    "li": ContainerKind.ITEM, "blockquote": ContainerKind.QUOTE, "figcaption": ContainerKind.CAPTION,
    "caption": ContainerKind.CAPTION, "dt": ContainerKind.TERM, "dd": ContainerKind.DEFINITION,
    "form": ContainerKind.FORM,
}  # fmt: skip
_CONTROLS = frozenset(("button", "option", "legend"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?|highlight(?:-source)?|brush:|sourcecode)[-:\s]\s*([\w+#.-]{1,30})")
_LANGUAGE_NAME = re.compile(r"[\w+#.-]{1,30}")
_CODE = frozenset(("pre", "listing", "xmp"))
_NO_LANGUAGE = frozenset(("none", "plain", "plaintext", "text", "nohighlight", "default", "wrap", "line"))
_FOLD = re.compile(r"\s+")
_LINE_NUMBERS = re.compile(r"[\d\s]*\Z")
_SCHEMES = ("http:", "https:", "mailto:", "ftp:", "tel:")
_MAX_URL = 4_000
_MAX_COLUMNS = 60
_MAX_DEPTH = 300
"""Elements that lie deeper count as parts of the one at this depth."""
_MAX_CONTAINERS = 40
"""Deeper ones are left out."""
_FEW_WORDS = 50


class _Opened(NamedTuple):
    """What the end of an element restores."""

    tag: str
    inside: Iterator[object]
    style: int
    link: str
    inline: bool
    ancestor: Ancestor
    within: tuple[Container, ...]


@dataclass(slots=True)
class _OpenTable:
    """A table that has begun."""

    first: int
    """Number of blocks before it."""
    row: int = -1
    column: int = -1
    """Of the cell that has begun last."""
    nested: bool = False
    """Whether it holds other tables."""


def html_tree(page: Document, url: str = "", said: Statements | None = None) -> ContentTree:
    """The content tree of a page that lies at a URL.

    >>> import turbohtml
    >>> page = turbohtml.parse("<h1>News</h1><p>Rain <a href=/b>and <b>wind</b></a><ul><li>one")
    >>> for block in html_tree(page, "https://example.org/a/").blocks:
    ...     print(block.kind, *map(tuple, block.spans), *(one.kind for one in block.within))
    heading ('News', 0, '', '')
    text ('Rain ', 0, '', '') ('and ', 0, 'https://example.org/b', '') ('wind', 1, 'https://example.org/b', '')
    text ('one', 0, '', '') list item
    """
    said = said or statements(page)
    base = page.select_one("base[href]")
    if base is not None:
        url = resolved(base.attr("href") or "", url) or url
    title = page.select_one("title")
    root = page.select_one("body") or page.select_one("frameset")
    builder = _Builder(url)
    if root is not None:
        builder.read(root, _SKIPPED - {"noscript"} if _fallback(root) else _SKIPPED)
    name = " ".join(title.text[:2000].split()) if title is not None else ""
    description = said.meta.get("og:description") or said.meta.get("description") or ""
    return ContentTree(
        builder.blocks, name, url, description, said.texts, said.types, said.meta.get("og:type", "").lower()
    )


def resolved(link: str, base: str) -> str:
    """The absolute URL of a link that may be followed; empty for `javascript:` and the like.

    >>> resolved("../b", "https://example.org/a/"), resolved(" JavaScript:alert(1)", "https://example.org/")
    ('https://example.org/b', '')
    """
    link = link.strip()
    if not link or len(link) > _MAX_URL:
        return ""
    try:
        absolute = join_url(base, link) if base else link
    except ValueError:
        return ""
    return absolute if absolute.lower().startswith(_SCHEMES) and len(absolute) <= _MAX_URL else ""


def _fallback(root: Element) -> bool:
    """Whether most of the page is in `noscript`: what it shows to those who run no scripts."""
    inside = sum(len(node.text.split()) for node in root.iter_elements("noscript"))
    if inside < _FEW_WORDS:
        return False
    scripts = sum(len(node.text.split()) for node in root.iter_elements(["script", "style", "template"]))
    return 3 * inside > 2 * (len(root.text.split()) - scripts)


class _Builder:
    def __init__(self, url: str) -> None:
        self.blocks: list[ContentBlock] = []
        self._url = url
        self._spans: list[Span] = []
        self._style = 0
        self._link = ""
        self._within: tuple[Container, ...] = ()
        self._at = Ancestor("body")
        self._heading = 0
        self._control = False
        self._numbers: list[int] = []
        """The number of the last item of each ordered list that has begun; -1 for unordered ones."""
        self._tables: list[_OpenTable] = []
        self._known: dict[str | None, str] = {None: "", "": ""}
        """Links that were resolved: those of menus repeat."""

    def read(self, root: Element, skipped: frozenset[str]) -> None:
        """Read an element and everything in it, without elements of the skipped tags."""
        opened = [_Opened("", iter(root), 0, "", False, self._at, ())]
        inside = opened[-1].inside
        while True:
            node = next(inside, None)
            if node is None:
                ended = opened.pop()
                self._end(ended)
                if not opened:
                    return
                inside = opened[-1].inside
            elif isinstance(node, Text):
                if (text := node.data) and (self._spans or not text.isspace()):
                    self._spans.append(Span(text if text != "\n" else " ", self._style, self._link))  # "\n" is a `<br>`
            elif isinstance(node, Element) and (tag := node.tag) not in skipped:
                if tag in _OTHER:
                    self._other(node, tag)
                else:
                    self._begin(node, tag, opened)
                    inside = opened[-1].inside

    def _begin(self, node: Element, tag: str, opened: list[_Opened]) -> None:
        """Begin an element."""
        if tag == "br":
            self._spans.append(Span("\n", self._style, self._link))
        elif tag in _CODE:
            self._code(node)
        elif tag == "hr":
            self._flush()
        elif tag == "img":
            self._image(node)
        elif tag == "input":
            value = node.attr("value")
            if value and node.attr("type") in ("submit", "button", "reset"):
                self._flush()
                outer, self._at = self._at, _ancestor(node, tag, self._at)
                self._add(BlockKind.CONTROL, [Span(" ".join(value.split()))])
                self._at = outer
        else:
            inline = tag in INLINE
            opened.append(_Opened(tag, iter(node), self._style, self._link, inline, self._at, self._within))
            if inline:
                self._at = _ancestor(node, tag, self._at)
                self._style |= _STYLES.get(tag, 0)
                if tag == "a":
                    self._link = self._resolved(node.attr("href"))
            else:
                self._flush()
                self._at = _ancestor(node, tag, self._at)
                self._open_block(node, tag)

    def _open_block(self, node: Element, tag: str) -> None:
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag in _CONTROLS:
            self._control = True
        elif tag == "table":
            for table in self._tables[-1:]:
                table.nested = True
            self._tables.append(_OpenTable(len(self.blocks)))
        elif tag == "tr" and self._tables:
            self._tables[-1].row += 1
            self._tables[-1].column = -1
        elif tag in ("td", "th") and self._tables and len(self._within) < _MAX_CONTAINERS:
            table = self._tables[-1]
            table.column += 1
            self._within = (*self._within, Container(ContainerKind.CELL, table.column, table.row, tag == "th"))
        elif kind := _CONTAINERS.get(tag):
            if kind is ContainerKind.LIST:
                self._numbers.append(_number(node.attr("start"), 1) - 1 if tag == "ol" else -1)
            number = 0
            if kind is ContainerKind.ITEM and self._numbers and self._numbers[-1] >= 0:
                number = self._numbers[-1] = self._numbers[-1] + 1
            if len(self._within) < _MAX_CONTAINERS:
                self._within = (*self._within, Container(kind, number))

    def _end(self, element: _Opened) -> None:
        tag = element.tag
        if not element.inline:
            self._flush()
            if tag in _HEADINGS:
                self._heading = 0
            elif tag in _CONTROLS:
                self._control = False
            elif tag == "table" and self._tables:
                self._close_table(self._tables.pop())
            elif _CONTAINERS.get(tag) is ContainerKind.LIST and self._numbers:
                self._numbers.pop()
        self._style, self._link, self._at, self._within = element.style, element.link, element.ancestor, element.within

    def _flush(self) -> None:
        """End the block that has been collected."""
        if not self._spans:
            return
        spans, self._spans = self._spans, []
        for part in _paragraph(spans[0]) if len(spans) == 1 else _paragraphs(spans):
            if self._control:
                self._add(BlockKind.CONTROL, part)
            elif self._heading and spans_text(part):
                self._add(BlockKind.HEADING, part, self._heading)
            else:
                self._add(BlockKind.TEXT, part)

    def _add(self, kind: BlockKind, spans: list[Span], level: int = 0, language: str = "") -> None:
        self.blocks.append(ContentBlock(kind, spans, self._within, self._at, level, language))

    def _resolved(self, link: str | None) -> str:
        found = self._known.get(link)
        if found is None:
            found = self._known[link] = resolved(link or "", self._url)
        return found

    def _other(self, node: Element, tag: str) -> None:
        """Keep the text of an element that nobody reads."""
        self._flush()
        outer, self._at = self._at, _ancestor(node, tag, self._at)
        for text in _verbatim(node, end := "\n" if tag == "textarea" else BREAK).split(end):
            if folded := " ".join(text.split()):
                self._add(BlockKind.OTHER, [Span(folded)])
        self._at = outer

    def _image(self, node: Element) -> None:
        source = self._resolved(node.attr("src")) or self._resolved(node.attr("data-src"))
        if source.startswith(("http:", "https:")):
            self._spans.append(Span(" ".join((node.attr("alt") or "").split()), 0, self._link, source))

    def _code(self, node: Element) -> None:
        """Code is kept as it is written; line numbers beside it are not part of it."""
        self._flush()
        outer, self._at = self._at, _ancestor(node, node.tag, self._at)
        lines = _verbatim(node).strip("\n").rstrip()
        if lines and not (_LINE_NUMBERS.match(lines) and "\n" in lines):
            self._add(BlockKind.CODE, [Span(lines)], language=_code_language(node))
        else:
            for line in lines.split():
                self._add(BlockKind.OTHER, [Span(line)])
        self._at = outer

    def _close_table(self, table: _OpenTable) -> None:
        """Make one block of the blocks of a table that holds data."""
        if table.nested:
            return
        blocks = self.blocks[table.first :]
        depth = len(self._within)
        rows: dict[int, dict[int, list[Span]]] = {}
        header = False
        for block in blocks:
            cell = block.within[depth] if len(block.within) > depth else None
            plain = block.kind in (BlockKind.TEXT, BlockKind.HEADING, BlockKind.CONTROL)
            if cell is None or cell.kind is not ContainerKind.CELL or not plain or len(block.within) > depth + 1:
                if block.within[depth:] and block.within[depth].kind is ContainerKind.CAPTION:
                    continue
                return
            spans = rows.setdefault(cell.row, {}).setdefault(cell.number, [])
            if spans and (spans_text(spans) or spans_text(block.spans)):
                spans.append(Span("\n"))
            spans += block.spans
            header = header or cell.header
        width = max((max(row) for row in rows.values()), default=0) + 1
        if len(rows) < 2 or not 2 <= width <= _MAX_COLUMNS:
            return
        longest = max((len(spans_text(cell)) for row in rows.values() for cell in row.values()), default=0)
        if longest > 2_000 or (not header and longest > 400):
            return
        captions = [block for block in blocks if block.within[depth].kind is ContainerKind.CAPTION]
        made = [[rows[row].get(column, []) for column in range(width)] for row in sorted(rows)]
        first = next(block for block in blocks if block not in captions)
        grid = ContentBlock(BlockKind.TABLE, [], self._within, first.element, rows=made)
        self.blocks[table.first :] = [*captions, grid]


def _ancestor(node: Element, tag: str, parent: Ancestor) -> Ancestor:
    return parent if parent.depth >= _MAX_DEPTH else Ancestor(tag, parent, node)


def _paragraph(span: Span) -> Iterator[list[Span]]:
    """The same of a single span, as most blocks have it."""
    if text := " ".join(span.text.split()):
        yield [Span(text, span.style, span.link, span.image)]
    elif span.image:
        yield [span]


def _paragraphs(spans: list[Span]) -> Iterator[list[Span]]:
    """The spans with folded white space, cut where two line breaks follow each other; empty parts left out."""
    part: list[Span] = []
    space = True
    breaks = 0
    for span in spans:
        if span.image:
            if breaks and part:
                part.append(Span("\n"))
            part.append(span)
            space, breaks = False, 0
            continue
        if span.text == "\n":
            breaks += 1
            if breaks == 2:
                if trimmed := _trimmed(part):
                    yield trimmed
                part = []
            space = True
            continue
        text = _FOLD.sub(" ", span.text)
        if space or breaks:
            text = text.lstrip(" ")
        if not text:
            continue
        if breaks == 1 and part:
            part[-1] = part[-1] if part[-1].image else part[-1]._replace(text=part[-1].text.rstrip(" "))
            part.append(Span("\n"))
        breaks = 0
        space = text.endswith(" ")
        if part and part[-1].style == span.style and part[-1].link == span.link and not part[-1].image:
            part[-1] = part[-1]._replace(text=part[-1].text + text)
        else:
            part.append(Span(text, span.style, span.link))
    if trimmed := _trimmed(part):
        yield trimmed


def _trimmed(part: list[Span]) -> list[Span]:
    while part and not part[-1].image and not part[-1].text.strip():
        part.pop()
    if part and not part[-1].image:
        part[-1] = part[-1]._replace(text=part[-1].text.rstrip())
    while part and not part[0].image and not part[0].text.strip():
        part.pop(0)
    if part and not part[0].image:
        part[0] = part[0]._replace(text=part[0].text.lstrip())
    return part


def _verbatim(node: Element, end: str = "\n") -> str:
    """The text of an element as it is written; elements that are no part of a line begin and end one."""
    pieces = [""]
    waiting: list[object] = [*node][::-1]
    while waiting:
        inner = waiting.pop()
        if inner is None:
            if not pieces[-1].endswith(end):
                pieces.append(end)
        elif isinstance(inner, Text):
            if inner.data:
                pieces.append(inner.data)
        elif isinstance(inner, Element):
            if inner.tag == "br":
                pieces.append(end)
            elif inner.tag in INLINE:
                waiting += list(inner)[::-1]
            elif inner.tag not in _SKIPPED or inner.tag == "template":  # only drawings still have any
                waiting += [None, *list(inner)[::-1], None]
    return "".join(pieces)


def _code_language(node: Element) -> str:
    """The language that the element, what it holds or what holds it names."""
    above = node.parent
    near = [node, next(iter(node), None), above, above.parent if above is not None else None]
    for one in near:
        if not isinstance(one, Element):
            continue
        named = one.attr("data-lang") or one.attr("data-language") or ""
        found = _LANGUAGE.search(one.attr("class") or "")
        language = (named or (found[1] if found else "")).lower()
        if language not in _NO_LANGUAGE and _LANGUAGE_NAME.fullmatch(language):
            return language
    return ""


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
