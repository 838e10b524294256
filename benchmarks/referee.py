"""A web of many sites on loopback that logs who asked what and when: `python -m benchmarks.referee LOG`.

Site n is `sN.localhost`, a registrable domain of its own. Its first page links most of its pages; each fourth page is
linked by another site only, so that a crawl finds it only if links cross sites. Pages change from one generation to the
next: some often, most seldom, and now and then all pages of a site. The same seed gives the same web. With `--files`,
the pages of a site need a stylesheet and an image of two other sites, and the stylesheet an image beside it.

Prints its port, then answers until it is killed. Each answered request is a line of LOG: site, client, start, end, path
and status. The client is the process at the other end of the connection, as the kernel names it.

    GET /-/generation?n=3     the web as it is after three generations
    GET /-/flush              all requests so far are in the log
"""

from __future__ import annotations

import argparse
import asyncio
import json
import select
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs

import numpy as np

from benchmarks.lanes_web import MISSING, WORDS
from benchmarks.socket_owner import owner

REBUILT = 0.05
"""Probability that all pages of a site change in a generation."""


@dataclass(frozen=True)
class Sites:
    """The web: which pages there are, what they link, and what they say in a generation."""

    sites: int = 1000
    pages: int = 8
    """Mean number of pages of a site."""
    seed: int = 1
    words: int = 120
    """Words of a page."""
    apart: bool = False
    """Whether each site links all of its pages, and none links another site."""
    files: bool = False
    """Whether pages need files of other sites."""

    @cached_property
    def sizes(self) -> list[int]:
        sizes = np.random.default_rng([self.seed, 0]).integers(2, 2 * self.pages - 1, self.sites)
        return [int(size) for size in sizes]

    @cached_property
    def rates(self) -> list[np.ndarray]:
        """The probability of each page to change in a generation, by site."""
        rng = np.random.default_rng([self.seed, 1])
        return [np.minimum(rng.gamma(0.4, 0.25, size), 0.9) for size in self.sizes]

    @cached_property
    def hidden(self) -> list[list[tuple[int, int]]]:
        """The pages that each site links of others: nobody else links them."""
        links: list[list[tuple[int, int]]] = [[] for _ in range(self.sites)]
        for site, size in enumerate(self.sizes if not self.apart else ()):
            for page in range(3, size, 4):
                links[(site + page) % self.sites].append((site, page))
        return links

    def versions(self, generation: int) -> list[np.ndarray]:
        """The number of changes of each page up to a generation, by site."""
        counts = [np.zeros(size, dtype=int) for size in self.sizes]
        for at in range(1, generation + 1):
            rng = np.random.default_rng([self.seed, 2, at])
            for site, rate in enumerate(self.rates):
                counts[site] += (rng.random(len(rate)) < rate) | (rng.random() < REBUILT)
        return counts

    def urls(self, port: int) -> list[str]:
        """The URL of every page."""
        return [
            f"http://s{site}.localhost:{port}{path_of(page)}"
            for site in range(self.sites)
            for page in range(self.sizes[site])
        ]

    def needs(self, site: int, port: int) -> tuple[str, str]:
        """The stylesheet and the image that the pages of a site need."""
        sheet, image = (f"http://s{(site + step) % self.sites}.localhost:{port}" for step in (1, 7))
        return f"{sheet}/s.css", f"{image}/i/{site}.png"

    def file_urls(self, port: int) -> list[str]:
        """The URL of every file that pages need."""
        needed = [self.needs(site, port) for site in range(self.sites)] if self.files else []
        return [url for sheet, image in needed for url in (sheet, sheet.replace("/s.css", "/i/back.png"), image)]

    def body(self, site: int, page: int, version: int, port: int) -> bytes:
        """A page in one of its versions."""
        words = np.random.default_rng([self.seed, 3, site, page, version]).choice(WORDS, self.words)
        links = ""
        if page == 0:
            own = [path_of(n) for n in range(1, self.sizes[site]) if n % 4 != 3 or self.apart]
            others = [f"http://s{other}.localhost:{port}{path_of(n)}" for other, n in self.hidden[site]]
            links = "".join(f'<a href="{link}">{link}</a> ' for link in own + others)
        if self.files:
            sheet, image = self.needs(site, port)
            links += f'<link rel="stylesheet" href="{sheet}"><img src="{image}">'
        text = f"<!doctype html><title>{site} {page}</title><p>{' '.join(words)} version {version}</p>{links}"
        return text.encode()


def path_of(page: int) -> str:
    """The path of a page within its site.

    >>> path_of(0), path_of(3)
    ('/', '/p/3.html')
    """
    return f"/p/{page}.html" if page else "/"


class Web:
    """The sites in their present generation, and the log."""

    def __init__(self, sites: Sites, latency: float, log: TextIO) -> None:
        self.sites, self.log, self.port = sites, log, 0
        self.latency = np.random.default_rng([sites.seed, 4]).uniform(0, 2 * latency, sites.sites)
        self.versions = sites.versions(0)

    def page_at(self, name: str, path: str) -> tuple[int, int] | None:
        """Site and page of a URL; none if there is no such page."""
        site = int(name.partition(".")[0][1:])
        word = path.removeprefix("/p/").removesuffix(".html")
        page = 0 if path == "/" else int(word) if word.isdigit() else -1
        return (site, page) if path == path_of(max(page, 0)) and page < self.sites.sizes[site] else None

    def content(self, name: str, path: str) -> tuple[str, bytes] | None:
        """Type and body of the page or file at a URL; none if there is neither."""
        found = self.page_at(name, path)
        if found is not None:
            return "text/html", self.sites.body(*found, int(self.versions[found[0]][found[1]]), self.port)
        if self.sites.files and path == "/s.css":
            return "text/css", b"body { background: url(/i/back.png) }"
        if self.sites.files and path.startswith("/i/"):
            return "image/png", b"\x89PNG\r\n\x1a\n" + path.encode()
        return None

    def control(self, command: str) -> None:
        word, _, query = command.partition("?")
        if word == "generation":
            self.versions = self.sites.versions(int(parse_qs(query)["n"][0]))
        self.log.flush()


class Connection(asyncio.Protocol):
    """One connection; requests on it come one after another."""

    def __init__(self, web: Web) -> None:
        self.web, self.data, self.client = web, b"", ""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        start = time.monotonic()
        self.data += data
        head, end, rest = self.data.partition(b"\r\n\r\n")
        if not end:
            return
        self.data = rest
        lines = head.decode("latin-1").split("\r\n")
        path = lines[0].split(" ")[1]
        if path.startswith("/-/"):
            self.web.control(path[3:])
            self.transport.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()
            return
        name = next(line[5:].strip() for line in lines if line[:5].lower() == "host:")
        # The delay of a host begins when it has answered, so that the process is looked up while it waits.
        self.client = self.client or owner(self.transport.get_extra_info("peername"), self.web.port)
        wait = self.web.latency[int(name.partition(".")[0][1:])]
        asyncio.get_running_loop().call_later(wait, self.answer, name.partition(":")[0], path, start)

    def answer(self, name: str, path: str, start: float) -> None:
        web = self.web
        found, answer = web.content(name, path), MISSING
        if found is not None:
            kind, body = found
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            answer = head.encode() + body
        row = [name, self.client, start, time.monotonic(), path, 404 if found is None else 200]
        web.log.write(json.dumps(row) + "\n")
        self.transport.write(answer)


async def serve(web: Web) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Connection(web), "127.0.0.1", 0, backlog=4096)
    web.port = server.sockets[0].getsockname()[1]
    print(web.port, flush=True)
    await server.serve_forever()


@dataclass(frozen=True)
class Referee:
    """The running server, seen from outside."""

    sites: Sites
    port: int
    pid: int
    log: Path

    def generation(self, number: int) -> None:
        """Show the web as it is after some generations."""
        self._tell(f"generation?n={number}")

    def requests(self) -> list[list[Any]]:
        """The log so far."""
        self._tell("flush")
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def _tell(self, words: str) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(f"http://127.0.0.1:{self.port}/-/{words}", timeout=60).close()


@contextmanager
def running(sites: Sites, log: Path, latency: float = 0.02) -> Iterator[Referee]:
    """The web, up for as long as the block runs."""
    command = [sys.executable, "-m", "benchmarks.referee", str(log), "--latency", str(latency)]
    for name, value in asdict(sites).items():
        command += [f"--{name}", str(value)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], 120)
            port = process.stdout.readline() if ready else ""
            if not port:
                raise SystemExit("the referee did not start")
            yield Referee(sites, int(port), process.pid, log)
        finally:
            process.kill()


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("log", type=Path)
    ask.add_argument("--sites", type=int, default=Sites.sites)
    ask.add_argument("--pages", type=int, default=Sites.pages)
    ask.add_argument("--seed", type=int, default=Sites.seed)
    ask.add_argument("--words", type=int, default=Sites.words)
    for name in ("apart", "files"):
        ask.add_argument(f"--{name}", type=lambda text: text == "True", default=False)
    ask.add_argument("--latency", type=float, default=0.02, help="mean seconds until a site answers")
    asked = ask.parse_args()
    sites = Sites(asked.sites, asked.pages, asked.seed, asked.words, asked.apart, asked.files)
    with asked.log.open("a") as log:
        asyncio.run(serve(Web(sites, asked.latency, log)))


if __name__ == "__main__":
    main()
