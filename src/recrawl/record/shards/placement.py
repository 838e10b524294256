"""New places of records when the archive of a repository is divided: each shard gets its part of every file.

The part of a file has a first record of its own, then the records that the shard refers to, in their old order and byte
by byte, then those that no row refers to: revisits, redirects and so on. So the new places follow from the store alone,
and the name, which has a digest of all that decides on the contents, stands for the same bytes in every attempt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Ints
from recrawl.record.packing import SUFFIX, as_frame
from recrawl.record.store.division.owners import RowOwners
from recrawl.record.warc import WarcInfo, warcinfo

PLACED_TABLES = ("versions", "requisite_versions", "screenshots")
"""Tables whose rows refer to records."""
_STAMP = re.compile(r"recrawl-(\d{14})-")


class SourceFile(NamedTuple):
    """An archive file that is divided."""

    name: str
    length: int
    """Bytes that the store knows."""


class ArchivePart(NamedTuple):
    """The part of an archive file that a shard gets."""

    name: str
    head: bytes
    """Dictionary and first record."""
    starts: Ints
    lengths: Ints
    """Where the records are in the old file, in order."""


class Placement:
    """Which records of which file go to which shard, and where they begin there."""

    def __init__(
        self,
        owners: RowOwners,
        files: Mapping[int, SourceFile],
        dictionary_of: Callable[[str], bytes],
        info: WarcInfo,
    ) -> None:
        """`dictionary_of` gives the bytes of a file before its first record."""
        self._shards = owners.shards
        self._files = files
        self._dictionary_of = dictionary_of
        self._info = info
        self._parts: dict[tuple[int, int], ArchivePart] = {}
        self.starts: dict[str, Ints] = {}
        """The new start of each row's record, by table and number."""
        self._place(owners)

    def shards_of(self, file: int) -> list[int]:
        """The shards that refer to records of a file."""
        return sorted(shard for number, shard in self._parts if number == file)

    def part(self, file: int, shard: int) -> ArchivePart:
        """The part of a shard, which may have no records of its own."""
        nothing = np.empty(0, np.int64)
        return self._parts.get((file, shard)) or self._described(file, shard, nothing, nothing)

    def token(self, file: int) -> str:
        """Stands for the parts of a file in all shards."""
        parts = [self._parts[file, shard].name for shard in self.shards_of(file)]
        return _digest(repr((self._files[file], self._shards, self._info, parts)))

    def _place(self, owners: RowOwners) -> None:
        rows = _PlacedRows.of(owners)
        order = np.lexsort((rows.length, rows.start, rows.owner, rows.file))
        file, owner, start, length = rows.file[order], rows.owner[order], rows.start[order], rows.length[order]
        another = _changes(file, owner, start, length)  # several rows may have one record
        file, owner, start, length = file[another], owner[another], start[another], length[another]
        begins = np.flatnonzero(_changes(file, owner)).tolist()
        fresh = np.empty(len(file), np.int64)
        for begin, end in zip(begins, [*begins[1:], len(file)], strict=False):
            key = int(file[begin]), int(owner[begin])
            part = self._parts[key] = self._described(*key, start[begin:end], length[begin:end])
            fresh[begin:end] = len(part.head) + np.cumsum(part.lengths) - part.lengths
        placed = np.empty(len(order), np.int64)
        placed[order] = fresh[np.cumsum(another) - 1]
        done = 0
        for table, count in rows.counts.items():
            numbers = rows.number[done : done + count]
            self.starts[table] = np.zeros(int(numbers[-1]) + 1 if count else 0, np.int64)
            self.starts[table][numbers] = placed[done : done + count]
            done += count

    def _described(self, file: int, shard: int, starts: Ints, lengths: Ints) -> ArchivePart:
        source = self._files[file]
        stamp = found[1] if (found := _STAMP.match(source.name)) else "19700101000000"
        told = repr((source, self._shards, shard, self._info, _digest(starts.tobytes() + lengths.tobytes())))
        packed = source.name.endswith(SUFFIX)
        name = f"recrawl-{stamp}-{_digest(told)[:12]}-{file:05d}{SUFFIX if packed else '.warc.gz'}"
        at = datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        head = warcinfo(name, at, self._info)
        return ArchivePart(name, self._dictionary_of(source.name) + as_frame(head) if packed else head, starts, lengths)


@dataclass(slots=True)
class _PlacedRows:
    """The rows of all tables that refer to records, as columns: 30 bytes per row."""

    number: Ints
    owner: NDArray[np.int16]
    file: NDArray[np.int32]
    start: Ints
    length: Ints
    counts: dict[str, int]
    """Rows of each table, one table after the other."""

    @classmethod
    def of(cls, owners: RowOwners) -> _PlacedRows:
        """Read all of them, block by block."""
        columns: list[list[Any]] = [[np.empty(0, kind)] for kind in ("i8", "i2", "i4", "i8", "i8")]
        counts = dict.fromkeys(PLACED_TABLES, 0)
        for table in PLACED_TABLES:
            owner = getattr(owners, table).owner
            for number, file, start, length in owners.columns(table, "warc", "start", "length"):
                block = (number, owner[number], file.astype(np.int32), start, length)
                for column, part in zip(columns, block, strict=True):
                    column.append(part)
                counts[table] += len(number)
        number, owned, files, starts, lengths = (np.concatenate(column) for column in columns)
        return cls(number, owned, files, starts, lengths, counts)


def _changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows differ from the one before them."""
    found = np.zeros(len(columns[0]), np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def _digest(told: str | bytes) -> str:
    data = told.encode("utf-8", "surrogatepass") if isinstance(told, str) else told
    return hashlib.blake2b(data, digest_size=16).hexdigest()
