"""How well content is told from frame on labelled changes, the weights for it, and what it costs.

    python -m benchmarks.content evaluate ARCHIVE... --labels changes.tsv   noise hidden, news lost, yardsticks
        [--keep FOLDER]
    python -m benchmarks.content live ARCHIVE... --labels changes.tsv       the same with what a live crawl knows
        [--periods 1 7 30]
    python -m benchmarks.content fit ARCHIVE... --labels changes.tsv        the weights of compare/content/judge.py
    python -m benchmarks.content cost ARCHIVE...                            CPU and bytes a page

`evaluate` judges every site by weights that were fitted on other sites: eight folds by site, three times. Changes
labelled border count neither way. With `--keep`, what was read of each archive is kept, and a run that was cut goes on
with the next one. trafilatura and readability-lxml are not dependencies: `pip install trafilatura
readability-lxml lxml_html_clean` for their rows.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.content_cost import cost
from benchmarks.content_fit import cross_validated, fit_changes, fit_lines, is_content, significance
from benchmarks.content_labels import YARDSTICKS, Sample, collect
from benchmarks.content_live import PERIODS, collect_live
from benchmarks.report import Table
from recrawl.columns import Flags, Floats
from recrawl.compare.content.judge import CHANGE_WEIGHTS, FEATURES, LINE_WEIGHTS

REPETITIONS = 3
BIN_EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
_Z = 1.959964


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of so many cases.

    >>> [round(end, 3) for end in wilson(0.5, 100)], wilson(0.0, 0)
    ([0.404, 0.596], (0.0, 1.0))
    """
    if count == 0:
        return 0.0, 1.0
    spread = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    middle, scale = share + _Z**2 / (2 * count), 1 + _Z**2 / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def evaluate(samples: Sequence[Sample]) -> list[Table]:
    """The tables of verdicts and of significance."""
    runs = [cross_validated(samples, seed) for seed in range(REPETITIONS)]
    content, meaning = (np.array(columns) for columns in zip(*runs, strict=True))
    shown: dict[str, Floats | None] = {
        "content, weights fitted on other sites": content.mean(axis=0),
        "the same without the other pages of the site": without_census(samples),
        "content, shipped weights": np.array([is_content(sample, LINE_WEIGHTS) for sample in samples], float),
    }
    for name in YARDSTICKS:
        verdicts = [sample.differs[name] for sample in samples]
        shown[name] = None if None in verdicts else np.array(verdicts, float)
    shipped = np.array([significance(sample, LINE_WEIGHTS, CHANGE_WEIGHTS) for sample in samples])
    news, noise = (np.array([sample.label == label for sample in samples]) for label in ("news", "noise"))
    return [
        Table(
            f"Verdicts on {noise.sum()} changes labelled noise and {news.sum()} labelled news",
            ["judged by", "noise hidden", "95 % interval", "news lost", "95 % interval"],
            [verdict_row(name, column, noise, news) for name, column in shown.items()],
        ),
        significance_table("weights fitted on other sites", meaning, news, noise),
        significance_table("shipped weights", shipped, news, noise),
    ]


def without_census(samples: Sequence[Sample]) -> Floats:
    """The verdicts if nothing is known of other pages, by weights fitted so on other sites."""
    known = np.array([name in ("bias", "framed") for name in FEATURES], float)
    alone = [replace(sample, features=sample.features * known) for sample in samples]
    runs = [cross_validated(alone, seed)[0] for seed in range(REPETITIONS)]
    found: Floats = np.mean(runs, axis=0)
    return found


def evaluate_live(paths: Sequence[Path], labels: Path, periods: Sequence[int]) -> Table:
    """The verdicts of live crawls that visit each page once in a period of so many days; shipped weights."""
    rows: list[list[str]] = []
    for period in periods:
        samples = collect_live(paths, labels, period)
        news, noise = (np.array([sample.label == label for sample in samples]) for label in ("news", "noise"))
        shown = np.array([is_content(sample, LINE_WEIGHTS) for sample in samples], float)
        rows.append(verdict_row(f"live, a page every {period} d", shown, noise, news))
    title = f"Verdicts of live crawls on {noise.sum()} changes labelled noise and {news.sum()} labelled news"
    return Table(title, ["judged by", "noise hidden", "95 % interval", "news lost", "95 % interval"], rows)


def verdict_row(name: str, shown: Floats | None, noise: Flags, news: Flags) -> list[str]:
    """Noise hidden and news lost; `shown` is 1 for each change that counts, or None if nothing was measured."""
    if shown is None:
        return [name, "not installed", "", "", ""]
    cells = [name]
    for chosen in (noise, news):
        share = float(1 - shown[chosen].mean())
        low, high = wilson(share, int(chosen.sum()))
        cells += [f"{share:.1%}", f"{low:.0%} to {high:.0%}"]
    return cells


def significance_table(weights: str, meaning: Floats, news: Flags, noise: Flags) -> Table:
    """Brier score, and how many changes of each range of significance were news; one row for each repetition."""
    each, is_news = np.atleast_2d(meaning)[:, news | noise], news[news | noise].astype(float)
    brier, constant = float(np.mean((each - is_news) ** 2)), float(is_news.var())
    meaning = each.mean(axis=0)
    place = np.clip(np.searchsorted(BIN_EDGES, meaning, side="right") - 1, 0, len(BIN_EDGES) - 2)
    rows = []
    for one in np.unique(place).tolist():
        here = place == one
        share = float(is_news[here].mean())
        low, high = wilson(share, int(here.sum()))
        rows.append(
            [
                f"{BIN_EDGES[one]:g} to {BIN_EDGES[one + 1]:g}",
                str(here.sum()),
                f"{meaning[here].mean():.2f}",
                f"{share:.2f}",
                f"{low:.2f} to {high:.2f}",
            ]
        )
    title = f"Significance, {weights}: Brier score {brier:.3f} (a constant: {constant:.3f})"
    return Table(title, ["significance", "changes", "mean", "share of news", "95 % interval"], rows)


def print_weights(samples: Sequence[Sample]) -> None:
    """The weights fitted on all labels, as they stand in `compare/content/judge.py`."""
    by_line = np.round(fit_lines(samples), 2)
    by_change = np.round(fit_changes(samples, by_line), 2)
    print(f"LINE_WEIGHTS = np.array({by_line.tolist()})")
    print(f"CHANGE_WEIGHTS = np.array({by_change.tolist()})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.content", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("evaluate", "live", "fit", "cost"))
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--labels", type=Path, help="file of labelled changes, for all but `cost`")
    parser.add_argument(
        "--periods", type=int, nargs="+", default=PERIODS, metavar="DAYS", help="from visit to visit, for `live`"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was read of each archive, to go on")
    chosen = parser.parse_args()
    if chosen.what == "cost":
        for table in cost(chosen.archives):
            table.show()
        return
    if chosen.labels is None:
        parser.error(f"{chosen.what} needs --labels FILE.tsv")
    if chosen.what == "live":
        evaluate_live(chosen.archives, chosen.labels, chosen.periods).show()
        return
    samples = collect(chosen.archives, chosen.labels, chosen.keep)
    if chosen.what == "fit":
        print_weights(samples)
        return
    for table in evaluate(samples):
        table.show()


if __name__ == "__main__":
    main()
