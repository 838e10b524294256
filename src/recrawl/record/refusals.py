"""What the database refuses of a batch: one page's rows, found by halving the batch; the rest is recorded.

What a reader process or a server sends is checked before it gets here (`crawl.visits.messages`,
`fetch.bounded_answers`), so this is for what those checks do not know. The rows of a page belong together: its visits
become failures with the reason, its stored version stays. Rows that are not of one page (a feed, a claim of a source, a
link to another shard) are left out. New pages, sites and servers are not: their URLs are canonical, and others refer to
their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from recrawl.characters import storable
from recrawl.model import Failure, Outcome
from recrawl.record.rows import Batch, PageState, VisitRow, unvisited
from recrawl.record.store import Store

_LONGEST_REASON = 300
_OF_PAGE: dict[str, Callable[[Any], int]] = {
    "visits": lambda row: row.page,
    "states": lambda row: row.id,
    "unchanged": lambda row: row.id,
    "versions": lambda row: row.page,
    "links": lambda row: row[0],
    "hints": lambda row: row.page,
    "listed": lambda row: row[1],
    "screenshots": lambda row: row[0].page,
}
_ALONE = ("sources", "feeds", "frames", "outbox")


class RefusedVisit(NamedTuple):
    """A visit that was to be recorded, and the failure that was recorded in its place."""

    wanted: VisitRow
    recorded: VisitRow


class _Part(NamedTuple):
    """Rows of a batch that are recorded together or not at all, each with the list that it is in."""

    page: int
    """-1 for what is of no page."""
    requisite: int
    rows: list[tuple[str, Any]]


def leave_out(store: Store, batch: Batch, problem: str) -> list[RefusedVisit]:
    """Take out of a batch what the database refuses; returns the visits that have become failures.

    `problem` is why it refuses the batch as it is.
    """
    parts = list(_parts(batch).values())
    refused: list[RefusedVisit] = []
    for part, reason in _found(store, parts, problem):
        for name, row in part.rows:
            kept = [it for it in _rows(batch, name) if it is not row]
            _set_rows(batch, name, kept)
        if part.page >= 0:
            refused += _failed(store, batch, part, reason)
            batch.documents = [document for document in batch.documents if document.page != part.page]
        elif part.requisite >= 0:
            _fail_requisite(store, batch, part)
    return refused


def _found(store: Store, parts: Sequence[_Part], problem: str) -> Iterator[tuple[_Part, str]]:
    """The parts that the database refuses, each with the reason; `problem` is that of all of them."""
    if not problem or not parts:
        return
    if len(parts) == 1:
        yield parts[0], problem
        return
    middle = len(parts) // 2
    for half in (parts[:middle], parts[middle:]):
        yield from _found(store, half, store.refusal(_batch_of(half)))


def _parts(batch: Batch) -> dict[Any, _Part]:
    parts: dict[Any, _Part] = {}
    for name, number in _OF_PAGE.items():
        for row in getattr(batch, name):
            page = number(row)
            parts.setdefault(page, _Part(page, -1, [])).rows.append((name, row))
    for row in batch.requisites.pages:
        parts.setdefault(row[0], _Part(row[0], -1, [])).rows.append(("requisites.pages", row))
    for requisite in batch.requisites.rows:
        part = parts.setdefault(("requisite", requisite.id), _Part(-1, requisite.id, []))
        part.rows.append(("requisites.rows", requisite))
    for version in batch.requisites.versions:
        of = version[0].requisite
        part = parts.setdefault(("requisite", of), _Part(-1, of, []))
        part.rows.append(("requisites.versions", version))
    for name in _ALONE:
        for row in getattr(batch, name):
            parts[name, id(row)] = _Part(-1, -1, [(name, row)])
    for row in batch.requisites.outbox:
        parts["outgoing", id(row)] = _Part(-1, -1, [("requisites.outbox", row)])
    return parts


def _batch_of(parts: Sequence[_Part]) -> Batch:
    batch = Batch()
    for part in parts:
        for name, row in part.rows:
            _rows(batch, name).append(row)
    return batch


def _rows(batch: Batch, name: str) -> list[Any]:
    of, _, field = name.rpartition(".")
    rows: list[Any] = getattr(batch.requisites if of else batch, field)
    return rows


def _set_rows(batch: Batch, name: str, rows: list[Any]) -> None:
    of, _, field = name.rpartition(".")
    setattr(batch.requisites if of else batch, field, rows)


def _failed(store: Store, batch: Batch, part: _Part, reason: str) -> list[RefusedVisit]:
    """Record the visits of a page as failures, and its state as it was before them."""
    wanted: list[VisitRow] = [row for name, row in part.rows if name == "visits"]
    visits = [_failure(row, reason) for row in wanted]
    if visits:
        batch.visits += visits
        before = _state(store, batch, part.page)
        state = before._replace(failures=before.failures + len(visits), last_try=visits[-1].at)
        batch.states.append(state)
    return [RefusedVisit(*pair) for pair in zip(wanted, visits, strict=True)]


def _failure(row: VisitRow, reason: str) -> VisitRow:
    """The visit as a failure, without anything that was found."""
    detail = storable(" ".join(reason.split()), _LONGEST_REASON)
    return row._replace(
        outcome=int(Outcome.FAILED),
        seconds=0.0,
        version=-1,
        score=None,
        why=None,
        failure=Failure.UNSTORABLE.value,
        detail=f"the database refuses what was found: {detail}",
        hints=0,
    )


def _state(store: Store, batch: Batch, page: int) -> PageState:
    if any(row.id == page for row in batch.pages):
        return unvisited(page)
    return store.pages.get(page).state


def _fail_requisite(store: Store, batch: Batch, part: _Part) -> None:
    """Keep the number and the URL of a requisite that pages refer to, with what is known of it so far."""
    number = part.requisite
    before = next(iter(store.requisites.get_many([number])), None)
    given = next((row for name, row in part.rows if name == "requisites.rows"), before)
    row = before or given
    if row is not None:
        failed = row._replace(failures=row.failures + 1, failure=Failure.UNSTORABLE.value)
        if before is None:
            failed = failed._replace(version=-1, target=-1, etag="", modified="")
        batch.requisites.rows.append(failed)
