"""`recrawl lab predict`: accuracy of change prediction on archives (spec §7)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.lab.options import cache_folder
from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.progress import detailed
from recrawl.errors import UsageError

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
    "frequency, 1d, 2d, 3d (multiple experts), union, bagging, boosting, online-2d or online-3d (updated daily), "
    "or pooled (one model for all pages)"
)
_LABELS = (
    "What counts as a change: text, divergence:0.1, words:20 (Ali and Williams 2003), significant, new-link, or "
    "relevance:FILE with one query per line."
)


Archives = Annotated[
    list[Path],
    typer.Argument(
        metavar="ARCHIVE...",
        help="Parquet files or folders of them; NAME.times beside a file gives its capture times.",
    ),
]
Window = Annotated[int, typer.Option(min=1, help="Days that the features cover (l in Radinsky and Bennett 2013).")]
Interval = Annotated[int, typer.Option(min=1, help="Days ahead to predict (sigma in Radinsky and Bennett 2013).")]
Lags = Annotated[
    str, typer.Option(help="Days by which a related page may lead, for xcorr: first-last, such as 1-20, or the last.")
]
Omega = Annotated[
    str,
    typer.Option(
        help="Weight of a word for xcorr and dtw: last (tf-idf in the last snapshot), changes (days on which its count "
        "changed), moves (sum of these changes) or even."
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Only pages whose change flag flips on this share of days; Radinsky and Bennett use 0.3."
    ),
]


def predict_command(
    archives: Archives,
    method: Annotated[str, typer.Option(help=f"Prediction method: {_METHODS}.")] = "3d",
    experts: Annotated[str, typer.Option(help="How to find related pages: graph, content, xcorr, dtw.")] = "xcorr",
    k: Annotated[int, typer.Option("--k", min=1, help="Number of related pages (experts) per page.")] = 20,
    train: Annotated[int, typer.Option(min=1, help="Training window in days.")] = 50,
    label: Annotated[str, typer.Option(help=_LABELS)] = "text",
    window: Window = 1,
    interval: Interval = 1,
    observe: Annotated[float, typer.Option(help="Share of pages observed each day.")] = 1.0,
    lags: Lags = "0-7",
    words: Annotated[int, typer.Option(min=1, help="Words per page that xcorr and dtw compare.")] = 24,
    omega: Omega = "last",
    alpha: Alpha = 0.0,
    pages: Annotated[int | None, typer.Option(min=1, help="Use a random sample of this many pages.")] = None,
    days: Annotated[int, typer.Option(min=1, help="Predict the last N days of the archive.")] = 30,
    seed: Annotated[int, typer.Option(help="Random seed for samples and visits.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of threads. Default: one per core.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ignore the cache: read the archives again.")] = False,
    json: AsJson = False,
) -> None:
    """Predict for every page and day whether it changes, from the days before, and measure the accuracy."""
    from recrawl.lab.predict import methods  # lazy: loads scikit-learn

    threads = workers or os.cpu_count() or 1
    setting = methods.PredictionSetting(
        method, experts, k, train, window, interval, seed, threads, _lags(lags), words, omega
    )
    from recrawl.lab.predict.archive_days import check_label  # lazy: loads scipy

    check_label(label)
    cache = None if no_cache else cache_folder() / "facts"
    found = _run(archives, setting, label, observe, alpha, pages, days, cache)
    as_json(found) if json else _show(found)


def _show(found: dict[str, Any]) -> None:
    table([{"of": "all pages", **found}, {"of": "change rate 0.1 to 0.9", **found["middling"]}], _COLUMNS)
    say(
        f"{found['method']}, {found['days']} days, {found['seconds']:.1f} s; too little history for "
        f"{found['not_enough_history']:,} predictions; {found['by_frequency']:,} from the page's change rate alone"
    )


def _lags(text: str) -> tuple[int, int]:
    first, dash, last = text.rpartition("-")
    if not (last.isdecimal() and (not dash or first.isdecimal())):
        raise UsageError(f"invalid lags '{text}': use the first and the last, such as 1-20, or the last, such as 7")
    return int(first or 0), int(last)


def _run(
    archives: list[Path],
    setting: Any,
    label: str,
    observe: float,
    alpha: float,
    pages: int | None,
    last: int,
    cache: Path | None,
) -> dict[str, Any]:
    from recrawl.lab.predict import evaluation  # lazy: loads scikit-learn
    from recrawl.lab.predict.archive_days import read_days  # lazy: loads scipy

    with detailed() as bars:
        reading = bars.add_task("reading", total=None, detail="")

        def on_read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, detail=f"{done:,} of {total:,} versions")

        days = read_days(archives, label, cache=cache, progress=on_read)
        if alpha:
            days = days.take(evaluation.often_flipping(days, alpha).nonzero()[0])
        days = evaluation.sample_pages(days, pages, setting.seed)
        begun = time.monotonic()
        over = evaluation.predictable_days(days, setting, last)
        predicting = bars.add_task("predicting", total=None, detail="")

        def on_predicted(done: int, total: int) -> None:
            bars.update(predicting, completed=done, total=total, detail=f"{done:,} of {total:,} pages")

        summary = evaluation.evaluate(days, setting, over, observe=observe, progress=on_predicted).summary()
    how = {"method": setting.method, "experts": setting.experts, "k": setting.k, "train": setting.train}
    how |= {"lags": list(setting.lags), "words": setting.words, "omega": setting.omega}
    return {**how, "label": label, "observe": observe, **summary, "seconds": round(time.monotonic() - begun, 3)}
