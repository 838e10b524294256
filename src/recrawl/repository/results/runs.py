"""What the methods of `Repository` that write return: reports, plans and progress of runs, removals, imports.

Commands that only read do not load them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Literal

from recrawl.model import SKIPPED, Failure, Outcome
from recrawl.repository.results.values import Row


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a crawl or a cycle is."""

    kind: Literal["crawl", "cycle"]
    visits: int
    total: int | None
    """The budget of a cycle; None in a crawl."""
    waiting: int
    """Pages in the queue of a crawl."""
    outcomes: Counter[Outcome] = field(repr=False)
    found: int = 0
    """Pages discovered."""
    received: int = 0
    """Bytes over the wire."""
    failures: Counter[str] = field(default_factory=Counter, repr=False)


@dataclass(frozen=True, slots=True)
class Report:
    """What a crawl or a cycle did."""

    cycle: int
    """Its number in the repository."""
    kind: str
    """crawl or cycle."""
    policy: str
    budget: int
    resumed: bool
    """It went on with one that was interrupted."""
    finished: bool
    """False when it was stopped; the next one goes on from there."""
    outcomes: Counter[Outcome]
    failures: Counter[str]
    found: int
    """Pages discovered."""
    received: int
    """Bytes over the wire."""
    warnings: tuple[str, ...]
    """What was ignored in sitemaps, feeds and robots.txt, in sentences."""
    seconds: float
    notes: tuple[str, ...] = ()
    left: Counter[str] = field(default_factory=Counter)
    """Pages that were not visited and are left for the next run, by cause."""
    work: dict[str, int] = field(default_factory=dict)
    """What the policy reports of its computing, such as machines fitted; empty for most policies."""
    requisites: int = 0
    """Requests for page requisites; they are no visits, and have a budget of their own."""
    requisite_bytes: int = 0

    @property
    def visits(self) -> int:
        """All visits, whatever their outcome."""
        return sum(self.outcomes.values())

    @property
    def fruitless(self) -> bool:
        """Whether visits failed and none was answered."""
        answered = self.visits - self.outcomes[Outcome.FAILED] + self.failures[Failure.MISSING]
        return self.failed > 0 and not answered

    @property
    def failed(self) -> int:
        """Failed visits, without pages that our rules skip and pages that may be gone."""
        return counts(self.outcomes, self.failures)["failed"]

    @property
    def changed(self) -> int:
        """Updates found: pages created, changed and removed."""
        return sum(self.outcomes[outcome] for outcome in (Outcome.NEW, Outcome.CHANGED, Outcome.GONE))

    def as_dict(self) -> Row:
        """As `recrawl crawl --json` and `recrawl cycle --json` print it."""
        return {
            "cycle": self.cycle,
            "kind": self.kind,
            "policy": self.policy,
            "budget": self.budget,
            "resumed": self.resumed,
            "finished": self.finished,
            **counts(self.outcomes, self.failures),
            "failures": dict(self.failures),
            "left": dict(self.left),
            "found": self.found,
            "received": self.received,
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "work": self.work,
            "requisites": self.requisites,
            "requisite_bytes": self.requisite_bytes,
        }


def counts(outcomes: Counter[Outcome], failures: Counter[str]) -> dict[str, int]:
    """Visits, and visits by outcome; failed ones without pages that our rules skip and pages that may be gone.

    >>> both = counts(Counter({Outcome.FAILED: 3}), Counter({"content-type": 1, "not-found": 1, "timeout": 1}))
    >>> both["visits"], both["failed"], both["skipped"], both["missing"]
    (3, 1, 1, 1)
    """
    skipped, missing = sum(failures[word] for word in SKIPPED), failures[Failure.MISSING]
    by_name = {outcome.name.lower(): outcomes[outcome] for outcome in Outcome}
    failed = by_name["failed"] - skipped - missing
    return {"visits": sum(outcomes.values()), **by_name, "failed": failed, "skipped": skipped, "missing": missing}


@dataclass(frozen=True, slots=True)
class PlannedVisit:
    """A visit that a cycle would make."""

    place: int
    url: str
    score: float
    """What the policy ranks pages by; not a probability."""
    reason: str
    probability: float | None = None
    """The change probability now; None before the first download."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cycle would do if it began now."""

    policy: str
    budget: int
    sure: int
    """Visits chosen before the policy waits for an outcome; the later ones assume that nothing changed."""
    sites: tuple[Row, ...]
    """Visits by site, most first: site, visits, pages, at_most."""
    pages: tuple[PlannedVisit, ...]

    def as_dict(self) -> Row:
        """As `recrawl cycle --dry-run --json` prints it."""
        return {**asdict(self), "sites": list(self.sites), "pages": [asdict(visit) for visit in self.pages]}


@dataclass(frozen=True, slots=True)
class Removal:
    """What `remove` took out."""

    removed: tuple[str, ...]
    """The seeds, sorted."""
    pages: int
    """Pages that are no longer visited."""

    def as_dict(self) -> Row:
        """As `recrawl rm --json` prints it."""
        return {"removed": list(self.removed), "pages": self.pages}


@dataclass(frozen=True, slots=True)
class Attempt:
    """What `try_access` came to."""

    url: str
    status: int = 0
    """The HTTP status; 0 without an answer."""
    failure: str = ""
    location: str = ""
    """Where the page redirects."""
    bytes: int = 0

    def as_dict(self) -> Row:
        """As `recrawl access --try --json` prints it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Import:
    """What an import recorded."""

    pages: int = 0
    """Pages that became known or got a history."""
    versions: int = 0
    refused: tuple[str, ...] = ()
    """Lines that are not URLs."""
    remarks: dict[str, int] | None = None
    """What was odd about a git or WARC history, with counts; None when nothing was converted."""
    records: Row | None = None
    """WARC records by type: how many were read and taken, and how many were left out for which reason."""
    became: dict[str, int] | None = None
    """The records that were taken: visits by outcome, and `known`, those of pages that were visited before."""

    def as_dict(self) -> Row:
        """As `recrawl import --json` prints it."""
        row = {"pages": self.pages, "versions": self.versions, "refused": list(self.refused)}
        more = {"remarks": self.remarks, "records": self.records, "became": self.became}
        return row | {name: value for name, value in more.items() if value is not None}
