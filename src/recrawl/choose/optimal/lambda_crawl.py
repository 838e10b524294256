"""Frequencies that are solved for in every cycle: LambdaCrawl, and its predecessor for binary freshness."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.errors import UsageError
from recrawl.learn.rates.gaps import DAY, Floats
from recrawl.learn.value.allocation import allocate
from recrawl.model import Outcomes

Penalty = Literal["harmonic", "binary"]
_TIMES = 33
"""How many cycles' times are kept, to know how long a cycle is."""


class LambdaCrawl(RatePolicy):
    """Gives each page the frequency that costs least staleness, and visits what is most overdue by it.

    A page with n unseen changes costs 1 + 1/2 + ... + 1/n times its weight (`harmonic`): it never stops to matter how
    often it has changed, so that no page is given up. In every cycle rates are estimated anew, frequencies are solved
    for by bisection, and pages are visited at even intervals by them.

    Parameters
    ----------
    penalty
        `harmonic`, or `binary`: being out of date costs the same however many changes were missed.
    floor
        Every page gets at least this part of an even share of the visits; 0.4 was best with `binary` where it was
        tried.
    estimator
        Where rates come from: `gamma` (pages learn from their directory and site), or `naive`, `regular`, `irregular`,
        `moment`, `averaged`, each page for itself.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.loop import drive
    >>> book = Book.blank(3, now=10 * DAY)
    >>> book.visits[:], book.last_try[:], book.last_visit[:] = 1, [0.0, 5 * DAY, 9 * DAY], [0.0, 5 * DAY, 9 * DAY]
    >>> [seen.pages.tolist() for seen in drive(LambdaCrawl(), Still(), book, budget=2, seed=1)]
    [[0, 1]]

    Source: Kolobov et al. 2019 (LambdaCrawl); Azar et al. 2018 (binary).
    """

    name: ClassVar[str] = "lambda-crawl"
    source: ClassVar[str] = "Kolobov et al. 2019 (NeurIPS): LambdaCrawl; Azar et al. 2018 (PNAS): binary"
    needs: ClassVar[frozenset[str]] = frozenset({"folders"})
    reason: ClassVar[str] = "is most overdue by the frequency that its rate of change deserves"

    def __init__(self, *, penalty: Penalty = "harmonic", floor: float = 0.0, estimator: str = "gamma") -> None:
        super().__init__(estimator=estimator)
        if penalty not in ("harmonic", "binary"):
            raise UsageError(f"lambda-crawl's penalty is harmonic or binary, not '{penalty}'")
        if not 0 <= floor <= 1:
            raise UsageError(f"lambda-crawl's floor is a share from 0 to 1, not {floor}")
        self.penalty: Penalty = penalty
        self.floor = floor

    def worth(self, book: Book, waited: Floats, budget: int) -> Floats:
        """How many visits are due."""
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

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Add to the tally; and keep when cycles were."""
        super().learn(book, seen, at)
        times = book.memory.get(f"{self.name}.times", np.zeros(0))
        if not len(times) or book.now > times[-1]:
            book.memory[f"{self.name}.times"] = np.append(times, book.now)[-_TIMES:]


def _cycle_days(book: Book, name: str) -> float:
    """How long a cycle is, as they have been lately; a day where there was none yet."""
    times = book.memory.get(f"{name}.times", np.zeros(0))
    steps = np.diff(np.append(times, book.now))
    steps = steps[steps > 0]
    return float(np.median(steps)) / DAY if len(steps) else 1.0
