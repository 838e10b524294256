"""Links and requisites across shards: who finds a URL of another shard puts it here, its owner takes it from here.

Who finds one writes it in the transaction of the visit (`PostgresStore.commit`). Its owner adds the page or requisite,
then removes the row: after a crash in between it finds it known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recrawl.record.rows import OutgoingLink, OutgoingRequisite
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


def insert_requisites(db: PostgresConnection, schema: str, requisites: Iterable[OutgoingRequisite]) -> None:
    """Add requisites in the transaction of a batch; one that waits already is kept for all that need it."""
    rows = sorted(set(requisites))
    db.executemany(
        f"""INSERT INTO {schema}.outbox_requisites AS o (shard, key, url, style, level, depth)
        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (shard, key) DO UPDATE SET style = greatest(o.style, excluded.style),
            level = greatest(o.level, excluded.level), depth = least(o.depth, excluded.depth)""",
        rows,
    )


class OutboxRequisites:
    """The table `outbox_requisites`."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def waiting(self, shard: int, limit: int) -> dict[int, OutgoingRequisite]:
        """The oldest requisites for a shard, by the number of their row."""
        sql = """SELECT id, shard, key, url, style, level, depth FROM outbox_requisites WHERE shard = %s
            ORDER BY id LIMIT %s"""
        return {number: OutgoingRequisite(*row) for number, *row in self._db.run(sql, (shard, limit))}

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove requisites that their shard knows now."""
        self._db.run("DELETE FROM outbox_requisites WHERE id = ANY (%s)", (list(numbers),))
