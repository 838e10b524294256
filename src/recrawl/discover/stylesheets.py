"""URLs in stylesheets: what they import (`@import`) and what they show (`url(...)`: images, fonts).

tinycss2 finds the tokens, as the CSS Syntax standard has them; a regular expression would take a URL in a comment or in
a string for one. It is slow (a second for some hundred kilobytes), so a text without `url(` and `@import` is not
parsed, and of a very long one nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tinycss2.ast import Node, StringToken, URLToken

MAX_CHARACTERS = 1_500_000
"""Longer stylesheets are kept, but not searched for URLs."""
_CACHED_LENGTH = 20_000
"""Characters of a stylesheet whose URLs are kept for the next page that has the same one."""
_HAS_URLS = re.compile(r"url\(|@import|\\", re.IGNORECASE)
_NESTED = ("content", "arguments", "prelude")


class StyleUrls(NamedTuple):
    """The URLs of a stylesheet as written, each once, in order."""

    imports: tuple[str, ...]
    files: tuple[str, ...]


def style_urls(css: str, *, inline: bool = False) -> StyleUrls:
    """What a stylesheet refers to; `inline` if it is the value of a `style` attribute.

    >>> style_urls("@import 'a.css'; p { background: url(b.png) /* url(c.png) */ }")
    StyleUrls(imports=('a.css',), files=('b.png',))
    """
    return _cached_urls(css, inline) if len(css) <= _CACHED_LENGTH else _read_urls(css, inline)


def _read_urls(css: str, inline: bool) -> StyleUrls:
    found: tuple[dict[str, None], dict[str, None]] = ({}, {})
    if len(css) <= MAX_CHARACTERS and _HAS_URLS.search(css):
        for token, imported in _url_tokens(_rules(css, inline)):
            found[not imported][token.value.strip()] = None
    return StyleUrls(*(tuple(filter(None, urls)) for urls in found))


_cached_urls = lru_cache(maxsize=256)(_read_urls)
"""The pages of a site repeat their styles."""


def with_urls(css: str, replace: Callable[[str, bool], str], *, inline: bool = False) -> str:
    """The stylesheet with each URL replaced; `replace` takes a URL and whether it is imported.

    A text that is too long or too deeply nested comes back empty: it could hide a URL that was not replaced.

    >>> with_urls("p{background:url('/b.png')}", lambda url, imported: "/archive" + url)
    'p{background:url("/archive/b.png")}'
    """
    if not _HAS_URLS.search(css):
        return css
    if len(css) > MAX_CHARACTERS:
        return ""
    rules = _rules(css, inline)
    for token, imported in _url_tokens(rules):
        token.value = replace(token.value.strip(), imported)
        quoted = f'"{_escaped(token.value)}"'
        token.representation = quoted if token.type == "string" else f"url({quoted})"
    from tinycss2 import serialize  # lazy: as in `_rules`

    try:
        text: str = serialize(rules)
    except RecursionError:
        return ""
    return text


def _rules(css: str, inline: bool) -> list[Node]:
    """The rules of a stylesheet, without those that are none; the component values of an attribute."""
    import tinycss2  # lazy: takes 20 ms, and few pages have styles of their own

    if inline:
        values: list[Node] = tinycss2.parse_component_value_list(css)
        return values
    return [rule for rule in tinycss2.parse_stylesheet(css) if rule.type != "error"]


def _url_tokens(nodes: list[Node]) -> Iterator[tuple[URLToken | StringToken, bool]]:
    """The tokens that hold a URL, and whether it is imported. A stack: the nesting may be deeper than Python's."""
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(nodes)]
    while stack:
        node, imported = stack.pop()
        if node.type == "url":
            yield node, imported
            continue
        first: StringToken | None = None
        if node.type == "at-rule":
            imported = node.lower_at_keyword == "import"
            first = _first_string(node.prelude) if imported else None
        elif node.type == "function" and node.lower_name in {"url", "src"}:
            first = _first_string(node.arguments)
        if first is not None:
            yield first, imported
        for name in _NESTED:
            stack += [(child, imported) for child in reversed(getattr(node, name, None) or ())]


def _first_string(nodes: list[Node]) -> StringToken | None:
    """The string that the nodes begin with."""
    for node in nodes:
        if node.type not in {"whitespace", "comment"}:
            return node if node.type == "string" else None
    return None


def _escaped(value: str) -> str:
    """The value within quotes: a URL in canonical form has none, but this must hold for any."""
    return re.sub(r'["\\\n\r\f]', lambda found: f"\\{ord(found[0]):x} ", value)
