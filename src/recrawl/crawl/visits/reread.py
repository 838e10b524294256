"""Read stored pages again in reader processes: one that has become unreadable harms neither the command nor the others.

A stored page may be one that an earlier version could read, or that was recorded without being read: so it is parsed
under the same limits of time and memory as a page that was just downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.messages import Reading, Task
from recrawl.crawl.visits.reader_pool import BATCH, BATCH_BYTES, Readers, readers_of
from recrawl.errors import DamagedRecord
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage


class VersionToRead(NamedTuple):
    """A version to be read again."""

    version: VersionRow
    url: str
    noise: int
    """The noise filter, as an index into `noise_table`."""


def reread(
    repository: Storage, options: CrawlOptions, versions: Iterable[VersionToRead], *, text: bool
) -> Iterator[Reading]:
    """Links, and the `text` if it is wanted, of stored versions; the ticket is the page. Damaged records give none."""
    readers = readers_of(replace(options, index=text))
    try:
        for version, url, noise in versions:
            try:
                status, headers, body = repository.body(version)
            except DamagedRecord:
                continue
            task = Task(
                *(version.page, url, version.at, "", status, headers, b"", body, version.payload, noise),
                *(None, None, True),
                stored=True,
            )
            readers.submit(task)
            while readers.pending >= 4 * BATCH or readers.pending_bytes >= 4 * BATCH_BYTES:
                yield from _turn(readers, options)
        while readers.pending:
            yield from _turn(readers, options)
    finally:
        readers.close()


def read_one(readers: Readers, task: Task, options: CrawlOptions) -> Reading:
    """Read a page and wait for it; nothing else is with the readers."""
    readers.submit(task)
    while True:
        for reading in _turn(readers, options):
            return reading


def _turn(readers: Readers, options: CrawlOptions) -> list[Reading]:
    """Send what waits, and wait for an answer or a deadline."""
    from multiprocessing.connection import wait  # lazy: most cycles read no stored page again

    readers.pump(options.timer())
    wait(readers.connections, readers.deadline(options.timer()))
    return readers.collect(options.timer())
