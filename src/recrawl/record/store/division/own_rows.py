"""What belongs to the whole of a cluster: tags, alerts, read marks, single values, the order of visits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from recrawl.record.store.division.owners import RowOwners, ShardOf
from recrawl.record.store.sql.copying import TOKEN, Block, CopiedTable, stretches
from recrawl.record.store.sql.store import SqlStore
from recrawl.record.store.sql.tables.marks import READ_UP_TO

EVERYWHERE = ("aliases", "scopes", "site_scopes", "tombstones")
"""Values that every shard has."""
BY_ORIGIN = "rendering"
BY_SITE = "shared-texts"
MADE_ANEW = frozenset({
    TOKEN, READ_UP_TO, "old_spellings", "touched_pages", "indexed", "models", "batches-of-cycle",
    "copies", "parameters", "absent",
})  # fmt: skip
"""Values that a shard computes again, or that are about one machine."""
CURSOR = re.compile(r"alerts:seen|sink:.*:delivered")
"""Values that are the last visit which somebody has read."""
Values = dict[str, Any]


class VisitBlock(NamedTuple):
    """Consecutive visits of a shard, and their place among those of all."""

    place: int
    shard: int
    first: int
    visits: int


class OwnRows:
    """Tables and values of the whole."""

    def __init__(self, source: SqlStore, owners: RowOwners, shard_of: ShardOf) -> None:
        self._source = source
        self._owners = owners
        self._shard_of = shard_of
        names = [row[0] for row in source.connection.execute("SELECT name FROM meta ORDER BY name").fetchall()]
        self._values: Values = {name: source.meta.get(name, None) for name in names}

    def rows(self, table: CopiedTable) -> Block:
        """All rows of a table of the whole, by key: the numbers of pages have another order now."""
        change = _CHANGED.get(table.name)
        rows = [row for stretch in stretches(self._source, table) for row in stretch.rows]
        if change is None or not rows:
            return rows
        columns = dict(zip(table.names, map(list, zip(*rows, strict=True)), strict=True))
        change(self, columns)
        return sorted(zip(*columns.values(), strict=True), key=table.key_of)

    def values(self) -> Values:
        """Single values of the whole."""
        apart = {*EVERYWHERE, BY_ORIGIN, BY_SITE, *MADE_ANEW}
        found = {name: value for name, value in self._values.items() if name not in apart}
        cursors = {name: int(value) for name, value in found.items() if CURSOR.fullmatch(name) and value is not None}
        ends = self._ends()
        return found | {name: ends.get(visit + 1, -1) for name, visit in cursors.items()}

    def shard_values(self, shard: int) -> Values:
        """Single values of a shard."""
        found = {name: self._values[name] for name in EVERYWHERE if name in self._values}
        known = json.loads(self._values.get(BY_ORIGIN) or "{}")
        own = {origin: it for origin, it in known.items() if self._shard_of(f"{origin}/") == shard}
        texts = self._shared_texts(shard)
        return found | ({BY_ORIGIN: json.dumps(own)} if own else {}) | ({BY_SITE: json.dumps(texts)} if texts else {})

    def _shared_texts(self, shard: int) -> Values:
        """The texts that several pages of a site had, by site, each with those pages."""
        sites, pages, found = self._owners.sites, self._owners.pages, {}
        for site, (digest, since, title, recent, *rest) in json.loads(self._values.get(BY_SITE) or "{}").items():
            if sites.owner[int(site)] == shard:
                numbers = pages.local[[page for page, *_ in recent]].tolist() if recent else []
                own = [[number, *texts] for number, (_, *texts) in zip(numbers, recent, strict=True)]
                found[str(sites.local[int(site)])] = [digest, since, title, own, *rest]
        return found

    def read_up_to(self) -> list[tuple[int, int]]:
        """For each shard the last visit whose change counts as read."""
        found, shards = self._values.get(READ_UP_TO), self._owners.shards
        mark = -1 if found is None else int(found)
        counts = self._owners.visits.before([mark + 1])[0].tolist()
        return [(shard, (count - 1) * shards + shard) for shard, count in enumerate(counts) if count]

    def visit_blocks(self) -> list[VisitBlock]:
        """The order of all visits: that of the cycles, and what somebody has read before what he has not."""
        return [block for _, blocks in self._segments() for block in blocks]

    def _ends(self) -> dict[int, int]:
        """For each cut the last visit before it in the order of all visits, by its new number; -1 for none."""
        found, newest = {}, -1
        for end, blocks in self._segments():
            for block in blocks:
                newest = (block.first + block.visits - 1) * self._owners.shards + block.shard
            found[end] = newest
        return found

    def _segments(self) -> Iterator[tuple[int, list[VisitBlock]]]:
        """Old visits up to a cut, and the blocks of the shards since the cut before."""
        visits = self._owners.visits
        cursors = [
            int(value) + 1 for name, value in self._values.items() if CURSOR.fullmatch(name) and value is not None
        ]
        began = [row[0] for row in self._source.connection.execute("SELECT first_visit FROM cycles").fetchall()]
        cuts = sorted({min(it, len(visits.owner)) for it in (*cursors, *began)} | {0, len(visits.owner)})
        counts, place = visits.before(cuts), 0
        for end, before, after in zip(cuts[1:], counts, counts[1:], strict=False):
            blocks = []
            for shard in np.flatnonzero(after > before).tolist():
                first, made = int(before[shard]), int(after[shard] - before[shard])
                blocks.append(VisitBlock(place, shard, first, made))
                place += made
            yield end, blocks

    def tags(self, columns: dict[str, list[Any]]) -> None:
        """Sites and pages; a tag of a whole site has no page."""
        columns["site"] = self._owners.sites.whole(columns["site"])
        columns["page"] = self._owners.pages.whole(columns["page"])

    def change_marks(self, columns: dict[str, list[Any]]) -> None:
        """Visits."""
        columns["visit"] = self._owners.visits.whole(columns["visit"])

    def outbox(self, columns: dict[str, list[Any]]) -> None:
        """Pages, and visits in keys (`rule:visit`) and messages."""
        columns["page"] = self._owners.pages.whole(columns["page"])
        columns["key"] = [self._key(key) for key in columns["key"]]
        columns["body"] = [self._body(body) for body in columns["body"]]

    def _key(self, key: str) -> str:
        rule, colon, visit = key.rpartition(":")
        return f"{rule}:{self._owners.visits.whole([int(visit)])[0]}" if colon and visit.isdecimal() else key

    def _body(self, text: str) -> str:
        body = json.loads(text)
        for name, numbering in (("page", self._owners.pages), ("visit", self._owners.visits)):
            if isinstance(body.get(name), int):
                body[name] = numbering.whole([body[name]])[0]
        return json.dumps(body)


_CHANGED: dict[str, Callable[[OwnRows, dict[str, list[Any]]], None]] = {
    "tags": OwnRows.tags,
    "change_marks": OwnRows.change_marks,
    "outbox": OwnRows.outbox,
}
