"""Ask for a run of all shards (a crawl, cycle, recheck, removal, import or check), and follow it, as the commands do.

Settings travel with the request: workers use those of the moment at which it was made. A cycle that was stopped is
resumed by the next request for one, with its own policy and budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Literal

from recrawl.choose import Policy, describe, make_policy
from recrawl.choose.shards.rounds import why_one_shard
from recrawl.cluster.layout import Layout
from recrawl.crawl.tally import RunCounts, from_row, joined
from recrawl.errors import RepositoryBusy, StorageFailure, UsageError
from recrawl.record.store.postgres.cluster.runs import RunRow
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.repository.results.runs import Progress, Report
from recrawl.settings import Settings

_POLL = 0.2
_ABSENT = 5.0
"""Seconds without a worker, a coordinator or the database after which the user is told."""
Kind = Literal["crawl", "cycle", "recheck", "rm", "import", "check"]


def request_run(
    cluster: ClusterStore,
    kind: Kind,
    values: Settings,
    settings: str,
    *,
    shards: int,
    policy: str = "",
    budget: float | None = None,
    options: Mapping[str, Any] | None = None,
    wait: Callable[[str], bool] = lambda _: False,
) -> tuple[RunRow, bool]:
    """Ask for a run; returns it, and whether it is one that was stopped before and goes on.

    `wait` is called with the run that is under way until that has ended; it returns False to give up.
    """
    while (running := cluster.runs.current()) is not None:
        if wait(f"{running.kind} {running.id}"):
            continue
        raise RepositoryBusy(
            f"{running.kind} {running.id} is under way in this cluster: wait for it to end, or stop it"
        )
    cluster.set_fact("settings", settings)
    if kind == "cycle":
        chosen, visits = cycle_of(values, shards, policy, budget)
        before = stopped_cycle(cluster)
        if before is not None:
            cluster.runs.resume(before.id)
            return cluster.runs.get(before.id), True
        text = describe(chosen)
    else:
        text, visits = "explore" if kind == "crawl" else kind, 0
    run = cluster.runs.request(
        kind, policy=text, budget=visits, seed=values["seed"], settings=settings, options=options or {}
    )
    return cluster.runs.get(run), False


def cycle_of(values: Settings, shards: int, policy: str, budget: float | None) -> tuple[Policy, float]:
    """Policy and budget of a cycle, those of the settings by default; `UsageError` if it cannot be made on shards."""
    chosen, visits = make_policy(policy or values["policy"]), values["budget"] if budget is None else budget
    if shards > 1 and (why := why_one_shard(chosen)):
        raise UsageError(f"{chosen.name} does not work on a cluster of several shards, because {why}")
    if visits <= 0:
        raise UsageError(f"invalid budget {visits:g}: use more than 0")
    return chosen, visits


def visits_of_all(budget: float, pages: int) -> int:
    """The budget of a cycle as a number of visits; one under 1 is a share of the pages of all shards."""
    return int(budget) if budget >= 1 else max(1, round(budget * pages))


def stopped_cycle(cluster: ClusterStore) -> RunRow | None:
    """The last cycle, if it was stopped after it had begun."""
    last = next((run for run in cluster.runs.newest() if run.kind == "cycle"), None)
    return last if last is not None and last.stop and last.started is not None else None


def follow_run(
    layout: Layout,
    run: RunRow,
    *,
    resumed: bool = False,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    notify: Callable[[str], None] = lambda _: None,
    timer: Callable[[], float] = time.monotonic,
) -> Report:
    """Wait for the end of a run; the first time that `stop` returns True, it is asked to stop.

    While the database is away the run goes on as far as it can, so this says so and waits for it, unless `stop` returns
    True.
    """
    began, asked, told, outage = timer(), False, False, _Outage(notify, timer)
    while True:
        try:
            with closing(layout.open()) as cluster:
                outage.over()
                while (run := cluster.runs.get(run.id)).finished is None:
                    if stop() and not asked:
                        cluster.runs.ask_to_stop(run.id)
                        asked = True
                    if progress is not None:
                        progress(_progress(run, counts_of(cluster, run.id)))
                    if not told and timer() - began > _ABSENT:
                        told = _tell_who_is_absent(cluster, layout.shards, notify)
                    time.sleep(_POLL)
                return report_of_run(cluster, run, resumed=resumed)
        except StorageFailure as error:
            if stop():
                raise
            outage.goes_on(error)
            time.sleep(_POLL)


class _Outage:
    """Tells the user once that the database is away, and that it is back."""

    def __init__(self, notify: Callable[[str], None], timer: Callable[[], float]) -> None:
        self._notify, self._timer = notify, timer
        self._since: float | None = None
        self._told = False

    def goes_on(self, error: StorageFailure) -> None:
        self._since = self._timer() if self._since is None else self._since
        if not self._told and self._timer() - self._since > _ABSENT:
            self._told = True
            self._notify(f"waiting for the database: {error}")

    def over(self) -> None:
        if self._told:
            self._notify("the database is back")
        self._since, self._told = None, False


def counts_of(cluster: ClusterStore, run: int) -> RunCounts:
    """The counts of all shards together."""
    total = RunCounts()
    for part in cluster.runs.shards(run).values():
        waiting = total.waiting
        total = joined(total, from_row(part.tally))
        total.waiting += waiting
    return total


def report_of_run(cluster: ClusterStore, run: RunRow, *, resumed: bool = False) -> Report:
    """What a run that has ended did."""
    counts, parts = counts_of(cluster, run.id), cluster.runs.shards(run.id).values()
    failed = tuple(f"shard {part.shard} failed: {part.problem}" for part in parts if part.problem)
    return Report(
        cycle=run.id,
        kind=run.kind,
        policy=run.policy,
        budget=run.visits or 0,
        resumed=resumed,
        finished=not run.stop and not failed,
        outcomes=counts.outcomes,
        failures=counts.failures,
        left=counts.left,
        found=counts.found,
        received=counts.received,
        warnings=(*counts.warnings, *failed),
        seconds=(run.finished or 0.0) - run.requested,
        requisites=counts.requisites,
        requisite_bytes=counts.requisite_bytes,
    )


def _progress(run: RunRow, counts: RunCounts) -> Progress:
    kind: Literal["crawl", "cycle"] = "crawl" if run.kind == "crawl" else "cycle"
    return Progress(
        *(kind, counts.visits, run.visits or None, counts.waiting, counts.outcomes),
        found=counts.found,
        received=counts.received,
        failures=counts.failures,
    )


def _tell_who_is_absent(cluster: ClusterStore, shards: int, notify: Callable[[str], None]) -> bool:
    """Say which shards have no worker; whether there was something to say."""
    owned = {lease.shard for lease in cluster.leases.holders()}
    absent = [shard for shard in range(shards) if shard not in owned]
    if absent:
        some = ", ".join(map(str, absent[:5])) + (" ..." if len(absent) > 5 else "")
        notify(f"waiting for workers of {len(absent)} shards ({some}): start them with 'recrawl cluster start'")
    return bool(absent)
