"""The coordinator of a cluster: starts and finishes runs, settles the rounds of cycles. One at a time, by a lease."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing

from recrawl.cluster.cycle_coordinator import LATE, POOLED, CycleCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.lease_keeper import LeaseKeeper, uptime
from recrawl.cluster.run_requests import visits_of_all
from recrawl.errors import LeaseLost, StorageFailure
from recrawl.record.store.postgres.cluster.runs import DONE, FAILED, IDLE, RunRow, ShardRun
from recrawl.record.store.postgres.cluster.store import COORDINATOR, ClusterStore

LEASE_SECONDS = 10.0
_PAUSE = 0.25
"""Seconds between two looks while nothing is written."""
_REST = 0.5


class ClusterCoordinator:
    """Leads the runs of a cluster until `end` is called."""

    def __init__(
        self,
        layout: Layout,
        *,
        seconds: float = LEASE_SECONDS,
        late: float = LATE,
        notify: Callable[[str], None] = lambda _: None,
        also: Callable[[ClusterStore], None] = lambda _: None,
    ) -> None:
        """`also` is called while it leads, about twice a second."""
        self._layout, self._seconds, self._late, self._notify, self._also = layout, seconds, late, notify, also
        self.name = f"{socket.gethostname()}/coordinator/{os.getpid()}-{secrets.token_hex(3)}"
        self._ended = threading.Event()
        self._cycle: tuple[int, CycleCoordinator] | None = None
        self._looked = 0.0

    def end(self) -> None:
        """Stop leading."""
        self._ended.set()

    def run(self) -> None:
        """Lead while nobody else does, until the end."""
        while not self._ended.is_set():
            try:
                with closing(self._layout.open()) as cluster:
                    self._take(cluster)
            except (StorageFailure, LeaseLost) as error:
                self._notify(f"coordinator: {error}")
            self._ended.wait(_REST)

    def _take(self, cluster: ClusterStore) -> None:
        asked = uptime()
        lease = cluster.leases.take(COORDINATOR, self.name, self._seconds)
        if lease is None:
            return
        self._cycle = None  # another one may have led in between
        cluster.fence(lease)
        with LeaseKeeper(self._layout, lease, asked) as keeper:
            while keeper.valid and not self._ended.is_set():
                if time.monotonic() - self._looked >= _REST:
                    self._looked = time.monotonic()
                    self._also(cluster)
                run = cluster.runs.current()
                if run is None or not self.lead(cluster, run):
                    cluster.wait_for_shards(_PAUSE)

    def lead(self, cluster: ClusterStore, run: RunRow) -> bool:
        """Go on with a run if that is possible; whether it was."""
        parts = cluster.runs.shards(run.id)
        live = {lease.shard for lease in cluster.leases.holders()}
        if run.stop:
            return self._finish(cluster, run, all(_rests(parts.get(shard)) for shard in live))
        if run.started is None:
            return self._start(cluster, run, parts)
        if run.kind == "crawl" and not run.ending:
            quiet = cluster.runs.quiet(run.id, self._layout.shards)
            if quiet:
                cluster.runs.end_crawl(run.id)
            return quiet
        done = {shard for shard, part in parts.items() if part.state in (DONE, FAILED)}
        if len(done) == self._layout.shards:
            return self._finish(cluster, run, True)
        if run.kind != "cycle":
            return False
        if self._cycle is None or self._cycle[0] != run.id:
            self._cycle = run.id, CycleCoordinator(cluster.rounds, run, self._layout.shards, late=self._late)
        return self._cycle[1].step(live, done)

    def _start(self, cluster: ClusterStore, run: RunRow, parts: dict[int, ShardRun]) -> bool:
        """Let the shards begin, in a cycle when all have counted their pages, or some time after it was requested."""
        if run.kind != "cycle":
            cluster.runs.start(run.id, 0)
            return True
        waiting = len(parts) < self._layout.shards
        if waiting and not (parts and cluster.runs.age(run.id) > self._late * POOLED):
            return False
        pages = sum(part.pages for part in parts.values())
        cluster.runs.start(run.id, visits_of_all(run.budget, pages))
        return True

    def _finish(self, cluster: ClusterStore, run: RunRow, ready: bool) -> bool:
        if ready:
            cluster.runs.finish(run.id)
            for old in cluster.runs.newest(3)[1:]:
                cluster.rounds.forget(old.id)
        return ready


def _rests(part: ShardRun | None) -> bool:
    return part is None or part.state in (IDLE, DONE, FAILED)
