"""What the next cycle would do, without visiting or writing anything.

A policy that reacts to outcomes cannot say beforehand what it will do after its first visits. Its plan assumes that
every page is unchanged; `sure` is the number of pages it chooses before the first outcome.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.book import Book
from recrawl.choose import Policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import RECHECK
from recrawl.columns import Floats
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state import limits
from recrawl.crawl.state.book_columns import check_needs, named_anchors, weigh
from recrawl.crawl.state.policy_memory import ready_book
from recrawl.crawl.visits.servers import Servers
from recrawl.loop import drive
from recrawl.model import Outcome, Outcomes, Pages, Picks
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage


@dataclass(frozen=True, slots=True)
class CyclePlan:
    """Pages in the order of their visits, with scores and reasons."""

    cycle: CycleRow
    """The cycle as it would begin now."""
    book: Book
    allowance: Allowance
    batches: list[Picks]
    line: list[Picks]
    """All pages that the policy would choose with an unlimited budget if nothing changed; empty if not asked for."""

    @property
    def pages(self) -> Pages:
        """All pages, in the order of their visits."""
        return np.concatenate([np.zeros(0, np.int64), *(picks.pages for picks in self.batches)])

    @property
    def score(self) -> Floats:
        """The policy's score of each page."""
        return np.concatenate([np.zeros(0), *(picks.score for picks in self.batches)])

    @property
    def reasons(self) -> list[str]:
        """The reason for each visit."""
        return [picks.reason for picks in self.batches for _ in range(len(picks))]

    @property
    def sure(self) -> int:
        """Number of pages chosen before the first outcome."""
        first = [len(picks) for picks in self.batches if picks.reason != RECHECK]
        checks = [len(picks) for picks in self.batches[:1] if picks.reason == RECHECK]
        return sum(checks) + sum(first[:1])

    def rank(self, page: int) -> tuple[int, float] | None:
        """A page's rank, from 1, and its score; None if the policy does not choose it."""
        before = 0
        for picks in self.line:
            place = np.flatnonzero(picks.pages == page)
            if len(place):
                return before + int(place[0]) + 1, float(picks.score[place[0]])
            before += len(picks)
        return None


class _Unchanged:
    """A world where nothing has changed; records the picks."""

    def __init__(self) -> None:
        self.picks: list[Picks] = []

    def visit(self, picks: Picks) -> Outcomes:
        self.picks.append(picks)
        return Outcomes(picks.pages, np.full(len(picks), Outcome.UNCHANGED, np.int8))


def book_now(repository: Storage, options: CrawlOptions, policy: Policy, seed: int) -> Book:
    """The book of a cycle that began now, without its limits."""
    check_needs(policy)
    row = _cycle_row(repository, options, policy, 1, seed)
    return _book(repository, options, policy, row, Servers(repository.store, options))


def _cycle_row(repository: Storage, options: CrawlOptions, policy: Policy, visits: int, seed: int) -> CycleRow:
    store, owner = repository.store, options.ownership
    number = store.next_id("cycles") if owner is None or owner.run is None else owner.run
    first = store.next_id("visits"), store.next_id("pages")
    return CycleRow(number, "cycle", policy.name, visits, seed * 1_000_003 + number, options.clock(), None, *first)


def _book(
    repository: Storage, options: CrawlOptions, policy: Policy, row: CycleRow, servers: Servers, share: float = 1.0
) -> Book:
    anchors = named_anchors(repository.store, options.anchors)
    return ready_book(repository, policy, row, servers.limits(), begin=False, given=anchors, share=share)[0]


class ReadyPlan:
    """All that the plan of a cycle that began now needs; the repository may be closed then.

    In a cluster, `part` is that of the shard.
    """

    def __init__(
        self,
        repository: Storage,
        options: CrawlOptions,
        policy: Policy,
        budget: float,
        seed: int,
        *,
        seconds: float = math.inf,
        part: limits.ShardPart | None = None,
    ) -> None:
        check_needs(policy)
        visits = limits.within(limits.budget_of(budget, repository.store, options), options, seconds)
        row, servers = _cycle_row(repository, options, policy, visits, seed), Servers(repository.store, options)
        book = _book(repository, options, policy, row, servers, 1.0 if part is None else part.share)
        weigh(book, repository, row, options.weights, begin=False)
        self._chooser, self._allowance = limits.limited(
            repository, policy, row, book, servers, options, seconds, begin=False, part=part
        )
        self._policy, self._row, self._book = policy, row, book

    def make(self, *, ranked: int | None = None) -> CyclePlan:
        """Let the policy choose; with the ranks of all pages if the page `ranked` is not planned."""
        world, everything = _Unchanged(), _Unchanged()
        for _ in drive(self._chooser, world, self._book, self._row.budget, self._row.seed):
            pass
        if ranked is not None and not any(ranked in picks.pages for picks in world.picks):
            book = self._chooser.without_rechecks(self._book)
            for _ in drive(self._policy, everything, book, len(book), self._row.seed):
                pass
        return CyclePlan(self._row, self._book, self._allowance, world.picks, everything.picks)


def next_plan(
    repository: Storage,
    options: CrawlOptions,
    policy: Policy,
    budget: float,
    seed: int,
    *,
    seconds: float = math.inf,
    ranked: int | None = None,
) -> CyclePlan:
    """The plan of a cycle that began now; with the ranks of all pages if the page `ranked` is not planned."""
    return ReadyPlan(repository, options, policy, budget, seed, seconds=seconds).make(ranked=ranked)
