"""Check all shards of a cluster, as `recrawl check` does: the command reads them, its workers repair them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from recrawl.cluster.layout import layout_of
from recrawl.crawl.options import CrawlOptions
from recrawl.errors import RepositoryBusy
from recrawl.record.check import CheckProblem
from recrawl.record.shards.folders import reading_folder
from recrawl.record.store.postgres.cluster.runs import RunRow
from recrawl.repository import checking
from recrawl.repository.checking import CheckReport
from recrawl.repository.opening import Notify
from recrawl.settings import Settings


def check_shards(
    folder: Path, values: Settings, options: CrawlOptions, *, wait: Callable[[str], bool], tell: Notify
) -> CheckReport:
    """Check database and archive of every shard; their indexes are on the machines of the workers.

    A run that begins meanwhile ends the check, since its workers write.
    """
    total, options = CheckReport(), replace(options, index=False)
    for shard in range(layout_of(folder).shards):
        while (run := _run_of(folder)) is not None:
            if not wait(f"{run.kind} {run.id}"):
                raise RepositoryBusy(
                    f"{run.kind} {run.id} is under way in this cluster: wait for it to end, or stop it"
                )
        made = reading_folder(folder, shard)
        report = checking.check(made, values, options, repair=False, wait=wait, tell=tell)
        if not report.clean and (run := _run_of(folder)) is not None:
            raise RepositoryBusy(f"{run.kind} {run.id} began during the check: run it again when that has ended")
        total = _joined(total, report, shard)
    return total


def repaired_shards(folder: Path, run: int) -> CheckReport:
    """What the workers have found and repaired in a run."""
    with closing(layout_of(folder).open()) as cluster:
        parts = cluster.runs.shards(run)
    total = CheckReport()
    for shard, part in sorted(parts.items()):
        total = _joined(total, CheckReport.of(part.tally["check"]), shard)
    return total


def _run_of(folder: Path) -> RunRow | None:
    """The run that is under way."""
    with closing(layout_of(folder).open()) as cluster:
        return cluster.runs.current()


def _joined(total: CheckReport, report: CheckReport, shard: int) -> CheckReport:
    counts = {name: getattr(total, name) + getattr(report, name) for name in report.as_dict()["checked"]}
    problems = tuple(CheckProblem(it.part, f"shard {shard}: {it.what}", it.repaired) for it in report.problems)
    notes = tuple(f"shard {shard}: {note}" for note in report.notes)
    return replace(total, problems=total.problems + problems, notes=total.notes + notes, **counts)
