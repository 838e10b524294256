"""Parse HTML text into a tree, with a guard in front of the parser.

Lexbor is fast and does not crash, but some pages, by intent or by mistake, take it quadratic time. A page with few
tags is parsed at once, after a check of a few microseconds. For pages with many tags, `nesting` first estimates the
work in linear time. The parsing process also has a deadline; this guard makes it a rare event.
"""

from __future__ import annotations

import re

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from recrawl.errors import Unreadable

_LESS_THAN = ord("<")
_FEW_TAGS = 1_500
"""The worst page with this many tags takes the parser under 100 ms."""
_MANY_TAGS = 6_000
"""Up to this many, only unclosed formatting elements are dangerous; depth alone costs 40 ms."""
_VERY_MANY_TAGS = 20_000
"""From this many on, a page is checked even if it closes its tags."""
_MAX_UNCLOSED = 4_000
_MAX_FORMATTING = 150
_LONG_TAG = 8_000
_MANY_ATTRIBUTES = 1_000
"""A thousand attributes take 2 ms, ten thousand 200 ms."""
_MAX_STEPS = 60_000_000

# Both cases are written out: IGNORECASE would take three times as long.
_NAMES = (
    "(?:[bisuBISU]|[bB][iI][gG]|[cC][oO][dD][eE]|[eE][mM]|[fF][oO][nN][tT]|[sS][mM][aA][lL][lL]"
    "|[sS][tT][rR][iI][kK][eE]|[sS][tT][rR][oO][nN][gG]|[tT][tT])"
)
# Formatting elements without attributes are harmless: the parser keeps at most three equal ones.
_FORMATTING = re.compile(rf"<{_NAMES}[\s/]")
_FORMATTING_ENDS = re.compile(rf"</{_NAMES}[\s/>]")
_OPEN_TAG = re.compile(rf"<[a-zA-Z][^>]{{{_LONG_TAG}}}")
# With events, the parser would copy a <select>'s chosen option into <selectedcontent> over and over.
_OPTIONS = LexborDocumentOptions.WO_EVENTS


def parse(html: str) -> LexborHTMLParser:
    """Return the page's tree. Raise `Unreadable` for a page that would block the parser for too long."""
    coded = html.encode("utf-8", "ignore")
    tags = int(np.count_nonzero(np.frombuffer(coded, np.uint8) == _LESS_THAN))  # ten times as fast as `count`
    if (tags > _FEW_TAGS and _risky(html, tags)) or _has_heavy_tag(html):
        from recrawl.compare.parsing.nesting import effort  # lazy: few pages need an estimate

        steps, depth = effort(html, _MAX_STEPS)
        if steps > _MAX_STEPS:
            raise Unreadable(
                f"not parsed: the page would take too long ({tags:,} tags, at least {depth:,} levels deep)"
            )
    return LexborHTMLParser(coded, options=_OPTIONS)


def _risky(html: str, tags: int) -> bool:
    """Whether the page needs an estimate of its work; pages that close their tags seldom do."""
    if tags > _VERY_MANY_TAGS or (tags > _MANY_TAGS and tags - 2 * html.count("</") > _MAX_UNCLOSED):
        return True
    formatting = len(_FORMATTING.findall(html))
    if formatting <= _MAX_FORMATTING:
        return False
    return formatting * tags > 4_000_000 or formatting - len(_FORMATTING_ENDS.findall(html)) > _MAX_FORMATTING


def _has_heavy_tag(html: str) -> bool:
    """Whether a tag has over a thousand attributes. Cheap unless two `>` are far apart."""
    start, end = 0, len(html) - _LONG_TAG
    while start < end:
        last = html.rfind(">", start, start + _LONG_TAG)
        if last < 0:
            from recrawl.compare.parsing.nesting import attributes  # lazy: few pages have such a tag

            return any(attributes(html, tag.start()) > _MANY_ATTRIBUTES for tag in _OPEN_TAG.finditer(html))
        start = last + 1
    return False
