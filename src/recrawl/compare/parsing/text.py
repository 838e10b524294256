"""The text of a page without its markup (spec C1).

`visible` is the hot path. It puts a space wherever an element begins or ends, so that
`<li>a</li><li>b</li>` is two words; `a<b>b</b>` becomes two words as well, in every version alike, which is harmless
for a digest. The lines for people are rendered from the content tree (`compare.tree`), which has the same words.

`visible` and `stretches` may change the tree: read links first.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from turbohtml import Document, Element, Text

from recrawl.compare.noise.filters import NO_NOISE, Noise

_HIDDEN = "script,style,noscript"
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "img", "input", "ins", "kbd", "label", "mark", "nobr", "output", "picture", "q", "rb", "rp", "rt", "ruby", "s",
    "samp", "small", "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
))  # fmt: skip
"""Elements within a text: where they begin or end, no line ends."""
_INLINE = ",".join(sorted(INLINE))
BREAK = "\x1e"
"""Separates the stretches of a text."""
_TITLE_CHARACTERS = 300
_LONG = 1_000
_SPACES = bytes(ord(" ") if code < 128 and chr(code).isspace() else code for code in range(256))
_RARE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def visible(tree: Document, noise: Noise = NO_NOISE) -> str:
    """Return the page's text on one line, with white space folded and noise removed.

    >>> from recrawl.compare.parsing.document import parse
    >>> visible(parse("<ul><li>one<li>two</ul><script>three()</script>"))
    'one two'
    """
    root = visible_root(tree, noise)
    return erased(fold(" ".join(root.strings)), noise) if root is not None else ""


def folded_lines(parts: Iterable[str], noise: Noise) -> list[str]:
    """Return stretches with folded white space, without empty ones and noise patterns."""
    found = [line for line in map(fold, parts) if line]
    if noise.patterns:
        left = noise.erase("\n".join(found))
        found = [line for line in map(fold, left.split("\n")) if line]
    return found


def said(tree: Document, noise: Noise, most: int) -> str:
    """Return the first `most` characters of the page's text, one line for each piece of it between two tags."""
    root = visible_root(tree, noise)
    lines = "\n".join(map(str.strip, root.strings)) if root is not None else ""
    return (noise.erase(lines) if noise.patterns else lines)[:most]


def stretches(tree: Document, noise: Noise = NO_NOISE) -> list[str]:
    """Return the text as it is written, one part for each stretch without a block element or line break."""
    root = visible_root(tree, noise)
    if root is None:
        return []
    root.strip_tags(_INLINE)
    for node in [node for node in root.descendants if not isinstance(node, Element | Text)]:
        node.extract()
    root.normalize()
    for block in root.select("pre,textarea,listing,xmp"):
        block.replace_with(Text(BREAK + BREAK.join(block.strings).replace("\n", BREAK) + BREAK))
    return BREAK.join(root.strings).split(BREAK)


def plain(text: str, noise: Noise = NO_NOISE) -> str:
    """Return the text of a document that is not HTML (plain text, JSON, XML): folded, noise patterns removed."""
    return erased(fold(text), noise)


def title(tree: Document) -> str:
    """Return the page's title, at most 300 characters; empty if it has none."""
    head = tree.find("head")
    inside = head.select_one("title") if head is not None else None
    node = inside or tree.select_one("body > title")
    return fold(node.text[: 10 * _TITLE_CHARACTERS])[:_TITLE_CHARACTERS].rstrip() if node is not None else ""


def visible_root(tree: Document, noise: Noise) -> Element | None:
    """Return the root of the visible text, after removing hidden elements and noise."""
    if noise.selectors:
        noise.prune(tree)
    root = tree.find("body") or tree.find("frameset")
    if root is not None:
        root.remove(_HIDDEN)
    return root


def fold(text: str) -> str:
    """The text with one space for each stretch of white space, as `" ".join(text.split())` has it.

    That makes a string of each word; this finds the spaces of a long text in a fraction of the time.
    """
    if len(text) < _LONG:
        return " ".join(text.split())
    if not text.isascii():
        for space in _RARE_SPACES:
            if space in text:
                text = text.replace(space, " ")
    codes = np.frombuffer(b" %b " % text.encode("utf-8", "surrogatepass").translate(_SPACES), np.uint8)
    space_at = codes == ord(" ")
    folded: bytes = codes[1:][~(space_at[1:] & space_at[:-1])].tobytes()
    return folded.decode("utf-8", "surrogatepass").rstrip(" ")


def erased(text: str, noise: Noise) -> str:
    """A folded text without noise patterns."""
    return fold(noise.erase(text)) if noise.patterns else text
