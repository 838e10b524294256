"""The texts of a page: all that it shows, and what stands outside the frame of its site.

The frame is here what the tags and roles of elements say it is. That is what copies of a page are known by: a fraction
of the work of finding the content lines (`compare.content.lines`), and as good for that.
"""

from __future__ import annotations

from typing import NamedTuple

from turbohtml import Document, Element, Text

from recrawl.compare.content.places import FRAME_ROLES, FRAME_TAGS
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing.text import erased, fold, visible_root

_MAYBE_FRAME = ",".join([*FRAME_TAGS, "[role]"])
_MARK = "\0"
"""Where a part of the frame begins or ends: no text has it, since the parser leaves it out."""


class PageTexts(NamedTuple):
    """What a page shows, on one line."""

    visible: str
    """As `compare.parsing.text.visible` has it."""
    own: str
    """Without the frame; patterns of the noise filter are in it."""


def page_texts(tree: Document, noise: Noise = NO_NOISE) -> PageTexts:
    """The texts of a page. Changes the tree: read links first.

    >>> from recrawl.compare.parsing.document import parse
    >>> page_texts(parse("<nav><p>Home</nav><h1>News</h1><p>Welcome, <b>all</b> <footer>(c)"))
    PageTexts(visible='Home News Welcome, all (c)', own='News Welcome, all')
    """
    root = visible_root(tree, noise)
    if root is None:
        return PageTexts("", "")
    marks = _mark_frame(root)
    shown = own = fold(" ".join(root.strings))
    if marks:
        for mark in marks:
            mark.extract()
        parts = [part.strip(" ") for part in shown.split(_MARK)]
        shown, own = (" ".join(filter(None, some)) for some in (parts, parts[::2]))
    return PageTexts(erased(shown, noise), own)


def _mark_frame(root: Element) -> list[Text]:
    """Put marks before and after the elements of the frame that are in no other one; these marks."""
    marks, inside = list[Text](), 0
    for node in _frame_of(root):
        if inside:
            inside -= 1
            continue
        inside = len(_frame_of(node))
        before, after = Text(_MARK), Text(_MARK)
        node.insert_before(before)
        node.insert_after(after)
        marks += before, after
    return marks


def _frame_of(root: Element) -> list[Element]:
    """The elements below another one that belong to the frame: `FRAME_ELEMENTS`, found in half the time."""
    return [node for node in root.select(_MAYBE_FRAME) if node.tag in FRAME_TAGS or node.attr("role") in FRAME_ROLES]
