"""Which claims of change are news: a date that a sitemap, a feed or a header names, against what is known of the page.

Dates are hostile input: in the future, before the web, the same for ever, or named again at every reading. A claim is
a signal only when it differs from the one before and names a time after the last visit; one that tells of what a visit
has seen already comes late and says nothing (algorithms §7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DAY = 86400.0
AHEAD = DAY
"""How far ahead of our clock a date may be: time zones are got wrong by up to a day."""


def possible(claimed: Floats, seen: Floats | float) -> NDArray[np.bool_]:
    """Dates that may be true, read at `seen`: not before 1970, not in the future, numbers at all.

    >>> possible(np.array([5.0, -1.0, np.nan, 9e9]), 100.0).tolist()
    [True, False, False, False]
    """
    may: NDArray[np.bool_] = (claimed >= 0) & (claimed <= np.asarray(seen) + AHEAD)
    return may


def news(claimed: Floats, before: Floats, last_visit: Floats, seen: Floats | float) -> NDArray[np.bool_]:
    """Where a date is a signal; `before` is the one that was read before it, NaN for none.

    A date at midnight that has moved is taken for a whole day: most of them have no hour.

    >>> last, before = np.full(5, 5.5 * DAY), np.array([2.0, 6.1, 2.0, 2.0, np.nan]) * DAY
    >>> news(np.array([6.1, 6.1, 5.2, 5.0, 5.0]) * DAY, before, last, 7 * DAY).tolist()
    [True, False, False, True, False]
    """
    may = possible(claimed, seen)
    date = np.where(may, claimed, 1.0)
    end = np.where((date % DAY == 0) & ~np.isnan(before), date + DAY, date)
    told: NDArray[np.bool_] = may & (claimed != before) & (end > last_visit)
    return told
