"""A file of JSON lines that grows: chunks to add to a retrieval corpus and to delete from it, as `recrawl chunks`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.repository.outgoing import NotSent
from recrawl.repository.sinks.protocol import Event

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader

_WORDS = 300


class ChunkLines:
    """Appends chunks to a file."""

    max_events = 100

    def __init__(self, file: Path, repository: Reader) -> None:
        self._file = file
        self._repository = repository

    def deliver(self, events: Sequence[Event]) -> None:
        """Append the lines of a batch; they are on the disk before this returns."""
        from recrawl.repository.export.chunks import changes_between  # lazy: loads the parser

        lines = [
            json.dumps(change.as_dict(), ensure_ascii=False) + "\n"
            for event in events
            for change in changes_between(
                self._repository, event.url, event.before, event.version, _WORDS, returned=event.returned
            )
        ]
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as out:
                out.truncate(_whole_lines(self._file))  # a crash may have left half a line
                out.write("".join(lines).encode("utf-8", "replace"))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise NotSent(f"cannot write {self._file}: {error.strerror}") from error

    def close(self) -> None:
        """The file is closed after each batch."""


def _whole_lines(file: Path) -> int:
    """The bytes up to the end of the last whole line."""
    with file.open("rb") as content:
        end = content.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65536)
            content.seek(start)
            found = content.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
