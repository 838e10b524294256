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

import math
import resource
import select
import time
from collections.abc import Callable
from itertools import chain

import certifi
import pycurl

from recrawl.fetch.access import Profile, without_cookies
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.transfer import (
    ENCODINGS,
    Transfer,
    failure_of,
    head_ends,
    parse_head,
    plain_body,
    tls_cause,
)
from recrawl.model import Answer, Failure, Validators

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
