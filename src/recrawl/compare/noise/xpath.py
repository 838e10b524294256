"""XPath filters, for HTML and XML: `xpath://div[@id='clock']` in a list of selectors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.errors import UsageError


@lru_cache(maxsize=256)
def compiled_xpath(expression: str) -> etree.XPath:
    """The expression; `UsageError` for an invalid one."""
    try:
        return etree.XPath(expression)
    except etree.XPathError:
        raise UsageError(f"invalid XPath {expression!r}; use one such as //div[@id='clock']") from None


def removed_by_xpath(root: etree._Element, expressions: Iterable[str]) -> None:
    """Remove the elements of an XML document that the expressions select; the text behind them stays."""
    for node in _selected(root, expressions):
        parent = node.getparent()
        if parent is not None:
            before = node.getprevious()
            if before is not None:
                before.tail = (before.tail or "") + (node.tail or "")
            else:
                parent.text = (parent.text or "") + (node.tail or "")
            parent.remove(node)


def nodes_by_xpath(tree: LexborHTMLParser, expressions: Iterable[str]) -> list[LexborNode]:
    """The elements of an HTML page that the expressions select.

    >>> page = LexborHTMLParser("<p>one<p class=x>two")
    >>> [node.text() for node in nodes_by_xpath(page, ["//p[@class='x']"])]
    ['two']
    """
    if tree.root is None:
        return []
    places: dict[etree._Element, LexborNode] = {}
    root = _copied(tree.root, places)
    return [places[node] for node in _selected(root, expressions) if node in places]


def _selected(root: etree._Element, expressions: Iterable[str]) -> list[etree._Element]:
    found: list[etree._Element] = []
    for expression in expressions:
        with suppress(etree.XPathError, UsageError):  # `Noise.check` has reported an invalid one
            result = compiled_xpath(expression)(root)
            found += [node for node in result if isinstance(node, etree._Element)] if isinstance(result, list) else []
    return found


def _copied(top: LexborNode, places: dict[etree._Element, LexborNode]) -> etree._Element:
    """The elements of a page as lxml has them, node by node, so that each leads back to its own."""
    root = _element(top, places)
    waiting = [(top, root)]
    while waiting:
        node, element = waiting.pop()
        last: etree._Element | None = None
        for child in node.iter(include_text=True):
            if child.tag == "-text":
                text = _clean(child.text(deep=False))
                if last is None:
                    element.text = (element.text or "") + text
                else:
                    last.tail = (last.tail or "") + text
            elif child.tag and child.tag[0].isalpha():
                last = _element(child, places)
                element.append(last)
                waiting.append((child, last))
    return root


def _element(node: LexborNode, places: dict[etree._Element, LexborNode]) -> etree._Element:
    try:
        element = etree.Element(node.tag or "unknown")
    except ValueError:
        element = etree.Element("unknown")
    for name, value in node.attributes.items():
        with suppress(ValueError):  # a name that XML does not allow
            element.set(name, _clean(value or ""))
    places[element] = node
    return element


def _clean(text: str) -> str:
    """The text without characters that XML does not allow."""
    return "".join(letter for letter in text if letter >= " " or letter in "\t\n\r").replace("\ufffe", "")
