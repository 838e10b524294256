"""Begin, resume and end a crawl or a cycle: the frame around `LiveWeb` and `drive`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recrawl.choose import Policy, describe, make_policy
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.anchors import told
from recrawl.crawl.reports.summaries import summarise
from recrawl.crawl.state import limits
from recrawl.crawl.state.book_columns import check_needs, put_away
from recrawl.crawl.state.policy_memory import ready_book, remember
from recrawl.crawl.state.rescope import rescope, scopes_changed
from recrawl.crawl.state.weights import check_weights, weigh
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.byte_budget import ByteBudget
from recrawl.crawl.visits.live_web import LiveWeb
from recrawl.discover.urls import canonical
from recrawl.errors import UsageError
from recrawl.loop import Resumed, drive
from recrawl.record.rows import Batch, CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_MOST_VISITS = 1e15
_MOVED_AGAIN = 30 * 86400.0
"""How long a page that has moved is left alone."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a crawl or a cycle has come to."""

    cycle: CycleRow
    tally: RunCounts
    resumed: bool
    finished: bool
    seconds: float
    notes: tuple[str, ...] = ()
    """What people should know beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How a run can be watched and ended."""

    stop: Callable[[], bool] = lambda: False
    progress: Callable[[RunCounts], None] = lambda _: None
    seconds: float = float("inf")
    """After so long it ends."""
    period: float = float("inf")
    """So long it should take at most: servers that cannot take all of a plan in that time get less of it."""
    release: Callable[[int], float] | None = None
    """When the n-th visit may be made at the earliest; None lets all be made at once."""


def spread(visits: int, at_start: float, begin: float, period: float) -> Callable[[int], float]:
    """Synchronisation points (spec P1): a share of the visits at once, the others evenly over the period.

    >>> even = spread(4, 0.0, 100.0, 40.0)
    >>> [even(n) for n in range(4)]
    [100.0, 110.0, 120.0, 130.0]
    >>> most = spread(4, 0.75, 100.0, 40.0)
    >>> [most(n) for n in range(4)]
    [100.0, 100.0, 100.0, 100.0]
    """
    first = round(visits * at_start)
    step = period / max(1, visits - first)
    return lambda n: begin + max(0, n - first) * step


def crawl(
    repository: Storage, options: CrawlOptions, seeds: Iterable[str], controls: Controls, *, only_rested: bool = False
) -> Summary:
    """Discover and download what is new; goes on with a crawl that was interrupted."""
    cycle, resumed = _begin(repository.store, options, "crawl", "explore", 0, 0)
    started = options.timer()
    live = _live(repository, options, cycle, controls, started)
    try:
        if scopes_changed(repository, options.scopes):
            rescope(repository, options, live.discovery, live.take)
        _plant(live, options, seeds, cycle)
        done = set(repository.store.visits_of_cycle(cycle)["page"].tolist()) if resumed else set()
        live.explore(done, only_rested=only_rested)
        finished = _finish(repository, options, live, cycle, controls)
    finally:
        live.close()
    return Summary(cycle, live.tally, resumed, finished, options.timer() - started)


def cycle(
    repository: Storage, options: CrawlOptions, policy: Policy, budget: float, seed: int, controls: Controls
) -> Summary:
    """One refresh cycle; goes on with one that was interrupted, with its policy and budget."""
    check_needs(policy)
    check_weights(repository, options.weights)
    seconds = min(controls.seconds, controls.period)
    visits = limits.within(budget_of(budget, repository.store), options, seconds)
    row, resumed = _begin(repository.store, options, "cycle", describe(policy), visits, seed)
    started = options.timer()
    live = _live(repository, options, row, controls, started)
    try:
        if scopes_changed(repository, options.scopes):
            rescope(repository, options, live.discovery, live.take)
        policy = make_policy(row.policy)
        if ("hints" in policy.needs or options.spending.reserve_pushed) and row.limits is None:  # nothing is chosen yet
            live.hear()
        named = told(repository.store, options.anchors)
        book, past = ready_book(repository, policy, row, live.servers.limits(), begin=True, told=named)
        ignored = weigh(book, repository, row, options.weights, begin=True)
        allowed, allowance = limits.allowed(repository, policy, row, book, live.servers, options, seconds, begin=True)
        live.bytes = ByteBudget(allowance.bytes, allowance.site_bytes, repository.store.received_of_cycle(row))
        for _ in drive(allowed, _with_recorded(live, repository.store, row), book, row.budget, row.seed):
            if controls.stop():
                break
        finished = _finish(repository, options, live, row, controls)
        if finished:
            remember(repository, policy, row, past)
            put_away(repository)
            limits.put_away(repository)
    finally:
        live.close()
    notes = (ignored,) if ignored else ()
    return Summary(row, live.tally, resumed, finished, options.timer() - started, notes)


def budget_of(budget: float, store: Store) -> int:
    """A count of visits: a share of the pages when under 1."""
    if not 0 < budget <= _MOST_VISITS:
        raise UsageError(f"a budget must be more than zero and at most {_MOST_VISITS:g}, not {budget:g}")
    if budget < 1:
        pages = int(store.db.execute("SELECT count(*) FROM pages WHERE state IN (0, 1, 2)").fetchone()[0])
        return max(1, round(budget * pages))
    return int(budget)


def unfinished(store: Store, kind: str) -> CycleRow | None:
    """The crawl or cycle that was interrupted, if there is one."""
    for row in store.cycles(limit=20):
        if row.kind == kind:
            return row if row.finished is None else None
    return None


def _begin(
    store: Store, options: CrawlOptions, kind: str, policy: str, budget: int, seed: int
) -> tuple[CycleRow, bool]:
    open_one = unfinished(store, kind)
    if open_one is not None:
        return open_one, True
    number = store.next_id("cycles")
    row = CycleRow(
        id=number,
        kind=kind,
        policy=policy,
        budget=budget,
        seed=seed * 1_000_003 + number,
        started=options.clock(),
        finished=None,
        first_visit=store.next_id("visits"),
        known=store.next_id("pages"),
    )
    store.open_cycle(row)
    return row, False


def _live(repository: Storage, options: CrawlOptions, row: CycleRow, controls: Controls, started: float) -> LiveWeb:
    return LiveWeb(
        repository,
        options,
        row,
        stop=controls.stop,
        progress=controls.progress,
        until=started + controls.seconds,
        release=controls.release,
    )


def _with_recorded(live: LiveWeb, store: Store, row: CycleRow) -> Resumed:
    """The web, but for the visits of this cycle that were made before it was interrupted."""
    visited = store.visits_of_cycle(row)
    pages = visited["page"].tolist()
    outcomes = dict(zip(pages, visited["outcome"].tolist(), strict=True))
    return Resumed(live, outcomes, dict(zip(pages, visited["received"].tolist(), strict=True)))


def _plant(live: LiveWeb, options: CrawlOptions, seeds: Iterable[str], row: CycleRow) -> None:
    """Make sure that the seeds' own pages are known."""
    batch = Batch()
    for seed in seeds:
        url = canonical(seed, rules=options.rules)
        if url is not None:
            live.discovery.add(url, parent=-1, depth=0, at=row.started, batch=batch)
    live.take(batch)


def _finish(repository: Storage, options: CrawlOptions, live: LiveWeb, row: CycleRow, controls: Controls) -> bool:
    """Close what ran to its end, then do what may only be done between cycles; False when it was stopped."""
    if controls.stop():
        return False
    now, store = options.clock(), repository.store
    store.close_cycle(row.id, now)
    summarise(store, row, now)
    if unfinished(store, "cycle") is None:  # else it would choose other pages than it did before it was stopped
        store.revive(moved_before=now - _MOVED_AGAIN)
        live.reconsider()
    return True
