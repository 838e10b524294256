"""What an experiment is and what it returns: plain values from which the report, charts and JSON are made.

A claim is a statement of a document with its place. A run judges it on each world: it holds, it does not hold, or it
cannot be said from what was measured; always with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

Row = Mapping[str, Any]


class Verdict(StrEnum):
    """The judgement of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be said"
    GIVEN = "built in"
    """The world was generated from this very statement, so it can only agree."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a document, judged on one world."""

    place: str
    says: str
    world: str
    verdict: Verdict
    measured: str
    """The numbers that the verdict rests on."""
    why: str = ""
    """Where it does not hold: the reason, if known."""
    reading: str = ""
    """How the sentence was read, where it can be read in more than one way (see `readings`)."""

    @classmethod
    def of(
        cls,
        place: str,
        says: str,
        world: str,
        holds: bool | None,
        measured: str,
        why: str = "",
        *,
        given: bool = False,
        reading: str = "",
    ) -> Claim:
        """A claim with its verdict from True, False or None (open); the reason is dropped where it holds.

        `given`: the world was generated so that it holds.

        >>> Claim.of("fig. 1", "a is over b", "made", None, "a 1, b unknown").verdict.value
        'cannot be said'
        """
        yes = Verdict.GIVEN if given else Verdict.HOLDS
        verdict = Verdict.OPEN if holds is None else yes if holds else Verdict.FAILS
        return cls(place, says, world, verdict, measured, "" if holds else why, reading)


@dataclass(frozen=True, slots=True)
class Picture:
    """What a chart shows, defined without loading a chart library. `x`, `y`, `colour` and others are keys of rows."""

    kind: Literal["line", "bar", "grouped", "calibration"]
    x: str
    y: str
    title: str
    x_title: str = ""
    y_title: str = ""
    colour: str = ""
    colour_title: str = ""
    facet: str = ""
    low: str = ""
    high: str = ""
    """A band, or whiskers, from `low` to `high`: the spread over seeds."""
    size: str = ""
    """For a calibration chart: the number of predictions behind a point."""
    notes: tuple[str, ...] = ()
    columns: int = 2
    zero: bool = True
    """Whether the y axis begins at zero."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Only rows with these values are shown."""

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that the chart shows."""
        return [row for row in rows if all(row.get(key) == value for key, value in self.only.items())]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run measured, beside what the document prints."""

    rows: list[Row]
    published: list[Row] = field(default_factory=list)
    """The document's own numbers."""
    claims: list[Claim] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    worlds: list[str] = field(default_factory=list)
    """One sentence per world."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know: what the document leaves open, and what was assumed."""
    table: Mapping[str, str] | None = None
    """Keys of rows with their headings, for the table of the report; None shows all keys."""


def by_world(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each world, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["world"], []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """How experiments are run."""

    scale: float = 1.0
    """The size of generated worlds, as a share of the document's."""
    seeds: int = 10
    """Repetitions of anything that depends on random numbers."""
    archives: tuple[Path, ...] = ()
    change: str = "text"
    """What counts as change in archives."""
    workers: int = 1
    cache: Path | None = None
    """Where replays and facts of archives are cached."""
    timer: Callable[[], float] = lambda: 0.0
    """A wall clock."""
    cpu: Callable[[], float] = lambda: 0.0
    """A clock of CPU time."""
    progress: Callable[[int, int], None] = lambda done, total: None  # noqa: ARG005

    @property
    def trials(self) -> Path | None:
        """Where replays are cached."""
        return self.cache / "trials" if self.cache else None


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure of a document."""

    name: str
    document: str
    """T, B, Q or R; see `recrawl.lab.experiments.DOCUMENTS`."""
    place: str
    """Table, figure or section."""
    title: str
    run: Callable[[ExperimentOptions], Result]
