"""Visits where a change is likely, by a model that learns while it crawls."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.learn.pooled.learner import Method, PooledLearner
from recrawl.model import Outcomes, Picks

Pick = Literal["best", "coin"]
FIRST = 10.0
"""The score of a page that was never downloaded: before all others."""
LIKELY = "has most likely changed"
"""How reasons begin whose score is a probability."""
_LEAST_CHANCE = 1e-6


class Predicted:
    """Visits pages that have most likely changed, as a model over all pages says (spec L7).

    Only what it visited itself is known to it. Of every page it keeps fading sums over its visits, of its site and
    directory too (`recrawl.learn.pooled.ledger`); of the newest visits what was known before them and what they found.
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
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.columns import DAY
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
        self._pooled = PooledLearner(self.name, method=method, retrain=retrain)
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
        chance, how = self._pooled.predict(book, old)
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

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Keep what was known before the visits with what they found; fit a new model when it is time."""
        self._pooled.update(book, seen, at)
