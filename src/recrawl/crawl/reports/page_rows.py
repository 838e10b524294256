"""The columns from which figures are computed, one row per page; large repositories keep them in a file.

Reading a million rows from the store takes a second of CPU time. Most rows are as they were: the others are those of
pages found or visited since, which their numbers tell, and of pages in the store's list of changes without a visit. The
shards of a cluster have no file: several machines write them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recrawl.columns import Ints, unique
from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.crawl.state.load_book import mark_before
from recrawl.record.rows import Columns
from recrawl.record.storage import Storage
from recrawl.record.store import SqliteStore, Store
from recrawl.version import __version__

_MIN_PAGES = 100_000
"""Smaller repositories have no file."""
_SHARE = 16
"""The file is written anew when more than one row in this many is outdated."""
_HEAD = frozenset({"version", "touched", "upto", "last"})


def summary_columns(repository: Storage) -> Columns:
    """The columns that summaries need, as `PageTable.summary_columns` returns them; for the holder of the lock."""
    store, pages = repository.store, repository.store.next_id("pages")
    if pages < _MIN_PAGES or not isinstance(store, SqliteStore):
        return store.pages.summary_columns()
    file = read_arrays(_file(repository)) or {}
    outdated = _outdated(file, store, pages)
    if outdated is None or len(outdated) > pages // _SHARE:
        file.clear()
        columns = store.pages.summary_columns()
        _write(repository, columns)
        return columns
    columns = {}
    for name, rows in store.pages.summary_columns(outdated.tolist()).items():
        before = file.pop(name)
        columns[name] = column = np.empty(pages, before.dtype)
        column[: len(before)] = before
        column[outdated] = rows
    return columns


def _outdated(file: Arrays, store: Store, pages: int) -> Ints | None:
    """The pages whose rows in the file are missing or outdated; None if the file cannot be used."""
    if not file.keys() > _HEAD or str(file["version"]) != __version__:
        return None
    number, touched = store.pages.touched()
    upto, known = int(file["upto"]), len(file["site"])
    if int(file["touched"]) != number or not 0 < known <= pages or upto > store.next_id("visits"):
        return None
    same_page = store.pages.summary_columns([known - 1])["found"][0] == file["found"][-1]
    if not same_page or not np.array_equal(file["last"], mark_before(store, upto)):
        return None  # a copy of the store from before was restored
    found: Ints = np.arange(known, pages)
    return unique(np.concatenate((store.visits.pages_since(upto), np.array(touched, np.int64), found)))


def _write(repository: Storage, columns: Columns) -> None:
    store = repository.store
    number, upto = store.pages.touched()[0] + 1, store.next_id("visits")
    head = {
        "version": np.array(__version__),
        "touched": np.array(number),
        "upto": np.array(upto),
        "last": mark_before(store, upto),
    }
    write_arrays(_file(repository), {**head, **columns})
    store.pages.begin_touched(number)  # a crash before leaves a file with another number than the list


def _file(repository: Storage) -> Path:
    return repository.folder / "models" / "page-rows.npz"
