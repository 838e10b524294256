"""The default: pages change together, in bursts; what a visit finds says something of all pages like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.contract import Choice
from recrawl.choose.least import least, rank_within
from recrawl.errors import UsageError
from recrawl.learn.council import EXPERTS, NEEDS, Council, told
from recrawl.learn.hints import Signals
from recrawl.learn.objectives import OBJECTIVES, index, level
from recrawl.learn.opinion import log_odds
from recrawl.learn.parts import AnyFloats, Column, parts, sums, where
from recrawl.learn.shocks import DAY
from recrawl.learn.tallies import Groups
from recrawl.model import Outcomes, Pages, Picks

FEW = 2
"""So many pages of one group in a batch, unless the group is ..."""
SURE = 0.7
"""... as likely as this to have changed."""
MANY = 1 << 19
"""So many pages, and at least four times the budget, are looked at closely when a cycle begins."""
NEAR = 12
"""So many pages of a group are looked at again when its site was visited, and more as the group itself is."""
PARTS = 6
"""A cycle's visits are judged in so many parts ..."""
LEAST = 16
"""... of no fewer visits than this."""
_WIDE = 12
"""How many times the size of a batch is looked through for pages of different groups."""
_SORTED = 1 << 20
"""So many pages are ranked at once; the room that it takes does not grow with the repository."""
_LAST = np.iinfo(np.int32).max
"""The rank of a page that is not to be visited any more."""

Objective = Literal["changes", "freshness", "harmonic", "age", "links"]


class Shock:
    """Visits what has most likely changed, believing that pages like one another change together (the default).

    Each page has a rate of change, and each group of pages (those of one site whose addresses have one form) a history
    of shocks: times when far more happened to it than usual. A visit moves the belief of the page, of its group and of
    its site, so one changed page of a site that was rebuilt brings the others to the front within the same cycle. A
    small network that has learnt how far to trust this belief, and what visits to pages of the same form, directory and
    site say, is averaged with it. Other experts are heard beside it, and a site believes them where they have foretold
    its visits better. Of a group of which it is not sure, a few pages are tried first. Hints of servers are believed as
    far as they proved right. Pages that were never downloaded come first. No site is left alone for long, and some
    batches are drawn by chance from the belief, so that nothing is taken for granted.

    Parameters
    ----------
    objective
        What a visit is for: `changes` found, `freshness` of the repository, `harmonic` staleness, `age`, or new
        `links`. Harmonic staleness and age leave no page alone for long.
    batches
        How many batches a cycle is cut into: what one finds decides on the next.
    explore
        The share of batches that are drawn from the belief instead of taking what is best by it.
    probe
        The share of the budget that belongs to sites by their number of pages: one that has had no visit for as long as
        its part of this share is worth a visit gets one, however little is expected of it.
    experts
        Who else is heard, joined by `+`: `alone` (each page changes on its own), `directory`, `links`, `clusters`
        (shocks shared along these instead of forms of addresses), `pooled` (a model fitted here); or `none`.
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
    needs: frozenset[str] = frozenset({"forms", "hints"})

    def __init__(
        self,
        *,
        objective: Objective = "changes",
        batches: int = 24,
        explore: float = 0.02,
        probe: float = 0.04,
        patience: float = 20.0,
        experts: str = "alone",
    ) -> None:
        if objective not in OBJECTIVES:
            raise UsageError(f"shock's objective is {', '.join(OBJECTIVES)}, not '{objective}'")
        if not (1 <= batches <= 1000 and batches == int(batches)):
            raise UsageError(f"shock's batches is a whole number from 1 to 1000, not {batches}")
        for name, share in (("explore", explore), ("probe", probe)):
            if not 0 <= share <= 1:
                raise UsageError(f"shock's {name} is a share from 0 to 1, not {share}")
        if not 0 <= patience < float("inf"):
            raise UsageError(f"shock's patience is a number of rounds, 0 for never, not {patience}")
        self.objective: Objective = objective
        self.batches = batches
        self.explore = explore
        self.probe = probe
        self.patience = patience
        self.experts = experts
        self._heard = _experts(experts)
        self.needs = frozenset({"forms", "hints"}).union(*(NEEDS.get(name, ()) for name in self._heard))

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
        probes = plan.probes(self.probe * budget)[:left]
        if len(probes):
            plan.take((yield Picks(probes, plan.chance[probes].astype(np.float64), "its site was left alone for long")))
            left -= len(probes)
        step = -(-budget // int(self.batches))
        while left > 0 and plan.left:
            picks = self._batch(plan, min(step, left), rng)
            seen = yield picks
            left -= len(picks)
            if left > 0:
                plan.take(seen)

    def _batch(self, plan: Plan, many: int, rng: np.random.Generator) -> Picks:
        """The pages worth most, or those that a draw says are."""
        drawn = rng.random() < self.explore
        worth = plan.worth(self.objective, plan.drawn(rng) if drawn else plan.chance)
        best = plan.best(worth, many, each=1 if drawn else FEW)
        reason = "may have changed: drawn by its chances" if drawn else "has most likely changed"
        return Picks(best, worth[best].astype(np.float64), reason)

    def plan(self, book: Book, open_: NDArray[np.bool_], budget: int) -> Plan:
        """What the cycle goes by."""
        return Plan(book, open_, budget, self._heard)

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Take in a cycle: what the cycle went by, moved by all its visits."""
        lead = self._judged(book, *told(book, seen))
        Council.of(book, self._heard).learn(seen, at, lead)
        visited = _last_visits(book)
        np.maximum.at(visited, book.site[seen.pages], at)
        book.memory["shock.visited"] = visited

    def _judged(self, book: Book, pages: Pages, changed: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What visits say of the sources of hints, which is saved, and of experts, which is given.

        Much of what a cycle finds it was led to by what it had found already, and would be a surprise to who knew only
        what was known when it began. So the visits are gone through in parts, by a council that hears of one after the
        other.
        """
        if not self._heard and book.hints is None:
            return np.zeros((0, book.sites))
        council, signals = Council.of(book, self._heard), Signals.of(book)
        for part in np.array_split(np.arange(len(pages)), min(PARTS, 1 + len(pages) // LEAST)):
            _weigh_hints(council, signals, pages[part], changed[part])
            council.judge(pages[part], changed[part])
            council.observe(pages[part], changed[part])
        signals.keep(book)
        return council.lead


class Plan:
    """The pages that a cycle may still visit, and what is believed of them as it goes on."""

    def __init__(self, book: Book, open_: NDArray[np.bool_], budget: int, experts: Sequence[str] = ("alone",)) -> None:
        self.open = open_
        """One per page: whether it may still be visited."""
        self.left = int(np.count_nonzero(open_))
        self.council = Council.of(book, experts)
        self.opinion = self.council.opinion
        self.chance = np.zeros(len(book), np.float32)
        """One per page: of having changed."""
        self._book = book
        self._signals = Signals.of(book)
        self._weight, self._cost = level(book.weight), level(book.cost)
        self._rates: Column | None = None
        self._first_look(max(MANY, 4 * budget))
        self._near = np.full(len(self.opinion.belief.groups), NEAR, np.int32)
        """One per group: so many of its pages, by their first chances, are looked at again when something is found."""
        self._rank = _ranks(self.chance, self.opinion.belief.groups, open_)

    def probes(self, visits: float) -> NDArray[np.int64]:
        """The likeliest page of each site that is owed a visit, if so many visits a cycle belong to sites by size."""
        book, length = self._book, _cycle(self._book)
        if not length:
            return np.zeros(0, np.int64)
        last = _last_visits(book)
        size = sums(book.site, self.open, len(last))
        owed = (book.now - last) / length * visits * size / max(self.left, 1)
        late = np.flatnonzero((owed >= 1) & (size > 0))
        late = late[np.argsort(-owed[late], kind="stable")][: max(1, int(2 * visits))]
        wanted = np.zeros(len(last), bool)
        wanted[late] = True
        chance, page = np.full(len(last), -1, np.float32), np.zeros(len(last), np.int64)
        for pages in where(self.open):
            some = pages[wanted[book.site[pages]]]
            some = some[self.chance[some] > chance[book.site[some]]]
            some = some[np.argsort(-self.chance[some], kind="stable")][::-1]  # so that the best of a site comes last
            chance[book.site[some]], page[book.site[some]] = self.chance[some], some
        return page[wanted]

    def worth(self, objective: Objective, chance: Column) -> Column:
        """What a visit to each page is worth, if these are the chances."""
        worth = np.full(len(chance), -np.inf, np.float32)
        if objective == "changes" and isinstance(self._weight, float) and isinstance(self._cost, float):
            np.copyto(worth, chance, where=self.open)
            return worth
        for pages in where(self.open):
            a, b = self.opinion.belief.rate(pages)
            weight, cost = (one if isinstance(one, float) else one[pages] for one in (self._weight, self._cost))
            links = self._book.arrivals[pages]
            worth[pages] = index(objective, chance[pages], a / b, weight=weight, cost=cost, links=links)
        return worth

    def drawn(self, rng: np.random.Generator) -> Column:
        """Chances by rates drawn from the belief; the same draw throughout the cycle."""
        if self._rates is None:
            self._rates = np.zeros_like(self.chance)
            for pages in where(self.open):
                a, b = self.opinion.belief.rate(pages)
                self._rates[pages] = rng.gamma(a) / b
        chance = np.zeros_like(self.chance)
        for pages in where(self.open):
            by_rate = -np.expm1(-self._rates[pages] * self.opinion.exposure(pages))
            chance[pages] = self._signals.chance(pages, by_rate)
        return chance

    def best(self, worth: Column, many: int, each: int) -> NDArray[np.int64]:
        """The pages worth most; of a group of which it is not sure that it has changed, only so many at once.

        A few visits tell what has become of the group. The others would be wasted if it were nothing.
        """
        some = _largest(worth, min(self.left, many * _WIDE))
        unsure = (self.chance[some] < SURE) & self.council.shared(some)
        late = (rank_within(self.opinion.belief.groups.of[some]) >= each) & unsure
        return np.concatenate((some[~late], some[late]))[:many]

    def take(self, seen: Outcomes) -> None:
        """What a batch has found: its pages are done, those of the same sites are looked at again."""
        pages, changed = seen.pages[seen.answered], seen.changed[seen.answered]
        _weigh_hints(self.council, self._signals, pages, changed)
        self.council.observe(pages, changed)
        self.left -= int(np.count_nonzero(self.open[seen.pages]))
        self.open[seen.pages] = False
        self._rank[seen.pages] = _LAST
        groups = self.opinion.belief.groups
        visited = groups.of[seen.pages]
        self._near[visited] += 2 * FEW  # once, however many of its pages were visited
        np.add.at(self._near, visited, 1)
        touched = np.zeros(int(groups.site.max(initial=-1)) + 1, bool)
        touched[groups.site[visited]] = True
        self._look_again(np.where(touched[groups.site], self._near, 0))

    def _first_look(self, many: int) -> None:
        """All pages; where they are too many, those of which the belief thinks most, and one of every group."""
        if self.left <= many:
            for pages in where(self.open):
                self.chance[pages] = self._look(pages)
            return
        for pages in where(self.open):  # a signal can make up for much
            self.chance[pages] = self._signals.chance(pages, self.opinion.believed(pages))
        chosen = np.zeros(len(self.open), bool)
        chosen[least(np.where(self.open, -self.chance, np.float32(1)), many)] = True
        first = np.zeros(len(self.opinion.belief.groups), np.int64)
        for pages in where(self.open):
            first[self.opinion.belief.groups.of[pages]] = pages
        chosen[first] = True
        self.chance /= 2  # what was not looked at must not stand before what was
        for pages in where(chosen & self.open):
            self.chance[pages] = self._look(pages)

    def _look_again(self, near: NDArray[np.int32]) -> None:
        """Look at so many pages of each group that come next in it; its others move by as much as those did."""
        of = self.opinion.belief.groups.of
        close = np.concatenate(
            [part.start + np.flatnonzero(self._rank[part] < near[of[part]]) for part in parts(len(of))]
        )
        seen = self._look(close)
        moved = log_odds(seen) - log_odds(self.chance[close])
        many = np.maximum(np.bincount(of[close], minlength=len(near)), 1)
        odds = np.exp(np.bincount(of[close], moved, len(near)) / many).astype(np.float32)
        for part in parts(len(of)):
            times, chance = odds[of[part]], self.chance[part]
            self.chance[part] = chance * times / (1 + chance * (times - 1))
        self.chance[close] = seen

    def _look(self, pages: NDArray[np.int64]) -> AnyFloats:
        return self._signals.chance(pages, self.council.chance(pages))


def _ranks(chance: Column, groups: Groups, open_: NDArray[np.bool_]) -> NDArray[np.int32]:
    """One per page: how many pages of its group have a better chance; groups are taken together, so many at a time."""
    of = groups.of
    rank = np.full(len(of), _LAST, np.int32)
    part_of_group = (np.cumsum(sums(of, open_, len(groups))) // _SORTED).astype(np.int16)
    part = part_of_group[of]
    part[~open_] = -1
    for number in range(int(part_of_group.max(initial=-1)) + 1):
        pages = np.flatnonzero(part == number)
        best_first = pages[np.argsort(-chance[pages], kind="stable")]
        rank[best_first] = rank_within(of[best_first])
    return rank


def _weigh_hints(council: Council, signals: Signals, pages: Pages, changed: NDArray[np.bool_]) -> None:
    """What visits say of the sources of hints, given what was thought of the pages without them."""
    if council.book.hints is not None:
        signals.chance(pages, council.chance(pages))
    signals.observe(pages, changed)


def _experts(text: str) -> tuple[str, ...]:
    """The experts that a text names."""
    names = () if text == "none" else tuple(text.split("+"))
    if not set(names) <= EXPERTS.keys() or len(set(names)) < len(names):
        raise UsageError(f"shock's experts are {', '.join(EXPERTS)}, joined by +, or none, not '{text}'")
    return names


def _cycle(book: Book) -> float:
    """How long a cycle is, as a rule, in seconds; 0 while nobody can say."""
    times = book.memory.get("shock.times", np.zeros(0))
    return float(np.median(np.diff(times))) * DAY if len(times) > 1 else 0.0


def _last_visits(book: Book) -> NDArray[np.float64]:
    """One per site: when it was last visited; where that was not noted, when time began."""
    visited = np.full(book.sites, book.memory.get("shock.times", np.zeros(1))[0] * DAY)
    kept = book.memory.get("shock.visited", visited[:0])
    visited[: len(kept)] = kept
    return visited


def _overdue(book: Book, open_: NDArray[np.bool_], patience: float, budget: int) -> NDArray[np.int64]:
    """Pages that have waited longer than any page may, the longest first."""
    length = _cycle(book)
    if not patience or budget <= 0 or not length:
        return np.zeros(0, np.int64)
    round_ = np.count_nonzero(book.known) / budget * length
    waited = book.now - book.last_try
    late = np.flatnonzero(open_ & (waited > patience * round_))
    return late[np.argsort(-waited[late], kind="stable")]


def _largest(worth: Column, many: int) -> NDArray[np.int64]:
    """The pages worth most, the most first; of those that are level at the end some that lie apart.

    >>> _largest(np.array([1, 2, 1, 1, 1, 3], np.float32), 4).tolist()
    [5, 1, 0, 4]
    """
    if many >= len(worth):
        return np.argsort(-worth, kind="stable")
    last = np.partition(worth, len(worth) - many)[len(worth) - many]
    more, level = np.flatnonzero(worth > last), np.flatnonzero(worth == last)
    apart = level[np.linspace(0, len(level) - 1, many - len(more)).astype(np.int64)]
    return np.concatenate((more[np.argsort(-worth[more], kind="stable")], apart))
