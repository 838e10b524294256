"""What a cycle may spend: what the user said about the budget, and what the servers can take, in numbers.

The numbers are decided when a cycle begins and kept in its row, the columns (what each page will probably bring, which
were pushed) in a file until it is finished: whoever resumes it goes by the same ones, whatever has changed since.

A cycle that has so many seconds can ask a server only so often. The plan knows: such a server gets no more than it can
take, and the rest of the budget goes to others. A server that wants to be left alone for now gets nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose import Policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_UNSEEN = 20_000.0
"""Bytes that a page is taken to have as long as no page was ever downloaded."""
_HEAD = 400.0
"""Bytes of an answer's head."""
_ANYWAY = 0.1
"""The least chance of a whole answer: every tenth visit asks without validators."""


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
) -> tuple[Budgeted, Allowance]:
    """The policy, kept to what the cycle may spend; with `begin` that is written down."""
    allowance = (
        decide(servers, repository.store, options, row.budget, seconds)
        if row.limits is None
        else Allowance.of(row.limits)
    )
    columns = _columns(repository, row, book, allowance, begin=begin)
    if begin and row.limits is None:
        repository.store.limit_cycle(row.id, allowance.text())
    return Budgeted(policy, allowance, **columns), allowance


def put_away(repository: Storage) -> None:
    """The cycle is finished."""
    _aside(repository).unlink(missing_ok=True)


class ByteBudget:
    """Bytes received in a cycle, in total and by site, against their limits.

    The plan uses expected sizes; this counts actual bytes, including redirects and retries: once a limit is reached,
    requests under way are finished and no more are sent. Only bytes recorded with visits count, so that a resumed cycle
    continues the same count.

    >>> count = ByteBudget(1000.0, 600.0)
    >>> count.add(3, 700)
    >>> count.used_up, count.closed(3), count.closed(4)
    (False, True, False)
    """

    def __init__(
        self, limit: float = math.inf, site_limit: float = math.inf, before: Iterable[tuple[int, int]] = ()
    ) -> None:
        """`before` are the bytes by site that earlier parts of the cycle have received."""
        self._limit = limit
        self._site_limit = site_limit
        self._by_site: Counter[int] = Counter(dict(before))
        self._total = sum(self._by_site.values())

    def add(self, site: int, received: int) -> None:
        """Count the bytes of an answer."""
        self._total += received
        self._by_site[site] += received

    @property
    def used_up(self) -> bool:
        """Whether the cycle has reached its limit."""
        return self._total >= self._limit

    def closed(self, site: int) -> bool:
        """Whether this site has reached its limit."""
        return self._by_site[site] >= self._site_limit


# -- numbers ------------------------------------------------------------------------------------------------------


def decide(servers: Servers, store: Store, options: CrawlOptions, budget: int, seconds: float) -> Allowance:
    """The limits of a cycle that begins now and has so many seconds."""
    said = options.spending
    site_most = part(said.site_share, budget) if said.site_share < 1 else None
    most = {server.id: part(said.most[server.origin], budget) for server in servers if server.origin in said.most}
    slow = paces(store)[0] if seconds < math.inf else {}
    for server in servers:
        room = capacity(server, options, seconds, slow.get(server.id, 0.0))
        if room < most.get(server.id, budget if site_most is None else site_most):
            most[server.id] = int(room)
    return Allowance(
        bytes=said.bytes or math.inf,
        site_bytes=said.bytes * said.site_share if said.bytes and said.site_share < 1 else math.inf,
        site_most=site_most,
        most=most,
        least={server.id: part(said.least[server.origin], budget) for server in servers if server.origin in said.least},
        new=part(said.reserve_new, budget) if said.reserve_new else None,
        pushed=part(said.reserve_pushed, budget) if said.reserve_pushed else 0,
    )


def part(said: float, budget: int) -> int:
    """A share of the budget when under 1, else a number.

    >>> part(0.25, 200), part(30, 200), part(0.001, 200), part(0, 200)
    (50, 30, 1, 0)
    """
    if said >= 1:
        return int(said)
    return max(1, round(said * budget)) if said > 0 else 0


def capacity(server: Server, options: CrawlOptions, seconds: float, answer: float) -> float:
    """How often a server can be asked in a time, at its pace; `answer` is how long it takes to answer.

    Nothing when it wants to be left alone for longer than we would wait.
    """
    wait = max(0.0, server.held_until - options.timer())
    if wait > options.patience:
        return 0
    if seconds == math.inf:
        return math.inf
    pause = options.delay if server.options.delay is None else server.options.delay
    if server.robots is not None:
        pause = max(pause, min(server.robots.delay, options.max_delay))
    if pause <= 0:  # then it is not asked one by one either
        return math.inf
    return 1 + int(max(0.0, seconds - wait) / (max(pause, answer) + answer))


def within(budget: int, options: CrawlOptions, seconds: float) -> int:
    """The budget, as far as the pace over all servers lets it be spent in the time."""
    if not options.per_second or seconds == math.inf:
        return budget
    return max(1, min(budget, int(options.per_second * seconds)))


# -- columns ------------------------------------------------------------------------------------------------------


def paces(store: Store) -> tuple[dict[int, float], dict[int, float]]:
    """By site, from its latest visits: seconds that an answer takes, bytes over the wire for each byte of a page."""
    rows = store.latest_by_site()
    seconds = {site: took / visits for site, visits, took, _, _ in rows if visits}
    return seconds, {site: min(2.0, received / size) for site, _, _, received, size in rows if size}


def expected_bytes(book: Book, conditional: NDArray[np.bool_], wire: dict[int, float]) -> NDArray[np.float64]:
    """What a visit to each page will probably bring: its last size, times the chance that the answer is no 304.

    `conditional` marks pages that can be asked for "if it has changed".
    """
    size = book.size.astype(np.float64)
    seen = size > 0
    sites = book.sites
    total = np.bincount(book.site[seen], weights=size[seen], minlength=sites)
    many = np.bincount(book.site[seen], minlength=sites)
    usual = np.where(many > 0, total / np.maximum(many, 1), size[seen].mean() if seen.any() else _UNSEEN)
    size = np.where(seen, size, usual[book.site])
    ratio = np.array([wire.get(site, 1.0) for site in range(sites)])
    compared = np.maximum(book.visits - 1, 0)
    changed = np.clip(book.changes - 1, 0, compared)
    whole = np.where(conditional, np.maximum((changed + 1) / (compared + 2), _ANYWAY), 1.0)
    weight: NDArray[np.float64] = _HEAD + size * ratio[book.site] * whole
    return weight


def _columns(
    repository: Storage, row: CycleRow, book: Book, allowance: Allowance, *, begin: bool
) -> dict[str, NDArray[Any]]:
    weighs = min(allowance.bytes, allowance.site_bytes) < math.inf
    if not (weighs or allowance.pushed):
        return {}
    kept = read_arrays(_aside(repository))
    if kept is not None and int(kept.pop("cycle")) == row.id:
        return {name: _as_long(column, len(book)) for name, column in kept.items()}
    columns: dict[str, NDArray[Any]] = {}
    if weighs:
        conditional = repository.store.conditional()[: len(book)]
        columns["expected"] = expected_bytes(book, conditional, paces(repository.store)[1])
    if allowance.pushed:
        columns["pushed"] = np.zeros(len(book), bool)
        columns["pushed"][[page for page in repository.store.pushed() if page < len(book)]] = True
    if begin:
        write_arrays(_aside(repository), {"cycle": np.array(row.id), **columns})
    return columns


def _as_long(column: NDArray[Any], pages: int) -> NDArray[Any]:
    """Pages found since have nothing to do with the cycle."""
    longer = np.zeros(pages, column.dtype)
    longer[: len(column)] = column[:pages]
    return longer


def _aside(repository: Storage) -> Path:
    return repository.folder / "models" / "spending-of-cycle.npz"
