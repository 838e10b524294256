"""How much an order by weak evidence can gain: nothing where almost every visit finds a change anyway.

Change priors and new pages tell which of many quiet pages may have changed. Where the pages of a shock wait for a
visit, each of which finds a change almost surely, such evidence takes visits from them. So it counts by the factor
5 (0.9 - h), from 0 to 1, where h is the share of the latest visits that found a change. At first h is 0.95:
the evidence counts once visits have found nothing often enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats

SLOPE, NONE = 5.0, 0.9
"""The evidence does not count if nine in ten visits find a change, and fully if at least three in ten find nothing."""
FADE = 0.995
"""The factor by which the share of visits that found a change decays with each visit."""
HITS = "shock.hits"
"""Memory key of the counts."""
_INITIAL = np.array([20.0, 19.0])
"""Visits, and those that found a change, before any visit."""


def room_to_gain(memory: dict[str, NDArray[Any]]) -> float:
    """Return the factor, from 0 to 1.

    >>> memory = {}
    >>> room_to_gain(memory)
    0.0
    >>> note_hits(memory, np.arange(1000) % 5 > 0)
    >>> round(room_to_gain(memory), 1)
    0.5
    """
    visits, changed = hits(memory)
    return min(1.0, max(0.0, SLOPE * (NONE - float(changed) / float(visits))))


def hits(memory: dict[str, NDArray[Any]], share: float = 1.0) -> Floats:
    """Return the visits, and those that found a change, decayed; `share` is the shard's share of the collection."""
    counts: Floats = memory.get(HITS, share * _INITIAL)
    return counts


def note_hits(memory: dict[str, NDArray[Any]], changed: Flags, share: float = 1.0) -> None:
    """Add the visits of a cycle, and whether each found a change.

    A shard makes a share of all visits: its counts decay as fast as those of all shards, and add up to them.
    """
    before = hits(memory, share) * FADE ** (len(changed) / share)
    weight = FADE ** (np.arange(len(changed))[::-1] / share)
    memory[HITS] = before + np.array([weight.sum(), weight[changed].sum()])
