"""Chunks of pages for retrieval corpora: what to put, update and delete since the last time.

A chunk's id follows from its site and its text. So it is the same in every export; a chunk that did not change is not
told again, one whose title, headings or dates changed is updated without a new embedding, and what several pages of a
site say is told once. What was told is kept in a file (`record.chunk_state`), with how far the export has come in the
order of recording, not of time: a version that was downloaded before an export and recorded after it comes in the next.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from recrawl.characters import storable
from recrawl.compare.tree.chunks import WORDS, chunks_of
from recrawl.discover.urls import key, origin
from recrawl.errors import DamagedRecord, Unreadable, UsageError
from recrawl.model import Outcome, State
from recrawl.record import listings
from recrawl.record.chunk_state import ChunkState, KnownChunk, Told
from recrawl.record.rows import Row, VersionRow
from recrawl.record.shards.folders import reading_folder
from recrawl.record.store.location import shards_of
from recrawl.repository.reader import Reader
from recrawl.repository.results.content import ContentReader
from recrawl.times import iso

_FIELDS = (
    "op", "id", "url", "urls", "title", "headings", "position", "kind", "language", "published", "modified", "text",
    "time",
)  # fmt: skip
_READER = 1
"""Increased when recrawl reads pages in another way, so that the pages of a corpus are read again."""

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
    def of_rows(cls, rows: Iterable[Iterable[int]]) -> Self:
        """From what `rows` gave."""
        return cls(tuple(ExportPlace(*row) for row in rows))

    @property
    def rows(self) -> list[list[int]]:
        """As a state keeps it."""
        return [list(place) for place in self.places]

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
class ChunkOptions:
    """How pages are cut."""

    words: int = WORDS
    """Of a chunk, at most."""
    overlap: int = 0
    """Words of the chunk before that are repeated."""

    def check(self) -> Self:
        """Raise `UsageError` for sizes that make no chunks."""
        if self.words < 1 or not 0 <= self.overlap <= self.words // 2:
            raise UsageError("chunks need at least one word, and an overlap of at most half of their words")
        return self


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """A chunk to put into a corpus, to update in it (all but its text), or to delete from it."""

    op: str
    """put, update or delete."""
    id: str
    url: str
    """The first page that has it."""
    urls: tuple[str, ...] = ()
    """Other pages of the site that have it."""
    title: str = ""
    headings: tuple[str, ...] = ()
    """Those under which it stands, from the outermost."""
    position: int = 0
    """Its number on the page, from 0."""
    kind: str = "text"
    """What most of it is: text, list, code or table."""
    language: str = ""
    published: str = ""
    modified: str = ""
    text: str = ""
    time: str | None = None
    """When its version was downloaded."""

    @classmethod
    def of(cls, told: Told) -> Self:
        """From what a state says."""
        facts = told.facts or {}
        facts = {**facts, "headings": tuple(facts.get("headings", ()))}
        text = told.text if told.op == "put" else ""
        return cls(told.op, told.id, told.url, told.urls, text=text, time=told.time or None, **facts)

    def as_dict(self) -> Row:
        """As `recrawl chunks` prints it."""
        names = ("op", "id", "url") if self.op == "delete" else _FIELDS
        found = {name: getattr(self, name) for name in names if not (self.op == "update" and name == "text")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


class ChunkExport:
    """What changed for a corpus since the last export with a state. Use it in a `with` statement:

    with repository.chunk_export("corpus.state") as export:
        for change in export: ...   # store it
        export.commit()             # all of it is stored

    Without `commit` the next export tells the same again.
    """

    def __init__(self, repository: Reader, state: Path | None, options: ChunkOptions) -> None:
        self._repository = repository
        self._options = options.check()
        self._state = ChunkState(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._state.__exit__()

    def __iter__(self) -> Iterator[ChunkChange]:
        """The changes: of each chunk one, deletions first."""
        repository, state = self._repository, self._state
        signature = self._signature()
        end = Cursor.now(repository)
        known = Cursor.of_rows(state.read("place") or ()) if state.read("signature") == signature else Cursor()
        missing = set(state.urls())
        for shard, place in _with_places(repository, known):
            missing = {url for url in missing if shard.storage.store.pages.number(key(url)) is None}
            pages = _Pages(shard, self._options)
            for page, url in _pages_after(shard, place):
                state.replace(url, *pages.newest(page, url))
        for url in missing:  # removed with all that was stored of them
            state.replace(url, ())
        state.write("place", end.rows)
        state.write("signature", signature)
        yield from map(ChunkChange.of, state.untold())

    def commit(self) -> None:
        """All changes are stored by the receiver."""
        self._state.commit()

    def suppose(self, at: Cursor) -> Self:
        """The receiver has what was stored at a place: all pages are read as they were then."""
        for shard, place in _with_places(self._repository, at):
            pages, gone = _Pages(shard, self._options), _gone_after(shard, place)
            for page, url in _pages_after(shard, ExportPlace()):
                self._state.suppose(url, pages.before(page, url, place, gone[url]))
        self._state.write("place", at.rows)
        self._state.write("signature", self._signature())
        return self

    def changes_of(self, versions: Iterable[tuple[str, VersionRow | None]]) -> Iterator[ChunkChange]:
        """What changes when pages have these versions; None is a page that is not there."""
        pages = _Pages(self._repository, self._options)
        for url, version in versions:
            self._state.replace(url, *pages.of(url, version))
        yield from map(ChunkChange.of, self._state.untold())

    def take_over(self, lines: Iterable[Row]) -> None:
        """The receiver has what these lines of an earlier version say."""
        held: dict[str, dict[str, Row]] = {}
        for line in lines:
            if line.get("op") == "put":
                held.setdefault(str(line["url"]), {})[str(line["id"])] = line
            else:
                held.get(str(line.get("url")), {}).pop(str(line.get("id")), None)
        for url, chunks in held.items():
            facts = {"title": "", "headings": [], "position": 0}
            self._state.suppose(url, [KnownChunk(identity, facts, "") for identity in chunks])

    def _signature(self) -> str:
        """Of all that decides how pages are cut: size, noise filters, and how recrawl reads pages."""
        filters = sorted((site, repr(noise)) for site, noise in self._repository.options().noises.items())
        said = json.dumps([_READER, self._options.words, self._options.overlap, filters])
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()


class _Pages:
    """Cuts pages of a repository, or of a shard."""

    def __init__(self, repository: Reader, options: ChunkOptions) -> None:
        self._store = repository.storage.store
        self._content = ContentReader(repository)
        self._options = options

    def newest(self, page: int, url: str) -> tuple[list[KnownChunk], str]:
        """The chunks of a page as it is now, and the time of its version; none if it is away, or a copy of another."""
        versions = self._store.versions.of_page(page)
        state = self._store.pages.get(page).state
        there = versions and state.state not in _AWAY and not state.same_as
        return self.of(url, versions[-1] if there else None)

    def before(self, page: int, url: str, place: ExportPlace, removals: int) -> list[KnownChunk]:
        """The chunks of a page as it was at a place, after which it was removed so many times."""
        versions = [version for version in self._store.versions.of_page(page) if version.id < place.version]
        if not versions or sum(at > versions[-1].at for at in self._store.visits.removals(page)) > removals:
            return []
        return self.of(url, versions[-1])[0]

    def of(self, url: str, version: VersionRow | None) -> tuple[list[KnownChunk], str]:
        """The chunks of a version, each once, and its time; none if its body cannot be read."""
        if version is None:
            return [], ""
        try:
            content = self._content.read(url, version)
        except (DamagedRecord, Unreadable):
            return [], ""
        known = content.facts()
        about = {name: known.get(name, "") for name in ("title", "language", "published", "modified")}
        found: dict[str, KnownChunk] = {}
        for position, chunk in enumerate(chunks_of(content.blocks, self._options.words, self._options.overlap)):
            name = f"{origin(url)}\n{chunk.text}"
            identity = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()
            facts: dict[str, Any] = {**about, "headings": chunk.headings, "position": position, "kind": chunk.kind}
            found.setdefault(identity, KnownChunk(identity, facts, storable(chunk.text)))
        return list(found.values()), iso(version.at) or ""


def _with_places(repository: Reader, cursor: Cursor) -> Iterator[tuple[Reader, ExportPlace]]:
    """The shards of a cluster, each open for reading until the next one is asked for; else the repository."""
    places = cursor.of_shards(shards_of(repository.folder) or 1)
    return zip(_shards(repository), places, strict=True)


def _shards(repository: Reader) -> Iterator[Reader]:
    shards = shards_of(repository.folder)
    if not shards:
        yield repository
    for shard in range(shards):
        with Reader(reading_folder(repository.folder, shard), clock=repository.now) as own:
            yield own


def _gone_after(repository: Reader, place: ExportPlace) -> Counter[str]:
    """How often pages were removed after a place."""
    changes = listings.changes_after(repository.opened, place.visit - 1)
    return Counter(row["url"] for row in changes if row["outcome"] == Outcome.GONE)


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
