"""From text to a tree, with a guard in front of the parser.

Lexbor is fast and does not crash, but some pages are made (or broken) so that it works in quadratic time.
A page with few tags is parsed at once; the check costs it a few microseconds. Tag-heavy pages are first
walked by `nesting`, which is linear. What still slips through meets the deadline of the process that
parses: this guard is there so that it is needed seldom.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from recrawl.compare.nesting import attributes, effort
from recrawl.errors import Unreadable

_FEW_TAGS = 1_500
"""The worst page with so few tags takes the parser under 100 ms."""
_MANY_TAGS = 6_000
"""Up to here only formatting elements left open are dangerous; mere depth costs 40 ms."""
_VERY_MANY_TAGS = 20_000
"""From here on end tags are not taken at their word."""
_MOST_UNCLOSED = 4_000
_SOME_FORMATTING = 150
_LONG_TAG = 8_000
_MANY_ATTRIBUTES = 1_000
"""A thousand take 2 ms, ten thousand 200 ms."""
_MOST_STEPS = 60_000_000

# Written out in both cases: ignoring case would cost three times as much.
_NAMES = (
    "(?:[bisuBISU]|[bB][iI][gG]|[cC][oO][dD][eE]|[eE][mM]|[fF][oO][nN][tT]|[sS][mM][aA][lL][lL]"
    "|[sS][tT][rR][iI][kK][eE]|[sS][tT][rR][oO][nN][gG]|[tT][tT])"
)
# Those without attributes do no harm: the parser keeps three of the same at most.
_FORMATTING = re.compile(rf"<{_NAMES}[\s/]")
_FORMATTING_ENDS = re.compile(rf"</{_NAMES}[\s/>]")
_OPEN_TAG = re.compile(rf"<[a-zA-Z][^>]{{{_LONG_TAG}}}")
# Without events the parser does not copy a <select>'s chosen option again and again into <selectedcontent>.
_OPTIONS = LexborDocumentOptions.WO_EVENTS


def parse(html: str) -> LexborHTMLParser:
    """The page's tree. Raises `Unreadable` for a page that would hold the parser for long."""
    tags = html.count("<")
    if (tags > _FEW_TAGS and _risky(html, tags)) or _has_heavy_tag(html):
        steps, depth = effort(html, _MOST_STEPS)
        if steps > _MOST_STEPS:
            raise Unreadable(
                f"the page would hold the parser for too long ({tags:,} tags, nested {depth:,} deep or more); "
                "it was not parsed"
            )
    return LexborHTMLParser(html, options=_OPTIONS)


def _risky(html: str, tags: int) -> bool:
    """Whether the page needs a closer look; pages that close what they open seldom do."""
    if tags > _VERY_MANY_TAGS or (tags > _MANY_TAGS and tags - 2 * html.count("</") > _MOST_UNCLOSED):
        return True
    formatting = len(_FORMATTING.findall(html))
    if formatting <= _SOME_FORMATTING:
        return False
    return formatting * tags > 4_000_000 or formatting - len(_FORMATTING_ENDS.findall(html)) > _SOME_FORMATTING


def _has_heavy_tag(html: str) -> bool:
    """Whether a tag has thousands of attributes. Cheap when no two `>` are far apart."""
    start, end = 0, len(html) - _LONG_TAG
    while start < end:
        last = html.rfind(">", start, start + _LONG_TAG)
        if last < 0:
            return any(attributes(html, tag.start()) > _MANY_ATTRIBUTES for tag in _OPEN_TAG.finditer(html))
        start = last + 1
    return False
