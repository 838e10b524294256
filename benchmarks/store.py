"""The cost of recording: CPU time per visit and per page update, in SQLite and in PostgreSQL.

    python -m benchmarks.store [--rows 50000] [--batch 1000]

The same batches go to a SQLite file and to a PostgreSQL server that this starts from the distribution's packages. The
CPU time of PostgreSQL is that of this process and of the server's process for the connection.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from tests.receivers import postgres

from recrawl.record.rows import Batch, NewPage, VisitRow, unvisited
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
    os.environ["RECRAWL_BENCHMARK_PASSWORD"] = "walrus"
    with postgres("walrus") as url:
        target = parse(url.replace("@", ":${RECRAWL_BENCHMARK_PASSWORD}@"))
        with closing(PostgresStore(target, create=True)) as store:
            server = measure(store, options.rows, options.batch)
    print(f"{options.rows:,} rows, {options.batch:,} per commit; µs of CPU per row")
    print("row           SQLite   PostgreSQL: here   server    ratio")
    for name, (mine, _) in file.items():
        here, there = server[name]
        print(f"{name:12s} {mine:7.1f} {here:18.1f} {there:8.1f} {(here + there) / mine:8.2f}")


if __name__ == "__main__":
    main()
