"""What a page's own history tells about its frame: lines whose numbers tick, and lines that come and go.

A page that is watched alone has no neighbours that tell its frame; its own changes do. For each page a few slots of
six bytes are kept, at most 120 bytes:

- Ticking lines (counters, clocks, tokens), eight at most: the hash of a line up to its numbers (`LineChange.slot`), in
  how many changes of the page its numbers changed, and in how many they could have.
- Lines that have left the page, twelve at most: the hash of the line, zero, and how often it came back. Where lines
  came back twice (a rotating quote, teaser or advertisement), a line that comes back again is frame, and so are the
  line that it replaces and one that leaves again. A text that the page never had is content, so that the front page of
  a newspaper, which changes at every visit too, stays content.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.compare.content.judge import LineChange

_SLOT = struct.Struct("<IBB")
_MAX_TICKING = 8
_MIN_CHANGES = 3
_MIN_SHARE = 0.8
_MAX_LEFT = 12
_MIN_RETURNS = 2
_MOST = 255
_HASH = 0xFFFFFFFF


@dataclass(slots=True)
class OwnHistory:
    """The history of one page, and what it says about a change."""

    ticking: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By hash of a line up to its numbers: changes, and chances to change."""
    left: dict[int, int] = field(default_factory=dict)
    """By hash of a line that has left the page: how often it came back. The one that left last is the last."""

    @classmethod
    def unpack(cls, stored: bytes | None) -> OwnHistory:
        """The history that was packed."""
        slots = list(_SLOT.iter_unpack(stored or b""))
        return cls(
            {line: (changes, chances) for line, changes, chances in slots if changes},
            {line: returns for line, changes, returns in slots if not changes},
        )

    def pack(self) -> bytes | None:
        """The history as bytes; None if there is nothing to keep."""
        ticking = b"".join(_SLOT.pack(line, *counts) for line, counts in self.ticking.items())
        return ticking + b"".join(_SLOT.pack(line, 0, returns) for line, returns in self.left.items()) or None

    def explain(self, changes: Sequence[LineChange]) -> list[LineChange]:
        """The changes, with those as mechanical that are the page's habit."""
        ticks = {
            line
            for line, (count, chances) in self.ticking.items()
            if count >= _MIN_CHANGES and count >= _MIN_SHARE * chances
        }
        rotates = sum(self.left.values()) >= _MIN_RETURNS
        back = {change.key for change in changes if rotates and change.added and change.key & _HASH in self.left}
        return [
            change._replace(mechanical=True)
            if change.slot & _HASH in ticks
            or change.key in back
            or (rotates and not change.added and (change.instead in back or change.key & _HASH in self.left))
            else change
            for change in changes
        ]

    def note(self, changes: Sequence[LineChange]) -> None:
        """Learn from a change of the page."""
        self._note_ticks({change.slot & _HASH for change in changes if change.added and change.slot})
        for change in changes:
            line = change.key & _HASH
            if change.added and line in self.left:
                self.left[line] = min(self.left[line] + 1, _MOST)
        gone = [change.key & _HASH for change in changes if not change.added and not change.slot]
        if len(gone) <= _MAX_LEFT:  # more is no box, but another page
            for line in gone:
                self.left[line] = self.left.pop(line, 0)
        once = [line for line, returns in self.left.items() if not returns]
        for line in [*once, *self.left][: max(0, len(self.left) - _MAX_LEFT)]:
            self.left.pop(line, None)

    def _note_ticks(self, now: set[int]) -> None:
        for line, (count, chances) in self.ticking.items():
            if chances < _MOST:
                self.ticking[line] = (count + (line in now), chances + 1)
        for line in now - self.ticking.keys():
            self.ticking[line] = (1, 1)
        best = sorted(self.ticking.items(), key=lambda item: (-item[1][0] / item[1][1], -item[1][0], item[0]))
        self.ticking = dict(best[:_MAX_TICKING])
