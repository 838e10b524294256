"""A row of the archive as a response: its body, and the headers that do not depend on the time of the request.

Absolute links to hosts of the archive are rewritten to this server. A cache of limited size holds the responses.
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
