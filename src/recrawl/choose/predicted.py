"""Visits where a change is likely, by a model that learns while it crawls."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.contract import Choice
from recrawl.errors import UsageError
from recrawl.learn.pooled_features import BASELINE, features, names
from recrawl.learn.pooled_ledger import DAY, Ledger
from recrawl.model import Outcomes, Pages, Picks

Method = Literal["pooled", "1d"]
Pick = Literal["best", "coin"]
FIRST = 10.0
"""The score of a page that was never downloaded: before all others."""
LIKELY = "has most likely changed"
"""How reasons begin whose score is a probability."""
ROWS = 40_000
"""Visits that are kept to learn from, the newest."""
_AT_ONCE = 50_000
_LEAST_CHANCE = 1e-6


class Predicted:
    """Visits pages that have most likely changed, as a model over all pages says (spec L7).

    Only what it visited itself is known to it. Of every page it keeps fading sums over its visits, of its site and
    directory too (`recrawl.learn.pooled_ledger`); of the newest visits what was known before them and what they found.
    From these it fits one model for all pages, again and again. Until there is one, and for good with `method=1d`, a
    page's own rate decides. Some visits are made by chance alone, or it would learn only from its own choices; their
    score is the chance that each of these pages had. R's 2d and 3d look at texts, which policies do not get to see:
    `recrawl lab predict` has them.

    Parameters
    ----------
    method
        `pooled`: gradient-boosted trees, calibrated. `1d`: the page's own change rate at its last visits.
    retrain
        Cycles after which the model is fitted anew.
    explore
        The share of visits that are made by chance alone.
    pick
        `best`: the likeliest pages, which finds the most changes. `coin`: by a biased coin, each in proportion to its
        probability, as R §8.3 does; it finds fewer changes and leaves fewer pages out of date.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.worlds import Still
    >>> book = Book.blank(3, now=20 * DAY)
    >>> book.visits[:], book.changes[:], book.last_try[:], book.last_visit[:] = 10, [1, 9, 3], 18 * DAY, 18 * DAY
    >>> [seen.pages.tolist() for seen in drive(Predicted(explore=0), Still(), book, budget=3, seed=1)]
    [[1, 2, 0]]

    Source: Radinsky and Bennett 2013 §8.3; the pooled model is ours.
    """

    name: ClassVar[str] = "predicted"
    source: ClassVar[str] = "Radinsky and Bennett 2013 §8.3 (spec L7); the pooled model is ours"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})

    def __init__(
        self, *, method: Method = "pooled", retrain: int = 7, explore: float = 0.05, pick: Pick = "best"
    ) -> None:
        if method in ("2d", "3d"):
            raise UsageError(f"{method} looks at texts, which a policy does not see: try 'recrawl lab predict' with it")
        if method not in ("pooled", "1d"):
            raise UsageError(f"predicted's method is pooled or 1d, not '{method}'")
        if pick not in ("best", "coin"):
            raise UsageError(f"predicted's pick is best or coin, not '{pick}'")
        if retrain != int(retrain) or retrain < 1:
            raise UsageError(f"predicted's retrain is a number of cycles, 1 or more, not {retrain}")
        if not 0 <= explore <= 1:
            raise UsageError(f"predicted's explore is a share from 0 to 1, not {explore}")
        self.method = method
        self.retrain = retrain
        self.explore = explore
        self.pick = pick

    # -- choosing -----------------------------------------------------------------------------------------------------

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Two batches: what is likely to have changed, then what chance wants."""
        known = np.flatnonzero(book.known)
        if not len(known) or budget <= 0:
            return
        new = known[(book.visits[known] == 0) & (book.last_try[known] == -np.inf)]
        old = np.setdiff1d(known, new, assume_unique=True)
        chance, how = self._chances(book, old)
        by_chance = min(len(old), round(self.explore * budget))
        room = max(0, budget - len(new) - by_chance)
        order = self._order(chance, rng)
        likely = order[:room]
        if len(new):
            yield Picks(new[:budget], np.full(min(len(new), budget), FIRST), "was never downloaded")
        if len(likely):
            yield Picks(old[likely], chance[likely], f"{LIKELY}, as {how}")
        rest = order[room:]
        some = rng.permutation(rest)[: min(len(rest), budget - len(likely) - min(len(new), budget))]
        if len(some):
            yield Picks(
                old[some], np.full(len(some), len(some) / len(rest)), "was drawn by chance, so that the model sees all"
            )

    def _order(self, chance: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The likeliest first; or as a biased coin falls, without replacement (Efraimidis and Spirakis 2006)."""
        luck = rng.random(len(chance))
        if self.pick == "coin":
            return np.argsort(np.log(np.maximum(luck, 1e-300)) / np.maximum(chance, _LEAST_CHANCE))[::-1]
        return np.lexsort((luck, -chance))

    def _chances(self, book: Book, pages: Pages) -> tuple[NDArray[np.float64], str]:
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
        kept = self._kept(book, "model")
        # numpy alone is needed to ask a model, but its module is loaded only where there is one.
        return importlib.import_module("recrawl.learn.pooled").Pooled.restored(kept) if kept else None

    # -- learning -----------------------------------------------------------------------------------------------------

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Keep what was known before the visits with what they found; fit a new model when it is time."""
        ledger = self._ledger(book)
        said = seen.answered
        pages, changed, when = seen.pages[said], seen.changed[said], at[said]
        cycles = int(book.memory.get(f"{self.name}.cycles", np.zeros(1))[0]) + 1
        book.memory[f"{self.name}.cycles"] = np.array([cycles])
        if self.method == "pooled":
            compared = ~np.isnan(ledger.last[pages])
            rng = np.random.default_rng([cycles, 29])
            rows = features(ledger, pages[compared], when[compared], book.depth)
            self._keep_rows(book, rows, changed[compared], when[compared], rng)
            if cycles % int(self.retrain) == 0:
                self._fit(book, rng)
        ledger.note(pages, when, changed)
        for name, column in ledger.arrays().items():
            book.memory[f"{self.name}.ledger.{name}"] = column

    def _keep_rows(
        self,
        book: Book,
        rows: NDArray[np.float32],
        labels: NDArray[np.bool_],
        when: NDArray[np.float64],
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
        pooled = importlib.import_module("recrawl.learn.pooled")
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


def _by_counts(book: Book, pages: Pages) -> NDArray[np.float64]:
    """From the book alone: the share of its visits that found a change, for each day since the last of them."""
    compared = np.maximum(book.visits[pages] - 1, 0)
    changed = np.clip(book.changes[pages] - 1, 0, compared)
    rate = (changed + 0.3) / (compared + 1.0)
    waited = (book.now - np.maximum(book.last_visit[pages], book.found[pages])) / DAY
    return np.asarray(1.0 - (1.0 - rate) ** np.clip(np.nan_to_num(waited, posinf=30.0), 0.1, 30.0))
