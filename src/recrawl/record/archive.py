"""Bodies in rolling `*.warc.gz` or `*.warc.zst` files: append, sync to disk, read, repair after a crash.

The store records the length of each file at its last commit. Bytes beyond that length were written by a process that
died before its commit: `mend` truncates them, so a visit is in both or in neither.

With an object store (see `record.blobs`) a file that is sealed is never written again, and may be there alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from recrawl.errors import DiskFull, RepositoryError, StorageFailure
from recrawl.record import warc
from recrawl.record.blobs.cache import ARCHIVE, BlobCache
from recrawl.record.packing import SUFFIX, ZstdPacker, dictionary, read_records

_ERASED = re.compile(r"-e\d+-\d+\.warc\.")
"""In the names of files that were written anew."""
GZIP = "warc.gz"
"""The format of archive files by default."""
_to_disk = getattr(os, "fdatasync", os.fsync)  # cheaper, but not on every system


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a record."""

    file: int
    start: int
    length: int

    @property
    def extent(self) -> tuple[int, int]:
        """Start and length."""
        return self.start, self.length


class WarcArchive:
    """The folder of WARC files; file numbers are those of the store's table `warcs`."""

    def __init__(
        self,
        folder: Path,
        names: dict[int, str],
        *,
        roll_bytes: int,
        info: warc.WarcInfo,
        cache: BlobCache | None = None,
        archive_format: str = GZIP,
    ) -> None:
        self.folder = folder
        self.names = names
        self.stored: set[int] = set()
        """Files that the object store has."""
        self._cache = cache
        self._oldest = 0
        """The object store has all files before this one."""
        self._sealed = False
        self._roll_bytes = roll_bytes
        self._info = info
        self._suffix = f".{archive_format}"
        self._packer = ZstdPacker() if self._suffix == SUFFIX else None
        self._fd = -1
        self._file = -1
        self._length = 0
        self._pending: list[bytes] = []
        self._dirty: dict[int, int] = {}

    def mend(self, lengths: dict[int, int]) -> None:
        """Truncate uncommitted bytes; continue the newest file."""
        for path in self.folder.glob("recrawl-*.warc.*"):
            if path.name not in self.names.values() and _number(path.name) > max(self.names, default=-1):
                path.unlink()  # created, but never committed
        self._remove_drafts(lengths)
        for file, name in self.names.items():
            if file not in self.stored and not self._found_stored(name, lengths[file]):
                self._mend_file(self.folder / name, lengths[file])
            elif self._cache is not None:
                self.stored.add(file)
        if self.names:
            newest = max(self.names)
            self._file, self._length = newest, lengths[newest]
            self._sealed = self._cache is not None  # it may have been put before a crash
            if self._packer is not None and self.names[newest].endswith(SUFFIX):
                self._packer.begin(dictionary(self.folder / self.names[newest])[0])

    def _remove_drafts(self, lengths: dict[int, int]) -> None:
        """Remove files that were to replace others (`archive_rewriting`) and were not committed."""
        for path in self.folder.glob("recrawl-*.warc.*"):
            known = self.names.get(_number(path.name), path.name)
            sound = self.folder / known
            if path.name == known or not _ERASED.search(path.name) or not sound.exists():
                continue
            if sound.stat().st_size >= lengths[_number(path.name)]:
                path.unlink()

    def _found_stored(self, name: str, length: int) -> bool:
        """Whether a file that is not here was put before a crash, or by another machine, but not recorded."""
        if self._cache is None or (self.folder / name).exists():
            return False
        return self._cache.blobs.size(f"{ARCHIVE}/{name}") == length

    def _mend_file(self, path: Path, length: int) -> None:
        size = path.stat().st_size if path.exists() else -1
        if size < length:
            raise RepositoryError(
                f"{path} is shorter than the database says ({max(0, size)} bytes instead of {length}): "
                "restore it from a copy, or give up its lost records with 'recrawl check --repair'"
            )
        if size > length:
            os.truncate(path, length)

    def append(self, blob: bytes, at: float) -> Place:
        """Append a record; it is valid only after `sync` and the store's commit."""
        ended = self._sealed or self._length >= self._roll_bytes
        if self._file < 0 or ended or not self.names[self._file].endswith(self._suffix):
            self._roll(at)
        if self._packer is not None:
            if self._packer.due:
                self._roll(at)
            blob = self._packer.pack(blob)
        self._pending.append(blob)
        place = Place(self._file, self._length, len(blob))
        self._length += len(blob)
        return place

    def sync(self) -> list[tuple[int, str, int]]:
        """Sync appended records to disk; returns number, name and length of the files written, for the store.

        After a failure the archive must be opened again: how much of the records is on the disk is not known.
        """
        if self._pending:
            self._write()
        touched = [(file, self.names[file], length) for file, length in self._dirty.items()]
        self._dirty = {}
        return touched

    def seal(self) -> None:
        """End the file that is being written; the next record begins another one. Call it after `sync`."""
        self.close()
        self._sealed = self._file >= 0

    def waiting(self) -> dict[int, str]:
        """Sealed files that wait to be put into the object store, by number."""
        end = self._file + 1 if self._sealed else self._file
        while self._oldest < end and (self._oldest in self.stored or self._oldest not in self.names):
            self._oldest += 1
        files = range(self._oldest, end)
        return {file: self.names[file] for file in files if file in self.names and file not in self.stored}

    def path(self, name: str) -> Path:
        """A whole file, from the object store if need be; one that is nowhere does not exist."""
        if self._cache is not None:
            with contextlib.suppress(FileNotFoundError):
                return self._cache.file(name)
        return self.folder / name

    def locate(self, place: Place) -> tuple[Path, int]:
        """The file in which other processes find a record, and where it begins."""
        name = self.names[place.file]
        if self._cache is not None and place.length and not name.endswith(SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                return self._cache.record(name, *place.extent)
        return self.path(name), place.start  # its records cannot be read without its dictionary

    def read(self, place: Place) -> bytes:
        """The records at a place, as `record.warc` reads them; `ValueError` if they are marked as lost."""
        if not place.length:
            raise ValueError("it is marked as lost")
        name = self.names[place.file]
        if self._cache is not None and not name.endswith(SUFFIX):
            return self._cache.read(name, *place.extent)
        return read_records(self.path(name), *place.extent)

    def close(self) -> None:
        """Close the file that is being written."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self) -> None:
        path = self.folder / self.names[self._file]
        try:
            if self._fd < 0:
                self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            view = memoryview(b"".join(self._pending))
            while view:
                view = view[os.write(self._fd, view) :]
            _to_disk(self._fd)
        except OSError as error:
            kind = DiskFull if error.errno == errno.ENOSPC else StorageFailure
            raise kind(f"cannot write {path}: {error.strerror}; what was recorded before is safe") from error
        self._pending = []
        self._dirty[self._file] = self._length

    def _roll(self, at: float) -> None:
        """Start a new file. The folder is synced too: otherwise a power failure could lose the file's name."""
        if self._pending:
            self._write()
        self.close()
        self._file += 1
        self._sealed = False
        stamp = warc.warc_date(at).translate(str.maketrans("", "", "-:TZ."))[:14]
        # In an object store the name must be free, even if a crash has left an object that no commit knows.
        mark = "" if self._cache is None else f"{secrets.token_hex(3)}-"
        name = f"recrawl-{stamp}-{mark}{self._file:05d}{self._suffix}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.folder / name, flags, 0o644)
        self.names[self._file] = name
        head = warc.warcinfo(name, at, self._info)
        if self._packer is not None:
            head = self._packer.head() + self._packer.pack(head)
        self._pending, self._length = [head], len(head)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _number(name: str) -> int:
    """
    >>> _number("recrawl-20260101000000-00012.warc.gz")
    12
    """
    digits = name.partition(".")[0].rsplit("-", 1)[-1]
    return int(digits) if digits.isdigit() else -1
