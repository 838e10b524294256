"""Columns computed from archive files: their cache, under a digest of the file, and the workers that compute them."""

from __future__ import annotations

import hashlib
import os
import zlib
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from recrawl.child_processes import worker_pool
from recrawl.durable_files import replacing

_NAMES = "names of columns"
_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, BadZipFile, zlib.error)
"""Errors of reading a damaged cache file."""


SMALL_READING = 2_000
"""Rows. Up to this, a worker process takes longer to start than the reading takes."""


def pool_of(workers: int | None, tasks: int, rows: int | None = None) -> AbstractContextManager[Executor]:
    """Return worker processes, by default one per core, for this many tasks; a thread where one worker is enough.

    `rows` is the number of rows that all tasks read, where it is known.
    """
    if workers is None and rows is not None and rows <= SMALL_READING:
        workers = 1
    needed = min(workers or os.cpu_count() or 1, tasks)
    return worker_pool(needed) if needed > 1 else ThreadPoolExecutor(1)


def file_name(file: Path, format_: str) -> str:
    """Return a cache name from a file's content and the format of the cached columns."""
    seal = hashlib.blake2b(format_.encode(), digest_size=16)
    with file.open("rb") as handle:
        while block := handle.read(1 << 22):
            seal.update(block)
    return seal.hexdigest()


def from_cache(name: Path | None) -> dict[str, NDArray[Any]] | None:
    """Return cached columns; None if there are none or they are damaged."""
    if name is None or not name.is_file():
        return None
    try:
        # Opened here: numpy would leave its own handle of a damaged file open.
        with name.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            columns = {key: kept[key] for key in kept.files}
            # Damage to the list of contents can hide columns without any error.
            return columns if columns.pop(_NAMES).tolist() == list(columns) else None
    except _DAMAGED:
        return None


def to_cache(name: Path | None, columns: dict[str, NDArray[Any]]) -> None:
    """Cache columns; the file appears only once it is complete."""
    if name is None:
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    with replacing(name, synced=False) as part, part.open("wb") as file:
        np.savez_compressed(file, **columns, **{_NAMES: np.array(list(columns))})  # type: ignore[arg-type]  # they are arrays, whatever their names
