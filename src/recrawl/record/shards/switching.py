"""Make another place that of a repository: as a cluster, as one that is not divided, or in another database.

One file decides, `cluster.toml`, which is written at once and whole: it names number of shards, store and archive. Then
the other files are brought in line with it, and it has the number of shards alone. Whoever opens the repository
finishes that after a crash.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

from recrawl.durable_files import move_file, remove_file
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.target import PLACE, parse, write_archive_target
from recrawl.record.shards.folders import READING
from recrawl.record.store.location import (
    CLUSTER,
    DATABASE,
    LOCATION,
    cluster_values,
    write_cluster_values,
    write_store_url,
)

OLD = ".old"
"""How the names of files end that are no longer in use."""
_OF_ONE_STORE = ("models", "index")
"""What was computed from the old store, with its numbers."""


def switch(folder: Path, *, shards: int, store: str, archive: str) -> None:
    """Make these the places of a repository; `store` and `archive` are empty for those in the folder."""
    write_cluster_values(folder, {"shards": shards, "store": store, "archive": archive})


def settle(folder: Path) -> None:
    """Bring the other files in line with `cluster.toml` after a switch; nothing is done without one."""
    values = cluster_values(folder)
    if "store" not in values:
        return
    store, archive, shards = str(values["store"]), str(values.get("archive", "")), values["shards"]
    if store:
        write_store_url(folder, store)
        for end in ("", "-wal", "-shm"):
            if (folder / f"{DATABASE}{end}").exists():
                move_file(folder / f"{DATABASE}{end}", folder / f"{DATABASE}{OLD}{end}")
    else:
        remove_file(folder / LOCATION)
    if archive:
        write_archive_target(folder, parse(archive))
    else:
        remove_file(folder / PLACE)
    shutil.rmtree(folder / READING, ignore_errors=True)  # copies
    for name in _OF_ONE_STORE:
        if (folder / name).is_dir():
            shutil.rmtree(folder / f"{name}{OLD}", ignore_errors=True)
            (folder / name).replace(folder / f"{name}{OLD}")
    if shards and (folder / ARCHIVE).is_dir():
        (folder / ARCHIVE).replace(_free(folder / f"{ARCHIVE}{OLD}"))
    if shards:
        write_cluster_values(folder, {"shards": shards})
    else:
        remove_file(folder / CLUSTER)


def _free(path: Path) -> Path:
    """A name that no earlier move has used: archive.old, archive.old2 and so on."""
    names = (path.with_name(f"{path.name}{number}") for number in count(2))
    return path if not path.exists() else next(it for it in names if not it.exists())
