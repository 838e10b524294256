"""R's experiments on worlds of days: which worlds, and how a setting is measured on one.

A world is a daily archive under a label, or a planted one whose relations are known (`lab/predict/planted`). As in R,
only pages that flip often are judged; of more than a sample, a sample. Experts may be any page of the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.result import Claim, ExperimentOptions
from recrawl.lab.formats.archive import files_of
from recrawl.lab.predict.archive_days import read_days
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.evaluation import Evaluation, evaluate, often_flipping
from recrawl.lab.predict.methods import PredictionSetting, frequency
from recrawl.lab.predict.planted_world import Planted, planted
from recrawl.lab.predict.scores import paired

LABELS = ("text", "divergence:0.1", "significant")
FREQUENCY, ONE, SINGLE, MULTIPLE = "frequency", "1d", "2d", "3d"
NAMES = {
    "frequency": "frequency (baseline)",
    "1d": "1D, one machine",
    "2d": "2D, single expert",
    "3d": "3D, multiple experts",
    "union": "relational union",
    "bagging": "bagging",
    "boosting": "boosting",
    "online-2d": "2D, goes on learning (ours)",
    "online-3d": "3D, goes on learning (ours)",
    "pooled": "pooled (ours)",
}
_PAGES = 60
_DAYS = 25
_LEAST = 5
_FILES = 3
_ENOUGH = 30
"""With fewer pages a difference that is not significant says nothing."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """A world, the pages that are judged, and what was measured there already."""

    name: str
    label: str
    days: Days
    judged: Flags
    workers: int
    clock: Callable[[], float]
    done: dict[tuple[PredictionSetting, range], Evaluation] = field(default_factory=dict)
    spent: dict[tuple[PredictionSetting, range], float] = field(default_factory=dict)
    """Seconds by the clock for each of them."""
    every_page: bool = False
    """Whether all pages may be judged, not only those that flip often."""

    def outcome(self, setting: PredictionSetting, over: range) -> Evaluation:
        """What a setting predicts here; what was asked before is not run again."""
        key = (setting, over)
        if key not in self.done:
            self.done[key], self.spent[key] = self.timed(setting, over, self.judged)
        return self.done[key]

    def timed(self, setting: PredictionSetting, over: range, judged: Flags | None = None) -> tuple[Evaluation, float]:
        """The same run now, and what it took by the clock; all pages are asked about where none are named."""
        begun = self.clock()
        outcome = evaluate(self.days, setting, over, judged=judged)
        return outcome, self.clock() - begun

    def last(self, wanted: int, train: int = r.TRAIN) -> range:
        """The last days, as many as are wanted and there are."""
        total = self.days.seen.shape[1]
        return range(max(PredictionSetting(train=train).first, total - wanted), total)

    def told(self) -> str:
        """A sentence on it."""
        flips = "" if self.every_page else f" whose flag flips on {r.ALPHA:.0%} of the days"
        return (
            f"*{self.name}*, label {self.label}: {len(self.days):,} pages, {self.days.seen.shape[1]} days; "
            f"{int(self.judged.sum())} pages{flips} are judged"
        )


def worlds(options: ExperimentOptions, labels: Sequence[str] | None = None, *, every_page: bool = False) -> list[Where]:
    """The planted worlds and each archive under each label; archives with too few days or pages are left out.

    Pages that flip often are judged, as in R; or a sample of all that have a label.
    """
    found = [_planted(options.scale, leaders, options.workers, options.cpu) for leaders in (1, 4)]
    cache = options.cache / "facts" if options.cache else None
    for path in _daily(options):
        for label in labels or (options.change,):
            where = _archive(path, label, cache, _pages(options.scale), every_page, options.workers, options.cpu)
            if where.days.seen.shape[1] > r.TRAIN + _LEAST and where.judged.sum() >= _LEAST:
                found.append(where)
    return found


# What was read and predicted is kept for the experiments that follow: most ask for the same settings.


@lru_cache(maxsize=16)
def _archive(
    path: Path, label: str, cache: Path | None, most: int, every_page: bool, workers: int, clock: Callable[[], float]
) -> Where:
    days = read_days([path], label, cache=cache)
    able = days.labelled.sum(axis=1) > 0 if every_page else often_flipping(days, r.ALPHA)
    return Where(path.stem, label, days, _sample(able, most), workers, clock, every_page=every_page)


@lru_cache(maxsize=4)
def _planted(scale: float, leaders: int, workers: int, clock: Callable[[], float]) -> Where:
    groups = max(3, 3 * round(4 * scale))
    world = planted(Planted(groups=groups, size=8, leaders=leaders, days=r.TRAIN + _DAYS + 35, seed=1))
    name = "planted, one leads" if leaders == 1 else "planted, half lead"
    return Where(name, "planted", world.days, _sample(often_flipping(world.days), _pages(scale)), workers, clock)


def _daily(options: ExperimentOptions) -> list[Path]:
    """Files whose pages were looked at at known times; where none is, the first few of the others."""
    files = [file for path in options.archives for file in files_of(path)]
    return [file for file in files if file.with_suffix(".times").is_file()] or files[:_FILES]


def _pages(scale: float) -> int:
    return max(_LEAST, round(_PAGES * scale))


def days_wanted(options: ExperimentOptions) -> int:
    """How many days are predicted."""
    return max(3, round(_DAYS * options.scale))


def _sample(judged: Flags, most: int) -> Flags:
    pages = np.flatnonzero(judged)
    kept = np.zeros(len(judged), np.bool_)
    kept[pages[np.linspace(0, len(pages) - 1, min(most, len(pages))).astype(np.int64)] if len(pages) else pages] = True
    return kept


def setting_of(where: Where, method: str, experts: str = "xcorr") -> PredictionSetting:
    """R's parameters. Methods that look at the page alone have no experts to choose: one setting, run once."""
    return PredictionSetting(method, experts=experts, k=r.K, train=r.TRAIN, workers=where.workers)


def measured(where: Where, setting: PredictionSetting, over: range, name: str, published: float | None = None) -> Row:
    """A row: accuracy as R has it, the mean over pages in per cent, and the other figures of spec M8."""
    found = where.outcome(setting, over)
    figures = found.summary()
    middling = figures["middling"]
    return {
        "world": where.name,
        "label": where.label,
        "method": name,
        "accuracy": _percent(found.by_page()),
        **{key: figures[key] for key in ("precision", "recall", "auc", "brier", "change_rate", "pages", "days")},
        "middling_accuracy": None if middling["accuracy"] is None else 100 * middling["accuracy"],
        "middling_auc": middling["auc"],
        "middling_brier": middling["brier"],
        "not_enough_history": figures["not_enough_history"],
        "published": published,
    }


def coin(where: Where, over: range, train: int = r.TRAIN) -> Row:
    """The baseline as a coin that falls on change with the page's frequency: the accuracy to be expected."""
    chance = frequency(where.days, train, over)
    found = where.outcome(PredictionSetting("frequency", train=train), over)
    right = np.where(found.truth, chance, 1 - chance)
    mean = [float(right[page][known].mean()) for page, known in enumerate(found.evaluated) if known.any()]
    accuracy = 100 * fmean(mean) if mean else None
    return {"world": where.name, "label": where.label, "method": "frequency, as a coin", "accuracy": accuracy}


def compared(where: Where, one: PredictionSetting, other: PredictionSetting, over: range) -> Row:
    """The paired t-test of two settings over pages; the difference in percentage points."""
    found = paired(where.outcome(one, over).by_page(), where.outcome(other, over).by_page())
    difference = found["difference"]
    return {**found, "difference": None if difference is None else 100 * difference}


def better(test: Row) -> bool | None:
    """Whether the first was better by more than chance; None where too few pages leave it open.

    >>> better({"difference": 2.0, "p": 0.2, "pages": 12}) is None, better({"difference": 2.0, "p": 0.2, "pages": 60})
    (True, False)
    """
    if test["p"] is None or (test["p"] >= r.LEVEL and test["pages"] < _ENOUGH):
        return None
    return bool(test["difference"] > 0 and test["p"] < r.LEVEL)


def every(verdicts: Sequence[bool | None]) -> bool | None:
    """All of them: one that fails decides; else one that is open leaves it open."""
    if any(verdict is False for verdict in verdicts):
        return False
    return None if any(verdict is None for verdict in verdicts) else True


def shown(test: Row) -> str:
    """A test in words."""
    if test["difference"] is None:
        return "nothing to compare"
    p = "p not defined" if test["p"] is None else f"p {test['p']:.3g}"
    return f"{test['difference']:+.1f} points, {p}, {test['pages']} pages"


def claimed(key: str, where: Where, holds: bool | None, numbers: str, why: str = "") -> Claim:
    """A claim of R on a world."""
    place, says = r.SAYS[key]
    reason = r.TOO_FEW if holds is None else why or r.why(key, made=where.label == "planted")
    return Claim.of(place, says, f"{where.name} ({where.label})", holds, numbers, reason)


def stepping(options: ExperimentOptions, total: int) -> Callable[[], None]:
    """Tells how many worlds are done."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        options.progress(done, total)

    return step


def _percent(by_page: Floats) -> float | None:
    known = by_page[np.isfinite(by_page)]
    return 100 * float(known.mean()) if len(known) else None
