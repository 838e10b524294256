"""Which dates in sitemaps, feeds and headers are signals of a change.

Dates are hostile input: in the future, before the web, never changing, or repeated at every reading. A claim is a
signal only if it differs from the previous claim and is later than the last visit; an earlier date reports a change
that a visit has already seen (algorithms §7).
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import DAY, Flags, Floats

MAX_AHEAD = DAY
"""How far in the future a date may be, in seconds: wrong time zones shift dates by up to a day."""


def plausible(claimed: Floats, seen: Floats | float) -> Flags:
    """Return which dates can be true, read at the time `seen`: numbers, not before 1970, not in the future.

    >>> plausible(np.array([5.0, -1.0, np.nan, 9e9]), 100.0).tolist()
    [True, False, False, False]
    """
    valid: Flags = (claimed >= 0) & (claimed <= np.asarray(seen) + MAX_AHEAD)
    return valid


def signals_change(claimed: Floats, before: Floats, last_visit: Floats, seen: Floats | float) -> Flags:
    """Return which dates signal a change; `before` is the previously read date, NaN for none.

    A date at midnight that differs from the previous one covers the whole day, since most such dates have no hour.

    >>> last, before = np.full(5, 5.5 * DAY), np.array([2.0, 6.1, 2.0, 2.0, np.nan]) * DAY
    >>> signals_change(np.array([6.1, 6.1, 5.2, 5.0, 5.0]) * DAY, before, last, 7 * DAY).tolist()
    [True, False, False, True, False]
    """
    valid = plausible(claimed, seen)
    date = np.where(valid, claimed, 1.0)
    end = np.where((date % DAY == 0) & ~np.isnan(before), date + DAY, date)
    signal: Flags = valid & (claimed != before) & (end > last_visit)
    return signal
