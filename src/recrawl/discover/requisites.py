"""Page requisites: what a browser needs besides the HTML to show a page as it looks.

Stylesheets are one kind, all other files (images, fonts, scripts, icons) the other. Audio and video are not
requisites: they are large, and a page looks the same without them. Frames are pages.

The URLs are as the browser requests them, without the fragment: replay tools look them up by that form, so parameters
are neither sorted nor removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ada_url import join_url

from recrawl.model import RequisiteLevel

if TYPE_CHECKING:
    from tinycss2.ast import Node, StringToken, URLToken
    from turbohtml import Document, Element


MAX_REQUISITES = 500
"""Requisites of one page, and of one stylesheet, that are kept."""
_MAX_LENGTH = 2000
_STYLES = "link[rel], style"
_FILES = (
    "img, picture > source, svg image, svg use, input[type=image], script[src], video[poster], [background], [style]"
)
_ICONS = frozenset({"icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"})
_PRELOADED = frozenset({"image", "font", "script", "style"})
FILE_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "img": ("src", "data-src"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "input": ("src",),
    "script": ("src",),
    "video": ("poster",),
}
"""Attributes with the URL of a file, by element; `background` and `srcset` are read on any."""
_MAX_SRCSET = 20_000
_SRCSET_START = re.compile(r"[\s,]*(\S+)")
_DESCRIPTOR = re.compile(r"[^,(]*(?:\([^)]*\)?[^,(]*)*+,?")


class Requisites(NamedTuple):
    """URLs that a page or a stylesheet needs, each once, in document order."""

    styles: list[str]
    files: list[str]


def of_page(tree: Document, url: str, level: RequisiteLevel) -> Requisites:
    """The requisites of a parsed page at `url`.

    >>> from recrawl.compare.parsing.document import parse
    >>> page = parse("<link rel=stylesheet href=a.css><img srcset='b.png 1x, c.png 2x'>")
    >>> of_page(page, "https://a.example/x/", RequisiteLevel.ALL).files
    ['https://a.example/x/b.png', 'https://a.example/x/c.png']
    """
    found = _FoundUrls(base_of(tree, url))
    if level >= RequisiteLevel.CSS:
        for node in _style_nodes(tree, level):
            if node.tag == "style":
                found.add_style(style_urls(node.text), level)
            else:
                _add_link(found, node, level)
    if level >= RequisiteLevel.ALL:
        for node in tree.select(_FILES):
            for written in file_urls(node):
                found.add(written, style=False)
            inline = node.attr("style")
            if inline:
                found.add_style(style_urls(inline, inline=True), level)
    return found.requisites()


def _style_nodes(tree: Document, level: RequisiteLevel) -> list[Element]:
    """The elements that may need stylesheets, in document order."""
    found = tree.select(_STYLES)
    if level < RequisiteLevel.ALL:
        found = [node for node in found if node.tag != "style" or style_urls(node.text).imports]
    return found


def of_stylesheet(css: str, url: str) -> Requisites:
    """What a stylesheet at `url` imports and shows."""
    found = _FoundUrls(url)
    found.add_style(style_urls(css), RequisiteLevel.ALL)
    return found.requisites()


def base_of(tree: Document, url: str) -> str:
    """The URL to which a page's URLs are relative: its own, or that of its first `base` element."""
    written = next((node.attr("href") for node in tree.iter_elements("base") if "href" in node.attrs), None)
    return (absolute(written, url) or url) if written else url


def absolute(written: str, base: str) -> str | None:
    """The URL that a browser requests; None if it is not one of the web.

    >>> absolute("../b.png?z=1&a=2#c", "https://a.example/x/y/")
    'https://a.example/x/b.png?z=1&a=2'
    >>> absolute("data:image/png;base64,AAAA", "https://a.example/") is None
    True
    """
    written = written.strip()
    if len(written) > _MAX_LENGTH or not written or written[0] == "#" or written[:5].lower() == "data:":
        return None
    try:
        url: str = join_url(base, written).partition("#")[0]
    except ValueError:
        return None
    host = url.partition("://")[2].partition("/")[0]
    return url if url.startswith(("http://", "https://")) and "@" not in host and len(url) <= _MAX_LENGTH else None


def file_urls(node: Element) -> Iterator[str]:
    """The URLs of files that an element shows, as written."""
    for name in (*FILE_ATTRIBUTES.get(node.tag, ()), "background"):
        written = node.attr(name)
        if written:
            yield written
    for _, written in srcset_urls(node.attr("srcset") or ""):
        yield written


def srcset_urls(srcset: str) -> list[tuple[int, str]]:
    """The URLs in a `srcset`, each with its place, as HTML specifies it.

    >>> srcset_urls("a.png, b,c.png 2x, data:image/png;base64,AA 3x")
    [(0, 'a.png'), (7, 'b,c.png'), (19, 'data:image/png;base64,AA')]
    """
    srcset, place, found = srcset[:_MAX_SRCSET], 0, []
    while match := _SRCSET_START.match(srcset, place):
        url = match[1].rstrip(",")
        found.append((match.start(1), url))
        place = match.end()
        if url == match[1]:  # without a comma at its end, a descriptor follows
            rest = _DESCRIPTOR.match(srcset, place)
            place = rest.end() if rest else len(srcset)
    return found


def with_srcset_urls(srcset: str, replace: Callable[[str], str]) -> str:
    """The `srcset` with each URL replaced."""
    parts, end = [], 0
    for start, written in srcset_urls(srcset):
        parts += [srcset[end:start], replace(written)]
        end = start + len(written)
    return "".join(parts) + srcset[end:_MAX_SRCSET] if parts else ""


class _FoundUrls:
    """URLs found so far."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._styles: dict[str, None] = {}
        self._files: dict[str, None] = {}

    def add(self, written: str, *, style: bool) -> None:
        url = absolute(written, self._base)
        if url is not None:
            (self._styles if style else self._files)[url] = None

    def add_style(self, urls: StyleUrls, level: RequisiteLevel) -> None:
        for written in urls.imports:
            self.add(written, style=True)
        for written in urls.files if level >= RequisiteLevel.ALL else ():
            self.add(written, style=False)

    def requisites(self) -> Requisites:
        files = [url for url in self._files if url not in self._styles]
        return Requisites(list(self._styles)[:MAX_REQUISITES], files[:MAX_REQUISITES])


def _add_link(found: _FoundUrls, node: Element, level: RequisiteLevel) -> None:
    href = node.attr("href")
    words = set((node.attr("rel") or "").lower().split())
    if not href:
        return
    preloaded = (node.attr("as") or "").lower() if "preload" in words else ""
    if "stylesheet" in words or preloaded == "style":
        found.add(href, style=True)
    elif level >= RequisiteLevel.ALL and (words & _ICONS or preloaded in _PRELOADED or "modulepreload" in words):
        found.add(href, style=False)


# --------------------------------------------------------------------------------------------------------------------
# URLs in stylesheets: what they import (`@import`) and what they show (`url(...)`: images, fonts).
#
# tinycss2 finds the tokens, as the CSS Syntax standard has them; a regular expression would take a URL in a comment or
# in a string for one. It is slow (a second for some hundred kilobytes), so a text without `url(` and `@import` is not
# parsed, and of a very long one nothing is read.


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
