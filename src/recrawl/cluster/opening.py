"""Open a repository as what it is: one of a single machine, or a cluster."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from recrawl.record.shards.switching import settle
from recrawl.record.storage import find
from recrawl.record.store.location import shards_of
from recrawl.repository.opening import service_lock
from recrawl.repository.repository import Repository


def is_cluster(folder: Path | str) -> bool:
    """Whether the repository in this folder, or in the nearest one above it, is a cluster."""
    return shards_of(find(Path(folder))) > 0


def open_repository(folder: Path | str, **options: Any) -> Repository:
    """Open the repository in this folder or in the nearest one above it; options are those of `Repository`.

    What a move has left undone after it has made another place that of the repository is done first.
    """
    with contextlib.suppress(OSError):  # a reader's folder may be read-only
        settle(find(Path(folder)))
    if not is_cluster(folder):
        return Repository(folder, **options)
    from recrawl.cluster.repository import ClusterRepository  # lazy: needs the extra `postgres`

    return ClusterRepository(folder, **options)


class ServiceLock:
    """One service at a time for each repository, and for each cluster on whatever machine: alerts go out once."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; `RepositoryBusy` if another service holds it."""
        with ExitStack() as failing:
            failing.callback(service_lock(folder).release)
            if is_cluster(folder):
                from recrawl.cluster.layout import layout_of  # lazy: needs the extra `postgres`
                from recrawl.record.store.postgres.writer_lock import WriterLock  # lazy: needs the extra `postgres`

                cluster = layout_of(folder).open()
                failing.callback(cluster.close)
                WriterLock(cluster.db, "serve", lambda _: False)
            self._held = failing.pop_all()

    def release(self) -> None:
        """Let another service start."""
        self._held.close()
