"""A web server that misbehaves in every way we have met, one path for each way.

    with Misbehaving() as server:
        client.get(server.url("/slow-body"))
        assert server.count("/slow-body") == 1

`KINDS` lists the ways: name, one line about it, and `expect`, what recrawl records of it: values of
`recrawl.model.Failure`, or "ok" for a page like any other; several where time decides. `/` links to all of them.
`ROBOTS` lists what `/robots.txt` can be; a server has one of them (`Misbehaving(robots="500")`), and `expect` then
says what becomes of an ordinary page of that server (`/ok`). `docs/reference/failures.md` lists all of them:
`python -m tests.misbehaving docs/reference/failures.md` writes them there.

It is a bare socket server, because no library would send such answers. What takes for ever takes until the
client gives up or the server is stopped, which happens at once. `pace` is the time between two slow bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from recrawl.cli.reference import MISBEHAVIOUR
from recrawl.model import Failure

HTML = "text/html; charset=utf-8"
WORDS = b"<p>The quick brown fox jumps over the lazy dog, and nobody minds.</p>\n"


class Request(NamedTuple):
    """What a client asked."""

    path: str
    query: str
    headers: dict[str, str]
    time: float


@dataclass
class Exchange:
    """One request and the way to answer it."""

    server: Misbehaving
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request: Request
    rest: str
    """What follows the kind's name in the path."""
    close: bool = True

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def page(self, body: bytes, *headers: str, status: str = "200 OK", kind: str = HTML) -> None:
        """A well-formed answer; the connection stays open."""
        self.close = False
        await self.send(answer(body, *headers, status=status, kind=kind))

    async def for_ever(self, data: bytes, pace: float = 0.0) -> None:
        """Until the client hangs up."""
        while True:
            await self.send(data)
            if pace:
                await asyncio.sleep(pace)

    async def hang(self) -> None:
        """Say nothing until the client hangs up."""
        while await self.reader.read(65536):
            pass

    def reset(self) -> None:
        """Break the connection off without a goodbye."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Answer = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True)
class Kind:
    """One way to misbehave."""

    name: str
    about: str
    expect: frozenset[Failure | str]
    answer: Answer


KINDS: dict[str, Kind] = {}
ROBOTS: dict[str, Kind] = {}


def enter(name: str, about: str, expect: str, table: dict[str, Kind] = KINDS) -> Callable[[Answer], Answer]:
    """Enter a function in the table. `expect` names members of Failure, or ok."""
    words = frozenset(word if word == "ok" else Failure[word] for word in expect.split())

    def decorate(function: Answer) -> Answer:
        assert name not in table
        table[name] = Kind(name, about, words, function)
        return function

    return decorate


def fixed(
    name: str,
    about: str,
    expect: str,
    raw: bytes | Callable[[], bytes],
    *,
    kind: str | None = None,
    table: dict[str, Kind] = KINDS,
    close: bool = False,
) -> None:
    """Enter what is sent byte for byte; or, with a content type (`kind`), what is the body."""

    async def send(x: Exchange) -> None:
        data = raw if isinstance(raw, bytes) else raw()
        x.close = close
        await x.send(data if kind is None else answer(data, kind=kind))

    enter(name, about, expect, table)(send)


broken = partial(fixed, close=True)
"""The same, after which the connection is closed."""


def answer(body: bytes = b"", *headers: str, status: str = "200 OK", kind: str = HTML) -> bytes:
    """A well-formed answer."""
    lines = [
        f"HTTP/1.1 {status}",
        *([f"Content-Type: {kind}"] if kind else []),
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def html(body: bytes, title: str = "A page") -> bytes:
    return b"<!doctype html><title>%s</title><body>%s</body>" % (title.encode(), body)


def head(*headers: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A head without Content-Length, unless it is among the headers."""
    return "\r\n".join([status, f"Content-Type: {HTML}", *headers, "", ""]).encode("latin-1")


def links(*targets: str) -> bytes:
    return b"".join(b'<a href="%s">%s</a> ' % (t.encode(), t.encode()) for t in targets)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def moved(where: str) -> bytes:
    return answer(html(b"moved"), f"Location: {where}", status="302 Found")


@cache
def bomb() -> bytes:
    """A gzip stream of 1 GB in 1 MB: one block of zeros, again and again."""
    squeeze = zlib.compressobj(9, wbits=-15)
    block = squeeze.compress(bytes(10 << 20)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * 100 + b"\x03\0" + bytes(8)


OK = html(WORDS * 5)
PACKED = gzip.compress(OK)
CHUNKED = head("Transfer-Encoding: chunked")

# The tables below read best with one kind to a line.
# fmt: off

# -- for comparison ----------------------------------------------------------------------------------

fixed("ok", "an ordinary page", "ok", answer(OK))
fixed("ok-chunked", "an ordinary page in chunks", "ok", CHUNKED + chunk(OK) + b"0\r\n\r\n")
fixed("ok-gzip", "an ordinary page, packed", "ok", answer(PACKED, "Content-Encoding: gzip"))

# -- the connection ----------------------------------------------------------------------------------

broken("closes-at-once", "closes before answering", "CUT_OFF", b"")
broken("closes-in-status", "closes within the status line", "CUT_OFF", b"HTTP/1.1 20")
broken("closes-in-headers", "closes within the headers", "CUT_OFF", head("X: y")[:-8])
broken("closes-in-body", "Content-Length is longer than the body", "CUT_OFF", head("Content-Length: 100000") + OK)
broken("closes-in-chunk", "closes within a chunk", "CUT_OFF", CHUNKED + b"fffff\r\n" + OK)
broken("no-last-chunk", "closes without the last chunk", "CUT_OFF", CHUNKED + chunk(OK))


@enter("resets-at-once", "resets the connection before answering", "CUT_OFF")
async def resets_at_once(x: Exchange) -> None:
    x.reset()


@enter("resets-in-body", "resets the connection within the body", "CUT_OFF")
async def resets_in_body(x: Exchange) -> None:
    await x.send(head("Content-Length: 100000") + OK)
    x.reset()


@enter("closes-second-time", "answers every other request, else closes", "ok CUT_OFF")
async def closes_second_time(x: Exchange) -> None:
    if x.server.count(x.request.path) % 2:
        await x.page(OK)


# -- the length of the body --------------------------------------------------------------------------

fixed("longer-than-said", "more body than Content-Length, then keeps the connection", "ok",
      head(f"Content-Length: {len(OK)}") + OK + answer(b"SMUGGLED", status="404 Not Found"))
broken("length-negative", "a negative Content-Length", "BAD_RESPONSE", head("Content-Length: -5") + OK)
broken("length-garbage", "a Content-Length that is not a number", "BAD_RESPONSE",
       head("Content-Length: 12x4") + OK)
broken("length-overflow", "a Content-Length of 30 digits", "ok",
       head("Content-Length: " + "9" * 30) + OK)
broken("length-huge", "promises a terabyte", "CUT_OFF", head("Content-Length: 1099511627776") + OK)
broken("length-twice", "two different Content-Lengths", "BAD_RESPONSE",
       head("Content-Length: 10", f"Content-Length: {len(OK)}") + OK)
broken("length-and-chunks", "Content-Length and chunks", "ok",
       head("Content-Length: 3", "Transfer-Encoding: chunked") + chunk(OK) + b"0\r\n\r\n")
broken("chunks-broken", "a chunk size that is not a number", "CUT_OFF", CHUNKED + b"zz\r\n" + OK)
broken("chunks-huge", "a chunk of 2^64 - 1 bytes", "CUT_OFF",
       CHUNKED + b"ffffffffffffffff\r\n" + OK)
broken("chunks-wrong", "chunks that are longer than they say", "CUT_OFF", CHUNKED + b"5\r\n" + OK)
broken("not-chunked", "says chunked and is not", "CUT_OFF", CHUNKED + OK)


@enter("chunks-endless", "chunks without end", "TOO_LARGE TIMEOUT")
async def chunks_endless(x: Exchange) -> None:
    await x.send(CHUNKED)
    await x.for_ever(chunk(WORDS * 100))


@enter("body-endless", "a body without length and without end", "TOO_LARGE TIMEOUT")
async def body_endless(x: Exchange) -> None:
    await x.send(head())
    await x.for_ever(WORDS * 100)


# -- the head ----------------------------------------------------------------------------------------


@enter("headers-endless", "headers without end", "BAD_RESPONSE TIMEOUT")
async def headers_endless(x: Exchange) -> None:
    await x.send(head()[:-2])
    await x.for_ever(b"X-Again: and again\r\n" * 100)


@enter("continue-flood", "100 Continue without end", "CUT_OFF TIMEOUT")
async def continue_flood(x: Exchange) -> None:
    await x.for_ever(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


broken("header-huge", "one header of 10 MB", "BAD_RESPONSE", lambda: head("X: " + "y" * 10_000_000) + OK)
broken("headers-10000", "10,000 headers", "BAD_RESPONSE",
       lambda: answer(OK, *(f"X-{i}: y" for i in range(10_000))))
broken("header-without-colon", "a header without a colon", "BAD_RESPONSE", answer(OK, "nonsense"))
broken("header-nul", "a zero byte in a header", "BAD_RESPONSE", answer(OK, "X: a\0b"))
broken("header-bytes", "bytes that are not ASCII in a header", "ok", answer(OK, "X: \xff\xfe\x80"))
broken("header-folded", "a header over two lines", "ok", answer(OK, "X: a\r\n b"))
broken("header-space", "a space before the colon", "ok", answer(OK, "X : a"))
broken("line-feeds-only", "lines that end without a carriage return", "ok", answer(OK).replace(b"\r\n", b"\n"))
broken("cookies", "2,000 cookies", "ok",
       lambda: answer(OK, *(f"Set-Cookie: c{i}={'x' * 60}" for i in range(2000))))
broken("status-999", "status 999", "SERVER_ERROR", answer(OK, status="999 No"))
broken("status-word", "a status that is not a number", "BAD_RESPONSE", answer(OK, status="abc OK"))
broken("status-0", "status 000", "BAD_RESPONSE", answer(OK, status="000 Nothing"))
broken("status-text", "garbage for the status text", "ok", answer(OK, status="200 \xff\x80 \x01 ok"))
broken("status-bare", "no status text", "ok", answer(OK, status="200"))
broken("http-0.9", "a body and nothing else", "BAD_RESPONSE", OK)
broken("http-1.0", "HTTP/1.0, no length", "ok", head(status="HTTP/1.0 200 OK") + OK)
broken("http-7.3", "an invalid version", "BAD_RESPONSE", head(status="HTTP/7.3 200 OK") + OK)
broken("not-http", "speaks SSH", "BAD_RESPONSE", b"SSH-2.0-OpenSSH_9.6\r\n" * 3)
fixed("continues", "100 and 103 first, then a page", "ok",
      b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer(OK))
broken("status-long", "a status of 5,000 digits", "STATUS", answer(OK, status="2" * 5000 + " OK"))
fixed("trailers", "headers behind the last chunk", "ok", CHUNKED + chunk(OK) + b"0\r\nX: y\r\nLocation: /none\r\n\r\n")
fixed("chunk-extensions", "chunks with 10 KB of extensions", "ok",
      CHUNKED + chunk(OK).replace(b"\r\n", b";x=" + b"y" * 10_000 + b"\r\n", 1) + b"0\r\n\r\n")
fixed("robots-tag-none", "X-Robots-Tag: none", "ok", answer(OK, "X-Robots-Tag: none"))
fixed("robots-tag-huge", "50 KB of X-Robots-Tag", "ok", answer(OK, "X-Robots-Tag: " + "a:b," * 12_000))
fixed("refresh-self", "a Refresh header to itself", "ok", answer(OK, "Refresh: 0; url=/refresh-self"))
fixed("refresh-odd", "a Refresh header to a script", "ok", answer(OK, "Refresh: 0; url=javascript:alert(1)"))
broken("status-101", "switches to another protocol unasked", "CUT_OFF",
       b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")

# -- the encoding ------------------------------------------------------------------------------------

for _name, _about, _expect, _label, _body in (
    ("encoding-wrong", "says gzip and is not", "ok", "gzip", OK),
    ("encoding-unknown", "an unknown encoding", "ok", "klingon", OK),
    ("encoding-unsaid", "gzip without a label", "ok", "identity", PACKED),
    ("encoding-chain", "100 encodings", "ok", ", ".join(["gzip"] * 100), OK),
    ("gzip-double", "packed twice, and says so", "ok", "gzip, gzip", gzip.compress(PACKED)),
    ("gzip-hidden", "packed twice, says once", "ok", "gzip", gzip.compress(PACKED)),
    ("gzip-cut", "half a gzip stream", "ok", "gzip", PACKED[:-20]),
    ("gzip-junk", "junk behind the gzip stream", "ok", "gzip", PACKED + b"junk" * 9),
    ("brotli-garbage", "says brotli and is not", "BAD_ENCODING", "br", b"\xff" * 500),
    ("deflate-raw", "deflate without its wrapper", "ok", "deflate", zlib.compress(OK, wbits=-15)),
    ("zstd", "zstd, which was not requested", "BAD_ENCODING", "zstd", b"\x28\xb5\x2f\xfd\x04\x58" + b"\x19\0\0hey" * 9),
    ("brotli-wrong", "says brotli and is plain", "ok", "br", OK),
    ("gzip-broken", "a gzip stream with a wrong byte", "BAD_ENCODING", "gzip", PACKED[:30] + b"\xff" + PACKED[31:]),
    ("gzip-other", "gzip that is called zstd", "ok", "zstd", PACKED),
):
    fixed(_name, _about, _expect, answer(_body, f"Content-Encoding: {_label}"))
fixed("gzip-bomb", "1 GB in 1 MB", "TOO_LARGE", lambda: answer(bomb(), "Content-Encoding: gzip"))

# -- time --------------------------------------------------------------------------------------------


@enter("never-answers", "accepts the request and never answers", "TIMEOUT")
async def never_answers(x: Exchange) -> None:
    await x.hang()


@enter("stalls-in-headers", "stops within the headers", "TIMEOUT")
async def stalls_in_headers(x: Exchange) -> None:
    await x.send(head("X: y")[:-4])
    await x.hang()


@enter("stalls-in-body", "stops within the body", "TIMEOUT")
async def stalls_in_body(x: Exchange) -> None:
    await x.send(head("Content-Length: 100000") + OK)
    await x.hang()


@enter("slow-headers", "headers byte by byte", "TIMEOUT")
async def slow_headers(x: Exchange) -> None:
    await x.send(b"HTTP/1.1 200 OK\r\nX: ")
    await x.for_ever(b"y", x.server.pace)


@enter("slow-body", "a body byte by byte", "TIMEOUT")
async def slow_body(x: Exchange) -> None:
    await x.send(head("Content-Length: 100000"))
    await x.for_ever(b"y", x.server.pace)


# -- redirects ---------------------------------------------------------------------------------------

for _name, _about, _expect, _where in (
    ("self", "to itself", "REDIRECT_LOOP", "/redirect-self"),
    ("relative", "with a relative URL", "ok", "ok"),
    ("fragment", "to a fragment of itself", "REDIRECT_LOOP", "#top"),
    ("private", "to a private IP address", "REDIRECT_AWAY", "http://10.0.0.1/"),
    ("metadata", "to a cloud's metadata", "REDIRECT_AWAY", "http://169.254.169.254/latest/meta-data/"),
    ("decimal", "to loopback, spelled as a number", "REDIRECT_AWAY", "http://2130706433:1/"),
    ("file", "to a file", "REDIRECT_BAD", "file:///etc/passwd"),
    ("javascript", "to a script", "REDIRECT_BAD", "javascript:alert(1)"),
    ("data", "to a data URL", "REDIRECT_BAD", "data:text/html,hello"),
    ("gopher", "to another protocol", "REDIRECT_BAD", "gopher://127.0.0.1:70/"),
    ("empty", "with an empty Location", "REDIRECT_BAD", ""),
    ("garbage", "to garbage", "REDIRECT_BAD", "http://[::bad::]:99999/%%\\ <>"),
    ("huge", "to a URL of 1 MB", "BAD_RESPONSE", "/ok?" + "x" * 1_000_000),
    ("backslash", "with backslashes", "ok", "\\ok"),
    ("dots", "above the root", "ok", "/../../ok"),
    ("bytes", "with bytes that are not ASCII", "CLIENT_ERROR", "/\xe4\xff"),
    ("user", "with a name and a password", "REDIRECT_AWAY", "http://a:b@127.0.0.1:1/ok"),
    ("space", "with a space before a fragment", "CLIENT_ERROR", "/ok #top"),
    ("no-such-host", "to a name that does not exist", "REDIRECT_AWAY", "http://no-such-host.invalid/"),
):
    fixed(f"redirect-{_name}", f"redirects {_about}", _expect, moved(_where))
fixed("redirect-nowhere", "redirects without Location", "REDIRECT_BAD", answer(OK, status="302 Found"))
fixed("redirect-twice", "two Locations", "BAD_RESPONSE",
      answer(b"", "Location: /ok", "Location: http://10.0.0.1/", status="301 Moved"))
fixed("redirect-300", "300 Multiple Choices", "STATUS", answer(OK, status="300 Choices"))
fixed("location-200", "a page with a Location", "ok", answer(OK, "Location: /status-404"))


@enter("redirect-loop", "redirects in a circle of three", "REDIRECT_LOOP")
async def redirect_loop(x: Exchange) -> None:
    await x.page(b"", f"Location: /redirect-loop/{(int(x.rest or 0) + 1) % 3}", status="301 Moved")


@enter("redirect-cookie", "redirects to itself until a cookie comes back", "REDIRECT_LOOP")
async def redirect_cookie(x: Exchange) -> None:
    await x.page(OK, "Location: /redirect-cookie", "Set-Cookie: seen=1", status="302 Found")


@enter("redirect-tls", "redirects to TLS on a port without it", "UNREACHABLE_TIMEOUT")
async def redirect_tls(x: Exchange) -> None:
    host = x.request.headers["host"]
    await x.page(b"", f"Location: https://{host}/ok", status="302 Found")


@enter("redirect-chain", "50 redirects to a page", "REDIRECT_LIMIT")
async def redirect_chain(x: Exchange) -> None:
    n = int(x.rest or 0)
    await x.page(OK, f"Location: /redirect-chain/{n + 1}", status="301 Moved" if n < 50 else "200 OK")


@enter("redirect-endless", "redirects to new URLs without end", "REDIRECT_LIMIT")
async def redirect_endless(x: Exchange) -> None:
    await x.page(b"", f"Location: /redirect-endless/{next(x.server.numbers)}", status="307 Temporary")


@enter("redirect-closed-port", "redirects to a closed port", "REDIRECT_AWAY")
async def redirect_closed(x: Exchange) -> None:
    await x.page(b"", f"Location: http://127.0.0.1:{x.server.closed_port}/", status="302 Found")


@enter("redirect-deaf-port", "redirects to a port that accepts no connection", "REDIRECT_AWAY")
async def redirect_deaf(x: Exchange) -> None:
    await x.page(b"", f"Location: http://127.0.0.1:{x.server.deaf_port}/", status="302 Found")


# -- the status --------------------------------------------------------------------------------------

for _expect, _statuses in {
    "STATUS": ("204 No Content", "205 Reset Content", "206 Partial Content", "304 Not Modified"),
    "CLIENT_ERROR": ("400 Bad Request", "401 Unauthorized", "402 Pay", "403 Forbidden", "405 Not Allowed",
                     "407 Proxy Authentication", "408 Request Timeout", "418 Teapot", "451 Unavailable"),
    "MISSING": ("404 Not Found", "410 Gone"),
    "SERVER_ERROR": ("500 Oops", "502 Bad Gateway", "504 Gateway Timeout", "520 Unknown"),
}.items():
    for _status in _statuses:
        _body = b"" if _status[:3] in ("204", "304") else OK
        fixed(f"status-{_status[:3]}", f"answers {_status}", _expect, answer(_body, status=_status))
for _name, _header in {
    "": "X-No-Retry-After: 1", "-seconds": "Retry-After: 2", "-date": "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT",
    "-garbage": "Retry-After: after lunch", "-huge": "Retry-After: " + "9" * 30, "-negative": "Retry-After: -1",
}.items():
    fixed(f"status-429{_name}", f"429, {_header[:24]}", "RATE_LIMITED HELD_OFF", answer(OK, _header, status="429 Wait"))
    fixed(f"status-503{_name}", f"503, {_header[:24]}", "SERVER_ERROR HELD_OFF", answer(OK, _header, status="503 Wait"))
fixed("soft-404", "a page that says it does not exist", "MISSING", answer(html(b"<h1>Not Found</h1>", "404")))

# -- the page ----------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
ODD_LINKS = ("javascript:void(0)", "mailto:a@b", "tel:1", "data:,x", "http://[", "//", "file:///etc/passwd", "\x01",
             "http://10.0.0.1/", "?", "#", "http://a:b@c:99999/", "http://%00/", "\\\\x\\y")
PAGES: list[tuple[str, str, str, Callable[[], bytes], str]] = [
    ("empty", "no body at all", "ok", bytes, HTML),
    ("nested", "100,000 elements, one inside the other", "ok",
     lambda: b"<div>" * 100_000 + b"x", HTML),
    ("nested-inline", "unclosed inline elements again and again", "ok PARSE_TIMEOUT",
     lambda: b"<b><i><a href=/ok><p>" * 5000, HTML),
    ("opened-again", "100 unclosed elements, opened again in 2,000 paragraphs", "TOO_DEEP",
     lambda: b"<p>x" + b"".join(b"<i a%d>" % i for i in range(100)) + b"<p>x</p>" * 2_000, HTML),
    ("html-20mb", "20 MB of HTML", "TOO_LARGE", lambda: html(WORDS * (20_000_000 // len(WORDS))), HTML),
    ("one-line-5mb", "one line of 5 MB", "ok", lambda: html(b"word " * 1_000_000), HTML),
    ("one-word-5mb", "one word of 5 MB", "ok", lambda: html(b"x" * 5_000_000), HTML),
    ("one-tag", "a tag with 100,000 attributes", "ok",
     lambda: b"<a %s>x" % b" ".join(b"a%d=1" % i for i in range(100_000)), HTML),
    ("links-100000", "100,000 links", "ok", lambda: html(links(*(f"/x/{i}" for i in range(100_000)))), HTML),
    ("link-huge", "a link of 1 MB", "ok", lambda: html(links("/ok?" + "x" * 1_000_000)), HTML),
    ("links-odd", "invalid links", "ok", lambda: html(links(*ODD_LINKS)), HTML),
    ("base-odd", "a base that leads elsewhere", "ok", lambda: b"<base href='file:///etc/'>" + links("passwd"), HTML),
    ("meta-refresh", "a meta refresh to itself", "ok",
     lambda: b"<meta http-equiv=refresh content='0;url=/meta-refresh'>" + OK, HTML),
    ("tables", "20,000 tables, one inside the other", "ok", lambda: b"<table><td>" * 20_000, HTML),
    ("svg-html", "pages in pictures in pages", "ok", lambda: b"<svg><foreignObject><p>x" * 500 + WORDS, HTML),
    ("select-open", "10,000 options that never end", "ok", lambda: b"<select>" + b"<option>x" * 10_000, HTML),
    ("spellings", "one page in many spellings", "ok",
     lambda: html(links(*(f"/ok{end}" for end in ("?utm_a=1", "#x", "?srsltid=2", "?", "?gclid=3&fbclid=4")))), HTML),
    ("charset-late", "the charset after 5,000 bytes", "ok",
     lambda: b"<!doctype html>" + b" " * 5000 + b"<meta charset=koi8-r>" + "Привет".encode("koi8-r"), "text/html"),
    ("charset-bogus", "a bogus charset before the right one", "ok",
     lambda: b"<meta charset=bogus><meta charset=koi8-r>" + "Привет".encode("koi8-r"), "text/html"),
    ("comment-open", "a comment that never ends", "ok", lambda: b"<!--" + WORDS * 1000, HTML),
    ("script-open", "a script that never ends", "ok", lambda: b"<script>" + WORDS * 1000, HTML),
    ("entities", "invalid entities", "ok", lambda: b"&amp;&#0;&#x110000;&nonsense;" * 50_000, HTML),
    ("nul-bytes", "zero bytes in the text", "ok", lambda: OK.replace(b"o", b"o\0"), HTML),
    ("binary-as-html", "a picture that is called HTML", "ok", lambda: PNG, HTML),
    ("picture", "a picture", "CONTENT_TYPE", lambda: PNG, "image/png"),
    ("type-none", "no content type", "ok", lambda: OK, ""),
    ("type-garbage", "an invalid content type", "ok", lambda: OK, ";;=/\x80 html"),
    ("charset-wrong", "Latin-1 that is called UTF-8", "ok", lambda: html("Ärger ".encode("latin-1") * 20), HTML),
    ("charset-unknown", "an unknown charset", "ok", lambda: OK, "text/html; charset=klingon"),
    ("charset-codec", "a charset that is a Python codec", "ok", lambda: OK, "text/html; charset=zlib_codec"),
    ("charset-disagrees", "three charsets at once", "ok",
     lambda: b"<meta charset=shift_jis>" + html("Grüße".encode()), "text/html; charset=koi8-r"),
    ("utf-16-bare", "UTF-16 without a mark", "ok", lambda: OK.decode().encode("utf-16-le"), "text/html"),
    ("utf-8-broken", "UTF-8 with errors", "ok", lambda: OK + b"\xc3\x28\xed\xa0\x80\xff\xfe\xf4\x90\x80\x80", HTML),
    ("encodings-mixed", "three encodings in one page", "ok",
     lambda: html("é".encode() * 9 + "é".encode("latin-1") * 9 + "é".encode("utf-16")), "text/html"),
]
for _name, _about, _expect, _make, _type in PAGES:
    fixed(_name, _about, _expect, _make, kind=_type)

# -- change, and what the server says of it ----------------------------------------------------------


@enter("etag-lies", "the same ETag for changing text", "ok")
async def etag_lies(x: Exchange) -> None:
    same = x.request.headers.get("if-none-match") == '"same"'
    body = b"" if same else html(b"Number %d" % next(x.server.numbers))
    await x.page(body, 'ETag: "same"', status="304 Not Modified" if same else "200 OK")


@enter("etag-new", "a new ETag for the same text", "ok")
async def etag_new(x: Exchange) -> None:
    await x.page(OK, f'ETag: W/"{next(x.server.numbers)}"')


@enter("modified-now", "Last-Modified is always now", "ok")
async def modified_now(x: Exchange) -> None:
    await x.page(OK, "Last-Modified: " + time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()))


@enter("always-304", "304 to every conditional request", "ok")
async def always_304(x: Exchange) -> None:
    asked = {"if-none-match", "if-modified-since"} & set(x.request.headers)
    await x.page(b"" if asked else OK, 'ETag: "x"', status="304 Not Modified" if asked else "200 OK")


@enter("always-new", "different text at every visit", "ok")
async def always_new(x: Exchange) -> None:
    await x.page(html(WORDS + b"Visitor %d" % next(x.server.numbers)))


fixed("etag-huge", "an ETag of 50 KB", "ok", answer(OK, f'ETag: "{"x" * 50_000}"'))
fixed("etag-odd", "an ETag with odd bytes", "ok", answer(OK, "ETag: \x80 \xff no quotes"))
fixed("modified-garbage", "an invalid Last-Modified", "ok", answer(OK, "Last-Modified: last summer"))

# -- traps -------------------------------------------------------------------------------------------


@enter("calendar", "a calendar without end", "ok")
async def calendar(x: Exchange) -> None:
    month = int(x.rest or 24_000)
    await x.page(html(b"Nothing is planned. " + links(f"/calendar/{month - 1}", f"/calendar/{month + 1}")))


@enter("growing-paths", "relative links that make the path longer", "ok")
async def growing_paths(x: Exchange) -> None:
    here = x.request.path.rstrip("/")
    await x.page(html(links(f"{here}/growing/", f"{here}/paths/") + WORDS))


@enter("session-ids", "a new session id in every link", "ok")
async def session_ids(x: Exchange) -> None:
    n = next(x.server.numbers)
    await x.page(html(links(*(f"/session-ids/{page}?sid={n:032x}" for page in range(5))) + WORDS))


@enter("query-orders", "every order of every parameter", "ok")
async def query_orders(x: Exchange) -> None:
    orders = itertools.permutations(("colour=red", "size=9", "sort=up", "page=1", "view=list"))
    await x.page(html(links(*("/query-orders?" + "&".join(order) for order in orders))))


@enter("pages-endless", "page after page of nothing", "ok")
async def pages_endless(x: Exchange) -> None:
    await x.page(html(links(f"/pages-endless?page={int(x.request.query.partition('=')[2] or 0) + 1}")))


# -- sitemaps ----------------------------------------------------------------------------------------

XML = "application/xml"


@enter("sitemap-loop", "an index that lists itself and new ones without end", "ok")
async def sitemap_loop(x: Exchange) -> None:
    places = ("/sitemap-loop", f"/sitemap-loop/{next(x.server.numbers)}")
    inner = "".join(f"<sitemap><loc>{x.server.url(place)}</loc></sitemap>" for place in places)
    await x.page(f"<sitemapindex>{inner}</sitemapindex>".encode(), kind=XML)


LAUGHS = b"<!ENTITY a0 'ha'>" + b"".join(b"<!ENTITY a%d '%s'>" % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 10))
MAPS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "bomb": ("1 GB of zeros in 1 MB", bomb),
    "wrong": ("invalid XML", lambda: b"<urlset><url><loc>/ok</url><loc>/status-404?a=1&b=2</urlset>"),
    "html": ("a page in place of a sitemap", lambda: OK),
    "laughs": ("entities that multiply", lambda: b"<!DOCTYPE u [%s]><urlset><url><loc>/&a9;</loc>" % LAUGHS),
    "xxe": ("an external entity that names a file",
            lambda: b"<!DOCTYPE u [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>/&f;</loc>"),
    "many": ("100,000 URLs", lambda: b"".join(b"http://127.0.0.1/%d\n" % i for i in range(100_000))),
}
for _name, (_about, _make) in MAPS.items():
    fixed(f"sitemap-{_name}", f"a sitemap: {_about}", "ok", _make, kind=XML)

# -- robots.txt --------------------------------------------------------------------------------------

BARRED = b"User-agent: *\nDisallow: /\n"
OPEN = b"User-agent: *\nDisallow: /barred\n"
RULES: list[tuple[str, str, str, Callable[[], bytes]]] = [
    ("open", "allows all but /barred", "ok", lambda: OPEN),
    ("barred", "allows nothing", "ROBOTS", lambda: BARRED),
    ("empty", "is empty", "ok", bytes),
    ("bom", "begins with a byte order mark", "ROBOTS", lambda: b"\xef\xbb\xbf" + BARRED),
    ("bom-partial", "begins with a part of a byte order mark", "ROBOTS", lambda: b"\xef\xbb" + BARRED),
    ("no-newlines", "is one line", "ok", lambda: BARRED.replace(b"\n", b" ")),
    ("utf-16", "is UTF-16", "ROBOTS", lambda: BARRED.decode().encode("utf-16")),
    ("binary", "is a picture", "ok", lambda: PNG),
    ("html", "is a page", "ok", lambda: OK),
    ("crawl-delay", "asks for a year between visits", "ok", lambda: OPEN + b"Crawl-delay: 31536000\n"),
    ("wildcards", "has rules full of wildcards", "ok", lambda: OPEN + b"Disallow: /*a*a*a*a*b\n" * 20_000),
    ("agents", "has 10,000 agents for 20,000 rules", "ok",
     lambda: b"".join(b"User-agent: a%d\n" % i for i in range(10_000)) + b"Disallow: /\n" * 20_000),
    ("10mb", "is 10 MB long, and bars all at the end", "ok", lambda: OPEN + b"# nothing\n" * 1_000_000 + BARRED),
    ("sitemaps", "lists the sitemaps", "ok",
     lambda: OPEN + b"".join(b"Sitemap: /sitemap-%s\n" % name.encode() for name in (*MAPS, "loop"))),
]
for _name, _about, _expect, _make in RULES:
    fixed(_name, _about, _expect, _make, kind="text/plain", table=ROBOTS)
for _status, _expect in {
    "404 Not Found": "ok", "403 Forbidden": "ok", "401 Unauthorized": "ok", "410 Gone": "ok",
    "429 Wait": "ROBOTS_UNREACHABLE", "500 Oops": "ROBOTS_UNREACHABLE",
    "503 Busy": "ROBOTS_UNREACHABLE",
}.items():
    fixed(_status[:3], f"answers {_status}", _expect, answer(BARRED, status=_status), table=ROBOTS)
broken("closes", "closes before answering", "ROBOTS_UNREACHABLE", b"", table=ROBOTS)
broken("cut", "is cut off", "ROBOTS_UNREACHABLE", head("Content-Length: 99999") + BARRED, table=ROBOTS)
fixed("bomb", "is 1 GB in 1 MB", "ok",
      lambda: answer(bomb(), "Content-Encoding: gzip"), table=ROBOTS)
fixed("gzip-false", "says gzip and is not", "ROBOTS", answer(BARRED, "Content-Encoding: gzip"), table=ROBOTS)
fixed("zstd", "is zstd, which was not requested", "ROBOTS_UNREACHABLE",
      answer(b"\x28\xb5\x2f\xfd\x04" * 9, "Content-Encoding: zstd"), table=ROBOTS)
fixed("redirect-loop", "redirects to itself", "ok", moved("/robots.txt"), table=ROBOTS)
# fmt: on


@enter("redirect-chain", "redirects three times to rules that bar all", "ROBOTS", ROBOTS)
async def robots_chain(x: Exchange) -> None:
    n = x.request.query.count("x")
    status = "301 Moved" if n < 3 else "200 OK"
    await x.page(BARRED, f"Location: /robots.txt?{'x' * (n + 1)}", status=status, kind="text/plain")


@enter("silent", "never answers", "UNREACHABLE_TIMEOUT", ROBOTS)
async def robots_silent(x: Exchange) -> None:
    await x.hang()


@enter("endless", "bars all, and goes on without end", "ROBOTS", ROBOTS)
async def robots_endless(x: Exchange) -> None:
    await x.send(head() + BARRED)
    await x.for_ever(b"# and so on\n" * 100)


# -- the server --------------------------------------------------------------------------------------


@dataclass
class Misbehaving:
    """The server, running in a thread of its own while the `with` block lasts."""

    robots: str = "404"
    pace: float = 1.0
    log: list[Request] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    port: int = 0
    closed_port: int = 0
    deaf_port: int = 0

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def count(self, path: str) -> int:
        """How often this path was asked for, with any query."""
        return sum(request.path == path for request in self.log)

    def __enter__(self) -> Self:
        self._sockets = [socket.socket() for _ in range(4)]
        closed, deaf, *knocking = self._sockets
        closed.bind(("127.0.0.1", 0))
        self.closed_port = closed.getsockname()[1]
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        self.deaf_port = deaf.getsockname()[1]
        for knock in knocking:  # these fill the queue, so that the next one waits
            knock.setblocking(False)
            knock.connect_ex(("127.0.0.1", self.deaf_port))
        self._writers: set[asyncio.StreamWriter] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="misbehaving", daemon=True)
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        for each in self._sockets:
            each.close()
        assert not self._thread.is_alive()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client has gone, or the server stops
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = urlsplit(lines[0].split(" ")[1])
        pairs = (line.partition(":") for line in lines[1:])
        request = Request(
            target.path, target.query, {k.strip().lower(): v.strip() for k, _, v in pairs}, time.monotonic()
        )
        self.log.append(request)
        name, _, rest = target.path.lstrip("/").partition("/")
        x = Exchange(self, reader, writer, request, rest)
        if target.path == "/robots.txt":
            await ROBOTS[self.robots].answer(x)
        elif target.path == "/":
            await x.page(html(links(*(f"/{name}" for name in KINDS)), "Every kind"))
        elif name in KINDS:
            with contextlib.suppress(ValueError):  # a made-up number in the path
                await KINDS[name].answer(x)
        else:
            await x.page(html(b"Not here"), status="404 Not Found")
        return not x.close


# -- the list in the documentation -----------------------------------------------------------------------

_INTRODUCTION = """
The tests crawl servers that do each of the following, alone and side by side, and check that recrawl answers as listed
and that pages of other servers are unharmed. Several answers: it depends on time limits.
"""
_ROBOTS_INTRODUCTION = """
What becomes of a page of a server whose robots.txt is as follows:
"""


def listing() -> str:
    """The section of `docs/reference/failures.md` on misbehaving servers."""
    return "\n".join([MISBEHAVIOUR, _INTRODUCTION, _table(KINDS), _ROBOTS_INTRODUCTION, _table(ROBOTS)])


def _table(kinds: dict[str, Kind]) -> str:
    rows = [
        f"| {_escaped(kind.about)} | {', '.join(map(_answer_text, sorted(kind.expect)))} |" for kind in kinds.values()
    ]
    return "\n".join(["| server | answer |", "| --- | --- |", *rows])


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _answer_text(word: Failure | str) -> str:
    return f"`{word.value}`" if isinstance(word, Failure) else "the page is stored"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(path.read_text().partition(MISBEHAVIOUR)[0].rstrip() + "\n\n" + listing() + "\n")
    print(f"wrote {path}")
