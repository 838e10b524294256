"""The last visits of the pages that R's methods predict while crawling: times, labels and words of what was read.

    log = VisitLog.blank(visits=33)
    log = log.noted(pages, at, changed, words, max_words=100)     # after every cycle
    log = log.renewed(candidates, limit=2000)                     # who is tracked from now on
    log.text_at(slots, times)                                     # what was known of a page at a time

Only tracked pages are in the log, at most `limit`: pages that have changed, since the rate of a page that never does
needs no machine. A page leaves when all the visits in its row had the same result. So the size of the log depends on
its limits alone (pages, visits, words), not on the size of the repository.

A version keeps its most characteristic words by tf·idf, at most `max_words`; a visit that finds no change refers to the
version before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.book import PageWords
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.learn.experts.word_dynamics import idf

NO_LABEL = -1
"""The label of a first visit, which has nothing to compare with, and of places not used yet."""
_EMPTY = {"at": np.nan, "changed": NO_LABEL, "text": -1, "odds": 0.0}
"""The columns by visit, and what they hold where there was no visit."""


@dataclass(frozen=True, slots=True, eq=False)
class VisitLog:
    """Tracked pages by visit, the newest visit last. A *slot* is a row of these arrays."""

    page: Ints
    """One per slot, ascending: the page."""
    at: Floats
    """Slot by visit: its time; NaN where there was none."""
    changed: NDArray[np.int8]
    """Slot by visit: 1 if it found a change, 0 if not, else `NO_LABEL`."""
    text: Int32s
    """Slot by visit: the row of the word counts; -1 where the words are unknown."""
    odds: Float32s
    """Slot by visit: the log odds of a change within a cycle after it, by the page's own rate as of this visit."""
    start: Ints
    word: Int32s
    count: NDArray[np.uint16]

    @classmethod
    def blank(cls, visits: int) -> Self:
        """A log without pages that keeps this many visits per page."""
        shape = (0, visits)
        return cls(
            page=np.zeros(0, np.int64),
            at=np.zeros(shape),
            changed=np.zeros(shape, np.int8),
            text=np.zeros(shape, np.int32),
            odds=np.zeros(shape, np.float32),
            start=np.zeros(1, np.int64),
            word=np.zeros(0, np.int32),
            count=np.zeros(0, np.uint16),
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The log from its arrays."""
        return cls(**{item.name: arrays[item.name] for item in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __len__(self) -> int:
        """The number of tracked pages."""
        return len(self.page)

    @property
    def bags(self) -> sparse.csr_array:
        """Text by word: counts."""
        width = int(self.word.max(initial=0)) + 1
        return sparse.csr_array((self.count, self.word, self.start), shape=(len(self.start) - 1, width))

    @property
    def last(self) -> Floats:
        """One per slot: the time of the last visit; -inf before the first."""
        return np.where(np.isnan(self.at[:, -1]), -np.inf, self.at[:, -1])

    def slots(self, pages: Ints) -> Ints:
        """The slot of each page; -1 for a page that is not tracked."""
        if not len(self):
            return np.full(len(pages), -1, np.int64)
        place = np.minimum(np.searchsorted(self.page, pages), len(self) - 1)
        return np.where(self.page[place] == pages, place, -1)

    def visits_before(self, slots: Ints, times: Floats) -> Ints:
        """Slot by time: the place of the last visit before each time (row by time); -1 before the first."""
        known = self.at[slots]
        before = (known[:, None, :] < times[:, :, None]).sum(axis=2)
        empty = np.isnan(known).sum(axis=1)[:, None]
        return np.where(before > 0, empty + before - 1, -1)

    def text_at(self, slots: Ints, times: Floats) -> Int32s:
        """Slot by time: the text known just before each time; -1 for none."""
        place = self.visits_before(slots, times)
        known = np.take_along_axis(self.text[slots], np.maximum(place, 0), axis=1)
        return np.where(place >= 0, known, -1).astype(np.int32)

    def noted(
        self, pages: Ints, at: Floats, changed: Flags, odds: Floats, words: PageWords | None, max_words: int
    ) -> Self:
        """The log after answered visits, each page at most once; pages that are not tracked are ignored."""
        slot = self.slots(pages)
        tracked = slot >= 0
        slot, pages, at, changed, odds = slot[tracked], pages[tracked], at[tracked], changed[tracked], odds[tracked]
        fresh = changed | (self.text[slot, -1] < 0)
        row = _rows(words, pages)
        new = np.flatnonzero(fresh & (row >= 0))
        text = np.where(fresh, -1, self.text[slot, -1]).astype(np.int32)
        text[new] = len(self.start) - 1 + np.arange(len(new))
        first = np.isnan(self.at[slot, -1])
        label = np.where(first, NO_LABEL, changed).astype(np.int8)
        grown = self if words is None else self._with_texts(words, row[new], max_words)
        columns = {}
        for name, newest in (("at", at), ("changed", label), ("text", text), ("odds", odds)):
            column = getattr(self, name).copy()
            column[slot] = np.concatenate((column[slot, 1:], newest[:, None].astype(column.dtype)), axis=1)
            columns[name] = column
        return replace(grown, **columns)._compact()

    def renewed(self, candidates: Ints, known: Flags, limit: int) -> Self:
        """The log without pages that are of no use any more, and with candidates, the first ones first, up to a limit.

        `known` is one per page of the book: whether it may be visited.
        """
        one_result = (self.changed[:, 0] != NO_LABEL) & (self.changed == self.changed[:, -1:]).all(axis=1)
        stays = ~one_result & known[self.page]
        new = candidates[self.slots(candidates) < 0][: max(0, limit - int(stays.sum()))]
        if stays.all() and not len(new):
            return self
        page = np.concatenate((self.page[stays], new))
        order = np.argsort(page)

        def grown(column: NDArray[Any], fill: float) -> NDArray[Any]:
            empty = np.full((len(new), column.shape[1]), fill, column.dtype)
            return np.concatenate((column[stays], empty))[order]

        columns = {name: grown(getattr(self, name), fill) for name, fill in _EMPTY.items()}
        return replace(self, page=page[order], **columns)._compact()

    def with_visits(self, visits: int) -> Self:
        """The log with another number of visits per page, the newest ones."""
        missing = visits - self.at.shape[1]
        if not missing:
            return self
        columns = {}
        for name, fill in _EMPTY.items():
            column = getattr(self, name)
            empty = np.full((len(self), max(missing, 0)), fill, column.dtype)
            columns[name] = np.concatenate((empty, column[:, max(-missing, 0) :]), axis=1)
        return replace(self, **columns)._compact()

    def _with_texts(self, words: PageWords, rows: Ints, max_words: int) -> Self:
        """The log with the texts of these rows, each limited to its best words by tf·idf among the tracked pages."""
        last = self.text[:, -1][self.text[:, -1] >= 0]
        width = max(int(self.word.max(initial=0)), int(words.word.max(initial=0))) + 1
        rarity = idf(np.bincount(self.bags[last].indices, minlength=width), len(last))
        texts = sparse.csr_array((words.count, words.word, words.start), shape=(len(words.page), width))[rows]
        texts = _limited(texts, rarity, max_words)
        return replace(
            self,
            start=np.concatenate((self.start, self.start[-1] + texts.indptr[1:].astype(np.int64))),
            word=np.concatenate((self.word, texts.indices.astype(np.int32))),
            count=np.concatenate((self.count, texts.data.astype(np.uint16))),
        )

    def _compact(self) -> Self:
        """The log without texts that no visit refers to."""
        used = np.unique(self.text[self.text >= 0])
        if len(used) == len(self.start) - 1:
            return self
        number = np.full(len(self.start), -1, np.int32)
        number[used] = np.arange(len(used))
        bags = self.bags[used]
        return replace(
            self,
            text=np.where(self.text >= 0, number[self.text], -1).astype(np.int32),
            start=bags.indptr.astype(np.int64),
            word=bags.indices.astype(np.int32),
            count=bags.data.astype(np.uint16),
        )


def _rows(words: PageWords | None, pages: Ints) -> Ints:
    """The row of each page in the word counts; -1 where they lack it."""
    if words is None or not len(words.page):
        return np.full(len(pages), -1, np.int64)
    place = np.minimum(np.searchsorted(words.page, pages), len(words.page) - 1)
    return np.where(words.page[place] == pages, place, -1)


def _limited(texts: sparse.csr_array, rarity: Floats, max_words: int) -> sparse.csr_array:
    """Each row with the words of highest count times rarity, at most `max_words`, in ascending order."""
    row = np.repeat(np.arange(texts.shape[0]), np.diff(texts.indptr))
    order = np.lexsort((texts.indices, -texts.data * rarity[texts.indices], row))
    rank = np.arange(len(order)) - texts.indptr[row[order]]
    kept = order[rank < max_words]
    kept = kept[np.lexsort((texts.indices[kept], row[kept]))]
    start = np.concatenate(([0], np.cumsum(np.bincount(row[kept], minlength=texts.shape[0]))))
    return sparse.csr_array((texts.data[kept], texts.indices[kept], start), shape=texts.shape)
