"""`recrawl lab reproduce`: tables and figures of the publications beside our measurements."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.lab.options import NoCache, Workers, cache_folder
from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.errors import UnknownName, UsageError
from recrawl.extras import CHARTS, require
from recrawl.parameters import Reproducing
from recrawl.version import __version__

_MOST_ROWS = 40

Resume = Annotated[
    bool, typer.Option("--resume", help="Skip experiments that --out holds already, from a run with the same options.")
]


def reproduce_command(
    readings: Annotated[
        bool, typer.Option("--readings", help="List sentences that can be read in several ways, and exit.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Add to the report in this folder: a page, charts, JSON.")] = None,
    workers: Workers = None,
    no_cache: NoCache = False,
    resume: Resume = False,
    json: AsJson = False,
    **asked: Unpack[Reproducing],
) -> None:
    """Repeat tables and figures of the publications: published values beside our measurements."""
    from recrawl.lab import experiments  # lazy: loads all policies, which `recrawl lab --help` does not need

    if asked["list"]:
        _list(experiments, json)
        return
    if readings:
        _list_readings(json)
        return
    chosen = _chosen(experiments, asked.get("names") or [], asked["all"])
    _check(out)
    if out is not None:
        require(*CHARTS)
    settings = {
        **{name: value for name, value in asked.items() if name in ("scale", "seeds", "change")},
        "archives": tuple(map(Path, asked.get("archives") or ())),
        "workers": workers or os.cpu_count() or 1,
        "cache": None if no_cache else cache_folder(),
    }
    from recrawl.lab.experiments import report  # lazy: loads altair

    chosen = _missing(report, chosen, settings, out) if resume else chosen
    runs = _run(experiments, report, chosen, settings, out)
    if out is not None:
        note(f"wrote {out / report.PAGE}")
    if json:
        as_json([report.as_json(done) for done in runs])
        return
    for done in runs:
        _show(done)


def _list(experiments: Any, json: bool) -> None:
    rows = [{"name": it.name, "of": f"{it.document} {it.place}", "title": it.title} for it in _all(experiments)]
    as_json(rows) if json else table(rows, {"name": "name", "of": "of", "title": "title"})


def _list_readings(json: bool) -> None:
    from recrawl.lab.experiments.readings import SENTENCES  # lazy: as above

    rows = [
        {"of": f"{it.document} {it.place}", "says": it.says, **one._asdict()}
        for it in SENTENCES.values()
        for one in it.readings
    ]
    columns = {"of": "of", "name": "reading", "means": "means", "replay": "replayed by"}
    as_json(rows) if json else table(rows, columns)


def _check(out: Path | None) -> None:
    """Refuse invalid options before the long work."""
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"invalid --out {out}: it is a file; name a folder")


def _all(experiments: Any) -> list[Any]:
    return list(experiments.EXPERIMENTS.values())


def _chosen(experiments: Any, names: Sequence[str], every: bool) -> list[Any]:
    known = experiments.EXPERIMENTS
    if every:
        if names:
            raise UsageError("give --all or names of experiments, not both")
        return _all(experiments)
    if not names:
        raise UsageError(f"name at least one experiment, or use --all; experiments: {', '.join(known)}")
    names = [part for name in names for part in experiments.GROUPS.get(name, [name])]
    for name in names:
        if name not in known:
            raise UnknownName("experiment", name, known)
    return [known[name] for name in dict.fromkeys(names)]


def _missing(report: Any, chosen: Sequence[Any], settings: dict[str, Any], out: Path | None) -> list[Any]:
    """The experiments that the report does not hold from a run with the same settings."""
    if out is None:
        raise UsageError("--resume needs --out: name the folder of the report to continue")
    done = {one["name"] for one in report.stored_runs(out) if one["run"] == _ran(settings)}
    return [it for it in chosen if it.name not in done]


def _run(experiments: Any, report: Any, chosen: Sequence[Any], settings: dict[str, Any], out: Path | None) -> list[Any]:
    """Run the experiments; each is added to the report as soon as it is finished."""
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without

    runs = []
    with detailed() as bars:
        for number, experiment in enumerate(chosen, 1):
            task = bars.add_task(f"{experiment.name} ({number} of {len(chosen)})", total=None, detail="")

            def on_replayed(done: int, total: int, task: Any = task) -> None:
                bars.update(task, completed=done, total=total, detail=f"{done:,} of {total:,} replays")

            begun = time.monotonic()
            options = experiments.ExperimentOptions(
                **settings, timer=time.perf_counter, cpu=time.process_time, progress=on_replayed
            )
            result = experiment.run(options)
            runs.append(report.FinishedRun(experiment, result, time.monotonic() - begun, _ran(settings)))
            if out is not None:
                report.add(out, runs[-1])
            bars.remove_task(task)
            if len(chosen) > 1:
                note(f"{experiment.name} took {runs[-1].seconds:.0f} s")
    return runs


def _ran(settings: dict[str, Any]) -> dict[str, Any]:
    """How a report was made, for its page; without paths, which mean nothing on another machine."""
    named = {key: settings[key] for key in ("scale", "seeds", "change", "workers")}
    return {"version": __version__, **named, "archives": bool(settings["archives"])}


def _show(done: Any) -> None:
    it, result = done.experiment, done.result
    say(f"{it.name}: {it.title} ({it.document} {it.place}, {done.seconds:.1f} s)")
    shown = result.table or {key: key for row in result.rows for key in row}
    table(result.rows[:_MOST_ROWS], shown)
    if len(result.rows) > _MOST_ROWS:
        say(f"... and {len(result.rows) - _MOST_ROWS} more rows; use --json or --out for all")
    for claim in result.claims:
        read = f", {claim.reading}" if claim.reading else ""
        say(f"  [{claim.verdict}] {claim.says} ({claim.place}) on {claim.world}{read}: {claim.measured}")
        if claim.why:
            say(f"      {claim.why}")
    say()
