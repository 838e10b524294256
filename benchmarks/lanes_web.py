"""The web of `benchmarks.lanes`: many hosts in one process, `python -m benchmarks.lanes_web DELAY PAGES...`.

Host n is `hN.localhost` and has the n-th number of pages, all linked from its first one; its latency, 50 to 500 ms, is
drawn once. Prints its port, then answers until it is killed.

    GET /-/reset              counters to zero
    GET /-/counts             what was seen since then, as JSON
    GET /-/quick?on=1         no latency, so that a first crawl need not take long
    GET /-/rebuild?h=3&h=5    pages of these hosts have another text from now on, those of all others their first one
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import numpy as np

WORDS = ("river", "stone", "bridge", "market", "garden", "window", "letter", "engine", "harbour", "forest")
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Host:
    """One host, and what was seen of its requests since the last reset."""

    number: int
    pages: int
    latency: float
    version: int = 0
    requests: int = 0
    pauses: float = 0.0  # seconds between an answer and the next request
    allowed: float = 0.0  # what they should have been
    at_once: int = 0
    answered: float = 0.0

    def body(self, path: str) -> bytes:
        rng = np.random.default_rng([self.number, self.version, len(path), *path.encode()])
        text = " ".join(rng.choice(WORDS, 200))
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(1, self.pages)) if path == "/" else ""
        return f"<!doctype html><title>{self.number} {path}</title><p>{text}</p>{links}".encode()


@dataclass
class Web:
    """All hosts, and what was seen of them together."""

    delay: float
    hosts: list[Host]
    quick: bool = False
    first: float = 0.0
    last: float = 0.0
    open: int = 0
    most_open: int = 0
    under_way: int = 0
    most_under_way: int = 0
    sockets: int = field(default=0)

    def reset(self) -> None:
        self.first = self.last = 0.0
        self.most_open, self.most_under_way, self.sockets = self.open, 0, 0
        for host in self.hosts:
            host.requests, host.pauses, host.allowed, host.answered = 0, 0.0, 0.0, 0.0

    def counts(self) -> dict[str, float]:
        asked = [host for host in self.hosts if host.requests]
        pause = {host.number: max(self.delay, host.latency) for host in asked}
        queues = [host.requests * host.latency + (host.requests - 1) * pause[host.number] for host in asked]
        seconds, answers = self.last - self.first, sum(host.requests for host in asked)
        busy = sum(host.latency * (host.requests - 1) for host in asked)
        paused, allowed = sum(host.pauses for host in asked), sum(host.allowed for host in asked)
        longest = max(queues, default=0.0)
        return {
            "requests": answers,
            "seconds": round(seconds, 1),
            "requests per s": round(answers / max(seconds, 1e-9), 1),
            "longest queue s": round(longest, 1),
            "time over longest queue": round(seconds / longest, 3) if longest else 0.0,
            "share of allowed pace": round((busy + allowed) / max(busy + paused, 1e-9), 4),
            "most requests at once": self.most_under_way,
            "connections": self.sockets,
            "most connections at once": self.most_open,
        }


class Connection(asyncio.Protocol):
    """One connection; requests on it come one after another."""

    def __init__(self, web: Web) -> None:
        self.web, self.data = web, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.web.open += 1
        self.web.sockets += 1
        self.web.most_open = max(self.web.most_open, self.web.open)

    def connection_lost(self, _error: Exception | None) -> None:
        self.web.open -= 1

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, end, self.data = self.data.partition(b"\r\n\r\n")
        if not end:
            self.data = head
            return
        lines = head.decode("latin-1").split("\r\n")
        path = lines[0].split(" ")[1]
        name = next(line[5:].strip() for line in lines if line[:5].lower() == "host:")
        if path.startswith("/-/"):
            self.control(path[3:])
            return
        host = self.web.hosts[int(name.partition(".")[0][1:])]
        now = asyncio.get_running_loop().time()
        if host.answered:
            host.pauses += now - host.answered
            host.allowed += max(self.web.delay, host.latency)
        web = self.web
        host.requests += 1
        web.first = web.first or now
        web.under_way += 1
        web.most_under_way = max(web.most_under_way, web.under_way)
        wait = 0.0 if web.quick else host.latency
        asyncio.get_running_loop().call_at(now + wait, self.answer, host, path)

    def answer(self, host: Host, path: str) -> None:
        there = path == "/" or (path[1:].isdigit() and int(path[1:]) < host.pages)
        body = host.body(path) if there else b""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        self.transport.write(head + body if there else MISSING)
        self.web.under_way -= 1
        host.answered = self.web.last = asyncio.get_running_loop().time()

    def control(self, what: str) -> None:
        word, _, query = what.partition("?")
        values = parse_qs(query)
        if word == "reset":
            self.web.reset()
        elif word == "quick":
            self.web.quick = values["on"] == ["1"]
        elif word == "rebuild":
            for host in self.web.hosts:
                host.version = int(str(host.number) in values["h"])
        body = json.dumps(self.web.counts() if word == "counts" else {}).encode()
        self.transport.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()


async def main() -> None:
    delay, pages = float(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    latency = np.random.default_rng(7).uniform(0.05, 0.5, len(pages))
    web = Web(delay, [Host(n, count, float(latency[n])) for n, count in enumerate(pages)])
    server = await asyncio.get_running_loop().create_server(lambda: Connection(web), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
