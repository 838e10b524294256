"""`lab predict`, `lab label`, `lab extract` and `lab reproduce`: how well changes and content are found."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.lab.replays import Archives, NoCache, Workers, cache_folder
from recrawl.cli.terminal.output import AsJson, as_json, json_line, note, say, table
from recrawl.errors import UnknownName, UsageError
from recrawl.extras import CHARTS, require
from recrawl.parameters import Predicting, Reproducing
from recrawl.version import __version__

_PREDICTED = {
    "of": "of",
    "pages": ">pages",
    "predictions": ">predictions",
    "change_rate": ">change rate",
    "accuracy": ">accuracy",
    "precision": ">precision",
    "recall": ">recall",
    "auc": ">AUC",
    "brier": ">Brier",
}
PredictArchives = Annotated[
    list[Path],
    typer.Argument(
        metavar="ARCHIVE...",
        help="Parquet files or folders of them; NAME.times beside a file gives its capture times.",
    ),
]
_LABELLED = {
    "url": "page",
    "before": ">before",
    "after": ">after",
    "bytes": "bytes",
    "text": "text",
    "content": "content",
    "content_share": ">share",
    "significance": ">significance",
}
_EXTRACTED = {"id": "id", "title": "title", "published": "published", "language": "language", "words": ">words"}
_MOST_ROWS = 40
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip experiments that --out holds already, from a run with the same options.")
]


def predict_command(
    archives: PredictArchives,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of threads. Default: one per core.")] = None,
    no_cache: NoCache = False,
    json: AsJson = False,
    **asked: Unpack[Predicting],
) -> None:
    """Predict for every page and day whether it changes, from the days before, and measure the accuracy."""
    from recrawl.choose.papers.predicted import parse_lags  # lazy: loads numpy
    from recrawl.lab.predict import methods  # lazy: loads scikit-learn

    names = ("method", "experts", "k", "train", "window", "interval", "seed", "words", "omega")
    of_setting: dict[str, Any] = {name: value for name, value in asked.items() if name in names}
    setting = methods.PredictionSetting(
        **of_setting, workers=workers or os.cpu_count() or 1, lags=parse_lags(asked["lags"])
    )
    from recrawl.lab.predict.days import check_label  # lazy: loads scipy

    check_label(asked["label"])
    found = _predict_run(archives, setting, asked, None if no_cache else cache_folder() / "facts")
    as_json(found) if json else _predict_show(found)


def _predict_show(found: dict[str, Any]) -> None:
    table([{"of": "all pages", **found}, {"of": "change rate 0.1 to 0.9", **found["middling"]}], _PREDICTED)
    say(
        f"{found['method']}, {found['days']} days, {found['seconds']:.1f} s; too little history for "
        f"{found['not_enough_history']:,} predictions; {found['by_frequency']:,} from the page's change rate alone"
    )


def _predict_run(archives: list[Path], setting: Any, asked: Predicting, cache: Path | None) -> dict[str, Any]:
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.lab.predict import evaluation  # lazy: loads scikit-learn
    from recrawl.lab.predict.days import read_days  # lazy: loads scipy

    label, observe = asked["label"], asked["observe"]
    with detailed() as bars:
        reading = bars.add_task("reading", total=None, detail="")

        def on_read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, detail=f"{done:,} of {total:,} versions")

        days = read_days(archives, label, cache=cache, progress=on_read)
        if alpha := asked["alpha"]:
            days = days.take(evaluation.often_flipping(days, alpha).nonzero()[0])
        days = evaluation.sample_pages(days, asked.get("pages"), setting.seed)
        begun = time.monotonic()
        over = evaluation.predictable_days(days, setting, asked["days"])
        predicting = bars.add_task("predicting", total=None, detail="")

        def on_predicted(done: int, total: int) -> None:
            bars.update(predicting, completed=done, total=total, detail=f"{done:,} of {total:,} pages")

        summary = evaluation.evaluate(days, setting, over, observe=observe, progress=on_predicted).summary()
    how = {"method": setting.method, "experts": setting.experts, "k": setting.k, "train": setting.train}
    how |= {"lags": list(setting.lags), "words": setting.words, "omega": setting.omega}
    return {**how, "label": label, "observe": observe, **summary, "seconds": round(time.monotonic() - begun, 3)}


def label_command(
    archives: Archives,
    pairs: Annotated[
        Path,
        typer.Option(
            metavar="FILE.tsv", help="Tab-separated file with the columns url, before and after (seconds UTC)."
        ),
    ],
    workers: Workers = None,
    json: AsJson = False,
) -> None:
    """Judge changes: do two versions of a page differ in bytes, text and content, and how significantly.

    Each pair is judged by the pages of its site at that time and before. Other columns of the file are passed through.
    """
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.lab.labels import judge_pairs, read_pairs  # lazy: loads pyarrow

    wanted = read_pairs(pairs)
    with detailed() as bars:
        task = bars.add_task("judging", total=len(wanted), detail="")

        def progress(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, detail=f"{done:,} of {total:,} changes")

        rows = judge_pairs(archives, wanted, progress, workers=workers)
    if json:
        as_json(rows)
    else:
        table(rows, _LABELLED)


def extract_command(
    pages: Annotated[
        Path, typer.Argument(metavar="PAGES.parquet", help="Parquet file with the columns id, url and html.")
    ],
    json: AsJson = False,
) -> None:
    """Print the main content of pages: text, Markdown, title, author, dates, language and chunks for retrieval.

    Each page is read by itself, as a page of an unknown site. With --json, one line of JSON is printed for each row of
    the file, in their order; a page that cannot be parsed gives its text without markup.
    """
    from recrawl.lab.extraction import extract_pages  # lazy: loads pyarrow and the parser

    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    found = extract_pages(pages, tomorrow)
    if json:
        for one in found:
            json_line(one)
    else:
        table([{**one, "words": len(one["text"].split())} for one in found], _EXTRACTED)


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
    runs = _reproduce_run(experiments, report, chosen, settings, out)
    if out is not None:
        note(f"wrote {out / report.PAGE}")
    if json:
        as_json([report.as_json(done) for done in runs])
        return
    for done in runs:
        _reproduce_show(done)


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


def _reproduce_run(
    experiments: Any, report: Any, chosen: Sequence[Any], settings: dict[str, Any], out: Path | None
) -> list[Any]:
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


def _reproduce_show(done: Any) -> None:
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
