"""What tests of crashes and histories share: an archive that is served, repositories over it, and a judge of them.

`Bench` works repositories in this process, under a clock that stands still until it is moved. `start` and `main` run
the real command as a process of its own, with commits so frequent that a kill finds something between two of them.
`judge` says everything that is wrong with a repository, whatever happened to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Self, get_type_hints
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from recrawl.choose import make_policy
from recrawl.cli import invoke as command
from recrawl.crawl import cycles
from recrawl.crawl.options import CrawlOptions
from recrawl.lab.formats.archive import Archive
from recrawl.lab.timelapse import Clock, ServedRequest, TimeLapse, TimeLapseServer
from recrawl.lab.timelapse import ServerOptions as Manners
from recrawl.model import State
from recrawl.record import storage
from recrawl.record.archive import Place
from recrawl.record.rows import RequisiteVersion, SiteRow, VersionRow
from recrawl.record.storage import Storage
from recrawl.record.warc import read_body
from recrawl.repository import reader
from recrawl.repository.opening import held, load, options_of
from recrawl.repository.repository import Repository
from recrawl.settings import TEMPLATE, Seed, write_seeds, write_value
from tests.world import connection

_NOINDEX = re.compile(rb"<meta[^>]*[\"' ]robots[^>]*(noindex|[\"' ]none)", re.IGNORECASE)

SMALL: dict[str, Any] = {"commit_visits": 6, "commit_seconds": 0.05, "index_seconds": 0.08}
"""Commits so frequent that a short run has many."""


def archive_of(rows: Sequence[tuple[str, int, bytes | None]]) -> Archive:
    """An archive from address, time and body; no body means that the page goes."""
    urls, times, bodies = (list(column) for column in zip(*rows, strict=True))
    return Archive.of(pa.table({"url": urls, "time": times, "html": pa.array(bodies, pa.binary())}))


def site_row(number: int, origin: str) -> SiteRow:
    """A server of which nothing is known, whatever there is to know of one."""
    blank: dict[str, Any] = {name: kind() for name, kind in get_type_hints(SiteRow).items()}
    row = SiteRow(**blank)
    return row._replace(id=number, origin=origin, robots_status=200)


class Bench:
    """An archive served at the time that `clock` shows, and repositories that crawl it."""

    def __init__(self, archive: Archive, manners: Manners | None = None) -> None:
        self.archive = archive
        self.clock = Clock(archive.start, 0.0, time.monotonic)
        self.app = Spied(archive, self.clock, manners or Manners())
        self.server = TimeLapseServer(self.app)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__(None, None, None)

    @property
    def seeds(self) -> list[str]:
        """Where each site begins."""
        return [self.server.url_of(f"https://{host}/") for host in self.archive.sites]

    def create(self, folder: Path, **settings: Any) -> Path:
        """A new repository that keeps all sites; every change of a text counts, as in an archive."""
        storage.create(folder, TEMPLATE)
        path = folder / storage.SETTINGS
        write_seeds(path, tuple(Seed(url, allow_private=True, delay=0.0) for url in self.seeds))
        for name, value in {"per_server": 4, "readers": 1, "change": "text", **settings}.items():
            write_value(path, name, value)
        return folder

    def options(self, folder: Path, **changes: Any) -> CrawlOptions:
        """A repository's options, under the bench's clock."""
        return replace(options_of(load(folder)), clock=self.clock.now, **changes)

    @contextmanager
    def opened(self, folder: Path, **changes: Any) -> Iterator[tuple[Storage, CrawlOptions]]:
        """A repository, for writing."""
        options = self.options(folder, **changes)
        with held(folder, "test", options, load(folder)) as open_one:
            yield open_one, options

    def crawl(self, folder: Path, controls: cycles.Controls | None = None, **changes: Any) -> cycles.Summary:
        """Crawl in this process."""
        with self.opened(folder, **changes) as (open_one, options):
            return cycles.crawl(open_one, options, self.seeds, controls or cycles.Controls())

    def cycle(
        self,
        folder: Path,
        policy: str = "round-robin",
        budget: float = 100_000,
        controls: cycles.Controls | None = None,
        **changes: Any,
    ) -> cycles.Summary:
        """Refresh in this process."""
        with self.opened(folder, **changes) as (open_one, options):
            return cycles.cycle(open_one, options, make_policy(policy), budget, 1, controls or cycles.Controls())

    def served(self, url: str, at: float) -> tuple[int, bytes]:
        """Status and body that the server gives for an address at a time, without asking it over the wire."""
        host, _, rest = url.partition("://")[2].partition("/")
        path, _, query = rest.partition("?")
        reply = self.app.answer(ServedRequest("GET", host, self.server.port, "/" + unquote(path), query, {}), at)
        return reply.status, reply.body


class Spied(TimeLapse):
    """A time-lapse server that tells of every request, before it answers."""

    on_request: Callable[[str], None] | None = None

    def manners(self, manners: Manners) -> None:
        """Behave otherwise from now on."""
        self._options = manners

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.on_request is not None:
            self.on_request(scope["path"])
        await super().__call__(scope, receive, send)


# -- the command as a process ------------------------------------------------------------------------------


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command in a process group of its own, with small commits."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crashes", "-C", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def main() -> None:
    """The command as it is, but for the size of its commits."""

    def smaller(*given: Any, **named: Any) -> CrawlOptions:
        return replace(options_of(*given, **named), **SMALL)

    reader.options_of = smaller  # type: ignore[attr-defined]
    sys.exit(command(sys.argv[1:]))


# -- the judge ----------------------------------------------------------------------------------------------


def ask(folder: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Look into the store."""
    with closing(sqlite3.connect(folder / "recrawl.db")) as db:
        return db.execute(sql, values).fetchall()


def judge(folder: Path) -> None:
    """Fail when anything in a repository that nobody is working on is lost, doubled or at odds with the rest."""
    assert ask(folder, "PRAGMA integrity_check") == [("ok",)]
    _judge_visits(folder)
    _judge_archive(folder)
    with Repository(folder) as checked:
        problems = checked.check().as_dict()["problems"]
        assert problems == [], problems
    with Storage(folder) as open_one:
        _judge_versions(open_one)
        _judge_requisites(open_one)
        _judge_index(open_one)


def _judge_visits(folder: Path) -> None:
    twice = ask(folder, "SELECT cycle, page, count(*) FROM visits GROUP BY cycle, page HAVING count(*) > 1")
    assert twice == [], "a page was visited twice in one cycle"
    assert ask(folder, "SELECT url FROM pages GROUP BY url HAVING count(*) > 1") == []
    numbers = [row[0] for row in ask(folder, "SELECT id FROM pages ORDER BY id")]
    assert numbers == list(range(len(numbers))), "page numbers have gaps"
    orphans = "SELECT id FROM visits WHERE page NOT IN (SELECT id FROM pages) OR cycle NOT IN (SELECT id FROM cycles)"
    assert ask(folder, orphans) == []
    said = dict(ask(folder, "SELECT page, count(*) FROM visits WHERE outcome != 4 GROUP BY page"))
    updates = dict(ask(folder, "SELECT page, count(*) FROM visits WHERE outcome IN (1, 2, 3) GROUP BY page"))
    for page, visits, changes in ask(folder, "SELECT id, visits, changes FROM pages"):
        assert (visits, changes) == (said.get(page, 0), updates.get(page, 0)), f"page {page} is counted wrongly"


def _judge_archive(folder: Path) -> None:
    """Every file can be read to its end, and is as long as the store says; every visit with a body has its record."""
    stored = dict(ask(folder, "SELECT name, length FROM warcs"))
    files = {row[0] for row in ask(folder, "SELECT url FROM requisites")}
    assert {path.name: path.stat().st_size for path in (folder / "archive").iterdir()} == stored
    kinds: Counter[str] = Counter()
    """By type; a response by its status too, and robots.txt for itself."""
    ids: Counter[str] = Counter()
    for name in stored:
        path = folder / "archive" / name
        with path.open("rb") as file:
            here = Counter(_record_ids(file, kinds, files))
        with path.open("rb") as file:
            assert sum(1 for _ in FastIterator(file)) == sum(here.values())
        ids += here
    assert max(ids.values(), default=1) == 1, "a record is there twice"
    versions = ask(folder, "SELECT count(*) FROM versions")[0][0]
    same = "SELECT count(*) FROM visits v WHERE outcome = 0 AND id NOT IN (SELECT min(id) FROM visits GROUP BY version)"
    away = "SELECT count(*) FROM visits WHERE (outcome = 3 OR failure IN ('moved', 'not-found')) AND status = 200"
    assert kinds["response 200"] == versions + ask(folder, away)[0][0]
    assert kinds["request"] == sum(number for kind, number in kinds.items() if "response" in kind)
    own = ask(folder, "SELECT count(*) FROM requisite_versions WHERE record = id")[0][0]
    assert kinds["requisite response 200"] == own
    assert kinds["revisit"] == ask(folder, same)[0][0]
    assert kinds["warcinfo"] == len(stored)


def _record_ids(file: BinaryIO, kinds: Counter[str], files: set[str]) -> Iterator[str]:
    """The ids of a file's records; counts their kinds, those of `files` apart, and checks every digest."""
    for record in ArchiveIterator(file, check_digests="raise"):
        record.content_stream().read()
        url = record.rec_headers.get_header("WARC-Target-URI") or ""
        if record.rec_type == "response":
            status = "robots" if url.endswith("/robots.txt") else record.http_headers.get_statuscode()
            kinds[f"{'requisite ' if url in files else ''}response {status}"] += 1
        else:
            apart = url in files and record.rec_type == "revisit"
            kinds[f"{'requisite ' if apart else ''}{record.rec_type}"] += 1
        yield record.rec_headers.get_header("WARC-Record-ID")


def _judge_versions(open_one: Storage) -> None:
    db = connection(open_one.store)
    before: dict[int, bytes] = {}
    for row in db.execute("SELECT * FROM versions ORDER BY id").fetchall():
        version = VersionRow._make(row)
        status, _, body = open_one.body(version)
        assert (status, len(body)) == (200, version.size)
        assert hashlib.sha1(body).digest() == version.payload
        assert before.get(version.page) != version.payload, "a version is there twice"
        before[version.page] = version.payload
    newest = dict(db.execute("SELECT page, max(id) FROM versions GROUP BY page").fetchall())
    for page, version_, payload, state in db.execute("SELECT id, version, payload, state FROM pages").fetchall():
        assert version_ == newest.get(page, -1)
        gone = state in (State.GONE, State.MOVED) or payload is None  # then there is nothing to be equal to
        assert gone or payload == before.get(page)
    orphans = "SELECT id FROM versions WHERE id NOT IN (SELECT version FROM visits)"
    assert db.execute(orphans).fetchall() == []


def _judge_requisites(open_one: Storage) -> None:
    """Every version of a requisite can be read, and each requisite knows its newest one."""
    db = connection(open_one.store)
    for row in db.execute("SELECT * FROM requisite_versions ORDER BY id").fetchall():
        version = RequisiteVersion._make(row)
        status, _, body = read_body(open_one.archive.read(Place(version.warc, version.start, version.length)))
        assert (status, len(body), hashlib.sha1(body).digest()) == (200, version.size, version.payload)
    newest = dict(db.execute("SELECT requisite, max(id) FROM requisite_versions GROUP BY requisite").fetchall())
    rows = db.execute("SELECT id, version, checked FROM requisites").fetchall()
    assert {number: version for number, version, _ in rows if version >= 0} == newest
    assert [number for number, version, checked in rows if version >= 0 and checked is None] == []
    assert db.execute("SELECT url FROM requisites GROUP BY url HAVING count(*) > 1").fetchall() == []
    known = {number for number, *_ in rows}
    for _, packed in db.execute("SELECT page, requisites FROM page_requisites").fetchall():
        assert set(np.frombuffer(packed, np.int32).tolist()) <= known


def _judge_index(open_one: Storage) -> None:
    """What is searchable is what the store holds: these pages, with their newest titles and texts."""
    live = (
        f"state IN ({State.LIVE:d}, {State.MISSING:d}) AND version >= 0 AND p.payload IS NOT NULL"  # not after an end
    )
    sql = f"""SELECT p.id, p.url, v.title FROM pages p JOIN versions v ON v.id =
              (SELECT max(id) FROM versions WHERE page = p.id AND changed) WHERE {live}"""
    rows = connection(open_one.store).execute(sql).fetchall()
    wanted = {page: (url, title) for page, url, title in rows if not _hides(open_one, page)}
    found = {hit.page: (hit.url, hit.title) for hit in open_one.index.search("*", limit=100_000)}
    assert len(open_one.index) == len(found) == len(wanted)
    assert found == wanted


def _hides(open_one: Storage, page: int) -> bool:
    """Whether a page asks not to be found."""
    version = open_one.store.versions.get(open_one.store.pages.get(page)[4].version)
    assert version is not None
    return _NOINDEX.search(open_one.body(version)[2]) is not None


def contents(folder: Path) -> dict[str, tuple[int, str | None]]:
    """Address to state and digest: what two repositories of the same web must agree on."""
    rows = ask(folder, "SELECT url, state, payload FROM pages")
    return {url: (state, payload and payload.hex()) for url, state, payload in rows}


def choices(folder: Path, cycle: int) -> dict[int, tuple[float, str]]:
    """What the policy chose in a cycle: page to score and reason."""
    sql = "SELECT v.page, v.score, r.text FROM visits v JOIN reasons r ON r.id = v.why WHERE v.cycle = ?"
    return {page: (score, reason) for page, score, reason in ask(folder, sql, cycle)}


def image(folder: Path, target: Path) -> Path:
    """What a crash at this moment would leave behind; taken while nothing is being committed.

    The index has threads of its own that tidy up, so its files are copied again until they stood still meanwhile.
    """
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("index", "lock"))
    index = folder / "index"
    for _ in range(100 if index.is_dir() else 0):
        before = _listing(index)
        with suppress(shutil.Error):
            shutil.copytree(index, target / "index")
            if _listing(index) == before:
                return target
        shutil.rmtree(target / "index")
    assert not index.is_dir(), "the index never stood still"
    return target


def _listing(folder: Path) -> tuple[set[str], bytes]:
    meta = folder / "meta.json"
    return {path.name for path in folder.iterdir()}, meta.read_bytes() if meta.exists() else b""


if __name__ == "__main__":
    main()
