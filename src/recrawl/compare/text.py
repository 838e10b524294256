"""The text of a page: what is left when the markup is stripped (spec C1).

`visible` is the hot path, one walk in C. It parts the text wherever an element begins or ends, so that
`<li>a</li><li>b</li>` is two words; `a<b>b</b>` becomes two as well, in every version alike, which is
cheap and harmless for a digest. `lines` is for people and takes the time to get both right.

All three functions may change the tree: read links first.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.compare.noise.filters import NO_NOISE, Noise, remove

# What a <template> holds is not in the tree that is walked.
_HIDDEN = ("script", "style", "noscript")
_INLINE = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins", "kbd", "label", "mark", "nobr", "output", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var",
]  # fmt: skip
_PART = "\x1e"
_TITLE_CHARACTERS = 300


def visible(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> str:
    """The page's text on one line, white space folded, noise taken out.

    >>> visible(LexborHTMLParser("<ul><li>one<li>two</ul><script>three()</script>"))
    'one two'
    """
    root = _bared(tree, noise)
    return _folded(root.text(separator=" "), noise) if root is not None else ""


def lines(tree: LexborHTMLParser, noise: Noise = NO_NOISE) -> list[str]:
    """The same text, one line for each stretch that no block element or line break interrupts.

    >>> lines(LexborHTMLParser("<p>one<b>self</b>, two<p>three<br>four"))
    ['oneself, two', 'three', 'four']
    """
    root = _bared(tree, noise)
    if root is None:
        return []
    root.unwrap_tags(_INLINE, delete_empty=True)
    root.merge_text_nodes()
    for block in root.css("pre,textarea,listing"):
        block.replace_with(_PART + block.text(separator=_PART).replace("\n", _PART) + _PART)
    parts = root.text(separator=_PART).split(_PART)
    return _kept("\n".join(filter(None, map(_fold, parts))), noise)


def plain(text: str, noise: Noise = NO_NOISE) -> str:
    """The text of what is not HTML (plain text, JSON, XML): folded, patterns taken out."""
    return _folded(text, noise)


def plain_lines(text: str, noise: Noise = NO_NOISE) -> list[str]:
    """The lines of what is not HTML, each folded, empty ones left out."""
    return _kept("\n".join(filter(None, map(_fold, text.splitlines()))), noise)


def title(tree: LexborHTMLParser) -> str:
    """The page's title, at most 300 characters; empty without one."""
    # Most heads say it among their first elements; a selector would walk the whole page.
    inside = tree.head.iter() if tree.head is not None else ()
    node = next((child for child in inside if child.tag == "title"), None) or tree.css_first("body > title")
    return _fold(node.text()[: 10 * _TITLE_CHARACTERS])[:_TITLE_CHARACTERS].rstrip() if node is not None else ""


def _bared(tree: LexborHTMLParser, noise: Noise) -> LexborNode | None:
    """The root of the visible text, rid of what is not shown and of what the user calls noise."""
    if noise.selectors:
        noise.prune(tree)
    root = tree.body or tree.css_first("frameset")
    if root is not None:
        for tag in _HIDDEN:  # three walks by tag are half the price of one by selector
            remove(tree.tags(tag))
    return root


def _fold(text: str) -> str:
    return " ".join(text.split())


def _folded(text: str, noise: Noise) -> str:
    text = _fold(text)
    return _fold(noise.erase(text)) if noise.patterns else text


def _kept(joined: str, noise: Noise) -> list[str]:
    if noise.patterns:
        joined = noise.erase(joined)
    return [line for line in map(_fold, joined.split("\n")) if line]
