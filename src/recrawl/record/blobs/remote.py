"""The archive files and models of a repository in its object store: when they are put, recorded and got."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import RepositoryError, StorageFailure
from recrawl.extras import require
from recrawl.record.archive import WarcArchive
from recrawl.record.blobs.cache import ARCHIVE, BlobCache
from recrawl.record.blobs.models import get_models, put_models
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.target import BlobTarget, archive_target, parse
from recrawl.record.store import Store

if TYPE_CHECKING:
    from recrawl.record.blobs.uploads import ArchiveUploads

_TRIAL = "recrawl-repository.toml"
"""The object that marks a prefix as taken by a repository."""


def open_remote(folder: Path, store: Store) -> RemoteFiles | None:
    """The object store of a repository; None if all of it is in the folder."""
    target = archive_target(folder)
    return None if target is None else RemoteFiles(folder, target, store)


def claim(folder: Path, url: str, move: str = "") -> BlobTarget:
    """The target of a URL, after it was written to; `RepositoryError` if another repository uses it.

    The same `move` may claim it again, after it was interrupted.
    """
    target = parse(url)
    blobs = open_blobs(target)
    text = f"archive = '{target.name}'\n" + (f"move = '{move}'\n" if move else "")
    if (size := blobs.size(_TRIAL)) >= 0:
        if move and blobs.get_range(_TRIAL, 0, size).decode("utf-8", "replace") == text:
            return target
        raise RepositoryError(f"{target.name} holds the archive of a repository: choose another prefix")
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / _TRIAL
    mark.write_text(text, encoding="utf-8")
    try:
        blobs.put(_TRIAL, mark)
    finally:
        mark.unlink()
    return target


def open_blobs(target: BlobTarget) -> Blobs:
    """The objects under a prefix."""
    require("obstore")
    from recrawl.record.blobs.s3 import S3Blobs  # lazy: needs the extra `s3`

    return S3Blobs(target)


class RemoteFiles:
    """What a repository has in an object store."""

    def __init__(self, folder: Path, target: BlobTarget, store: Store) -> None:
        self._folder = folder
        self._store = store
        self._seal_commits = target.seal_commits
        self.blobs = open_blobs(target)
        self.cache = BlobCache(self.blobs, folder / ARCHIVE, target.cache_bytes, self._stored_names)
        self._uploads: ArchiveUploads | None = None
        self.problem = ""
        """Why something could not be put or got; empty if everything could."""

    def begin(self) -> None:
        """Get what a writer needs: the models that the folder lacks. Without them they are computed again."""
        from recrawl.record.blobs.uploads import ArchiveUploads  # lazy: loads thread pools

        self._uploads = ArchiveUploads(self.blobs, self._folder / ARCHIVE)
        try:
            self.get_models()
        except StorageFailure as error:
            self.problem = str(error)

    def get_models(self) -> None:
        """Get the models that the folder lacks; `StorageFailure` if that fails."""
        get_models(self.blobs, self._folder / "models", self._store.meta)

    def before_commit(self, archive: WarcArchive) -> None:
        """Put the files of a batch before it is recorded, if so configured; `StorageFailure` if that fails."""
        if self._seal_commits and self._uploads is not None:
            archive.seal()
            for name in archive.waiting().values():
                self._uploads.put(name)

    def after_commit(self, archive: WarcArchive) -> None:
        """Record what was put; put other sealed files in the background."""
        if self._uploads is not None and (waiting := archive.waiting()):
            self._record(archive, list(waiting) if self._seal_commits else self._uploads.start(waiting))

    def finish(self, archive: WarcArchive) -> None:
        """Seal the last file, put what waits, and the models."""
        if self._uploads is None:
            return
        archive.seal()
        self._record(archive, self._uploads.finish(archive.waiting()))
        self.problem = self._uploads.problem
        if self.problem:
            return
        try:
            self.keep_models()
        except StorageFailure as error:
            self.problem = str(error)

    def keep_models(self) -> None:
        """Put the models that have changed; `StorageFailure` if that fails."""
        put_models(self.blobs, self._folder / "models", self._store.meta)

    def size(self, name: str) -> int:
        """Bytes of an archive file in the object store, -1 if it is not there."""
        return self.blobs.size(f"{ARCHIVE}/{name}")

    def put_again(self, name: str) -> bool:
        """Replace a damaged archive file by the copy in the folder; False if there is none that is larger."""
        path = self._folder / ARCHIVE / name
        if not path.exists() or path.stat().st_size <= self.size(name):
            return False
        self.blobs.remove(f"{ARCHIVE}/{name}")
        self.blobs.put(f"{ARCHIVE}/{name}", path)
        return True

    def close(self) -> None:
        """Wait for the file that is being put; others wait for the next writer."""
        if self._uploads is not None:
            self._uploads.close()

    def _record(self, archive: WarcArchive, files: list[int]) -> None:
        if files:
            self._store.warcs.set_stored(files)
            archive.stored.update(files)
            for file in files:
                self.cache.count(archive.folder / archive.names[file], needed=False)

    def _stored_names(self) -> set[str]:
        names = self._store.warcs.names()
        return {names[file] for file in self._store.warcs.stored() if file in names}
