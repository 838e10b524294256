"""Move the archive of a repository into an object store, or back into its folder.

Into an object store it is enough to name it: what is not there waits, and each command that writes puts it. Back, all
files come first; the objects stay where they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from recrawl.errors import StorageFailure, UsageError
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.remote import RemoteFiles, claim
from recrawl.record.blobs.target import PLACE, archive_target, write_archive_target
from recrawl.record.store.site_tables import WarcTable

FOLDER = "folder"


class MovedArchive(NamedTuple):
    """What was moved."""

    files: int
    to: str
    old: str
    """Where the old files still are, apart from what the cache has no room for."""


def name_object_store(folder: Path, url: str) -> None:
    """Make an object store the place of the archive; its files wait to be put."""
    if (before := archive_target(folder)) is not None:
        raise UsageError(f"the archive of this repository is in {before.name} already; use --archive {FOLDER} first")
    write_archive_target(folder, claim(folder, url))


def move_to_folder(folder: Path, remote: RemoteFiles | None, warcs: WarcTable) -> MovedArchive:
    """Get all archive files, then forget the object store."""
    if remote is None:
        raise UsageError("the archive of this repository is in its folder already")
    names, lengths = warcs.names(), warcs.lengths()
    for file, name in names.items():
        path = folder / ARCHIVE / name
        try:
            if not path.exists():
                remote.blobs.fetch(f"{ARCHIVE}/{name}", path)
            size = path.stat().st_size
        except FileNotFoundError:
            size = 0
        if size < lengths[file]:
            raise StorageFailure(f"{remote.blobs.name}/{ARCHIVE}/{name} is missing or damaged: run 'recrawl check'")
    warcs.clear_stored()
    (folder / PLACE).unlink()
    return MovedArchive(len(names), str(folder / ARCHIVE), remote.blobs.name)
