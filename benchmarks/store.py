"""The cost of recording: CPU time per visit and per page update, and bytes, in SQLite and in PostgreSQL.

    python -m benchmarks.store [--rows 50000] [--batch 1000]

The same batches go to a SQLite file and to a PostgreSQL server that this starts from the distribution's packages. The
CPU time of PostgreSQL is that of this process and of the server's process for the connection.

Bytes are those of tables and indexes after all this: of a page as a crawl records it (a URL of 60 characters, digests,
validators, its first version, its first visit and 50 links), and of each later visit, which updates the page.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from tests.receivers import postgres

from recrawl.record.rows import Batch, NewPage, VersionRow, VisitRow, unvisited
from recrawl.record.store import SqliteStore
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import parse

_TICKS = os.sysconf("SC_CLK_TCK")


def pages(first: int, end: int) -> Batch:
    return Batch(pages=[NewPage(n, n, 0, 0, 1, -1, 1.0, 0, 0, 0, f"https://a.example/{n}") for n in range(first, end)])


def visits(first: int, end: int) -> Batch:
    return Batch(
        visits=[VisitRow(n, n, 0, n * 1.0, 0, 200, 900, 0.1, -1, 0.5, 1, None, None) for n in range(first, end)]
    )


def updates(first: int, end: int) -> Batch:
    visited = unvisited(0)._replace(
        state=1, visits=1, size=900, last_try=5.0, last_visit=5.0, payload=b"p" * 20, etag='"abc"'
    )
    return Batch(states=[visited._replace(id=n) for n in range(first, end)])


def crawled(first: int, end: int) -> Batch:
    """Pages after their first download."""
    rng = np.random.default_rng(first)
    state = unvisited(0)._replace(state=1, visits=1, size=30_000, last_try=5.0, last_visit=5.0, last_change=5.0)
    state = state._replace(version_at=5.0, etag='"5f3c-61a2b"', modified="Sun, 06 Nov 1994 08:49:37 GMT", prior=0.1)
    found = Batch()
    for n in range(first, end):
        url = f"https://www.example.org/{n % 1000:03d}/".ljust(60 - 12, "a") + f"{n:012d}"
        payload, digest = rng.bytes(20), rng.bytes(16)
        found.pages.append(NewPage(n, int(rng.integers(1 << 62)), n // 1000, n // 100, 3, n // 50, 1.0, 0, 0, 0, url))
        found.states.append(state._replace(id=n, version=n, payload=payload, digest=digest))
        found.versions.append(
            VersionRow(
                n,
                n,
                5.0,
                0,
                None,
                None,
                3,
                1,
                30_000,
                n // 50_000,
                n % 50_000 * 9000,
                9000,
                payload,
                digest,
                "A title of forty characters, as most are",
                "text/html",
                "utf-8",
            )
        )
        found.visits.append(VisitRow(n, n, 0, 5.0, 1, 200, 30_000, 0.1, n, 0.5, 1, None, None))
        found.links.append((n, rng.bytes(200)))
    return found


def visited_again(first: int, end: int) -> Batch:
    """Visits that find nothing new; each writes the page's row again."""
    state = unvisited(0)._replace(state=1, visits=2, last_try=9.0, last_visit=9.0, etag='"5f3c-61a2b"', size=30_000)
    rows = range(first, end)
    return Batch(
        visits=[VisitRow(n + 10_000_000, n, 1, 9.0, 0, 304, 300, 0.1, n, 0.5, 1, None, None) for n in rows],
        states=[state._replace(id=n, version=n, payload=bytes(20), digest=bytes(16)) for n in rows],
    )


def size_of(store: SqliteStore | PostgresStore) -> int:
    """Bytes of tables and indexes."""
    if isinstance(store, SqliteStore):
        count, size = (store.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(count * size)
    sql = """SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = current_schema() AND c.relkind = 'r'"""
    return int(store.db.run(sql).fetchone()[0])


def bytes_per_row(store: SqliteStore | PostgresStore, rows: int, size: int) -> list[float]:
    """Bytes of a page after its first visit, and of each of three later visits."""
    found = []
    for make, times in ((crawled, 1), (visited_again, 3)):
        before = size_of(store)
        for turn in range(times):
            for batch in batches(make, rows, size):
                batch.visits = [row._replace(id=row.id + turn * 10_000_000) for row in batch.visits]
                store.commit(batch, [])
        found.append((size_of(store) - before) / rows / times)
    return found


def batches(make: Callable[[int, int], Batch], rows: int, size: int) -> Iterator[Batch]:
    for first in range(0, rows, size):
        yield make(first, min(first + size, rows))


def server_seconds(store: PostgresStore) -> float:
    """CPU time of the server's process for this connection."""
    process = store.db.run("SELECT pg_backend_pid()").fetchone()[0]
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measure(store: SqliteStore | PostgresStore, rows: int, size: int) -> dict[str, tuple[float, float]]:
    """Microseconds per row here and in the server, by kind of row."""
    found = {}
    for name, make in (("new page", pages), ("visit", visits), ("first visit", updates), ("page update", updates)):
        prepared = list(batches(make, rows, size))
        server = server_seconds(store) if isinstance(store, PostgresStore) else 0.0
        begin = time.process_time()
        for batch in prepared:
            store.commit(batch, [])
        here = time.process_time() - begin
        there = server_seconds(store) - server if isinstance(store, PostgresStore) else 0.0
        found[name] = (here / rows * 1e6, there / rows * 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    scratch = tempfile.TemporaryDirectory()
    with scratch as folder, closing(SqliteStore(Path(folder) / "recrawl.db", create=True)) as store:
        file = measure(store, options.rows, options.batch)
    with tempfile.TemporaryDirectory() as folder, closing(SqliteStore(Path(folder) / "r.db", create=True)) as store:
        sizes = [bytes_per_row(store, options.rows, options.batch)]
    os.environ["RECRAWL_BENCHMARK_PASSWORD"] = "walrus"
    with postgres("walrus") as url:
        target = parse(url.replace("@", ":${RECRAWL_BENCHMARK_PASSWORD}@"))
        with closing(PostgresStore(target, create=True)) as store:
            server = measure(store, options.rows, options.batch)
        with closing(PostgresStore(target._replace(schema="sizes"), create=True)) as store:
            sizes.append(bytes_per_row(store, options.rows, options.batch))
    print(f"{options.rows:,} rows, {options.batch:,} per commit; µs of CPU per row")
    print("row           SQLite   PostgreSQL: here   server    ratio")
    for name, (mine, _) in file.items():
        here, there = server[name]
        print(f"{name:12s} {mine:7.1f} {here:18.1f} {there:8.1f} {(here + there) / mine:8.2f}")
    for name, found in zip(("SQLite", "PostgreSQL"), sizes, strict=True):
        print(f"{name}: {found[0]:.0f} bytes per page, {found[1]:.0f} bytes per later visit")


if __name__ == "__main__":
    main()
