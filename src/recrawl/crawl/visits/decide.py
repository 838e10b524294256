"""What an answer means for a page: from bytes and status to a verdict that is recorded.

Downloads arrive here (`arrived`); what has new bytes is handed to the readers and comes back (`understand`). Every
page that enters leaves exactly once: through `done`, or through `again` when it has to be asked for once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.compare.digest import of_payload
from recrawl.compare.validators import learn, usable
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits import verdicts
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.messages import Reading, Task
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.redirects import Redirects
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.crawl.visits.verdicts import Flight, VisitResult
from recrawl.discover.sitemaps import when
from recrawl.model import Answer, Failure, State, Validators
from recrawl.record.rows import HintRow

_JUST_NOW = 5.0
_REDIRECTS = (301, 302, 303, 307, 308)


class Hands(Protocol):
    """What a judge asks of the engine around it."""

    def submit(self, task: Task) -> None:
        """Let a page be read."""

    def again(self, flight: Flight) -> None:
        """Ask for a page once more: a retry, or the next step of a redirect."""

    def done(self, flight: Flight, verdict: VisitResult) -> None:
        """The page is dealt with."""

    def feeds(self, server: Server, urls: str) -> None:
        """A page of the server names feeds."""


class Judge:
    """Decides what visits have found; one for each run."""

    def __init__(
        self,
        hands: Hands,
        options: CrawlOptions,
        servers: Servers,
        recorder: Recorder,
        discovery: Discovery,
        redirects: Redirects,
        *,
        cycle: int,
        fingerprints: list[bytes],
        request_head: Callable[[str, Validators | None], bytes],
    ) -> None:
        self._hands = hands
        self._options = options
        self._servers = servers
        self._recorder = recorder
        self._discovery = discovery
        self._redirects = redirects
        self._cycle = cycle
        self._fingerprints = fingerprints
        self._request_head = request_head

    def arrived(self, server: Server, flight: Flight, answer: Answer) -> None:
        """A server has answered, or has failed to."""
        status = answer.status
        if answer.failure is not None:
            self.fail(flight, answer, answer.failure, answer.detail)
        elif status in (429, 503) and flight.attempts < self._options.retries:
            flight.attempts += 1
            self._hands.again(flight)
        elif status == 304 and flight.asked:
            self._unchanged(server, flight, answer)
        elif status == 200:
            self._body(server, flight, answer)
        elif status in _REDIRECTS:
            self._redirected(server, flight, answer)
        elif status in (404, 410) and not flight.trail:
            self._missing(server, flight, answer, target=-1)
        else:
            self.fail(flight, answer, _failure_of(status), f"HTTP {status}")

    def validators(self, server: Server, flight: Flight) -> Validators | None:
        """What a page can be asked with, to be sent only if it has changed."""
        state = flight.state
        if state.payload is None or flight.trail or not (state.etag or state.modified):
            return None
        if state.noise != self._fingerprints[server.noise]:
            return None  # its digest was made with another noise filter and must be made again, from the body
        return usable(Validators(state.etag, state.modified), server.trust, state.quiet) or None

    def understand(self, readings: list[Reading], flights: dict[int, Flight]) -> None:
        """Record what was read. All links are looked up at once: one by one they would cost four times as much."""
        if not readings:
            return
        links = [np.frombuffer(reading.keys, np.int64) for reading in readings]
        pages = self._discovery.look_up(np.concatenate(links))
        ends = np.cumsum([len(keys) for keys in links])[:-1]
        for reading, known in zip(readings, np.split(pages, ends), strict=True):
            self._understood(flights[reading.ticket], reading, known)

    def fail(self, flight: Flight, answer: Answer | None, failure: Failure, detail: str) -> None:
        """The visit says nothing about change."""
        number, at = self._recorder.next_visit(), self._options.clock()
        self._put(flight, verdicts.failed(flight, number, self._cycle, at, answer, failure, detail))

    # -- the cases -----------------------------------------------------------------------------------------

    def _body(self, server: Server, flight: Flight, answer: Answer) -> None:
        flight.answer, flight.payload = answer, of_payload(answer.body)
        state = flight.state
        same_noise = state.noise == self._fingerprints[server.noise]
        if state.payload == flight.payload and same_noise:
            self._unchanged(server, flight, answer)
            return
        self._hands.submit(
            Task(
                ticket=flight.page,
                url=flight.url,
                at=answer.at,
                ip=answer.ip,
                status=answer.status,
                headers=answer.headers,
                request=self._request_head(flight.ask, flight.asked),
                body=answer.body,
                payload=flight.payload,
                noise=server.noise,
                digest=state.digest,
                before=self._recorder.place(state.version) if state.version >= 0 else None,
                same_noise=same_noise,
            )
        )

    def _understood(self, flight: Flight, reading: Reading, known: NDArray[np.int64]) -> None:
        server = self._servers[flight.server]
        answer = flight.answer
        assert answer is not None
        if reading.failure:
            self.fail(flight, answer, Failure(reading.failure), reading.detail)
            return
        self._learn_trust(server, flight, answer, text_changed=reading.changed)
        if not flight.trail and server.habits.contradict(flight.url):
            server.dirty = True
        targets, new = np.zeros(0, np.int32), 0
        if reading.follow and reading.keys:
            batch = self._recorder.batch
            targets, new = self._discovery.links(
                known, reading, parent=flight.page, depth=flight.depth + 1, at=answer.at, batch=batch
            )
        self._volunteered(server, flight, reading, answer)
        visit, version = self._recorder.next_visit(), self._recorder.next_version()
        noise = self._fingerprints[server.noise]
        verdict = verdicts.read(flight, visit, self._cycle, reading, noise, version, new)
        _count_page(server, flight, State.LIVE)
        self._recorder.page_read(flight, verdict, reading, targets, server.origin)
        self._hands.done(flight, verdict)

    def _volunteered(self, server: Server, flight: Flight, reading: Reading, answer: Answer) -> None:
        """What the page and its headers say of change by themselves (spec H1, H3, H4)."""
        if reading.feeds:
            self._hands.feeds(server, reading.feeds)
        if reading.updates:
            row = HintRow(flight.page, "updates", answer.at, reading.updates * 86400.0, 0)
            self._recorder.batch.hints.append(row)
        said = answer.header("last-modified")
        if said and said != flight.state.modified:
            date = when(said)
            # A date that is that of the answer was made for it (spec C6).
            if date is not None and date < answer.at - _JUST_NOW:
                self._recorder.batch.hints.append(HintRow(flight.page, "modified", answer.at, date, 0))

    def _unchanged(self, server: Server, flight: Flight, answer: Answer) -> None:
        self._learn_trust(server, flight, answer, text_changed=False)
        verdict = verdicts.unchanged(flight, self._recorder.next_visit(), self._cycle, answer)
        _count_page(server, flight, State.LIVE)
        self._put(flight, verdict)

    def _missing(self, server: Server, flight: Flight, answer: Answer, *, target: int) -> None:
        verdict = verdicts.missing(
            flight,
            self._recorder.next_visit(),
            self._cycle,
            answer,
            target=target,
            vanishing=server.vanishing(),
            confirm_seconds=self._options.confirm_seconds,
        )
        _count_page(server, flight, State(verdict.state.state))
        self._put(flight, verdict)

    def _redirected(self, server: Server, flight: Flight, answer: Answer) -> None:
        step = self._redirects.judge(server, flight, answer, self._recorder.batch)
        if step.failure is not None:
            self.fail(flight, answer, step.failure, step.detail)
        elif step.target >= 0:
            self._missing(server, flight, answer, target=step.target)
        else:
            flight.trail.append(flight.ask)
            flight.ask = step.follow
            self._hands.again(flight)

    def _put(self, flight: Flight, verdict: VisitResult) -> None:
        self._recorder.put(verdict)
        self._hands.done(flight, verdict)

    def _learn_trust(self, server: Server, flight: Flight, answer: Answer, *, text_changed: bool) -> None:
        if answer.status != 200:
            return  # nothing to check them against
        after = Validators(answer.header("etag"), answer.header("last-modified"))
        if not after:
            return
        trust = learn(
            server.trust,
            before=Validators(flight.state.etag, flight.state.modified),
            after=after,
            answered_at=answer.at,
            server_date=answer.header("date"),
            text_changed=text_changed,
            status=answer.status,
        )
        if trust != server.trust:
            server.trust, server.dirty = trust, True


def _count_page(server: Server, flight: Flight, after: State) -> None:
    """Keep the numbers of live and missing pages, which the brake on deletion looks at."""
    before = flight.state.state
    server.live += (after == State.LIVE) - (before == State.LIVE)
    server.missing += (after == State.MISSING) - (before == State.MISSING)


def _failure_of(status: int) -> Failure:
    if status == 429:
        return Failure.RATE_LIMITED
    if status >= 500:
        return Failure.SERVER_ERROR
    return Failure.CLIENT_ERROR if 400 <= status < 500 else Failure.STATUS
