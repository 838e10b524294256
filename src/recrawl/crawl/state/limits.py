"""What a cycle may spend: the user's shares and reserves of the budget, and what the servers can take, as numbers.

The numbers are fixed when a cycle begins and stored in its row, the columns (expected bytes, pushed pages,
pages to check again) in a file until it is finished: a resumed cycle uses the same ones.

In a limited time a server can take a limited number of requests. It gets no more visits than that, and the rest of the
budget goes to others. A server that asks for a long pause gets none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose import Policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted, Rechecks
from recrawl.choose.budget.fair import Commons, Division, claims, site_share
from recrawl.choose.protocol import Chooser
from recrawl.columns import Flags, Floats
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.rechecks import due_rechecks, reserved
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.errors import UsageError
from recrawl.model import State
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_MAX_VISITS = 1e15
_DEFAULT_SIZE = 20_000.0
"""Assumed bytes per page before any page was downloaded."""
_HEADER_BYTES = 400.0
"""Assumed bytes of an answer's headers."""
_MIN_WHOLE = 0.1
"""Minimum probability of a whole answer: every tenth visit sends no validators."""


class ShardPart(NamedTuple):
    """A shard's part of a cycle: the budget is that of all shards, and a coordinator divides it."""

    share: float
    """The share of this shard among the pages of all."""
    chooser: Callable[[Policy, int, Callable[[], None], Division | None], tuple[Chooser, Commons | None]]
    """The policy on this shard, and what it knows of the visits that no site claims, if sites have a right to their
    share. The number is that of visits which it spends without asking. The function is called while it waits for other
    shards."""


def limited(
    repository: Storage,
    policy: Policy,
    row: CycleRow,
    book: Book,
    servers: Servers,
    options: CrawlOptions,
    seconds: float,
    *,
    begin: bool,
    part: ShardPart | None = None,
    idle: Callable[[], None] = lambda: None,
) -> tuple[Budgeted, Allowance]:
    """The policy within the limits of the cycle, and these limits; `begin` stores them.

    Pages that are gone or have moved and are due for a check become known in the book; the policy does not see them. A
    shard checks only those for which visits are reserved: what the policy leaves belongs to all shards.
    """
    allowance = (
        allowance_of(servers, repository.store, options, row.budget, seconds)
        if row.limits is None
        else Allowance.of(row.limits)
    )
    division = site_share(options.spending.site_share)[0]
    columns, held = _columns(repository, row, book, allowance, policy, division if part is None else None, begin=begin)
    allowance = replace(allowance, held=held) if held else allowance
    if begin and row.limits is None:
        repository.store.cycles.set_limits(row.id, allowance.text())
    place = columns.pop("recheck", np.zeros(len(book), np.int32))
    pages = np.flatnonzero(place)
    pages = pages[np.argsort(place[pages])]
    book.known[pages] = True
    if part is None:
        return Budgeted(policy, allowance, rechecks=Rechecks(pages, reserved(row.budget, row.id)), **columns), allowance
    pages = pages[: reserved(int(row.budget * part.share), row.id)]
    chooser, commons = part.chooser(policy, len(pages), idle, division)
    rechecks = Rechecks(pages, len(pages))
    return Budgeted(chooser, allowance, rechecks=rechecks, commons=commons, **columns), allowance


def delete_columns(repository: Storage) -> None:
    """Delete the file of a finished cycle."""
    _file(repository).unlink(missing_ok=True)


# -- numbers ------------------------------------------------------------------------------------------------------


def allowance_of(servers: Servers, store: Store, options: CrawlOptions, budget: int, seconds: float) -> Allowance:
    """The limits of a cycle that begins now and lasts `seconds`."""
    spending = options.spending
    share = site_share(spending.site_share)[1]
    site_most = visits_of(share, budget) if share < 1 else None
    most = _parts(spending.most, servers, budget)
    slow = paces(store)[0] if seconds < math.inf else {}
    for server in servers:
        room = capacity(server, options, seconds, slow.get(server.id, 0.0))
        if room < most.get(server.id, budget if site_most is None else site_most):
            most[server.id] = int(room)
    return Allowance(
        bytes=spending.bytes or math.inf,
        site_bytes=spending.bytes * share if spending.bytes and share < 1 else math.inf,
        site_most=site_most,
        most=most,
        least=_parts(spending.least, servers, budget),
        new=visits_of(spending.reserve_new, budget) if spending.reserve_new else None,
        pushed=visits_of(spending.reserve_pushed, budget) if spending.reserve_pushed else 0,
    )


def visits_of(value: float, budget: int) -> int:
    """A number of visits: values under 1 are shares of the budget.

    >>> visits_of(0.25, 200), visits_of(30, 200), visits_of(0.001, 200), visits_of(0, 200)
    (50, 30, 1, 0)
    """
    if value >= 1:
        return int(value)
    return max(1, round(value * budget)) if value > 0 else 0


def _parts(by_origin: Mapping[str, float], servers: Servers, budget: int) -> dict[int, int]:
    """Numbers of visits by site, from values by origin."""
    return {server.id: visits_of(by_origin[server.origin], budget) for server in servers if server.origin in by_origin}


def capacity(server: Server, options: CrawlOptions, seconds: float, answer: float) -> float:
    """How many requests a server can take in `seconds` at its pace; `answer` is its usual response time.

    0 if it asks for a pause longer than `options.patience`.
    """
    wait = max(0.0, server.held_until - options.timer())
    if wait > options.patience:
        return 0
    if seconds == math.inf:
        return math.inf
    pause = pause_of(server, options)
    if pause <= 0:  # without a delay, requests need not follow one another
        return math.inf
    return 1 + int(max(0.0, seconds - wait) / (max(pause, answer) + answer))


def budget_of(budget: float, store: Store, options: CrawlOptions) -> int:
    """The budget as a number of visits; a budget under 1 is a share of the pages that can be visited."""
    if not 0 < budget <= _MAX_VISITS:
        raise UsageError(f"invalid budget {budget:g}: use more than 0 and at most {_MAX_VISITS:g}")
    if budget < 1:
        return max(1, round(budget * visitable(store, options)))
    return int(budget)


def visitable(store: Store, options: CrawlOptions) -> int:
    """Pages that cycles can visit: live and missing ones, and found ones within the page limit of their site."""
    counts: dict[int, Counter[int]] = {}
    for site, state, count in store.pages.count_by_state():
        counts.setdefault(site, Counter())[state] = count
    total = 0
    for row in store.sites.all():
        states, limit = counts.get(row.id, Counter()), options.of_site(row.origin).limit
        downloaded, found = states[State.LIVE] + states[State.MISSING], states[State.FOUND]
        total += downloaded + (found if limit is None else min(found, max(0, limit - downloaded)))
    return total


def pause_of(server: Server, options: CrawlOptions) -> float:
    """Seconds between two requests to a server, as configured here or in its robots.txt."""
    pause = options.delay if server.options.delay is None else server.options.delay
    return pause if server.robots is None else max(pause, min(server.robots.delay, options.max_delay))


def within(budget: int, options: CrawlOptions, seconds: float) -> int:
    """The part of the budget that the overall rate allows in the time."""
    if not options.per_second or seconds == math.inf:
        return budget
    return max(1, min(budget, int(options.per_second * seconds)))


# -- columns ------------------------------------------------------------------------------------------------------


def paces(store: Store) -> tuple[dict[int, float], dict[int, float]]:
    """By site, from its latest visits: seconds per answer, and bytes over the wire per byte of a page."""
    rows = store.visits.latest_by_site()
    seconds = {site: took / visits for site, visits, took, _, _ in rows if visits}
    return seconds, {site: min(2.0, received / size) for site, _, _, received, size in rows if size}


def expected_bytes(book: Book, conditional: Flags, wire: dict[int, float]) -> Floats:
    """Expected bytes of a visit to each page: its last size, times the probability of an answer other than 304.

    `conditional` marks pages with validators; `wire` is the compression ratio by site.
    """
    size = book.size.astype(np.float64)
    seen = size > 0
    sites = book.sites
    total = np.bincount(book.site[seen], weights=size[seen], minlength=sites)
    count = np.bincount(book.site[seen], minlength=sites)
    usual = np.where(count > 0, total / np.maximum(count, 1), size[seen].mean() if seen.any() else _DEFAULT_SIZE)
    size = np.where(seen, size, usual[book.site])
    ratio = np.array([wire.get(site, 1.0) for site in range(sites)])
    compared = np.maximum(book.visits - 1, 0)
    changed = np.clip(book.changes - 1, 0, compared)
    whole = np.where(conditional, np.maximum((changed + 1) / (compared + 2), _MIN_WHOLE), 1.0)
    weight: Floats = _HEADER_BYTES + size * ratio[book.site] * whole
    return weight


def _columns(
    repository: Storage,
    row: CycleRow,
    book: Book,
    allowance: Allowance,
    policy: Policy,
    division: Division | None,
    *,
    begin: bool,
) -> tuple[dict[str, Any], dict[int, tuple[int, int]]]:
    """The columns of a cycle, and the sites that are held to their share, if it begins now."""
    limited_bytes = min(allowance.bytes, allowance.site_bytes) < math.inf
    kept = read_arrays(_file(repository))
    if kept is not None and int(kept.pop("cycle")) == row.id:
        of_sites = {name: kept.pop(name) for name in ("reserved", "hope") if name in kept}
        return {name: _extended(column, len(book)) for name, column in kept.items()} | of_sites, {}
    due = due_rechecks(repository.store, row.started)
    due = due[due < len(book)]
    columns: dict[str, NDArray[Any]] = {"recheck": np.zeros(len(book), np.int32)}
    columns["recheck"][due] = np.arange(1, len(due) + 1)
    if limited_bytes:
        conditional = repository.store.pages.conditional()[: len(book)]
        columns["expected"] = expected_bytes(book, conditional, paces(repository.store)[1])
    if allowance.pushed:
        columns["pushed"] = np.zeros(len(book), bool)
        columns["pushed"][[page for page in repository.store.hints.pushed_pages(book.now) if page < len(book)]] = True
    held: dict[int, tuple[int, int]] = {}
    if division is not None:
        found = claims(book, row.budget, policy, division)
        if found.reserved.any():
            columns |= {"reserved": found.reserved, "hope": found.hope}
            held = found.held()
    if begin and (len(due) or len(columns) > 1):
        write_arrays(_file(repository), {"cycle": np.array(row.id), **columns})
    return columns, held


def _extended(column: NDArray[Any], pages: int) -> NDArray[Any]:
    """The column with zeros for pages found since."""
    longer = np.zeros(pages, column.dtype)
    longer[: len(column)] = column[:pages]
    return longer


def _file(repository: Storage) -> Path:
    return repository.folder / "models" / "spending-of-cycle.npz"
