"""Policy `predicted`: visit the pages that a model, learned while crawling, ranks as most likely changed."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.learn.pooled.learner import Method, PooledLearner
from recrawl.model import Outcomes, Picks

Pick = Literal["best", "coin"]
NEW_PAGE_SCORE = 10.0
"""The score of a page that was never downloaded: above all others."""
LIKELY = "it has most likely changed"
"""The beginning of reasons whose score is a change probability."""
_MIN_PROBABILITY = 1e-6


class Predicted:
    """Visits the pages with the highest change probability, by one model over all pages (spec L7).

    It learns from its own visits only. It keeps decayed sums over the visits of every page, directory and site
    (`recrawl.learn.pooled.ledger`), and the features and results of the newest visits, from which it fits the model
    again every few cycles. Before the first fit, and always with `method=1d`, the page's own change rate decides. A
    share of the visits is drawn at random, so that the model does not learn from its own choices alone; the score of
    such a page is its probability of being drawn. R's 2d and 3d methods need page texts, which policies do not see:
    `recrawl lab predict` has them.

    Parameters
    ----------
    method
        `pooled`: gradient-boosted trees, calibrated. `1d`: the page's own change rate at its last visits.
    retrain
        Cycles after which the model is fitted again.
    explore
        The share of visits that are drawn at random.
    pick
        `best`: the pages with the highest probability, which finds the most changes. `coin`: pages drawn in proportion
        to their probability, as in R §8.3, which finds fewer changes and leaves fewer pages out of date.

    Example
    -------
    >>> from recrawl.columns import DAY
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=20 * DAY)
    >>> book.visits[:], book.changes[:], book.last_try[:], book.last_visit[:] = 10, [1, 9, 3], 18 * DAY, 18 * DAY
    >>> batches(Predicted(explore=0), book, budget=3)
    [[1, 2, 0]]

    Source: Radinsky and Bennett 2013 §8.3; the pooled model is recrawl's own.
    """

    name: ClassVar[str] = "predicted"
    source: ClassVar[str] = "Radinsky and Bennett 2013 §8.3 (spec L7); the pooled model is recrawl's own"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})

    def __init__(
        self, *, method: Method = "pooled", retrain: int = 7, explore: float = 0.05, pick: Pick = "best"
    ) -> None:
        if method in ("2d", "3d"):
            raise UsageError(f"method {method} needs page texts, which policies do not see; use 'recrawl lab predict'")
        if method not in ("pooled", "1d"):
            raise UsageError(f"predicted's method must be pooled or 1d, not '{method}'")
        if pick not in ("best", "coin"):
            raise UsageError(f"predicted's pick must be best or coin, not '{pick}'")
        if retrain != int(retrain) or retrain < 1:
            raise UsageError(f"predicted's retrain must be a number of cycles, 1 or more, not {retrain}")
        if not 0 <= explore <= 1:
            raise UsageError(f"predicted's explore must be a share from 0 to 1, not {explore}")
        self.method = method
        self.retrain = retrain
        self._pooled = PooledLearner(self.name, method=method, retrain=retrain)
        self.explore = explore
        self.pick = pick

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield new pages, then pages by probability, then pages drawn at random."""
        known = np.flatnonzero(book.known)
        if not len(known) or budget <= 0:
            return
        new = known[(book.visits[known] == 0) & (book.last_try[known] == -np.inf)]
        old = np.setdiff1d(known, new, assume_unique=True)
        probability, how = self._pooled.predict(book, old)
        explored = min(len(old), round(self.explore * budget))
        room = max(0, budget - len(new) - explored)
        order = self._order(probability, rng)
        likely = order[:room]
        if len(new):
            yield Picks(new[:budget], np.full(min(len(new), budget), NEW_PAGE_SCORE), "it was never downloaded")
        if len(likely):
            yield Picks(old[likely], probability[likely], f"{LIKELY}, as {how}")
        rest = order[room:]
        drawn = rng.permutation(rest)[: min(len(rest), budget - len(likely) - min(len(new), budget))]
        if len(drawn):
            score = np.full(len(drawn), len(drawn) / len(rest))
            yield Picks(old[drawn], score, "it was drawn at random, so that the model learns from all pages")

    def _order(self, probability: Floats, rng: np.random.Generator) -> Ints:
        """Return pages by probability, or drawn in proportion to it (Efraimidis and Spirakis 2006)."""
        luck = rng.random(len(probability))
        if self.pick == "coin":
            return np.argsort(np.log(np.maximum(luck, 1e-300)) / np.maximum(probability, _MIN_PROBABILITY))[::-1]
        return np.lexsort((luck, -probability))

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Store the features and results of the visits; fit the model again when it is time."""
        self._pooled.update(book, seen, at)
