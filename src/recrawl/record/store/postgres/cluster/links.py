"""Links across shards: a shard that finds a URL of another one puts it here, and its owner takes it from here.

Who finds a link writes it in the transaction of the visit (`PostgresStore.commit`). Its owner adds the page, then
removes the row: after a crash in between it finds the page known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recrawl.record.rows import OutgoingLink
from recrawl.record.store.postgres.connection import PostgresConnection


class OutboxLink(NamedTuple):
    """A URL for another shard."""

    id: int
    url: str
    depth: int
    alias: str
    """The site of a seed that has moved to the URL's site; empty if it has not."""


def insert_links(db: PostgresConnection, schema: str, links: Iterable[OutgoingLink]) -> None:
    """Add links in the transaction of a batch; one that waits already keeps the shorter path."""
    rows = sorted(set(links))  # in one order for all shards, so that they do not wait for each other
    db.executemany(
        f"""INSERT INTO {schema}.outbox_links AS o (shard, key, url, depth, alias) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (shard, key) DO UPDATE SET depth = least(o.depth, excluded.depth)""",
        rows,
    )


class OutboxLinks:
    """The table `outbox_links`."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def waiting(self, shard: int, limit: int) -> list[OutboxLink]:
        """The oldest links for a shard."""
        sql = "SELECT id, url, depth, alias FROM outbox_links WHERE shard = %s ORDER BY id LIMIT %s"
        return [OutboxLink(*row) for row in self._db.run(sql, (shard, limit))]

    def remove(self, links: Iterable[OutboxLink]) -> None:
        """Remove links whose pages are known now."""
        self._db.run("DELETE FROM outbox_links WHERE id = ANY (%s)", ([link.id for link in links],))

    def count(self, shard: int) -> int:
        """The number of links that wait for a shard."""
        found = self._db.run("SELECT count(*) FROM outbox_links WHERE shard = %s", (shard,)).fetchone()
        return int(found[0])
