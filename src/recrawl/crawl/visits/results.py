"""The rows that record a visit, by what it found. No I/O, no clock: functions of their arguments.

failed        says nothing about change: transport error, 4xx, 5xx, robots.txt ...
unchanged     304, or the same bytes again
read          new bytes: the reader process has compared the text
missing       404, 410 or a permanent redirect: a step of the deletion state machine (spec C5)

`VisitRows` makes them for one run.
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.columns import DAY
from recrawl.compare.content.judge import ContentChange
from recrawl.compare.gone import Evidence, Standing, step
from recrawl.compare.levels import ChangeLevel, Differences
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.site_frames import counters_after
from recrawl.crawl.tally import RowNumbers
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.servers import Server, noise_table
from recrawl.discover.dates import parse_date
from recrawl.discover.urls import key
from recrawl.model import HOLDING, NOT_TRIED, Answer, Failure, Outcome, State, Unvisited, sendable
from recrawl.record import warc
from recrawl.record.rows import HintRow, PageState, UnchangedPage, VersionRow, VisitRow

_LIVE = int(State.LIVE)
_MAX_DETAIL = 300
_GENERATED_SECONDS = 5.0
"""A Last-Modified this close to the request was generated for the answer (spec C6)."""


class Done(NamedTuple):
    """A finished visit, as the rows to be recorded."""

    visit: VisitRow
    state: PageState
    version: VersionRow | None = None


class Unchanged(NamedTuple):
    """A finished visit that found the page as it was, as the rows to be recorded."""

    visit: VisitRow
    state: PageState | UnchangedPage
    record: bytes


class VisitRows:
    """The rows of the visits of one run."""

    def __init__(self, options: CrawlOptions, numbers: RowNumbers, cycle: int) -> None:
        self._numbers, self._levels, self._cycle = numbers, options.levels, cycle
        self._fingerprints = [noise.fingerprint for noise in noise_table(options)]
        self._confirm_seconds = options.confirm_seconds

    def failed(self, visit: PageVisit, answer: Answer | None, failure: Failure, detail: str, at: float) -> Done:
        """A visit that says nothing about change; `at` is its time if there is no answer."""
        return failed(visit, self._numbers.visit(), self._cycle, at, answer, failure, detail)

    def unchanged(self, visit: PageVisit, answer: Answer) -> Unchanged:
        """A visit that found the page as it was."""
        return unchanged(visit, self._numbers.visit(), self._cycle, answer)

    def missing(self, server: Server, visit: PageVisit, answer: Answer, target: int, detail: str = "") -> Done:
        """404, 410, a permanent redirect to the page `target`, or what says so with another status."""
        done = missing(
            visit,
            self._numbers.visit(),
            self._cycle,
            answer,
            target=target,
            vanishing=server.vanishing(),
            confirm_seconds=self._confirm_seconds,
        )
        if detail:
            done = done._replace(visit=done.visit._replace(detail=detail[:_MAX_DETAIL]))
        return done

    def read(
        self, server: Server, visit: PageVisit, reading: Reading, new_links: int, change: ContentChange | None
    ) -> Done:
        """A page that was parsed without a failure; `change` judges the lines that differ."""
        number, version = self._numbers.visit(), self._numbers.version()
        noise = self._fingerprints[server.noise]
        counts = counts_as_change(self._levels[server.level], reading, change, new_links)
        return read(visit, number, self._cycle, reading, noise, version, new_links, change, counts=counts)


def page_hints(visit: PageVisit, reading: Reading) -> list[HintRow]:
    """Hints about change in the page and its headers: the meta-updates tag (spec H1) and Last-Modified (spec H4)."""
    answer = visit.answer
    assert answer is not None
    hints: list[HintRow] = []
    if reading.updates:
        hints.append(HintRow(visit.page, "updates", answer.at, reading.updates * DAY, 0))
    modified = answer.header("last-modified")
    if modified and modified != visit.state.modified:
        date = parse_date(modified)
        if date is not None and date < answer.at - _GENERATED_SECONDS:
            hints.append(HintRow(visit.page, "modified", answer.at, date, 0))
    return hints


def policy_outcome(visit: VisitRow) -> int:
    """The outcome sent to the policy: a page that was not requested costs it nothing."""
    if visit.failure in HOLDING:
        return int(Unvisited.HELD)
    return int(Unvisited.SKIPPED) if visit.failure == Failure.ROBOTS else visit.outcome


def failed(
    visit: PageVisit, number: int, cycle: int, at: float, answer: Answer | None, failure: Failure, detail: str
) -> Done:
    """A visit that says nothing about change. Without a request it does not count as a failure of the page."""
    row = _visit_row(visit, number, cycle, Outcome.FAILED, answer, at, -1)
    row = row._replace(failure=failure.value, detail=detail[:_MAX_DETAIL] or None)
    before = visit.state
    state = before._replace(failures=before.failures + (failure not in NOT_TRIED), last_try=row.at)
    if failure is Failure.ROBOTS and before.state not in (State.GONE, State.MOVED):
        state = state._replace(state=int(State.BARRED))
    return Done(row, state)


def unchanged(visit: PageVisit, number: int, cycle: int, answer: Answer) -> Unchanged:
    """304, or the same bytes as before: no new version, only a revisit record."""
    before, at = visit.state, answer.at
    assert before.payload is not None
    original = warc.Original(before.archived_url or visit.url, before.version_at, before.payload)
    record = warc.revisit(visit.request_url, at, answer.ip, original, answer.status, answer.headers)
    row = _visit_row(visit, number, cycle, Outcome.UNCHANGED, answer, at, before.version)
    quiet = before.quiet + 1 if answer.status == 304 else 0
    if before.state != _LIVE or before.failures or before.misses or before.target >= 0:
        return Unchanged(row, _back(before, answer, quiet), record)
    etag, modified = _validators(before, answer)
    return Unchanged(row, UnchangedPage(before.visits + 1, quiet, at, at, etag, modified, before.id), record)


def counts_as_change(level: ChangeLevel, reading: Reading, change: ContentChange | None, new_links: int) -> bool:
    """Whether a new version of a page counts as a change of the page."""
    differs = Differences(
        content=None if change is None else change.content,
        significant=reading.significant,
        divergence=reading.divergence,
        relevance=reading.relevance,
        words=reading.words_apart,
        new_links=new_links,
        out_links=reading.out_links,
    )
    return (reading.changed or level.of_links) and level.counts(differs)


def read(
    visit: PageVisit,
    number: int,
    cycle: int,
    reading: Reading,
    noise: bytes,
    version: int,
    new_links: int,
    change: ContentChange | None,
    *,
    counts: bool,
) -> Done:
    """New bytes: a new version; the page has changed if that `counts`."""
    answer, before = visit.answer, visit.state
    assert answer is not None
    outcome = _outcome(before, counts=counts)
    changed = outcome is not Outcome.UNCHANGED
    row = _version_row(visit, answer, reading, version, new_links, change)
    state = _read_state(visit, answer, reading, noise, version, changed=changed)
    return Done(_visit_row(visit, number, cycle, outcome, answer, answer.at, version), state, version=row)


def _read_state(
    visit: PageVisit, answer: Answer, reading: Reading, noise: bytes, version: int, *, changed: bool
) -> PageState:
    """The state of a page with a new version; built at once, as `_replace` takes twice as long."""
    before = visit.state
    etag, modified = _validators(before, answer)
    return PageState(
        state=_LIVE,
        visits=before.visits + 1,
        changes=before.changes + changed,
        failures=0,
        quiet=0,
        misses=0,
        size=len(answer.body),
        version=version,
        version_at=answer.at,
        target=-1,
        last_try=answer.at,
        last_visit=answer.at,
        last_change=answer.at if changed else before.last_change,
        missing_since=0.0,
        payload=visit.payload,
        digest=reading.digest,
        noise=noise,
        etag=etag,
        modified=modified,
        counters=counters_after(before.counters, reading),
        archived_url=visit.request_url if visit.redirects else "",
        prior=before.prior if reading.prior is None else reading.prior,
        sketch=reading.sketch if reading.changed else before.sketch,
        claim=key(reading.claim) if reading.claim else 0,
        same_as=before.same_as,
        id=before.id,
    )


def _outcome(before: PageState, *, counts: bool) -> Outcome:
    if before.version < 0:
        return Outcome.NEW
    return Outcome.CHANGED if counts else Outcome.UNCHANGED


def missing(
    visit: PageVisit,
    number: int,
    cycle: int,
    answer: Answer,
    *,
    target: int,
    vanishing: bool,
    confirm_seconds: float,
) -> Done:
    """404, 410 or a permanent redirect to page `target`: counts as gone only when confirmed (spec C5)."""
    before = visit.state
    moved = target >= 0
    had_page = before.payload is not None  # False when it was gone before and is checked again
    standing = step(
        Standing(State(before.state), before.misses, before.missing_since),
        Evidence.MISSING,
        answer.at,
        dropped_from_sitemap=visit.listed == 2,
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
        row = _visit_row(visit, number, cycle, Outcome.FAILED, answer, answer.at, -1)
        failure = Failure.MOVED if moved else Failure.MISSING
        row = row._replace(failure=failure.value, detail=f"HTTP {answer.status}")
        return Done(row, state._replace(failures=before.failures + 1, last_try=answer.at))
    return Done(
        _visit_row(visit, number, cycle, Outcome.GONE, answer, answer.at, -1)._replace(copy=int(bool(before.same_as))),
        state._replace(
            visits=before.visits + 1,
            changes=before.changes + 1,
            failures=0,
            payload=None,  # if the page returns, even with the same bytes, that is a change
            digest=None,
            last_try=answer.at,
            last_visit=answer.at,
            last_change=answer.at,
        ),
    )


def removed(visit: PageVisit, number: int, cycle: int, at: float) -> Done:
    """A removal that needs no confirmation: one of an archive, or by the user."""
    before = visit.state
    return Done(
        _visit_row(visit, number, cycle, Outcome.GONE, None, at, -1),
        before._replace(
            state=int(State.GONE),
            visits=before.visits + 1,
            changes=before.changes + 1,
            payload=None,  # if the page returns, even with the same bytes, that is a change
            digest=None,
            last_try=at,
            last_visit=at,
            last_change=at,
        ),
    )


def _version_row(
    visit: PageVisit, answer: Answer, reading: Reading, version: int, new_links: int, change: ContentChange | None
) -> VersionRow:
    return VersionRow(
        id=version,
        page=visit.page,
        at=answer.at,
        changed=int(reading.changed),
        divergence=reading.divergence,
        significant=None if reading.significant is None else int(reading.significant),
        new_links=new_links,
        searchable=int(reading.searchable),
        size=len(answer.body),
        warc=0,
        start=0,
        length=0,
        payload=visit.payload,
        digest=reading.digest,
        title=reading.title,
        mime=reading.mime,
        encoding=reading.encoding,
        content=None if change is None else int(change.content),
        content_share=None if change is None else change.share,
        significance=None if change is None else change.significance,
        rendered=int(reading.render_differs is not None),
        language=reading.language,
        description=reading.description,
        image=reading.image,
        published=reading.published,
        updated=reading.updated,
    )


def _visit_row(
    visit: PageVisit, number: int, cycle: int, outcome: Outcome, answer: Answer | None, at: float, version: int
) -> VisitRow:
    return VisitRow(
        id=number,
        page=visit.page,
        cycle=cycle,
        at=answer.at if answer else at,
        outcome=int(outcome),
        status=answer.status if answer else 0,
        received=visit.received,
        seconds=answer.seconds if answer else 0.0,
        version=version,
        score=visit.score,
        why=visit.why,
        failure=None,
        detail=visit.browsed.problem or None if visit.browsed is not None else None,
        hints=visit.hints,
    )


def _back(before: PageState, answer: Answer, quiet: int) -> PageState:
    """The state of a page that failed or was missing at its last visit, and is as it was before that."""
    etag, modified = _validators(before, answer)
    return before._replace(
        state=_LIVE,
        visits=before.visits + 1,
        failures=0,
        quiet=quiet,
        misses=0,
        missing_since=0.0,
        target=-1,
        last_try=answer.at,
        last_visit=answer.at,
        etag=etag,
        modified=modified,
    )


def _validators(before: PageState, answer: Answer) -> tuple[str, str]:
    """ETag and Last-Modified for the next request."""
    fields = answer.fields
    etag, modified = fields.get("etag", ""), fields.get("last-modified", "")
    if answer.status == 304:  # it may repeat only one of them, mostly as it was
        etag, modified = etag or before.etag, modified or before.modified
    return (
        etag if etag == before.etag else sendable(etag),
        modified if modified == before.modified else sendable(modified),
    )
