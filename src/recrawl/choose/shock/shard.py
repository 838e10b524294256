"""A cycle of `shock` on one shard, stage by stage: what each stage offers and takes."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import Offer, RankedPages
from recrawl.choose.shards.rounds import Ask
from recrawl.choose.shock.plan import SAMPLE, WIDTH, ShockPlan, cycle_length
from recrawl.choose.shock.ranking import level_counts
from recrawl.choose.top_k import top_k
from recrawl.columns import Flags, Floats
from recrawl.learn.chunks import where
from recrawl.learn.shocks.pooling import evidence, with_evidence
from recrawl.learn.value import scalar_if_constant
from recrawl.model import Outcomes, Picks

NEW, OVERDUE, PROBES, BATCH = "new", "overdue", "probes", "batch"
"""The stages of a cycle."""
_COUNTS = 8
"""Length of `_counts`."""
_RANKED = "its expected gain ranked highest"


class ShockParameters(Protocol):
    """What a shard needs of the policy `shock`."""

    curiosity: float
    explore: float
    probe: float
    patience: float

    def plan(self, book: Book, open_: Flags, budget: int, *, pages: int = 0, weighted: bool = False) -> ShockPlan:
        """Return the state of a new cycle."""
        ...


class ShockShard:
    """The plan of one shard. Its models are loaded after the first stage: new pages need none."""

    def __init__(self, policy: ShockParameters, book: Book, budget: int, rng: np.random.Generator) -> None:
        self._policy, self._book, self._budget, self._rng = policy, book, budget, rng
        self._open = book.known & (book.visits > 0)
        self._plan: ShockPlan | None = None
        self._all = np.concatenate((_counts(book, self._open), evidence(book)))
        """The counts and the evidence of all shards."""
        self._asked = NEW
        self._offered = RankedPages.none(NEW)

    def totals(self, stage: str) -> Floats:
        """Count pages before the first stage, and pages by change probability before the second."""
        if stage == NEW:
            return self._all
        if self._plan is None and self._open.any():
            pages, weighted = int(self._all[1]), _weighted(self._all[:_COUNTS])
            book = with_evidence(self._book, self._all[_COUNTS:])
            self._plan = self._policy.plan(book, self._open, self._budget, pages=pages, weighted=weighted)
        return self._plan.levels if self._plan is not None else level_counts(np.zeros(0, np.float32), np.zeros(0, bool))

    def offer(self, ask: Ask) -> Offer:
        """Find the candidates of a stage."""
        self._asked = ask.stage
        self._offered = self._candidates(ask)
        return self._offered.offer()

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best pages offered; some batches choose as many by change rates drawn from their posterior."""
        picks, plan = self._offered.take_at(threshold, quota), self._plan
        self._offered = RankedPages.none(picks.reason)  # as long as all pages, if all are overdue
        if self._asked == NEW or plan is None:
            return picks
        if self._asked == PROBES:
            by_site = np.argsort(self._book.site[picks.pages], kind="stable")
            picks = Picks(picks.pages[by_site], picks.score[by_site], picks.reason)
        elif self._asked == BATCH and self._rng.random() < self._policy.explore and len(picks):
            value = plan.value(plan.draw(self._rng))
            pages = plan.best(value, len(picks), per_group=1)[0][: len(picks)]
            reason = f"{_RANKED}, by a change rate drawn from its posterior"
            picks = Picks(pages, value[pages].astype(np.float64), reason)
        if self._asked == BATCH:
            picks = _awaited_first(picks, plan.informative(picks.pages))
        plan.take(picks.pages)
        return picks

    def observe(self, seen: Outcomes) -> None:
        """Update the models; first downloads of new pages tell nothing of changes."""
        if self._plan is not None and self._asked != NEW and len(seen):
            self._plan.observe(seen)

    def _candidates(self, ask: Ask) -> RankedPages:
        book, plan = self._book, self._plan
        if ask.stage == NEW:
            self._all = ask.totals
            new = np.flatnonzero(book.known & (book.visits == 0))
            return RankedPages(new, np.ones(len(new)), "it was never downloaded")
        if plan is None or not plan.left:
            return RankedPages.none(_RANKED)
        if ask.stage == OVERDUE:
            plan.compete(ask.totals, self._budget)
            return self._overdue()
        if ask.stage == PROBES:
            pages, due = plan.probes(self._policy.probe * self._budget)
            order = np.argsort(-due, kind="stable")
            score = plan.probability[pages[order]].astype(np.float64)
            return RankedPages(pages[order], due[order], "its site had no visit for a long time", score)
        value = plan.value(plan.probability)
        after = ask.left - ask.visits  # the visits that can use what this batch finds
        plan.add_information_value(value, self._policy.curiosity * after / ask.left, after)
        best, later = plan.best(value, ask.visits, per_group=SAMPLE)
        return RankedPages(best, value[best], _RANKED, later=later, reach=ask.visits * WIDTH)

    def _overdue(self) -> RankedPages:
        """Return the pages that have waited longer than any page may, longest first."""
        book, patience, budget = self._book, self._policy.patience, self._budget
        reason, length = "it had waited as long as any page may", cycle_length(book)
        if not patience or budget <= 0 or not length:
            return RankedPages.none(reason)
        round_ = self._all[0] / budget * length  # the time in which the budget could visit all pages of all shards
        late = np.concatenate(
            [pages[book.now - book.last_try[pages] > patience * round_] for pages in where(self._open)]
        )
        waited = book.now - book.last_try[late]
        score = np.broadcast_to(np.float64(1), len(late))
        return RankedPages(late, waited, reason, score, order=lambda count: top_k(-waited, count))


def _awaited_first(picks: Picks, awaited: Flags) -> Picks:
    order = np.argsort(~awaited, kind="stable")
    return Picks(picks.pages[order], picks.score[order], picks.reason).awaiting(int(np.count_nonzero(awaited)))


def _counts(book: Book, open_: Flags) -> Floats:
    """Return the known pages, the open pages, and what tells whether weights and costs are the same in all shards."""
    if not len(book):
        return np.zeros(_COUNTS)
    constants = [scalar_if_constant(column) for column in (book.weight, book.cost)]
    numbers = [constant for constant in constants if isinstance(constant, float)]
    varied = len(numbers) < len(constants)
    means = [0.0] * 4 if varied else [power for number in numbers for power in (number, number**2)]
    return np.array([np.count_nonzero(book.known), np.count_nonzero(open_), varied, 1.0, *means])


def _weighted(counts: Floats) -> bool:
    """Whether weights or costs differ between any two pages, from the counts of all shards."""
    varied, shards, *constants = counts[2:]
    means = np.array(constants) / max(shards, 1)
    return bool(varied) or any(square - mean**2 > 1e-9 * square for mean, square in means.reshape(2, 2))
