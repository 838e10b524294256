"""Divide a repository that exists into the shards of a cluster, as `recrawl move --shards` does.

The repository stays as it is, and in use, until all of the cluster is there and was compared with it. Every step finds
what an earlier attempt has done: archive files that were divided have a row, and rows that were copied are the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

from recrawl.cluster.layout import Layout, new_layout
from recrawl.crawl.cycles import unfinished
from recrawl.errors import RepositoryError, UsageError
from recrawl.record.archive import GZIP
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.remote import claim, open_blobs
from recrawl.record.blobs.target import parse
from recrawl.record.packing import dictionary_bytes
from recrawl.record.shards.archive_parts import ArchiveDivision, StoredPart
from recrawl.record.shards.placement import Placement, SourceFile
from recrawl.record.shards.switching import OLD, settle, switch
from recrawl.record.storage import Storage
from recrawl.record.store import postgres_target
from recrawl.record.store.division.copying import DividedCopy, copy_own_rows, copy_values
from recrawl.record.store.division.own_rows import OwnRows
from recrawl.record.store.division.owners import RowOwners
from recrawl.record.store.division.projection import Projection
from recrawl.record.store.location import DATABASE, store_url
from recrawl.record.store.moves import token_of
from recrawl.record.store.postgres.cluster.moves import (
    DividedFiles,
    claim_cluster,
    finish_move,
    forget_move,
    restart_runs,
    write_order,
)
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.sql.store import SqlStore
from recrawl.repository import opening
from recrawl.settings import Settings

_SCRATCH = "move.tmp"
MoveProgress = Callable[[str, int], None]
"""Gets the name of a table, or `archive`, and the number of its rows or files so far."""


class DividedRepository(NamedTuple):
    """What was moved into a cluster."""

    shards: int
    rows: int
    files: int
    to: str
    archive: str
    old: str
    """Where the old store still is."""


def divide_repository(
    folder: Path, *, store: str, archive: str, shards: int, wait: Callable[[str], bool], progress: MoveProgress
) -> DividedRepository:
    """Make a repository a cluster; `wait` is called while another process holds its lock."""
    values = opening.load(folder)
    layout = new_layout(store, archive, shards)
    if values["archive_format"] != GZIP:
        raise UsageError(
            f"archive_format = '{values['archive_format']}' does not work in a cluster, where a record is fetched "
            f"without the dictionary of its file: set it to '{GZIP}' first; the files are moved as they are"
        )
    with opening.service_lock(folder):
        with Storage(folder) as held:
            held.lock("move", wait)
            if (cycle := unfinished(held.store, "cycle")) is not None:
                raise RepositoryError(
                    f"cycle {cycle.id} was interrupted: let 'recrawl cycle' finish it, then move the repository"
                )
            moved = _Division(held, layout, values, progress).make()
            switch(folder, shards=shards, store=layout.store, archive=layout.archive)
        settle(folder)
    with closing(layout.open()) as cluster:
        forget_move(cluster)
    return moved


class _Division:
    """One attempt to divide a repository."""

    def __init__(self, held: Storage, layout: Layout, values: Settings, progress: MoveProgress) -> None:
        assert isinstance(held.store, SqlStore)
        self._held, self._source, self._layout, self._progress = held, held.store, layout, progress
        self._info = opening.archive_info(opening.options_of(values), values)
        self._scratch = held.folder / _SCRATCH
        self._blobs = cache(self._open_blobs)

    def make(self) -> DividedRepository:
        """Copy everything, and compare it."""
        layout, token = self._layout, token_of(self._source)
        facts = {"archive": layout.archive, "number of shards": str(layout.shards)}
        settings = opening.settings_file(self._held.folder).read_text(encoding="utf-8")
        with closing(claim_cluster(layout.target, token, facts, layout.shards)) as cluster:
            claim(self._held.folder, layout.archive, token)
            layout.make_shards()
            cluster.set_fact("settings", settings)
            owners = RowOwners(self._source, layout.shards, layout.shard_of_url)
            files = self._divide_archive(cluster, owners)
            rows = self._copy_rows(owners)
            restart_runs(cluster, self._source.next_id("cycles"))
            finish_move(cluster, layout.shards)
        before = store_url(self._held.folder)
        old = postgres_target(before).name if before else str(self._held.folder / f"{DATABASE}{OLD}")
        return DividedRepository(layout.shards, rows, files, layout.target.name, parse(layout.archive).name, old)

    def _divide_archive(self, cluster: ClusterStore, owners: RowOwners) -> int:
        """Put the records of every shard into the object store; returns the number of files that were divided."""
        names, lengths = self._source.warcs.names(), self._source.warcs.lengths()
        files = {number: SourceFile(name, lengths[number]) for number, name in names.items()}
        self._placement = Placement(owners, files, self._dictionary, self._info)
        done = DividedFiles(cluster, self._layout.shards)
        before = done.tokens()
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir()
        division = ArchiveDivision(self._placement, self._blobs, self._layout.shard_of_url, self._scratch)
        for count, (number, source) in enumerate(sorted(files.items()), 1):
            token, parts = self._placement.token(number), done.parts(number)
            if before.get(number) != token or not self._are_stored(parts):
                new = division.divide(number, source, self._held.archive.path(source.name))
                for shard, (name, _) in parts.items():
                    if shard not in new or new[shard].name != name:  # the file has grown since an earlier attempt
                        self._blobs(shard).remove(f"{ARCHIVE}/{name}")
                done.record(number, token, new)
            self._progress(ARCHIVE, count)
        shutil.rmtree(self._scratch)
        return len(files)

    def _are_stored(self, parts: Mapping[int, StoredPart]) -> bool:
        """Whether the object store has all parts of a file."""
        return all(self._blobs(shard).size(f"{ARCHIVE}/{it.name}") == it.length for shard, it in parts.items())

    def _copy_rows(self, owners: RowOwners) -> int:
        layout, shard_of = self._layout, self._layout.shard_of_url
        projection = Projection(owners, shard_of, self._placement.starts, owners.last_time())
        own = OwnRows(self._source, owners, shard_of)
        with closing(PostgresStore(layout.target.of_shard(0))) as target:
            copy = DividedCopy(
                self._source, target, projection, layout.shards, lambda shard: layout.target.of_shard(shard).schema
            )
            copy.copy(self._progress)
            for shard in range(layout.shards):
                with closing(PostgresStore(layout.target.of_shard(shard))) as there:
                    copy_values(there, own.shard_values(shard))
                    there.after_copy()
            with closing(GatheredStore(layout.target, layout.shards)) as whole:
                rows = copy_own_rows(whole, own)
                write_order(whole, own.visit_blocks(), own.read_up_to())
                whole.after_copy()
            return rows + copy.verify(self._progress)

    def _dictionary(self, name: str) -> bytes:
        return dictionary_bytes(self._held.archive.path(name))

    def _open_blobs(self, shard: int) -> Blobs:
        return open_blobs(parse(self._layout.archive_of(shard)))
