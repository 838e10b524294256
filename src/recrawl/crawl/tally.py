"""What a run has done so far, for progress and for the summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from recrawl.model import Outcome


@dataclass(slots=True)
class RunCounts:
    """Counts of one crawl or one cycle."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    received: int = 0
    found: int = 0
    waiting: int = 0
    warnings: list[str] = field(default_factory=list)
    """What was ignored of what servers volunteer, in sentences."""

    @property
    def visits(self) -> int:
        """All visits, whatever came of them."""
        return sum(self.outcomes.values())
