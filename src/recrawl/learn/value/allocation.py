"""Visit frequencies that are optimal for an objective when the change rates are known.

At the optimum, one more visit has the same value per cost on every page that gets any. So each objective gives a
frequency for every price of a visit, and bisection finds the price at which the visits add up to the budget:

    changes     changed visits; evenly spaced               proportional to the rates if weights are equal
    freshness   time up to date; evenly spaced              (Cho and Garcia-Molina) pages that change too fast get none
    age         time out of date, squared; evenly spaced    (Cho and Garcia-Molina)
    harmonic    unseen changes at 1, 1/2, 1/3 ...; random   (Kolobov et al., LambdaCrawl)
    binary      time up to date; random                     (Azar et al.)

"Random" means visits at random times, for which the last two have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recrawl.columns import Floats
from recrawl.learn.value.objectives import age_gain

_MAX_STEPS = 200
"""Maximum halvings; usually 60 suffice."""
_TOLERANCE = 1e-12
_NEWTON_STEPS = 6
"""Four suffice from the starting points used here."""


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
