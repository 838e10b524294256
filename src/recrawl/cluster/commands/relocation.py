"""Move a cluster to another database or another object store, as `recrawl move` does in its folder.

The old one stays in use, and nobody works in it, until the copy is complete and was compared.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from recrawl.cluster.commands.holding import held_cluster
from recrawl.cluster.layout import Layout, new_layout
from recrawl.errors import StorageFailure, UsageError
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.models import model_objects
from recrawl.record.blobs.moves import MovedArchive
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.remote import claim, open_blobs
from recrawl.record.blobs.target import parse
from recrawl.record.shards.switching import settle, switch
from recrawl.record.store.moves import MovedStore
from recrawl.record.store.postgres.cluster.copying import copy_cluster, copy_facts
from recrawl.record.store.postgres.cluster.moves import claim_cluster, finish_move, forget_move
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.store import PostgresStore

MoveProgress = Callable[[str, int], None]
_MOVING = "moving"
"""The fact with the mark of the move that is under way."""
_SCRATCH = "move.tmp"


def move_cluster_store(folder: Path, to: str, progress: MoveProgress) -> MovedStore:
    """Move all schemas of the cluster in a folder to the PostgreSQL database and schema of a URL."""
    with held_cluster(folder) as held:
        old = held.layout
        new = new_layout(to, old.archive, old.shards)
        if new.target[:2] == old.target[:2]:
            raise UsageError(f"the store of this cluster is {new.target.name} already")

        def checked(table: str, rows: int) -> None:
            held.check()
            progress(table, rows)

        with closing(old.open()) as source:
            token = source.first_fact(_MOVING, secrets.token_hex(16))
            facts = {"archive": old.archive, "number of shards": str(old.shards)}
            with closing(claim_cluster(new.target, token, facts, old.shards, has_runs=True)) as copy:
                new.make_shards()
                rows = copy_cluster(old.target, new.target, old.shards, checked)
                copy_facts(source, copy)
                held.check()
                finish_move(copy, old.shards)
                switch(folder, shards=old.shards, store=new.store, archive=old.archive)
                settle(folder)
                forget_move(copy)
            _finished(source, new.target.name)
    return MovedStore(rows, new.target.name, old.target.name)


def _finished(source: ClusterStore, to: str) -> None:
    """Let nobody use the old tables by mistake."""
    source.set_fact("moved to", to)


def move_cluster_archive(folder: Path, to: str, progress: MoveProgress) -> MovedArchive:
    """Move the archive files and models of all shards to another prefix or object store."""
    with held_cluster(folder) as held:
        old = held.layout
        before, after = parse(old.archive), parse(to)
        if (before.name, before.endpoint) == (after.name, after.endpoint):
            raise UsageError(f"the archive of this cluster is in {after.name} already")
        scratch = folder / _SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        with closing(old.open()) as cluster:
            claim(folder, to, cluster.first_fact(_MOVING, secrets.token_hex(16)))
            files = 0
            for shard in range(old.shards):
                for name, size in _objects(old, shard).items():
                    _copy_object(_blobs(old.archive, shard), _blobs(to, shard), name, size, scratch / "object")
                    files += name.startswith(f"{ARCHIVE}/")
                    held.check()
                    progress(ARCHIVE, files)
            shutil.rmtree(scratch)
            cluster.set_fact("archive", to)
            switch(folder, shards=old.shards, store=old.store, archive=to)
            settle(folder)
            cluster.remove_fact(_MOVING)
    return MovedArchive(files, after.name, before.name)


def _objects(layout: Layout, shard: int) -> dict[str, int]:
    """The objects of a shard with their lengths, -1 for whatever it is."""
    with closing(PostgresStore(layout.target.of_shard(shard))) as store:
        lengths = store.warcs.lengths()
        files = {f"{ARCHIVE}/{name}": lengths[number] for number, name in store.warcs.names().items()}
        return files | dict.fromkeys(model_objects(store.meta), -1)


def _copy_object(old: Blobs, new: Blobs, name: str, size: int, scratch: Path) -> None:
    """Copy an object, unless it is there; models that are missing are computed again."""
    there = old.size(name)
    if there < 0 and size < 0:
        return
    if there < size:
        raise StorageFailure(f"{old.name}/{name} is missing or damaged: run 'recrawl check'")
    if new.size(name) != there:
        old.fetch(name, scratch)
        new.put(name, scratch)
        scratch.unlink()
    if new.size(name) != there:
        raise StorageFailure(f"{new.name}/{name} has not {there:,} bytes after it was put: run the command again")


def _blobs(archive: str, shard: int) -> Blobs:
    return open_blobs(parse(archive).of_shard(shard))
