"""The repository on disk: a folder with settings, store, archive and index.

    recrawl.toml   settings, seeds, filters (read by the command line, not here)
    recrawl.db     sites, pages, visits, versions, links, cycles
    archive/       bodies, as *.warc.gz
    index/         full text
    models/        memory of policies and clusters of similar pages (written by `crawl`)

A commit writes in this order: bodies to the archive, synced to disk; one transaction in the store; the index. A crash
in between leaves bytes that the store does not know (truncated when the next writer opens the repository) or documents
that the index lacks (indexed again by the next writer, from the visit `indexed` on). The files in models/ can be
rebuilt from store and archive: they may be missing or outdated.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from recrawl.errors import NoRepository, RepositoryError
from recrawl.record.archive import Place, WarcArchive
from recrawl.record.index import Index
from recrawl.record.lock import Lock
from recrawl.record.rows import Batch, VersionRow
from recrawl.record.store import Store, open_store
from recrawl.record.warc import Headers, read_body

SETTINGS = "recrawl.toml"


def find(start: Path) -> Path:
    """The repository in this folder or in the nearest folder above it."""
    for folder in (start, *start.resolve().parents):
        if (folder / SETTINGS).is_file() and (folder / "recrawl.db").is_file():
            return folder
    raise NoRepository(f"there is no recrawl repository in {start.resolve()} or above it: make one with 'recrawl init'")


def create(folder: Path, settings: str) -> None:
    """Create a repository with these settings in a folder, which may exist."""
    if (folder / SETTINGS).exists():  # it is written last
        raise RepositoryError(f"there is already a repository in {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "archive").mkdir(exist_ok=True)
    open_store(folder, create=True).close()
    (folder / SETTINGS).write_text(settings, encoding="utf-8")


class Storage:
    """An open repository, for reading; call `writing` before commits."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.store: Store = open_store(folder, shared=shared)
        self.archive = self._open_archive(1 << 30, "recrawl")
        self._index: Index | None = None
        self._lock: Lock | None = None

    @property
    def index(self) -> Index:
        """The full-text index, opened on first use; a reader never creates one."""
        if self._index is None:
            folder = self.folder / "index"
            self._index = Index(folder if self._lock is not None or folder.is_dir() else None)
        return self._index

    def writing(self, what: str, wait: Callable[[str], bool], *, roll_bytes: int, software: str) -> None:
        """Become the only writer: lock, migrate the schema, truncate what a crash left uncommitted."""
        self._lock = Lock(self.folder / "lock", what, wait)
        self.store.close()
        self.store = open_store(self.folder, create=True)
        self.archive = self._open_archive(roll_bytes, software)
        self.archive.mend(self.store.warcs.lengths())
        self._drop_old_index()

    def _drop_old_index(self) -> None:
        """Delete an index with an old schema; all pages are indexed again."""
        folder = self.folder / "index"
        if folder.is_dir() and self.index.current:
            return
        if self.store.meta.get("indexed", -1) != -1:
            self.store.meta.set("indexed", -1)  # first: a crash during reindexing must not count as done
        self._index = None
        shutil.rmtree(folder, ignore_errors=True)

    def refresh(self) -> None:
        """Read the names of archive files created since; for readers that stay open."""
        self.archive.names.update(self.store.warcs.names())

    def _open_archive(self, roll_bytes: int, software: str) -> WarcArchive:
        names = self.store.warcs.names()
        return WarcArchive(self.folder / "archive", names, roll_bytes=roll_bytes, software=software)

    def commit(self, batch: Batch, bodies: list[tuple[VersionRow, bytes]]) -> None:
        """Record a batch; `bodies` are its versions, each with its WARC records."""
        for version, blob in bodies:
            place = self.archive.append(blob, version.at)
            batch.versions.append(version._replace(warc=place.file, start=place.start, length=place.length))
        for blob, at in batch.records:
            self.archive.append(blob, at)
        self.store.commit(batch, self.archive.sync())
        for page in batch.removals:
            self.index.remove(page)
        for document in batch.documents:
            self.index.put(document)

    def commit_index(self, last_visit: int) -> None:
        """Make everything up to this visit searchable."""
        if self._index is not None:
            self._index.commit()
        self.store.meta.set("indexed", last_visit)

    def body(self, version: VersionRow) -> tuple[int, Headers, bytes]:
        """Status, headers and body of a version."""
        return read_body(self.archive.read(Place(version.warc, version.start, version.length)))

    def unindexed(self) -> list[int]:
        """Pages with updates that the index lacks: a crash came between store and index."""
        mark = int(self.store.meta.get("indexed", -1)) if (self.folder / "index").is_dir() else -1
        return self.store.visits.pages_updated_since(mark)

    def close(self) -> None:
        """Close everything; what was committed stays."""
        if self._index is not None:
            self._index.close()
        self.archive.close()
        self.store.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Storage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
