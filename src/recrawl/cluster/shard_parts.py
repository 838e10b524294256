"""A shard's part of a run: the ordinary crawl, cycle, removal, import or check of its repository, under its lease.

A cycle that was interrupted is resumed, on any machine: what it began with is in the object store, what it has visited
in the database, what it was allowed in the journal of its rounds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recrawl.choose import make_policy
from recrawl.cluster.layout import Layout
from recrawl.cluster.lease_keeper import LeaseKeeper
from recrawl.cluster.reader_server import ReaderServer
from recrawl.cluster.shard_links import ShardLinks
from recrawl.cluster.shard_rounds import part_of_shard
from recrawl.crawl import cycles
from recrawl.crawl.options import CrawlOptions, Ownership
from recrawl.crawl.reports.figures import renew
from recrawl.crawl.state.limits import ShardPart, pause_of, visitable
from recrawl.crawl.tally import RunCounts, as_row, joined
from recrawl.crawl.visits.servers import Servers
from recrawl.errors import RepositoryBusy
from recrawl.model import Outcome
from recrawl.parameters import CrawlRules
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store.postgres.cluster.runs import DONE, IDLE, RUNNING, RunRow
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.repository import checking, opening, turns
from recrawl.repository.seeds import drop_pages, without_seeds
from recrawl.settings import Settings

_POLL = 0.25
_COMMIT_SECONDS, _COMMIT_VISITS = 5.0, 1024
"""Each commit puts an object, so that there are fewer of them than in a crawl that writes to its own disk."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard that this process owns."""

    layout: Layout
    number: int
    folder: Path
    cluster: ClusterStore
    keeper: LeaseKeeper
    readers: ReaderServer
    stop: Callable[[], bool]
    """Whether the part must end: the lease ends, the run shall stop, or the worker."""
    wait: Callable[[float], bool]
    """Waits so many seconds; returns False as soon as the part must end."""
    progress: Callable[[RunRow, Callable[[], RunCounts]], None]
    """Called often; it asks for the counts when it is time to report them."""


class PartOfRun:
    """What one shard does in one run. `quiet` gives how long no request was sent to its servers, in seconds."""

    def __init__(self, shard: Shard, run: RunRow, quiet: Callable[[], float]) -> None:
        self._shard, self._run, self._quiet = shard, run, quiet
        shard.layout.prepare_folder(shard.folder, shard.number, run.settings)
        self._values: Settings = opening.load(shard.folder)
        self._given: dict[str, Any] = json.loads(run.options)
        options = shard_options(shard.layout, shard.number, run.id, self._values, self._given)
        self._options = replace(options, start_reader=shard.readers.start)
        self._counts, self._latest = RunCounts(), RunCounts()
        """Those of what has ended, and of what runs."""

    def make(self) -> None:
        """Do the part, from the beginning or from where it was interrupted."""
        parts = {
            "crawl": self._crawl,
            "cycle": self._cycle,
            "recheck": self._recheck,
            "rm": self._remove,
            "import": self._import,
            "check": self._check,
        }
        parts[self._run.kind]()

    def _held(self) -> AbstractContextManager[Storage]:
        shard, kind = self._shard, self._run.kind
        wait, lease = self._end_writer, shard.keeper.lease
        return opening.held(shard.folder, kind, self._options, self._values, wait=wait, lease=lease)

    def _end_writer(self, _holder: str) -> bool:
        """End whoever still writes: it hangs, or it is cut off, since this worker has the lease."""
        shard = self._shard
        shard.cluster.end_writer(shard.layout.target.of_shard(shard.number).schema)
        return shard.wait(_POLL)

    def _wait(self) -> bool:
        """Wait for what other processes write; False if the part must end."""
        self._shard.cluster.wait(_POLL)
        return not self._shard.stop()

    def _controls(self, part: ShardPart | None = None) -> cycles.Controls:
        seconds = opening.seconds_of(self._given.get("seconds"))
        return cycles.Controls(stop=self._shard.stop, progress=self._progress, seconds=seconds, part=part)

    def _progress(self, counts: RunCounts) -> None:
        self._latest = counts
        self._shard.progress(self._run, self._so_far)

    def _so_far(self) -> RunCounts:
        return joined(self._counts, self._latest)

    def _report(self, state: str, **more: Any) -> None:
        self._shard.cluster.runs.report(self._run.id, self._shard.number, state, as_row(self._so_far()) | more)

    def _wait_for_servers(self, storage: Storage) -> bool:
        """Wait as long as the slowest server wants between two requests: another process may have sent the last one."""
        longest = max((pause_of(it, self._options) for it in Servers(storage.store, self._options)), default=0.0)
        return self._shard.wait(max(0.0, max(longest, self._options.delay) - self._quiet()))

    def _ended(self, counts: RunCounts) -> None:
        """Keep the counts of a crawl, cycle or recheck that has ended."""
        self._counts, self._latest = joined(self._counts, counts), RunCounts()

    # -- the kinds of runs -----------------------------------------------------------------------------------------

    def _crawl(self) -> None:
        self._report(RUNNING)
        with self._held() as storage:
            if not self._wait_for_servers(storage):
                return
            seeds = [seed.url for seed in self._values.seeds]
            incoming = self._links(storage, self._await_links)
            summary = cycles.crawl(storage, self._options, seeds, self._controls(), incoming=incoming)
            self._ended(summary.tally)
            if not summary.finished:
                return
            if summary.resumed and summary.cycle.id == self._run.id:
                self._counts.outcomes = self._recorded(storage)
        self._report(DONE)

    def _links(self, storage: Storage, wait: Callable[[], bool] | None = None) -> ShardLinks:
        shard = self._shard
        return ShardLinks(shard.cluster, shard.number, storage.store, self._options, wait)

    def _await_links(self) -> bool:
        """Nothing is left to visit: wait for links; False if all shards have nothing left, or the part must end."""
        shard = self._shard
        self._report(IDLE)
        while not shard.cluster.links.count(shard.number):
            run = shard.cluster.runs.get(self._run.id)
            if run.ending or run.finished is not None or not shard.wait(_POLL):
                return False
        self._report(RUNNING)  # before they are removed: the crawl must not end in between
        return True

    def _recheck(self) -> None:
        calls = turns.Callbacks(stop=self._shard.stop)
        with self._held() as storage:
            self._report(RUNNING)
            if not self._wait_for_servers(storage):
                return
            summary = turns.recheck_due(storage, self._values, self._options, calls)
        if summary is not None:
            self._ended(summary.tally)
        if not self._shard.stop():
            self._report(DONE)

    def _remove(self) -> None:
        """Drop the pages of seeds that are removed; the settings of the run still have them."""
        self._report(RUNNING)
        after, removed = without_seeds(self._values, self._given["urls"])
        options = replace(self._options, scopes=opening.options_of(after).scopes)
        with self._held() as storage:
            former = [seed for seed in self._values.seeds if seed.url in removed]
            self._counts.found = drop_pages(storage, options, former)
            renew(storage.store, options.clock())
        self._report(DONE)

    def _import(self) -> None:
        """Record the URLs and histories that the command has divided among the shards."""
        from recrawl.cluster.commands.imports import forget, handed_over  # lazy: loads pyarrow
        from recrawl.repository.exchange import take_in  # lazy: loads pyarrow

        shard, given = self._shard, self._given["import"]

        def done(pages: int) -> None:
            self._progress(RunCounts(found=pages))

        self._report(RUNNING)
        with self._held() as storage:
            assert storage.remote is not None
            blobs = storage.remote.blobs
            with handed_over(blobs, shard.number, given) as (urls, histories):
                counts, _, finished = take_in(storage, self._options, urls, histories, progress=done, stop=shard.stop)
            self._ended(counts)
            if not finished:
                return
            renew(storage.store, self._options.clock())
        self._report(DONE)
        forget(blobs, shard.number, given)

    def _check(self) -> None:
        """Check and repair the shard, and the index on this machine; what was found is reported with the counts."""
        shard = self._shard

        def go_on() -> None:
            if shard.stop():
                raise RepositoryBusy("the check was interrupted")

        self._report(RUNNING)
        report = checking.check(
            *(shard.folder, self._values, self._options),
            repair=True,
            wait=self._end_writer,
            tell=opening.silent,
            lease=shard.keeper.lease,
            go_on=go_on,
        )
        self._report(DONE, check=report.as_dict())

    def _cycle(self) -> None:
        shard, run, resumed = self._shard, self._run, True
        with self._held() as storage:
            if not self._made_before(storage):
                shard.cluster.runs.join(run.id, shard.number, visitable(storage.store, self._options))
                started = self._await_start()
                if started is None or not self._wait_for_servers(storage):
                    return
                self._report(RUNNING)
                self._run, part = started, self._part()
                options = with_share(self._options, part.share)
                policy, visits = make_policy(run.policy), started.visits or 1
                controls, links = self._controls(part), self._links(storage)
                summary = cycles.cycle(storage, options, policy, visits, run.seed, controls, incoming=links)
                self._ended(summary.tally)
                if not summary.finished:
                    return
                resumed = summary.resumed
            if resumed:
                self._counts.outcomes = self._recorded(storage)
        self._report(DONE)

    def _await_start(self) -> RunRow | None:
        """The run once all shards have joined; None if the part must end before."""
        while (run := self._shard.cluster.runs.get(self._run.id)).started is None:
            if not self._wait():
                return None
        return run

    def _part(self) -> ShardPart:
        shard, run = self._shard, self._run.id
        pages = {part.shard: part.pages for part in shard.cluster.runs.shards(run).values()}
        return part_of_shard(shard.cluster.rounds, run, shard.number, shard.layout.shards, pages, self._wait)

    def _made_before(self, storage: Storage) -> bool:
        """Whether the cycle of this run is finished; one of another run that never ended is given up."""
        interrupted = cycles.unfinished(storage.store, "cycle")
        if interrupted is not None and interrupted.id != self._run.id:
            turns.abandon_cycle(storage, self._options.clock())
        row = self._row(storage)
        return row is not None and row.finished is not None

    def _recorded(self, storage: Storage) -> Counter[Outcome]:
        """The outcomes of the whole cycle, whoever made its visits."""
        row = self._row(storage)
        found = [] if row is None else storage.store.visits.of_cycle(row)["outcome"].tolist()
        # What a policy is told as not visited, such as a server that is away, is a failure all the same.
        return Counter(Outcome(min(what, Outcome.FAILED)) for what in found)

    def _row(self, storage: Storage) -> CycleRow | None:
        """The row of this run in the shard's store."""
        return next((row for row in storage.store.cycles.newest(limit=20) if row.id == self._run.id), None)


def shard_options(layout: Layout, shard: int, run: int, values: Settings, given: Mapping[str, Any]) -> CrawlOptions:
    """The options of a shard: limits that concern all sites together are divided."""
    rules = {name: given[name] for name in CrawlRules.__annotations__ if name in given}
    options = opening.with_bytes(opening.options_of(values, **rules), given.get("bytes", ""))
    return replace(
        options,
        ownership=Ownership(shard, layout.shard_of_url, run),
        per_second=options.per_second / layout.shards,
        requisite_budget=-(-options.requisite_budget // layout.shards),
        requisite_bytes=options.requisite_bytes / layout.shards,
        commit_seconds=_COMMIT_SECONDS,
        commit_visits=_COMMIT_VISITS,
    )


def with_share(options: CrawlOptions, share: float) -> CrawlOptions:
    """The options of a shard for a cycle: it receives its share of the bytes."""
    return replace(options, spending=replace(options.spending, bytes=options.spending.bytes * share))
