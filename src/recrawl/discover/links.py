"""What a parsed page points to: links, feeds, its own canonical address, and what it asks of robots.

A page has some sixty links, and most of them are the menu that was on the page before. So a link is resolved
once per origin (or per directory, when it is relative) and looked up after that; the cache is emptied when it
is full, which costs one slow page.

`rel=canonical` is reported, not obeyed: pages lie about it. Robots words (`nofollow`, `noindex`) are reported
too; what to do about them is for the caller to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.discover import meta_updates
from recrawl.discover.urls import DEFAULT_RULES, Base, UrlRules, join, prepare

# What ends like this is surely no page: pictures, sound, film, fonts, style, code, archives, documents.
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
_CACHED_LENGTH = 300  # longer links are rare and would let one page fill the memory
_MAX_ELEMENTS = 2 * MAX_LINKS  # a page of a million links is read no further
_BODY_HEAD = 16

_NO_PAGE = ("javascript:", "mailto:", "tel:", "data:", "#")
_ABSOLUTE = ("/", "http://", "https://", *_NO_PAGE)
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_REFRESH = re.compile(r"[\d.]*[;,\s]\s*(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|([^\"'].*))", re.IGNORECASE | re.DOTALL)
_ROBOTS = frozenset({"robots", "recrawl"})

_Seen = dict[str | None, str]
"""What a link, as written, was resolved to; None, an absent attribute, is never in it."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What one page points to: canonical addresses, each once, in document order, never the page itself."""

    urls: list[str]
    feeds: list[str]
    canonical: str | None
    """What the page says its address is."""
    follow: bool
    index: bool
    updates: float = 0.0
    """Every how many days it says that it changes, 0 where it does not say."""


@dataclass(slots=True)
class _Head:
    """What `meta`, `link` and `base` elements said, not yet joined to anything."""

    base: str | None = None
    canonical: str = ""
    follow: bool = True
    index: bool = True
    updates: float = 0.0
    feeds: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)


class LinkReader:
    """Reads the links of pages; keep one for many pages, since it remembers menus.

    >>> page = LexborHTMLParser("<a href='b#x'>b</a> <a href='/c.png'>c</a> <a href='mailto:d'>d</a>")
    >>> LinkReader().read(page, "https://a.example/x/").urls
    ['https://a.example/x/b']
    """

    def __init__(self, rules: UrlRules = DEFAULT_RULES, skip_suffixes: Iterable[str] = SKIP_SUFFIXES) -> None:
        self._rules = rules
        self._skip = frozenset(suffix.lower().lstrip(".") for suffix in skip_suffixes)
        self._cache: dict[str, _Seen] = {}
        self._room = _CACHE_ENTRIES

    def read(self, tree: LexborHTMLParser, url: str) -> PageLinks:
        """The links of the page at `url`. An address that cannot be crawled has none."""
        head = _read_head(tree)
        page = prepare(url, self._rules)
        if page is None:
            return PageLinks([], [], None, head.follow, head.index, head.updates)
        base = page
        if head.base and (named := join(head.base, page, self._rules)):
            base = prepare(named, self._rules) or page
        targets = [self._resolve(target, base) for target in head.targets]
        targets += self._body(tree, base, page)
        found = dict.fromkeys(targets)
        for nothing in ("", page.href):
            found.pop(nothing, None)
        feeds = filter(None, (join(href, base, self._rules) for href in head.feeds))
        said = join(head.canonical, base, self._rules) if head.canonical else None
        unique = list(dict.fromkeys(feeds))
        return PageLinks(list(found)[:MAX_LINKS], unique, said, head.follow, head.index, head.updates)

    def _body(self, tree: LexborHTMLParser, base: Base, page: Base) -> list[str]:
        """What `a`, `area` and frames point to, empty strings for what is no page.

        The hot path: most pages are answered by the cache alone, without a line of Python for each link.
        """
        if self._room < 0:
            self._cache.clear()
            self._room = _CACHE_ENTRIES
        anywhere = self._table(base.origin)
        nodes = _link_nodes(tree)
        hrefs = [node.attributes.get("href") for node in nodes]
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

    def _frame(self, node: LexborNode, base: Base, page: Base) -> str:
        """A frame of the same origin is part of the site; others are advertisements and players."""
        src = node.attributes.get("src") if node.tag in {"frame", "iframe"} else None
        target = self._resolve(src, base) if src else ""
        return target if target.startswith(page.origin + "/") else ""

    def _resolve(self, href: str, base: Base) -> str:
        """The canonical address, or an empty string for what is no page."""
        if href[:11].lower().startswith(_NO_PAGE):
            return ""
        target = join(href, base, self._rules)
        return "" if target is None or self._skips(target) else target

    def _skips(self, url: str) -> bool:
        path = url.partition("?")[0]
        name = path[path.rfind("/") + 1 :]
        # Wikis have pages about files: /wiki/File:Crawler.png is one.
        return "." in name and ":" not in name and name[name.rfind(".") + 1 :].lower() in self._skip


def _link_nodes(tree: LexborHTMLParser) -> list[LexborNode]:
    """The elements that may hold a link, in document order.

    Three walks by tag take half the time of one by selector, which is for the few pages that mix them.
    """
    nodes = tree.tags("a")
    if tree.tags("iframe") or tree.tags("area") or tree.body is None:  # a frameset stands in place of a body
        nodes = tree.css("a,area,iframe,frame")
    return nodes[:_MAX_ELEMENTS]


def _read_head(tree: LexborHTMLParser) -> _Head:
    """What the head's elements say; also the body's first: a stray element ends a head early."""
    head = _Head()
    nodes: list[LexborNode] = []
    if tree.head is not None:
        nodes.extend(islice(tree.head.iter(), MAX_LINKS))
    if tree.body is not None:
        nodes.extend(islice(tree.body.iter(), _BODY_HEAD))
    for node in nodes:
        tag = node.tag
        if tag == "meta":
            _read_meta(node.attributes, head)
        elif tag == "link":
            _read_link(node.attributes, head)
        elif tag == "base" and head.base is None:
            head.base = node.attributes.get("href")
    return head


def _read_meta(attributes: dict[str, str | None], head: _Head) -> None:
    content = attributes.get("content")
    if not content:
        return
    name = (attributes.get("name") or "").strip().lower()
    if name in _ROBOTS:
        words = set(content.lower().replace(",", " ").split())
        head.follow = head.follow and not words & {"nofollow", "none"}
        head.index = head.index and not words & {"noindex", "none"}
    elif name == meta_updates.NAME:
        head.updates = head.updates or meta_updates.days(content)
    elif (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        match = _REFRESH.match(content.strip())
        if match:
            head.targets.append(match[1] or match[2] or match[3] or "")


def _read_link(attributes: dict[str, str | None], head: _Head) -> None:
    href, rel = attributes.get("href"), attributes.get("rel")
    if not href or not rel:
        return
    rels = rel.lower().split()
    if "alternate" in rels:
        kind = (attributes.get("type") or "").partition(";")[0].strip().lower()
        if kind in _FEEDS and len(head.feeds) < _MAX_FEEDS:
            head.feeds.append(href)
    elif "canonical" in rels:
        head.canonical = head.canonical or href
    elif "next" in rels or "prev" in rels:
        head.targets.append(href)
