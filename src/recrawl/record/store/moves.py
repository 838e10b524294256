"""Move the store of a repository to a PostgreSQL schema, or back into its folder; the caller holds the locks.

The old store stays in use until the copy is complete and verified. Then one file decides: `store.toml` appears or goes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from recrawl.durable_files import move_file, remove_file
from recrawl.errors import RepositoryError, UsageError
from recrawl.record.store import open_store, postgres_target
from recrawl.record.store.location import DATABASE, LOCATION, store_url, write_store_url
from recrawl.record.store.sql.copying import TOKEN, copy_store
from recrawl.record.store.sql.store import SqlStore
from recrawl.record.store.sqlite.store import SqliteStore

DRAFT = "recrawl.db.new"
_OLD = "recrawl.db.old"
CopyProgress = Callable[[str, int], None]
"""Gets the name of a table and the number of its rows that were copied."""


class MovedStore(NamedTuple):
    """What was moved."""

    rows: int
    to: str
    old: str
    """Where the old store still is."""


def move_store(folder: Path, to: str, progress: CopyProgress) -> MovedStore:
    """Copy the store, verify the copy, and make it the store of the repository; `to` is a URL or `sqlite`."""
    with closing(open_store(folder)) as source:
        assert isinstance(source, SqlStore)
        if to == "sqlite":
            return _move_to_file(folder, source, progress)
        return _move_to_postgres(folder, source, to, progress)


def _move_to_postgres(folder: Path, source: SqlStore, url: str, progress: CopyProgress) -> MovedStore:
    target, before = postgres_target(url), store_url(folder)
    from recrawl.record.store.postgres.store import PostgresStore  # lazy: needs the extra `postgres`

    if before and postgres_target(before)[:2] == target[:2]:
        raise UsageError(f"the store of this repository is {target.name} already")
    with closing(PostgresStore(target, create=True)) as copy:
        _claim(source, copy, f"{target.name} holds another repository: choose another schema with ?schema=NAME")
        rows = copy_store(source, copy, progress)
    write_store_url(folder, target.reference)
    if before:
        return MovedStore(rows, target.name, postgres_target(before).name)
    move_file(folder / DATABASE, folder / _OLD)
    return MovedStore(rows, target.name, str(folder / _OLD))


def _move_to_file(folder: Path, source: SqlStore, progress: CopyProgress) -> MovedStore:
    before = store_url(folder)
    if not before:
        raise UsageError(f"the store of this repository is the file {DATABASE} already")
    with closing(SqliteStore(folder / DRAFT, create=True)) as copy:
        _claim(source, copy, f"{folder / DRAFT} holds another repository: remove the file")
        rows = copy_store(source, copy, progress)
    move_file(folder / DRAFT, folder / DATABASE)
    remove_file(folder / LOCATION)
    return MovedStore(rows, str(folder / DATABASE), postgres_target(before).name)


def _claim(source: SqlStore, copy: SqlStore, refusal: str) -> None:
    """Mark an empty target as the copy of this source; refuse one that holds anything else."""
    claim_copy(copy, token_of(source), refusal)


def claim_copy(copy: SqlStore, token: str, refusal: str) -> None:
    """Mark an empty store by the token of a move; refuse one that holds anything else."""
    if copy.meta.get(TOKEN, "") == token:
        return
    if copy.meta.get(TOKEN, "") or any(copy.next_id(table) for table in ("sites", "pages", "cycles")):
        raise RepositoryError(refusal)
    copy.meta.set(TOKEN, token)


def token_of(source: SqlStore) -> str:
    """What marks the copies of a store; the same in every attempt to move it."""
    token = str(source.meta.get(TOKEN, ""))
    if not token:
        token = secrets.token_hex(16)
        source.meta.set(TOKEN, token)
    return token
