"""Visits under way, and the store rows they start from.

`Prefetch` reads rows 100 pages at a time, since reading them one by one costs three times as much. A row is read before
the page's turn comes: code that changes rows other than by a visit to the page must call `forget`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from recrawl.crawl.hints.hint_codec import pack_hints
from recrawl.crawl.render.messages import Rendered
from recrawl.crawl.visits.messages import Task
from recrawl.crawl.visits.servers import Server
from recrawl.fetch.lanes import Lanes
from recrawl.model import Answer, Validators
from recrawl.record.rows import Batch, PageState, unvisited
from recrawl.record.store import PageRow, Store

_BATCH = 100
"""Pages of one server read at once."""
_MAX_ROWS = 20_000
"""Rows kept for all servers together; beyond that, rows are read one by one."""


@dataclass(slots=True)
class PendingVisit:
    """One visit from its turn in the queue until it is recorded."""

    page: int
    url: str
    server: int
    depth: int
    listed: int
    state: PageState
    score: float | None
    why: int | None
    """Number of the policy's reason in the store."""
    request_url: str
    """The URL requested now; differs from `url` while redirects are followed."""
    hints: int = 0
    """Hints about the page since its last visit, packed (see `hint_codec`)."""
    validators: Validators | None = None
    """Sent with the current request."""
    identity: bool = False
    """Whether the body is requested without compression, after one that could not be decoded."""
    retries: int = 0
    session: int = 0
    """Logins of the run when the page was requested."""
    logins: int = 0
    """Logins that this visit has asked for."""
    requested: bool = False
    """Whether a request was sent at all."""
    redirects: list[str] = field(default_factory=list)
    """URLs that redirected in this visit, in order."""
    hides: bool = False
    """Whether the headers of the answer exclude the page from searches that find it so far."""
    answer: Answer | None = None
    payload: bytes = b""
    """SHA-1 of the answer's body."""
    browsed: Rendered | None = None
    """What became of the page in the browser, if it was loaded there."""
    received: int = 0
    """Bytes over the wire so far, including redirects and retries."""
    needs: tuple[int, bytes] | None = None
    """Level and packed numbers of its requisites; None if they were never looked for, or are not kept."""

    def request_again(self, answer: Answer, url: str, *, identity: bool = False, login: bool = False) -> None:
        """Prepare the next request: a retry of the same URL, also after a login, or the target of a redirect."""
        self.answer = answer
        if login:
            return
        if identity:
            self.identity = True
        elif url == self.request_url:
            self.retries += 1
        else:
            self.redirects.append(self.request_url)
            self.request_url = url


def task_of(
    visit: PendingVisit,
    answer: Answer,
    server: Server,
    request: bytes,
    stored: tuple[str, int, int] | None,
    same_noise: bool,
    counted: bool,
) -> Task:
    """The work of the reader process; see `Task` for the arguments."""
    return Task(
        ticket=visit.page,
        url=visit.url,
        at=answer.at,
        ip=answer.ip,
        status=answer.status,
        headers=answer.headers,
        request=request,
        body=answer.body,
        payload=visit.payload,
        noise=server.noise,
        digest=visit.state.digest,
        before=stored,
        same_noise=same_noise,
        level=server.level,
        counted=counted,
        answered_url=visit.request_url if visit.redirects else "",
        requisites=server.requisites,
        prior=visit.state.prior is None,
    )


class Awaited:
    """The pages whose outcomes end a run: all of them, or all but `spare` and as much time again as these took."""

    def __init__(self, pages: set[int], spare: int, now: float) -> None:
        self._left, self._spare, self._begun = pages, spare, now
        self._counted = 0
        self.until = math.inf

    def over(self, outcomes: list[tuple[int, int, int]], now: float) -> bool:
        """Whether the run ends; `outcomes` are those of the run so far."""
        if len(outcomes) > self._counted:
            self._left.difference_update(page for page, _, _ in outcomes[self._counted :])
            self._counted = len(outcomes)
            if len(self._left) <= self._spare and self.until == math.inf:
                self.until = now + (now - self._begun)
        return not self._left or now >= self.until


class NewlyFound(Protocol):
    """A page that was found since the last commit."""

    @property
    def url(self) -> str:
        """Its URL."""

    @property
    def site(self) -> int:
        """The number of its site."""

    @property
    def depth(self) -> int:
        """Links from the seed."""


class Prefetch:
    """Store rows of pages in the order in which the lanes will request them."""

    def __init__(self, store: Store, lanes: Lanes, clock: Callable[[], float], *, requisites: bool = False) -> None:
        """`requisites` tells whether the run keeps those of any site."""
        self._store = store
        self._lanes = lanes
        self._clock = clock
        self._requisites = requisites
        self._rows: dict[int, PageRow] = {}
        self._hints: dict[int, int] = {}
        self._needs: dict[int, tuple[int, bytes]] = {}

    def visit(
        self, page: int, server: int, fresh: NewlyFound | None, chosen: tuple[float | None, int | None]
    ) -> PendingVisit:
        """The visit of a page, from its row; `fresh` if the store has none yet, `chosen` by a score, for a reason."""
        if fresh is not None:
            return PendingVisit(page, fresh.url, fresh.site, fresh.depth, 0, unvisited(page), *chosen, fresh.url)
        (url, site, depth, listed, state), hints = self.take(page, server)
        needs = self._needs.pop(page, None)
        return PendingVisit(page, url, site, depth, listed, state, *chosen, url, hints, needs=needs)

    def take(self, page: int, server: int) -> tuple[PageRow, int]:
        """The row and the packed hints of a page; also reads those of the pages queued behind it."""
        row = self._rows.pop(page, None)
        if row is None:
            more = self._lanes.upcoming(server, _BATCH) if len(self._rows) < _MAX_ROWS else []
            self._rows.update(self._store.pages.get_many([page, *more]))
            self._hints.update(pack_hints(self._store, [page, *more], self._clock()))
            if self._requisites:
                self._needs.update(self._store.requisites.of_pages([page, *more]))
            row = self._rows.pop(page)
        return row, self._hints.pop(page, 0)

    def forget(self) -> None:
        """Drop all rows: the store has changed."""
        self._rows.clear()
        self._hints.clear()
        self._needs.clear()

    def committed(self, batch: Batch) -> None:
        """Drop rows that a commit made outdated: a sitemap changes rows of pages that were not visited."""
        if batch.listed:
            self.forget()
