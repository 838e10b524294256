"""All versions of all pages as a Parquet archive: url, time, html."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from recrawl.errors import DamagedRecord
from recrawl.extras import pa
from recrawl.lab.formats.archive import COLUMNS, write_batches
from recrawl.record.storage import Storage

_ROWS = 256
"""Rows of a batch that is exported at once."""


def write(storage: Storage, file: Path, since: float, left_out: Callable[[str], None]) -> int:
    """Write the versions and removals from `since` on as an archive (url, time, html); returns its rows.

    `left_out` gets a sentence for each version whose record is damaged.
    """
    return write_batches(file, _batches(storage, since, left_out))


def _batches(storage: Storage, since: float, left_out: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    """Versions and removals by URL and time, a few at a time."""
    store = storage.store
    rows: list[tuple[str, int, bytes | None]] = []
    for page, url in store.pages.visited():
        states: list[tuple[float, bytes | None]] = []
        for version in store.versions.of_page(page):
            if version.at < since:
                continue
            try:
                states.append((version.at, storage.body(version)[2]))
            except DamagedRecord as error:
                left_out(str(error))
        states += [(at, None) for at in store.visits.removals(page) if at >= since]
        rows += [(url, int(at), body) for at, body in sorted(states, key=lambda state: state[0])]
        if len(rows) >= _ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[str, int, bytes | None]]) -> pa.RecordBatch:
    urls, times, bodies = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(urls, pa.string()), pa.array(times, pa.int64()), pa.array(bodies, pa.large_binary())],
        names=COLUMNS,
    )
