"""Chunks of pages for retrieval corpora: what to add and what to delete since the last time.

A chunk's id follows from its page and its text, so it is the same in every export, and a chunk that did not change is
neither added nor deleted. A cursor says how far an export has come in the order of recording, not of time: a version
that was downloaded before an export and recorded after it is in the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from recrawl.compare.chunks import Chunk
from recrawl.crawl.visits.stored_text import StoredText
from recrawl.discover.urls import key, origin
from recrawl.errors import DamagedRecord, Unreadable, UsageError
from recrawl.model import State
from recrawl.record import listings
from recrawl.record.rows import Row, VersionRow
from recrawl.record.shards.folders import reading_folder
from recrawl.record.store.location import shards_of
from recrawl.repository.reader import Reader
from recrawl.times import iso

_AWAY = (State.GONE, State.DROPPED)


class ExportPlace(NamedTuple):
    """How far an export has come in a repository: numbers of the next version and the next visit."""

    version: int = 0
    visit: int = 0

    @classmethod
    def now(cls, repository: Reader) -> Self:
        """After everything that is recorded now."""
        store = repository.storage.store
        return cls(store.next_id("versions"), store.next_id("visits"))

    @classmethod
    def since(cls, repository: Reader, at: float) -> Self:
        """Before the first version and visit since a time."""
        end = cls.now(repository)
        version = next(listings.version_rows(repository.opened, since=at, limit=1), None)
        visit = next(listings.visit_rows(repository.opened, since=at, limit=1), None)
        return cls(version["id"] if version else end.version, visit["id"] if visit else end.visit)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an export has come: in a cluster in each shard, since shards record side by side."""

    places: tuple[ExportPlace, ...] = ()
    """None is the beginning."""

    @classmethod
    def now(cls, repository: Reader) -> Self:
        """After everything that is recorded now."""
        return cls(tuple(map(ExportPlace.now, _shards(repository))))

    @classmethod
    def since(cls, repository: Reader, at: float) -> Self:
        """Before the first version and visit since a time."""
        return cls(tuple(ExportPlace.since(shard, at) for shard in _shards(repository)))

    @classmethod
    def read(cls, file: Path) -> Self:
        """From a file; the beginning if there is none."""
        if not file.exists():
            return cls()
        try:
            found = json.loads(file.read_text())
            rows = found if isinstance(found, list) else [found]
            return cls(tuple(ExportPlace(**{name: int(value) for name, value in row.items()}) for row in rows))
        except (ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"{file} is not a file that 'recrawl chunks --state' wrote; name another one") from error

    def write(self, file: Path) -> None:
        """To a file, which is replaced at once."""
        rows = [place._asdict() for place in self.places]
        part = file.with_name(file.name + ".part")
        part.write_text(json.dumps(rows[0] if len(rows) == 1 else rows))
        part.replace(file)

    def of_shards(self, shards: int) -> tuple[ExportPlace, ...]:
        """A place for each shard; a repository on one machine is the only one."""
        places = self.places or (ExportPlace(),) * shards
        if len(places) != shards:
            raise UsageError(
                f"the state is of {len(places)} shards (1 on a single machine), and this repository has "
                f"{shards}: start with a new state file"
            )
        return places


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """A chunk to add to a corpus, or to delete from it."""

    op: str
    """put or delete."""
    id: str
    url: str
    title: str = ""
    heading: str = ""
    text: str = ""
    time: str | None = None
    """When its version was downloaded."""

    def as_dict(self) -> Row:
        """As `recrawl chunks` prints it."""
        if self.op == "delete":
            return {"op": self.op, "id": self.id, "url": self.url}
        return {name: getattr(self, name) for name in ("op", "id", "url", "title", "heading", "text", "time")}


def chunk_changes(repository: Reader, after: Cursor, words: int) -> Iterator[ChunkChange]:
    """What changed after a cursor, shard by shard and page by page; the deletions of a page come first.

    All chunks of a page that was removed and has returned are put again: an export in between may have deleted them.
    """
    places = after.of_shards(shards_of(repository.folder) or 1)
    for shard, place in zip(_shards(repository), places, strict=True):
        yield from _changes_after(shard, place, words)


def _shards(repository: Reader) -> Iterator[Reader]:
    """The shards of a cluster, each open for reading until the next one is asked for; else the repository."""
    shards = shards_of(repository.folder)
    if not shards:
        yield repository
    for shard in range(shards):
        with Reader(reading_folder(repository.folder, shard), clock=repository.now) as own:
            yield own


def _changes_after(repository: Reader, after: ExportPlace, words: int) -> Iterator[ChunkChange]:
    store = repository.storage.store
    for page, url in _pages_after(repository, after):
        versions = store.versions.of_page(page)
        before = next((version for version in reversed(versions) if version.id < after.version), None)
        there = versions[-1] if versions and store.pages.get(page).state.state not in _AWAY else None
        returned = before is not None and any(at > before.at for at in store.visits.removals(page))
        yield from changes_between(repository, url, before, there, words, returned=returned)


def changes_between(
    repository: Reader, url: str, before: VersionRow | None, there: VersionRow | None, words: int, *, returned: bool
) -> Iterator[ChunkChange]:
    """What to delete and to add when one version of a page replaces another; None is a page that is not there.

    A page that has `returned` after a removal is put whole.
    """
    old = {identity for identity, _ in _chunks(repository, url, before, words)} if before else set()
    new = list(_chunks(repository, url, there, words)) if there else []
    kept = {identity for identity, _ in new}
    yield from (ChunkChange("delete", identity, url) for identity in sorted(old - kept))
    for identity, chunk in new:
        if there and (returned or identity not in old):
            yield ChunkChange("put", identity, url, there.title, chunk.heading, chunk.text, iso(there.at))


def _pages_after(repository: Reader, after: ExportPlace) -> Iterator[tuple[int, str]]:
    """Number and URL of each page with a version or a removal after a place, once."""
    seen: set[int] = set()
    last = after.version - 1
    while block := repository.storage.store.listings.versions_after(last, float("-inf"), "", 1000):
        for row in block:
            if row["page"] not in seen:
                seen.add(row["page"])
                yield row["page"], row["url"]
        last = block[-1]["id"]
    for row in listings.changes_after(repository.opened, after.visit - 1):
        page = repository.storage.store.pages.number(key(row["url"]))
        if page is not None and page not in seen:
            seen.add(page)
            yield page, row["url"]


def _chunks(repository: Reader, url: str, version: VersionRow, words: int) -> Iterator[tuple[str, Chunk]]:
    """The chunks of a version with their ids; none if its body cannot be read."""
    noise = repository.noise_filter(origin(url))
    try:
        _, headers, body = repository.storage.body(version)
        chunks = StoredText(body, headers, noise).chunks(noise, words)
    except (DamagedRecord, Unreadable):
        return
    seen: dict[str, int] = {}
    for chunk in chunks:
        seen[chunk.text] = seen.get(chunk.text, 0) + 1
        name = f"{url}\n{seen[chunk.text]}\n{chunk.text}"
        yield hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest(), chunk
