"""The table `leases` in PostgreSQL. One statement does each change, so that two workers cannot both succeed."""

from __future__ import annotations

from recrawl.errors import LeaseLost
from recrawl.record.store.leases import Lease, LeaseTable
from recrawl.record.store.postgres.connection import PostgresConnection

# The time of the statement, not of the transaction: it may have waited for a lock.
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_LONGEST = 86400
"""No lease is as long, in seconds: a later end is one of a clock that was wrong."""
_TAKE = f"""INSERT INTO leases AS l (shard, worker, epoch, ends) VALUES (%s, %s, 1, {_NOW} + %s)
    ON CONFLICT (shard) DO UPDATE SET worker = excluded.worker, epoch = l.epoch + 1, ends = {_NOW} + %s
    WHERE l.ends <= {_NOW} OR l.ends > {_NOW} + {_LONGEST} OR l.worker = excluded.worker RETURNING epoch, ends"""
_OWNED = "shard = %s AND worker = %s AND epoch = %s"
_RENEW = f"UPDATE leases SET ends = {_NOW} + %s WHERE {_OWNED} RETURNING ends"
_RELEASE = f"UPDATE leases SET worker = '', ends = 0 WHERE {_OWNED}"
_LIST = f"""SELECT shard, worker, epoch, ends, ends - {_NOW} FROM leases
    WHERE shard >= 0 AND worker != '' AND {{}} (ends > {_NOW} AND ends <= {_NOW} + {_LONGEST}) ORDER BY shard"""


class PostgresLeases(LeaseTable):
    """The leases of a schema."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._schema = db.target.schema

    def take(self, shard: int, worker: str, seconds: float) -> Lease | None:
        found = self._db.run(_TAKE, (shard, worker, seconds, seconds)).fetchone()
        if found is None:
            return None
        epoch, ends = found
        return Lease(self._schema, shard, worker, epoch, ends, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        found = self._db.run(_RENEW, (seconds, lease.shard, lease.worker, lease.epoch)).fetchone()
        if found is None:
            raise lost(lease)
        return lease._replace(ends=found[0], seconds=seconds)

    def release(self, lease: Lease) -> bool:
        return self._db.run(_RELEASE, (lease.shard, lease.worker, lease.epoch)).rowcount == 1

    def expired(self) -> list[Lease]:
        return [Lease(self._schema, *row) for row in self._db.run(_LIST.format("NOT"))]

    def holders(self) -> list[Lease]:
        return [Lease(self._schema, *row) for row in self._db.run(_LIST.format(""))]


class Fence:
    """Refuses transactions that write under a lease that another worker has taken over."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        # With this lock a worker that takes the shard waits for the end of the transaction.
        self._sql = f"SELECT 1 FROM {lease.schema}.leases WHERE {_OWNED} FOR SHARE"

    def __call__(self, db: PostgresConnection) -> None:
        """Check it in a transaction that has begun."""
        lease = self._lease
        if db.run(self._sql, (lease.shard, lease.worker, lease.epoch)).fetchone() is None:
            raise lost(lease)


def lost(lease: Lease) -> LeaseLost:
    """The error of a lease that is no longer held."""
    return LeaseLost(
        f"worker {lease.worker} no longer owns shard {lease.shard} (epoch {lease.epoch}): it has written nothing; "
        "take the shard again"
    )
