"""The content tree of a page: its blocks in order, each with its inline content and its place.

A block is a leaf: a heading, a paragraph, code, a table, a control. What encloses it (quotes, list items, captions) are
its containers, shared by the blocks that they hold, so that any selection of blocks can be rendered. The elements
around it tell what the page's makers call its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from turbohtml import Element

_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NAMES = ("class", "id", "itemprop", "itemtype", "aria-label", "data-testid")
_MAX_NAMES = 300

STRONG, EMPHASIS, CODE, STRUCK = 1, 2, 4, 8
"""Styles of a span; they can be added up."""

CONTENT, FRAME = "recrawl content", "recrawl frame"
"""Attributes of elements that the user calls content or frame. No page can have them: their names have a space."""


class BlockKind(StrEnum):
    """What a block is."""

    HEADING = "heading"
    TEXT = "text"
    CODE = "code"
    TABLE = "table"
    CONTROL = "control"
    """A button, a label or another part of a form."""
    OTHER = "other"
    """Text of the page that no reader reads: options of a menu, names of drawings, what stands in for a film."""


class ContainerKind(StrEnum):
    """What encloses blocks."""

    LIST = "list"
    ITEM = "item"
    QUOTE = "quote"
    CAPTION = "caption"
    TERM = "term"
    DEFINITION = "definition"
    CELL = "cell"
    FORM = "form"


class Span(NamedTuple):
    """A piece of a block with the same style, link and image."""

    text: str
    """For an image, its alternative text. A line break is a new line."""
    style: int = 0
    link: str = ""
    """The absolute URL to which it leads."""
    image: str = ""
    """The absolute URL of an image."""


@dataclass(slots=True, eq=False)
class Container:
    """Encloses blocks; equal only to itself."""

    kind: ContainerKind
    number: int = 0
    """Of an item in an ordered list; 0 in others. Of a cell, its column."""
    row: int = 0
    header: bool = False
    """Whether a cell is a header."""


class Ancestor:
    """An element around blocks, as its page names it. Its names are read when somebody asks for them."""

    __slots__ = ("_hidden", "_names", "_node", "depth", "parent", "tag")

    def __init__(self, tag: str, parent: Ancestor | None = None, node: Element | None = None) -> None:
        self.tag = tag
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self._node = node
        self._names: str | None = None
        self._hidden: bool | None = None

    @property
    def names(self) -> str:
        """Class, id and other names, in lower case, with spaces around each."""
        if self._names is None:
            say = self._node.attr if self._node is not None else _silent
            parts = [value[:_MAX_NAMES] for key in _NAMES if (value := say(key))]
            self._names = f" {' '.join(parts)} ".lower() if parts else ""
        return self._names

    @property
    def role(self) -> str:
        """Its role, in lower case."""
        return ((self._node.attr("role") if self._node is not None else None) or "").lower()

    @property
    def chosen(self) -> bool | None:
        """Whether the user says that it is content (True) or frame (False), by the innermost element that he names."""
        for one in self.chain():
            if one._node is not None:
                if one._node.attr(CONTENT) is not None:
                    return True
                if one._node.attr(FRAME) is not None:
                    return False
        return None

    @property
    def hidden(self) -> bool:
        """Whether it, or an element around it, is hidden until a script shows it."""
        if self._hidden is None:
            waiting = []
            at: Ancestor | None = self
            while at is not None and at._hidden is None:
                waiting.append(at)
                at = at.parent
            found = at is not None and bool(at._hidden)
            for one in reversed(waiting):
                found = one._hidden = found or one._hides()
        return bool(self._hidden)

    def _hides(self) -> bool:
        if self._node is None:
            return False
        say = self._node.attr
        style = say("style")
        return say("hidden") is not None or say("aria-hidden") == "true" or bool(style and _HIDDEN_STYLE.search(style))

    def chain(self) -> Iterator[Ancestor]:
        """The element and those around it."""
        at: Ancestor | None = self
        while at is not None:
            yield at
            at = at.parent


def _silent(_: str) -> None:
    return None


Row = list[list[Span]]


@dataclass(slots=True, eq=False)
class ContentBlock:
    """A leaf of the tree."""

    kind: BlockKind
    spans: list[Span]
    within: tuple[Container, ...] = ()
    """From the outermost to the innermost."""
    element: Ancestor = field(default_factory=lambda: Ancestor("body"))
    level: int = 0
    """Of a heading, 1 to 6."""
    language: str = ""
    """Of code, where the page names it."""
    rows: list[Row] = field(default_factory=list)
    """Of a table; its first row is the header."""
    main: float = 1.0
    """The probability that it is of the page, not of its frame."""

    @property
    def text(self) -> str:
        """The text without markup; of a table, a line for each row; images have none."""
        if self.kind is BlockKind.TABLE:
            lines = (" ".join(filter(None, map(spans_text, row))) for row in self.rows)
            return "\n".join(filter(None, lines))
        return spans_text(self.spans)


def spans_text(spans: Iterable[Span]) -> str:
    """The text of spans, without that of images."""
    return "".join(span.text for span in spans if not span.image).strip()


@dataclass(slots=True)
class ContentTree:
    """All blocks of a page, in order."""

    blocks: list[ContentBlock]
    title: str = ""
    url: str = ""
    description: str = ""
    stated: str = ""
    """Long texts that its structured data hold."""
    types: frozenset[str] = frozenset()
    """The types of its structured data, in lower case."""
    og_type: str = ""
    has_choice: bool = False
    """Whether the user says of some elements whether they are content."""
