"""The stream of updates, newest first, through filters, a page at a time."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any

from recrawl.errors import UsageError
from recrawl.model import Outcome
from recrawl.record.questions import ask

OUTCOMES = ("changed", "new", "gone")
_NUMBERS = {outcome.name.lower(): int(outcome) for outcome in Outcome}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_LOOKED_AT = 20_000
"""Updates that one question looks through, however few of them the filters let pass."""
_EVER = 1e300
"""Later than any time."""
_LARGEST = 1 << 62
"""Larger than any number in the store."""
_ROWS = """SELECT v.id, v.page, v.at, v.outcome, v.version, p.url, p.site, s.origin,
                  ifnull(r.title, w.title) AS title, r.divergence, r.significant, r.new_links
           FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
           LEFT JOIN versions r ON r.id = v.version LEFT JOIN versions w ON w.id = p.version"""


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


def changes(db: sqlite3.Connection, wanted: Filters, *, limit: int = 50, after: Cursor | None = None) -> Changes:
    """Updates that pass the filters, newest first, from a place in the stream on."""
    if wanted.outcome and wanted.outcome not in OUTCOMES:
        raise UsageError(f"an update is {', '.join(OUTCOMES[:-1])} or {OUTCOMES[-1]}, not '{wanted.outcome}'")
    begin = after or Cursor(_EVER if wanted.until is None else wanted.until, _LARGEST)
    if wanted.until is not None and begin.at > wanted.until:
        begin = replace(begin, at=wanted.until)
    floor = _floor(db, begin)
    where, values = _conditions(wanted)
    bounds = "v.outcome IN (1, 2, 3) AND (v.at, v.id) < (?, ?) AND v.at >= ?"
    least = max(-_EVER if floor is None else floor.at, -_EVER if wanted.since is None else wanted.since)
    found = ask(
        db,
        f"{_ROWS} WHERE {' AND '.join([bounds, *where])} ORDER BY v.at DESC, v.id DESC LIMIT ?",
        (begin.at, begin.id, least, *values, limit),
    )
    rows = [{**row, "outcome": _NAMES[row["outcome"]], "title": row["title"] or ""} for row in found]
    if len(rows) == limit:
        return Changes(rows, Cursor(rows[-1]["at"], rows[-1]["id"]), looked_through=False)
    ended = floor is None or (wanted.since is not None and floor.at <= wanted.since)
    return Changes(rows, None if ended else floor, looked_through=not ended)


def _floor(db: sqlite3.Connection, begin: Cursor) -> Cursor | None:
    """How far back one question looks; None when that is to the beginning."""
    sql = """SELECT at, id FROM visits v WHERE outcome IN (1, 2, 3) AND (v.at, v.id) < (?, ?)
             ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?"""
    row = db.execute(sql, (begin.at, begin.id, _LOOKED_AT)).fetchone()
    return None if row is None else Cursor(*row)


def _conditions(wanted: Filters) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    for text, value in (
        ("p.site = ?", wanted.site),
        ("v.page = ?", wanted.page),
        ("instr(p.url, ?)", wanted.path or None),
        ("(v.outcome != 1 OR ifnull(r.divergence, 0) >= ?)", wanted.divergence or None),
        ("v.outcome = ?", _NUMBERS.get(wanted.outcome)),
    ):
        if value is not None:
            where.append(text)
            values.append(value)
    if wanted.significant:
        where.append("(v.outcome != 1 OR r.significant)")
    return where, values
