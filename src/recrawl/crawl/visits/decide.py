"""What an answer means for the page. Does no I/O: takes everything it needs, returns a value.

    Decider.answered   after a download: Submit (parse it) | Retry (request again) | Done or Unchanged (record it)
    update_server      after parsing: trust in the server's validators and its redirect habits
    Decider.parsed     after parsing: Done

In memory it updates the server: trust in its validators, its redirect habits, and its counts of live and missing pages.
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.columns import DAY
from recrawl.compare.content.judge import ContentChange
from recrawl.compare.digest import of_payload
from recrawl.compare.validators import learn, usable
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.tally import RowNumbers
from recrawl.crawl.visits import results
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.redirects import Redirect
from recrawl.crawl.visits.results import Done, Unchanged
from recrawl.crawl.visits.servers import Server, noise_table
from recrawl.discover.dates import parse_date
from recrawl.model import Answer, Failure, State, Validators
from recrawl.record.rows import HintRow

_GENERATED_SECONDS = 5.0
"""A Last-Modified this close to the request was generated for the answer (spec C6)."""


class Submit(NamedTuple):
    """New bytes: parse the page and compare it with the stored version."""

    payload: bytes
    """SHA-1 of the body."""
    same_noise: bool
    """Whether the stored digest was made with the current noise filter."""


class Retry(NamedTuple):
    """Request this URL next: the same one after a 429 or 503, or the target of a redirect."""

    url: str
    identity: bool = False
    """Without compression, since the body could not be decoded."""
    login: bool = False
    """After a login, since the session has expired."""


class Decider:
    """Decides what visits have found; one for each run."""

    def __init__(self, options: CrawlOptions, numbers: RowNumbers, cycle: int) -> None:
        self._options = options
        self._numbers = numbers
        self._fingerprints = [noise.fingerprint for noise in noise_table(options)]
        self._levels = options.levels
        self._cycle = cycle

    def validators(self, server: Server, visit: PendingVisit) -> Validators | None:
        """The validators to send, so that the server may answer 304; None requests the whole page."""
        state = visit.state
        if server.reloads:
            return None
        if state.payload is None or visit.redirects or visit.hides or not (state.etag or state.modified):
            return None
        if state.noise != self._fingerprints[server.noise]:
            return None  # the digest was made with another noise filter and must be recomputed from the body
        return usable(Validators(state.etag, state.modified), server.trust, state.quiet) or None

    def answered(
        self, server: Server, visit: PendingVisit, answer: Answer, redirect: Redirect | None
    ) -> Submit | Retry | Done | Unchanged:
        """Decide on an answer; `redirect` is where it leads, when it is a redirect."""
        status = answer.status
        if answer.failure is Failure.BAD_ENCODING and not visit.identity:
            return Retry(visit.request_url, identity=True)
        if answer.failure is not None:
            return self.failed(visit, answer, answer.failure, answer.detail, answer.at)
        if status in (429, 503) and visit.retries < self._options.retries:
            return Retry(visit.request_url)
        if status == 304 and visit.validators and visit.hides:
            return Retry(visit.request_url)  # without validators: its version is recorded anew, not searchable
        if status == 304 and (visit.validators or (self._options.outside and visit.state.payload)):
            return self.unchanged(server, visit, answer)
        if status == 200:
            return self._body(server, visit, answer)
        if redirect is not None:
            if redirect.failure is not None:
                return self.failed(visit, answer, redirect.failure, redirect.detail, answer.at)
            return Retry(redirect.follow) if redirect.follow else self._missing(server, visit, answer, redirect.target)
        if status in (404, 410) and not visit.redirects:
            return self._missing(server, visit, answer, -1)
        return self.failed(visit, answer, _failure_of(status), f"HTTP {status}", answer.at)

    def parsed(
        self, server: Server, visit: PendingVisit, reading: Reading, new_links: int, change: ContentChange | None
    ) -> Done:
        """The result of a visit whose page was parsed without a failure; `change` judges the lines that differ."""
        number, version = self._numbers.visit(), self._numbers.version()
        noise = self._fingerprints[server.noise]
        counts = results.counts_as_change(self._levels[server.level], reading, change)
        done = results.read(visit, number, self._cycle, reading, noise, version, new_links, change, counts=counts)
        _count_state(server, visit, State.LIVE)
        return done

    def failed(self, visit: PendingVisit, answer: Answer | None, failure: Failure, detail: str, at: float) -> Done:
        """The result of a visit that says nothing about change."""
        return results.failed(visit, self._numbers.visit(), self._cycle, at, answer, failure, detail)

    def refused(self, visit: PendingVisit) -> Done:
        """The result of a visit that was refused with a 429 or 503 and is not tried again."""
        answer = visit.answer
        assert answer is not None
        return self.failed(visit, answer, _failure_of(answer.status), f"HTTP {answer.status}", answer.at)

    def _body(self, server: Server, visit: PendingVisit, answer: Answer) -> Submit | Unchanged:
        payload = of_payload(answer.body)
        same_noise = visit.state.noise == self._fingerprints[server.noise]
        if visit.state.payload == payload and same_noise and not visit.hides and not server.reloads:
            return self.unchanged(server, visit, answer)
        return Submit(payload, same_noise)

    def repeats(self, server: Server, visit: PendingVisit, reading: Reading) -> bool:
        """Whether a parsed page is as it was: a browser loads pages although their bytes are the same.

        Where that has failed, the same bytes count as the same page: its text before scripts says nothing of a change.
        """
        same = visit.state.payload == visit.payload and visit.state.noise == self._fingerprints[server.noise]
        failed = server.renders and visit.browsed is not None and reading.render_differs is None
        return same and not visit.hides and (failed or not reading.changed)

    def unchanged(self, server: Server, visit: PendingVisit, answer: Answer) -> Unchanged:
        """The result of a visit that found the page as it was."""
        _learn_trust(server, visit, answer, text_changed=False)
        done = results.unchanged(visit, self._numbers.visit(), self._cycle, answer)
        _count_state(server, visit, State.LIVE)
        return done

    def _missing(self, server: Server, visit: PendingVisit, answer: Answer, target: int) -> Done:
        done = results.missing(
            visit,
            self._numbers.visit(),
            self._cycle,
            answer,
            target=target,
            vanishing=server.vanishing(),
            confirm_seconds=self._options.confirm_seconds,
        )
        _count_state(server, visit, State(done.state.state))
        return done


def update_server(server: Server, visit: PendingVisit, reading: Reading) -> None:
    """Update trust and redirect habits of the server from a parsed page; before its links are looked up."""
    assert visit.answer is not None
    _learn_trust(server, visit, visit.answer, text_changed=reading.changed)
    if not visit.redirects and server.habits.contradict(visit.url):
        server.dirty = True


def _learn_trust(server: Server, visit: PendingVisit, answer: Answer, *, text_changed: bool) -> None:
    """Update the trust in the server's validators: did they change when the text did?"""
    if answer.status != 200:
        return  # without a body there is nothing to check them against
    after = Validators(answer.header("etag"), answer.header("last-modified"))
    if not after:
        return
    trust = learn(
        server.trust,
        before=Validators(visit.state.etag, visit.state.modified),
        after=after,
        answered_at=answer.at,
        server_date=answer.header("date"),
        text_changed=text_changed,
        status=answer.status,
    )
    if trust != server.trust:
        server.trust, server.dirty = trust, True


def page_hints(visit: PendingVisit, reading: Reading) -> list[HintRow]:
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


def _count_state(server: Server, visit: PendingVisit, after: State) -> None:
    """Update the server's numbers of live and missing pages, which decide whether pages vanish together (spec C5)."""
    before = visit.state.state
    server.live += (after == State.LIVE) - (before == State.LIVE)
    server.missing += (after == State.MISSING) - (before == State.MISSING)


def _failure_of(status: int) -> Failure:
    if status == 429:
        return Failure.RATE_LIMITED
    if status >= 500:
        return Failure.SERVER_ERROR
    return Failure.CLIENT_ERROR if 400 <= status < 500 else Failure.STATUS
