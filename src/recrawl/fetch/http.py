"""Get the bytes: many downloads at once through libcurl, each with hard limits, none able to raise.

    client.start(ticket, request)          begins a download
    client.wait(seconds) -> answers        whatever finished, as (ticket, Answer)

Redirects are not followed here (each hop has to pass robots.txt and pacing first), cookies are not kept, the
environment's proxies are not used. The address is checked when the socket is opened, after name resolution, so
neither a redirect nor a changing DNS answer gets round it. Bodies arrive decompressed and are counted while
they are, so a small file that inflates without end is cut at the limit.

`examples/download_cost.py` measures what a download costs; libcurl takes a fraction of what clients in Python do.
"""

from __future__ import annotations

import math
import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import certifi
import pycurl

from recrawl.fetch.address import refuses
from recrawl.model import Answer, Failure, Validators

ACCEPT = "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.5"

_ACCEPT_LINE = f"Accept: {ACCEPT}"
_USUAL_LINE = 200
"""Longer header lines are seldom sent twice."""
Head = tuple[int, tuple[tuple[str, str], ...], dict[str, str]]
"""Status, headers as sent, and by name in lower case."""

_FAILURES: dict[int, Failure] = {
    pycurl.E_URL_MALFORMAT: Failure.BAD_URL,
    pycurl.E_UNSUPPORTED_PROTOCOL: Failure.BAD_RESPONSE,
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.DNS,
    pycurl.E_COULDNT_CONNECT: Failure.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Failure.TIMEOUT,
    pycurl.E_PARTIAL_FILE: Failure.CUT_OFF,
    pycurl.E_GOT_NOTHING: Failure.CUT_OFF,
    pycurl.E_RECV_ERROR: Failure.CUT_OFF,
    pycurl.E_SEND_ERROR: Failure.CUT_OFF,
    pycurl.E_BAD_CONTENT_ENCODING: Failure.BAD_ENCODING,
    pycurl.E_WRITE_ERROR: Failure.BAD_ENCODING,  # after our own reasons to stop were ruled out
    pycurl.E_FILESIZE_EXCEEDED: Failure.TOO_LARGE,
    pycurl.E_SSL_CONNECT_ERROR: Failure.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Failure.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Failure.TLS,
    pycurl.E_SSL_CIPHER: Failure.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Failure.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Failure.TLS,
}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much one download may cost."""

    max_bytes: int = 10_000_000
    connect_seconds: float = 10.0
    total_seconds: float = 60.0
    stall_seconds: float = 20.0
    """Longest time at under a byte a second."""


@dataclass(frozen=True, slots=True)
class Request:
    """One download to be made."""

    url: str
    validators: Validators | None = None
    allow_private: bool = False
    max_bytes: int = 0
    """Another limit than the client's; 0 keeps that one."""
    cut: bool = False
    """Keep what fits into the limit instead of failing."""
    accepts: Callable[[str], bool] | None = None
    """Is asked about the content type before the body is taken; None takes everything."""


class _Opened:
    """A socket for libcurl, which takes a copy of the descriptor; ours is closed when this object goes."""

    __slots__ = ("_fd",)

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._fd = socket.socket(family, kind, protocol).detach()

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


class _Transfer:
    """One libcurl handle and the download that it is busy with; handles are used again and again."""

    __slots__ = (
        "_parsed",
        "at",
        "chunks",
        "handle",
        "head",
        "limit",
        "refused",
        "request",
        "size",
        "ticket",
        "unwanted",
    )

    def __init__(self) -> None:
        self.handle = pycurl.Curl()
        self.head: list[bytes] = []
        self.ticket = -1

    def begin(self, ticket: int, request: Request, limit: int, at: float) -> None:
        self.ticket, self.request, self.limit, self.at = ticket, request, limit, at
        self.chunks: list[bytes] = []
        self.head.clear()  # it stays the same list, whose `append` libcurl calls
        self.size = 0
        self.refused = ""
        self.unwanted = ""
        self._parsed: Head | None = None

    def parsed(self) -> Head:
        """Status and headers so far; the work is done once."""
        if self._parsed is None:
            self._parsed = _parse_head(self.head)
        return self._parsed

    def write(self, chunk: bytes) -> int | None:
        if not self.chunks and self.request.accepts is not None:
            kind = self.parsed()[2].get("content-type", "")
            if not self.request.accepts(kind):
                self.unwanted = kind or "unknown"
                return -1
        self.size += len(chunk)
        if self.size > self.limit:
            if self.request.cut:
                self.chunks.append(chunk[: len(chunk) - (self.size - self.limit)])
            return -1  # libcurl stops the transfer
        self.chunks.append(chunk)
        return None

    def open_socket(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> _Opened | int:
        family, kind, protocol, where = address
        reason = None if self.request.allow_private else refuses(str(where[0]))
        if reason:
            self.refused = f"{where[0]} is {reason}"
            return int(pycurl.SOCKET_BAD)
        return _Opened(family, kind, protocol)


class Client:
    """Downloads side by side, all in one thread."""

    def __init__(
        self,
        *,
        agent: str,
        limits: FetchLimits | None = None,
        room: int = 128,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits or FetchLimits()
        self.clock = clock
        self._agent = agent
        # Plain poll(2): sockets come and go with every download, and here that is two entries in a table.
        self._poll = select.poll()
        self._watched: set[int] = set()
        self._deadline: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, room)
        self._free = [self._new_transfer() for _ in range(room)]
        self._busy: dict[pycurl.Curl, _Transfer] = {}
        self._head = f"User-Agent: {agent}\r\nAccept: {ACCEPT}\r\nAccept-Encoding: gzip, deflate, br\r\n"

    # -- what the engine calls ------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more downloads may be started now."""
        return len(self._free)

    @property
    def busy(self) -> int:
        """How many downloads are under way."""
        return len(self._busy)

    def start(self, ticket: int, request: Request) -> None:
        """Begin a download; its answer comes out of `wait` under the same ticket."""
        transfer = self._free.pop()
        transfer.begin(ticket, request, request.max_bytes or self.limits.max_bytes, self.clock())
        handle = transfer.handle
        handle.setopt(pycurl.URL, request.url)
        handle.setopt(pycurl.HTTPHEADER, [_ACCEPT_LINE, *_conditions(request.validators)])
        self._busy[handle] = transfer
        self._multi.add_handle(handle)

    def watch(self, fd: int) -> None:
        """Let `wait` return early when this descriptor becomes readable."""
        self._poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo `watch`."""
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> list[tuple[int, Answer]]:
        """Let the downloads proceed for up to that long; return as soon as something happened."""
        if self._deadline is not None:
            seconds = min(seconds, max(0.0, self._deadline - time.monotonic()))
        for fd, events in self._poll.poll(math.ceil(seconds * 1000)):
            if fd in self._watched:
                self._multi.socket_action(fd, _curl_events(events))
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._deadline = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._finished()

    def close(self) -> None:
        """Drop everything under way."""
        for handle in list(self._busy):
            self._multi.remove_handle(handle)
        for transfer in [*self._free, *self._busy.values()]:
            transfer.handle.close()
        self._busy.clear()
        self._free.clear()
        self._multi.close()

    # -- libcurl's side --------------------------------------------------------------------------

    def _new_transfer(self) -> _Transfer:
        transfer = _Transfer()
        handle, limits = transfer.handle, self.limits
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        handle.setopt(pycurl.FOLLOWLOCATION, 0)
        handle.setopt(pycurl.PROXY, "")
        handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        handle.setopt(pycurl.CAINFO, certifi.where())
        handle.setopt(pycurl.USERAGENT, self._agent.encode())
        handle.setopt(pycurl.ACCEPT_ENCODING, "gzip, deflate, br")
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, int(limits.connect_seconds * 1000))
        handle.setopt(pycurl.TIMEOUT_MS, int(limits.total_seconds * 1000))
        handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        handle.setopt(pycurl.LOW_SPEED_TIME, max(1, int(limits.stall_seconds)))
        handle.setopt(pycurl.OPENSOCKETFUNCTION, transfer.open_socket)
        handle.setopt(pycurl.HEADERFUNCTION, transfer.head.append)
        handle.setopt(pycurl.WRITEFUNCTION, transfer.write)
        return transfer

    def _on_socket(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """libcurl's wish to watch a socket, or no longer."""
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.discard(fd)
                self._poll.unregister(fd)
            return
        events = (select.POLLIN if what & pycurl.POLL_IN else 0) | (select.POLLOUT if what & pycurl.POLL_OUT else 0)
        self._watched.add(fd)
        self._poll.register(fd, events)  # again for one that is watched already: then it is changed

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
        status, headers, fields = transfer.parsed() if transfer.chunks else _parse_head(transfer.head)
        was_cut = transfer.request.cut and transfer.size > transfer.limit
        failure = _failure(transfer, number) if number and not was_cut else None
        if failure is None and transfer.head[-1:] != [b"\r\n"] and transfer.head[-1:] != [b"\n"]:
            failure, message = Failure.CUT_OFF, "the answer ended within its headers"  # libcurl lets this pass
        answer = Answer(
            url=transfer.request.url,
            status=status,
            headers=headers,
            fields=fields,
            body=b"" if failure else b"".join(transfer.chunks),
            failure=failure,
            detail=(transfer.refused or transfer.unwanted or message or failure.value) if failure else "",
            at=transfer.at,
            seconds=handle.getinfo(pycurl.TOTAL_TIME),
            received=handle.getinfo(pycurl.HEADER_SIZE) + handle.getinfo(pycurl.SIZE_DOWNLOAD_T),
            ip=handle.getinfo(pycurl.PRIMARY_IP),
        )
        self._free.append(transfer)
        return transfer.ticket, answer

    def request_head(self, url: str, validators: Validators | None) -> bytes:
        """What was sent to ask for this address; libcurl may order the lines differently."""
        _, _, rest = url.partition("://")
        host, _, target = rest.partition("/")
        conditions = "".join(f"{line}\r\n" for line in _conditions(validators))
        return f"GET /{target} HTTP/1.1\r\nHost: {host}\r\n{self._head}{conditions}\r\n".encode()


def _curl_events(events: int) -> int:
    """What poll saw, in libcurl's words; errors and hang-ups are found by reading."""
    found = 0
    if events & (select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL):
        found |= pycurl.CSELECT_IN
    if events & select.POLLOUT:
        found |= pycurl.CSELECT_OUT
    return found


def _conditions(validators: Validators | None) -> list[str]:
    lines = []
    if validators is not None and validators.etag:
        lines.append(f"If-None-Match: {validators.etag}")
    if validators is not None and validators.last_modified:
        lines.append(f"If-Modified-Since: {validators.last_modified}")
    return lines


def _failure(transfer: _Transfer, number: int) -> Failure:
    if transfer.refused:
        return Failure.ADDRESS
    if transfer.unwanted:
        return Failure.CONTENT_TYPE
    if transfer.size > transfer.limit:
        return Failure.TOO_LARGE
    return _FAILURES.get(number, Failure.BAD_RESPONSE)


def _parse_head(lines: list[bytes]) -> Head:
    """The last header block: interim answers (100, 103) come before it."""
    status = 0
    headers: list[tuple[str, str]] = []
    fields: dict[str, str] = {}
    for line in lines:
        if line[:5] == b"HTTP/":
            headers, fields = [], {}
            words = line.split(None, 2)
            status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
            continue
        field = _usual_field(line) if len(line) <= _USUAL_LINE else _field(line)
        if field is not None:
            headers.append(field[0])
            fields[field[1]] = field[0][1]
    return status, tuple(headers), fields


def _field(line: bytes) -> tuple[tuple[str, str], str] | None:
    """Name and value of a header line, and the name in lower case; None for a line that is no header."""
    name, colon, value = line.decode("latin-1").partition(":")
    return ((name.strip(), value.strip()), name.strip().lower()) if colon else None


_usual_field = lru_cache(maxsize=2048)(_field)
"""A server says most of its lines again and again."""
