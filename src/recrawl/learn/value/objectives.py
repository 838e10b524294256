"""The value of a visit (its *index*) for each objective.

With the change rate λ and u = -ln(1 - p), the expected number of changes for the change probability p:

    changes     p                                   most changes found
    freshness   (1 - (1 + u) e^-u) / λ              most pages up to date; pages that change too fast get no visits
    harmonic    (u - 1 + e^-u) / λ                  unseen changes cost 1, 1/2, 1/3 ...; every page is visited
    age         (u²/2 - 1 + (1 + u) e^-u) / λ²      least time out of date; every page is visited
    links       (Λ/θ) (1 - (1 + θt) e^-θt)          most new links, early: t = u/λ, Λ links per day, value e^-θ per day

Each is multiplied by the page's weight and divided by the visit's cost. Visiting the pages with the highest index in
every cycle gives all pages their optimal long-run frequencies. For `changes` the exact index is 1 - (1 + u) e^-u, which
has the same order as p if all weights and costs are equal.

`index` uses one rate per page; `expected_index` averages over a Gamma distribution of rates, given the time since the
last visit. When more than ordinary time has passed (the site was rebuilt, a hint arrived), the page gets the index that
it would have after the ordinary time in which it would have become equally stale: `time_to_change` computes this time
from the change probability, `time_to_age` from the expected time out of date.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.learn.chunks import AnyFloats

OBJECTIVES = ("changes", "freshness", "harmonic", "age", "links")
LINK_DECAY = 1 / 7
"""The rate at which a new link loses its value, per day: half of it in five days."""
_MIN_RATE = 1e-12
_MAX_PROBABILITY = 1 - 1e-6
"""The highest change probability; without a limit, one page with a vague rate would outrank all others."""
_NEWTON_STEPS = 3
"""Two suffice from the starting point used here."""


def index(
    objective: str,
    probability: AnyFloats,
    rate: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """Return the index of a visit from the change probability; `links` is the number of new links per change.

    Pass weights and costs that are all equal as one number (see `scalar_if_constant`).

    >>> index("freshness", np.array([0.5, 0.999]), np.array([0.1, 5.0])).round(2).tolist()
    [1.53, 0.2]
    >>> index("changes", np.array([0.5, 0.5]), np.ones(2), weight=np.array([1.0, 3.0])).round(2).tolist()
    [0.15, 0.46]
    """
    rate = np.maximum(rate, _MIN_RATE)
    u = -np.log1p(-np.clip(probability.astype(np.float64), 0.0, 1 - 1e-12))
    formulas: dict[str, Callable[[], AnyFloats]] = {
        "changes": lambda: probability if np.ndim(weight) == np.ndim(cost) == 0 else freshness_gain(u),
        "freshness": lambda: freshness_gain(u) / rate,
        "harmonic": lambda: harmonic_gain(u) / rate,
        "age": lambda: age_gain(u) / rate**2,
        "links": lambda: links * rate / LINK_DECAY * freshness_gain(LINK_DECAY * u / rate),
    }
    value: Floats = np.asarray(formulas[objective]() * weight / cost, np.float64)
    return value


def expected_index(
    objective: str,
    a: Floats,
    b: Floats,
    waited: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """Return the index of pages `waited` days after their last visit, averaged over Gamma(a, b) distributed rates.

    >>> sure = expected_index("freshness", np.array([1e8]), np.array([1e8]), np.array([2.0]))
    >>> float(sure[0]) - float(index("freshness", -np.expm1(-np.array([2.0])), np.ones(1))[0]) < 1e-6
    True
    """
    w = np.maximum(waited, 0.0)
    s = 1.0 + w / b
    early = _early(a, b, w)
    formulas: dict[str, Callable[[], Floats]] = {
        "changes": lambda: np.where(early, a * (a + 1) / 2 * (w / b) ** 2, 1.0 - s**-a * (1.0 + a * w / (b + w))),
        "freshness": lambda: np.where(early, a / b * w**2 / 2, b * _power(s, 1 - a) - w * s**-a),
        "harmonic": lambda: expected_age(a, b, w),  # the two formulas coincide
        "age": lambda: np.where(early, a / b * w**3 / 3, w**2 / 2 - b**2 * (_power(s, 2 - a) - _power(s, 1 - a))),
        "links": lambda: links * a / b / LINK_DECAY * freshness_gain(LINK_DECAY * w),
    }
    value: Floats = np.maximum(formulas[objective](), 0.0) * weight / cost
    return value


def expected_age(a: Floats, b: Floats, waited: Floats) -> Floats:
    """Return for how many of the `waited` days a page is expected to be out of date, for Gamma(a, b) rates."""
    return np.where(_early(a, b, waited), a / b * waited**2 / 2, waited - b * _power(1.0 + waited / b, 1 - a))


def time_to_change(a: Floats, b: Floats, probability: AnyFloats) -> Floats:
    """Return after how many days pages with Gamma(a, b) rates have these change probabilities.

    >>> time_to_change(np.array([1.0]), np.array([2.0]), np.array([0.5])).round(6).tolist()
    [2.0]
    """
    u = -np.log1p(-np.clip(probability.astype(np.float64), 0.0, _MAX_PROBABILITY))
    days: Floats = b * np.expm1(u / a)
    return days


def time_to_age(a: Floats, b: Floats, age: Floats) -> Floats:
    """Return after how many days pages with Gamma(a, b) rates are expected to be out of date for `age` days.

    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> expected_age(one, two, time_to_age(one, two, np.array([5.0]))).round(6).tolist()
    [5.0]
    """
    days: Floats = age + np.sqrt(2 * age * b / a)
    for _ in range(_NEWTON_STEPS):
        days -= (expected_age(a, b, days) - age) / np.maximum(-np.expm1(-a * np.log1p(days / b)), 1e-300)
    return np.maximum(days, 0.0)


def freshness_gain(u: AnyFloats) -> Floats:
    """Return 1 - (1 + u) e^-u; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 3), 1 - (1 + u) * np.exp(-u))


def harmonic_gain(u: AnyFloats) -> Floats:
    """Return u - 1 + e^-u; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 6), u + np.expm1(-u))


def age_gain(u: AnyFloats) -> Floats:
    """Return u²/2 - 1 + (1 + u) e^-u; near 0 it is u³/3."""
    near = u**3 * (1 / 3 - u * (1 / 8 - u * (1 / 30 - u / 144)))
    return np.where(u < 0.01, near, u * u / 2 - freshness_gain(u))


def scalar_if_constant(column: Floats) -> Floats | float:
    """Return the column, or its value if all entries are equal.

    >>> scalar_if_constant(np.array([2.0, 2.0])), scalar_if_constant(np.array([2.0, 3.0])).tolist()
    (2.0, [2.0, 3.0])
    """
    return float(column[0]) if len(column) and (column == column[0]).all() else column


def _early(a: Floats, b: Floats, waited: Floats) -> Flags:
    """Return where the exact formulas would subtract nearly equal numbers and lose all digits."""
    return (1.0 + a) * waited / b < 1e-4


def _power(s: Floats, k: Floats) -> Floats:
    """Return (s^k - 1) / k, or ln s where k is 0."""
    log = np.log(s)
    flat = np.abs(k) < 1e-9
    powered: Floats = np.where(flat, log, np.expm1(k * log) / np.where(flat, 1.0, k))
    return powered
