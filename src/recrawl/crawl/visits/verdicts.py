"""From an answer to the rows that record it. No I/O, no clock: everything needed comes in.

failed        nothing was learned about change: transport, 4xx, 5xx, robots.txt ...
unchanged     304, or the same bytes again
read          new bytes: the reader said whether the text changed
missing       404, 410 or a permanent redirect: a step of the deletion state machine (spec C5)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recrawl.compare.gone import Evidence, Standing, step
from recrawl.crawl.visits.messages import Reading
from recrawl.model import HOLDING, NOT_TRIED, Answer, Failure, Outcome, State, Unvisited, Validators
from recrawl.record import warc
from recrawl.record.rows import PageState, VersionRow, VisitRow

_MAX_DETAIL = 300
_MAX_VALIDATOR = 500


@dataclass(slots=True)
class Flight:
    """A page on its way: from the moment it is its turn until it is recorded."""

    page: int
    url: str
    server: int
    depth: int
    listed: int
    state: PageState
    score: float | None
    why: int | None
    ask: str
    """The address that is asked for now; another one than `url` while redirects are followed."""
    hints: int = 0
    """What was volunteered about it since its last visit, packed."""
    asked: Validators | None = None
    attempts: int = 0
    boarded: bool = False
    """Whether it was asked for at all."""
    trail: list[str] = field(default_factory=list)
    answer: Answer | None = None
    payload: bytes = b""
    received: int = 0
    """Bytes over the wire so far, redirects and retries included."""


class VisitResult(NamedTuple):
    """What goes into the batch for one visit."""

    visit: VisitRow
    state: PageState
    version: VersionRow | None = None
    record: bytes = b""


def _visit(
    flight: Flight, number: int, cycle: int, outcome: Outcome, answer: Answer | None, at: float, version: int
) -> VisitRow:
    return VisitRow(
        id=number,
        page=flight.page,
        cycle=cycle,
        at=answer.at if answer else at,
        outcome=int(outcome),
        status=answer.status if answer else 0,
        received=flight.received,
        seconds=answer.seconds if answer else 0.0,
        version=version,
        score=flight.score,
        why=flight.why,
        failure=None,
        detail=None,
        hints=flight.hints,
    )


def told(visit: VisitRow) -> int:
    """What a policy is told of a visit: a page that was never asked for has cost nothing."""
    if visit.failure in HOLDING:
        return int(Unvisited.HELD)
    return int(Unvisited.SKIPPED) if visit.failure == Failure.ROBOTS else visit.outcome


def failed(
    flight: Flight, number: int, cycle: int, at: float, answer: Answer | None, failure: Failure, detail: str
) -> VisitResult:
    """A visit that says nothing about change. What was held off was not tried, so it is no mark against the page."""
    visit = _visit(flight, number, cycle, Outcome.FAILED, answer, at, -1)
    visit = visit._replace(failure=failure.value, detail=detail[:_MAX_DETAIL] or None)
    before = flight.state
    state = before._replace(failures=before.failures + (failure not in NOT_TRIED), last_try=visit.at)
    if failure is Failure.ROBOTS:
        state = state._replace(state=int(State.BARRED))
    return VisitResult(visit, state)


def unchanged(flight: Flight, number: int, cycle: int, answer: Answer) -> VisitResult:
    """304, or the same bytes as before: no version, but a revisit record that says so."""
    before = flight.state
    not_modified = answer.status == 304
    same = None if not_modified else (answer.status, answer.headers)
    assert before.payload is not None
    record = warc.revisit(flight.url, answer.at, answer.ip, before.payload, before.version_at, same)
    visit = _visit(flight, number, cycle, Outcome.UNCHANGED, answer, answer.at, before.version)
    state = _present(before, answer, quiet=before.quiet + 1 if not_modified else 0)
    return VisitResult(visit, state, record=record)


def read(
    flight: Flight, number: int, cycle: int, reading: Reading, noise: bytes, version: int, new_links: int
) -> VisitResult:
    """New bytes: a new version, and a change when the text is another one (spec C1)."""
    answer, before = flight.answer, flight.state
    assert answer is not None
    first = before.version < 0
    outcome = Outcome.NEW if first else Outcome.CHANGED if reading.changed else Outcome.UNCHANGED
    changed = outcome is not Outcome.UNCHANGED
    visit = _visit(flight, number, cycle, outcome, answer, answer.at, version)
    row = VersionRow(
        id=version,
        page=flight.page,
        at=answer.at,
        changed=int(changed),
        divergence=reading.divergence,
        significant=None if reading.significant is None else int(reading.significant),
        new_links=new_links,
        searchable=int(reading.searchable),
        size=len(answer.body),
        warc=0,
        start=0,
        length=0,
        payload=flight.payload,
        digest=reading.digest,
        title=reading.title,
        mime=reading.mime,
        encoding=reading.encoding,
    )
    state = _present(
        before,
        answer,
        changes=before.changes + changed,
        last_change=answer.at if changed else before.last_change,
        quiet=0,
        size=len(answer.body),
        version=version,
        version_at=answer.at,
        payload=flight.payload,
        digest=reading.digest,
        noise=noise,
    )
    return VisitResult(visit, state, version=row)


def missing(
    flight: Flight,
    number: int,
    cycle: int,
    answer: Answer,
    *,
    target: int,
    vanishing: bool,
    confirm_seconds: float,
) -> VisitResult:
    """404, 410 or a permanent redirect (`target` is where to): believed only when confirmed (spec C5)."""
    before = flight.state
    moved = target >= 0
    had_page = before.payload is not None  # not so when it was gone already and is looked at again
    standing = step(
        Standing(State(before.state), before.misses, before.missing_since),
        Evidence.MISSING,
        answer.at,
        dropped_from_sitemap=flight.listed == 2,
        vanishing=vanishing,
        confirm_seconds=confirm_seconds,
    )
    state = before._replace(
        state=int(standing.state), misses=standing.misses, missing_since=standing.missing_since, target=target
    )
    gone = standing.state is State.GONE
    if moved and (gone or not had_page):
        state = state._replace(state=int(State.MOVED))
    if not (gone and had_page):
        visit = _visit(flight, number, cycle, Outcome.FAILED, answer, answer.at, -1)
        failure = Failure.MOVED if moved else Failure.MISSING
        visit = visit._replace(failure=failure.value, detail=f"HTTP {answer.status}")
        return VisitResult(visit, state._replace(failures=before.failures + 1, last_try=answer.at))
    visit = _visit(flight, number, cycle, Outcome.GONE, answer, answer.at, -1)
    return VisitResult(
        visit,
        state._replace(
            visits=before.visits + 1,
            changes=before.changes + 1,
            failures=0,
            payload=None,  # should it come back, even with the same bytes, that is news
            digest=None,
            last_try=answer.at,
            last_visit=answer.at,
            last_change=answer.at,
        ),
    )


def _present(before: PageState, answer: Answer, **news: Any) -> PageState:
    """The page answered: whatever was suspected of it is over; `news` is what else is known now."""
    etag, modified = answer.header("etag"), answer.header("last-modified")
    if answer.status == 304:  # it may repeat only one of them
        etag, modified = etag or before.etag, modified or before.modified
    return before._replace(
        state=int(State.LIVE),
        visits=before.visits + 1,
        failures=0,
        misses=0,
        missing_since=0.0,
        target=-1,
        last_try=answer.at,
        last_visit=answer.at,
        etag=_sendable(etag),
        modified=_sendable(modified),
        **news,
    )


def _sendable(validator: str) -> str:
    """A validator that can be sent back; what is absurdly long or not plain ASCII is not worth keeping."""
    return validator if len(validator) <= _MAX_VALIDATOR and validator.isascii() and validator.isprintable() else ""
