"""All that a cluster needs, on loopback, for the benchmarks: PostgreSQL, an S3 server, and the web of the referee."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.object_store import KEYS, ObjectStore
from tests.receivers import postgres, restart_postgres

from benchmarks.referee import Referee, Sites, running
from recrawl.cluster.layout import layout_of
from recrawl.cluster.run_requests import Kind, request_run
from recrawl.record import storage
from recrawl.record.store import postgres_target
from recrawl.settings import Seed, load, write_seeds, write_value

PASSWORD = "walrus"


@dataclass(frozen=True)
class Stand:
    """The servers, and where the repository and logs of the benchmark are."""

    work: Path
    database: str
    """The URL of the database, with the password by reference."""
    objects: ObjectStore
    web: Referee
    delay: float
    schema: str = "bench"
    """Of the cluster's tables; shards have schemas of their own."""

    @property
    def folder(self) -> Path:
        """The repository that the commands are given."""
        return self.work / "repository"

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        target = postgres_target(self.database)
        with psycopg.connect(target.url, password=target.revealed()) as db:
            found = db.execute(sql, values)
            return found.fetchall() if found.description else []

    def postmaster(self) -> int:
        """The process of the database server."""
        folder = Path(self.query("SHOW data_directory")[0][0])
        return int((folder / "postmaster.pid").read_text().split()[0])

    def restart_database(self) -> None:
        """Stop the server, with all connections, and start it again."""
        restart_postgres(Path(self.query("SHOW data_directory")[0][0]))

    def cut_connections(self) -> int:
        """End all connections of others; return how many there were."""
        others = "pid != pg_backend_pid() AND datname IS NOT NULL"
        return len(self.query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))

    def recrawl(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command on the repository."""
        command = [sys.executable, "-m", "recrawl", "-C", str(self.folder), *words]
        return subprocess.Popen(command, text=True, **options)

    def must(self, *words: str) -> str:
        """Run a command to its end; return what it printed."""
        process = self.recrawl(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate()
        if process.returncode:
            raise SystemExit(f"recrawl {' '.join(words)} ended with code {process.returncode}: {err}")
        return out

    def request(self, kind: Kind, **options: Any) -> int:
        """Ask for a run of the cluster; returns its number."""
        layout, file = layout_of(self.folder), self.folder / storage.SETTINGS
        with closing(layout.open()) as cluster:
            run, _ = request_run(cluster, kind, load(file), file.read_text(), shards=layout.shards, **options)
        return run.id

    def finished(self, run: int) -> bool:
        """Whether a run has ended; False while the database is away."""
        with suppress(psycopg.OperationalError):
            return bool(self.query(f"SELECT 1 FROM {self.schema}.runs WHERE id = %s AND finished IS NOT NULL", run))
        return False

    def create(self, *options: str) -> None:
        """Make the repository with all sites of the web as seeds."""
        self.create_at(self.folder, self.schema, *options)

    def create_at(self, folder: Path, schema: str, *options: str, part: tuple[int, int] = (0, 1)) -> None:
        """Make a repository in a folder, with a part of the sites, such as 2 of 4, as seeds."""
        # The objects of moto's servers in one process are the same ones: each stand has a prefix of its own.
        store, archive = f"{self.database}?schema={schema}", self.objects.url(f"{schema}-{self.web.port}")
        self.must("init", str(folder), "--store", store, "--archive", archive, *options)
        self.configure(folder, *part)

    def configure(self, folder: Path, first: int = 0, step: int = 1) -> None:
        """Write the settings of the benchmark; seeds are all sites or, from a first one on, each second, third ..."""
        path = folder / storage.SETTINGS
        numbers = range(first, self.web.sites.sites, step)
        urls = [f"http://s{number}.localhost:{self.web.port}/" for number in numbers]
        write_seeds(path, tuple(Seed(url, allow_private=True, delay=self.delay) for url in urls))
        for name, value in {"index": False, "per_server": 1, "readers": 1}.items():
            write_value(path, name, value)


@contextmanager
def stand(work: Path, sites: Sites, delay: float, latency: float = 0.02) -> Iterator[Stand]:
    """The servers, up for as long as the block runs."""
    work.mkdir(parents=True, exist_ok=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    objects = ObjectStore()
    with postgres(PASSWORD) as url, objects.running(), running(sites, work / "requests.jsonl", latency) as web:
        os.environ |= {**KEYS, "RECRAWL_BENCH_PASSWORD": PASSWORD}
        objects.create_bucket()
        yield Stand(work, url.replace("@", ":${RECRAWL_BENCH_PASSWORD}@"), objects, web, delay)


def end_by_signals() -> None:
    """Stop the servers also when the benchmark is asked to end, and when it was started in the background."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
