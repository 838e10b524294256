"""The rounds of a cycle as the worker of a shard sees them: rows in the tables of the cluster.

What was decided is never decided again: a worker that takes over a shard reads the rounds in which the shard took part,
gets the same asks and the same cuts, and so makes the same choices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Protocol, cast

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice, Chooser, Policy
from recrawl.choose.shards.offers import Cut, Offer
from recrawl.choose.shards.rounds import ShardSide, take_part
from recrawl.choose.shards.splitting import Ask, Splittable, Stage
from recrawl.crawl.state.limits import ShardPart
from recrawl.record.store.postgres.cluster.rounds import Arrival, RoundRow

END = ""
"""The stage of a round after the last: there is nothing left to divide."""
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
        self, journal: Journal, run: int, shard: int, stages: Iterable[Stage], wait: Wait, *, spent: int
    ) -> None:
        """`spent` are visits that the shard makes without asking."""
        self._journal, self._run, self._shard, self._wait = journal, run, shard, wait
        self._stages = list(stages)
        self._before = deque(journal.of_shard(run, shard))
        self._returned = -spent
        self._round = -1
        self.ended = False
        """Whether the cycle is over, and was not only stopped."""

    def next(self, side: ShardSide) -> Ask | None:
        """Arrive, and wait until the round is asked; None at the end of the cycle, or if the worker must stop."""
        arrival = self._arrived_before(side) if self._before else self._arrive(side)
        row = None if arrival is None else self._await(lambda: self._journal.get(self._run, arrival.round))
        if arrival is None or row is None or row.stage == END:
            self.ended |= row is not None
            return None
        self._round, self._returned = row.round, arrival.returned
        return self._ask(row)

    def settle(self, offer: Offer) -> Cut:
        """Offer, and wait for the cut; a round that was settled without this shard gives nothing."""
        self._journal.offer(self._run, self._round, self._shard, offer.encoded())
        row = self._await(self._settled)
        found = None if row is None else self._journal.cut(self._run, self._round, self._shard)
        return _NOTHING if found is None else Cut(*found)

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
        stage = stage_of(self._stages, round_)
        return side.totals(stage.name).tobytes() if stage.pooled else b""

    def _arrive(self, side: ShardSide) -> Arrival | None:
        while True:
            number = self._journal.next_round(self._run)
            last = self._journal.get(self._run, number - 1)
            if last is not None and last.stage == END:
                self.ended = True
                return None
            totals, returned = self._totals(side, number), self._returned
            if self._journal.arrive(self._run, number, self._shard, totals=totals, returned=returned):
                return Arrival(number, self._shard, totals, returned, None)

    def _catch_up(self, side: ShardSide, before: int) -> None:
        """Learn the totals of rounds that this shard has missed."""
        for number in range(self._round + 1, before):
            row = self._journal.get(self._run, number)
            if row is not None and row.stage != END and stage_of(self._stages, number).pooled:
                side.totals(row.stage)
                side.offer(self._ask(row))
            self._round = number

    def _ask(self, row: RoundRow) -> Ask:
        return Ask(row.stage, row.visits, row.left, np.frombuffer(row.totals, np.float64))

    def _await(self, look: Callable[[], RoundRow | None]) -> RoundRow | None:
        """Wait until a row is there; None if the worker must stop."""
        for _ in count():
            row = look()
            if row is not None or not self._wait():
                return row
        return None


class ShardChooser:
    """A policy on one shard of a cluster.

    If the chooser around it starts it again before its first visit, it takes part in the same rounds again; after the
    end of the cycle there is nothing left for it.
    """

    def __init__(
        self, policy: Policy, shard: int, shards: int, rounds: Callable[[Iterable[Stage]], TableRounds]
    ) -> None:
        self._policy = cast(Splittable, policy)
        self._shard, self._shards, self._rounds = shard, shards, rounds
        self._ended = False

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Take part in the rounds of all shards; the first shard draws from `rng` itself, the others from children."""
        if self._ended:
            return
        own = rng.spawn(self._shards)[self._shard] if self._shard else rng
        rounds = self._rounds(self._policy.stages(budget))
        yield from take_part(self._policy.begin(book, budget, own), rounds)
        self._ended = rounds.ended


def part_of_shard(
    journal: Journal, run: int, shard: int, shards: int, pages: Mapping[int, int], wait: Callable[[], bool]
) -> ShardPart:
    """A shard's part of a cycle, given the number of pages of each shard that has joined it."""

    def chooser(policy: Policy, spent: int) -> Chooser:
        def rounds(stages: Iterable[Stage]) -> TableRounds:
            return TableRounds(journal, run, shard, stages, wait, spent=spent)

        return ShardChooser(policy, shard, shards, rounds)

    return ShardPart(max(1, pages[shard]) / max(1, sum(max(1, own) for own in pages.values())), chooser)
