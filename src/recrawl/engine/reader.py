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

import numpy as np

from recrawl.compare import digest, divergence, significance, text
from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.discover.links import LinkReader
from recrawl.discover.urls import key
from recrawl.engine.tasks import ReaderConfig, Reading, Task
from recrawl.engine.texts import HTML, header, plain, read_text, sniff
from recrawl.errors import Unreadable
from recrawl.model import Failure
from recrawl.record import warc

_REMEMBER = 100_000


class Reader:
    """Turns tasks into readings."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._links = LinkReader(config.rules)
        self._keys: dict[str, int] = {}

    def read(self, task: Task) -> Reading:
        """Read a page; a page that must not be parsed gives a reading with a failure."""
        try:
            reading = self.understand(task)
        except Unreadable as error:
            return Reading(task.ticket, failure=Failure.TOO_DEEP.value, detail=str(error))
        if task.digest is not None:
            reading = self._compare(task, reading)
        record = warc.response(
            task.url, task.at, task.ip, task.status, task.headers, task.body, task.payload, task.request
        )
        return reading._replace(record=record, text=reading.text if self._config.want_text else "")

    def understand(self, task: Task) -> Reading:
        """Text and links of a page; raises `Unreadable` when it must not be parsed."""
        content_type = header(task.headers, "content-type")
        mime = content_type.partition(";")[0].strip().lower() or sniff(task.body)
        noise = self._config.noises[task.noise]
        if not mime.startswith(HTML):
            words, encoding = plain(task.body, content_type, mime, noise)
            of = digest.of_text(words) if encoding else digest.of_payload(task.body)[:16]
            return Reading(task.ticket, mime=mime, encoding=encoding, text=words, digest=of)
        decoded = decode(task.body, content_type)
        tree = parse(decoded.text)
        links = self._links.read(tree, task.url)
        title = text.title(tree)
        words = text.visible(tree, noise)
        return Reading(
            task.ticket,
            mime=mime,
            encoding=decoded.encoding,
            title=title,
            text=words,
            digest=digest.of_text(words),
            urls="\n".join(links.urls),
            keys=self._keys_of(links.urls),
            follow=links.follow,
            searchable=links.index,
        )

    def _keys_of(self, urls: list[str]) -> bytes:
        """Keys of addresses; menus repeat, so most are remembered."""
        found = list(map(self._keys.get, urls))
        if None in found:
            if len(self._keys) > _REMEMBER:
                self._keys.clear()
            for place, known in enumerate(found):
                if known is None:
                    found[place] = self._keys[urls[place]] = key(urls[place])
        return np.array(found, np.int64).tobytes()

    def _compare(self, task: Task, reading: Reading) -> Reading:
        if task.same_noise and reading.digest == task.digest:
            return reading._replace(changed=False)
        if task.before is None:
            return reading
        old = self._text_before(task)
        if digest.of_text(old) == reading.digest:
            return reading._replace(changed=False)
        return reading._replace(
            divergence=divergence.divergence(old, reading.text),
            significant=significance.significant(old, reading.text),
        )

    def _text_before(self, task: Task) -> str:
        assert task.before is not None
        path, start, length = task.before
        with Path(path).open("rb") as file:
            file.seek(start)
            _, headers, body = warc.read_body(file.read(length))
        return read_text(body, headers, self._config.noises[task.noise])


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
