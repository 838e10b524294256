"""Counts of a run, for progress and for its summary; and the numbers of its rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from recrawl.model import Outcome

_OUTCOMES = tuple(Outcome)
_NUMBERS = ("received", "found", "waiting", "url", "requisites", "requisite_bytes", "versions")


@dataclass(slots=True)
class RunCounts:
    """Counts of one crawl or cycle."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Failed visits by cause: as many as `outcomes` has."""
    left: Counter[str] = field(default_factory=Counter)
    """Pages that were not visited and are left for the next run, by cause; they are no visits."""
    received: int = 0
    found: int = 0
    waiting: int = 0
    url: str = ""
    """The page requested last."""
    requisites: int = 0
    """Requests for requisites; they are no visits."""
    requisite_bytes: int = 0
    versions: int = 0
    """Versions that an import has recorded."""
    warnings: list[str] = field(default_factory=list)
    """Problems with certificates, sitemaps, feeds and pushes, in sentences."""

    def count(self, outcome: int, failure: str | None) -> None:
        """Count a visit."""
        self.outcomes[_OUTCOMES[outcome]] += 1
        if failure:
            self.failures[failure] += 1

    def recount(self, outcome: int, failure: str | None, instead: str | None) -> None:
        """A visit that was counted has failed after all, for the reason `instead`."""
        self.outcomes[_OUTCOMES[outcome]] -= 1
        if failure:
            self.failures[failure] -= 1
        self.count(Outcome.FAILED, instead)

    @property
    def visits(self) -> int:
        """All visits, with any outcome."""
        return sum(self.outcomes.values())


def joined(one: RunCounts, other: RunCounts) -> RunCounts:
    """The counts of two runs together."""
    return RunCounts(
        outcomes=one.outcomes + other.outcomes,
        failures=one.failures + other.failures,
        left=one.left + other.left,
        received=one.received + other.received,
        found=one.found + other.found,
        waiting=other.waiting,
        url=other.url,
        requisites=one.requisites + other.requisites,
        requisite_bytes=one.requisite_bytes + other.requisite_bytes,
        versions=one.versions + other.versions,
        warnings=[*one.warnings, *other.warnings],
    )


def as_row(counts: RunCounts) -> dict[str, Any]:
    """Counts as JSON."""
    return {
        "outcomes": {outcome.name.lower(): number for outcome, number in counts.outcomes.items()},
        "failures": dict(counts.failures),
        "left": dict(counts.left),
        "warnings": counts.warnings[:100],
        **{name: getattr(counts, name) for name in _NUMBERS},
    }


def from_row(row: dict[str, Any]) -> RunCounts:
    """Counts from JSON, which may hold more; empty from an empty row."""
    plain = {name: row[name] for name in (*_NUMBERS, "warnings") if name in row}
    outcomes = Counter({Outcome[name.upper()]: number for name, number in row.get("outcomes", {}).items()})
    failures, left = Counter(row.get("failures", {})), Counter(row.get("left", {}))
    return RunCounts(outcomes=outcomes, failures=failures, left=left, **plain)


class RowNumbers:
    """Counters for the numbers of visits and versions; they go on where the store ends."""

    def __init__(self, next_visit: int, next_version: int) -> None:
        self.next_visit = next_visit
        self.next_version = next_version

    def visit(self) -> int:
        """The number of the next visit."""
        self.next_visit += 1
        return self.next_visit - 1

    def version(self) -> int:
        """The number of the next version."""
        self.next_version += 1
        return self.next_version - 1
