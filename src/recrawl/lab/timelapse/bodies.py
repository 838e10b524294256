"""A row of the archive as an answer: its body, and the headers that do not depend on the time of asking.

Absolute links to hosts of the archive are led to where this server serves them. Answers are kept in memory
up to a limit, so that a page asked for again costs a look-up.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from email.utils import formatdate
from hashlib import blake2b

from recrawl.lab.formats.archive import Archive
from recrawl.lab.timelapse.addresses import Addresses, Host

Headers = list[tuple[bytes, bytes]]

_LIMIT = 64 << 20
# It begins with a literal, which is searched for ten times as fast; the scheme before it is looked at after.
_HOST = re.compile(rb"//([A-Za-z0-9][A-Za-z0-9._-]{0,252}(?::\d{1,5})?)")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_LOOKED_AT = 2048


@dataclass(frozen=True, slots=True)
class Content:
    """A body with what identifies it."""

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
    """Put together a body and its headers; the tag is that of `digest`, else of the body."""
    etag = b'"%s"' % (digest or body_digest(body))
    bare = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    return Content(body, kind, etag, modified, [*bare, *validators(etag, modified)], bare)


def validators(etag: bytes, modified: int) -> Headers:
    """The headers a client can ask again with."""
    return [(b"etag", etag), (b"last-modified", http_date(modified))]


def http_date(t: float) -> bytes:
    """A time as HTTP writes it.

    >>> http_date(0)
    b'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    return formatdate(int(t), usegmt=True).encode()


def body_digest(body: bytes) -> bytes:
    """What an ETag holds."""
    return blake2b(body, digest_size=10).hexdigest().encode()


def content_type(body: bytes) -> bytes:
    """The content type with the charset that the page declares; UTF-8 if it declares none but is it.

    >>> content_type(b'<meta charset="iso-8859-1">'), content_type(b"plain"), content_type(bytes([0xfc, 32]))
    (b'text/html; charset=iso-8859-1', b'text/html; charset=utf-8', b'text/html')
    """
    declared = _CHARSET.search(body, 0, _LOOKED_AT)
    if declared:
        return b"text/html; charset=" + declared[1].lower()
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return b"text/html"
    return b"text/html; charset=utf-8"


class Bodies:
    """The answers to rows, made when first asked for."""

    def __init__(self, archive: Archive, addresses: Addresses, limit: int = _LIMIT) -> None:
        self._archive = archive
        self._addresses = addresses
        self._sites = {site.encode(): number for number, site in enumerate(archive.sites)}
        self._kept: OrderedDict[tuple[int, str], Content] = OrderedDict()
        self._room = limit

    def of(self, row: int, host: Host, port: int) -> Content:
        """The answer to a row, with links as this host's visitor needs them."""
        key = row, host.base
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        raw = self._archive.html(row)
        body = self._led_here(raw, host, port)
        made = content(body, content_type(body), int(self._archive.times[row]), body_digest(raw))
        self._kept[key] = made
        self._room -= len(body)
        while self._room < 0 and len(self._kept) > 1:
            self._room += len(self._kept.popitem(last=False)[1].body)
        return made

    def _led_here(self, body: bytes, host: Host, port: int) -> bytes:
        """Links to hosts of the archive, with or without a scheme, as links to this server."""
        pieces: list[bytes] = []
        done = 0
        for match in _HOST.finditer(body):
            site = self._sites.get(match[1].lower())
            if site is None:
                continue
            start = match.start()
            before = body[max(done, start - 6) : start].lower()
            start -= 6 if before == b"https:" else 5 if before.endswith(b"http:") else 0
            # A visitor who came by 127.0.0.1 stays there.
            base = host.base if site == host.site else self._addresses.base(site, port)
            pieces += (body[done:start], base.encode())
            done = match.end()
        return b"".join((*pieces, body[done:])) if pieces else body
