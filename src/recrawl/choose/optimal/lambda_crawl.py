"""Policy `lambda-crawl`: visit frequencies that minimise staleness, solved for in every cycle."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.columns import DAY, Floats
from recrawl.errors import UsageError
from recrawl.learn.value.allocation import allocate
from recrawl.model import Outcomes

Penalty = Literal["harmonic", "binary"]
_MAX_TIMES = 33
"""Number of stored cycle times, from which the length of a cycle is estimated."""


class LambdaCrawl(RatePolicy):
    """Gives each page the frequency that minimises total staleness, and visits the most overdue pages.

    A page with n unseen changes costs 1 + 1/2 + ... + 1/n times its weight (`harmonic`), so every further change
    matters and no page is given up. Each cycle estimates rates again, solves for the frequencies by bisection, and
    visits pages at even intervals.

    Parameters
    ----------
    penalty
        `harmonic`, or `binary`: being out of date costs the same however many changes were missed.
    floor
        Every page gets at least this share of an even share of the visits; 0.4 was best with `binary` in tests.
    estimator
        The source of change rates: `gamma` (pages share information with their directory and site), or `naive`,
        `regular`, `irregular`, `moment`, `averaged` from each page alone.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=10 * DAY)
    >>> book.visits[:], book.last_visit[:] = 1, [0.0, 5 * DAY, 9 * DAY]
    >>> batches(LambdaCrawl(), book, budget=2)
    [[0, 1]]

    Source: Kolobov et al. 2019 (LambdaCrawl); Azar et al. 2018 (binary).
    """

    name: ClassVar[str] = "lambda-crawl"
    source: ClassVar[str] = "Kolobov et al. 2019 (NeurIPS): LambdaCrawl; Azar et al. 2018 (PNAS): binary"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})
    reason: ClassVar[str] = "it was most overdue by the frequency that fits its change rate"

    def __init__(self, *, penalty: Penalty = "harmonic", floor: float = 0.0, estimator: str = "gamma") -> None:
        super().__init__(estimator=estimator)
        if penalty not in ("harmonic", "binary"):
            raise UsageError(f"lambda-crawl's penalty must be harmonic or binary, not '{penalty}'")
        if not 0 <= floor <= 1:
            raise UsageError(f"lambda-crawl's floor must be a share from 0 to 1, not {floor}")
        self.penalty: Penalty = penalty
        self.floor = floor

    def index(self, book: Book, waited: Floats, budget: int) -> Floats:
        """Return the number of visits that are due since the last visit."""
        open_ = np.flatnonzero(book.known)
        daily = float(budget * book.cost[open_].mean()) / _cycle_days(book, self.name)
        visits = allocate(
            self.penalty,
            self.rates(book)[open_],
            daily,
            weight=book.weight[open_],
            cost=book.cost[open_],
            floor=self.floor * daily / float(book.cost[open_].sum()),
        )
        due = np.zeros(len(book))
        due[open_] = visits * waited[open_]
        return due

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Add the visits to the stored sums, and store the time of the cycle."""
        super().learn(book, seen, at)
        times = book.memory.get(f"{self.name}.times", np.zeros(0))
        if not len(times) or book.now > times[-1]:
            book.memory[f"{self.name}.times"] = np.append(times, book.now)[-_MAX_TIMES:]


def _cycle_days(book: Book, name: str) -> float:
    """Return the median length of recent cycles in days; 1 before the second cycle."""
    times = book.memory.get(f"{name}.times", np.zeros(0))
    steps = np.diff(np.append(times, book.now))
    steps = steps[steps > 0]
    return float(np.median(steps)) / DAY if len(steps) else 1.0
