"""One download: its request, its limits, its socket and its headers. `recrawl.fetch.http` runs many of them."""

from __future__ import annotations

import contextlib
import os
import socket
import zlib
from functools import lru_cache

import pycurl

from recrawl.fetch.access import Profile
from recrawl.fetch.fetcher import Request
from recrawl.fetch.ip_filter import refuses
from recrawl.model import Failure

_MAX_CACHED = 200
"""Length of header lines that are cached; longer ones are rarely sent twice."""
Head = tuple[int, tuple[tuple[str, str], ...], dict[str, str]]
"""Status, headers as sent, and headers by lower-case name."""

ENCODINGS = "gzip, deflate, br"
"""The content encodings that we ask for."""
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_TEXT_BYTES = bytes({*range(0x20, 0x100), *b"\t\n\f\r\x1b"} - {0x7F})
_SAMPLE = 1024
_EMPTY = (b"\r\n", b"\n")

_PROXY_FAILED = 97
"""CURLE_PROXY, which pycurl does not name: the proxy refused."""
_FAILURES: dict[int, Failure] = {
    pycurl.E_URL_MALFORMAT: Failure.BAD_URL,
    pycurl.E_UNSUPPORTED_PROTOCOL: Failure.BAD_RESPONSE,
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.DNS,
    pycurl.E_COULDNT_CONNECT: Failure.CONNECT,
    pycurl.E_COULDNT_RESOLVE_PROXY: Failure.CONNECT,
    _PROXY_FAILED: Failure.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Failure.TIMEOUT,
    pycurl.E_PARTIAL_FILE: Failure.CUT_OFF,
    pycurl.E_GOT_NOTHING: Failure.CUT_OFF,
    pycurl.E_RECV_ERROR: Failure.CUT_OFF,
    pycurl.E_SEND_ERROR: Failure.CUT_OFF,
    pycurl.E_BAD_CONTENT_ENCODING: Failure.BAD_ENCODING,
    pycurl.E_WRITE_ERROR: Failure.BAD_ENCODING,  # unless we stopped the transfer ourselves
    pycurl.E_FILESIZE_EXCEEDED: Failure.TOO_LARGE,
    pycurl.E_SSL_CONNECT_ERROR: Failure.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Failure.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Failure.TLS,
    pycurl.E_SSL_CIPHER: Failure.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Failure.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Failure.TLS,
}
_TLS_CAUSES = {
    "certificate has expired": "the certificate has expired",
    "certificate is not yet valid": "the certificate is not valid yet",
    "self-signed certificate in certificate chain": "the certificate comes from an unknown authority",
    "self-signed certificate": "the certificate is self-signed",
    "unable to get local issuer certificate": "the certificate comes from an unknown authority",
    "unable to get issuer certificate": "the certificate comes from an unknown authority",
    "unable to verify the first certificate": "the certificate comes from an unknown authority",
    "certificate revoked": "the certificate was revoked",
    "subject name matches": "the certificate is for another host",
    "common name": "the certificate is for another host",
    "does not match target": "the certificate is for another host",
    "alert protocol version": "the server speaks only TLS versions that are not accepted",
    "unsupported protocol": "the server speaks only TLS versions that are not accepted",
    "wrong version number": "the server does not speak TLS on this port",
    "packet length too long": "the server does not speak TLS on this port",
    "alert certificate required": "the server asks for a client certificate",
    "handshake failure": "the server refused the handshake",
    "unexpected eof": "the server closed the connection during the handshake",
}
"""What is wrong, by the words of libcurl and OpenSSL; the first entry that occurs counts."""


class _Socket:
    """A socket for libcurl, which duplicates the descriptor; ours is closed with this object."""

    __slots__ = ("_fd",)

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._fd = socket.socket(family, kind, protocol).detach()

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


class Transfer:
    """One libcurl handle and its current download; handles are reused."""

    __slots__ = (
        "_parsed",
        "at",
        "away",
        "chunks",
        "fresh",
        "handle",
        "head",
        "identity",
        "limit",
        "lines",
        "profile",
        "refused",
        "request",
        "size",
        "ticket",
        "unwanted",
    )

    def __init__(self, profile: Profile | None = None) -> None:
        self.handle = pycurl.Curl()
        self.profile = profile
        self.head: list[bytes] = []
        self.ticket = -1
        self.identity: bool | None = None
        self.fresh = False
        self.away = 0.0  # of the client, when it was started
        self.lines: list[str] = []

    def begin(self, ticket: int, request: Request, limit: int, at: float) -> None:
        """Reset the state for a new download."""
        self.ticket, self.request, self.limit, self.at = ticket, request, limit, at
        self.chunks: list[bytes] = []
        self.head.clear()  # the same list: libcurl calls its `append`
        self.size = 0
        self.refused = ""
        self.unwanted = ""
        self._parsed: Head | None = None

    def set_encodings(self) -> None:
        """Tell libcurl which content encodings to ask for and to decode."""
        if self.identity != self.request.identity:
            self.identity = self.request.identity
            self.handle.setopt(pycurl.ACCEPT_ENCODING, "identity" if self.identity else ENCODINGS)
            self.handle.setopt(pycurl.HTTP_CONTENT_DECODING, int(not self.identity))

    def set_fresh(self, fresh: bool) -> None:
        """Tell libcurl whether to open a new connection; like all options, a reused handle has it already."""
        if self.fresh != fresh:
            self.fresh = fresh
            self.handle.setopt(pycurl.FRESH_CONNECT, int(fresh))

    def set_lines(self, lines: list[str]) -> None:
        """Tell libcurl the header lines."""
        if self.lines != lines:
            self.lines = lines
            self.handle.setopt(pycurl.HTTPHEADER, lines)

    def parsed(self) -> Head:
        """Status and headers so far, parsed once."""
        if self._parsed is None:
            self._parsed = parse_head(self.head)
        return self._parsed

    def write(self, chunk: bytes) -> int | None:
        """Take a chunk of the body; -1 aborts the transfer."""
        if not self.chunks and self.request.accepts is not None:
            kind = self.parsed()[2].get("content-type", "")
            if not self.request.accepts(kind):
                self.unwanted = kind or "unknown"
                return -1
        self.size += len(chunk)
        if self.size > self.limit:
            if self.request.cut:
                self.chunks.append(chunk[: len(chunk) - (self.size - self.limit)])
            return -1
        self.chunks.append(chunk)
        return None

    def open_socket(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> _Socket | int:
        """Open a socket, unless the IP address is refused; that of a proxy is allowed, as the user named it."""
        family, kind, protocol, where = address
        proxied = self.profile is not None and self.profile.rule.proxy
        reason = None if self.request.private or proxied else refuses(str(where[0]))
        if reason:
            self.refused = f"{where[0]} is {reason}"
            return int(pycurl.SOCKET_BAD)
        return _Socket(family, kind, protocol)


def failure_of(transfer: Transfer, number: int) -> Failure:
    """The failure for libcurl's error number; our own reasons to abort come first."""
    if transfer.refused:
        return Failure.ADDRESS
    if transfer.unwanted:
        return Failure.CONTENT_TYPE
    if transfer.size > transfer.limit:
        return Failure.TOO_LARGE
    return _FAILURES.get(number, Failure.BAD_RESPONSE)


def tls_cause(message: str) -> str:
    """A failed handshake in plain words, with the words of libcurl behind them.

    >>> tls_cause("SSL certificate OpenSSL verify result: certificate has expired (10)")
    'the certificate has expired (SSL certificate OpenSSL verify result: certificate has expired (10))'
    """
    cause = next((cause for words, cause in _TLS_CAUSES.items() if words in message), "")
    return f"{cause} ({message})" if cause else message


def plain_body(body: bytes, label: str, limit: int) -> tuple[bytes, str]:
    """The content of a body that libcurl has not decoded, for its label is false; or why it has none.

    Plain text counts as it is, and so does a gzip stream with junk behind it.

    >>> plain_body(b"<p>plain", "gzip", 100), plain_body(b"BZh91", "gzip", 100)[1]
    ((b'<p>plain', ''), "the body is bzip2, labelled 'gzip'; only gzip, deflate and br can be decoded")
    """
    name = next((name for magic, name in _MAGIC.items() if body.startswith(magic)), "")
    if name == "gzip":
        stream = zlib.decompressobj(wbits=31)
        with contextlib.suppress(zlib.error):
            content = stream.decompress(body, limit)
            if stream.eof:
                return content, ""
        return b"", f"the body is broken gzip, labelled '{label}'"
    if name:
        return b"", f"the body is {name}, labelled '{label}'; only gzip, deflate and br can be decoded"
    start = body[:_SAMPLE]
    plain = not start.translate(None, _TEXT_BYTES) and (start.isascii() or b"<" in start)
    return (body, "") if plain else (b"", f"the body cannot be decoded as its label '{label}' says")


def head_ends(lines: list[bytes]) -> bool:
    """Whether the last header block is complete: an empty line ends it, and trailers may follow."""
    for line in reversed(lines):
        if line in _EMPTY:
            return True
        if line[:5] == b"HTTP/":
            return False
    return False


def parse_head(lines: list[bytes]) -> Head:
    """Parse the last header block; interim answers (100, 103) precede it, and trailers, which do not count, follow."""
    status, block = _last_block(lines)
    found = [_cached_field(line) if len(line) <= _MAX_CACHED else _field(line) for line in block]
    known = [field for field in found if field is not None]
    return status, tuple([pair for pair, _ in known]), {name: pair[1] for pair, name in known}


def _last_block(lines: list[bytes]) -> tuple[int, list[bytes]]:
    """The status and the header lines of the last block."""
    begin, end = 0, len(lines)
    if lines.count(b"\r\n") != 1 or lines[-1] != b"\r\n":  # nearly always there is only one, and it is complete
        begin = max((place for place, line in enumerate(lines) if line[:5] == b"HTTP/"), default=0)
        end = next((place for place in range(begin, end) if lines[place] in _EMPTY), end)
    words = lines[begin].split(None, 2) if lines and lines[begin][:5] == b"HTTP/" else []
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() and len(words[1]) == 3 else 0
    return status, lines[begin + bool(words) : end]


def _field(line: bytes) -> tuple[tuple[str, str], str] | None:
    """Name and value of a header line, and the lower-case name; None for other lines."""
    name, colon, value = line.decode("latin-1").partition(":")
    return ((name.strip(), value.strip()), name.strip().lower()) if colon else None


_cached_field = lru_cache(maxsize=2048)(_field)
"""Servers repeat most of their header lines."""
