"""Versions on their way into an archive: what the importers of git and WARC histories share.

An importer first learns of every version without its body, as columns (page, time), puts them in order, cuts out
the window that is wanted, and only then fetches the bodies, one at a time, in the order of the archive. So memory
holds a few numbers per version and a few megabytes of bodies, however large the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from recrawl.columns import Flags, Ints
from recrawl.errors import BadArchive
from recrawl.lab.formats.archive import SCHEMA, write_batches

Progress = Callable[[str, int, int | None], None]
"""Is told what is being counted, how many are done, and of how many, where that is known."""

Row = tuple[str, int, bytes | None]
"""Address, seconds since 1970, body; None where the page was removed."""

MAX_BYTES = 16 << 20
"""Larger pages are left out, unless the caller says otherwise."""

_BATCH_ROWS = 4096
_BATCH_BYTES = 16 << 20


@dataclass(slots=True)
class Taken:
    """What went into an archive, and what did not."""

    pages: int = 0
    rows: int = 0
    """Versions and removals."""
    removals: int = 0
    start: int = 0
    end: int = 0
    remarks: dict[str, int] = field(default_factory=dict)
    """What was left out or put right, in words for people, and how many of it."""

    def remark(self, what: str, count: int = 1) -> None:
        """Count something that people should hear of."""
        if count:
            self.remarks[what] = self.remarks.get(what, 0) + count


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a history that is wanted: from a time, up to a time, and the pages that were there first.

    What a page was at the window's start is its first version there.

    >>> page, time, removed = np.array([0, 0, 0, 1]), np.array([10, 20, 30, 15]), np.zeros(4, bool)
    >>> rows, times = Window(since=22).of(page, time, removed)
    >>> rows.tolist(), times.tolist()
    ([1, 2, 3], [22, 30, 22])
    >>> Window(until=20, limit=1).of(page, time, removed)[0].tolist()
    [0, 1]
    """

    since: int | None = None
    until: int | None = None
    limit: int | None = None

    def of(self, page: Ints, time: Ints, removed: Flags) -> tuple[Ints, Ints]:
        """The rows that lie in the window, out of rows sorted by page and time; and their times in it."""
        keep = np.ones(len(page), bool)
        if self.since is not None:
            early = time <= self.since
            newest = early & np.append((page[1:] != page[:-1]) | ~early[1:], True)
            keep = ~early | (newest & ~removed)
            time = np.maximum(time, self.since)
        if self.until is not None:
            keep &= time <= self.until
        rows = np.flatnonzero(keep)
        if self.limit is not None:
            first = rows[np.diff(page[rows], prepend=-1) != 0]
            oldest = first[np.lexsort((page[first], time[first]))][: self.limit]
            rows = rows[np.isin(page[rows], page[oldest])]
        return rows, time[rows]


def write_versions(path: Path, rows: Iterable[Row], taken: Taken, nothing: str) -> Taken:
    """Write rows that come sorted by address and time; `nothing` is the complaint when none is left to write.

    A version that is the same as the one before it is no version, and what is not there cannot be removed.
    """
    write_batches(path, _batches(_folded(rows), taken, nothing))
    return taken


def _folded(rows: Iterable[Row]) -> Iterator[Row]:
    page, before = "", None
    for url, time, body in rows:
        if url != page:
            page, before = url, None  # a page that is not born yet is like one that is gone
        if body != before:
            yield url, time, body
        before = body


def _batches(rows: Iterable[Row], taken: Taken, nothing: str) -> Iterator[pa.RecordBatch]:
    held: list[Row] = []
    size, page = 0, ""
    for row in rows:
        url, time, body = row
        if url != page:
            page = url
            taken.pages += 1
        taken.start = min(taken.start, time) if taken.rows else time
        taken.end = max(taken.end, time) if taken.rows else time
        taken.rows += 1
        taken.removals += body is None
        held.append(row)
        size += len(body or b"")
        if len(held) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)
    if not taken.rows:
        raise BadArchive(nothing)  # before the file gets its name


def _batch(rows: list[Row]) -> pa.RecordBatch:
    urls, times, bodies = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(urls, pa.string()), pa.array(times, pa.int64()), pa.array(bodies, pa.large_binary())],
        names=SCHEMA.names,
    )
