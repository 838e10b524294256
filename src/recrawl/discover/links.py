"""The links of a parsed page: links, feeds, its canonical URL and its robots directives.

A page has about sixty links, most of them in a menu that was on the page before. So a link is resolved once per origin
(or per directory, if it is relative) and then taken from a cache, which is emptied when it is full.

The address that a page claims as its own (`rel=canonical`, else a Link header, else `og:url`) is reported but not
obeyed: it is compared with what both pages show (`recrawl.learn.copies`). Robots directives (`nofollow`, `noindex`) are
reported too; the caller decides about them. So is the meta-updates tag (spec H1; Q §1.3.1), by which a page says how
often it changes: `<meta name="change-frequency-based" content="PERIODIC=7">`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from turbohtml import Document, Element

from recrawl.discover.page_headers import OUR_NAMES, Directives, quick_target, refresh_target
from recrawl.discover.urls import DEFAULT_RULES, Base, UrlRules, directory, join, prepare

# Never pages: images, audio, video, fonts, style sheets, code, archives, documents.
_SUFFIXES = """
    png jpg jpeg jpe gif svg svgz webp avif bmp ico tif tiff psd eps heic apng
    mp3 m4a ogg oga opus wav flac aac mid mp4 m4v webm ogv avi mov mkv wmv flv mpg mpeg m3u8
    woff woff2 ttf otf eot css js mjs map wasm
    zip gz tgz bz2 xz zst 7z rar tar jar war whl deb rpm dmg iso exe msi apk bin img torrent
    pdf ps epub mobi doc docx xls xlsx ppt pptx odt ods odp rtf
"""
SKIP_SUFFIXES = frozenset(_SUFFIXES.split())

MAX_LINKS = 5000
_MAX_FEEDS = 50
_CACHE_ENTRIES = 50_000
_CACHED_LENGTH = 300  # longer links are rare, and one page could fill the memory with them
_MAX_ELEMENTS = 2 * MAX_LINKS  # links beyond that are not read
_BODY_HEAD = 16

_LINKS = ("a", "area", "iframe", "frame")
_NO_PAGE = ("javascript:", "mailto:", "tel:", "data:", "#")
_ABSOLUTE = ("/", "http://", "https://", *_NO_PAGE)
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})

META_UPDATES = "change-frequency-based"
_STATIC_DAYS = 90.0
_MAX_DAYS = 3650.0
_UPDATES = re.compile(
    r"(static)|(?:periodic|variable)\s*[=:]\s*[\"']?\s*(\d{1,6}(?:\.\d{1,6})?)\s*(?:days?)?", re.IGNORECASE
)

_Seen = dict[str | None, str]
"""From a link as written to its resolved URL; never contains None, the value of an absent attribute."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The links of one page: canonical URLs, each once, in document order, without the page itself."""

    urls: list[str]
    feeds: list[str]
    canonical: str | None
    """The URL that the page claims as its own."""
    follow: bool
    index: bool
    updates: float = 0.0
    """The interval of change, in days, that the page claims; 0 if it claims none."""
    moved: str = ""
    """The URL that the page sends browsers to at once."""


@dataclass(slots=True)
class _Head:
    """The contents of `meta`, `link` and `base` elements, not resolved yet."""

    base: str | None = None
    canonical: str = ""
    address: str = ""
    """Its URL by OpenGraph."""
    robots: Directives = field(default_factory=Directives)
    updates: float = 0.0
    moved: str = ""
    feeds: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)


class LinkReader:
    """Reads the links of pages; use one for many pages, since it caches resolved links.

    >>> from recrawl.compare.parsing.document import parse
    >>> page = parse("<a href='b#x'>b</a> <a href='/c.png'>c</a> <a href='mailto:d'>d</a>")
    >>> LinkReader().read(page, "https://a.example/x/").urls
    ['https://a.example/x/b']
    """

    def __init__(self, rules: UrlRules = DEFAULT_RULES, skip_suffixes: Iterable[str] = SKIP_SUFFIXES) -> None:
        self._rules = rules
        self._skip = frozenset(suffix.lower().lstrip(".") for suffix in skip_suffixes)
        self._cache: dict[str, _Seen] = {}
        self._room = _CACHE_ENTRIES
        self._last: Base | None = None

    def read(self, tree: Document, url: str, refreshes: Sequence[str] = (), canonical: str = "") -> PageLinks:
        """The links of the page at `url`, to the targets of its Refresh headers too; none if `url` is invalid.

        `canonical` is the address that its headers claim; one that the page itself claims comes first.
        """
        head = _read_head(tree)
        page = self._base(url)
        if page is None:
            return PageLinks([], [], None, head.robots.follow, head.robots.index, head.updates)
        base = page
        if head.base and (named := join(head.base, page, self._rules)):
            base = prepare(named, self._rules) or page
        targets = [self._resolve(target, page) for target in refreshes]
        targets += [self._resolve(target, base) for target in head.targets]
        targets += self._body(tree, base, page)
        found = dict.fromkeys(targets)
        for ignored in ("", page.href):
            found.pop(ignored, None)
        feeds = filter(None, (join(href, base, self._rules) for href in head.feeds))
        claimed, moved = (
            join(said, place, self._rules) if said else None
            for said, place in (
                (head.canonical or canonical or head.address, page if canonical and not head.canonical else base),
                (head.moved, base),
            )
        )
        return PageLinks(
            *(list(found)[:MAX_LINKS], list(dict.fromkeys(feeds)), claimed, head.robots.follow, head.robots.index),
            *(head.updates, moved if moved and moved != page.href else ""),
        )

    def _base(self, url: str) -> Base | None:
        """The base of a page: most pages are of the same site as the one before, and need no parser."""
        last = self._last
        if last is None or not url.startswith(last.origin + "/"):
            self._last = prepare(url, self._rules)
        elif href := join(url, last, self._rules):
            self._last = Base(href, last.origin, directory(href))
        else:
            return None
        return self._last

    def _body(self, tree: Document, base: Base, page: Base) -> list[str]:
        """The targets of `a`, `area` and frame elements; an empty string for a target that is not a page.

        The hot path: for most pages the cache answers alone, without Python code for each link.
        """
        if self._room < 0:
            self._cache.clear()
            self._room = _CACHE_ENTRIES
        anywhere = self._table(base.origin)
        nodes = _link_nodes(tree)
        hrefs = [node.attr("href") for node in nodes]
        targets: list[str | None] = list(map(anywhere.get, hrefs))
        if None in targets:
            nearby = self._table(base.directory)
            for i in [i for i, target in enumerate(targets) if target is None]:
                href = hrefs[i]
                if href is None:
                    targets[i] = self._frame(nodes[i], base, page)
                elif (seen := nearby.get(href)) is not None:
                    targets[i] = seen
                else:
                    targets[i] = self._learn(href, base, anywhere, nearby)
        return cast("list[str]", targets)

    def _table(self, start: str) -> _Seen:
        table = self._cache.get(start)
        if table is None:
            table = self._cache[start] = {}
            self._room -= 1
        return table

    def _learn(self, href: str, base: Base, anywhere: _Seen, nearby: _Seen) -> str:
        target = self._resolve(href, base)
        if len(href) > _CACHED_LENGTH:
            return target
        if href.startswith(_ABSOLUTE):
            anywhere[href] = target
        elif href[:1] > " " and href[0] != "?" and ":" not in href:  # the others depend on the very page
            nearby[href] = target
        self._room -= 1
        return target

    def _frame(self, node: Element, base: Base, page: Base) -> str:
        """The target of a frame of the same origin; other frames are advertisements and players."""
        src = node.attr("src") if node.tag in {"frame", "iframe"} else None
        target = self._resolve(src, base) if src else ""
        return target if target.startswith(page.origin + "/") else ""

    def _resolve(self, href: str, base: Base) -> str:
        """The canonical URL; an empty string if the target is not a page."""
        if href[:11].lower().startswith(_NO_PAGE):
            return ""
        target = join(href, base, self._rules)
        return "" if target is None or self._skips(target) else target

    def _skips(self, url: str) -> bool:
        path = url.partition("?")[0]
        if path[path.rfind(".") + 1 :].lower() not in self._skip:
            return False
        name = path[path.rfind("/") + 1 :]
        # Wikis have pages about files, such as /wiki/File:Crawler.png.
        return ":" not in name


def _link_nodes(tree: Document) -> list[Element]:
    """The elements that may hold a link, in document order."""
    return list(islice(tree.iter_elements(_LINKS), _MAX_ELEMENTS))


def _read_head(tree: Document) -> _Head:
    """Read the elements of the head and the first ones of the body: a stray element ends the head early."""
    head = _Head()
    nodes = [*_elements(tree.find("head"), MAX_LINKS), *_elements(tree.find("body"), _BODY_HEAD)]
    for node in nodes:
        tag = node.tag
        if tag == "meta":
            _read_meta(node, head)
        elif tag == "link":
            _read_link(node, head)
        elif tag == "base" and head.base is None:
            head.base = node.attr("href")
    return head


def _elements(parent: Element | None, most: int) -> Iterator[Element]:
    """The first elements directly below another one."""
    below = (child for child in parent.children if isinstance(child, Element)) if parent is not None else iter(())
    return islice(below, most)


def _read_meta(node: Element, head: _Head) -> None:
    content = node.attr("content")
    if not content:
        return
    name = (node.attr("name") or "").strip().lower()
    if name in OUR_NAMES:
        head.robots = head.robots.with_words(content)
    elif (node.attr("property") or "").strip().lower() == "og:url":
        head.address = head.address or content
    elif name == META_UPDATES:
        head.updates = head.updates or updates_days(content)
    elif (node.attr("http-equiv") or "").strip().lower() == "refresh":
        head.targets.append(refresh_target(content))
        head.moved = head.moved or quick_target(content)


def _read_link(node: Element, head: _Head) -> None:
    href, rel = node.attr("href"), node.attr("rel")
    if not href or not rel:
        return
    rels = rel.lower().split()
    if "alternate" in rels:
        kind = (node.attr("type") or "").partition(";")[0].strip().lower()
        if kind in _FEEDS and len(head.feeds) < _MAX_FEEDS:
            head.feeds.append(href)
    elif "canonical" in rels:
        head.canonical = head.canonical or href
    elif "next" in rels or "prev" in rels:
        head.targets.append(href)


def updates_days(content: str) -> float:
    """The interval of change, in days, in the content of a meta-updates tag; 0 if it is invalid.

    >>> [updates_days(text) for text in ("PERIODIC=7", " static ", "Variable = 0.5 days", "sometimes", "PERIODIC=0")]
    [7.0, 90.0, 0.5, 0.0, 0.0]
    """
    found = _UPDATES.fullmatch(content[:100].strip().strip("\"'"))
    if found is None:
        return 0.0
    return _STATIC_DAYS if found[1] else min(float(found[2]), _MAX_DAYS)
