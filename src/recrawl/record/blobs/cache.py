"""Copies of archive files and of single records in the folder, limited in size: the longest unused go first."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from recrawl.durable_files import replace_file
from recrawl.errors import DiskFull, StorageFailure
from recrawl.record.blobs.protocol import Blobs

ARCHIVE = "archive"
"""The folder of archive files, in a repository and in its object store."""
_KEPT = 0.9
"""Share of the limit that is left after the cache was full."""


class BlobCache:
    """The folder `archive/`: files that wait to be put, copies of files, and in `records/` copies of single records."""

    def __init__(self, blobs: Blobs, folder: Path, limit: int, stored: Callable[[], set[str]]) -> None:
        """`stored` names the files that the object store has; no other file is ever removed."""
        self.blobs = blobs
        self._folder = folder
        self._records = folder / "records"
        self._limit = limit
        self._stored = stored
        self._added = limit
        """Bytes since the last look at the size of all copies."""

    def file(self, name: str) -> Path:
        """A whole file; `FileNotFoundError` if it is nowhere."""
        path = self._folder / name
        if not _touch(path):
            self.blobs.fetch(f"{ARCHIVE}/{name}", path)
            self.count(path)
        return path

    def record(self, name: str, start: int, length: int) -> tuple[Path, int]:
        """A file that holds a record, and where the record begins in it; `FileNotFoundError` if it is nowhere."""
        path = self._folder / name
        if _touch(path):
            return path, start
        path = self._records / f"{name}.{start}"
        if not _touch(path):
            data = self._get(name, start, length)
            try:
                self._keep(path, data)
            except OSError as error:
                kind = DiskFull if error.errno == errno.ENOSPC else StorageFailure
                raise kind(f"cannot write {path}: {error.strerror}") from error
        return path, 0

    def read(self, name: str, start: int, length: int) -> bytes:
        """The bytes of a record; they are kept where the folder can be written."""
        for path, place in ((self._folder / name, start), (self._records / f"{name}.{start}", 0)):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                _touch(path)
                file.seek(place)
                return file.read(length)
        data = self._get(name, start, length)
        with contextlib.suppress(OSError):
            self._keep(self._records / f"{name}.{start}", data)
        return data

    def count(self, path: Path, *, needed: bool = True) -> None:
        """Count a new copy, which is not removed if it is needed now; look at all copies only after many bytes."""
        with contextlib.suppress(FileNotFoundError):  # removed for another one that was counted before
            self._added += path.stat().st_size
        if self._added > (1 - _KEPT) * self._limit:
            self.trim(keep=path if needed else None)

    def trim(self, keep: Path | None = None) -> None:
        """Remove the longest unused copies above the limit."""
        stored = self._stored()
        self._added, total, copies = 0, 0, []
        for folder in (self._folder, self._records):
            for path in folder.glob("*recrawl-*"):
                with contextlib.suppress(FileNotFoundError):  # another process trims, too
                    found = path.stat()
                    total += found.st_size
                    # A draft that a crash has left is among the oldest.
                    copy = folder == self._records or path.name in stored or ".part" in path.suffix
                    if copy and path != keep:
                        copies.append((found.st_mtime, found.st_size, path))
        if total <= self._limit:
            return
        for _, size, path in sorted(copies):
            path.unlink(missing_ok=True)
            total -= size
            if total <= _KEPT * self._limit:
                return

    def _get(self, name: str, start: int, length: int) -> bytes:
        return self.blobs.get_range(f"{ARCHIVE}/{name}", start, length)

    def _keep(self, path: Path, data: bytes) -> None:
        self._records.mkdir(exist_ok=True)
        replace_file(path, data)
        self.count(path)


def _touch(path: Path) -> bool:
    """Mark a file as used; False if there is none."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # a folder that cannot be written
        return path.exists()
    return True
