"""Requests for requisites, and what their answers mean.

A requisite that has not changed gives a revisit record, as a page does. So does one with the bytes of another URL: the
bytes are stored once. A redirect makes its target a requisite too. Stylesheets go through a reader process,
which finds what they need; these are requisites of the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from recrawl.compare.digest import of_payload
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.requisites.registry import Registry, lines, validators_of
from recrawl.crawl.requisites.run import RequisiteRun
from recrawl.crawl.visits.messages import Reading, Scan
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.redirects import ARCHIVED, REDIRECTS
from recrawl.crawl.visits.servers import Server
from recrawl.discover.requisites import absolute
from recrawl.discover.urls import origin
from recrawl.fetch.fetcher import Request
from recrawl.model import Answer, Failure, RequisiteLevel
from recrawl.record import warc
from recrawl.record.requisite_rows import OutgoingRequisite, RequisiteRow, RequisiteVersion
from recrawl.record.store import Store

FIRST_TICKET = -(1 << 40)
"""Tickets at or below are requisites; site resources have numbers above, pages are not negative."""
_FIRST_PAGE = -(1 << 50)
"""Tickets at or below are stored pages that are searched for requisites."""
_TOO_LARGE = ("audio/", "video/")
"""Media types that are too large for what they show."""
_PAGES = ("text/html", "application/xhtml+xml")
"""Media types of error pages that have no status of an error."""
_MAX_TYPE = 200


class _Body(NamedTuple):
    """A new body while a reader process searches it."""

    row: RequisiteRow
    answer: Answer
    payload: bytes
    request: bytes


class RequisiteFetches:
    """The requisites of one run."""

    def __init__(self, run: RequisiteRun, store: Store, registry: Registry, options: CrawlOptions) -> None:
        self._store, self._registry, self._options = store, registry, options
        self._servers, self._lanes, self._client = run.servers, run.lanes, run.client
        self._readers, self._recorder = run.readers, run.recorder
        self._resources, self._tally = run.resources, run.tally
        self._left = options.requisite_budget
        self._rows: dict[int, RequisiteRow] = {}
        """Requisites that wait in a lane or for an answer, by ticket."""
        self._queued: set[int] = set()
        """All that were queued in this run: each is requested once."""
        self._identity: set[int] = set()
        """Tickets whose body is requested without compression, after one that could not be decoded."""
        self.on_settled: Callable[[RequisiteRow, Answer | None], None] = lambda _row, _answer: None
        """Called with each answer; rendering waits for it."""
        self._demanded: set[int] = set()
        """Tickets that the page needs which is being rendered: outside the budget of the run, and of any media type."""
        self._bodies: dict[int, _Body] = {}
        self._unscanned: dict[int, RequisiteLevel] = {}
        self._next_version = store.next_id("requisite_versions")

    # -- pages -------------------------------------------------------------------------------------------------

    def page_read(self, page: int, server: Server, reading: Reading) -> None:
        """A page was parsed: record what it needs."""
        if server.requisites:
            self._registry.page_read(page, server.requisites, reading, self._recorder.batch)

    def page_unchanged(self, visit: PendingVisit, server: Server) -> None:
        """A page is as it was: note what is due of what it needs, or look for it in the stored version."""
        version = visit.state.version
        if not server.requisites or version < 0:
            return
        if visit.needs is not None and visit.needs[0] >= server.requisites:
            self._registry.page_visited(visit.needs[1], self._recorder.batch)
            return
        stored = self._recorder.location(version)
        if stored is not None:
            ticket, url = _FIRST_PAGE - visit.page, visit.state.archived_url or visit.url
            self._unscanned[ticket] = server.requisites
            self._readers.submit(Scan(ticket, url, stored=stored, requisites=server.requisites))

    def take(self, handed: Sequence[OutgoingRequisite]) -> None:
        """Record requisites that other shards of a cluster need."""
        self._registry.take(handed, self._recorder.batch)
        self._recorder.commit()

    # -- requests ----------------------------------------------------------------------------------------------

    def enqueue(self) -> None:
        """Queue what waits for its first request, and what is due for another one."""
        self._recorder.commit()
        due, self._registry.due = list(self._registry.due), {}
        for row in [*self._store.requisites.waiting(self._left), *self._store.requisites.get_many(due)]:
            self._push(row)

    def _push(self, row: RequisiteRow) -> None:
        if row.id not in self._queued:
            self._queued.add(row.id)
            server = self._servers.of_requisite(origin(row.url))
            self._resources.prepare(server)
            self._rows[FIRST_TICKET - row.id] = row
            self._lanes.push(server.id, FIRST_TICKET - row.id)

    def demand(self, row: RequisiteRow) -> None:
        """Request a requisite next, for the page that is being rendered."""
        ticket = FIRST_TICKET - row.id
        self._demanded.add(ticket)
        if ticket not in self._rows and ticket not in self._bodies:
            self._queued.add(row.id)
            server = self._servers.of_requisite(origin(row.url))
            self._resources.prepare(server)
            self._rows[ticket] = row
            self._lanes.push_front(server.id, ticket)

    def start(self, server: Server, ticket: int, now: float) -> None:
        """The requisite's turn has come: request it, unless it may not be requested or the budget is spent."""
        row = self._rows[ticket]
        refusal = server.refuses(row.url, new=False)
        spent = self._left <= 0 and ticket not in self._demanded
        if refusal is not None or spent:
            self._lanes.skip(server.id, now)
            del self._rows[ticket]
            if refusal is not None:
                self._failed(row, refusal.value, self._options.clock())
            return
        self._left -= ticket not in self._demanded
        self._client.start(
            ticket,
            Request(
                row.url,
                validators=validators_of(row),
                allow_private=server.options.allow_private or self._options.allow_private,
                identity=ticket in self._identity,
                accepts=_small,
            ),
        )

    def answered(self, ticket: int, answer: Answer, now: float) -> Server:
        """Record what an answer means; returns its server."""
        row = self._rows[ticket]
        server = self._servers.of_requisite(origin(row.url))
        self._lanes.answered(server.id, now, answer, ticket)
        self._tally.requisites += 1
        self._tally.requisite_bytes += answer.received
        if answer.failure is Failure.BAD_ENCODING and ticket not in self._identity:
            self._identity.add(ticket)
            self._lanes.push_front(server.id, ticket)
            return server
        del self._rows[ticket]
        request = self._client.request_head(row.url, validators_of(row), identity=ticket in self._identity)
        if answer.failure is not None:
            self._failed(row, answer.failure.value, answer.at)
        elif answer.status == 304 and row.version >= 0:
            self._unchanged(row, answer)
        elif answer.status == 200:
            self._body(ticket, _Body(row, answer, of_payload(answer.body), request))
        else:
            if answer.status in ARCHIVED:
                self._recorder.archive(answer, request)
            if answer.status in REDIRECTS:
                self._redirected(row, answer)
            else:
                self._failed(row, f"HTTP {answer.status}", answer.at)
        return server

    # -- answers -----------------------------------------------------------------------------------------------

    def _body(self, ticket: int, body: _Body) -> None:
        if ticket not in self._demanded and body.answer.header("content-type").strip().lower().startswith(_PAGES):
            self._failed(body.row, Failure.CONTENT_TYPE.value, body.answer.at)
            return
        stored = self._store.requisites.version(body.row.version)
        if stored is not None and stored.payload == body.payload and stored.length:
            self._unchanged(body.row, body.answer)
        elif body.row.style:
            self._bodies[ticket] = body
            self._readers.submit(Scan(ticket, body.row.url, body.answer.headers, body.answer.body))
        else:
            self._record(body, "", "")

    def parsed(self, readings: list[Reading]) -> list[Reading]:
        """Take the stylesheets and stored pages that were searched; returns the readings of visits."""
        for reading in readings:
            if reading.ticket in self._unscanned:
                level = self._unscanned.pop(reading.ticket)
                self._registry.page_read(_FIRST_PAGE - reading.ticket, level, reading, self._recorder.batch)
            elif reading.ticket < 0:
                self._record(self._bodies.pop(reading.ticket), reading.styles, reading.files)
        return [reading for reading in readings if reading.ticket >= 0]

    def _record(self, body: _Body, styles: str, files: str) -> None:
        """Record a new version; its bytes are stored unless another version has the same ones."""
        row, answer, payload, request = body
        batch = self._recorder.batch
        if any(other.payload == payload for other, _ in batch.requisites.versions):
            self._recorder.commit()  # its place in the archive is not known before
        number, self._next_version = self._next_version, self._next_version + 1
        kind = answer.header("content-type")
        version = RequisiteVersion(
            id=number,
            requisite=row.id,
            at=answer.at,
            record=number,
            size=len(answer.body),
            warc=-1,
            start=0,
            length=0,
            payload=payload,
            mime=kind[:_MAX_TYPE] if kind.isprintable() else "",
            styles=styles,
            files=files,
        )
        same, records = self._store.requisites.with_payload(payload), b""
        if same is not None:
            version = version._replace(record=same.id, warc=same.warc, start=same.start, length=same.length)
            self._revisit(row, answer, same)
        else:
            head = (row.url, answer.at, answer.ip, answer.status, answer.headers, answer.body, payload, request)
            records = warc.response(*head)
        self._recorder.batch.requisites.versions.append((version, records))
        self._succeeded(row._replace(version=number, target=-1), answer)
        self._follow(row, lines(styles), lines(files))

    def _unchanged(self, row: RequisiteRow, answer: Answer) -> None:
        version = self._store.requisites.version(row.version)
        assert version is not None
        self._revisit(row, answer, version)
        self._succeeded(row._replace(target=-1), answer)
        self._follow(row, lines(version.styles), lines(version.files))

    def _revisit(self, row: RequisiteRow, answer: Answer, version: RequisiteVersion) -> None:
        """Add the record of an answer that repeats the bytes of a version."""
        holder = version if version.record == version.id else self._store.requisites.version(version.record)
        assert holder is not None
        url = self._store.requisites.get_many([holder.requisite])[0].url
        original = warc.Original(url, holder.at, holder.payload)
        record = warc.revisit(row.url, answer.at, answer.ip, original, answer.status, answer.headers)
        self._recorder.batch.records.append((record, answer.at))

    def _redirected(self, row: RequisiteRow, answer: Answer) -> None:
        target = absolute(answer.header("location"), row.url)
        batch, style = self._recorder.batch, bool(row.style)
        urls = [target] if target and target != row.url else []
        found = self._registry.register(
            urls if style else [], [] if style else urls, row.depth + 1, RequisiteLevel(row.level), batch
        )
        if not found:
            self._failed(row, Failure.REDIRECT_BAD.value, answer.at)
            return
        self._succeeded(row._replace(target=found[0]), answer)
        self._queue(found)

    def _succeeded(self, row: RequisiteRow, answer: Answer) -> None:
        fresh = row._replace(checked=answer.at, failures=0, failure=None)
        if answer.status == 200:
            fresh = fresh._replace(etag=answer.header("etag"), modified=answer.header("last-modified"))
        self._registry.update(fresh, self._recorder.batch)
        self.on_settled(fresh, answer)

    def _failed(self, row: RequisiteRow, failure: str, at: float) -> None:
        fresh = row._replace(checked=at, failures=row.failures + 1, failure=failure)
        self._registry.update(fresh, self._recorder.batch)
        self.on_settled(fresh, None)

    def _follow(self, row: RequisiteRow, styles: list[str], files: list[str]) -> None:
        """Queue what a stylesheet needs."""
        if styles or files:
            self._queue(
                self._registry.register(styles, files, row.depth + 1, RequisiteLevel(row.level), self._recorder.batch)
            )

    def _queue(self, numbers: list[int]) -> None:
        rows = self._registry.rows([number for number in numbers if number not in self._queued])
        known = [row.id for row in rows if row.checked is not None]
        due = set(self._registry.due_among(known, self._recorder.batch))
        for row in rows:
            if row.checked is None or row.id in due:
                self._push(row)


def _small(content_type: str) -> bool:
    return not content_type.strip().lower().startswith(_TOO_LARGE)
