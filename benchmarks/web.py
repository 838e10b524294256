"""The benchmark's web: one site on loopback, served by a process of its own (`python -m benchmarks.web`).

It must never be what a crawler waits for, so every answer is one ready-made string of bytes and the protocol
reads no more of a request than it needs. It also is the referee: it counts which pages were fetched, so that
a crawler which skipped some cannot win by it.

    GET  /…                          a page; robots.txt and whatever else is not a page is 404
    GET  /known/N.html               page N modulo their number: a site as large as one likes, for `scale`
    POST /-/reset?validators=1       counters to zero; ETag sent and If-None-Match honoured, or neither
    POST /-/generation?n=3&share=.1  the site as it is after n rounds of changes, each of a share of the pages
    GET  /-/counts                   what was asked for since the last reset, as JSON
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from benchmarks import real_pages
from benchmarks.pages import SEED, Page, site

PAGES = 10_000
KNOWN = b"/known/"
NO_FOLLOW = b"<head><meta name=robots content=nofollow>"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nnot here\n"


@dataclass
class Counts:
    """What was asked for since the last reset."""

    fetched: set[int] = field(default_factory=set)
    first: float = 0.0  # clock time of the first page, to tell how long a crawler thought before
    last: float = 0.0
    full: int = 0  # answered with the whole page
    same: int = 0  # answered with 304
    missing: int = 0
    bytes: int = 0

    def as_json(self) -> dict[str, float]:
        return {**self.__dict__, "fetched": len(self.fetched)}


class Site:
    """Ready answers for every page, in the present generation."""

    def __init__(self, pages: list[Page]) -> None:
        self.pages = pages
        self.number = {page.path.encode(): n for n, page in enumerate(pages)}
        self.counts = Counts()
        self.validators = False
        self.date = (0, b"")
        self.generation(0, 0.0)

    def generation(self, n: int, share: float) -> int:
        """Bring the site to round n; the answer is how many pages the last round changed."""
        versions = np.zeros(len(self.pages), dtype=int)
        for at in range(1, n + 1):
            versions[np.random.default_rng([SEED, at]).random(len(self.pages)) < share] = at
        self.bodies = [page.body(int(v)) for page, v in zip(self.pages, versions, strict=True)]
        self.tags = [b'"%d-%d"' % (number, v) for number, v in enumerate(versions)]
        return int((versions == n).sum()) if n else 0

    def answer(self, path: bytes, request: bytes) -> bytes:
        number, known = self.number.get(path), False
        if number is None:
            if not path.startswith(KNOWN):
                self.counts.missing += 1
                return NOT_FOUND
            number = int(path[len(KNOWN) :].partition(b".")[0]) % len(self.pages)
            known = True
        counts, now = self.counts, time.time()
        counts.first = counts.first or now
        counts.last = now
        counts.fetched.add(number)
        head = b"\r\nServer: bench\r\nConnection: keep-alive\r\nDate: " + self._date(now)
        if self.validators:
            head += b"\r\nETag: " + self.tags[number]
            if b"\r\nif-none-match: " + self.tags[number] in request.lower():
                counts.same += 1
                return b"HTTP/1.1 304 Not Modified" + head + b"\r\n\r\n"
        # A known page's links would lead to addresses of their own, one set for every such page.
        body = self.bodies[number].replace(b"<head>", NO_FOLLOW, 1) if known else self.bodies[number]
        counts.full += 1
        counts.bytes += len(body)
        return b"HTTP/1.1 200 OK%b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%b" % (
            head,
            len(body),
            body,
        )

    def _date(self, now: float) -> bytes:
        if self.date[0] != int(now):
            self.date = (int(now), formatdate(now, usegmt=True).encode())
        return self.date[1]

    def control(self, target: bytes) -> bytes:
        verb, _, query = target.decode().removeprefix("/-/").partition("?")
        options = dict(parse_qsl(query))
        answer: object = self.counts.as_json()
        if verb == "reset":
            self.counts = Counts()
            self.validators = options.get("validators") == "1"
        elif verb == "generation":
            answer = self.generation(int(options["n"]), float(options["share"]))
        text = json.dumps(answer).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
            len(text),
            text,
        )


class Protocol(asyncio.Protocol):
    """HTTP/1.1, GET only (and POST without a body), keep-alive and pipelining."""

    def __init__(self, served: Site) -> None:
        self.site = served
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            request, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            path = request[: request.index(b"\r\n")].split(b" ")[1]
            answer = self.site.control(path) if path.startswith(b"/-/") else self.site.answer(path, request)
            self.transport.write(answer)
            if b"\r\nconnection: close" in request.lower():
                self.transport.close()
                return


async def serve(pages: int, archives: list[str]) -> None:
    served = Site(real_pages.site(map(Path, archives)) if archives else site(pages))
    server = await asyncio.get_running_loop().create_server(lambda: Protocol(served), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], len(served.pages), flush=True)
    await server.serve_forever()


@dataclass(frozen=True)
class Web:
    """The running server, seen from outside."""

    url: str
    pages: int
    pid: int

    def reset(self, *, validators: bool = False) -> None:
        self._ask(f"/-/reset?validators={int(validators)}", "POST")

    def generation(self, n: int, share: float) -> int:
        return int(self._ask(f"/-/generation?n={n}&share={share}", "POST"))

    def counts(self) -> dict[str, float]:
        answer: dict[str, float] = self._ask("/-/counts", "GET")
        return answer

    def _ask(self, target: str, method: str) -> Any:
        request = urllib.request.Request(self.url.rstrip("/") + target, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)


@contextlib.contextmanager
def running(pages: int = PAGES, archives: Sequence[Path] = ()) -> Iterator[Web]:
    """The site, up for as long as the block runs: generated, or the pages of archives."""
    command = [sys.executable, "-m", "benchmarks.web", str(pages), *map(str, archives)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], 120)
            port, _, count = process.stdout.readline().strip().partition(" ") if ready else ("", "", "")
            if not port:
                raise SystemExit("the benchmark's web server did not start")
            yield Web(f"http://127.0.0.1:{port}/", int(count), process.pid)
        finally:
            process.kill()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else PAGES, sys.argv[2:]))
