"""Many downloads at once through libcurl, in one thread, each with hard limits. A failed download is an answer too.

    client.start(ticket, request)          starts a download
    client.wait(seconds) -> answers        finished downloads, as (ticket, Answer)

The client does not follow redirects (each hop has to pass robots.txt and pacing first) and ignores proxy settings of
the environment. Credentials, cookies and proxies are those of the URL's profile (`recrawl.fetch.access`); without one
it sends and keeps none. The IP address is checked when the socket is opened, after name resolution, so
neither a redirect nor a changing DNS answer evades the check. Bodies are counted while they are decompressed, so a
decompression bomb is cut at the limit.

`examples/download_cost.py` measures the cost of a download; libcurl takes a fraction of what Python clients take.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import socket
import time
import zlib
from collections.abc import Callable
from functools import lru_cache
from itertools import chain

import certifi
import pycurl

from recrawl.fetch.access import Profile, without_cookies
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.ip_filter import refuses
from recrawl.model import Answer, Failure, Validators

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


ACCEPT = "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.5"
_ACCEPT_LINE = f"Accept: {ACCEPT}"
_PLAIN_LINES = [_ACCEPT_LINE]
_POLLED = (0, select.POLLIN, select.POLLOUT, select.POLLIN | select.POLLOUT)
"""What to wait for, by what libcurl wants of a socket."""
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL
_IDLE_CONNECTIONS = 1024
"""Most open connections that are kept for further requests. One takes 76 KiB with TLS, and a new one 1.1 ms of CPU."""


class Client:
    """Runs downloads concurrently in one thread."""

    def __init__(
        self,
        *,
        agent: str,
        limits: FetchLimits | None = None,
        room: int = 512,
        clock: Callable[[], float] = time.time,
        profiles: Callable[[str], Profile | None] = lambda _: None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self.clock = clock
        self._profile_of = profiles
        self._most = room
        self._agent = agent
        # poll(2): each download adds and removes sockets, which is cheap with poll.
        self._poll = select.poll()
        self._watched: set[int] = set()
        self._deadline: float | None = None
        self._left, self._away = time.monotonic(), 0.0  # the end of the last `wait`; seconds between calls of it
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, _idle_connections(room))
        self._free: dict[Profile | None, list[Transfer]] = {}
        self._refused: list[tuple[int, Answer]] = []
        self._busy: dict[pycurl.Curl, Transfer] = {}
        self._private_hosts: set[str] = set()
        """Hosts, with ports, to which private connections were permitted and may be open."""

    @property
    def room(self) -> int:
        """Number of downloads that may still be started now."""
        return self._most - len(self._busy)

    @property
    def busy(self) -> int:
        """Number of downloads under way."""
        return len(self._busy)

    def start(self, ticket: int, request: Request) -> None:
        """Start a download; `wait` returns its answer with the same ticket."""
        url, private = request.url, request.private
        profile = self._profile_of(url)
        if profile is not None and not private and (cause := profile.refuses(url)):
            self._refused.append((ticket, Answer.failed(url, Failure.ADDRESS, cause, at=self.clock())))
            return
        free = self._free.get(profile)
        transfer = free.pop() if free else self._new_transfer(profile)
        transfer.begin(ticket, request, request.max_bytes or self.limits.max_bytes, self.clock())
        transfer.set_encodings()
        transfer.away, handle = self._away + time.monotonic() - self._left, transfer.handle
        handle.setopt(pycurl.URL, url)
        if private:
            self._private_hosts.add(_host(url))
        # The address is checked when a connection opens: one of a permitted request is not for others.
        transfer.set_fresh(not private and self._is_private(url))
        if request.post is None:
            transfer.set_lines([*_lines(profile), *request.headers, *_conditions(request.validators)])
        else:
            transfer.set_lines(["Expect:", *(_lines(profile) if profile else ()), *request.headers])
            handle.setopt(pycurl.POSTFIELDS, request.post)
        self._busy[handle] = transfer
        self._multi.add_handle(handle)

    def watch(self, fd: int) -> None:
        """Make `wait` return early when this descriptor becomes readable."""
        self._poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo `watch`."""
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> list[tuple[int, Answer]]:
        """Run the downloads for up to this time; returns as soon as something happens."""
        if self._refused:
            refused, self._refused = self._refused, []
            return refused
        self._away += time.monotonic() - self._left
        if self._deadline is not None:
            seconds = min(seconds, max(0.0, self._deadline - time.monotonic()))
        for fd, events in self._poll.poll(math.ceil(seconds * 1000)):
            if fd in self._watched:
                readable = pycurl.CSELECT_IN if events & _READABLE else 0  # errors and hang-ups show up as readable
                self._multi.socket_action(fd, readable | (pycurl.CSELECT_OUT if events & select.POLLOUT else 0))
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._deadline = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        answers, self._left = self._finished(), time.monotonic()
        return answers

    def close(self) -> None:
        """Abort all downloads."""
        for handle in list(self._busy):
            self._multi.remove_handle(handle)
        for transfer in [*chain.from_iterable(self._free.values()), *self._busy.values()]:
            transfer.handle.close()
        self._busy.clear()
        self._free.clear()
        self._multi.close()

    def _is_private(self, url: str) -> bool:
        return bool(self._private_hosts) and _host(url) in self._private_hosts

    # -- callbacks for libcurl -------------------------------------------------------------------

    def _new_transfer(self, profile: Profile | None = None) -> Transfer:
        transfer = Transfer(profile)
        handle, limits = transfer.handle, self.limits
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.PROXY, "")
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.CAINFO, certifi.where())
        handle.setopt(pycurl.USERAGENT, self._agent.encode())
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(limits.connect_seconds * 1000))
        handle.setopt(pycurl.TIMEOUT_MS, int(limits.total_seconds * 1000))
        handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        handle.setopt(pycurl.LOW_SPEED_TIME, max(1, int(limits.stall_seconds)))
        handle.setopt(pycurl.OPENSOCKETFUNCTION, transfer.open_socket)
        handle.setopt(pycurl.HEADERFUNCTION, transfer.head.append)
        handle.setopt(pycurl.WRITEFUNCTION, transfer.write)
        if profile is not None:
            profile.prepare(handle)
        return transfer

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """libcurl wants a socket watched, or no longer."""
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.discard(fd)
                self._poll.unregister(fd)
            return
        self._watched.add(fd)
        self._poll.register(fd, _POLLED[what])  # for a registered one, this changes the events

    def _on_timer(self, milliseconds: int) -> None:
        self._deadline = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def _finished(self) -> list[tuple[int, Answer]]:
        answers = []
        left = 1
        while left:
            left, good, bad = self._multi.info_read()
            answers += [self._end(handle, 0, "") for handle in good]
            answers += [self._end(handle, number, message) for handle, number, message in bad]
        return answers

    def _end(self, handle: pycurl.Curl, number: int, message: str) -> tuple[int, Answer]:
        transfer = self._busy.pop(handle)
        self._multi.remove_handle(handle)
        if transfer.request.post is not None:
            handle.setopt(pycurl.HTTPGET, 1)  # handles are reused
        status, headers, fields = transfer.parsed() if transfer.chunks else parse_head(transfer.head)
        if transfer.profile is not None and transfer.profile.jar is not None and "set-cookie" in fields:
            headers, fields = without_cookies(headers, fields)
        was_cut = transfer.request.cut and transfer.size > transfer.limit
        failure = failure_of(transfer, number) if number and not was_cut else None
        if failure is None and not head_ends(transfer.head):
            failure, message = Failure.CUT_OFF, "the answer ended within its headers"  # libcurl accepts this
        if failure is Failure.TLS:
            message = tls_cause(message)
        body = b"" if failure else b"".join(transfer.chunks)
        label = fields.get("content-encoding", "") if transfer.identity else ""
        if failure is None and label:
            body, message = plain_body(body, label, transfer.limit)
            failure = Failure.BAD_ENCODING if message else None
        answer = Answer(
            url=transfer.request.url,
            status=status,
            headers=headers,
            fields=fields,
            body=body,
            failure=failure,
            detail=(transfer.refused or transfer.unwanted or message or failure.value) if failure else "",
            at=transfer.at,
            seconds=max(0.0, handle.getinfo(pycurl.TOTAL_TIME) - (self._away - transfer.away)),
            received=handle.getinfo(pycurl.HEADER_SIZE) + handle.getinfo(pycurl.SIZE_DOWNLOAD_T),
            ip=handle.getinfo(pycurl.PRIMARY_IP),
        )
        self._free.setdefault(transfer.profile, []).append(transfer)
        return transfer.ticket, answer

    def request_head(self, url: str, validators: Validators | None, *, identity: bool = False) -> bytes:
        """The head of the request for this URL, for the archive; libcurl may order the lines differently.

        Secrets are left out: their headers say so.
        """
        _, _, rest = url.partition("://")
        host, _, target = rest.partition("/")
        profile = self._profile_of(url)
        agent = profile.rule.user_agent if profile is not None else ""
        lines = [f"GET /{target} HTTP/1.1", f"Host: {host}", f"User-Agent: {agent or self._agent}"]
        lines += [*_lines(profile, archived=True), f"Accept-Encoding: {'identity' if identity else ENCODINGS}"]
        lines += _conditions(validators)
        return "\r\n".join([*lines, "", ""]).encode()


def fetch_one(
    request: Request,
    *,
    agent: str,
    limits: FetchLimits,
    profiles: Callable[[str], Profile | None] = lambda _: None,
) -> Answer:
    """Make one request and wait for its answer, within the limits."""
    client = Client(agent=agent, limits=limits, room=1, profiles=profiles)
    try:
        client.start(0, request)
        while True:
            for _, answer in client.wait(1.0):
                return answer
    finally:
        client.close()


def _idle_connections(room: int) -> int:
    """How many idle connections to keep beside `room` busy ones: at most half of the files that are left."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _IDLE_CONNECTIONS
    return max(min(_IDLE_CONNECTIONS, (files - room) // 2), 16)


def _host(url: str) -> str:
    """Host and port of a URL."""
    return url.partition("://")[2].partition("/")[0]


def _lines(profile: Profile | None, *, archived: bool = False) -> list[str]:
    """The header lines of a request that do not depend on the page."""
    if profile is None:
        return _PLAIN_LINES
    lines = profile.lines(archived=archived)
    return lines if any(line.lower().startswith("accept:") for line in lines) else [_ACCEPT_LINE, *lines]


def _conditions(validators: Validators | None) -> list[str]:
    if validators is None:
        return []
    lines = [f"If-None-Match: {validators.etag}"] if validators.etag else []
    return [*lines, f"If-Modified-Since: {validators.last_modified}"] if validators.last_modified else lines
