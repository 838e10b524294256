"""The archive of a repository divided among shards: the records of each are put into its prefix of the object store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from recrawl.errors import StorageFailure
from recrawl.record.archive_check import members
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.shards.placement import ArchivePart, Placement, SourceFile

_SCREENSHOT = "urn:fullPage:"


class StoredPart(NamedTuple):
    """A part that the object store has."""

    name: str
    length: int


class ArchiveDivision:
    """Writes the parts of one file after the other; `scratch` has room for the largest part."""

    def __init__(
        self,
        placement: Placement,
        blobs_of: Callable[[int], Blobs],
        shard_of: Callable[[str], int],
        scratch: Path,
    ) -> None:
        self._placement = placement
        self._blobs_of = blobs_of
        self._shard_of = shard_of
        self._scratch = scratch

    def divide(self, file: int, source: SourceFile, path: Path) -> dict[int, StoredPart]:
        """Put the parts of a file; returns them by shard."""
        if not path.exists() or path.stat().st_size < source.length:
            raise StorageFailure(f"{path} is missing or shorter than the store says: run 'recrawl check'")
        others = self._others(file, source, path)
        shards = sorted({*self._placement.shards_of(file), *others})
        with path.open("rb") as records:
            return {
                shard: self._put(self._placement.part(file, shard), others.get(shard, []), records, shard)
                for shard in shards
            }

    def _others(self, file: int, source: SourceFile, path: Path) -> dict[int, list[tuple[int, int]]]:
        """Places of the records that no row refers to, by shard; damaged bytes among them are left out."""
        found: dict[int, list[tuple[int, int]]] = {}
        for member in members(path, source.length, self._known(file)):
            if member.url and not member.problem:
                shard = self._shard_of(member.url.removeprefix(_SCREENSHOT))
                found.setdefault(shard, []).append((member.start, member.end - member.start))
        return found

    def _known(self, file: int) -> list[tuple[int, int]]:
        """Places that rows refer to, in order."""
        places: set[tuple[int, int]] = set()
        for shard in self._placement.shards_of(file):
            part = self._placement.part(file, shard)
            places.update(zip(part.starts.tolist(), part.lengths.tolist(), strict=True))
        return sorted(it for it in places if it[1])

    def _put(self, part: ArchivePart, others: list[tuple[int, int]], records: BinaryIO, shard: int) -> StoredPart:
        places = [*zip(part.starts.tolist(), part.lengths.tolist(), strict=True), *others]
        length = len(part.head) + sum(size for _, size in places)
        blobs, name = self._blobs_of(shard), f"{ARCHIVE}/{part.name}"
        if blobs.size(name) != length:
            draft = self._scratch / part.name
            with draft.open("wb") as out:
                out.write(part.head)
                for start, size in places:
                    records.seek(start)
                    out.write(records.read(size))
            try:
                blobs.put(name, draft)
            finally:
                draft.unlink()
        if blobs.size(name) != length:
            raise StorageFailure(
                f"{blobs.name}/{name} has not {length:,} bytes after it was put: run the command again"
            )
        return StoredPart(part.name, length)
