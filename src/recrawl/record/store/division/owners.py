"""Which shard owns each row of a store: that of its site. Read once, as columns, before anything is copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from recrawl.columns import Ints
from recrawl.record.store.division.numbering import NOBODY, Numbering, Owners, SharedNumbering
from recrawl.record.store.protocol import NumberedTable
from recrawl.record.store.sql.store import SqlStore

ShardOf = Callable[[str], int]
"""The shard of a URL; an origin has no path, and gets one first."""
_ROWS = 1 << 16


class RowOwners:
    """The new numbers of all rows of a store: 6 bytes for each page, visit and version."""

    def __init__(self, source: SqlStore, shards: int, shard_of: ShardOf) -> None:
        self._source = source
        self.shards = shards
        self.sites = Numbering(self._by_url("sites", "origin", shard_of), shards)
        self.pages = self._owned("pages", "site", self.sites)
        self.visits = self._owned("visits", "page", self.pages)
        self.versions = self._owned("versions", "page", self.pages)
        self.screenshots = self._owned("screenshots", "page", self.pages)
        self.requisite_owner = Numbering(self._by_url("requisites", "url", shard_of), shards)
        self.requisites = SharedNumbering(self._members())
        self.requisite_versions = self._owned("requisite_versions", "requisite", self.requisite_owner)
        self.records = {
            "screenshots": self._records("screenshots", self.screenshots),
            "requisite_versions": self._records("requisite_versions", self.requisite_versions),
        }
        """For each row the new number of the first one in its shard that has the same bytes."""

    def columns(self, table: str, *names: str) -> Iterator[Ints]:
        """Columns of a table in the order of its numbers, block by block: one row of the array for each column."""
        rows = iter(self._source.connection.stream(f"SELECT id, {', '.join(names)} FROM {table} ORDER BY id"))
        kind = np.dtype([(name, np.int64) for name in ("id", *names)])
        while len(block := np.fromiter(islice(rows, _ROWS), kind)):
            yield np.array([block[name] for name in ("id", *names)])

    def last_time(self) -> float:
        """The time of the newest visit; 0 without one."""
        found = self._source.connection.execute("SELECT at FROM visits ORDER BY id DESC LIMIT 1").fetchone()
        return 0.0 if found is None else float(found[0])

    def _owned(self, table: NumberedTable, by: str, of: Numbering) -> Numbering:
        """Rows that go with a row of another table."""
        owner = np.full(self._source.next_id(table), NOBODY, np.int16)
        for numbers, others in self.columns(table, by):
            owner[numbers] = of.owner[others]
        return Numbering(owner, self.shards)

    def _by_url(self, table: NumberedTable, column: str, shard_of: ShardOf) -> Owners:
        owner = np.full(self._source.next_id(table), NOBODY, np.int16)
        for number, url in self._source.connection.stream(f"SELECT id, {column} FROM {table} ORDER BY id"):
            owner[number] = shard_of(f"{url}/" if column == "origin" else url)
        return owner

    def _members(self) -> list[Ints]:
        """The requisites that each shard knows: its own, those of its pages, and targets of its redirects."""
        owner, size = self.requisite_owner.owner, len(self.requisite_owner.owner)
        own = np.flatnonzero(owner != NOBODY)
        known = owner[own].astype(np.int64) * size + own
        for numbers, targets in self.columns("requisites", "target"):
            there = targets >= 0
            known = np.union1d(known, owner[numbers[there]].astype(np.int64) * size + targets[there])
        for found in self._needed(size):
            known = np.union1d(known, found)
        return [known[known // max(1, size) == shard] % max(1, size) for shard in range(self.shards)]

    def _needed(self, size: int) -> Iterator[Ints]:
        """What the pages of shards need, as shard * size + requisite."""
        rows = iter(self._source.connection.stream("SELECT page, requisites FROM page_requisites ORDER BY page"))
        while block := list(islice(rows, _ROWS)):
            numbers = [np.frombuffer(packed, "<i4").astype(np.int64) for _, packed in block]
            shards = self.pages.owner[[page for page, _ in block]].astype(np.int64)
            yield np.unique(np.concatenate(numbers) + np.repeat(shards, list(map(len, numbers))) * size)

    def _records(self, table: str, numbering: Numbering) -> Ints:
        record = np.full(len(numbering.owner), -1, np.int64)
        for numbers, records in self.columns(table, "record"):
            record[numbers] = records
        if not len(record):
            return record
        same = record * self.shards + numbering.owner
        _, first, place = np.unique(same, return_index=True, return_inverse=True)
        return np.where(record < 0, record, numbering.local[first[place]].astype(np.int64))
