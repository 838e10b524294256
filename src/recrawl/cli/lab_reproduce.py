"""`recrawl lab reproduce`: tables and figures of the source documents, theirs beside ours."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from recrawl.cli.cache_folder import cache_folder
from recrawl.cli.output import AsJson, as_json, note, say, table
from recrawl.cli.progress import progress
from recrawl.errors import UnknownName, UsageError
from recrawl.version import __version__

_SHOWN_ROWS = 40

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME...", help="Experiments, or all of a document, as radinsky2013; --list lists them."),
]
Archives = Annotated[
    list[Path] | None, typer.Option(help="Run on these archives too: Parquet files or folders of them; repeatable.")
]


def reproduce(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="All of them: some minutes at full size on two cores.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and do nothing else.")] = False,
    archives: Archives = None,
    out: Annotated[Path | None, typer.Option(help="Write a report here: a page, charts, JSON.")] = None,
    scale: Annotated[float, typer.Option(help="Size of generated worlds, as a share of the document's.")] = 1.0,
    seeds: Annotated[int, typer.Option(min=1, help="How often what depends on chance is repeated.")] = 2,
    change: Annotated[
        str, typer.Option(help="What counts as change in archives: text, raw, significant, ...")
    ] = "text",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core if not given.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Read and replay everything again.")] = False,
    json: AsJson = False,
) -> None:
    """Repeat tables and figures of the source documents: what they print or say beside what we measure."""
    # Experiments bring numpy, replay and all policies; `recrawl lab --help` must not wait for them.
    from recrawl.lab import experiments  # lazy: loads slowly

    if listed:
        rows = [{"name": it.name, "of": f"{it.document} {it.place}", "title": it.title} for it in _all(experiments)]
        as_json(rows) if json else table(rows, {"name": "name", "of": "of", "title": "title"})
        return
    chosen = _chosen(experiments, names or [], every)
    if not 0 < scale <= 1:
        raise UsageError(f"--scale is a share over 0 and up to 1, not {scale:g}")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; a report needs a folder")
    settings = {
        "scale": scale,
        "seeds": seeds,
        "archives": tuple(archives or ()),
        "change": change,
        "workers": workers or os.cpu_count() or 1,
        "cache": None if no_cache else cache_folder(),
    }
    from recrawl.lab.experiments import report  # lazy: loads slowly

    runs = _run(experiments, report, chosen, settings)
    if out is not None:
        note(f"wrote {report.write(out, runs, _how(settings, sum(done.seconds for done in runs)))}")
    if json:
        as_json([report.as_json(done) for done in runs])
        return
    for done in runs:
        _show(done)


def _all(experiments: Any) -> list[Any]:
    return list(experiments.EXPERIMENTS.values())


def _chosen(experiments: Any, names: Sequence[str], every: bool) -> list[Any]:
    known = experiments.EXPERIMENTS
    if every:
        if names:
            raise UsageError("--all means all experiments: leave the names out")
        return _all(experiments)
    if not names:
        raise UsageError(f"name experiments, or say --all; there are: {', '.join(known)}")
    names = [part for name in names for part in experiments.GROUPS.get(name, [name])]
    for name in names:
        if name not in known:
            raise UnknownName("experiment", name, known)
    return [known[name] for name in dict.fromkeys(names)]


def _run(experiments: Any, report: Any, chosen: Sequence[Any], settings: dict[str, Any]) -> list[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    runs = []
    with progress(*columns) as bars:
        for number, experiment in enumerate(chosen, 1):
            task = bars.add_task(f"{experiment.name} ({number} of {len(chosen)})", total=None, told="")

            def told(done: int, total: int, task: Any = task) -> None:
                bars.update(task, completed=done, total=total, told=f"{done:,} of {total:,} replays")

            begun = time.monotonic()
            options = experiments.ExperimentOptions(
                **settings, timer=time.perf_counter, cpu=time.process_time, progress=told
            )
            runs.append(report.FinishedRun(experiment, experiment.run(options), time.monotonic() - begun))
            bars.remove_task(task)
            if len(chosen) > 1:
                note(f"{experiment.name} took {runs[-1].seconds:.0f} s")
    return runs


def _how(settings: dict[str, Any], seconds: float) -> str:
    """How a report was made. Paths are left out: they say nothing to others."""
    archives = ", real archives" if settings["archives"] else ", no archives"
    return (
        f"Written by `recrawl lab reproduce` {__version__}: scale {settings['scale']:g}, seeds {settings['seeds']}"
        f"{archives}, {seconds / 60:.1f} minutes on {settings['workers']} processes (replays kept from earlier runs "
        "are not made again)."
    )


def _show(done: Any) -> None:
    it, result = done.experiment, done.result
    say(f"{it.name}: {it.title} ({it.document} {it.place}, {done.seconds:.1f} s)")
    shown = result.table or {key: key for row in result.rows for key in row}
    table(result.rows[:_SHOWN_ROWS], shown)
    if len(result.rows) > _SHOWN_ROWS:
        say(f"... and {len(result.rows) - _SHOWN_ROWS} rows more; --json or --out has them all")
    for claim in result.claims:
        say(f"  [{claim.verdict}] {claim.says} ({claim.place}) on {claim.world}: {claim.measured}")
        if claim.why:
            say(f"      {claim.why}")
    say()
