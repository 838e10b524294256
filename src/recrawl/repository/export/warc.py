"""One WARC file of the archive's records, copied as they are: all of them, or those since a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from recrawl.record.captures import Capture
from recrawl.record.storage import Storage


def copy(
    storage: Storage, captures: Iterable[Capture], write: Callable[[bytes], object]
) -> Iterator[tuple[Capture, int]]:
    """Copy records; yields each with the distance by which its place in the copy differs from that in its file."""
    with ExitStack() as opened:
        files: dict[str, IO[bytes]] = {}
        written = 0
        for capture in captures:
            if capture.file not in files:
                files[capture.file] = opened.enter_context(storage.archive.path(capture.file).open("rb"))
            files[capture.file].seek(capture.start)
            write(files[capture.file].read(capture.end - capture.start))
            yield capture, written - capture.start
            written += capture.end - capture.start


def write(storage: Storage, captures: Iterable[Capture], file: Path) -> int:
    """Write a WARC file; returns the number of its records that replay tools show."""
    with file.open("wb") as out:
        return sum(capture.replayed for capture, _ in copy(storage, captures, out.write))
