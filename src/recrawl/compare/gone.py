"""When a page counts as gone: a state machine over HTTP responses (spec C5).

    LIVE ──404/410──▶ MISSING ──404/410 again──▶ GONE
      ▲                  │                         │
      └──── a page ──────┴────────── a page ───────┘

Only a 404 or 410 from the server moves a page towards GONE. A timeout, a 5xx, a robots.txt that changed, a 304 or a
parent that fails is no evidence and changes nothing. One 404 is enough if the sitemap has dropped the page as well. If
many pages of a site vanish together, a broken deployment is more likely than a clean-up: then GONE takes three
responses over two days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from recrawl.columns import DAY
from recrawl.model import State
from recrawl.times import elapsed

CONFIRM_SECONDS = 2 * DAY
_CONFIRM_MISSES = 3
_FEWEST_VANISHING = 5
_VANISHING_SHARE = 0.2


class Evidence(Enum):
    """What a visit shows about whether a page exists."""

    PRESENT = "present"
    MISSING = "missing"
    """The server responded with 404 or 410."""
    SILENT = "silent"
    """Any other response, or none."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a page, the number of consecutive 404s, and the time of the first of them."""

    state: State
    misses: int = 0
    missing_since: float = 0.0


def step(
    standing: Standing,
    evidence: Evidence,
    now: float,
    *,
    dropped_from_sitemap: bool = False,
    vanishing: bool = False,
    confirm_seconds: float = CONFIRM_SECONDS,
) -> Standing:
    """Return the standing after one more visit. A page that the user dropped stays dropped.

    >>> once = step(Standing(State.LIVE), Evidence.MISSING, 10.0)
    >>> once.state.name, step(once, Evidence.SILENT, 20.0) == once
    ('MISSING', True)
    >>> step(once, Evidence.MISSING, 20.0).state.name, step(once, Evidence.PRESENT, 20.0).state.name
    ('GONE', 'LIVE')
    """
    if evidence is Evidence.SILENT or standing.state is State.DROPPED:
        return standing
    if evidence is Evidence.PRESENT:
        return Standing(State.LIVE)
    misses = standing.misses + 1
    known = standing.misses and elapsed(standing.missing_since, now) < math.inf
    since = standing.missing_since if known else now
    if standing.state is State.GONE:
        gone = True
    elif vanishing:
        gone = misses >= _CONFIRM_MISSES and now - since >= confirm_seconds
    else:
        gone = misses >= 2 or dropped_from_sitemap
    return Standing(State.GONE if gone else State.MISSING, misses, since)


def vanishing(live: int, missing: int) -> bool:
    """Whether a site's pages vanish together: five or more, and over a fifth of those that existed.

    >>> vanishing(live=100, missing=4), vanishing(live=100, missing=20), vanishing(live=10, missing=5)
    (False, False, True)
    """
    return missing >= _FEWEST_VANISHING and missing > _VANISHING_SHARE * (live + missing)


def evidence(status: int, *, readable: bool = True) -> Evidence:
    """Return the evidence of an HTTP status: 2xx with a page is present, 404 and 410 are missing, others are silent.

    >>> [evidence(s).name for s in (200, 404, 410, 304, 500, 403, 0)]
    ['PRESENT', 'MISSING', 'MISSING', 'SILENT', 'SILENT', 'SILENT', 'SILENT']
    """
    if status in (404, 410):
        return Evidence.MISSING
    return Evidence.PRESENT if 200 <= status < 300 and readable else Evidence.SILENT
