"""What a reader process does with a page: decode, parse, take text and links, compare, pack for the archive.

It is a process of its own because parsing is most of the work, and because a page can be made to hold a parser for
minutes or to crash it: then only this process dies, and the page is recorded as a failure.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from recrawl.compare import digest
from recrawl.compare.divergence import divergence
from recrawl.crawl.visits.messages import ReaderConfig, Reading, Task
from recrawl.crawl.visits.page_reader import PageReader
from recrawl.crawl.visits.stored_text import read_text
from recrawl.errors import Unreadable
from recrawl.model import Failure
from recrawl.record import warc


class Reader:
    """Turns tasks into readings."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._pages = PageReader(config)

    def read(self, task: Task) -> Reading:
        """Read a page; a page that must not be parsed gives a reading with a failure."""
        try:
            reading = self._pages.understand(task)
        except Unreadable as error:
            return Reading(task.ticket, failure=Failure.TOO_DEEP.value, detail=str(error))
        if task.digest is not None:
            reading = self._compare(task, reading)
        record = warc.response(
            task.url, task.at, task.ip, task.status, task.headers, task.body, task.payload, task.request
        )
        return reading._replace(record=record, text=reading.text if self._config.want_text else "")

    def _compare(self, task: Task, reading: Reading) -> Reading:
        if task.same_noise and reading.digest == task.digest:
            return reading._replace(changed=False)
        if task.before is None:
            return reading
        old = self._text_before(task)
        if digest.of_text(old) == reading.digest:
            return reading._replace(changed=False)
        return reading._replace(divergence=divergence(old, reading.text), significant=_significant(old, reading.text))

    def _text_before(self, task: Task) -> str:
        assert task.before is not None
        path, start, length = task.before
        with Path(path).open("rb") as file:
            file.seek(start)
            _, headers, body = warc.read_body(file.read(length))
        return read_text(body, headers, self._config.noises[task.noise])


def _significant(old: str, new: str) -> bool:
    """The chi-squared test; what it needs is loaded when the first change is seen, since a first crawl sees none."""
    from recrawl.compare.significance import significant  # lazy: loads scipy

    return bool(significant(old, new))


def main() -> None:
    """Serve tasks from the connection that the parent passed on, until it closes."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # to stop is the parent's to decide
    gc.set_threshold(50_000, 20, 20)  # pages leave no cycles behind, only many objects
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError):
        reader = Reader(connection.recv())
        while True:  # until the crawler is gone, and its end of the pipe with it
            tasks: list[Task] = connection.recv()
            connection.send([reader.read(task) for task in tasks])


if __name__ == "__main__":
    main()
