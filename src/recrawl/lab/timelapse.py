"""The time-lapse server: serves an archive over HTTP on loopback, as of a virtual time that can be set.

Site `H` is served at `http://H.localhost:PORT/`; libcurl and browsers resolve every name under localhost to this
machine. An archive of one site is also served at `http://127.0.0.1:PORT/`.
"""

from __future__ import annotations

import asyncio
import html
import ipaddress
import json
import math
import re
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from hashlib import blake2b
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote

import numpy as np

from recrawl.columns import Ints
from recrawl.errors import UsageError
from recrawl.http_server import HttpServer, listen
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.hint_sources import parse_source

__all__ = ["Clock", "ServerOptions", "TimeLapse", "TimeLapseServer", "app", "serve"]


# --------------------------------------------------------------------------------------------------------------------
# From a request's host and path to a page of the archive, and from a page to the URL at which it is served.
#
# Paths are compared with their percent-escapes decoded. As on most web servers, `/dir/` shows `/dir/index.html` and
# `/name` shows `/name.html` if the archive has no page of that URL, and `/dir` redirects to `/dir/`.


_SAFE = "/:@!$&'()*+,;=~"
_INDEXES = ("index.html", "index.htm", "index.xhtml")


class Found(NamedTuple):
    """A page; `exact` is false if the request used an alias of its URL."""

    page: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Host:
    """The meaning of a Host header: a site, or None for the list of all sites."""

    site: int | None
    base: str
    """The base URL of links in the response, as `http://host:port`."""


class Addresses:
    """The hosts and paths under which an archive is served."""

    def __init__(self, archive: Archive) -> None:
        # A host name cannot contain a port.
        self.labels = [site.replace(":", "-") for site in archive.sites]
        self._by_label = {label: site for site, label in enumerate(self.labels)}
        self._pages: list[dict[str, int]] = [{} for _ in archive.sites]
        self._aliases: list[dict[str, int]] = [{} for _ in archive.sites]
        self.paths: list[str] = []
        """Per page: the path at which it is served."""
        for page, (url, site) in enumerate(zip(archive.urls, archive.site_of.tolist(), strict=True)):
            path, query = _after_host(url)
            self._pages[site].setdefault(f"{path}?{query}" if query else path, page)
            self.paths.append(self.quoted(path, query))
        for pages, aliases in zip(self._pages, self._aliases, strict=True):
            _add_aliases(pages, aliases)

    def host(self, header: str, port: int) -> Host | None:
        """Return the meaning of a Host header, None if it is no host of the archive."""
        name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
        name = name.lower().rstrip(".")
        if name in ("localhost", "127.0.0.1", "[::1]"):
            return Host(0 if len(self.labels) == 1 else None, f"http://{name}:{port}")
        site = self._by_label.get(name.removesuffix(".localhost"))
        return None if site is None else Host(site, self.base(site, port))

    def base(self, site: int, port: int) -> str:
        """Return the base URL of a site."""
        return f"http://{self.labels[site]}.localhost:{port}"

    def find(self, site: int, path: str, query: str) -> Found | None:
        """Return the page at a path with decoded escapes."""
        key = f"{path}?{query}" if query else path
        page = self._pages[site].get(key)
        if page is not None:
            return Found(page, exact=True)
        page = self._aliases[site].get(key)
        return None if page is None else Found(page, exact=False)

    def served(self, url: str, port: int) -> str | None:
        """Return where a URL of the archive is served, None if its host is not in the archive."""
        host = url.partition("://")[2].partition("/")[0].lower()
        site = self._by_label.get(host.replace(":", "-"))
        if site is None:
            return None
        path, query = _after_host(url)
        return self.base(site, port) + self.quoted(path, query)

    @staticmethod
    def quoted(path: str, query: str) -> str:
        """Return a path with percent-escapes, and its query, if any."""
        return quote(path, safe=_SAFE) + ("?" + query if query else "")


def _after_host(url: str) -> tuple[str, str]:
    """Return the path with decoded escapes, and the query.

    >>> _after_host("https://h.example/a%20b.html?x=1"), _after_host("https://h.example")
    (('/a b.html', 'x=1'), ('/', ''))
    """
    path, _, query = url.partition("://")[2].partition("?")
    return "/" + unquote(path.partition("/")[2]), query


def _add_aliases(pages: dict[str, int], aliases: dict[str, int]) -> None:
    for key, page in pages.items():
        folder, _, name = key.rpartition("/")
        if name in _INDEXES and f"{folder}/" not in pages:
            aliases.setdefault(f"{folder}/", page)
    for key, page in pages.items():
        bare = key.removesuffix(".html")
        if bare != key and not bare.endswith("/") and bare not in pages:
            aliases.setdefault(bare, page)


# --------------------------------------------------------------------------------------------------------------------
# A row of the archive as a response: its body, and the headers that do not depend on the time of the request.
#
# Absolute links to hosts of the archive are rewritten to this server. A cache of limited size holds the responses.


Headers = list[tuple[bytes, bytes]]

_LIMIT = 64 << 20
# Starts with a literal, which makes the search ten times as fast; the scheme before it is checked afterwards.
_HOST = re.compile(rb"//([A-Za-z0-9][A-Za-z0-9._-]{0,252}(?::\d{1,5})?)")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_CHARSET_BYTES = 2048


@dataclass(frozen=True, slots=True)
class Content:
    """A body with its content type and validators."""

    body: bytes
    kind: bytes
    """The content type."""
    etag: bytes
    modified: int
    """Seconds since 1970, UTC."""
    headers: Headers
    """Content type, length and validators."""
    bare: Headers
    """The same without validators."""


def content(body: bytes, kind: bytes, modified: int, digest: bytes | None = None) -> Content:
    """Build the content of a body; its ETag comes from `digest`, else from the body."""
    etag = b'"%s"' % (digest or body_digest(body))
    bare = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    return Content(body, kind, etag, modified, [*bare, *validators(etag, modified)], bare)


def validators(etag: bytes, modified: int) -> Headers:
    """Return the validator headers."""
    return [(b"etag", etag), (b"last-modified", http_date(modified))]


def http_date(t: float) -> bytes:
    """Return a time as an HTTP date.

    >>> http_date(0)
    b'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    return formatdate(int(t), usegmt=True).encode()


def body_digest(body: bytes) -> bytes:
    """Return the digest for an ETag."""
    return blake2b(body, digest_size=10).hexdigest().encode()


def content_type(body: bytes) -> bytes:
    """Return the content type with the charset that the page declares, or UTF-8 if the body is valid UTF-8.

    >>> content_type(b'<meta charset="iso-8859-1">'), content_type(b"plain"), content_type(bytes([0xfc, 32]))
    (b'text/html; charset=iso-8859-1', b'text/html; charset=utf-8', b'text/html')
    """
    declared = _CHARSET.search(body, 0, _CHARSET_BYTES)
    if declared:
        return b"text/html; charset=" + declared[1].lower()
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return b"text/html"
    return b"text/html; charset=utf-8"


class Bodies:
    """Responses of rows, built on first use and cached."""

    def __init__(self, archive: Archive, addresses: Addresses, limit: int = _LIMIT) -> None:
        self._archive = archive
        self._addresses = addresses
        self._sites = {site.encode(): number for number, site in enumerate(archive.sites)}
        self._cache: OrderedDict[tuple[int, str], Content] = OrderedDict()
        self._room = limit

    def of(self, row: int, host: Host, port: int) -> Content:
        """Return the response of a row, with links rewritten for this host."""
        key = row, host.base
        found = self._cache.get(key)
        if found is not None:
            self._cache.move_to_end(key)
            return found
        raw = self._archive.html(row)
        body = self._rewritten(raw, host, port)
        made = content(body, content_type(body), int(self._archive.times[row]), body_digest(raw))
        self._cache[key] = made
        self._room -= len(body)
        while self._room < 0 and len(self._cache) > 1:
            self._room += len(self._cache.popitem(last=False)[1].body)
        return made

    def _rewritten(self, body: bytes, host: Host, port: int) -> bytes:
        """Rewrite links to hosts of the archive, with or without a scheme, to this server."""
        pieces: list[bytes] = []
        done = 0
        for match in _HOST.finditer(body):
            site = self._sites.get(match[1].lower())
            if site is None:
                continue
            start = match.start()
            before = body[max(done, start - 6) : start].lower()
            start -= 6 if before == b"https:" else 5 if before.endswith(b"http:") else 0
            # A client that uses 127.0.0.1 stays on it.
            base = host.base if site == host.site else self._addresses.base(site, port)
            pieces += (body[done:start], base.encode())
            done = match.end()
        return b"".join((*pieces, body[done:])) if pieces else body


# --------------------------------------------------------------------------------------------------------------------
# Virtual time: it starts at a given time, runs at a speed, and can be set, advanced and paused.


LAST = 253402300799.0
"""The end of the year 9999, the last HTTP date."""


class Clock:
    """A virtual clock; it reads the real one only through the function `real`.

    >>> ticks = iter([0.0, 1.0, 2.0, 2.0, 2.0])
    >>> clock = Clock(1000.0, speed=60.0, real=lambda: next(ticks))
    >>> clock.now()
    1060.0
    >>> clock.advance(5); clock.now()
    1125.0
    """

    def __init__(self, start: float, speed: float, real: Callable[[], float]) -> None:
        self._real = real
        # One tuple, replaced at once, so that a server's thread never sees a partial change.
        self._state = (float(start), real(), float(speed))

    @property
    def speed(self) -> float:
        """Virtual seconds per real second."""
        return self._state[2]

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        base, mark, speed = self._state
        return min(max(base + (self._real() - mark) * speed, 0.0), LAST)

    def set(self, t: float, speed: float | None = None) -> None:
        """Set the time, and optionally the speed."""
        self._state = (float(t), self._real(), self.speed if speed is None else float(speed))

    def advance(self, seconds: float) -> None:
        """Advance by some seconds."""
        base, mark, speed = self._state
        self._state = (base + seconds, mark, speed)

    def run(self, speed: float) -> None:
        """Set the speed from now on."""
        self.set(self.now(), speed)

    def pause(self) -> None:
        """Stop until `run`; `set` and `advance` still work."""
        self.run(0.0)


# --------------------------------------------------------------------------------------------------------------------
# Generated documents of a served site: robots.txt, sitemap, feed, and start pages.
#
# They depend on the current rows of the site, so they are generated again only after one of them has changed. The dates
# in sitemaps are correct or not, of the kinds in `lab.replays.simulated_hints`.


_DAY = 86400
_NEVER = -1
_SEED = 11


class Dates:
    """Dates of pages at a time; `_NEVER` for a page without one."""

    def __init__(self, archive: Archive, how: str) -> None:
        self._archive = archive
        self.how, self._numbers = parse_source(f"sitemap:{how}")
        self.moves = self.how in ("lying", "random", "future", "late", "noisy")
        """Whether dates change without a change of a page."""
        self._page, self._time = (
            self._entries() if self.how == "noisy" else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        )

    def of(self, rows: Ints, now: float) -> list[str]:
        """Return the dates of pages in these rows, in the format of sitemaps; empty for none."""
        times = self._seconds(rows, int(now))
        stamps = np.datetime_as_string(np.maximum(times, 0).astype("datetime64[s]"))
        return [f"{stamp}Z" if time >= 0 else "" for stamp, time in zip(stamps.tolist(), times.tolist(), strict=True)]

    def _seconds(self, rows: Ints, now: int) -> Ints:
        archive, count = self._archive, len(rows)
        if self.how == "honest":
            return archive.times[rows].astype(np.int64)
        if self.how == "late":
            return self._as_of(rows, now - int(self._numbers[0] * _DAY))
        if self.how == "noisy":
            return self._noisy(rows, now)
        if self.how == "random":
            rng = np.random.default_rng([_SEED, now])
            return rng.integers(int(archive.start), max(now, int(archive.start) + 1), count)
        constant = {"lying": now, "future": now + 365 * _DAY, "silent": int(archive.start), "never": _NEVER}
        return np.full(count, constant[self.how], np.int64)

    def _as_of(self, rows: Ints, then: int) -> Ints:
        """Return the dates as they were at an earlier time."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        before = self._archive.rows_at(then)[pages]
        return np.where(before >= 0, self._archive.times[np.maximum(before, 0)], _NEVER).astype(np.int64)

    def _noisy(self, rows: Ints, now: int) -> Ints:
        """Return the last listed date of each page, its first row's if none was listed."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        date = self._archive.times[self._archive.first[:-1]].astype(np.int64)
        listed = self._time <= now
        date[self._page[listed]] = self._time[listed]  # in order of time: the last assignment is kept
        return date[pages]

    def _entries(self) -> tuple[Ints, Ints]:
        """Return the entries of a noisy sitemap: some of the changes, and wrong dates of any pages."""
        archive, (precision, recall) = self._archive, self._numbers
        rng = np.random.default_rng(_SEED)
        later = np.ones(len(archive.times), bool)
        later[archive.first[:-1]] = False
        true = np.flatnonzero(later & (rng.random(len(later)) < recall))
        page, time = archive.page_of[true], archive.times[true].astype(np.int64)
        false = rng.poisson(len(page) * (1 - precision) / precision)
        page = np.concatenate((page, rng.integers(0, len(archive.first) - 1, false)))
        time = np.concatenate((time, rng.integers(int(archive.start), int(archive.end) + 1, false)))
        order = np.argsort(time, kind="stable")
        return page[order], time[order]


SITEMAP_URLS = 50_000
START_LINKS = 500
FEED_ENTRIES = 20

_XML = b"application/xml; charset=utf-8"
_SITE_DOCUMENTS_HTML = b"text/html; charset=utf-8"
_XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_TITLE = re.compile(rb"<title[^>]{0,200}>([^<]{0,300})", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SITEMAP_PART = re.compile(r"/sitemap-([1-9]\d{0,5})\.xml\Z")
_START_PART = re.compile(r"/-/pages/([1-9]\d{0,5})\Z")

_Maker = Callable[[int, Host, Ints, float], str | None]


class Documents:
    """The generated documents of every site."""

    def __init__(self, archive: Archive, addresses: Addresses, dates: Dates | None = None) -> None:
        self._archive = archive
        self._addresses = addresses
        self._dates = dates or Dates(archive, "honest")
        site_of_row = archive.site_of[archive.page_of]
        self._site_times = [np.sort(archive.times[site_of_row == site]) for site in range(len(archive.sites))]
        self._kept: dict[tuple[int, str, str], tuple[tuple[int, int], Content | None]] = {}

    def find(self, path: str, host: Host, now: float) -> Content | None:
        """Return the document at a path, None if there is none."""
        assert host.site is not None
        if path == "/robots.txt":
            return robots(host)
        maker, part, kind = self._maker(path)
        if maker is None:
            return None
        begun = int(np.searchsorted(self._site_times[host.site], now, side="right"))
        state = (begun, int(now) if self._dates.moves and kind is _XML else 0)
        key = host.site, path, host.base
        kept = self._kept.get(key)
        if kept is None or kept[0] != state:
            text = maker(part, host, self._live(host.site, now), now)
            modified = int(self._site_times[host.site][max(begun - 1, 0)])
            kept = state, None if text is None else content(text.encode(), kind, modified)
            # Paths without a document must not fill the memory.
            if text is not None:
                self._kept[key] = kept
        return kept[1]

    def start(self, host: Host, now: float) -> Content:
        """Return a page with links to all live pages, for sites without a front page."""
        found = self.find("/-/pages/1", host, now)
        assert found is not None
        return found

    def _maker(self, path: str) -> tuple[_Maker | None, int, bytes]:
        if path == "/sitemap.xml":
            return self._sitemap, 0, _XML
        if path == "/feed.xml":
            return self._feed, 0, b"application/atom+xml; charset=utf-8"
        if part := _SITEMAP_PART.match(path):
            return self._sitemap, int(part[1]), _XML
        if part := _START_PART.match(path):
            return self._start, int(part[1]), _SITE_DOCUMENTS_HTML
        return None, 0, b""

    def _live(self, site: int, now: float) -> Ints:
        """Return the current rows of the site's live pages."""
        pages = self._archive.pages_at(now)
        mine: Ints = self._archive.rows_at(now)[pages[self._archive.site_of[pages] == site]]
        return mine

    def _addresses_of(self, rows: Ints, host: Host) -> list[str]:
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        paths = self._addresses.paths
        return [html.escape(host.base + paths[page]) for page in pages.tolist()]

    def _sitemap(self, part: int, host: Host, rows: Ints, now: float) -> str | None:
        """Return part 0, the sitemap or, above 50,000 pages, the index of its parts (spec H2); or another part."""
        parts = -(-len(rows) // SITEMAP_URLS)
        if part == 0 and parts > 1:
            listed = "".join(
                f"<sitemap><loc>{html.escape(host.base)}/sitemap-{i + 1}.xml</loc></sitemap>\n" for i in range(parts)
            )
            return f'{_XML_HEAD}<sitemapindex xmlns="{_SITEMAPS}">\n{listed}</sitemapindex>\n'
        if part > max(parts, 1):
            return None
        rows = rows[SITEMAP_URLS * max(part - 1, 0) :][:SITEMAP_URLS]
        listed = "".join(
            f"<url><loc>{address}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>\n"
            for address, date in zip(self._addresses_of(rows, host), self._dates.of(rows, now), strict=True)
        )
        return f'{_XML_HEAD}<urlset xmlns="{_SITEMAPS}">\n{listed}</urlset>\n'

    def _feed(self, part: int, host: Host, rows: Ints, now: float) -> str:
        """Return a feed of the newest changes (spec H3)."""
        del part, now
        newest = rows[np.argsort(-self._archive.times[rows], kind="stable")[:FEED_ENTRIES]]
        times = self._times(newest)
        base = html.escape(host.base)
        entries = "".join(
            f'<entry><title>{_title(self._archive.html(row)) or address}</title><link href="{address}"/>'
            f"<id>{address}</id><updated>{time}</updated></entry>\n"
            for row, address, time in zip(newest.tolist(), self._addresses_of(newest, host), times, strict=True)
        )
        return (
            f'{_XML_HEAD}<feed xmlns="http://www.w3.org/2005/Atom">\n'
            f'<title>{base}</title><id>{base}/</id><link href="{base}/"/>'
            f"<author><name>{base}</name></author>"
            f"<updated>{times[0] if times else '1970-01-01T00:00:00Z'}</updated>\n{entries}</feed>\n"
        )

    def _start(self, part: int, host: Host, rows: Ints, now: float) -> str | None:
        del now
        parts = -(-len(rows) // START_LINKS)
        if part > max(parts, 1):
            return None
        shown = self._addresses_of(rows[START_LINKS * (part - 1) :][:START_LINKS], host)
        links = [*shown, *(f"/-/pages/{i}" for i in range(2, parts + 1))]
        return link_page(f"Pages, part {part}", [(link, link) for link in links])

    def _times(self, rows: Ints) -> list[str]:
        stamps = np.datetime_as_string(self._archive.times[rows].astype("datetime64[s]"))
        return [f"{stamp}Z" for stamp in stamps.tolist()]


def robots(host: Host) -> Content:
    """Return a robots.txt that allows everything."""
    sitemap = f"Sitemap: {host.base}/sitemap.xml\n" if host.site is not None else ""
    return content(f"User-agent: *\nAllow: /\n{sitemap}".encode(), b"text/plain; charset=utf-8", 0)


def link_page(title: str, links: list[tuple[str, str]]) -> str:
    """Return a page of links; URLs and names are already escaped."""
    items = "".join(f'<li><a href="{address}">{name}</a></li>\n' for address, name in links)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body><h1>{title}</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    )


def _title(body: bytes) -> str:
    found = _TITLE.search(body, 0, 8192)
    text = html.unescape(found[1].decode("utf-8", "replace")) if found else ""
    return html.escape(_NOT_XML.sub("", text).strip())


# --------------------------------------------------------------------------------------------------------------------
# The ASGI application of the time-lapse server. `answer` is a pure function of request and time.


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HTML = b"text/html; charset=utf-8"
_MAX_BODY = 4096


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the server misbehaves, for tests."""

    lying_lastmod: bool = False
    """Last-Modified is the time of the request, and there is no ETag (spec C6)."""
    no_validators: bool = False
    """Neither ETag nor Last-Modified; conditional requests get a full response."""
    latency: float = 0.0
    """Seconds of delay before every response."""
    sitemap: str = "honest"
    """Dates in sitemaps: honest, lying, noisy:P,R ... (see `recrawl.lab.replays.hint_sources`)."""


class ServedRequest(NamedTuple):
    """The parts of a request that determine the response."""

    method: str
    host: str
    port: int
    path: str
    """With percent-escapes decoded."""
    query: str
    headers: Mapping[bytes, bytes]
    """Names in lower case."""


class Reply(NamedTuple):
    """Status, headers, body."""

    status: int
    headers: Headers
    body: bytes


class TimeLapse:
    """An archive as a web server."""

    def __init__(self, archive: Archive, clock: Clock, options: ServerOptions) -> None:
        self.archive = archive
        self.clock = clock
        self.addresses = Addresses(archive)
        self._options = options
        self._bodies = Bodies(archive, self.addresses)
        self._documents = Documents(archive, self.addresses, Dates(archive, options.sitemap))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request = ServedRequest(
            scope["method"],
            headers.get(b"host", b"").decode("latin-1"),
            (scope.get("server") or ("", 0))[1] or 0,
            scope["path"],
            scope["query_string"].decode("latin-1"),
            headers,
        )
        if self._options.latency:
            await asyncio.sleep(self._options.latency)
        if request.path == "/-/clock":
            reply = self._control(request, await _read(receive), _is_loopback(scope.get("client")))
        else:
            reply = self.answer(request, self.clock.now())
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else reply.body})

    def answer(self, request: ServedRequest, now: float) -> Reply:
        """Return the response to a request at a time."""
        if request.method not in ("GET", "HEAD"):
            return _message(405, "Only GET and HEAD are supported.", now, (b"allow", b"GET, HEAD"))
        host = self.addresses.host(request.host, request.port)
        if host is None:
            return _message(404, "This archive has no such site.", now)
        if host.site is None:
            return self._index_reply(request, host, now)
        return self._site_reply(request, host, host.site, now)

    def _site_reply(self, request: ServedRequest, host: Host, site: int, now: float) -> Reply:
        found = self.addresses.find(site, request.path, request.query)
        row = self.archive.row_at(found.page, now) if found else None
        if found and row is not None and not self.archive.removed[row]:
            reply = self._reply(self._bodies.of(row, host, request.port), request, now)
            if not found.exact:
                real = host.base + self.addresses.paths[found.page]
                reply.headers.append((b"link", f'<{real}>; rel="canonical"'.encode("latin-1", "replace")))
            return reply
        made = self._documents.find(request.path, host, now) if found is None else None
        if made is None and request.path == "/":
            made = self._documents.start(host, now)
        if made is not None:
            return self._reply(made, request, now)
        if found is None and self.addresses.find(site, request.path + "/", request.query):
            target = host.base + self.addresses.quoted(request.path + "/", request.query)
            return _message(301, "Moved to the folder.", now, (b"location", target.encode("latin-1")))
        return _message(404, "This page does not exist at this time.", now)

    def _index_reply(self, request: ServedRequest, host: Host, now: float) -> Reply:
        """Respond for the host of all sites: a page with links to each of them."""
        if request.path == "/robots.txt":
            return self._reply(robots(host), request, now)
        if request.path != "/":
            return _message(404, "Each site has its own host; the front page lists them.", now)
        links = [
            (html.escape(self.addresses.base(site, request.port)) + "/", html.escape(name))
            for site, name in enumerate(self.archive.sites)
        ]
        return self._reply(content(link_page("Sites", links).encode(), _HTML, self.archive.start), request, now)

    def _reply(self, made: Content, request: ServedRequest, now: float) -> Reply:
        date = (b"date", http_date(now))
        if self._options.no_validators:
            return Reply(200, [*made.bare, date], made.body)
        if self._options.lying_lastmod:
            return Reply(200, [*made.bare, (b"last-modified", http_date(now)), date], made.body)
        if _is_unchanged(made, request.headers):
            return Reply(304, [*validators(made.etag, made.modified), date], b"")
        return Reply(200, [*made.headers, date], made.body)

    def _control(self, request: ServedRequest, order: bytes, allowed: bool) -> Reply:
        """Show the clock, or set it."""
        if request.method == "POST":
            if not allowed:
                return _message(403, "Only this machine may set the clock.", self.clock.now())
            try:
                self._set_clock(order)
            except ValueError as error:
                return _message(400, f"Invalid request: {error}", self.clock.now())
        elif request.method not in ("GET", "HEAD"):
            return _message(405, "GET shows the clock, POST sets it.", self.clock.now(), (b"allow", b"GET, HEAD, POST"))
        now = self.clock.now()
        shown = {
            "now": now,
            "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
            "speed": self.clock.speed,
            "start": self.archive.start,
            "end": self.archive.end,
        }
        body = json.dumps(shown).encode() + b"\n"
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return Reply(200, [*headers, (b"cache-control", b"no-store"), (b"date", http_date(now))], body)

    def _set_clock(self, order: bytes) -> None:
        given = json.loads(order)
        if not isinstance(given, dict) or not given or set(given) - {"now", "speed", "advance"}:
            raise ValueError("expected an object with now, speed or advance")
        if isinstance(given.get("now"), str):
            moment = datetime.fromisoformat(given["now"])
            given["now"] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{name} must be a number")
            if abs(value) > LAST:
                raise ValueError(f"{name} is too large")
        if "now" in given:
            self.clock.set(given["now"])
        if "advance" in given:
            self.clock.advance(given["advance"])
        if "speed" in given:
            self.clock.run(given["speed"])


def app(archive: Archive, clock: Clock, options: ServerOptions | None = None) -> TimeLapse:
    """Return the ASGI application that serves an archive at the clock's time."""
    return TimeLapse(archive, clock, options or ServerOptions())


def _message(status: int, sentence: str, now: float, *more: tuple[bytes, bytes]) -> Reply:
    body = link_page(html.escape(sentence), []).encode()
    headers = [
        (b"content-type", _HTML),
        (b"content-length", b"%d" % len(body)),
        (b"date", http_date(now)),
        *more,
    ]
    return Reply(status, headers, body)


def _is_unchanged(made: Content, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a conditional request gets a 304 (RFC 9110 §13.2.2)."""
    tags = headers.get(b"if-none-match")
    if tags is not None:
        return tags.strip() == b"*" or made.etag in (tag.strip().removeprefix(b"W/") for tag in tags.split(b","))
    since = headers.get(b"if-modified-since")
    if since is None:
        return False
    try:
        return made.modified <= parsedate_to_datetime(since.decode("latin-1")).timestamp()
    except (ValueError, OverflowError):
        return False


async def _read(receive: Receive) -> bytes:
    """Return the request's body, cut to the size limit; a cut body is invalid JSON."""
    order = b""
    while len(order) <= _MAX_BODY:
        message = await receive()
        order += message.get("body", b"")
        if not message.get("more_body"):
            break
    return order[:_MAX_BODY]


def _is_loopback(client: tuple[str, int] | None) -> bool:
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


# --------------------------------------------------------------------------------------------------------------------
# Run the time-lapse server: in the foreground for the command line, in a thread for tests and the demo.


_OPTIONS: dict[str, Any] = {"date_header": False, "timeout_graceful_shutdown": 2}
"""The application sends the virtual date itself."""


def serve(application: TimeLapse, bound: socket.socket) -> None:
    """Serve until Ctrl-C."""
    try:
        HttpServer(application, bound, **_OPTIONS).foreground()
    except KeyboardInterrupt:
        return  # uvicorn raises the signal again after its shutdown
    finally:
        bound.close()


class TimeLapseServer:
    """The server in a thread, on a free port of the loopback interface.

    `with TimeLapseServer(app(archive, clock)) as server:` and then `server.url_of("https://news1.example/")`.
    """

    def __init__(self, application: TimeLapse, port: int = 0) -> None:
        self._application = application
        self._bound = listen(port)
        self.port: int = self._bound.getsockname()[1]
        self._server = HttpServer(application, self._bound, **_OPTIONS)

    def __enter__(self) -> Self:
        self._server.start("time-lapse")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._bound.close()

    def url_of(self, url: str) -> str:
        """Where this server serves a URL of the archive."""
        served = self._application.addresses.served(url, self.port)
        if served is None:
            raise UsageError(f"the archive has no site for {url}")
        return served
