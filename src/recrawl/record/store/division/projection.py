"""The rows of a table as those of each shard, block by block and column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from recrawl.columns import Ints
from recrawl.record.store.division.numbering import Owners
from recrawl.record.store.division.owners import RowOwners, ShardOf
from recrawl.record.store.division.packed import NewNumbers, repacked, repacked_frame
from recrawl.record.store.sql.copying import Block, CopiedTable

OWN_TABLES = frozenset({"tags", "change_marks", "saved_filters", "outbox", "subscriptions", "proofs", "pushers"})
"""Tables that belong to the whole of a cluster, besides single values."""
_NUMBERED = frozenset({"sites", "pages", "visits", "versions", "screenshots", "requisite_versions"})
_OF_PAGES = frozenset({"links", "hints", "pushed", "requests", "page_requisites"})
_BY_URL = {"pushes": ("url", ""), "requisite_hosts": ("origin", "/")}
"""The column with the URL, and what is missing there."""
_REFERENCES = {"page": "pages", "parent": "pages", "target": "pages", "site": "sites", "version": "versions"}
_IN_REQUISITES = {"id": "requisites", "target": "requisites", "version": "requisite_versions"}
_LATER = {"checked": 0.0, "failures": 0, "failure": None, "version": -1, "target": -1, "etag": "", "modified": ""}
"""A requisite of another shard: its owner has requested it; it is due when a page that needs it is visited."""
Columns = dict[str, list[Any]]


class Projection:
    """Gives each shard its rows. `starts` has the new places of records in archive files, by table and number."""

    def __init__(self, owners: RowOwners, shard_of: ShardOf, starts: Mapping[str, Ints], closed: float) -> None:
        """`closed` is the end of crawls that were not finished: the cluster makes one of its own."""
        self._owners = owners
        self._shard_of = shard_of
        self._starts = starts
        self._closed = closed
        self._counted: dict[str, tuple[tuple[int, ...], Ints]] = {}
        """Counts of rows before those of the last block of cycles, for all shards."""

    def divided(self, table: CopiedTable, block: Block) -> Iterator[tuple[int, Block]]:
        """The rows of each shard, in their order; a shard without rows may be left out."""
        if not block:
            return
        whole: Columns = {
            name: list(values) for name, values in zip(table.names, zip(*block, strict=True), strict=True)
        }
        shared = _SHARED.get(table.name)
        if shared is not None:
            for shard in range(self._owners.shards):
                yield shard, rows_of(shared(self, dict(whole), shard))
            return
        owner = self._owner(table.name, whole)
        columns = self._renumbered(table.name, whole, owner)
        rows = rows_of(columns)
        order = np.argsort(owner, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
            yield int(owner[part[0]]), [rows[place] for place in part.tolist()]

    def _owner(self, table: str, columns: Columns) -> Ints:
        """The shard of each row."""
        if table in _BY_URL:
            column, path = _BY_URL[table]
            return np.array([self._shard_of(f"{url}{path}") for url in columns[column]], np.int64)
        of, name = (
            (table, "id") if table in _NUMBERED else ("pages", "page") if table in _OF_PAGES else ("sites", "site")
        )
        owner: Owners = getattr(self._owners, of).owner
        return owner[columns[name]].astype(np.int64)

    def _renumbered(self, table: str, columns: Columns, owner: Ints) -> Columns:
        """The columns with the numbers of the shards; `warc` stays, each shard has its part under the same number."""
        found = dict(columns)
        references = dict(_REFERENCES)
        if table in _NUMBERED:
            references["id"] = table
        if table == "requisite_versions":
            references["requisite"] = "requisites"
        for name, kind in references.items():
            if name in columns:
                found[name] = mapped(columns[name], owner, getattr(self._owners, kind))
        if table in self._owners.records:
            found["record"] = self._owners.records[table][columns["id"]].tolist()
        if table in self._starts:
            found["start"] = self._starts[table][columns["id"]].tolist()
        packed = _PACKED.get(table)
        if packed is not None:
            name, change, kind = packed
            numbering = getattr(self._owners, kind)
            found[name] = [
                change(it, shard, numbering) for it, shard in zip(columns[name], owner.tolist(), strict=True)
            ]
        return found

    def requisites(self, columns: Columns, shard: int) -> Columns:
        """The requisites that a shard knows; of those of other shards it knows no more than the URL."""
        numbers = np.array(columns["id"], np.int64)
        known = np.flatnonzero(self._owners.requisites.knows(shard, numbers))
        found: Columns = {name: [values[place] for place in known.tolist()] for name, values in columns.items()}
        here = np.full(len(known), shard)
        for name, kind in _IN_REQUISITES.items():
            found[name] = mapped(found[name], here, getattr(self._owners, kind))
        foreign = np.flatnonzero(self._owners.requisite_owner.owner[numbers[known]] != shard)
        for place in foreign.tolist():
            for name, value in _LATER.items():
                keeps = name == "checked" and found[name][place] is not None
                found[name][place] = found[name][place] if keeps else value
        return found

    def cycles(self, columns: Columns, shard: int) -> Columns:
        """All cycles, with the first visit and the pages of the shard."""
        for name, numbering in (("first_visit", self._owners.visits), ("known", self._owners.pages)):
            wanted = tuple(columns[name])
            if name not in self._counted or self._counted[name][0] != wanted:
                self._counted[name] = wanted, numbering.before(wanted)
            columns[name] = self._counted[name][1][:, shard].tolist()
        columns["finished"] = [self._closed if it is None else it for it in columns["finished"]]
        return columns

    def push_sources(self, columns: Columns, shard: int) -> Columns:
        """What is known of senders of pushes adds up over the shards: each gets an equal part."""
        shards = self._owners.shards
        columns["heard"] = [it // shards + (shard < it % shards) for it in columns["heard"]]
        for name in ("right", "wrong"):
            columns[name] = [it / shards for it in columns[name]]
        return columns


def _whole(_: Projection, columns: Columns, __: int) -> Columns:
    return columns


def _summaries(_: Projection, columns: Columns, shard: int) -> Columns:
    """The counts of a cycle add up over the shards: shard 0 gets those of all, the others nothing."""
    empty = {"failures": "{}", "pages": None, "freshness": None, "freshness_sd": None, "age": None, "ages": None}
    floats = ("seconds", "expected", "expected_sd")
    if not shard:
        return columns
    return {
        name: values if name == "cycle" else [empty.get(name, 0.0 if name in floats else 0)] * len(values)
        for name, values in columns.items()
    }


_SHARED: dict[str, Callable[[Projection, Columns, int], Columns]] = {
    "reasons": _whole,
    "cycles": Projection.cycles,
    "cycle_summaries": _summaries,
    "push_sources": Projection.push_sources,
    "requisites": Projection.requisites,
}
"""Tables of which several shards have a row."""
_PACKED: dict[str, tuple[str, Callable[[bytes, int, NewNumbers], bytes], str]] = {
    "links": ("targets", repacked, "pages"),
    "page_requisites": ("requisites", repacked, "requisites"),
    "frames": ("data", repacked_frame, "pages"),
}


def mapped(values: list[Any], shards: Ints, numbering: NewNumbers) -> list[Any]:
    """New numbers; what is negative or missing says that there is none, and stays what it is."""
    old = np.array([-1 if it is None else it for it in values], np.int64)
    new = np.where(old < 0, old, numbering.at(shards, old)).tolist()
    return [None if it is None else number for it, number in zip(values, new, strict=True)]


def rows_of(columns: Columns) -> Block:
    """Columns as rows."""
    return list(zip(*columns.values(), strict=True))
