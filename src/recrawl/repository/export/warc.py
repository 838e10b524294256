"""One WARC file of the archive's records: all of them, or those since a time. Gzip is copied as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from recrawl.record.captures import Capture
from recrawl.record.packing import SUFFIX, unpack
from recrawl.record.storage import Storage
from recrawl.record.warc import gzip_member


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
            block = files[capture.file].read(capture.end - capture.start)
            if capture.file.endswith(SUFFIX):
                block = gzip_member(unpack(storage.archive.folder / capture.file, block))
            write(block)
            yield capture._replace(end=capture.start + len(block)), written - capture.start
            written += len(block)


def write(storage: Storage, captures: Iterable[Capture], file: Path) -> int:
    """Write a WARC file; returns the number of its records that replay tools show."""
    with file.open("wb") as out:
        return sum(capture.replayed for capture, _ in copy(storage, captures, out.write))
