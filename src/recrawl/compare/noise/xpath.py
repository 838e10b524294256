"""XPath filters, for HTML and XML: `xpath://div[@id='clock']` in a list of selectors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from lxml import etree
from turbohtml import Document, Element

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


def nodes_by_xpath(tree: Document, expressions: Iterable[str]) -> list[Element]:
    """The elements of an HTML page that the expressions select.

    >>> from recrawl.compare.parsing.document import parse
    >>> [node.text for node in nodes_by_xpath(parse("<p>one<p class=x>two"), ["//p[@class='x']"])]
    ['two']
    """
    found: list[Element] = []
    for expression in expressions:
        with suppress(ValueError):  # `Noise.check` has reported an invalid one
            result = tree.xpath(expression)
            found += [node for node in result if isinstance(node, Element)] if isinstance(result, list) else []
    return found


def _selected(root: etree._Element, expressions: Iterable[str]) -> list[etree._Element]:
    found: list[etree._Element] = []
    for expression in expressions:
        with suppress(etree.XPathError, UsageError):  # `Noise.check` has reported an invalid one
            result = compiled_xpath(expression)(root)
            found += [node for node in result if isinstance(node, etree._Element)] if isinstance(result, list) else []
    return found
