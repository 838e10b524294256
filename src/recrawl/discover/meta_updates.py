"""The meta-updates tag: a page says itself how often it changes (spec H1; Q §1.3.1).

    <meta name="change-frequency-based" content="PERIODIC=7">

STATIC, PERIODIC=days or VARIABLE=days, in any case and with any spacing; STATIC is a change in ninety days.
"""

from __future__ import annotations

import re

NAME = "change-frequency-based"
_STATIC = 90.0
_LONGEST = 3650.0
_SAID = re.compile(
    r"(static)|(?:periodic|variable)\s*[=:]\s*[\"']?\s*(\d{1,6}(?:\.\d{1,6})?)\s*(?:days?)?", re.IGNORECASE
)


def days(content: str) -> float:
    """Every how many days the page says that it changes; 0 where it says nothing that can be understood.

    >>> days("PERIODIC=7"), days(" static "), days("Variable = 0.5 days"), days("sometimes"), days("PERIODIC=0")
    (7.0, 90.0, 0.5, 0.0, 0.0)
    """
    found = _SAID.fullmatch(content[:100].strip().strip("\"'"))
    if found is None:
        return 0.0
    return _STATIC if found[1] else min(float(found[2]), _LONGEST)
