"""The rounds of a cycle as the worker of a shard sees them: rows in the tables of the cluster.

What was decided is never decided again: a worker that takes over a shard reads the rounds in which the shard took part,
gets the same asks and the same cuts, and so makes the same choices.

In the first rounds nothing is divided: the shards add up what their sites claim (see `recrawl.choose.budget.fair`). In
all later ones, the last number of the totals is that of visits which sites of all shards claim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol, cast

import numpy as np

from recrawl.book import Book
from recrawl.choose.budget.fair import EXCHANGES, Claims, Commons, Division, claims
from recrawl.choose.protocol import Choice, Chooser, Policy
from recrawl.choose.shards.offers import Cut, Offer
from recrawl.choose.shards.rounds import Ask, ShardSide, Splittable, Stage, take_part
from recrawl.columns import Floats
from recrawl.crawl.state.limits import ShardPart
from recrawl.record.store.postgres.cluster.rounds import Arrival, RoundRow

END = ""
"""The stage of a round after the last: there is nothing left to divide."""
CLAIMS = tuple(Stage(f"claims {number}", 0, pooled=True) for number in range(EXCHANGES))
"""The stages of the first rounds, in which shards add up what their sites claim."""
_NOTHING = Cut(0, 0)
Wait = Callable[[], bool]
"""Waits a moment; returns False if the worker must stop."""


class Journal(Protocol):
    """Where the rounds of a cycle are written: the tables of the cluster (`RoundJournal`), or memory."""

    def next_round(self, run: int) -> int:
        """The number of the round that is asked next."""
        ...

    def arrive(self, run: int, round_: int, shard: int, *, totals: bytes, returned: int) -> bool:
        """A shard is ready for a round; False if that was asked meanwhile."""
        ...

    def offer(self, run: int, round_: int, shard: int, offer: bytes) -> None:
        """What a shard offers in a round that was asked."""
        ...

    def arrivals(self, run: int, round_: int) -> dict[int, Arrival]:
        """The shards of a round."""
        ...

    def ask(self, run: int, row: RoundRow) -> bool:
        """Ask the shards in `row.present`; False if others have arrived meanwhile."""
        ...

    def settle(self, run: int, round_: int, offered: Iterable[int], cuts: Mapping[int, tuple[int, int]]) -> bool:
        """Record the cuts of the shards that have offered; False if others have offered meanwhile."""
        ...

    def rounds(self, run: int) -> list[RoundRow]:
        """All rounds that were asked, in their order."""
        ...

    def get(self, run: int, round_: int) -> RoundRow | None:
        """A round; None if it was not asked."""
        ...

    def of_shard(self, run: int, shard: int) -> list[Arrival]:
        """The rounds in which a shard has arrived, in their order."""
        ...

    def cut(self, run: int, round_: int, shard: int) -> tuple[int, int] | None:
        """Threshold and quota of a shard in a round; None if there are none."""
        ...


def stage_of(stages: list[Stage], round_: int) -> Stage:
    """The stage of a round; rounds after the last stage are for shards that have missed some."""
    return stages[min(round_, len(stages) - 1)]


class TableRounds:
    """The rounds of one shard."""

    def __init__(
        self,
        journal: Journal,
        run: int,
        shard: int,
        stages: Iterable[Stage],
        wait: Wait,
        *,
        spent: int,
        commons: Commons | None = None,
    ) -> None:
        """`spent` are visits that the shard makes without asking."""
        self._journal, self._run, self._shard, self._wait = journal, run, shard, wait
        self._stages = [*CLAIMS, *stages]
        self._commons = commons
        self._free = 0
        """Visits of the present round that no site of any shard claims."""
        self._before = deque(journal.of_shard(run, shard))
        self._returned = -spent
        self._round = -1
        self.ended = False
        """Whether the cycle is over, and was not only stopped."""
        self.rest = 0
        """Visits of all shards that were left then."""

    def added(self, exchange: int, own: Floats) -> Floats:
        """Add a column up over all shards; a shard that comes too late adds its own to that of the others."""
        if all(arrival.round != exchange for arrival in self._before):
            totals, returned = own.tobytes(), self._returned
            self._journal.arrive(self._run, exchange, self._shard, totals=totals, returned=returned)
        row = self._await(lambda: self._journal.get(self._run, exchange))
        if row is None:
            return own
        total = np.frombuffer(row.totals, np.float64)
        return total if self._shard in row.present else total + own

    def next(self, side: ShardSide) -> Ask | None:
        """Arrive, and wait until the round is asked; None at the end of the cycle, or if the worker must stop."""
        while True:
            arrival = self._arrived_before(side) if self._before else self._arrive(side)
            row = None if arrival is None else self._await(partial(self._journal.get, self._run, arrival.round))
            if arrival is None or row is None or row.stage == END:
                self._end(row)
                return None
            self._round, self._returned = row.round, arrival.returned
            if row.round >= len(CLAIMS):
                return self._ask(row)

    def settle(self, offer: Offer) -> Cut:
        """Offer, and wait for the cut; a round that was settled without this shard gives nothing."""
        self._journal.offer(self._run, self._round, self._shard, offer.encoded())
        row = self._await(self._settled)
        found = None if row is None else self._journal.cut(self._run, self._round, self._shard)
        cut = _NOTHING if found is None else Cut(*found)
        if self._commons is not None and row is not None:  # in a round as large as all that is free, each gets its part
            part = self._free if self._free >= row.visits else -(-self._free * cut.quota // max(row.visits, 1))
            self._commons.allow(min(part, self._free), exhausted=not self._free)
        return cut

    def _end(self, row: RoundRow | None) -> None:
        if row is not None and row.stage == END:
            self.ended, self.rest = True, row.left

    def give_back(self, visits: int) -> None:
        """Return visits with the next arrival."""
        self._returned += visits

    def _settled(self) -> RoundRow | None:
        row = self._journal.get(self._run, self._round)
        return row if row is not None and row.settled else None

    def _arrived_before(self, side: ShardSide) -> Arrival:
        """The next round in which the shard had arrived; counting its totals again gives the plan its state of then."""
        arrival = self._before.popleft()
        self._totals(side, arrival.round)
        return arrival

    def _totals(self, side: ShardSide, round_: int) -> bytes:
        """The totals for a round, after those of rounds that this shard has missed."""
        self._catch_up(side, round_)
        if round_ < len(CLAIMS):
            return b""
        stage = stage_of(self._stages, round_)
        claimed = np.array([0 if self._commons is None else self._commons.reserved], np.float64)
        return (side.totals(stage.name).tobytes() if stage.pooled else b"") + claimed.tobytes()

    def _arrive(self, side: ShardSide) -> Arrival | None:
        while True:
            number = self._journal.next_round(self._run)
            last = self._journal.get(self._run, number - 1)
            if last is not None and last.stage == END:
                self._end(last)
                return None
            totals, returned = self._totals(side, number), self._returned
            if self._journal.arrive(self._run, number, self._shard, totals=totals, returned=returned):
                return Arrival(number, self._shard, totals, returned, None)

    def _catch_up(self, side: ShardSide, before: int) -> None:
        """Learn the totals of rounds that this shard has missed."""
        for number in range(self._round + 1, before):
            row = self._journal.get(self._run, number)
            if number >= len(CLAIMS) and row is not None and row.stage != END and self._pooled(number):
                side.totals(row.stage)
                side.offer(self._ask(row))
            self._round = number

    def _pooled(self, round_: int) -> bool:
        return stage_of(self._stages, round_).pooled

    def _ask(self, row: RoundRow) -> Ask:
        totals = np.frombuffer(row.totals, np.float64)
        self._free = max(0, row.left - int(totals[-1]))
        return Ask(row.stage, row.visits, row.left, totals[:-1])

    def _await(self, look: Callable[[], RoundRow | None]) -> RoundRow | None:
        """Wait until a row is there; None if the worker must stop."""
        for _ in count():
            row = look()
            if row is not None or not self._wait():
                return row
        return None


class ShardChooser:
    """A policy on one shard of a cluster.

    If the chooser around it starts it again before its first visit, it takes part in the same rounds again. After the
    end of the cycle it makes its part, by its share of the pages, of visits that no shard could use in the rounds.
    """

    def __init__(
        self,
        policy: Policy,
        shard: int,
        shards: int,
        rounds: Callable[[Iterable[Stage]], TableRounds],
        *,
        share: float = 0.0,
        commons: Commons | None = None,
    ) -> None:
        self._policy = policy
        self._shard, self._shards, self._rounds = shard, shards, rounds
        self._share, self._commons = share, commons
        self._ended = False
        self._rest = 0

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Take part in the rounds of all shards; the first shard draws from `rng` itself, the others from children."""
        if self._ended:
            yield from self._alone(book, rng)
            return
        policy = cast(Splittable, self._policy)
        own = rng.spawn(self._shards)[self._shard] if self._shard else rng
        rounds = self._rounds(policy.stages(budget))
        yield from take_part(policy.begin(book, budget, own), rounds)
        self._ended = rounds.ended
        self._rest = int(rounds.rest * self._share + 0.5) if self._shards > 1 else rounds.rest

    def _alone(self, book: Book, rng: np.random.Generator) -> Choice:
        """Make visits without asking the other shards."""
        if self._rest <= 0:
            return
        if self._commons is not None:
            self._commons.allow(self._rest)
        choice = self._policy.cycle(book, self._rest, rng)
        try:
            picks = next(choice)
            while self._rest > 0 and len(picks := picks.where(np.arange(len(picks)) < self._rest)):
                seen = yield replace(picks, awaits=1.0)
                self._rest -= int(np.count_nonzero(seen.visited))
                picks = choice.send(seen)
        except StopIteration:
            pass
        finally:
            choice.close()


def part_of_shard(
    journal: Journal, run: int, shard: int, shards: int, pages: Mapping[int, int], wait: Callable[[], bool]
) -> ShardPart:
    """A shard's part of a cycle, given the number of pages of each shard that has joined it."""
    share = max(1, pages[shard]) / max(1, sum(max(1, own) for own in pages.values()))

    def chooser(
        policy: Policy, spent: int, idle: Callable[[], None], division: Division | None
    ) -> tuple[Chooser, Commons | None]:
        commons: Commons | None = None

        def wait_on() -> bool:
            idle()
            return wait()

        def rounds(stages: Iterable[Stage]) -> TableRounds:
            return TableRounds(journal, run, shard, stages, wait_on, spent=spent, commons=commons)

        def claimed(book: Book, budget: int) -> Claims:
            assert division is not None
            return claims(book, budget, policy, division, rounds(()).added)

        if division is not None:
            commons = Commons(claimed, alone=shards == 1)
        return ShardChooser(policy, shard, shards, rounds, share=share, commons=commons), commons

    return ShardPart(share, chooser)
