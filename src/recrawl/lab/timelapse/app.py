"""The ASGI application of the time-lapse server. `answer` is a pure function of request and time."""

from __future__ import annotations

import asyncio
import html
import ipaddress
import json
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from recrawl.lab.formats.archive import Archive
from recrawl.lab.timelapse.addresses import Addresses, Host
from recrawl.lab.timelapse.bodies import Bodies, Content, Headers, content, http_date, validators
from recrawl.lab.timelapse.clock import LAST, Clock
from recrawl.lab.timelapse.site_documents import Dates, Documents, link_page, robots

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
    """Dates in sitemaps: honest, lying, noisy:P,R ... (see `recrawl.lab.replays.simulated_hints`)."""


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
