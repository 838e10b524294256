"""`recrawl lab predict`: accuracy of change prediction on archives (spec §7)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.lab.options import NoCache, cache_folder
from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.parameters import Predicting

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

Archives = Annotated[
    list[Path],
    typer.Argument(
        metavar="ARCHIVE...",
        help="Parquet files or folders of them; NAME.times beside a file gives its capture times.",
    ),
]


def predict_command(
    archives: Archives,
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
    from recrawl.lab.predict.archive_days import check_label  # lazy: loads scipy

    check_label(asked["label"])
    found = _run(archives, setting, asked, None if no_cache else cache_folder() / "facts")
    as_json(found) if json else _show(found)


def _show(found: dict[str, Any]) -> None:
    table([{"of": "all pages", **found}, {"of": "change rate 0.1 to 0.9", **found["middling"]}], _COLUMNS)
    say(
        f"{found['method']}, {found['days']} days, {found['seconds']:.1f} s; too little history for "
        f"{found['not_enough_history']:,} predictions; {found['by_frequency']:,} from the page's change rate alone"
    )


def _run(archives: list[Path], setting: Any, asked: Predicting, cache: Path | None) -> dict[str, Any]:
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.lab.predict import evaluation  # lazy: loads scikit-learn
    from recrawl.lab.predict.archive_days import read_days  # lazy: loads scipy

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
