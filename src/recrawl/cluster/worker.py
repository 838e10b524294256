"""The worker of a shard: takes its lease, does its part of each run, and stops before the lease ends.

A worker that finds the lease taken waits for its end: it is the successor of a worker that is gone, or it waits for one
that lives. Whatever fails because database or object store are away is tried again.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from recrawl.cluster.layout import Layout
from recrawl.cluster.lease_keeper import LeaseKeeper, uptime
from recrawl.cluster.reader_server import ReaderServer
from recrawl.cluster.search_server import SearchServer
from recrawl.cluster.shard_parts import PartOfRun, Shard
from recrawl.crawl.tally import RunCounts, as_row
from recrawl.errors import LeaseLost, RecrawlError, RepositoryBusy, StorageFailure
from recrawl.record.store.postgres.cluster.runs import DONE, FAILED, IDLE, RUNNING, RunRow
from recrawl.record.store.postgres.cluster.store import ClusterStore

LEASE_SECONDS = 30.0
_PAUSE = 0.2
_PROGRESS = 1.0
"""Seconds between two reports."""


class ShardWorker:
    """Runs one shard until `end` is called, or its draining is asked for."""

    def __init__(
        self,
        layout: Layout,
        shard: int,
        folder: Path,
        *,
        node: str = "",
        seconds: float = LEASE_SECONDS,
        address: str = "127.0.0.1",
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`folder` is for the working folders of shards on this machine, `seconds` the length of a lease.

        Searches are answered at `address`, at which the service reaches this machine.
        """
        self._address = address
        self._layout, self._shard, self._seconds, self._notify = layout, shard, seconds, notify
        self._folder = folder / f"s{shard:03d}"
        self._host = socket.gethostname()
        self._node = node or self._host
        self.name = f"{self._node}/{shard}/{os.getpid()}-{secrets.token_hex(3)}"
        self._ended = threading.Event()
        self._draining = False
        self._run_stops = False
        self._since = time.monotonic()
        """When another process, or an earlier part of this one, may have sent the last request."""
        self._reported = 0.0

    def end(self) -> None:
        """Stop after recording what was downloaded; the shard is free then."""
        self._ended.set()

    def run(self) -> None:
        """Work until the end."""
        while not self._over():
            try:
                with closing(self._layout.open()) as cluster:
                    self._take(cluster)
            except (StorageFailure, LeaseLost, RepositoryBusy) as error:
                self._notify(f"shard {self._shard}: {error}")
            self._ended.wait(_PAUSE)

    def _over(self) -> bool:
        return self._ended.is_set() or self._draining

    def _take(self, cluster: ClusterStore) -> None:
        self._look(cluster)
        asked = uptime()
        lease = cluster.leases.take(self._shard, self.name, self._seconds)
        if lease is None:
            return
        self._since = time.monotonic()
        with (
            LeaseKeeper(self._layout, lease, asked, also=self._look) as keeper,
            SearchServer(cluster, self._shard, self._folder, self._address),
            ReaderServer() as readers,
        ):
            while keeper.valid and not self._over():
                self._next_part(cluster, keeper, readers)
                self._ended.wait(_PAUSE)
        cluster.nodes.worker_gone(self.name)

    def _look(self, cluster: ClusterStore) -> None:
        """Show that this worker lives, and look up what is asked of it."""
        self._draining |= cluster.nodes.worker_seen(self.name, self._node, self._host, os.getpid())
        run = cluster.runs.current()
        self._run_stops = run is None or run.stop

    def _next_part(self, cluster: ClusterStore, keeper: LeaseKeeper, readers: ReaderServer) -> None:
        run = cluster.runs.current()
        part = None if run is None else cluster.runs.shards(run.id).get(self._shard)
        if run is None or (part is not None and part.state in (DONE, FAILED)):
            return
        if run.stop:
            if part is not None and part.state != IDLE:
                cluster.runs.report(run.id, self._shard, IDLE)
            return
        self._run_stops = False

        def stop() -> bool:
            return self._over() or self._run_stops or not keeper.valid

        def wait(seconds: float) -> bool:
            until = time.monotonic() + seconds
            while not stop() and (left := until - time.monotonic()) > 0:
                self._ended.wait(min(left, _PAUSE))
            return not stop()

        def progress(run: RunRow, counts: Callable[[], RunCounts]) -> None:
            if time.monotonic() - self._reported >= _PROGRESS:
                self._reported = time.monotonic()
                cluster.runs.report(run.id, self._shard, RUNNING, as_row(counts()))

        shard = Shard(self._layout, self._shard, self._folder, cluster, keeper, readers, stop, wait, progress)
        try:
            PartOfRun(shard, run, lambda: time.monotonic() - self._since).make()
        except (StorageFailure, LeaseLost, RepositoryBusy):
            raise
        except RecrawlError as error:
            cluster.runs.fail(run.id, self._shard, str(error))
        finally:
            self._since = time.monotonic()
