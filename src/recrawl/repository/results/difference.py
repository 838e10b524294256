"""Difference: what lies between two versions of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recrawl.compare.diff import Hunk, folded, unified
from recrawl.repository.results.values import Row, iso

if TYPE_CHECKING:
    from recrawl.repository.results.pages import Version


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed in the text between two versions of a page."""

    old: Version
    new: Version
    divergence: float
    """The share of words that differ."""
    hunks: tuple[Hunk, ...]
    """Changed lines with context; `frame` marks the lines of the site's frame."""
    content: bool
    """False when only the frame of the site differs."""
    content_share: float
    significance: float
    """The probability that a reader calls the change news."""

    @property
    def text(self) -> str:
        """The changed lines with context, as a unified diff."""
        return unified(list(self.hunks))

    @property
    def content_hunks(self) -> tuple[Hunk, ...]:
        """The hunks without changed lines of the frame."""
        return tuple(folded(self.hunks))

    @property
    def content_text(self) -> str:
        """The unified diff without changed lines of the frame."""
        return unified(self.content_hunks)

    @property
    def frame_count(self) -> int:
        """The number of changed lines of the frame."""
        return sum(row.frame for hunk in self.hunks for row in hunk.rows)

    def __str__(self) -> str:
        return self.text

    def as_dict(self) -> Row:
        """As `recrawl diff --json` prints it."""
        times = {"old": iso(self.old.time), "new": iso(self.new.time)}
        return {
            "url": self.new.url,
            **times,
            "divergence": self.divergence,
            "content": self.content,
            "content_share": self.content_share,
            "significance": self.significance,
            "frame_lines": self.frame_count,
            "diff": self.text,
            "content_diff": self.content_text,
        }
