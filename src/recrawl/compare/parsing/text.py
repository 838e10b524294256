"""The text of a page without its markup (spec C1).

`visible` is the hot path, one walk in C. It puts a space wherever an element begins or ends, so that
`<li>a</li><li>b</li>` is two words; `a<b>b</b>` becomes two words as well, in every version alike, which is harmless
for a digest. `lines` is for people: slower, and right in both cases.

`visible` and `lines` may change the tree: read links first.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.compare.noise.filters import NO_NOISE, Noise, remove

# The content of a <template> is not part of the tree.
_HIDDEN = ("script", "style", "noscript")
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "label", "mark", "nobr", "output", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var",
))  # fmt: skip
"""Elements within a text: where they begin or end, no line ends."""
BREAK = "\x1e"
"""Separates the lines of a text on the way through `lines`."""
_TITLE_CHARACTERS = 300
_LONG = 1_000
_SPACES = bytes(ord(" ") if code < 128 and chr(code).isspace() else code for code in range(256))
_RARE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def visible(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> str:
    """Return the page's text on one line, with white space folded and noise removed.

    >>> visible(LexborHTMLParser("<ul><li>one<li>two</ul><script>three()</script>"))
    'one two'
    """
    root = visible_root(tree, noise)
    return _folded(root.text(separator=" ", skip_empty=True), noise) if root is not None else ""


def lines(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> list[str]:
    """Return the same text, one line for each stretch without a block element or line break.

    >>> lines(LexborHTMLParser("<p>one<b>self</b>, two<p>three<br>four"))
    ['oneself, two', 'three', 'four']
    """
    return folded_lines(stretches(tree, noise), noise)


def folded_lines(parts: Iterable[str], noise: Noise) -> list[str]:
    """Return stretches with folded white space, without empty ones and noise patterns."""
    found = [line for line in map(_fold, parts) if line]
    if noise.patterns:
        erased = noise.erase("\n".join(found))
        found = [line for line in map(_fold, erased.split("\n")) if line]
    return found


def stretches(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> list[str]:
    """Return the text of `lines` as written: with its white space, empty lines and noise patterns."""
    root = visible_root(tree, noise)
    if root is None:
        return []
    for node in [node for node in root.traverse() if node.tag in INLINE]:  # a walk for each tag takes twice as long
        node.unwrap(delete_empty=True)
    root.merge_text_nodes()
    for block in root.css("pre,textarea,listing"):
        block.replace_with(BREAK + block.text(separator=BREAK).replace("\n", BREAK) + BREAK)
    return root.text(separator=BREAK).split(BREAK)


def plain(text: str, noise: Noise = NO_NOISE) -> str:
    """Return the text of a document that is not HTML (plain text, JSON, XML): folded, noise patterns removed."""
    return _folded(text, noise)


def title(tree: LexborHTMLParser) -> str:
    """Return the page's title, at most 300 characters; empty if it has none."""
    # In most pages it is among the first elements of the head; a selector would walk the whole page.
    inside = tree.head.iter() if tree.head is not None else ()
    node = next((child for child in inside if child.tag == "title"), None) or tree.css_first("body > title")
    return _fold(node.text()[: 10 * _TITLE_CHARACTERS])[:_TITLE_CHARACTERS].rstrip() if node is not None else ""


def visible_root(tree: LexborHTMLParser, noise: Noise) -> LexborNode | None:
    """Return the root of the visible text, after removing hidden elements and noise."""
    if noise.selectors:
        noise.prune(tree)
    root = tree.body or tree.css_first("frameset")
    if root is not None:
        for tag in _HIDDEN:  # three walks by tag take half the time of one by selector
            remove(tree.tags(tag))
    return root


def _fold(text: str) -> str:
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


def _folded(text: str, noise: Noise) -> str:
    text = _fold(text)
    return _fold(noise.erase(text)) if noise.patterns else text
