"""The stream of updates, newest first, through filters, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recrawl.errors import UsageError
from recrawl.model import Outcome
from recrawl.record.store import Store
from recrawl.record.store.reports import StreamPlace, UpdateFilter

OUTCOMES = ("changed", "new", "gone")
_NUMBERS = {outcome.name.lower(): int(outcome) for outcome in Outcome}
_LOOKED_AT = 20_000
"""Updates that one question looks through, however few of them the filters let pass."""
_EVER = 1e300
"""Later than any time."""
_LARGEST = 1 << 62
"""Larger than any number in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which updates are wanted; the defaults want all."""

    site: int | None = None
    path: str = ""
    """A part of the address."""
    since: float | None = None
    until: float | None = None
    divergence: float = 0.0
    """The least share of words that must have changed; new and removed pages count as whole."""
    significant: bool = False
    outcome: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the stream: behind this visit."""

    at: float
    id: int

    @classmethod
    def read(cls, text: str) -> Cursor | None:
        """A cursor as it was written; None for none.

        >>> Cursor.read(str(Cursor(2.5, 7)))
        Cursor(at=2.5, id=7)
        """
        if not text:
            return None
        at, _, number = text.partition("_")
        try:
            found = cls(float(at), int(number))
        except ValueError:
            found = cls(float("nan"), 0)
        if not abs(found.at) <= _EVER or not 0 <= found.id <= _LARGEST:
            raise UsageError("this is no place in the list: begin at its start")
        return found

    def __str__(self) -> str:
        return f"{self.at!r}_{self.id}"


@dataclass(frozen=True, slots=True)
class Changes:
    """A page of the stream; `older` is where it goes on, None at its end."""

    rows: list[dict[str, Any]]
    older: Cursor | None
    looked_through: bool
    """Whether the page ended because enough was looked at, not because enough was found."""


def changes(store: Store, wanted: Filters, *, limit: int = 50, after: Cursor | None = None) -> Changes:
    """Updates that pass the filters, newest first, from a place in the stream on."""
    if wanted.outcome and wanted.outcome not in OUTCOMES:
        raise UsageError(f"an update is {', '.join(OUTCOMES[:-1])} or {OUTCOMES[-1]}, not '{wanted.outcome}'")
    begin = after or Cursor(_EVER if wanted.until is None else wanted.until, _LARGEST)
    if wanted.until is not None and begin.at > wanted.until:
        begin = replace(begin, at=wanted.until)
    place = StreamPlace(begin.at, begin.id)
    floor = store.reports.place_before(place, _LOOKED_AT)
    least = max(-_EVER if floor is None else floor.at, -_EVER if wanted.since is None else wanted.since)
    rows = store.reports.updates_before(place, least, _update_filter(wanted), limit)
    if len(rows) == limit:
        return Changes(rows, Cursor(rows[-1]["at"], rows[-1]["id"]), looked_through=False)
    ended = floor is None or (wanted.since is not None and floor.at <= wanted.since)
    older = None if ended or floor is None else Cursor(*floor)
    return Changes(rows, older, looked_through=not ended)


def _update_filter(wanted: Filters) -> UpdateFilter:
    return UpdateFilter(
        site=wanted.site,
        page=wanted.page,
        path=wanted.path or None,
        divergence=wanted.divergence or None,
        outcome=_NUMBERS.get(wanted.outcome),
        significant=wanted.significant,
    )
