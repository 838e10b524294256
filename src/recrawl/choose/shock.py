"""The default: pages change together, in bursts; what a visit finds says something of all pages like it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.contract import Choice
from recrawl.choose.least import rank_within
from recrawl.errors import UsageError
from recrawl.learn.bins import Floats
from recrawl.learn.hints import Signals
from recrawl.learn.objectives import OBJECTIVES, index
from recrawl.learn.opinion import Opinion, log_odds
from recrawl.learn.shocks import DAY
from recrawl.model import Outcomes, Picks

FEW = 2
"""So many pages of one group in a batch, unless the group is ..."""
SURE = 0.7
"""... as likely as this to have changed."""
MANY = 1 << 19
"""So many pages, and at least four times the budget, are looked at closely when a cycle begins."""
NEAR = 12
"""So many pages of a group are looked at again when its site was visited, and more as the group itself is."""
_WIDE = 12
"""How many times the size of a batch is looked through for pages of different groups."""

Objective = Literal["changes", "freshness", "harmonic", "age", "links"]


class Shock:
    """Visits what has most likely changed, believing that pages like one another change together (the default).

    Each page has a rate of change, and each group of pages (those of one site whose addresses have one form) a history
    of shocks: times when far more happened to it than usual. A visit moves the belief of the page, of its group and of
    its site, so one changed page of a site that was rebuilt brings the others to the front within the same cycle. A
    small network that has learnt how far to trust this belief, and what visits to pages of the same form, directory and
    site say, is averaged with it. Of a group of which it is not sure, a few pages are tried first. Hints of servers are
    believed as far as they proved right. Pages that were never downloaded come first. Some batches are drawn by chance
    from the belief, so that nothing is taken for granted.

    Parameters
    ----------
    objective
        What a visit is for: `changes` found, `freshness` of the repository, `harmonic` staleness, `age`, or new
        `links`. Harmonic staleness and age leave no page alone for long.
    batches
        How many batches a cycle is cut into: what one finds decides on the next.
    explore
        The share of batches that are drawn from the belief instead of taking what is best by it.
    patience
        After how many rounds (the time that the budget takes for all pages) a page is visited in any case; such pages
        get a tenth of the budget at most. 0 is never.

    Example
    -------
    >>> from recrawl.lab.worlds import Still
    >>> from recrawl.loop import drive
    >>> book = Book.blank(4, now=10 * DAY)
    >>> book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, [9 * DAY, 2 * DAY, 5 * DAY, 8 * DAY]
    >>> [seen.pages.tolist() for seen in drive(Shock(explore=0), Still(), book, budget=2, seed=1)]
    [[1], [2]]

    Source: common-shock frailty with nested Gamma priors, Thompson batches, a stacked network; recrawl's own.
    """

    name: ClassVar[str] = "shock"
    source: ClassVar[str] = "recrawl's own: common shocks shared between pages alike, hints, and a learnt opinion"
    needs: ClassVar[frozenset[str]] = frozenset({"forms", "hints"})

    def __init__(
        self, *, objective: Objective = "changes", batches: int = 24, explore: float = 0.05, patience: float = 20.0
    ) -> None:
        if objective not in OBJECTIVES:
            raise UsageError(f"shock's objective is {', '.join(OBJECTIVES)}, not '{objective}'")
        if not (1 <= batches <= 1000 and batches == int(batches)):
            raise UsageError(f"shock's batches is a whole number from 1 to 1000, not {batches}")
        if not 0 <= explore <= 1:
            raise UsageError(f"shock's explore is a share from 0 to 1, not {explore}")
        if not 0 <= patience < float("inf"):
            raise UsageError(f"shock's patience is a number of rounds, 0 for never, not {patience}")
        self.objective: Objective = objective
        self.batches = batches
        self.explore = explore
        self.patience = patience

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Never downloaded pages, pages that waited too long, then batches."""
        open_ = book.known & (book.visits > 0)
        new = np.flatnonzero(book.known & (book.visits == 0))[:budget]
        if len(new):
            yield Picks(new, np.ones(len(new)), "was never downloaded")
        left = budget - len(new)
        waited = _overdue(book, open_, self.patience, budget)[: min(left, budget // 10)]
        if left <= 0 or not open_.any():
            return
        plan = self.plan(book, open_, budget)
        if len(waited):
            plan.take((yield Picks(waited, np.ones(len(waited)), "has waited as long as any page may")))
            left -= len(waited)
        step = -(-budget // int(self.batches))
        while left > 0 and len(plan.pages):
            drawn = rng.random() < self.explore
            score = plan.worth(self.objective, plan.drawn(rng) if drawn else plan.chance())
            best = plan.best(score, min(step, left), each=1 if drawn else FEW)
            reason = "may have changed: drawn by its chances" if drawn else "has most likely changed"
            seen = yield Picks(plan.pages[best], score[best], reason)
            left -= len(best)
            plan.take(seen)

    def plan(self, book: Book, open_: NDArray[np.bool_], budget: int) -> Plan:
        """What the cycle goes by."""
        return Plan(book, open_, budget)

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Take in a cycle: what the cycle went by, moved by all its visits."""
        opinion = Opinion.of(book)
        told = seen.answered & (book.visits[seen.pages] > 0)
        signals = Signals.of(book)
        _take_in(opinion, signals, seen.pages[told], seen.changed[told])
        signals.keep(book)
        opinion.keep(book)


class Plan:
    """The pages that a cycle may still visit, and what is believed of them as it goes on."""

    def __init__(self, book: Book, open_: NDArray[np.bool_], budget: int) -> None:
        self.pages = np.flatnonzero(open_)
        self.opinion = Opinion.of(book)
        self._book = book
        self._signals = Signals.of(book)
        self._even = bool((book.weight == 1).all() and (book.cost == 1).all())
        self._drawn: Floats | None = None
        self._chance = np.zeros(len(book))
        self._first_look(max(MANY, 4 * budget))
        groups = self.opinion.belief.groups
        self._near = np.full(len(groups), NEAR)
        """One per group: so many of its pages, by their first chances, are looked at again when something is found."""
        best_first = self.pages[np.argsort(-self._chance[self.pages], kind="stable")]
        self._rank = np.zeros(len(book), np.int32)
        self._rank[best_first] = rank_within(groups.of[best_first])

    def chance(self) -> Floats:
        """The chance of each page of having changed."""
        return self._chance[self.pages]

    def worth(self, objective: Objective, chance: Floats) -> Floats:
        """What a visit to each page is worth, if these are the chances."""
        book, belief, pages = self._book, self.opinion.belief, self.pages
        if objective == "changes" and self._even:
            return chance
        rate = belief.a[pages] / belief.b[pages]
        return index(
            objective, chance, rate, weight=book.weight[pages], cost=book.cost[pages], links=book.arrivals[pages]
        )

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Chances by rates drawn from the belief; the same draw throughout the cycle."""
        belief = self.opinion.belief
        if self._drawn is None:
            self._drawn = rng.gamma(belief.a) / belief.b
        passed = belief.exposure(self.pages, self.opinion.place[self.pages])
        return self._signals.chance(self.pages, -np.expm1(-self._drawn[self.pages] * passed))

    def best(self, score: Floats, many: int, each: int) -> NDArray[np.int64]:
        """Places of the largest scores; of a group of which it is not sure that it has changed, only so many at once.

        A few visits tell what has become of the group. The others would be wasted if it were nothing.
        """
        some = _largest(score, min(len(score), many * _WIDE))
        group = self.opinion.belief.groups.of[self.pages[some]]
        late = (rank_within(group) >= each) & (self._chance[self.pages[some]] < SURE)
        return np.concatenate((some[~late], some[late]))[:many]

    def take(self, seen: Outcomes) -> None:
        """What a batch has found: its pages are done, those of the same sites are looked at again."""
        told = seen.answered
        _take_in(self.opinion, self._signals, seen.pages[told], seen.changed[told])
        groups = self.opinion.belief.groups
        done = np.zeros(len(self._book), bool)
        done[seen.pages] = True
        self.pages = self.pages[~done[self.pages]]
        np.add.at(self._near, groups.of[seen.pages], 1)
        touched = np.zeros(int(self._book.site.max(initial=-1)) + 1, bool)
        touched[self._book.site[seen.pages]] = True
        self._near[np.unique(groups.of[seen.pages])] += 2 * FEW
        self._look_again(self.pages[touched[self._book.site[self.pages]]])

    def _first_look(self, many: int) -> None:
        """All pages; where they are too many, those of which the belief thinks most, and one of every group."""
        if len(self.pages) <= many:
            self._look(self.pages)
            return
        believed = self._signals.chance(self.pages, self.opinion.believed(self.pages))  # a signal can make up for much
        self._chance[self.pages] = believed / 2  # what was not looked at must not stand before what was
        chosen = np.zeros(len(self.pages), bool)
        chosen[np.argpartition(-believed, many)[:many]] = True
        first = np.zeros(len(self.opinion.belief.groups), np.int64)
        first[self.opinion.belief.groups.of[self.pages]] = np.arange(len(self.pages))
        chosen[first] = True
        self._look(self.pages[chosen])

    def _look_again(self, pages: NDArray[np.int64]) -> None:
        """Look at the pages that come next in their groups; the others move by as much as those did."""
        group = self.opinion.belief.groups.of[pages]
        near = self._rank[pages] < self._near[group]
        close, of_close, rest = pages[near], group[near], pages[~near]
        before = log_odds(self._chance[close])
        self._look(close)
        many = np.bincount(of_close, minlength=len(self._near))
        moved = np.bincount(of_close, log_odds(self._chance[close]) - before, len(self._near)) / np.maximum(many, 1)
        odds = log_odds(self._chance[rest]) + moved[group[~near]]
        self._chance[rest] = 1 / (1 + np.exp(-odds))

    def _look(self, pages: NDArray[np.int64]) -> None:
        self._chance[pages] = self._signals.chance(pages, self.opinion.chance(pages))


def _take_in(opinion: Opinion, signals: Signals, pages: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
    """Visits: first what they say of the sources of hints, given what was thought of the pages without them."""
    if opinion.book.hints is not None:
        signals.chance(pages, opinion.chance(pages))
    signals.observe(pages, changed)
    opinion.observe(pages, changed)


def _overdue(book: Book, open_: NDArray[np.bool_], patience: float, budget: int) -> NDArray[np.int64]:
    """Pages that have waited longer than any page may, the longest first."""
    times = book.memory.get("shock.times")
    if not patience or budget <= 0 or times is None or len(times) < 2:
        return np.zeros(0, np.int64)
    round_ = np.count_nonzero(book.known) / budget * float(np.median(np.diff(times))) * DAY
    waited = book.now - book.last_try
    late = np.flatnonzero(open_ & (waited > patience * round_))
    return late[np.argsort(-waited[late], kind="stable")]


def _largest(score: Floats, many: int) -> NDArray[np.int64]:
    """Places of the largest scores, the largest first."""
    best = np.argpartition(-score, many - 1)[:many] if many < len(score) else np.arange(len(score))
    return best[np.argsort(-score[best], kind="stable")]
