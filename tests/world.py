"""What end-to-end tests need: a repository that is worked through the command line, and a web server for it.

    repo = Repo.create(tmp_path / "repo")
    with Site({"/": page("Hello", "/a"), "/a": b"<p>text"}) as site:
        repo.crawl(site.url("/"))
        site["/a"] = b"<p>other text"
        repo.later(hours=2)
        repo.cycle()
        assert repo.outcomes(site.url("/a")) == ["new", "changed"]

The server is well-behaved unless a page says otherwise; for the other kind see `misbehaving.py`. The command line runs
in this process, which is quick, under a clock that `later` can put forward; `start` runs it as a process of its own,
for tests that kill it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import io
import json
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest import mock

from recrawl import cli
from recrawl.record.store import SqliteStore, Store

HTML = "text/html; charset=utf-8"
_CLOCK = time.time
_QUICK = {
    "delay": 0, "timeout": 600, "connect_timeout": 300, "stall": 300, "parse_seconds": 600, "patience": 3, "readers": 1,
}  # fmt: skip
"""No page of a sound server fails on a busy machine; a test of a limit sets it."""


def connection(store: Store) -> sqlite3.Connection:
    """The connection of a store, for what tests look up or break in it."""
    assert isinstance(store, SqliteStore)
    return store.db


# -- the command line --------------------------------------------------------------------------------


class Result(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


def command(*words: object, cwd: Path | None = None, text: str = "") -> Result:
    """Run `recrawl WORDS` in this process: in this folder, with this standard input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(_signals_kept())
        stack.enter_context(mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()))))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if cwd:
            stack.enter_context(contextlib.chdir(cwd))
        code = cli.invoke([*map(str, words)])
    return Result(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


@dataclass
class Repo:
    """A repository, worked through the command line."""

    folder: Path
    ahead: float = 0.0
    """How far our clock is ahead of the real one, in seconds."""

    @classmethod
    def create(cls, folder: Path, **settings: Any) -> Repo:
        """A new repository. It makes no pauses and gives up early, unless the settings say otherwise."""
        (folder / "archive").mkdir(parents=True)
        for name, content in _new_files(tuple(_words({**_QUICK, **settings}).items())).items():
            (folder / name).write_bytes(content)
        return cls(folder)

    def run(self, *arguments: object, code: int | None = 0) -> Result:
        """Run `recrawl -C FOLDER ARGUMENTS` in this process; `code` is what it must end with, None for anything."""
        with self._clock():
            result = command("-C", self.folder, *arguments)
        assert code is None or result.code == code, f"recrawl {' '.join(map(str, arguments))}: {result}"
        return result

    def json(self, *arguments: object) -> Any:
        """The JSON that a command prints; a crawl or cycle may end with 1, when no page answers."""
        code = None if arguments[0] in ("crawl", "cycle") else 0
        return json.loads(self.run(*arguments, "--json", code=code).out)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Run it as a process of its own, under the real clock; the caller waits for it or kills it."""
        return subprocess.Popen(
            [sys.executable, "-m", "recrawl", "-C", str(self.folder), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def wait(self, process: subprocess.Popen[str], seconds: float = 300.0) -> Result:
        """The end of a process."""
        out, err = process.communicate(timeout=seconds)
        return Result(process.returncode, out, err)

    def config(self, **settings: Any) -> None:
        """Set settings."""
        for name, value in _words(settings).items():
            self.run("config", name, value)

    def add(self, *arguments: object) -> None:
        """Name sites on this machine; options as on the command line."""
        self.run("add", *arguments, "--allow-private")

    def crawl(self, *urls: str) -> Any:
        """Discover what is new, of these sites too; the summary."""
        if urls:
            self.add(*urls)
        return self.json("crawl")

    def cycle(self, budget: int = 1000, *arguments: object) -> Any:
        """Refresh; the summary."""
        return self.json("cycle", "--budget", budget, *arguments)

    def later(self, seconds: float = 0.0, *, hours: float = 0.0, days: float = 0.0) -> None:
        """Put the clock forward. Pages that failed are left alone for an hour and longer."""
        self.ahead += seconds + 3600 * hours + 86400 * days

    def now(self) -> float:
        """What our clock shows."""
        return _CLOCK() + self.ahead

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        with mock.patch("time.time", self.now):
            yield

    # -- questions -------------------------------------------------------------------------------------

    def visits(self, url: str) -> list[dict[str, Any]]:
        """The visits of a page, oldest first."""
        found: list[dict[str, Any]] = self.json("log", url, "--visits")
        return found[::-1]

    def outcomes(self, url: str) -> list[str]:
        """What each visit of a page came to, oldest first: the failure if there was one, else the outcome."""
        return [visit["failure"] or visit["outcome"] for visit in self.visits(url)]

    def pages(self) -> dict[str, dict[str, Any]]:
        """Every page by its address."""
        return {row["url"]: row for row in self.json("pages")}

    def states(self) -> dict[str, str]:
        """The state of every page by its address."""
        return {url: row["state"] for url, row in self.pages().items()}

    def found(self, query: str) -> set[str]:
        """Addresses of the pages that a search finds."""
        return {hit["url"] for hit in self.json("search", query, "--limit", 1000)}

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look into the store, where no command says what is to be known."""
        with contextlib.closing(sqlite3.connect(self.folder / "recrawl.db")) as db:
            return db.execute(query, values).fetchall()


def _words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as they are given on the command line."""

    def word(value: Any) -> str:
        text = ",".join(value) if isinstance(value, list) else str(value).lower()
        return value if isinstance(value, str) else text

    return {name: word(value) for name, value in settings.items()}


@functools.cache
def _new_files(settings: tuple[tuple[str, str], ...]) -> dict[str, bytes]:
    """The files of a new repository with these settings: made once with `init` and `config`, then copied."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(scratch) / "repo"
        for words in (["init", str(folder)], *(["-C", str(folder), "config", *row] for row in settings)):
            assert cli.invoke(words) == 0, words
        assert {it.name for it in folder.iterdir()} == {"archive", "recrawl.db", "recrawl.toml"}
        return {it.name: it.read_bytes() for it in folder.iterdir() if it.is_file()}


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """A command that can be stopped takes the signals; give them back."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


# -- the server ----------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """One request, as the server saw it. Times are of time.monotonic()."""

    path: str
    """With its query."""
    host: str
    headers: dict[str, str]
    at: float
    beside: int
    """How many other requests were under way."""
    method: str = "GET"
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """What a page answers. With an etag or a date, a matching condition is answered with 304."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = HTML
    etag: str = ""
    modified: str = ""
    wait: float = 0.0
    """Seconds until it answers."""
    until: threading.Event | None = None
    """It answers when this has come, if there is such a thing."""
    cut: int | None = None
    """Bytes after which the connection is closed; 0 closes it without an answer."""
    pace: float = 0.0
    """Seconds between two bytes."""

    def to(self, asked: Asked) -> Reply:
        """What this request gets of it."""
        extra = {"ETag": self.etag, "Last-Modified": self.modified}
        whole = replace(self, headers={**{k: v for k, v in extra.items() if v}, **self.headers})
        same_tag = self.etag and asked.headers.get("if-none-match") == self.etag
        same_date = self.modified and asked.headers.get("if-modified-since") == self.modified
        unchanged = same_tag or (same_date and "if-none-match" not in asked.headers)
        return replace(whole, body=b"", status=304) if unchanged else whole

    def raw(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} So", *(f"{name}: {value}" for name, value in self.headers.items())]
        if self.status != 304:
            lines += [f"Content-Type: {self.kind}", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    raw = reply.raw()[: reply.cut]
    for start in range(len(raw) if reply.pace else 0):
        writer.write(raw[start : start + 1])
        await writer.drain()
        await asyncio.sleep(reply.pace)
    writer.write(b"" if reply.pace else raw)
    await writer.drain()
    if reply.cut is not None:
        raise ConnectionResetError


Page = bytes | Reply | Callable[[Asked], "bytes | Reply"]


def page(text: str, *links: str, title: str = "A page") -> bytes:
    """A page with these words and links."""
    anchors = " ".join(f'<a href="{link}">to {index}</a>' for index, link in enumerate(links))
    return f"<!doctype html><title>{title}</title><body><p>{text}</p>{anchors}</body>".encode()


def moved(where: str, status: int = 301) -> Reply:
    """A redirect."""
    return Reply(page("elsewhere"), status, {"Location": where})


def sitemap(*urls: str) -> Reply:
    """A sitemap of these addresses."""
    inside = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    names = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    return Reply(f"<urlset {names}>{inside}</urlset>".encode(), kind="application/xml")


def text(words: str) -> Reply:
    """Plain text, for robots.txt."""
    return Reply(words.encode(), kind="text/plain")


class Site:
    """A server on loopback, in a thread of its own while the `with` block lasts. Its pages can be changed meanwhile."""

    def __init__(self, pages: Mapping[str, Page] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.pages: dict[str, Page] = dict(pages or {})
        self.every: Callable[[Asked], bytes | Reply | None] | None = None
        """Asked first, for any path but robots.txt; None leaves the answer to the pages."""
        self.log: list[Asked] = []
        self.port = 0
        self._now = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def __getitem__(self, path: str) -> Page:
        return self.pages[path]

    def __setitem__(self, path: str, answer: Page) -> None:
        self.pages[path] = answer

    def __delitem__(self, path: str) -> None:
        del self.pages[path]

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """The address of a page; `a.localhost` and the like lead here too."""
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{path}"

    def asked(self) -> list[str]:
        """The paths that were asked for, in order; robots.txt and the usual sitemap left out."""
        return [one.path for one in self.log if one.path not in ("/robots.txt", "/sitemap.xml")]

    def requests(self, path: str) -> list[Asked]:
        """The requests for a path."""
        return [one for one in self.log if one.path == path]

    def forget(self) -> None:
        """Empty the log."""
        self.log.clear()

    # -- serving -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main(started)), name="site", daemon=True)
        self._thread.start()
        assert started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    async def _main(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        while True:
            try:
                server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=512, ssl=self.tls)
                break
            except OSError as error:  # a server that comes back: its port is that of another's connection meanwhile
                if error.errno != errno.EADDRINUSE or not self.port:
                    raise
                await asyncio.sleep(0.05)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                await self._exchange(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server stops
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        host = re.sub(r":\d+$", "", headers.get("host", ""))
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target = lines[0].split(" ")[:2]
        asked = Asked(target, host, headers, time.monotonic(), self._now, method, body)
        self.log.append(asked)
        self._now += 1
        try:
            reply = self._answer(asked).to(asked)
            if reply.wait:
                await asyncio.sleep(reply.wait)
            if reply.until:
                await asyncio.to_thread(reply.until.wait, 300)
        finally:
            self._now -= 1
        await _send(writer, reply)

    def _answer(self, asked: Asked) -> Reply:
        if self.every is not None and asked.path != "/robots.txt":
            instead = self.every(asked)
            if instead is not None:
                return instead if isinstance(instead, Reply) else Reply(instead)
        found = self.pages.get(asked.path)
        if found is None:
            return Reply(page("Not here"), 404)
        answer = found(asked) if callable(found) else found
        return answer if isinstance(answer, Reply) else Reply(answer)
