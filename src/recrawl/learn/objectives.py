"""What a visit is worth, given the chance that the page has changed: one formula for each aim.

With the rate λ and u = -ln(1 - chance), the exposure that would give this chance:

    changes     chance                      the most changes found: take what has changed most likely
    freshness   (1 - (1 + u) e^-u) / λ      the most pages up to date: pages that change too fast are given up
    harmonic    (u - 1 + e^-u) / λ          unseen changes weigh 1, 1/2, 1/3 ...: nobody is given up
    age         (u²/2 - 1 + (1 + u) e^-u) / λ²      the least time out of date: nobody is given up
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OBJECTIVES = ("changes", "freshness", "harmonic", "age")


def index(objective: str, chance: Floats, rate: Floats) -> Floats:
    """The worth of a visit; only its order matters.

    >>> index("freshness", np.array([0.5, 0.999]), np.array([0.1, 5.0])).round(2).tolist()
    [1.53, 0.2]
    """
    u = -np.log1p(-np.minimum(chance, 1 - 1e-12))
    worth: dict[str, Callable[[], Floats]] = {
        "changes": lambda: chance,
        "freshness": lambda: (1 - (1 + u) * np.exp(-u)) / rate,
        "harmonic": lambda: (u - 1 + np.exp(-u)) / rate,
        "age": lambda: (u * u / 2 - 1 + (1 + u) * np.exp(-u)) / rate**2,
    }
    return worth[objective]()
