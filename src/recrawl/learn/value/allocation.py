"""How often each page should be visited, when all rates of change are known: visits shared out by one price.

At the best allocation one more visit is worth the same on every page that gets any, for what it costs. So each aim
gives a frequency for every price, and the price is raised or lowered until the visits are as many as there may be:

    changes     changed visits; evenly spaced               proportional to the rates where weights are equal
    freshness   time up to date; evenly spaced              (Cho and Garcia-Molina) pages that change too fast get none
    age         time out of date, squared; evenly spaced    (Cho and Garcia-Molina)
    harmonic    unseen changes at 1, 1/2, 1/3 ...; random   (Kolobov et al., LambdaCrawl)
    binary      time up to date; random                     (Azar et al.)

"Random" are visits at random times, for which the last two have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.value.objectives import aged

Floats = NDArray[np.float64]

_STEPS = 200
"""Halvings at most; 60 are made before the price moves no more."""
_ENOUGH = 1e-12
_NEWTON = 6
"""Steps of Newton's method, from starts so near that four would do."""


def allocate(
    aim: str,
    rate: Floats,
    budget: float,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    floor: float = 0.0,
) -> Floats:
    """Visits a unit of time for every page: Σ cost · visits is the budget, and none gets less than `floor`.

    A floor that the budget cannot pay is lowered until it can. A page that never changes, or does not matter, gets the
    floor.

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
    lam, worth, mine, base = rate[open_], (weight / cost)[open_], cost[open_], least[open_]
    left = budget - float(least[~open_] @ cost[~open_])
    at = FREQUENCIES[aim]

    def visits(price: float) -> Floats:
        found: Floats = np.maximum(at(lam, price / worth), base)
        return found

    low = high = float(np.log((worth / lam).max()))
    while visits(np.exp(low)) @ mine < left:
        low -= 4.0
    while visits(np.exp(high)) @ mine > left:
        high += 4.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if high - low < _ENOUGH:
            break
        low, high = (middle, high) if visits(np.exp(middle)) @ mine > left else (low, middle)
    many, few = visits(np.exp(low)), visits(np.exp(high))
    # Where all but everything is due, the last bit of the price still moves many visits: meet in the middle.
    apart = float((many - few) @ mine)
    least[open_] = few + (many - few) * ((left - float(few @ mine)) / apart if apart > 0 else 0.0)
    return least


def _changes(rate: Floats, price: Floats) -> Floats:
    return _over(rate, _ripe(price))


def _freshness(rate: Floats, price: Floats) -> Floats:
    return _over(rate, _ripe(price * rate))


def _age(rate: Floats, price: Floats) -> Floats:
    return _over(rate, _aged(price * rate**2))


def _harmonic(rate: Floats, price: Floats) -> Floats:
    # The root of f² + rate·f = rate/price, in the form that loses no digits.
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
"""Aim to visits, given rates and prices: the price of a visit over the page's weight and cost."""


def _over(rate: Floats, due: Floats) -> Floats:
    """Visits such that so many changes are due between two of them; none for infinitely many."""
    visits: Floats = rate / due
    return visits


def _ripe(worth: Floats) -> Floats:
    """u with 1 - (1 + u) e^-u = worth; inf from 1 up.

    As u - ln(1 + u) = -ln(1 - worth), it is at most that plus the root of twice that: Newton's method comes down to it.
    """
    some = worth < 1
    least = -np.log1p(-np.where(some, worth, 0.5))
    u = least + np.sqrt(2 * least)
    for _ in range(_NEWTON):
        u -= (u - np.log1p(u) - least) * (1 + u) / np.maximum(u, 1e-300)
    return np.where(some, u, np.inf)


def _aged(worth: Floats) -> Floats:
    """u with u²/2 - 1 + (1 + u) e^-u = worth; at least √(2 worth) and ∛(3 worth)."""
    u = np.maximum(np.sqrt(2 * worth), np.cbrt(3 * worth))
    for _ in range(_NEWTON):
        u -= (aged(u) - worth) / np.maximum(u * -np.expm1(-u), 1e-300)
    return u
