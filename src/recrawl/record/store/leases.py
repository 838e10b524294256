"""Leases: which worker owns which shard, until when, and the epoch that keeps a former owner from writing.

A lease ends at a time of the database's clock. The epoch of a shard rises each time that it is taken. A store with
a fence checks shard, worker and epoch in each transaction that writes, so that a worker that was taken for dead and
comes back writes nothing (`LeaseLost`). That protects the store, not the servers of others: a worker stops fetching
before its lease ends. It counts `Lease.seconds` by its own clock from the moment at which it asked for the lease.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Lease(NamedTuple):
    """The right of a worker to write a shard."""

    schema: str
    """The schema with the table of leases; one of the database of the store that checks it."""
    shard: int
    worker: str
    epoch: int
    ends: float
    """By the clock of the database."""
    seconds: float
    """Time from the grant, or now for leases of others, to the end; negative if it has ended."""


class LeaseTable(Protocol):
    """Who owns which shard. Each method is a transaction of its own."""

    def take(self, shard: int, worker: str, seconds: float) -> Lease | None:
        """Take a shard that nobody owns, whose lease has ended, or that this worker has; None if another owns it.

        One process goes by the name of a worker: who takes a shard again has a new epoch.
        """

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Let a lease end so many seconds from now; `LeaseLost` if another worker has taken the shard."""

    def release(self, lease: Lease) -> bool:
        """End a lease at once; whether it was still held."""

    def expired(self) -> list[Lease]:
        """Leases that have ended although their worker did not release them, by shard."""

    def holders(self) -> list[Lease]:
        """Leases that have not ended, by shard."""
