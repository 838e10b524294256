"""What the refresh of an unchanged page costs, step by step: `python -m benchmarks.visit_cost`.

    request, bare       a loop around libcurl alone, as small as Python allows: what no crawler on libcurl goes below
    request             `fetch.http.Client`, which the crawler uses: limits, headers, addresses
    visit               everything else of a visit: queue, robots.txt, decision, WARC record, rows, commit; no network
    choose and learn    the rest of a cycle by the default policy: its choices, the book, the summary
    start               the rest of `recrawl cycle`: the start of the program, its end

Each is CPU time of the crawler's process, in microseconds per page, the least of several rounds: the other rounds were
disturbed. The server, a process of its own, answers 304, or the same bytes.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: before numpy is loaded

import pycurl

from benchmarks import ours, web
from benchmarks.pages import site
from benchmarks.report import Table
from recrawl.choose import make_policy
from recrawl.crawl import cycles
from recrawl.crawl.visits.live import LiveCrawl
from recrawl.fetch.fetcher import Request
from recrawl.fetch.http import Client
from recrawl.model import Answer, Outcomes, Picks, Validators
from recrawl.repository import opening

ROOM = 64
"""Requests at once."""
POLICY = "shock"
_HEADERS = (("Server", "bench"), ("Connection", "keep-alive"), ("Date", "Tue, 17 Nov 2026 12:00:00 GMT"))
_EVENTS = {pycurl.POLL_IN: select.POLLIN, pycurl.POLL_OUT: select.POLLOUT, pycurl.POLL_INOUT: 5}


class Memory:
    """A fetcher that answers at once, as the benchmark's server would: 304, or with the same bytes."""

    bodies: ClassVar[dict[str, bytes]] = {}
    """By path, for pages without validators."""

    def __init__(self, *, clock: Callable[[], float], **_: Any) -> None:
        self._clock = clock
        self._started: list[tuple[int, Request]] = []

    @property
    def room(self) -> int:
        return ROOM - len(self._started)

    @property
    def busy(self) -> int:
        return len(self._started)

    def start(self, ticket: int, request: Request) -> None:
        self._started.append((ticket, request))

    def wait(self, _seconds: float) -> list[tuple[int, Answer]]:
        started, self._started = self._started, []
        return [(ticket, self._answer(request)) for ticket, request in started]

    def _answer(self, request: Request) -> Answer:
        at = self._clock()
        if request.validators is None:
            path = request.url.partition("://")[2].partition("/")[2]
            headers = (*_HEADERS, ("Content-Type", "text/html; charset=utf-8"))
            return Answer.made(request.url, 200, headers, self.bodies[path], at=at, ip="127.0.0.1")
        headers = (*_HEADERS, ("ETag", request.validators.etag))
        return Answer.made(request.url, 304, headers, at=at, ip="127.0.0.1", received=150)

    def watch(self, fd: int) -> None: ...

    def unwatch(self, fd: int) -> None: ...

    def request_head(self, *_: Any, **__: Any) -> bytes:
        return b""

    def close(self) -> None: ...


def bare(urls: list[str], tags: list[str]) -> float:
    """CPU seconds of libcurl's downloads in the smallest loop: sockets by poll, handles reused, headers collected."""
    multi, poll, deadline = pycurl.CurlMulti(), select.poll(), [0.0]
    free, left, done = [_handle() for _ in range(ROOM)], list(zip(urls, tags, strict=True)), 0

    def on_socket(what: int, fd: int, _multi: object, _data: object) -> None:
        (poll.unregister(fd) if what == pycurl.POLL_REMOVE else poll.register(fd, _EVENTS[what]))

    def on_timer(milliseconds: int) -> None:
        deadline[0] = float("inf") if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    multi.setopt(pycurl.M_SOCKETFUNCTION, on_socket)
    multi.setopt(pycurl.M_TIMERFUNCTION, on_timer)
    multi.setopt(pycurl.M_MAXCONNECTS, ROOM)
    begun = time.process_time()
    while done < len(urls):
        while free and left:
            handle, (url, tag) = free.pop(), left.pop()
            handle.setopt(pycurl.URL, url)
            if tag:
                handle.setopt(pycurl.HTTPHEADER, [f"If-None-Match: {tag}"])
            multi.add_handle(handle)
        seconds = min(1.0, max(0.0, deadline[0] - time.monotonic()))
        for fd, events in poll.poll(int(seconds * 1000 + 0.999)):
            multi.socket_action(fd, pycurl.CSELECT_OUT if events == select.POLLOUT else pycurl.CSELECT_IN)
        if time.monotonic() >= deadline[0]:
            multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        _, good, bad = multi.info_read(ROOM)
        assert not bad, bad
        for handle in good:
            multi.remove_handle(handle)
        free += good
        done += len(good)
    return time.process_time() - begun


def _handle() -> pycurl.Curl:
    """A handle with the limits that the crawler sets."""
    handle = pycurl.Curl()
    options = {pycurl.NOSIGNAL: 1, pycurl.PROXY: "", pycurl.ACCEPT_ENCODING: "gzip, deflate, br"}
    limits = {pycurl.CONNECTTIMEOUT_MS: 10_000, pycurl.TIMEOUT_MS: 60_000, pycurl.LOW_SPEED_TIME: 20}
    for option, value in {**options, **limits, pycurl.LOW_SPEED_LIMIT: 1}.items():
        handle.setopt(option, value)
    for callback in (pycurl.HEADERFUNCTION, pycurl.WRITEFUNCTION):
        handle.setopt(callback, lambda _: None)
    return handle


def requests(urls: list[str], tags: list[str]) -> float:
    """CPU seconds of the crawler's client for these downloads."""
    client, begun, done = Client(agent="recrawl-benchmark"), 0, 0
    used = time.process_time()
    while done < len(urls):
        while begun < len(urls) and begun - done < ROOM:
            tag = tags[begun]
            client.start(begun, Request(urls[begun], Validators(tag, "") if tag else None, private=True))
            begun += 1
        for _, answer in client.wait(1.0):
            assert answer.failure is None, answer.detail
            done += 1
    used = time.process_time() - used
    client.close()
    return used


@contextmanager
def copied(repository: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=repository.parent) as folder:
        yield Path(shutil.copytree(repository, Path(folder) / "copy"))


def cycle(repository: Path, pages: int) -> tuple[float, float]:
    """CPU seconds of the visits of a cycle without network, and of the rest of the cycle."""
    spent = [0.0]
    visit = LiveCrawl.visit

    def timed(self: LiveCrawl, picks: Picks) -> Outcomes:
        begun = time.process_time()
        outcomes = visit(self, picks)
        spent[0] += time.process_time() - begun
        return outcomes

    with copied(repository) as folder:
        values = opening.load(folder)
        options = replace(opening.options_of(values), fetcher=Memory)
        with opening.held(folder, "cycle", options, values) as storage:
            LiveCrawl.visit = timed  # type: ignore[method-assign]
            begun = time.process_time()
            summary = cycles.cycle(storage, options, make_policy(POLICY), pages, 0, cycles.Controls())
            whole = time.process_time() - begun
            LiveCrawl.visit = visit  # type: ignore[method-assign]
    assert summary.tally.visits == pages, summary
    return spent[0], whole - spent[0]


def command(repository: Path, served: web.Web) -> float:
    """CPU seconds of `recrawl cycle` over the network."""
    with copied(repository) as folder:
        return ours.Repository(folder, served).cycle(served.pages).cpu


def steps(served: web.Web, folder: Path, rounds: int, *, validators: bool) -> list[float]:
    """Microseconds per page of each step, then of the command."""
    repository = ours.Repository(folder / f"repository-{int(validators)}", served)
    served.reset(validators=validators)
    repository.init(index=False)
    repository.add()
    repository.crawl()
    urls = [served.url.rstrip("/") + page.path for page in site(served.pages)]
    tags = [f'"{number}-0"' if validators else "" for number in range(len(urls))]
    found = []
    for _ in range(rounds):
        parts = [bare(urls, tags), requests(urls, tags), *cycle(repository.folder, len(urls))]
        found.append([*parts, command(repository.folder, served)])
    least = [min(column) * 1e6 / len(urls) for column in zip(*found, strict=True)]
    return [*least[:-1], least[-1] - sum(least[1:-1]), least[-1]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.visit_cost", description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=4000, help="pages of the site (4000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the least counts (5)")
    chosen = parser.parse_args()
    Memory.bodies = {page.path.lstrip("/"): page.body(0) for page in site(chosen.pages)}
    with web.running(chosen.pages) as served, tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        columns = [steps(served, Path(scratch), chosen.rounds, validators=it) for it in (True, False)]
    names = ("request, bare", "request", "visit without request", "choose and learn", "start", "`recrawl cycle`, all")
    rows = [[name, *(f"{value:.1f}" for value in values)] for name, *values in zip(names, *columns, strict=True)]
    Table(f"Microseconds of CPU per page, {chosen.pages:,} pages", ["step", "304", "same bytes"], rows).show()


if __name__ == "__main__":
    main()
