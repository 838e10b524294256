"""What a cycle of a cluster would visit, as `recrawl cycle --dry-run` prints it.

The command plans for all shards itself, one thread for each, and settles their rounds as the coordinator would, in
memory: nothing is written, no worker is needed, and a run may be under way. It holds the books of all shards at once;
of the database it reads one shard after the other.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recrawl.choose import Policy, describe, make_policy
from recrawl.choose.budget.budgeted import RECHECK
from recrawl.cluster.cycle_coordinator import CycleCoordinator
from recrawl.cluster.layout import Layout, layout_of
from recrawl.cluster.run_requests import visits_of_all
from recrawl.cluster.shard_parts import shard_options, with_share
from recrawl.cluster.shard_rounds import part_of_shard
from recrawl.crawl.reports.next_plan import CyclePlan, ReadyPlan
from recrawl.crawl.state.limits import visitable
from recrawl.record.shards.folders import reading_folder
from recrawl.record.storage import Storage
from recrawl.record.store.postgres.cluster.rounds import Arrival, RoundRow
from recrawl.record.store.postgres.cluster.runs import RunRow
from recrawl.repository.explain.plans import described
from recrawl.repository.results.runs import Plan, PlannedVisit
from recrawl.settings import Settings

_POLL = 0.02


@dataclass(frozen=True, slots=True)
class PlannedCycle:
    """The cycle that is planned."""

    policy: Policy
    budget: float
    seconds: float
    given: Mapping[str, Any]
    """What overrides the settings."""
    now: float
    """All shards begin at the same time."""


def plan_shards(folder: Path, values: Settings, cycle: PlannedCycle) -> Plan:
    """What a cycle over all shards would visit if it began now, without any request."""
    layout, journal = layout_of(folder), MemoryJournal()
    number, policy = _next_run(layout), describe(cycle.policy)
    options = [
        replace(shard_options(layout, shard, number, values, cycle.given), clock=lambda: cycle.now)
        for shard in range(layout.shards)
    ]
    pages: dict[int, int] = {}
    for shard in range(layout.shards):
        with Storage(reading_folder(folder, shard)) as own:
            pages[shard] = visitable(own.store, options[shard])
    visits = visits_of_all(cycle.budget, sum(pages.values()))
    policies = [make_policy(policy) for _ in options]
    ready = []
    for shard, chosen in enumerate(policies):
        part = part_of_shard(journal, number, shard, layout.shards, pages, journal.wait)
        with Storage(reading_folder(folder, shard)) as own:
            if own.remote is not None:
                own.remote.get_models()  # else the policy learns from all visits again
            limited = with_share(options[shard], part.share)
            ready.append(ReadyPlan(own, limited, chosen, visits, values["seed"], seconds=cycle.seconds, part=part))
    run = RunRow(number, "cycle", policy, visits, values["seed"], "", "{}", 0.0, 0.0, None, False, visits, False)
    founds = _made(CycleCoordinator(journal, run, layout.shards, late=math.inf), journal, ready)
    plans = []
    for shard, (chosen, found) in enumerate(zip(policies, founds, strict=True)):
        with Storage(reading_folder(folder, shard)) as own:
            plans.append(described(own, chosen, found))
    return _joined(plans, founds, visits)


def _next_run(layout: Layout) -> int:
    """The number of the next run: choices that are random depend on it."""
    with closing(layout.open()) as cluster:
        return max((run.id for run in cluster.runs.newest(1)), default=0) + 1


def _made(coordinator: CycleCoordinator, journal: MemoryJournal, ready: Sequence[ReadyPlan]) -> list[CyclePlan]:
    """The plans of all shards, whose rounds this thread settles."""
    with ThreadPoolExecutor(len(ready)) as pool:
        making = [pool.submit(one.make) for one in ready]
        try:
            while not all(one.done() for one in making):
                done = {shard for shard, one in enumerate(making) if one.done()}
                if any(making[shard].exception() for shard in done):
                    break
                if not coordinator.step(set(range(len(ready))), done):
                    journal.wait()
        finally:
            journal.close()
        return [one.result() for one in making]


def _joined(plans: Sequence[Plan], founds: Sequence[CyclePlan], visits: int) -> Plan:
    """One plan of all shards: batch by batch, the pages of a batch by their scores."""
    pages: list[tuple[int, PlannedVisit]] = []
    for plan, found in zip(plans, founds, strict=True):
        checks = bool(found.batches) and found.batches[0].reason == RECHECK
        batches = [place + (not checks) for place, picks in enumerate(found.batches) for _ in range(len(picks))]
        pages += zip(batches, plan.pages, strict=True)
    if len(plans) > 1:
        pages.sort(key=lambda it: (it[0], -it[1].score))
    return Plan(
        policy=plans[0].policy,
        budget=visits,
        sure=sum(plan.sure for plan in plans),
        sites=tuple(sorted((row for plan in plans for row in plan.sites), key=lambda row: -row["visits"])),
        pages=tuple(replace(visit, place=place) for place, (_, visit) in enumerate(pages, 1)),
    )


class MemoryJournal:
    """The rounds of one cycle whose shards and coordinator are threads (see `recrawl.cluster.shard_rounds.Journal`)."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = False
        self._rounds: list[RoundRow] = []
        self._arrivals: dict[int, dict[int, Arrival]] = defaultdict(dict)
        self._cuts: dict[tuple[int, int], tuple[int, int]] = {}

    def wait(self) -> bool:
        """Wait a moment for what other threads write; False if there will be nothing more."""
        with self._changed:
            return not self._closed and (self._changed.wait(_POLL) or not self._closed)

    def close(self) -> None:
        """Let all threads end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def next_round(self, run: int) -> int:
        """The number of the round that is asked next."""
        del run
        return len(self._rounds)

    def arrive(self, run: int, round_: int, shard: int, *, totals: bytes, returned: int) -> bool:
        """A shard is ready for a round; False if that was asked meanwhile."""
        with self._changed:
            if self.next_round(run) != round_:
                return False
            self._arrivals[round_].setdefault(shard, Arrival(round_, shard, totals, returned, None))
            self._changed.notify_all()
        return True

    def offer(self, run: int, round_: int, shard: int, offer: bytes) -> None:
        """What a shard offers in a round that was asked."""
        del run
        with self._changed:
            self._arrivals[round_][shard] = self._arrivals[round_][shard]._replace(offer=offer)
            self._changed.notify_all()

    def arrivals(self, run: int, round_: int) -> dict[int, Arrival]:
        """The shards of a round."""
        del run
        with self._changed:
            return dict(sorted(self._arrivals[round_].items()))

    def ask(self, run: int, row: RoundRow) -> bool:
        """Ask the shards in `row.present`; False if others have arrived meanwhile."""
        with self._changed:
            if sorted(self.arrivals(run, row.round)) != row.present:
                return False
            self._rounds.append(row)
            self._changed.notify_all()
        return True

    def settle(self, run: int, round_: int, offered: Iterable[int], cuts: Mapping[int, tuple[int, int]]) -> bool:
        """Record the cuts of the shards that have offered; False if others have offered meanwhile."""
        with self._changed:
            made = [shard for shard, it in self.arrivals(run, round_).items() if it.offer is not None]
            if made != sorted(offered):
                return False
            self._rounds[round_] = self._rounds[round_]._replace(settled=True)
            self._cuts.update({(round_, shard): (cut[0], cut[1]) for shard, cut in cuts.items()})
            self._changed.notify_all()
        return True

    def rounds(self, run: int) -> list[RoundRow]:
        """All rounds that were asked, in their order."""
        del run
        return list(self._rounds)

    def get(self, run: int, round_: int) -> RoundRow | None:
        """A round; None if it was not asked."""
        return self._rounds[round_] if 0 <= round_ < self.next_round(run) else None

    def of_shard(self, run: int, shard: int) -> list[Arrival]:
        """The rounds in which a shard has arrived, in their order."""
        del run
        with self._changed:
            return [row[shard] for _, row in sorted(self._arrivals.items()) if shard in row]

    def cut(self, run: int, round_: int, shard: int) -> tuple[int, int] | None:
        """Threshold and quota of a shard in a round; None if there are none."""
        del run
        return self._cuts.get((round_, shard))
