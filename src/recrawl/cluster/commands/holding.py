"""A cluster in which nothing is written while it is moved: no worker, no coordinator, no run, no service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from recrawl.cluster.layout import Layout, layout_of
from recrawl.cluster.lease_keeper import LeaseKeeper, uptime
from recrawl.cluster.opening import ServiceLock
from recrawl.errors import LeaseLost, RepositoryBusy
from recrawl.record.store.leases import Lease
from recrawl.record.store.postgres.cluster.store import COORDINATOR, ClusterStore

_NAME = "recrawl move"
_SECONDS = 30.0


class HeldCluster:
    """The leases of all shards and of the coordinator, so that nobody else takes one."""

    def __init__(self, layout: Layout, keeper: LeaseKeeper) -> None:
        self.layout = layout
        self._keeper = keeper

    def check(self) -> None:
        """Raise an error if the leases are lost: somebody else may write."""
        if not self._keeper.valid:
            raise LeaseLost(
                "the database did not answer for too long, and workers may have begun: run the command again"
            )


@contextmanager
def held_cluster(folder: Path) -> Iterator[HeldCluster]:
    """Hold the cluster in a folder; `RepositoryBusy` if a worker, a run or the service is at work."""
    lock = ServiceLock(folder)
    try:
        layout = layout_of(folder)
        with closing(layout.open()) as cluster:
            _check_idle(cluster)
            asked = uptime()
            lead = _taken(cluster, COORDINATOR)
            shards = [_taken(cluster, shard) for shard in range(layout.shards)]
        kept = list(shards)

        def renew(cluster: ClusterStore) -> None:
            kept[:] = [cluster.leases.renew(lease, _SECONDS) for lease in kept]

        with LeaseKeeper(layout, lead, asked, also=renew) as keeper:
            try:
                yield HeldCluster(layout, keeper)
            finally:
                with closing(layout.open()) as cluster:
                    for lease in shards:
                        cluster.leases.release(lease)
    finally:
        lock.release()


def _check_idle(cluster: ClusterStore) -> None:
    run = cluster.runs.current()
    if run is not None:
        raise RepositoryBusy(f"{run.kind} {run.id} is under way in this cluster: wait for it to end, or stop it")
    workers = [lease.worker for lease in cluster.leases.holders() if lease.worker != _NAME]
    if cluster.leader() not in ("", _NAME):
        workers.append(cluster.leader())
    if workers:
        raise RepositoryBusy(
            f"{workers[0]} is at work in this cluster: stop the workers with 'recrawl cluster stop', then move it"
        )


def _taken(cluster: ClusterStore, shard: int) -> Lease:
    lease = cluster.leases.take(shard, _NAME, _SECONDS)
    if lease is None:
        raise RepositoryBusy("a worker has begun in this cluster: stop the workers with 'recrawl cluster stop' first")
    return lease
