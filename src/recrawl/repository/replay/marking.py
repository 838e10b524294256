"""Mark in a page the text that another version of it lacks."""

from __future__ import annotations

from collections import Counter

from selectolax.lexbor import LexborHTMLParser, LexborNode

MARK = "data-recrawl-mark"
_RULE = f'[{MARK}="%s"]{{background:%s!important;outline:2px solid %s!important;color:#000!important}}'
_STYLE = f"<style>{_RULE % ('added', '#c9f2d4', '#1d7a3c')}{_RULE % ('removed', '#ffd9d6', '#b3261e')}</style>"
_SILENT = frozenset({"script", "style", "title", "noscript", "template", "textarea"})


def mark_changes(tree: LexborHTMLParser, other: LexborHTMLParser, *, kind: str) -> str:
    """Mark the elements of `tree` with text that `other` lacks, as added or removed; returns the style of the marks.

    Each text node counts as often as it occurs.
    """
    for node in tree.css(f"[{MARK}]"):  # a page that marks itself would show changes that there are not
        del node.attrs[MARK]
    left = Counter(words for _, words in _texts(other))
    for node, words in list(_texts(tree)):
        if left[words]:
            left[words] -= 1
        elif node.parent is not None:
            node.parent.attrs[MARK] = kind
    return _STYLE


def _texts(tree: LexborHTMLParser) -> list[tuple[LexborNode, str]]:
    """The text nodes of the body that show something, with their words."""
    if tree.body is None:
        return []
    found = []
    for node in tree.body.traverse(include_text=True):
        if node.tag == "-text" and (node.parent is None or node.parent.tag not in _SILENT):
            words = " ".join(node.text().split())
            if words:
                found.append((node, words))
    return found
