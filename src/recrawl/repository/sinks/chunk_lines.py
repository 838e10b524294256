"""A file of JSON lines that grows: chunks to put into a retrieval corpus, to update and to delete, as `recrawl chunks`.

What was told is kept beside it, in a file of the same name with `.state`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.durable_files import make_folder, sync_folder
from recrawl.errors import RepositoryBusy
from recrawl.record.rows import Row
from recrawl.repository.outgoing import NotSent
from recrawl.repository.sinks.protocol import Event

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader


class ChunkLines:
    """Appends chunks to a file."""

    max_events = 100
    newest_only = True

    def __init__(self, file: Path, repository: Reader) -> None:
        self._file = file
        self._repository = repository

    def deliver(self, events: Sequence[Event]) -> None:
        """Append the lines of a batch; they are on the disk before this returns."""
        from recrawl.repository.export.chunks import ChunkExport, ChunkOptions  # lazy: loads the parser

        try:
            make_folder(self._file.parent)
            state = self._file.with_name(f"{self._file.name}.state")
            if not self._file.exists():
                state.unlink(missing_ok=True)  # the corpus begins anew
            earlier = not state.exists() and self._file.exists()
            with ChunkExport(self._repository, state, ChunkOptions()) as export:
                if earlier:
                    export.take_over(_lines(self._file))
                changes = export.changes_of((event.url, event.version) for event in events)
                self._append("".join(json.dumps(one.as_dict(), ensure_ascii=False) + "\n" for one in changes))
                export.commit()
        except OSError as error:
            raise NotSent(f"cannot write {self._file}: {error.strerror}") from error
        except RepositoryBusy as error:
            raise NotSent(str(error)) from error

    def _append(self, lines: str) -> None:
        new = not self._file.exists()
        with self._file.open("ab") as out:
            out.truncate(_whole_lines(self._file))  # a crash may have left half a line
            out.write(lines.encode("utf-8", "replace"))
            out.flush()
            os.fsync(out.fileno())
        if new:
            sync_folder(self._file.parent)

    def close(self) -> None:
        """The file is closed after each batch."""


def _lines(file: Path) -> Iterator[Row]:
    """The lines that an earlier version wrote."""
    with file.open("rb") as content:
        for line in content:
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    yield found


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
