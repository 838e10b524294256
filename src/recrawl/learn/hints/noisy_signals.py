"""What a visit is worth for freshness when change is signalled, not always and not always rightly (algorithms §7).

A page changes at the rate Δ. A change goes untold at the rate s, false signals come at the rate f, so signals come at
g = Δ - s + f. What matters of a page is x, where e^-x is the chance that it is still unchanged: it grows by s a day and
jumps by b = ln(g/f) at every signal. A policy that visits whenever x reaches a threshold waits ψ days on average, and
for w of them the page is fresh; the visit at the threshold is worth

    V = w - e^-x ψ
    ψ = Σ_i P(i + 1, g t_i) / g                      t_i = (x - ib) / s, as long as it is positive
    w = Σ_i f^i / (Δ + f)^(i + 1) · P(i + 1, (Δ + f) t_i)

with the incomplete Gamma function P. Without signals this is (1 - (1 + x) e^-x) / Δ, as for any page.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_TERMS = 24
"""Where more signals than this pass by before a visit is worth it, each of them says next to nothing."""
_LEAST_SILENT = 1e-6
"""No source is believed to tell of all but this share of the changes."""


def worth(x: Floats, rate: Floats, silent: Floats, false: Floats) -> Floats:
    """V of every page; rates are per day.

    >>> x, rate = np.full(2, 0.5), np.full(2, 0.1)
    >>> worth(x, rate, np.array([0.1, 0.05]), np.array([0.0, 0.01])).round(3).tolist()
    [0.902, 1.504]
    """
    plain: Floats = (1 - (1 + x) * np.exp(-x)) / rate
    silent = np.clip(silent, _LEAST_SILENT * rate, rate)
    told = rate - silent
    jump = np.log1p(told / np.maximum(false, 1e-300))
    told_of = np.flatnonzero((told > 1e-9 * rate) & (x < jump * (MOST_TERMS + 1)))
    if len(told_of):
        plain[told_of] = _signalled(x[told_of], rate[told_of], silent[told_of], false[told_of], jump[told_of])
    return plain


def _signalled(x: Floats, rate: Floats, silent: Floats, false: Floats, jump: Floats) -> Floats:
    from scipy.special import gammainc as share  # lazy: loads slowly, and most policies need none

    signals, all_ = rate - silent + false, rate + false
    gap, fresh = np.zeros(len(x)), np.zeros(len(x))
    open_ = np.arange(len(x))
    for i in range(MOST_TERMS + 1):
        open_ = open_[x[open_] > i * jump[open_]]
        if not len(open_):
            break
        left = (x[open_] - i * jump[open_]) / silent[open_]
        gap[open_] += share(i + 1, signals[open_] * left) / signals[open_]
        fresh[open_] += (false[open_] / all_[open_]) ** i / all_[open_] * share(i + 1, all_[open_] * left)
    value: Floats = fresh - np.exp(-x) * gap
    return value
