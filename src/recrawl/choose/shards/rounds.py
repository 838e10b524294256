"""The rounds of a cycle over shards: what one shard does in them, and who settles them.

`ShardSide` is one shard's side of a round, the same everywhere: observe what was found, count totals, offer pages, take
those at the threshold, give back what it cannot use. `rounds` settles the rounds of shards in one process; `one_shard`
is a policy's ordinary cycle. `take_part` is the cycle of a shard whose rounds are settled elsewhere, behind `Rounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice, Learner, Policy, needs_of
from recrawl.choose.shards.offers import Coordinator, Cut, Offer, RankedPages
from recrawl.choose.shards.placement import shard_of
from recrawl.columns import Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.model import NOTHING, Outcomes, Pages, Picks

# --------------------------------------------------------------------------------------------------------------------
# The interface of policies that can be split into shards.
#
# A policy that can be split says in which `stages` a cycle proceeds, and `begin`s a `ShardPlan` for each shard. In
# every stage each plan offers its candidates, the coordinator finds the threshold, and each plan takes its pages at it;
# before the next it observes what the visits found (see `recrawl.choose.shards.rounds`).
#
# What belongs to all pages and not to a shard, such as their number, is in the *totals* of a stage: columns of numbers
# that each plan counts for its own pages, and that are added up over the shards.


CROSSING = frozenset({"links", "clusters", "words"})
"""The parts of a book that a shard lacks: they belong to pages of several sites together."""
NO_TOTALS = np.zeros(0)


class Ask(NamedTuple):
    """What the plans of all shards are asked for in one stage."""

    stage: str
    visits: int
    """Visits of this stage, of all shards together."""
    left: int
    """Visits that are left of the cycle's budget, those of this stage included."""
    totals: Floats
    """The sums of the plans' totals, if the stage is pooled."""
    awaits: float = 1.0
    """Share of its outcomes that the next stage needs."""


class Stage(NamedTuple):
    """One round of a cycle."""

    name: str
    visits: int
    """Maximum visits of all shards together."""
    pooled: bool = False
    """Whether the plans need totals for it."""
    awaits: float = 1.0
    """Share of its outcomes that the next stage needs (see `Picks.awaits`)."""

    def ask(self, left: int, totals: Floats) -> Ask:
        """Return what to ask for with so many visits left."""
        return Ask(self.name, min(self.visits, left), left, totals, self.awaits)


class ShardPlan(Protocol):
    """The state of a cycle on one shard."""

    def totals(self, stage: str) -> Floats:
        """Return this shard's part of the totals of a stage."""
        ...

    def offer(self, ask: Ask) -> Offer:
        """Return a histogram of the worth of the pages that could be visited in this stage."""
        ...

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best of the pages offered last, at most `quota`, none below the threshold."""
        ...

    def observe(self, seen: Outcomes) -> None:
        """Update with outcomes of pages taken: those taken last, or some of them and late ones of earlier stages."""
        ...


@runtime_checkable
class Splittable(Protocol):
    """A policy that can be split."""

    def stages(self, budget: int) -> Iterable[Stage]:
        """Yield the stages of a cycle in order."""
        ...

    def begin(self, book: Book, budget: int, rng: np.random.Generator) -> ShardPlan:
        """Return the plan of a shard; the budget is that of all shards."""
        ...


def why_one_shard(policy: Policy) -> str:
    """Return why a policy cannot be split, a clause that completes "because ..."; empty if it can.

    >>> from recrawl.choose import make_policy
    >>> why_one_shard(make_policy("shock")), why_one_shard(make_policy("greedy"))
    ('', 'it divides the budget among all sites at once')
    """
    given: str = getattr(policy, "one_shard", "")
    if given or isinstance(policy, Splittable):
        crossing = sorted(policy.needs & CROSSING)
        return given or (f"it needs {' and '.join(crossing)}, which cross shards" if crossing else "")
    return "it has no methods stages and begin"


# --------------------------------------------------------------------------------------------------------------------


_NO_PICKS = Picks(np.zeros(0, np.int64), np.zeros(0), "nothing")


class ShardSide:
    """One shard's side of a cycle."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan
        self._unseen = NOTHING
        self._awaits = 1.0

    def observe(self) -> None:
        """Learn what the visits since the last round have found."""
        if len(self._unseen):
            self._plan.observe(self._unseen)
            self._unseen = NOTHING

    def totals(self, stage: str) -> Floats:
        """Return this shard's part of the totals of a stage."""
        return self._plan.totals(stage)

    def offer(self, ask: Ask) -> Offer:
        """Return what this shard offers in a round."""
        self._awaits = ask.awaits
        return self._plan.offer(ask)

    def take(self, cut: Cut) -> tuple[Picks, int]:
        """Return the pages to visit, and the visits of the quota that this shard cannot use."""
        picks = self._plan.take_at(*cut)
        return replace(picks, awaits=min(picks.awaits, self._awaits)), cut.quota - len(picks)

    def saw(self, seen: Outcomes) -> None:
        """Keep outcomes until the next round in which this shard takes part."""
        self._unseen += seen


class Rounds(Protocol):
    """Whoever settles the rounds of a cycle, as one shard sees it."""

    def next(self, side: ShardSide) -> Ask | None:
        """Wait for the next round in which this shard takes part; None at the end of the cycle."""
        ...

    def settle(self, offer: Offer) -> Cut:
        """Offer pages, and return which of them may be taken."""
        ...

    def give_back(self, visits: int) -> None:
        """Return visits that this shard did not use."""
        ...


def take_part(plan: ShardPlan, rounds: Rounds) -> Choice:
    """The cycle of one shard; visits that were not made after all go back to the budget of all shards.

    Each batch waits for all of its outcomes: whoever resumes the cycle elsewhere must get them in the same order.
    """
    side = ShardSide(plan)
    while True:
        side.observe()
        ask = rounds.next(side)
        if ask is None:
            return
        picks, unused = side.take(rounds.settle(side.offer(ask)))
        rounds.give_back(unused)
        if len(picks):
            seen = yield replace(picks, awaits=1.0)
            side.saw(seen)
            rounds.give_back(int(np.count_nonzero(~seen.visited)))


def rounds(
    policy: Splittable, plans: Sequence[ShardPlan], budget: int, late: Callable[[int], bool] = lambda _: False
) -> Generator[list[Picks], list[Outcomes], None]:
    """Run a cycle over shards: yield the picks of each shard, receive their outcomes.

    Visits that were not made after all are given to other pages, in the last stage if need be.
    `late` says of a shard whether its visits are still under way when a round begins: it takes part in a later one.
    At the end, shards that missed rounds take what was kept for them.
    """
    coordinator = Coordinator(len(plans), budget)
    sides = [ShardSide(plan) for plan in plans]
    ask = Ask("", 0, budget, NO_TOTALS)

    def one(present: Sequence[int]) -> Generator[list[Picks], list[Outcomes], int]:
        """Make a round; returns the visits that were given."""
        refused = 0
        offers = {shard: sides[shard].offer(ask) for shard in present}
        cuts = coordinator.settle(ask.stage, ask.visits, offers)
        taken = [side.take(cuts[shard]) if shard in cuts else (_NO_PICKS, 0) for shard, side in enumerate(sides)]
        coordinator.give_back(sum(unused for _, unused in taken))
        if any(len(picks) for picks, _ in taken):
            for side, seen in zip(sides, (yield [picks for picks, _ in taken]), strict=True):
                side.saw(seen)
                refused += int(np.count_nonzero(~seen.visited))
        coordinator.give_back(refused)
        return sum(cut.quota for cut in cuts.values())

    def asked(stage: Stage, present: Sequence[int]) -> Ask:
        for shard in present:
            sides[shard].observe()
        totals = np.sum([side.totals(stage.name) for side in sides], axis=0) if stage.pooled else NO_TOTALS
        return stage.ask(coordinator.left, totals)

    given, stage = 0, Stage("", 0)
    for stage in policy.stages(budget):
        if coordinator.left <= 0:
            break
        present = [shard for shard in range(len(plans)) if not late(shard)]
        ask = asked(stage, present)
        given = yield from one(present)
    while coordinator.left > 0 and given and not coordinator.owed():  # for other pages than those that were refused
        ask = asked(stage, range(len(plans)))
        given = yield from one(range(len(plans)))
    owed = coordinator.owed()
    if owed:
        for shard in owed:
            sides[shard].observe()
        visits = sum(owed.values())
        ask = ask._replace(visits=visits, left=visits, awaits=1.0)
        yield from one(list(owed))


def one_shard(policy: Splittable, book: Book, budget: int, rng: np.random.Generator) -> Choice:
    """The cycle of a policy whose only shard is the whole book."""
    shards = rounds(policy, [policy.begin(book, budget, rng)], budget)
    try:
        picks = next(shards)
        while True:
            picks = shards.send([(yield picks[0])])
    except StopIteration:
        return


# --------------------------------------------------------------------------------------------------------------------
# The base class of policies that rank pages by one number, and learn nothing within a cycle.


class RankedPolicy:
    """Visits the best pages of its rankings, one ranking after the other; it can be split."""

    rankings_per_cycle: ClassVar[int] = 1

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:
        """Yield `rankings_per_cycle` rankings, which may be empty."""
        raise NotImplementedError

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the best pages of each ranking in turn, until the budget is spent."""
        return one_shard(self, book, budget, rng)

    def stages(self, budget: int) -> list[Stage]:
        """One stage per ranking."""
        return [Stage(str(number), budget, awaits=0.0) for number in range(self.rankings_per_cycle)]

    def begin(self, book: Book, budget: int, rng: np.random.Generator) -> RankedPlan:
        """Return the plan of a shard."""
        return RankedPlan(self.rankings(book, budget, rng))


class RankedPlan:
    """The rankings of one shard, each computed when its stage begins."""

    def __init__(self, rankings: Iterator[RankedPages]) -> None:
        self._rankings = enumerate(rankings)
        self._stage = ""
        self._offered = RankedPages.none("nothing was offered")
        self._taken = self._offered.pages

    def totals(self, stage: str) -> Floats:  # noqa: ARG002
        """Return nothing: a shard ranks its pages by themselves."""
        return np.zeros(0)

    def offer(self, ask: Ask) -> Offer:
        """Compute the ranking of a stage; the stages before it may have been missed.

        A stage that is asked for again, because visits have come back, gets what is left of its ranking.
        """
        if ask.stage == self._stage:
            self._offered = self._offered.without(self._taken)
        else:
            self._offered = next(ranking for number, ranking in self._rankings if str(number) == ask.stage)
        self._stage, self._taken = ask.stage, self._taken[:0]
        return self._offered.offer()

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best pages of the ranking."""
        picks = self._offered.take_at(threshold, quota)
        self._taken = picks.pages
        return picks

    def observe(self, seen: Outcomes) -> None:
        """Learn nothing within a cycle."""


# --------------------------------------------------------------------------------------------------------------------
# A policy over several shards in one process: each shard has a book of its own pages, and a memory of its own.


@dataclass(frozen=True, slots=True, eq=False)
class _Shards:
    """The division of a book's pages: page numbers of each shard, and the place of each page in it."""

    of: Int32s
    place: Ints
    pages: list[Pages]

    @classmethod
    def by(cls, of: Int32s, shards: int) -> _Shards:
        pages = [np.flatnonzero(of == shard) for shard in range(shards)]
        place = np.zeros(len(of), np.int64)
        for some in pages:
            place[some] = np.arange(len(some))
        return cls(of, place, pages)

    def divide(self, seen: Outcomes) -> list[Outcomes]:
        """Return the outcomes of each shard, with its own page numbers."""
        of = self.of[seen.pages]
        rows = [np.flatnonzero(of == shard) for shard in range(len(self.pages))]
        return [Outcomes(self.place[seen.pages[some]], seen.what[some]) for some in rows]


class Sharded:
    """A policy that can be split, over shards: `shard_of_site` holds the shard of each site.

    `late` is the share of shards whose visits are still under way when a round begins, as on a cluster.

    >>> from recrawl.choose import make_policy
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(6, now=1e6)
    >>> book.site[3:], book.last_try[:] = 1, [0, 9e5, 9e5, 5e5, 8e5, 9e5]
    >>> batches(Sharded(make_policy("round-robin"), [0, 1], 2), book, budget=3)
    [[0, 3, 4]]
    """

    name: ClassVar[str] = "sharded"
    source: ClassVar[str] = "recrawl's own: a policy over shards"

    def __init__(self, policy: Policy, shard_of_site: Sequence[int] | Ints, shards: int, *, late: float = 0.0) -> None:
        why = why_one_shard(policy)
        if why and shards > 1:
            raise UsageError(f"{policy.name} runs on one shard only, because {why}")
        self.needs = needs_of(policy)
        self._policy = policy
        self.shard_of_site = np.asarray(shard_of_site, np.int32)
        self._shards = shards
        self._late = late

    def inner_policy(self) -> Policy:
        """The policy that runs on every shard."""
        return self._policy

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Run all shards with one budget; the first shard draws from `rng` itself, the others from its children."""
        split = self._divided(book)
        books = [self._book(book, split, shard) for shard in range(self._shards)]
        policy = cast(Splittable, self._policy)
        luck, *others = rng.spawn(self._shards)
        generators = [rng, *others]
        plans = [policy.begin(own, budget, own_rng) for own, own_rng in zip(books, generators, strict=True)]
        run = rounds(policy, plans, budget, lambda _: luck.random() < self._late)
        try:
            picks = next(run)
            while True:
                seen = yield from _visit(picks, split)
                picks = run.send(split.divide(seen))
        except StopIteration:
            return

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Let every shard learn from its own visits."""
        if not isinstance(self._policy, Learner):
            return
        split = self._divided(book)
        for shard, own in enumerate(split.divide(seen)):
            part = self._book(book, split, shard)
            self._policy.learn(part, own, at[split.of[seen.pages] == shard])
            book.memory |= {f"{_prefix(shard)}{name}": column for name, column in part.memory.items()}

    def _divided(self, book: Book) -> _Shards:
        return _Shards.by(self.shard_of_site[book.site], self._shards)

    def _book(self, book: Book, split: _Shards, shard: int) -> Book:
        part, prefix = book.part(split.pages[shard]), _prefix(shard)
        part.memory = {
            name.removeprefix(prefix): column for name, column in book.memory.items() if name.startswith(prefix)
        }
        return part


def by_domain(policy: Policy, domains: Sequence[str], shards: int) -> Policy:
    """Return a policy over shards, given the registrable domain of each site; as it is if it runs on one shard."""
    if shards == 1 or why_one_shard(policy):
        return policy
    return Sharded(policy, [shard_of(domain, shards) for domain in domains], shards)


def _prefix(shard: int) -> str:
    return f"shard {shard}/"


def _visit(picks: list[Picks], split: _Shards) -> Generator[Picks, Outcomes, Outcomes]:
    """Visit the picks of all shards, best first: at once, but for those with other reasons."""
    parts = []
    for reason in dict.fromkeys(some.reason for some in picks if len(some)):
        same = [
            (pages[some.pages], some.score, np.arange(len(some)) >= some.needed)
            for pages, some in zip(split.pages, picks, strict=True)
            if some.reason == reason and len(some)
        ]
        pages, score, unawaited = (np.concatenate(columns) for columns in zip(*same, strict=True))
        order = np.lexsort((-score, unawaited)) if len(same) > 1 else np.arange(len(pages))
        chosen = Picks(pages[order], score[order], reason)
        parts.append((yield chosen.awaiting(int(np.count_nonzero(~unawaited))) if unawaited.any() else chosen))
    return Outcomes(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("pages", "what")))
