"""The archive files of all shards as one archive, for reading.

The number of a file is that of the shard times the number of shards, plus the shard; its name begins with the shard.
"""

from __future__ import annotations

from pathlib import Path

from recrawl.record.archive import Place, WarcArchive
from recrawl.record.blobs.cache import BlobCache
from recrawl.record.blobs.remote import open_blobs
from recrawl.record.shards.folders import cache_folder, shard_archive
from recrawl.record.store import Store
from recrawl.record.store.location import shard_name

_NEVER_ROLLED = 1 << 30


def gathered_archive(folder: Path, store: Store, shards: int) -> WarcArchive:
    """The archive of the cluster in a folder."""
    return GatheredArchive(folder, store.warcs.names(), shards)


class GatheredArchive(WarcArchive):
    """Reads records from the archives of shards; `names` has the files of all of them."""

    def __init__(self, folder: Path, names: dict[int, str], shards: int) -> None:
        super().__init__(folder / "shards", names, roll_bytes=_NEVER_ROLLED, info=())
        self._repository = folder
        self._shards = shards
        self._archives: dict[int, WarcArchive] = {}

    def path(self, name: str) -> Path:
        """A whole file, from the object store if need be."""
        shard = int(name.partition("-")[0].removeprefix("s"))
        return self._archive(shard).path(_own_name(name, shard))

    def locate(self, place: Place) -> tuple[Path, int]:
        """The file in which other processes find a record, and where it begins."""
        archive, own = self._own(place)
        return archive.locate(own)

    def read(self, place: Place) -> bytes:
        """The records at a place."""
        archive, own = self._own(place)
        return archive.read(own)

    def _own(self, place: Place) -> tuple[WarcArchive, Place]:
        """The archive of a place's shard, and the place there."""
        number, shard = divmod(place.file, self._shards)
        archive = self._archive(shard)
        archive.names[number] = _own_name(self.names[place.file], shard)
        return archive, Place(number, place.start, place.length)

    def _archive(self, shard: int) -> WarcArchive:
        if shard not in self._archives:
            target, folder = shard_archive(self._repository, shard), cache_folder(self._repository, shard)
            cache = BlobCache(open_blobs(target), folder, target.cache_bytes // self._shards, lambda: _files(folder))
            self._archives[shard] = WarcArchive(folder, {}, roll_bytes=_NEVER_ROLLED, info=(), cache=cache)
        return self._archives[shard]


def _own_name(name: str, shard: int) -> str:
    """
    >>> _own_name("s007-recrawl-20260101000000-00012.warc.gz", 7)
    'recrawl-20260101000000-00012.warc.gz'
    """
    return name.removeprefix(f"{shard_name(shard)}-")


def _files(folder: Path) -> set[str]:
    """A reader has copies alone."""
    return {path.name for path in folder.glob("recrawl-*")}
