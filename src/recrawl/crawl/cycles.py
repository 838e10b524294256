"""Begin, resume and end a crawl or a cycle: `run_cycle` with the live web as its world."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from recrawl.choose import Policy, describe, make_policy
from recrawl.choose.protocol import work_of
from recrawl.columns import DAY, Int32s
from recrawl.crawl.given_pages import IncomingLinks, add_pages, fetch_requisites, take_links
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.figures import summary_columns
from recrawl.crawl.reports.summaries import summarise
from recrawl.crawl.state import deliveries, limits
from recrawl.crawl.state.book_columns import check_needs, check_weights, delete_columns, named_anchors, weigh
from recrawl.crawl.state.copies import group
from recrawl.crawl.state.policy_memory import ready_book, recorded_visits, save_memory
from recrawl.crawl.state.rechecks import absent_pages
from recrawl.crawl.state.rescope import rescope, scopes_changed
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.live import LiveCrawl
from recrawl.loop import Recorded, Resumed, run_cycle
from recrawl.model import Picks
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_MOVED_AGAIN = 30 * DAY
"""Pages that have moved and were not checked for this time become visitable for policies."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a crawl or a cycle."""

    cycle: CycleRow
    tally: RunCounts
    resumed: bool
    finished: bool
    seconds: float
    notes: tuple[str, ...] = ()
    """Sentences for the user."""
    work: dict[str, int] = field(default_factory=dict)
    """What the policy reports of its computing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """How a run is watched, paced and stopped."""

    stop: Callable[[], bool] = lambda: False
    progress: Callable[[RunCounts], None] = lambda _: None
    seconds: float = float("inf")
    """The run ends after this time."""
    period: float = float("inf")
    """The time in which the visits should be made: a server gets no more of them than its pace allows in that time."""
    release: Callable[[int], float] | None = None
    """The earliest time of the n-th visit; None does not spread them."""
    part: limits.ShardPart | None = None
    """In a cluster: the part of the shard."""


def spread(visits: int, at_start: float, begin: float, period: float) -> Callable[[int], float]:
    """Synchronisation points (spec P1): a share of the visits at the start, the others evenly over the period.

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
    repository: Storage,
    options: CrawlOptions,
    seeds: Iterable[str],
    controls: Controls,
    *,
    skip_recent_failures: bool = False,
    incoming: IncomingLinks | None = None,
) -> Summary:
    """Discover and download new pages; resumes an interrupted crawl.

    `incoming` are links that other shards of a cluster find meanwhile: the crawl ends when there are no more of them.

    `skip_recent_failures` leaves out pages whose back-off after failed visits is not over, and seeds that are gone or
    have moved until they are due for a check.
    """
    row, resumed = begin_run(repository.store, options, "crawl", "explore", 0, 0)
    started = options.timer()
    live = live_crawl(repository, options, row, controls, started)
    try:
        if scopes_changed(repository, options.scopes):
            rescope(repository, options, live.discovery, live.record_pages)
        given = add_pages(live, options, ((seed, 0) for seed in seeds), row)
        more = partial(take_links, live, options, row, incoming)
        more()
        done = set(repository.store.visits.of_cycle(row)["page"].tolist()) if resumed else set()
        if unfinished(repository.store, "cycle") is None:
            given &= absent_pages(repository.store, row.started if skip_recent_failures else math.inf)
        else:
            given = set()  # an interrupted cycle must find the same pages when it is resumed
        live.explore(done, given, skip_recent_failures=skip_recent_failures, more=more if incoming else None)
        fetch_requisites(live, incoming)
        finished = not controls.stop()
        if finished:
            finish_run(repository, options, live, row)
    finally:
        live.close()
    return Summary(row, live.tally, resumed, finished, options.timer() - started)


def cycle(
    repository: Storage,
    options: CrawlOptions,
    policy: Policy,
    budget: float,
    seed: int,
    controls: Controls,
    *,
    incoming: IncomingLinks | None = None,
) -> Summary:
    """One refresh cycle; resumes an interrupted one, with its own policy and budget.

    `incoming` are links that other shards of a cluster have found. A cycle that is resumed must find the same pages as
    before, so it takes none.
    """
    check_needs(policy)
    check_weights(repository, options.weights)
    seconds = min(controls.seconds, controls.period)
    visits = limits.within(limits.budget_of(budget, repository.store, options), options, seconds)
    row, resumed = begin_run(repository.store, options, "cycle", describe(policy), visits, seed)
    started = options.timer()
    live = live_crawl(repository, options, row, controls, started)
    try:
        if scopes_changed(repository, options.scopes):
            rescope(repository, options, live.discovery, live.record_pages)
        if not resumed:
            take_links(live, options, row, incoming)
        policy = make_policy(row.policy)
        if row.limits is None:  # nothing chosen yet
            live.refresh_hints(sleeping=not ("hints" in policy.needs or options.spending.reserve_pushed))
        finished, notes, work = _follow(policy, live, repository, options, row, seconds, controls, incoming)
        if finished:  # the book is freed by now: the summary takes memory for every page, too
            _after_run(repository, options, live, row)
    finally:
        live.close()
    return Summary(row, live.tally, resumed, finished, options.timer() - started, notes, work)


def _follow(
    policy: Policy,
    live: LiveCrawl,
    repository: Storage,
    options: CrawlOptions,
    row: CycleRow,
    seconds: float,
    controls: Controls,
    incoming: IncomingLinks | None,
) -> tuple[bool, tuple[str, ...], dict[str, int]]:
    """Make the visits that the policy chooses; whether the cycle is finished, remarks, and what the policy has done."""
    anchors = named_anchors(repository.store, options.anchors)
    part, share = controls.part, 1.0 if controls.part is None else controls.part.share
    servers = live.servers
    with repository.store.scan():
        book, past = ready_book(repository, policy, row, servers.limits(), begin=True, given=anchors, share=share)
    ignored = weigh(book, repository, row, options.weights, begin=True)
    notes = (ignored,) if ignored else ()
    chooser, allowance = limits.limited(
        repository, policy, row, book, servers, options, seconds, begin=True, part=part, idle=live.commit_if_due
    )
    if part is not None and repository.remote is not None:
        repository.remote.keep_models()  # another machine may resume the cycle
    received = repository.store.visits.received_of_cycle(row)
    live.limit_bytes(allowance.bytes, allowance.site_bytes, list(received))
    world = _with_recorded(live, repository, row, book.site)

    def recorded() -> Iterator[Recorded]:
        world.complete()
        live.commit()
        return recorded_visits(repository, policy, row, past)

    finished = run_cycle(policy, chooser, world, book, row.budget, row.seed, recorded, controls.stop)
    if chooser.held:  # a shard knows this only after the cycle has begun
        repository.store.cycles.set_limits(row.id, replace(allowance, held=chooser.held).text())
    if finished:
        fetch_requisites(live, incoming)
    if not finished or controls.stop():
        return False, notes, {}
    repository.store.cycles.finish(row.id, options.clock())
    save_memory(repository, policy, past)
    delete_columns(repository)
    limits.delete_columns(repository)
    deliveries.delete(repository)
    return True, notes, work_of(policy, past.book) if past is not None else {}


def recheck(repository: Storage, options: CrawlOptions, pages: list[int], controls: Controls) -> Summary:
    """Visit these pages, whatever a policy would choose; what is left of them after a stop stays requested."""
    row, resumed = begin_run(repository.store, options, "recheck", "recheck", len(pages), 0)
    started = options.timer()
    live = live_crawl(repository, options, row, controls, started)
    try:
        chosen = np.array(pages, np.int64)
        live.visit(Picks(chosen, np.zeros(len(chosen)), "a visit was requested, or its interval is over"))
        live.commit()
        finished = not controls.stop()
        if finished:
            live.fetch_requisites()
            repository.store.cycles.finish(row.id, options.clock())
            summarise(repository.store, row, options.clock())
    finally:
        live.close()
    return Summary(row, live.tally, resumed, finished, options.timer() - started)


def unfinished(store: Store, kind: str) -> CycleRow | None:
    """The interrupted crawl or cycle, if there is one."""
    for row in store.cycles.newest(limit=20):
        if row.kind == kind:
            return row if row.finished is None else None
    return None


def begin_run(
    store: Store, options: CrawlOptions, kind: str, policy: str, budget: int, seed: int
) -> tuple[CycleRow, bool]:
    """The row of a run, and whether it is that of an interrupted one, which it resumes."""
    interrupted = unfinished(store, kind)
    if interrupted is not None:
        return interrupted, True
    number = None if options.ownership is None else options.ownership.run
    if number is None:
        number = store.next_id("cycles")
    elif before := next((row for row in store.cycles.newest(limit=20) if row.id == number), None):
        store.cycles.reopen(number)  # links of other shards have come since this part of the crawl ended
        return before._replace(finished=None), True
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
    store.cycles.begin(row)
    return row, False


def live_crawl(
    repository: Storage, options: CrawlOptions, row: CycleRow, controls: Controls, started: float
) -> LiveCrawl:
    """The live shell of a run."""
    return LiveCrawl(
        repository,
        options,
        row,
        stop=controls.stop,
        progress=controls.progress,
        until=started + controls.seconds,
        release=controls.release,
    )


def _with_recorded(live: LiveCrawl, repository: Storage, row: CycleRow, site: Int32s) -> Resumed:
    """The live web, with the visits of this cycle that were made before an interruption."""
    visited, sent = repository.store.visits.of_cycle(row), deliveries.Deliveries(repository, row.id)
    pages = visited["page"].tolist()
    outcomes = dict(zip(pages, visited["outcome"].tolist(), strict=True))
    received = dict(zip(pages, visited["received"].tolist(), strict=True))
    return Resumed(live, outcomes, received, site=site, sent=sent.read(), delivered=sent.add)


def finish_run(repository: Storage, options: CrawlOptions, live: LiveCrawl, row: CycleRow) -> None:
    """Close a crawl that has ended, then do what is allowed only between runs."""
    repository.store.cycles.finish(row.id, options.clock())
    _after_run(repository, options, live, row)


def _after_run(repository: Storage, options: CrawlOptions, live: LiveCrawl, row: CycleRow) -> None:
    """Summarise a run that has ended, then do what is allowed only between runs."""
    now, store = options.clock(), repository.store
    live.stop_readers()
    with store.scan():
        summarise(store, row, now, summary_columns(repository))
    if unfinished(store, "cycle") is None:  # an interrupted cycle must find the same pages when it is resumed
        store.pages.revive(moved_before=now - _MOVED_AGAIN, now=now)
        store.pages.recall(live.linked_again.pages)
        store.pages.revive_with(row)
        store.pages.forgive(row)
        group(repository, options, row)
        if not options.outside:
            live.recheck_robots()
