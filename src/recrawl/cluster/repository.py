"""The repository of a cluster: read as any other; crawls and cycles are made by its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Unpack

from recrawl.choose import Policy, describe
from recrawl.cluster.commands.moving import MovableCluster
from recrawl.cluster.layout import Layout, layout_of
from recrawl.cluster.run_requests import Kind, counts_of, cycle_of, follow_run, request_run, stopped_cycle
from recrawl.crawl.reports.figures import renew
from recrawl.crawl.tally import RunCounts
from recrawl.errors import RecrawlError, RepositoryError, UsageError
from recrawl.parameters import Budget, Bytes, CrawlRules, Query, RunRules, SearchQuery, TimeLimit
from recrawl.repository.opening import patience, seconds_of
from recrawl.repository.results.runs import Plan, Progress, Removal, Report, counts
from recrawl.repository.results.values import SearchHits
from recrawl.repository.running import Running
from recrawl.settings import changing, write_seeds

if TYPE_CHECKING:
    from recrawl.crawl.outside import Fetch
    from recrawl.repository.checking import CheckReport
    from recrawl.repository.exchange import History
    from recrawl.repository.turns import Turn

_Report = Callable[[Progress], None] | None


def _never() -> bool:
    return False


def _text_of(policy: str | Policy | None) -> str:
    """A policy as it is sent to workers; empty for that of the settings."""
    return policy if isinstance(policy, str) else describe(policy) if policy else ""


class ClusterRepository(MovableCluster):
    """A repository whose shards are crawled and refreshed by the workers of a cluster.

    `crawl`, `cycle`, `recheck`, `run`, `remove` and imports ask the workers and wait for them; the settings go with it.
    """

    @property
    def layout(self) -> Layout:
        """Where the cluster and its shards are."""
        return layout_of(self.folder)

    def search(self, query: Query, *, limit: int = 10, offset: int = 0, **only: Unpack[SearchQuery]) -> SearchHits:
        """The best pages of all shards; `unanswered` names the shards that did not answer within two seconds."""
        from recrawl.cluster.searching import search_shards  # lazy: few commands search

        question, shards = {"query": query, **self.sought(only)}, self.layout.shards
        number = self.storage.store.sites.number(question["site"]) if question["site"] else None
        asked = range(shards) if number is None else (number % shards,)
        return search_shards(self.layout, question, asked, limit=limit, offset=offset)

    def running(self) -> Running | None:
        """The crawl, cycle or recheck that the shards make now; None if there is none."""
        with closing(self.layout.open()) as cluster:
            run = cluster.runs.current()
            made = RunCounts() if run is None else counts_of(cluster, run.id)
        if run is None:
            return None
        began, now = run.started or run.requested, self.now()
        return Running(
            kind=run.kind,
            pid=0,
            began=began,
            at=now,
            total=run.visits or made.visits + made.waiting or None,
            outcomes=counts(made.outcomes, made.failures),
            received=made.received,
            found=made.found,
            rate=made.visits / (now - began) if now > began else 0.0,
            url=made.url,
        )

    def crawl(
        self,
        *,
        time_limit: TimeLimit = None,
        wait: bool = False,
        progress: _Report = None,
        stop: Callable[[], bool] = _never,
        **rules: Unpack[CrawlRules],
    ) -> Report:
        """Let all shards discover and download new pages."""
        if not self.settings.seeds:
            raise UsageError("no site was added yet; add one with 'recrawl add URL'")
        return self._run("crawl", dict(rules), time_limit, wait=wait, progress=progress, stop=stop)

    def cycle(
        self,
        *,
        budget: Budget = None,
        policy: str | Policy | None = None,
        bytes: Bytes = "",  # noqa: A002
        time_limit: TimeLimit = None,
        wait: bool = False,
        fetch: Fetch | None = None,
        progress: _Report = None,
        stop: Callable[[], bool] = _never,
        **rules: Unpack[RunRules],
    ) -> Report:
        """Refresh with one budget for all shards; a cycle that was stopped goes on with its own policy and budget."""
        if fetch is not None:
            raise UsageError("the workers of a cluster download pages themselves; 'fetch' works on one machine only")
        return self._run(
            *("cycle", {"bytes": bytes, **rules}, time_limit),
            wait=wait,
            progress=progress,
            stop=stop,
            policy=_text_of(policy),
            budget=budget,
        )

    def plan(
        self,
        *,
        budget: Budget = None,
        policy: str | Policy | None = None,
        bytes: Bytes = "",  # noqa: A002
        time_limit: TimeLimit = None,
        **rules: Unpack[RunRules],
    ) -> Plan:
        """What `cycle` would visit with these options in all shards, and why; without any request."""
        from recrawl.cluster.commands.planning import PlannedCycle, plan_shards  # lazy: few commands plan

        given = {name: value for name, value in {"bytes": bytes, **rules}.items() if value is not None}
        chosen, amount = cycle_of(self.settings, self.layout.shards, _text_of(policy), budget)
        return plan_shards(
            self.folder, self.settings, PlannedCycle(chosen, amount, seconds_of(time_limit), given, self.now())
        )

    def abandon_cycle(self, *, wait: bool = False) -> int | None:
        """Do not resume the cycle that was stopped; returns its number, None without one. Nothing is waited for."""
        del wait
        with closing(self.layout.open()) as cluster:
            run = stopped_cycle(cluster)
            if run is not None:
                cluster.runs.abandon(run.id)
            return None if run is None else run.id

    def remove(self, *urls: str, wait: bool = False) -> Removal:
        """Stop tracking sites or pages that were added: the workers drop their pages, then the settings are written."""
        from recrawl.repository.seeds import without_seeds  # lazy: loads the crawler

        _, removed = without_seeds(self.settings, urls)
        report = self._finished("rm", {"urls": sorted(removed)}, "dropped", wait=wait)
        with changing(self.settings_file):
            seeds = self.settings.seeds
            write_seeds(self.settings_file, tuple(seed for seed in seeds if seed.url not in removed))
        return Removal(tuple(sorted(removed)), report.found)

    def _take_in(
        self, urls: Iterable[str], histories: Iterable[History], *, wait: bool, progress: Callable[[int], None]
    ) -> tuple[RunCounts, list[str]]:
        from recrawl.cluster.commands.imports import divided_import, forget_all  # lazy: loads pyarrow

        divided = divided_import(self.layout, self.options().rules, urls, histories)
        if not divided:
            return RunCounts(), divided.refused

        def found(now: Progress) -> None:
            progress(min(now.found, divided.pages))

        given = {"import": divided.as_options()}
        try:
            report = self._finished("import", given, "imported", wait=wait, progress=found if divided.pages else None)
        except RecrawlError:
            forget_all(self.layout, divided)
            raise
        with closing(self.layout.open()) as cluster:
            return counts_of(cluster, report.cycle), divided.refused

    def check(
        self,
        *,
        repair: bool = False,
        truth: bool = False,
        erased: bool = False,
        texts: Iterable[str] = (),
        wait: bool = False,
    ) -> CheckReport:
        """Verify database and archive of every shard; with `repair` its worker does it, and mends its index too."""
        if truth or erased or texts:
            option = "--truth" if truth else "--erased"
            raise UsageError(
                f"{option} needs a repository of one machine: 'recrawl move --shards 0' makes one of a cluster"
            )
        from recrawl.cluster.commands.checking import check_shards, repaired_shards  # lazy: few commands check

        if repair:
            return repaired_shards(self.folder, self._finished("check", {}, "checked", wait=wait).cycle)
        self.close()
        wait_for = patience(wait, self._notify)
        return check_shards(self.folder, self.settings, self.options(), wait=wait_for, tell=self._notify)

    def recheck(
        self,
        *targets: str,
        wait: bool = False,
        progress: _Report = None,
        stop: Callable[[], bool] = _never,
    ) -> Report | None:
        """Let the shards visit pages or sites now, and what was requested before."""
        self.request_recheck(*targets)
        report = self._run("recheck", {}, None, wait=wait, progress=progress, stop=stop)
        return report if report.visits else None

    def turn(
        self,
        turn: Turn,
        *,
        wait: bool = True,
        progress: _Report = None,
        stop: Callable[[], bool] = _never,
    ) -> Report | None:
        """One turn of a run: what was requested, a crawl and a cycle; None when stopped before its cycle began."""
        given: dict[str, Any] = dict(turn.rules)
        self._run("recheck", given, None, wait=wait, progress=progress, stop=stop)
        if turn.requests_only or stop():
            return None
        crawled = self._run("crawl", given, None, wait=wait, progress=progress, stop=stop)
        if turn.crawl_only:
            return crawled
        if stop():
            return None
        return self._run(
            *("cycle", {**given, "bytes": turn.bytes}, None),
            wait=wait,
            progress=progress,
            stop=stop,
            policy=turn.policy,
            budget=turn.budget,
        )

    def _finished(
        self, kind: Kind, given: dict[str, Any], done: str, *, wait: bool, progress: _Report = None
    ) -> Report:
        """The report of a run that every shard has finished; `RepositoryError` if one has not."""
        report = self._run(kind, given, None, wait=wait, progress=progress, stop=_never)
        if not report.finished:
            problem = next(iter(report.warnings), "it was stopped")
            raise RepositoryError(f"not all pages were {done} ({problem}): run the command again")
        return report

    def _run(
        self,
        kind: Kind,
        given: dict[str, Any],
        time_limit: str | float | None,
        *,
        wait: bool,
        progress: _Report,
        stop: Callable[[], bool],
        policy: str = "",
        budget: float | None = None,
    ) -> Report:
        options = {name: value for name, value in given.items() if value is not None and value != ""}
        if time_limit is not None and time_limit != "":
            options["seconds"] = seconds_of(time_limit)
        self.options(**{name: value for name, value in options.items() if name in CrawlRules.__annotations__})
        self.close()
        text = self.settings_file.read_text(encoding="utf-8")
        with closing(self.layout.open()) as cluster:
            run, resumed = request_run(
                *(cluster, kind, self.settings, text),
                shards=self.layout.shards,
                policy=policy,
                budget=budget,
                options=options,
                wait=self._callbacks(wait, None, stop).wait,
            )
        if resumed:
            self._notify(f"resuming cycle {run.id} ({run.policy}, budget {run.visits or 0:,})")
        report = follow_run(self.layout, run, resumed=resumed, progress=progress, stop=stop, notify=self._notify)
        renew(self.storage.store, self.now())
        return report
