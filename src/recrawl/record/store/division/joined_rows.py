"""The rows of all shards of a cluster as those of one store, block by block and column by column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from recrawl.columns import Ints
from recrawl.model import Outcome
from recrawl.record.store.division.joined_numbers import JoinedNumbers
from recrawl.record.store.division.joined_values import joined_name, joined_values
from recrawl.record.store.division.packed import NewNumbers, repacked, repacked_frame
from recrawl.record.store.division.projection import Columns, mapped, rows_of
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.sql.base import enum_list
from recrawl.record.store.sql.copying import Block, CopiedTable, block_size
from recrawl.record.store.sql.tables.marks import READ_UP_TO

_KINDS = {"page": "pages", "parent": "pages", "target": "pages", "site": "sites", "version": "versions"} | {
    "warc": "warcs",
    "why": "reasons",
    "requisite": "requisites",
    "visit": "visits",
}
_IN_REQUISITES = {"id": "requisites", "target": "requisites", "version": "requisite_versions"}
_NUMBERED = frozenset({"sites", "pages", "visits", "versions", "screenshots", "requisite_versions", "warcs", "reasons"})
_WITH_RECORDS = frozenset({"screenshots", "requisite_versions"})
_SORTED = frozenset({"tags", "change_marks"})
"""Tables of the whole whose keys have another order now."""
_MERGED = {"requisites": "first_requisites", "reasons": "first_reasons"}
_UPDATES = enum_list(Outcome.CHANGED, Outcome.NEW, Outcome.GONE)
_BLOCKS = 8


class JoinedRows:
    """Reads the views of a cluster, and gives rows new numbers; `in_folder` says where archive files are."""

    def __init__(self, source: GatheredStore, numbers: JoinedNumbers, *, in_folder: bool) -> None:
        self._source = source
        self._numbers = numbers
        self._in_folder = in_folder

    def blocks(self, table: CopiedTable) -> Iterator[Block]:
        """The rows of a table in the order of their new keys."""
        if table.name in _SORTED:
            rows = [row for block in self._renumbered_blocks(table) for row in block]
            yield sorted(rows + self._read_changes(table), key=table.key_of)
            return
        yield from self._renumbered_blocks(table)

    def _renumbered_blocks(self, table: CopiedTable) -> Iterator[Block]:
        for rows in self._read(table):
            columns = dict(zip(table.names, map(list, zip(*rows, strict=True)), strict=True))
            yield rows_of(self._renumbered(table.name, columns))

    def _read(self, table: CopiedTable) -> Iterator[Block]:
        """The rows of a view in the order of its key; visits in that of their places."""
        selected = f"SELECT {', '.join(table.columns)} FROM {table.name}"
        if table.name != "visits":
            yield from self._chunks(f"{selected} ORDER BY {table.order}")
            return
        shards = self._numbers.shards
        for _, shard, first, visits in self._numbers.blocks.tolist():
            low, high = first * shards + shard, (first + visits - 1) * shards + shard
            yield from self._chunks(f"{selected} WHERE shard = {shard} AND id BETWEEN {low} AND {high} ORDER BY id")

    def _chunks(self, sql: str) -> Iterator[Block]:
        rows = iter(self._source.connection.stream(sql))
        while block := list(islice(rows, _BLOCKS * block_size())):
            yield block

    def _renumbered(self, table: str, columns: Columns) -> Columns:
        if table in _MERGED:
            keep = np.isin(columns["id"], getattr(self._numbers, _MERGED[table])).tolist()
            columns = {
                name: [it for it, kept in zip(values, keep, strict=True) if kept] for name, values in columns.items()
            }
        kinds = dict(_IN_REQUISITES) if table == "requisites" else dict(_KINDS)
        if table in _NUMBERED:
            kinds["id"] = table
        if table in _WITH_RECORDS:
            kinds["record"] = table
        old, found = dict(columns), dict(columns)
        nothing = np.zeros(len(next(iter(columns.values()))), np.int64)
        for name, kind in kinds.items():
            if name in columns:
                found[name] = mapped(columns[name], nothing, getattr(self._numbers, kind))
        if table in _SPECIAL:
            _SPECIAL[table](self, found, old)
        return found

    def cycles(self, columns: Columns, _: Columns) -> None:
        """The first visit is the first place."""
        columns["first_visit"] = self._numbers.first_visits(columns["id"])

    def warcs(self, columns: Columns, _: Columns) -> None:
        """Names that are unique among all shards, and where the files are."""
        columns["name"] = [joined_name(name) for name in columns["name"]]
        columns["stored"] = [int(not self._in_folder)] * len(columns["name"])

    def requisites_of_all(self, columns: Columns, _: Columns) -> None:
        """What no shard has requested waits for its first request."""
        never = [version < 0 and target < 0 and failure is None for version, target, failure in zip(
            columns["version"], columns["target"], columns["failure"], strict=True)]  # fmt: skip
        columns["checked"] = [None if it else at for it, at in zip(never, columns["checked"], strict=True)]

    def links(self, columns: Columns, old: Columns) -> None:
        """Pages of the shard."""
        self._repack("targets", columns, old["page"], repacked, self._numbers.pages)

    def page_requisites(self, columns: Columns, old: Columns) -> None:
        """Requisites as the shard numbers them."""
        self._repack("requisites", columns, old["page"], repacked, self._numbers.requisites)

    def frames(self, columns: Columns, old: Columns) -> None:
        """Pages of the shard."""
        self._repack("data", columns, old["site"], repacked_frame, self._numbers.pages)

    def outbox(self, columns: Columns, _: Columns) -> None:
        """Visits in keys (`rule:visit`), pages and visits in messages."""
        columns["key"] = [self._key(key) for key in columns["key"]]
        columns["body"] = [self._body(body) for body in columns["body"]]

    def _repack(
        self,
        name: str,
        columns: Columns,
        owners: list[int],
        change: Callable[[bytes, int, NewNumbers], bytes],
        numbering: NewNumbers,
    ) -> None:
        shards = self._numbers.shards
        columns[name] = [
            change(data, owner % shards, _OfShard(numbering, shards))
            for data, owner in zip(columns[name], owners, strict=True)
        ]

    def _key(self, key: str) -> str:
        rule, colon, visit = key.rpartition(":")
        return f"{rule}:{self._numbers.places('visits', [int(visit)])[0]}" if colon and visit.isdecimal() else key

    def _body(self, text: str) -> str:
        body = json.loads(text)
        for name, kind in (("page", "pages"), ("visit", "visits")):
            if isinstance(body.get(name), int):
                body[name] = self._numbers.places(kind, [body[name]])[0]
        return json.dumps(body)

    # -- what is read ------------------------------------------------------------------------------------------

    def read_mark(self) -> int:
        """The last place up to which all changes are read."""
        unread = """SELECT min(v.id) FROM visits v LEFT JOIN read_up_to r ON r.shard = v.shard
                    WHERE v.id > coalesce(r.value, -1) GROUP BY v.shard"""
        first = [row[0] for row in self._source.db.run(unread).fetchall()]
        return min(self._numbers.places("visits", first), default=self._source.order.count()) - 1

    def _read_changes(self, table: CopiedTable) -> Block:
        """Marks of changes after the mark of all that are read, because their shard was further than others."""
        if table.name != "change_marks":
            return []
        sql = f"""SELECT v.id FROM visits v JOIN read_up_to r ON r.shard = v.shard AND v.id <= r.value
                  WHERE v.outcome IN {_UPDATES} AND v.id NOT IN (SELECT visit FROM change_marks)"""
        places = self._numbers.places("visits", [row[0] for row in self._source.db.run(sql).fetchall()])
        mark = self.read_mark()
        return [(place, 1) for place in places if place > mark]

    def values(self) -> dict[str, Any]:
        """Single values of the whole, and those of the shards joined."""
        return joined_values(self._source, self._numbers) | {READ_UP_TO: self.read_mark()}


class _OfShard:
    """New numbers of what a shard calls by its own numbers."""

    def __init__(self, numbering: NewNumbers, shards: int) -> None:
        self._numbering, self._shards = numbering, shards

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        return self._numbering.at(shards, numbers * self._shards + shards)


_SPECIAL: dict[str, Callable[[JoinedRows, Columns, Columns], None]] = {
    "cycles": JoinedRows.cycles,
    "warcs": JoinedRows.warcs,
    "requisites": JoinedRows.requisites_of_all,
    "links": JoinedRows.links,
    "page_requisites": JoinedRows.page_requisites,
    "frames": JoinedRows.frames,
    "outbox": JoinedRows.outbox,
}
