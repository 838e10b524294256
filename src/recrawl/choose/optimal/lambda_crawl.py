"""Policy `lambda-crawl`: visit frequencies that minimise staleness, solved for in every cycle.

`allocate` returns the frequencies that are optimal for an objective when the change rates are known. At the optimum,
one more visit has the same value per cost on every page that gets any. So each objective gives a frequency for every
price of a visit, and bisection finds the price at which the visits add up to the budget:

    changes     changed visits; evenly spaced               proportional to the rates if weights are equal
    freshness   time up to date; evenly spaced              (Cho and Garcia-Molina) pages that change too fast get none
    age         time out of date, squared; evenly spaced    (Cho and Garcia-Molina)
    harmonic    unseen changes at 1, 1/2, 1/3 ...; random   (Kolobov et al., LambdaCrawl)
    binary      time up to date; random                     (Azar et al.)

"Random" means visits at random times, for which the last two have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.columns import DAY, Floats, median
from recrawl.errors import UsageError
from recrawl.learn.value import age_gain
from recrawl.model import Outcomes

Penalty = Literal["harmonic", "binary"]
_MAX_TIMES = 33
"""Number of stored cycle times, from which the length of a cycle is estimated."""
_MAX_STEPS = 200
"""Maximum halvings; usually 60 suffice."""
_TOLERANCE = 1e-12
_NEWTON_STEPS = 6
"""Four suffice from the starting points used here."""


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
    one_shard: ClassVar[str] = "it solves for the visit frequencies of all pages together"
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
    return median(steps) / DAY if len(steps) else 1.0


def allocate(
    objective: str,
    rate: Floats,
    budget: float,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    floor: float = 0.0,
) -> Floats:
    """Return visits per unit of time for every page: Σ cost · visits is the budget, and no page gets less than `floor`.

    A floor that exceeds the budget is lowered to it. A page that never changes, or has weight 0, gets the floor.

    >>> five = np.arange(1.0, 6.0)
    >>> allocate("freshness", five, 5.0).round(2).tolist()
    [1.15, 1.36, 1.35, 1.14, 0.0]
    >>> allocate("age", five, 5.0).round(2).tolist()
    [0.83, 0.97, 1.03, 1.07, 1.09]
    """
    rate, weight, cost = np.broadcast_arrays(np.asarray(rate, np.float64), weight, cost)
    least = np.full(len(rate), min(floor, budget / cost.sum()) if len(rate) else 0.0)
    open_ = (rate > 0) & (weight > 0)
    if not open_.any() or budget <= float(least @ cost) * (1 + 1e-9):
        return least
    lam, value, unit_cost, base = rate[open_], (weight / cost)[open_], cost[open_], least[open_]
    left = budget - float(least[~open_] @ cost[~open_])
    frequency = FREQUENCIES[objective]

    def visits(price: float) -> Floats:
        found: Floats = np.maximum(frequency(lam, price / value), base)
        return found

    low = high = float(np.log((value / lam).max()))
    while visits(np.exp(low)) @ unit_cost < left:
        low -= 4.0
    while visits(np.exp(high)) @ unit_cost > left:
        high += 4.0
    for _ in range(_MAX_STEPS):
        middle = (low + high) / 2
        if high - low < _TOLERANCE:
            break
        low, high = (middle, high) if visits(np.exp(middle)) @ unit_cost > left else (low, middle)
    upper, lower = visits(np.exp(low)), visits(np.exp(high))
    # If nearly all pages are due, the last bit of the price still moves many visits: interpolate.
    apart = float((upper - lower) @ unit_cost)
    least[open_] = lower + (upper - lower) * ((left - float(lower @ unit_cost)) / apart if apart > 0 else 0.0)
    return least


def _changes(rate: Floats, price: Floats) -> Floats:
    return rate / _inverse_freshness_gain(price)


def _freshness(rate: Floats, price: Floats) -> Floats:
    return rate / _inverse_freshness_gain(price * rate)


def _age(rate: Floats, price: Floats) -> Floats:
    return rate / _inverse_age_gain(price * rate**2)


def _harmonic(rate: Floats, price: Floats) -> Floats:
    # The root of f² + rate·f = rate/price, in a form without cancellation.
    visits: Floats = 2 * rate / price / (rate + np.sqrt(rate**2 + 4 * rate / price))
    return visits


def _binary(rate: Floats, price: Floats) -> Floats:
    return np.maximum(np.sqrt(rate / price) - rate, 0.0)


FREQUENCIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "changes": _changes,
    "freshness": _freshness,
    "age": _age,
    "harmonic": _harmonic,
    "binary": _binary,
}
"""Objective to visit frequencies, given rates and prices (the price of a visit over the page's weight and cost)."""


def _inverse_freshness_gain(gain: Floats) -> Floats:
    """Return u with 1 - (1 + u) e^-u = gain; inf for a gain of 1 or more.

    As u - ln(1 + u) = -ln(1 - gain) =: c, u is at most c + √(2c), from where Newton's method decreases to it.
    """
    reachable = gain < 1
    least = -np.log1p(-np.where(reachable, gain, 0.5))
    u = least + np.sqrt(2 * least)
    for _ in range(_NEWTON_STEPS):
        u -= (u - np.log1p(u) - least) * (1 + u) / np.maximum(u, 1e-300)
    return np.where(reachable, u, np.inf)


def _inverse_age_gain(gain: Floats) -> Floats:
    """Return u with u²/2 - 1 + (1 + u) e^-u = gain; it is at least √(2 gain) and ∛(3 gain)."""
    u = np.maximum(np.sqrt(2 * gain), np.cbrt(3 * gain))
    for _ in range(_NEWTON_STEPS):
        u -= (age_gain(u) - gain) / np.maximum(u * -np.expm1(-u), 1e-300)
    return u
