"""`recrawl lab predict`: how well the change of pages can be foretold (spec §7)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from recrawl.cli.cache_folder import cache_folder
from recrawl.cli.output import AsJson, as_json, say, table
from recrawl.cli.progress import progress

_COLUMNS = {
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
_METHODS = (
    "frequency, 1d, 2d, 3d (multiple experts), union, bagging, boosting, online-2d or online-3d (they go on learning), "
    "or pooled (one model for all pages)"
)
_LABELS = "What counts as change: text, divergence:0.1, significant, new-link, or relevance:FILE with a query a line."


def predict_command(
    archives: Annotated[
        list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files or folders of them; NAME.times beside.")
    ],
    method: Annotated[str, typer.Option(help=f"How: {_METHODS}.")] = "3d",
    experts: Annotated[str, typer.Option(help="How related pages are found: graph, content, xcorr, dtw.")] = "xcorr",
    k: Annotated[int, typer.Option("--k", min=1, help="How many experts a page has beside itself.")] = 20,
    train: Annotated[int, typer.Option(min=1, help="Days that each prediction learns from.")] = 50,
    label: Annotated[str, typer.Option(help=_LABELS)] = "text",
    window: Annotated[int, typer.Option(min=1, help="Days that features look back: R's l.")] = 1,
    interval: Annotated[int, typer.Option(min=1, help="Days ahead that are predicted: R's sigma.")] = 1,
    observe: Annotated[float, typer.Option(help="Share of pages that the predictor sees each day.")] = 1.0,
    alpha: Annotated[
        float, typer.Option(min=0, max=1, help="Only pages whose flag flips on this share of days; R takes 0.3.")
    ] = 0.0,
    pages: Annotated[int | None, typer.Option(min=1, help="Only a sample of that many pages.")] = None,
    days: Annotated[int, typer.Option(min=1, help="How many days are predicted: the last ones.")] = 30,
    seed: Annotated[int, typer.Option(help="For samples, visits and what else is drawn.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; one per core if not given.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Read the archives again.")] = False,
    json: AsJson = False,
) -> None:
    """Predict the change of every page on every day from the days before, and say how well it went."""
    from recrawl.lab.predict import methods  # lazy: statistics load slowly

    setting = methods.PredictionSetting(
        method, experts, k, train, window, interval, seed=seed, workers=workers or os.cpu_count() or 1
    )
    from recrawl.lab.predict.archive_days import check_label  # lazy: loads scipy

    check_label(label)
    cache = None if no_cache else cache_folder() / "facts"
    found = _run(archives, setting, label, observe, alpha, pages, days, cache)
    if json:
        as_json(found)
        return
    middling = found["middling"]
    table([{"of": "all pages", **found}, {"of": "change rate 0.1 to 0.9", **middling}], _COLUMNS)
    say(
        f"{found['method']}, {found['days']} days, {found['seconds']:.1f} s; not enough history yet for "
        f"{found['not_enough_history']:,} predictions; {found['by_frequency']:,} by the page's frequency alone"
    )


def _run(
    archives: list[Path],
    setting: Any,
    label: str,
    observe: float,
    alpha: float,
    pages: int | None,
    wanted: int,
    cache: Path | None,
) -> dict[str, Any]:
    from recrawl.lab.predict import evaluation, methods  # lazy: loads scikit-learn
    from recrawl.lab.predict.archive_days import read_days  # lazy: loads scipy

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with progress(*columns) as bars:
        reading = bars.add_task("reading", total=None, told="")

        def read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, told=f"{done:,} of {total:,} versions")

        days = read_days(archives, label, cache=cache, progress=read)
        if alpha:
            days = days.take(evaluation.often_flipping(days, alpha).nonzero()[0])
        days = methods.sample_pages(days, pages, setting.seed)
        begun = time.monotonic()
        over = evaluation.predictable_days(days, setting, wanted)
        predicting = bars.add_task("predicting", total=None, told="")

        def told(done: int, total: int) -> None:
            bars.update(predicting, completed=done, total=total, told=f"{done:,} of {total:,} pages")

        summary = evaluation.evaluate(days, setting, over, observe=observe, progress=told).summary()
    how = {"method": setting.method, "experts": setting.experts, "k": setting.k, "train": setting.train}
    return {**how, "label": label, "observe": observe, **summary, "seconds": round(time.monotonic() - begun, 3)}
