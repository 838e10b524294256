"""Lines of one page that change in their numbers at almost every visit: counters, clocks, tokens.

A page that is watched alone has no neighbours that tell its frame; its own history does. For each page a few slots are
kept: the hash of a line up to its numbers (`LineChange.slot`), in how many changes of the page its numbers changed, and
in how many they could have. Eight slots of six bytes: at most 48 bytes a page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_SLOT = struct.Struct("<IBB")
_MAX_SLOTS = 8
_MIN_CHANGES = 3
_MIN_SHARE = 0.8
_MOST = 255


def restless(stored: bytes | None) -> frozenset[int]:
    """The slots whose numbers have changed nearly always.

    >>> stored = None
    >>> for _ in range(3): stored = noted(stored, [7, 9])
    >>> sorted(restless(stored)), restless(noted(None, [7]))
    ([7, 9], frozenset())
    """
    return frozenset(
        slot
        for slot, changes, chances in _SLOT.iter_unpack(stored or b"")
        if changes >= _MIN_CHANGES and changes >= _MIN_SHARE * chances
    )


def noted(stored: bytes | None, changed: Iterable[int]) -> bytes | None:
    """The slots after a change of the page in which the numbers of these slots changed."""
    now = {slot & 0xFFFFFFFF for slot in changed if slot}
    slots = {slot: (changes, chances) for slot, changes, chances in _SLOT.iter_unpack(stored or b"")}
    for slot, (changes, chances) in slots.items():
        if chances < _MOST:
            slots[slot] = (changes + (slot in now), chances + 1)
    for slot in now - slots.keys():
        slots[slot] = (1, 1)
    best = sorted(slots.items(), key=lambda item: (-item[1][0] / item[1][1], -item[1][0], item[0]))[:_MAX_SLOTS]
    return b"".join(_SLOT.pack(slot, *counts) for slot, counts in best) or None
