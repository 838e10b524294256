"""Versions on their way into an archive, shared by the importers of git and WARC histories.

An importer first lists all versions without bodies, as columns (page, time), sorts them, selects the window, and only
then reads the bodies, one at a time, in the order of the archive. So memory holds a few numbers per version and a few
megabytes of bodies, however large the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.errors import BadArchive
from recrawl.extras import pa
from recrawl.lab.formats.archive import COLUMNS, write_batches

Progress = Callable[[str, int, int | None], None]
"""Called with what is counted, the number done, and the total if known."""

Row = tuple[str, int, bytes | None]
"""URL, seconds since 1970, body; the body is None where the page was removed."""

MAX_BYTES = 16 << 20
"""Default limit: larger pages are skipped."""

Column = TypeVar("Column", Ints, Floats)
_MAX_REASONS = 50
_BATCH_ROWS = 4096
_BATCH_BYTES = 16 << 20


@dataclass(slots=True)
class RecordCounts:
    """What became of the WARC records of one type."""

    read: int = 0
    taken: int = 0
    """Records that tell what a page was at a time."""
    left_out: dict[str, int] = field(default_factory=dict)
    """By reason."""

    def leave_out(self, why: str) -> None:
        """Count a record that is left out; after many reasons, together with others."""
        known = why in self.left_out or len(self.left_out) < _MAX_REASONS
        why = why if known else "other reasons"
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl import --json` prints it."""
        return {"read": self.read, "taken": self.taken, "left_out": self.left_out}


@dataclass(slots=True)
class Taken:
    """Counts of what an import wrote and what it skipped."""

    pages: int = 0
    rows: int = 0
    """Versions and removals."""
    removals: int = 0
    start: int = 0
    end: int = 0
    remarks: dict[str, int] = field(default_factory=dict)
    """Counts of what was skipped or corrected, by description."""

    records: dict[str, RecordCounts] = field(default_factory=dict, compare=False)
    """WARC records by type; empty for other formats."""

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The records, as `recrawl import --json` prints them."""
        return {kind: counts.as_dict() for kind, counts in sorted(self.records.items())}

    def remark(self, what: str, count: int = 1) -> None:
        """Count something to report to the user."""
        if count:
            self.remarks[what] = self.remarks.get(what, 0) + count


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a history: from a time, up to a time, and at most `limit` pages, the oldest first.

    A page's version at the window's start becomes its first version there.

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

    def of(self, page: Ints, time: Column, removed: Flags) -> tuple[Ints, Column]:
        """Return the rows inside the window, given rows sorted by page and time, and their times in it."""
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
    """Write rows sorted by URL and time; if there are none, raise `BadArchive` with the message `nothing`.

    A version equal to the one before is skipped, and so is the removal of a page that does not exist.
    """
    write_batches(path, _batches(_folded(rows), taken, nothing))
    return taken


def _folded(rows: Iterable[Row]) -> Iterator[Row]:
    page, before = "", None
    for url, time, body in rows:
        if url != page:
            page, before = url, None  # a page not yet born is equal to a removed one
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
        raise BadArchive(nothing)  # before the file appears


def _batch(rows: list[Row]) -> pa.RecordBatch:
    urls, times, bodies = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(urls, pa.string()), pa.array(times, pa.int64()), pa.array(bodies, pa.large_binary())],
        names=COLUMNS,
    )
