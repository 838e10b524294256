"""From URLs to requisites: known ones are looked up, new ones get a number; and which are due for another request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recrawl.columns import DAY
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.messages import Reading
from recrawl.discover.urls import key, origin
from recrawl.model import RequisiteLevel
from recrawl.record.rows import Batch, OutgoingRequisite, RequisiteRow
from recrawl.record.store import Store
from recrawl.record.tombstones import Tombstones

MAX_DEPTH = 6
"""Most stylesheets and redirects between a page and a requisite."""
_RETRY = DAY
"""Seconds after which a requisite that failed is requested again."""
_MAX_CACHED = 100_000
_MAX_SETS = 1000
"""Sets of URLs whose numbers are kept."""


class Registry:
    """All known requisites. New ones go into the current batch; like the store, it has them after the commit."""

    def __init__(self, store: Store, options: CrawlOptions) -> None:
        self._store = store
        self._options = options
        self._next = store.next_id("requisites")
        self._tombstones = Tombstones(store.meta)
        self._known: dict[int, tuple[int, int]] = {}
        """Number and level, by URL key."""
        self._fresh: dict[int, RequisiteRow] = {}
        """Rows of the current batch, by number."""
        self._packed: dict[tuple[str, str, int], bytes] = {}
        """Packed numbers, by URLs and level."""
        self._examined: set[bytes] = set()
        """Sets of requisites whose due ones were looked for: the pages of a site share most of theirs."""
        self.due: dict[int, None] = {}
        """Requisites of visited pages that are due for another request."""

    def page_read(self, page: int, level: RequisiteLevel, reading: Reading, batch: Batch) -> None:
        """Record the requisites of a page that was parsed; most pages of a site have the same."""
        wanted = reading.styles, reading.files, int(level)
        packed = self._packed.get(wanted)
        if packed is None:
            numbers = self.register(lines(reading.styles), lines(reading.files), 0, level, batch)
            packed = np.array(numbers, np.int32).tobytes()
            if len(self._packed) >= _MAX_SETS:
                self._packed.clear()
            self._packed[wanted] = packed
        batch.requisites.pages.append((page, int(level), packed))
        self.page_visited(packed, batch)

    def page_visited(self, packed: bytes, batch: Batch) -> None:
        """Note which of a page's requisites are due."""
        if packed in self._examined:
            return
        if len(self._examined) >= _MAX_CACHED:
            self._examined.clear()
        self._examined.add(packed)
        self.due.update(dict.fromkeys(self.due_among(np.frombuffer(packed, np.int32).tolist(), batch)))

    def due_among(self, numbers: Sequence[int], batch: Batch) -> list[int]:
        """Those of the requisites that are due for another request; those of other shards are handed over to them."""
        now = self._options.clock()
        age = self._options.requisite_age
        due = self._store.requisites.due(numbers, now - age, now - min(age, _RETRY), now)
        if self._options.ownership is None:
            return due
        for row in self.rows(due):
            if not self._options.owns(row.url):
                self.update(self._handed_over(row, batch), batch)
                due.remove(row.id)
        return due

    def take(self, handed: Sequence[OutgoingRequisite], batch: Batch) -> None:
        """Take requisites that other shards need: new ones are requested, known ones if they are due."""
        for one in handed:
            urls = [one.url]
            sheets, others = (urls, []) if one.style else ([], urls)
            numbers = self.register(sheets, others, one.depth, RequisiteLevel(one.level), batch)
            self.due.update(dict.fromkeys(self.due_among(numbers, batch)))

    def _handed_over(self, row: RequisiteRow, batch: Batch) -> RequisiteRow:
        """Leave the request to the shard that owns the URL; the row has the time of that."""
        ownership = self._options.ownership
        assert ownership is not None
        batch.requisites.outbox.append(
            OutgoingRequisite(ownership.shard_of(row.url), row.key, row.url, row.style, row.level, row.depth)
        )
        return row._replace(checked=self._options.clock())

    def register(
        self, styles: Sequence[str], files: Sequence[str], depth: int, level: RequisiteLevel, batch: Batch
    ) -> list[int]:
        """The numbers of requisites; none of those that only a chain of stylesheets or redirects leads to."""
        if depth > MAX_DEPTH:
            return []
        wanted = {key(url): (url, False) for url in (files if level >= RequisiteLevel.ALL else ())}
        wanted.update((key(url), (url, True)) for url in styles)
        if self._tombstones:
            wanted = {it: what for it, what in wanted.items() if not self._tombstones.covers(what[0], origin)}
        missing = [it for it in wanted if it not in self._known]
        if missing:
            self._make_room()
            self._known.update((it, (number, at)) for it, number, at in self._store.requisites.known(missing))
        numbers = []
        for it, (url, style) in wanted.items():
            number, before = self._known.get(it, (-1, RequisiteLevel.NONE))
            if number < 0:
                number, self._next = self._next, self._next + 1
                row = RequisiteRow(number, it, int(style), int(level), depth, None, 0, None, -1, -1, "", "", url)
                self._put(row, batch)
            elif before < level:  # what it needs itself was not looked for: request it again
                row = self.rows([number])[0]._replace(level=int(level), checked=None)
                self._put(row, batch)
            numbers.append(number)
        return numbers

    def _put(self, row: RequisiteRow, batch: Batch) -> None:
        """Add a row that is to be requested."""
        if not self._options.owns(row.url):
            row = self._handed_over(row, batch)
        self._known[row.key] = (row.id, row.level)
        self.update(row, batch)

    def update(self, row: RequisiteRow, batch: Batch) -> None:
        """Add a new or changed row to the batch."""
        self._fresh[row.id] = row
        batch.requisites.rows.append(row)

    def rows(self, numbers: Sequence[int]) -> list[RequisiteRow]:
        """Rows by number, those of the current batch too."""
        stored = self._store.requisites.get_many([number for number in numbers if number not in self._fresh])
        return [self._fresh[number] for number in numbers if number in self._fresh] + stored

    def committed(self, _batch: Batch) -> None:
        """Forget the rows of the batch: the store has them now."""
        self._fresh.clear()

    def _make_room(self) -> None:
        if len(self._known) >= _MAX_CACHED:
            fresh = {row.key: (row.id, row.level) for row in self._fresh.values()}
            self._known = fresh


def lines(text: str) -> list[str]:
    """The URLs in a text with one per line."""
    return text.split("\n") if text else []
