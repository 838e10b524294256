"""How a cluster is moved: the part of `ClusterRepository` behind `recrawl move`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from recrawl.errors import UsageError
from recrawl.repository.repository import Repository

if TYPE_CHECKING:
    from recrawl.record.blobs.moves import MovedArchive
    from recrawl.record.store.moves import MovedStore


def _nothing(_: str, __: int) -> None:
    """Show no progress."""


class MovableCluster(Repository):
    """A cluster that can be moved while nobody works in it."""

    def move(self, to: str, *, wait: bool = False, progress: Callable[[str, int], None] = _nothing) -> MovedStore:
        """Move the tables of the cluster and of all its shards to another PostgreSQL database or schema.

        No worker may run and no run may be under way; nothing is waited for.
        """
        from recrawl.cluster.commands.relocation import move_cluster_store  # lazy: few commands move

        del wait
        if to == "sqlite":
            raise UsageError(
                "the shards of a cluster are in PostgreSQL; with --shards 0 and --archive they become one repository"
            )
        self.close()
        return move_cluster_store(self.folder, to, progress)

    def move_archive(
        self, to: str, *, wait: bool = False, progress: Callable[[str, int], None] = _nothing
    ) -> MovedArchive:
        """Move the archive files of all shards to another object store or prefix; as `move`."""
        from recrawl.cluster.commands.relocation import move_cluster_archive  # lazy: few commands move

        del wait
        if to == "folder":
            raise UsageError(
                "the archive of a cluster is in an object store, which all machines reach; with --shards 0 and --to it "
                "becomes one repository"
            )
        self.close()
        return move_cluster_archive(self.folder, to, progress)
