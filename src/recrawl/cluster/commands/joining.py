"""Make one repository of all shards of a cluster, as `recrawl move --shards 0` does.

The cluster stays as it is, and nobody works in it, until the repository is complete and was compared with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from recrawl.cluster.commands.holding import HeldCluster, held_cluster
from recrawl.cluster.layout import Layout
from recrawl.cluster.run_requests import stopped_cycle
from recrawl.durable_files import move_file
from recrawl.errors import RepositoryError, StorageFailure, UsageError
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.moves import FOLDER
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.remote import claim, open_blobs
from recrawl.record.blobs.target import BlobTarget, parse
from recrawl.record.shards.switching import settle, switch
from recrawl.record.store import postgres_target
from recrawl.record.store.division.copying import JoinedCopy, copy_values
from recrawl.record.store.division.joined_numbers import JoinedNumbers
from recrawl.record.store.division.joined_rows import JoinedRows
from recrawl.record.store.division.joined_values import joined_name
from recrawl.record.store.location import DATABASE
from recrawl.record.store.moves import DRAFT, claim_copy
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.sql.store import SqlStore
from recrawl.record.store.sqlite.store import SqliteStore

SQLITE = "sqlite"
_MOVING = "moving"
_SCRATCH = "move.part"


class JoinedRepository(NamedTuple):
    """What was moved out of a cluster."""

    rows: int
    files: int
    to: str
    archive: str
    old: str
    """Where the tables of the cluster still are."""


def join_cluster(folder: Path, *, store: str, archive: str, progress: Callable[[str, int], None]) -> JoinedRepository:
    """Make the cluster in a folder one repository; `store` is a URL or `sqlite`, `archive` a URL or `folder`."""
    if not store or not archive:
        raise UsageError("one repository needs both: --to sqlite or postgresql://..., and --archive folder or s3://...")
    target = None if store == SQLITE else postgres_target(store)
    blobs = None if archive == FOLDER else parse(archive)
    with held_cluster(folder) as held:
        moved = _Joining(folder, held, blobs, progress).make(store)
        switch(
            folder,
            shards=0,
            store="" if target is None else target.reference,
            archive="" if blobs is None else archive,
        )
        settle(folder)
        with closing(held.layout.open()) as cluster:
            cluster.set_fact("moved to", moved.to)
    return moved


class _Joining:
    """One attempt to join the shards."""

    def __init__(
        self, folder: Path, held: HeldCluster, blobs: BlobTarget | None, progress: Callable[[str, int], None]
    ) -> None:
        self._folder, self._held, self._blobs, self._progress = folder, held, blobs, progress
        self._layout: Layout = held.layout

    def make(self, store: str) -> JoinedRepository:
        """Copy everything, and compare it."""
        token = self._token()
        where = "" if self._blobs is None else claim(self._folder, self._blobs.url, token).name
        with closing(GatheredStore(self._layout.target, self._layout.shards)) as source:
            files = self._copy_files(source)
            with closing(self._open(store)) as target:
                claim_copy(target, token, f"{store} holds another repository: choose another schema with ?schema=NAME")
                rows = self._copy_rows(source, target)
        self._held.check()
        if store == SQLITE:
            move_file(self._folder / DRAFT, self._folder / DATABASE)
        to = str(self._folder / DATABASE) if store == SQLITE else postgres_target(store).name
        return JoinedRepository(rows, files, to, where or str(self._folder / ARCHIVE), self._layout.target.name)

    def _token(self) -> str:
        """The mark of this move; `RepositoryError` if the cluster has work that one repository could not go on with."""
        with closing(self._layout.open()) as cluster:
            if (run := stopped_cycle(cluster)) is not None:
                raise RepositoryError(
                    f"cycle {run.id} was stopped: let 'recrawl cycle' finish it, then move the cluster"
                )
            waiting = sum(cluster.links.count(shard) for shard in range(self._layout.shards))
            if waiting:
                raise RepositoryError(
                    f"{waiting:,} links wait for their shards: run 'recrawl crawl', then move the cluster"
                )
            return cluster.first_fact(_MOVING, secrets.token_hex(16))

    def _open(self, store: str) -> SqlStore:
        if store == SQLITE:
            return SqliteStore(self._folder / DRAFT, create=True)
        return PostgresStore(postgres_target(store), create=True)

    def _copy_rows(self, source: GatheredStore, target: SqlStore) -> int:
        rows = JoinedRows(source, JoinedNumbers(source), in_folder=self._blobs is None)
        copy = JoinedCopy(target, rows.blocks)
        copy.copy(self._checked)
        copy_values(target, rows.values())
        target.after_copy()
        return copy.verify(self._checked)

    def _checked(self, table: str, rows: int) -> None:
        self._held.check()
        self._progress(table, rows)

    def _copy_files(self, source: GatheredStore) -> int:
        """Copy the archive files of all shards; their number."""
        names, lengths, shards = source.warcs.names(), source.warcs.lengths(), self._layout.shards
        (self._folder / ARCHIVE).mkdir(exist_ok=True)
        for count, (number, name) in enumerate(sorted(names.items()), 1):
            old = open_blobs(parse(self._layout.archive_of(number % shards)))
            own = f"{ARCHIVE}/{name.partition('-')[2]}"
            self._copy_file(old, own, joined_name(name), lengths[number])
            self._checked(ARCHIVE, count)
        return len(names)

    def _copy_file(self, old: Blobs, own: str, name: str, length: int) -> None:
        """Copy a file into the folder or the object store, unless it is there."""
        new = None if self._blobs is None else open_blobs(self._blobs)
        path = self._folder / (f"{ARCHIVE}/{name}" if new is None else _SCRATCH)
        if self._size(new, name) == length:
            return
        try:
            old.fetch(own, path)
        except FileNotFoundError:
            raise StorageFailure(f"{old.name}/{own} is missing: run 'recrawl check'") from None
        if new is not None:
            new.put(f"{ARCHIVE}/{name}", path)
            path.unlink()
        if self._size(new, name) < length:
            raise StorageFailure(f"{old.name}/{own} is shorter than the store says: run 'recrawl check'")

    def _size(self, new: Blobs | None, name: str) -> int:
        """Bytes of a file that was copied; -1 if it was not."""
        if new is not None:
            return new.size(f"{ARCHIVE}/{name}")
        path = self._folder / ARCHIVE / name
        return path.stat().st_size if path.exists() else -1
