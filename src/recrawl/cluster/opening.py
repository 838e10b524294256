"""Open a repository as what it is: one of a single machine, or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recrawl.record.storage import find
from recrawl.record.store.location import shards_of
from recrawl.repository.repository import Repository


def is_cluster(folder: Path | str) -> bool:
    """Whether the repository in this folder, or in the nearest one above it, is a cluster."""
    return shards_of(find(Path(folder))) > 0


def open_repository(folder: Path | str, **options: Any) -> Repository:
    """Open the repository in this folder or in the nearest one above it; options are those of `Repository`."""
    if not is_cluster(folder):
        return Repository(folder, **options)
    from recrawl.cluster.repository import ClusterRepository  # lazy: needs the extra `postgres`

    return ClusterRepository(folder, **options)
