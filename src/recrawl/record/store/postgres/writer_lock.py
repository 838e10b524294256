"""One writer at a time in a schema: an advisory lock of the connection, which the server releases when that ends.

If the connection is cut, another writer may come between. So a writer counts up an epoch, as the owner of a shard does,
and after a cut goes on only if it gets the lock again and the epoch is still its own.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from recrawl.errors import LeaseLost, RepositoryBusy, StorageFailure
from recrawl.record.store.postgres.connection import PostgresConnection

_KEY = "hashtext('recrawl writer'), hashtext(current_schema())"
_TRY = f"SELECT pg_try_advisory_lock({_KEY})"
_HOLDER = """SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint, l.objid::bigint, l.objsubid) =
        (hashtext('recrawl writer')::bigint & 4294967295, hashtext(current_schema())::bigint & 4294967295, 2)
    AND a.datname = current_database()"""
_END = """SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint, l.objid::bigint, l.objsubid) =
        (hashtext('recrawl writer')::bigint & 4294967295, hashtext(%s)::bigint & 4294967295, 2)
    AND a.datname = current_database()"""
_WRITER = -1
"""The row of the writer among the shards in `leases`."""
_COUNT = f"""INSERT INTO leases AS l (shard, worker, epoch, ends) VALUES ({_WRITER}, %s, 1, 0)
    ON CONFLICT (shard) DO UPDATE SET worker = excluded.worker, epoch = l.epoch + 1 RETURNING epoch"""
_EPOCH = f"SELECT epoch FROM leases WHERE shard = {_WRITER}"


def end_writers(db: PostgresConnection, schema: str) -> None:
    """End the connection that holds the lock of a schema: its process may hang, or be cut off from the network."""
    db.run(_END, (schema,))


class WriterLock:
    """Held from the beginning to the end of a connection.

    `wait` is called between attempts with the name of the holder; it returns False to give up.
    """

    def __init__(self, db: PostgresConnection, what: str, wait: Callable[[str], bool]) -> None:
        self._name = f"recrawl {what} (process {os.getpid()} on {socket.gethostname()[:20]})"
        self._store = db.target.name
        while not db.run(_TRY).fetchone()[0]:
            found = db.run(_HOLDER).fetchone()
            holder = found[0] if found and found[0] else "another process"
            if not wait(holder):
                raise RepositoryBusy(f"{holder} is working on this repository: wait for it to end, or stop it")
        self._sign(db.run)
        self._epoch = db.run(_COUNT, (self._name,)).fetchone()[0]
        db.resumed = self._resume

    def _sign(self, run: Callable[..., Any]) -> None:
        run("SELECT set_config('application_name', %s, false)", (self._name,))

    def _resume(self, run: Callable[..., Any]) -> None:
        """Take the lock again on a new connection."""
        if not run(_TRY).fetchone()[0]:  # the server may not have noticed yet that the old connection is gone
            raise StorageFailure(f"{self._store} is locked by another process: run the command again")
        if run(_EPOCH).fetchone()[0] != self._epoch:
            raise LeaseLost(f"another process has written to {self._store} while the connection was cut: run it again")
        self._sign(run)
