"""The stream of updates (new, changed and removed pages), newest first, with filters and a cursor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recrawl.errors import UsageError
from recrawl.model import Outcome
from recrawl.record.store.reports import StreamPlace, UpdateFilter
from recrawl.repository.reader import Reader

OUTCOMES = ("changed", "new", "gone")
_NUMBERS = {outcome.name.lower(): int(outcome) for outcome in Outcome}
_SCANNED = 20_000
"""Updates scanned per call, however few of them pass the filters."""
_FOREVER = 1e300
"""Later than any time."""
_MAX_ID = 1 << 62
"""Larger than any id in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on updates; the defaults accept all."""

    site: int | None = None
    path: str = ""
    """Text that the URL contains."""
    since: float | None = None
    until: float | None = None
    divergence: float = 0.0
    """Least share of words changed; new and removed pages always pass."""
    significant: bool = False
    outcome: str = ""
    page: int | None = None
    tag: str = ""
    """Of the page or of its site."""
    unread: bool = False


@dataclass(frozen=True, slots=True)
class ChangeCursor:
    """A position in the stream: after this visit."""

    at: float
    id: int

    @classmethod
    def read(cls, text: str) -> ChangeCursor | None:
        """Parse a cursor; None if empty.

        >>> ChangeCursor.read(str(ChangeCursor(2.5, 7)))
        ChangeCursor(at=2.5, id=7)
        """
        if not text:
            return None
        at, _, number = text.partition("_")
        try:
            found = cls(float(at), int(number))
        except ValueError:
            found = cls(float("nan"), 0)
        if not abs(found.at) <= _FOREVER or not 0 <= found.id <= _MAX_ID:
            raise UsageError(f"invalid cursor '{text}'; use the one of the previous response, or none")
        return found

    def __str__(self) -> str:
        return f"{self.at!r}_{self.id}"


@dataclass(frozen=True, slots=True)
class Changes:
    """A page of the stream; `older` is the cursor of the next page, None at the end."""

    rows: list[dict[str, Any]]
    older: ChangeCursor | None
    looked_through: bool
    """Whether the page ended at the scan limit, with fewer rows than the limit."""


def changes(repo: Reader, filters: Filters, *, limit: int = 50, after: ChangeCursor | None = None) -> Changes:
    """Return updates that pass the filters, newest first, after a position in the stream."""
    if filters.outcome and filters.outcome not in OUTCOMES:
        raise UsageError(f"unknown outcome '{filters.outcome}'; use {', '.join(OUTCOMES)}")
    start = after or ChangeCursor(_FOREVER if filters.until is None else filters.until, _MAX_ID)
    if filters.until is not None and start.at > filters.until:
        start = replace(start, at=filters.until)
    place = StreamPlace(start.at, start.id)
    reports = repo.storage.store.reports
    floor = reports.place_before(place, _SCANNED)
    least = max(-_FOREVER if floor is None else floor.at, -_FOREVER if filters.since is None else filters.since)
    rows = reports.updates_before(place, least, _update_filter(filters), limit)
    if len(rows) == limit:
        return Changes(rows, ChangeCursor(rows[-1]["at"], rows[-1]["id"]), looked_through=False)
    ended = floor is None or (filters.since is not None and floor.at <= filters.since)
    older = None if ended or floor is None else ChangeCursor(*floor)
    return Changes(rows, older, looked_through=not ended)


def _update_filter(filters: Filters) -> UpdateFilter:
    return UpdateFilter(
        site=filters.site,
        page=filters.page,
        path=filters.path or None,
        divergence=filters.divergence or None,
        outcome=_NUMBERS.get(filters.outcome),
        significant=filters.significant,
        tag=filters.tag or None,
        unread=filters.unread,
    )
