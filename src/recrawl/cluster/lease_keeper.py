"""A lease that is kept: renewed in the background, and counted as over before it ends.

The end is counted by this machine's own clock from the moment before each renewal, so that clocks of machines may
differ. A thread with a connection of its own renews the lease and calls `also`, for whatever else is to be looked up
every few seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from contextlib import closing
from types import TracebackType

from recrawl.cluster.layout import Layout
from recrawl.errors import LeaseLost, StorageFailure
from recrawl.record.store.leases import Lease
from recrawl.record.store.postgres.cluster.store import ClusterStore

MARGIN = 0.25
"""The share of a lease, at its end, in which no request is sent any more."""
_RENEWALS = 6
"""Renewals in the time of a lease."""


def uptime() -> float:
    """Seconds since the machine was started, with the time in which it was suspended: a lease goes on then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseKeeper:
    """Holds a lease from the beginning to the end of a `with` block."""

    def __init__(
        self,
        layout: Layout,
        lease: Lease,
        asked: float,
        *,
        also: Callable[[ClusterStore], None] = lambda _: None,
        timer: Callable[[], float] = uptime,
    ) -> None:
        """`asked` is the time of `timer` before the lease was taken."""
        self.lease = lease
        self._layout, self._also, self._timer = layout, also, timer
        self._seconds = lease.seconds
        self._ends = asked + lease.seconds * (1 - MARGIN)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease of shard {lease.shard}", daemon=True)

    @property
    def valid(self) -> bool:
        """Whether requests may be sent under the lease."""
        return self._timer() < self._ends and not self._ended.is_set()

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(StorageFailure), closing(self._layout.open()) as cluster:  # else it ends by itself
            cluster.leases.release(self.lease)

    def _keep(self) -> None:
        while not self._ended.wait(self._seconds / _RENEWALS):
            try:
                with closing(self._layout.open()) as cluster:
                    self._renew(cluster)
            except StorageFailure:  # the database is away: try again until the lease has ended
                continue
            except LeaseLost:
                self._ended.set()

    def _renew(self, cluster: ClusterStore) -> None:
        while True:
            asked = self._timer()
            self.lease = cluster.leases.renew(self.lease, self._seconds)
            self._ends = asked + self._seconds * (1 - MARGIN)
            self._also(cluster)
            if self._ended.wait(self._seconds / _RENEWALS):
                return
