"""The `pooled` predictor as it learns while it crawls: from visits to a model, and from the model to chances.

Of every page it keeps fading sums over its visits, of its site and directory too (`pooled_ledger`); of the newest
visits what was known before them and what they found. From these one model for all pages is fitted, again and again.
All of it lies in the book's memory, under a name: what is known follows from the visits, in the lab as live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Ints
from recrawl.learn.pooled.features import BASELINE, features, names
from recrawl.learn.pooled.ledger import Ledger
from recrawl.model import Outcomes, Pages

Method = Literal["pooled", "1d"]
ROWS = 40_000
"""Visits that are kept to learn from, the newest."""
_AT_ONCE = 50_000
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Pooling:
    """What is kept under a name: `learn` takes in cycles, `chances` says what follows."""

    name: str
    method: Method = "pooled"
    """`1d`: there is no model, a page's own rate at its last visits is all."""
    retrain: int = 7
    """Cycles after which the model is fitted anew."""

    def chances(self, book: Book, pages: Pages) -> tuple[Floats, str]:
        """How likely each page has changed by now, and how that is known."""
        patience = 0.5 ** np.minimum(book.failures[pages], 20)  # else a dead page would be asked for in every cycle
        if not self._kept(book, "ledger"):
            return _by_counts(book, pages) * patience, "its own history says"
        ledger = self._ledger(book)
        model = self._model(book)
        column = names().index(BASELINE)
        parts = [np.zeros(0)]
        for begin in range(0, len(pages), _AT_ONCE):
            rows = features(ledger, pages[begin : begin + _AT_ONCE], book.now, book.depth)
            parts.append(model.probability(rows) if model else np.nan_to_num(rows[:, column], nan=0.5))
        told = "the model of all pages says" if model else "its own history says"
        return np.concatenate(parts) * patience, told

    def _model(self, book: Book) -> Any:
        kept = self._kept(book, "model") if self._same_columns(book) else None
        # numpy alone is needed to ask a model, but its module is loaded only where there is one.
        from recrawl.learn.pooled.model import PooledModel  # lazy: loads scikit-learn

        return PooledModel.restored(kept) if kept else None

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Keep what was known before the visits with what they found; fit a new model when it is time."""
        ledger = self._ledger(book)
        said = seen.answered
        pages, changed, when = seen.pages[said], seen.changed[said], at[said]
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
        """Whether rows and model have the columns that there are now; those that an older version kept may not."""
        return bool(np.array_equal(book.memory.get(f"{self.name}.columns", _NONE), _columns()))

    def _drop_other_columns(self, book: Book) -> None:
        if not self._same_columns(book):
            of_no_use = tuple(f"{self.name}.{part}" for part in ("rows", "labels", "when", "model."))
            for name in [name for name in book.memory if name.startswith(of_no_use)]:
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
        """The newest rows; of a cycle that alone would fill them, a part."""
        if len(rows) > ROWS // 4:
            some = np.sort(rng.choice(len(rows), ROWS // 4, replace=False))
            rows, labels, when = rows[some], labels[some], when[some]
        for name, column in (("rows", rows), ("labels", labels), ("when", when)):
            key = f"{self.name}.{name}"
            old = book.memory.get(key, column[:0])
            book.memory[key] = np.concatenate((old, column))[-ROWS:]

    def _fit(self, book: Book, rng: np.random.Generator) -> None:
        rows, labels, when = (book.memory[f"{self.name}.{name}"] for name in ("rows", "labels", "when"))
        from recrawl.learn.pooled import model as pooled  # lazy: loads slowly

        model = pooled.fit(rows, labels, when, names().index(BASELINE), rng)
        for name, column in model.arrays().items():
            book.memory[f"{self.name}.model.{name}"] = np.asarray(column)

    def _ledger(self, book: Book) -> Ledger:
        """What is kept of visits; a page that the book knows from before counts as visited once, at its last visit."""
        folder = book.folder if book.folders is not None else np.zeros(len(book), np.int64)
        kept = self._kept(book, "ledger")
        ledger = Ledger.restored(kept, book.site, folder) if kept else Ledger.of(book.site, folder)
        known = np.isnan(ledger.last) & np.isfinite(book.last_visit)
        ledger.first[known] = ledger.last[known] = book.last_visit[known]
        return ledger

    def _kept(self, book: Book, part: str) -> dict[str, NDArray[Any]]:
        before = f"{self.name}.{part}."
        return {name.removeprefix(before): column for name, column in book.memory.items() if name.startswith(before)}


def _columns() -> Ints:
    """A number for the columns of features, which is another when they are others."""
    return np.array([crc32(",".join(names()).encode())])


def _by_counts(book: Book, pages: Pages) -> Floats:
    """From the book alone: the share of its visits that found a change, for each day since the last of them."""
    compared = np.maximum(book.visits[pages] - 1, 0)
    changed = np.clip(book.changes[pages] - 1, 0, compared)
    rate = (changed + 0.3) / (compared + 1.0)
    waited = (book.now - np.maximum(book.last_visit[pages], book.found[pages])) / DAY
    return np.asarray(1.0 - (1.0 - rate) ** np.clip(np.nan_to_num(waited, posinf=30.0), 0.1, 30.0))
