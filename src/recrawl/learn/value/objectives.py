"""What a visit is worth, given the chance that the page has changed: one formula for each aim.

With the rate λ and u = -ln(1 - chance), the exposure that would give this chance:

    changes     chance                              the most changes found: take what has changed most likely
    freshness   (1 - (1 + u) e^-u) / λ              the most pages up to date: pages that change too fast are given up
    harmonic    (u - 1 + e^-u) / λ                  unseen changes weigh 1, 1/2, 1/3 ...: nobody is given up
    age         (u²/2 - 1 + (1 + u) e^-u) / λ²      the least time out of date: nobody is given up
    links       (Λ/θ) (1 - (1 + θt) e^-θt)          the most new links, soon: t = u/λ, Λ links a day, worth e^-θ a day

All are multiplied by how much a page matters and divided by what a visit costs. They are prices: visiting what is worth
most, again and again, gives every page the share of visits that is best in the long run. For `changes` that is
1 - (1 + u) e^-u, which orders pages as their chances do as long as all weights and costs are equal.

`index` goes by one rate a page, `believed_index` by a whole Gamma distribution of rates and the time that a page has
waited. Where more than time has passed (its site was rebuilt, a hint was given), it is worth as much as it would be
after the ordinary time in which it would have become as stale as it is: `time_to_change` says when that would be by its
chance of having changed, `time_to_age` by how long it has been out of date.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.chunks import AnyFloats, Floats

OBJECTIVES = ("changes", "freshness", "harmonic", "age", "links")
FADE = 1 / 7
"""How fast a new link loses its worth, a day: half of it in five days."""
_LEAST_RATE = 1e-12
_SUREST = 1 - 1e-6
"""No page is taken to have changed more surely, or a page of which little is known would be worth all the others."""
_NEWTON = 3
"""Steps of Newton's method, from a start so near that two would do."""


def index(
    objective: str,
    chance: AnyFloats,
    rate: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """The worth of a visit; only its order matters. `links` is how many new links a change brings, for `links` only.

    Weights and costs that are all the same are given as one number (see `level`).

    >>> index("freshness", np.array([0.5, 0.999]), np.array([0.1, 5.0])).round(2).tolist()
    [1.53, 0.2]
    >>> index("changes", np.array([0.5, 0.5]), np.ones(2), weight=np.array([1.0, 3.0])).round(2).tolist()
    [0.15, 0.46]
    """
    rate = np.maximum(rate, _LEAST_RATE)
    u = -np.log1p(-np.clip(chance.astype(np.float64), 0.0, 1 - 1e-12))
    forms: dict[str, Callable[[], AnyFloats]] = {
        "changes": lambda: chance if np.ndim(weight) == np.ndim(cost) == 0 else ripe(u),
        "freshness": lambda: ripe(u) / rate,
        "harmonic": lambda: overdue(u) / rate,
        "age": lambda: aged(u) / rate**2,
        "links": lambda: links * rate / FADE * ripe(FADE * u / rate),
    }
    worth: Floats = np.asarray(forms[objective]() * weight / cost, np.float64)
    return worth


def believed_index(
    objective: str,
    a: Floats,
    b: Floats,
    waited: Floats,
    *,
    weight: Floats | float = 1.0,
    cost: Floats | float = 1.0,
    links: Floats | float = 1.0,
) -> Floats:
    """The same for pages that were seen so many days ago, expected over rates that are Gamma(a, b) distributed.

    >>> sure = believed_index("freshness", np.array([1e8]), np.array([1e8]), np.array([2.0]))
    >>> float(sure[0]) - float(index("freshness", -np.expm1(-np.array([2.0])), np.ones(1))[0]) < 1e-6
    True
    """
    w = np.maximum(waited, 0.0)
    s = 1.0 + w / b
    early = _early(a, b, w)
    forms: dict[str, Callable[[], Floats]] = {
        "changes": lambda: np.where(early, a * (a + 1) / 2 * (w / b) ** 2, 1.0 - s**-a * (1.0 + a * w / (b + w))),
        "freshness": lambda: np.where(early, a / b * w**2 / 2, b * _power(s, 1 - a) - w * s**-a),
        "harmonic": lambda: expected_age(a, b, w),  # it happens to have the same form
        "age": lambda: np.where(early, a / b * w**3 / 3, w**2 / 2 - b**2 * (_power(s, 2 - a) - _power(s, 1 - a))),
        "links": lambda: links * a / b / FADE * ripe(FADE * w),
    }
    worth: Floats = np.maximum(forms[objective](), 0.0) * weight / cost
    return worth


def expected_age(a: Floats, b: Floats, waited: Floats) -> Floats:
    """For how many of so many days since its last visit a page has been out of date, its rate being Gamma(a, b)."""
    return np.where(_early(a, b, waited), a / b * waited**2 / 2, waited - b * _power(1.0 + waited / b, 1 - a))


def time_to_change(a: Floats, b: Floats, chance: AnyFloats) -> Floats:
    """After how many days pages have changed with these chances, their rates being Gamma(a, b).

    >>> time_to_change(np.array([1.0]), np.array([2.0]), np.array([0.5])).round(6).tolist()
    [2.0]
    """
    u = -np.log1p(-np.clip(chance.astype(np.float64), 0.0, _SUREST))
    days: Floats = b * np.expm1(u / a)
    return days


def time_to_age(a: Floats, b: Floats, age: Floats) -> Floats:
    """After how many days pages are expected to have been out of date for so long, their rates being Gamma(a, b).

    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> expected_age(one, two, time_to_age(one, two, np.array([5.0]))).round(6).tolist()
    [5.0]
    """
    days: Floats = age + np.sqrt(2 * age * b / a)
    for _ in range(_NEWTON):
        days -= (expected_age(a, b, days) - age) / np.maximum(-np.expm1(-a * np.log1p(days / b)), 1e-300)
    return np.maximum(days, 0.0)


def ripe(u: AnyFloats) -> Floats:
    """1 - (1 + u) e^-u: the part of the changes due that a visit is in time for; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 3), 1 - (1 + u) * np.exp(-u))


def overdue(u: AnyFloats) -> Floats:
    """u - 1 + e^-u; near 0 it is u²/2."""
    return np.where(u < 1e-4, u * u * (0.5 - u / 6), u + np.expm1(-u))


def aged(u: AnyFloats) -> Floats:
    """u²/2 - 1 + (1 + u) e^-u; near 0 it is u³/3."""
    near = u**3 * (1 / 3 - u * (1 / 8 - u * (1 / 30 - u / 144)))
    return np.where(u < 0.01, near, u * u / 2 - ripe(u))


def level(column: Floats) -> Floats | float:
    """A column, or its value where all values are one.

    >>> level(np.array([2.0, 2.0])), level(np.array([2.0, 3.0])).tolist()
    (2.0, [2.0, 3.0])
    """
    return float(column[0]) if len(column) and (column == column[0]).all() else column


def _early(a: Floats, b: Floats, waited: Floats) -> NDArray[np.bool_]:
    """Where differences of nearly equal numbers would lose all digits."""
    return (1.0 + a) * waited / b < 1e-4


def _power(s: Floats, k: Floats) -> Floats:
    """(s^k - 1) / k, and ln s where k is 0."""
    log = np.log(s)
    flat = np.abs(k) < 1e-9
    powered: Floats = np.where(flat, log, np.expm1(k * log) / np.where(flat, 1.0, k))
    return powered
