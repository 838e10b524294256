"""The `pooled` predictor while crawling: it learns from visits and predicts change probabilities.

It keeps decaying sums over the visits of each page, site and directory (`ledger`), and for the newest visits the
features before each visit and its result. From these it refits one model for all pages at regular intervals. All state
is in the book's memory under a name, so it follows from the visits alone, in the lab as live.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Ints
from recrawl.learn.pooled.features import BASELINE, feature_names, features
from recrawl.learn.pooled.ledger import Ledger
from recrawl.model import Outcomes, Pages

Method = Literal["pooled", "1d"]
MAX_ROWS = 40_000
"""Training rows kept, the newest."""
_BATCH = 50_000
_EMPTY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class PooledLearner:
    """State stored under a name in the book's memory: `update` adds a cycle's visits, `predict` gives probabilities."""

    name: str
    method: Method = "pooled"
    """`1d`: no model; the page's own rate over its last visits."""
    retrain: int = 7
    """Cycles between two fits of the model."""

    def predict(self, book: Book, pages: Pages) -> tuple[Floats, str]:
        """The probability that each page has changed by now, and a phrase for what it rests on."""
        penalty = failure_penalty(book, pages)
        model = self._model(book) if self._stored(book, "ledger") else None
        if model is None:
            return self.own_rate(book, pages, book.now) * penalty, "its own history says"
        parts = [model.probability(rows) for rows in self._rows(book, pages, book.now)]
        return np.concatenate([np.zeros(0), *parts]) * penalty, "the model of all pages says"

    def own_rate(self, book: Book, pages: Pages, when: Floats | float) -> Floats:
        """The probability of a change at a time by the page's own visits alone, without a model."""
        if not self._stored(book, "ledger"):
            return _by_counts(book, pages)
        column = feature_names().index(BASELINE)
        parts = [np.nan_to_num(rows[:, column], nan=0.5) for rows in self._rows(book, pages, when)]
        return np.concatenate([np.zeros(0), *parts])

    def _rows(self, book: Book, pages: Pages, when: Floats | float) -> Iterator[Float32s]:
        """The features of pages at a time, in batches."""
        ledger, at = self._ledger(book), np.broadcast_to(np.asarray(when, np.float64), len(pages))
        for begin in range(0, len(pages), _BATCH):
            part = slice(begin, begin + _BATCH)
            yield features(ledger, pages[part], at[part], book.depth)

    def _model(self, book: Book) -> Any:
        stored = self._stored(book, "model") if self._same_columns(book) else None
        from recrawl.learn.pooled.model import PooledModel  # lazy: loads scikit-learn

        return PooledModel.restored(stored) if stored else None

    def update(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Store the features before each visit with its result; refit the model every `retrain` cycles."""
        ledger = self._ledger(book)
        ok = seen.answered
        pages, changed, when = seen.pages[ok], seen.changed[ok], at[ok]
        cycles = int(book.memory.get(f"{self.name}.cycles", np.zeros(1))[0]) + 1
        book.memory[f"{self.name}.cycles"] = np.array([cycles])
        if self.method == "pooled":
            self._drop_other_columns(book)
            compared = ~np.isnan(ledger.last[pages])
            rng = np.random.default_rng([cycles, 29])
            rows = features(ledger, pages[compared], when[compared], book.depth)
            self._keep_rows(book, rows, changed[compared], when[compared], rng)
            if cycles % int(self.retrain) == 0:
                self._fit(book, rng)
        ledger.note(pages, when, changed)
        for name, column in ledger.arrays().items():
            book.memory[f"{self.name}.ledger.{name}"] = column

    def _same_columns(self, book: Book) -> bool:
        """Whether stored rows and model have the current columns; those of an older version may not."""
        return bool(np.array_equal(book.memory.get(f"{self.name}.columns", _EMPTY), _columns()))

    def _drop_other_columns(self, book: Book) -> None:
        if not self._same_columns(book):
            outdated = tuple(f"{self.name}.{part}" for part in ("rows", "labels", "when", "model."))
            for name in [name for name in book.memory if name.startswith(outdated)]:
                del book.memory[name]
            book.memory[f"{self.name}.columns"] = _columns()

    def _keep_rows(
        self,
        book: Book,
        rows: Float32s,
        labels: Flags,
        when: Floats,
        rng: np.random.Generator,
    ) -> None:
        """Store the newest rows; a cycle that alone would replace most of them is sampled."""
        if len(rows) > MAX_ROWS // 4:
            sample = np.sort(rng.choice(len(rows), MAX_ROWS // 4, replace=False))
            rows, labels, when = rows[sample], labels[sample], when[sample]
        for name, column in (("rows", rows), ("labels", labels), ("when", when)):
            key = f"{self.name}.{name}"
            old = book.memory.get(key, column[:0])
            book.memory[key] = np.concatenate((old, column))[-MAX_ROWS:]

    def _fit(self, book: Book, rng: np.random.Generator) -> None:
        rows, labels, when = (book.memory[f"{self.name}.{name}"] for name in ("rows", "labels", "when"))
        from recrawl.learn.pooled import model as pooled  # lazy: loads slowly

        model = pooled.fit(rows, labels, when, feature_names().index(BASELINE), rng)
        for name, column in model.arrays().items():
            book.memory[f"{self.name}.model.{name}"] = np.asarray(column)

    def _ledger(self, book: Book) -> Ledger:
        """The stored ledger; a page that the book knew before counts as visited once, at its last visit."""
        folder = book.folder if book.folders is not None else np.zeros(len(book), np.int64)
        stored = self._stored(book, "ledger")
        ledger = Ledger.restored(stored, book.site, folder) if stored else Ledger.of(book.site, folder)
        known = np.isnan(ledger.last) & np.isfinite(book.last_visit)
        ledger.first[known] = ledger.last[known] = book.last_visit[known]
        return ledger

    def _stored(self, book: Book, part: str) -> dict[str, NDArray[Any]]:
        prefix = f"{self.name}.{part}."
        return {name.removeprefix(prefix): column for name, column in book.memory.items() if name.startswith(prefix)}


def failure_penalty(book: Book, pages: Pages) -> Floats:
    """The factor by which failed visits lower a probability; else a dead page would be visited in every cycle."""
    return np.asarray(0.5 ** np.minimum(book.failures[pages], 20))


def _columns() -> Ints:
    """A checksum of the feature names."""
    return np.array([crc32(",".join(feature_names()).encode())])


def _by_counts(book: Book, pages: Pages) -> Floats:
    """From the book alone: the share of visits that found a change, compounded over the days since the last visit."""
    compared = np.maximum(book.visits[pages] - 1, 0)
    changed = np.clip(book.changes[pages] - 1, 0, compared)
    rate = (changed + 0.3) / (compared + 1.0)
    days = (book.now - np.maximum(book.last_visit[pages], book.found[pages])) / DAY
    return np.asarray(1.0 - (1.0 - rate) ** np.clip(np.nan_to_num(days, posinf=30.0), 0.1, 30.0))
