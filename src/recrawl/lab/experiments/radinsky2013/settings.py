"""R's experiments on worlds of daily observations: which worlds, and how a setting is measured on one.

A world is a daily archive under a label, or a planted one whose relations are known (`lab.predict.planted_world`). As
in R, only pages that flip often are judged, at most a sample of them. Experts may be any page of the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Result
from recrawl.lab.formats.archive import files_of
from recrawl.lab.predict.days import Days, Planted, planted, read_days
from recrawl.lab.predict.evaluation import Evaluation, evaluate, often_flipping
from recrawl.lab.predict.methods import DayPasses, PredictionSetting, frequency
from recrawl.lab.predict.scores import paired

LABELS = ("text", "divergence:0.1", "significant")
FREQUENCY, ONE, SINGLE, MULTIPLE = "frequency", "1d", "2d", "3d"
WEEK = "planted, quiet at weekends"
COIN = "frequency as a coin (R's baseline)"
NAMES = {
    "frequency": "frequency, threshold (ours)",
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
"""Pages judged in a world, at full scale."""
_DAYS = 25
"""Days predicted, at full scale."""
_PLANTED_DAYS = r.TRAIN + _DAYS + 35
_MIN = 5
"""Minimum of judged pages and of days that can be predicted."""
_MAX_FILES = 3
"""Archives used where none has observation times."""
_ENOUGH_PAGES = 30
"""With fewer pages a difference that is not significant decides nothing."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class PredictionWorld:
    """A world, the pages that are judged, and the evaluations made on it."""

    name: str
    label: str
    days: Days
    judged: Flags
    workers: int
    clock: Callable[[], float]
    evaluations: dict[tuple[PredictionSetting, range], Evaluation] = field(default_factory=dict)
    cpu_seconds: dict[tuple[PredictionSetting, range], float] = field(default_factory=dict)
    """By the clock, for each evaluation."""
    every_page: bool = False
    """Whether all pages may be judged, not only those that flip often."""
    passes: DayPasses | None = None
    """Shared by all settings, where the cost of each is not measured."""

    @property
    def title(self) -> str:
        """Its name with the label, for claims and rows."""
        return f"{self.name} ({self.label})"

    def evaluate_setting(self, setting: PredictionSetting, test_days: range) -> Evaluation:
        """The evaluation of a setting, cached."""
        key = (setting, test_days)
        if key not in self.evaluations:
            self.evaluations[key], self.cpu_seconds[key] = self.timed(setting, test_days, self.judged)
        return self.evaluations[key]

    def timed(
        self, setting: PredictionSetting, test_days: range, judged: Flags | None = None
    ) -> tuple[Evaluation, float]:
        """Evaluate a setting, and return the time it took; without `judged`, all pages are predicted."""
        begun = self.clock()
        evaluation = evaluate(self.days, setting, test_days, judged=judged, passes=self.passes)
        return evaluation, self.clock() - begun

    def last_days(self, count: int, train: int = r.TRAIN) -> range:
        """The last `count` days, or as many as can be predicted."""
        total = self.days.seen.shape[1]
        return range(max(PredictionSetting(train=train).first, total - count), total)

    def describe(self) -> str:
        """One sentence for the report."""
        flips = "" if self.every_page else f" whose flag flips on {r.ALPHA:.0%} of the days"
        return (
            f"*{self.name}*, label {self.label}: {len(self.days):,} pages, {self.days.seen.shape[1]} days; "
            f"{int(self.judged.sum())} pages{flips} are judged"
        )


def worlds(
    options: ExperimentOptions,
    labels: Sequence[str] | None = None,
    *,
    every_page: bool = False,
    planted_days: int = _PLANTED_DAYS,
    week: bool = False,
) -> list[PredictionWorld]:
    """The planted worlds and each archive under each label; archives with too few days or pages are left out.

    As in R, pages that flip often are judged; with `every_page`, a sample of all pages that have a label. With `week`,
    also a planted world with few changes at weekends.
    """
    found = [_planted(options.scale, leaders, planted_days, options.workers, options.cpu) for leaders in (1, 4)]
    if week:
        found.append(_planted(options.scale, 1, planted_days, options.workers, options.cpu, weekend=0.1))
    cache = options.cache / "facts" if options.cache else None
    for path in _daily_files(options):
        for label in labels or (options.change,):
            world = _archive(path, label, cache, _pages(options.scale), every_page, options.workers, options.cpu)
            if world.days.seen.shape[1] > r.TRAIN + _MIN and world.judged.sum() >= _MIN:
                found.append(world)
    return found


def measure_worlds(
    options: ExperimentOptions,
    measure: Callable[[PredictionWorld], tuple[Iterable[Row], Iterable[Claim]]],
    labels: Sequence[str] | None = None,
    *,
    every_page: bool = False,
    week: bool = False,
) -> Result:
    """The rows and claims of `measure` on all worlds; the caller adds pictures, notes and headings."""
    found = worlds(options, labels, every_page=every_page, week=week)
    step = progress_steps(options, len(found))
    result = Result([], worlds=[world.describe() for world in found])
    for world in found:
        rows, claims = measure(world)
        result.rows.extend(rows)
        result.claims.extend(claims)
        step()
    return result


# Worlds and their evaluations are cached, since most experiments use the same settings.


@lru_cache(maxsize=16)
def _archive(
    path: Path,
    label: str,
    cache: Path | None,
    max_pages: int,
    every_page: bool,
    workers: int,
    clock: Callable[[], float],
) -> PredictionWorld:
    days = read_days([path], label, cache=cache)
    eligible = days.labelled.sum(axis=1) > 0 if every_page else often_flipping(days, r.ALPHA)
    judged, passes = _sample(eligible, max_pages), None if every_page else DayPasses()
    return PredictionWorld(path.stem, label, days, judged, workers, clock, every_page=every_page, passes=passes)


@lru_cache(maxsize=4)
def _planted(
    scale: float, leaders: int, days: int, workers: int, clock: Callable[[], float], weekend: float = 1.0
) -> PredictionWorld:
    groups = max(3, 3 * round(4 * scale))
    world = planted(Planted(groups=groups, size=8, leaders=leaders, days=days, weekend=weekend, seed=1))
    name = "planted, one leads" if leaders == 1 else "planted, half lead"
    name = WEEK if weekend < 1 else name
    return PredictionWorld(
        name, "planted", world.days, _sample(often_flipping(world.days), _pages(scale)), workers, clock
    )


def _daily_files(options: ExperimentOptions) -> list[Path]:
    """Files with observation times; where there are none, the first few of the others."""
    files = [file for path in options.archives for file in files_of(path)]
    return [file for file in files if file.with_suffix(".times").is_file()] or files[:_MAX_FILES]


def _pages(scale: float) -> int:
    return max(_MIN, round(_PAGES * scale))


def test_day_count(options: ExperimentOptions) -> int:
    """How many days are predicted."""
    return max(3, round(_DAYS * options.scale))


def _sample(judged: Flags, max_pages: int) -> Flags:
    pages = np.flatnonzero(judged)
    sample = np.zeros(len(judged), np.bool_)
    sample[
        pages[np.linspace(0, len(pages) - 1, min(max_pages, len(pages))).astype(np.int64)] if len(pages) else pages
    ] = True
    return sample


def setting_of(world: PredictionWorld, method: str, experts: str = "xcorr") -> PredictionSetting:
    """R's parameters. Methods without experts always get the same setting, so that it runs once."""
    return PredictionSetting(method, experts=experts, k=r.K, train=r.TRAIN, workers=world.workers)


def measured_row(
    world: PredictionWorld, setting: PredictionSetting, test_days: range, name: str, published: float | None = None
) -> Row:
    """A row: accuracy as in R (mean over pages, in per cent), and the other scores of spec M8."""
    found = world.evaluate_setting(setting, test_days)
    figures = found.summary()
    middling = figures["middling"]
    return {
        "world": world.name,
        "label": world.label,
        "method": name,
        "accuracy": _percent(found.by_page()),
        **{key: figures[key] for key in ("precision", "recall", "auc", "brier", "change_rate", "pages", "days")},
        "middling_accuracy": None if middling["accuracy"] is None else 100 * middling["accuracy"],
        "middling_auc": middling["auc"],
        "middling_brier": middling["brier"],
        "not_enough_history": figures["not_enough_history"],
        "published": published,
    }


def coin_by_page(world: PredictionWorld, test_days: range, train: int = r.TRAIN) -> Floats:
    """The baseline as R prints it, a draw with the page's frequency: one per page, its expected accuracy."""
    frequencies = frequency(world.days, train, test_days)
    found = world.evaluate_setting(PredictionSetting("frequency", train=train), test_days)
    correct = np.where(found.evaluated, np.where(found.truth, frequencies, 1 - frequencies), 0.0).sum(axis=1)
    known = found.evaluated.sum(axis=1)
    mean: Floats = np.divide(correct, known, out=np.full(len(known), np.nan), where=known > 0)
    return mean


def coin_row(world: PredictionWorld, test_days: range, train: int = r.TRAIN) -> Row:
    """The row of the baseline as a coin."""
    accuracy = _percent(coin_by_page(world, test_days, train))
    published = r.TABLE_1["frequency"]
    return {"world": world.name, "label": world.label, "method": COIN, "accuracy": accuracy, "published": published}


def baselines(world: PredictionWorld, first: PredictionSetting, test_days: range) -> dict[str, Row]:
    """The paired t-tests of a setting against the baseline, by reading: R's coin, and our threshold."""
    by_page = world.evaluate_setting(first, test_days).by_page()
    threshold = PredictionSetting("frequency", train=first.train, workers=world.workers)
    others = (coin_by_page(world, test_days, first.train), world.evaluate_setting(threshold, test_days).by_page())
    names = [one.name for one in SENTENCES["probability"].readings]
    return {name: _in_points(paired(by_page, other)) for name, other in zip(names, others, strict=True)}


def compare(world: PredictionWorld, first: PredictionSetting, second: PredictionSetting, test_days: range) -> Row:
    """The paired t-test of two settings over pages; the difference in percentage points."""
    found = paired(
        world.evaluate_setting(first, test_days).by_page(), world.evaluate_setting(second, test_days).by_page()
    )
    return _in_points(found)


def _in_points(found: Row) -> Row:
    """A test with its difference in percentage points."""
    difference = found["difference"]
    return {**found, "difference": None if difference is None else 100 * difference}


def better(test: Row) -> bool | None:
    """Whether the first is significantly better; None where there are too few pages to decide.

    >>> better({"difference": 2.0, "p": 0.2, "pages": 12}) is None, better({"difference": 2.0, "p": 0.2, "pages": 60})
    (True, False)
    """
    if test["p"] is None or (test["p"] >= r.LEVEL and test["pages"] < _ENOUGH_PAGES):
        return None
    return bool(test["difference"] > 0 and test["p"] < r.LEVEL)


def all_hold(verdicts: Sequence[bool | None]) -> bool | None:
    """Whether all hold: False if one fails, else None if one is open."""
    if any(verdict is False for verdict in verdicts):
        return False
    return None if any(verdict is None for verdict in verdicts) else True


def describe_test(test: Row) -> str:
    """The result of a test in words."""
    if test["difference"] is None:
        return "nothing to compare"
    p = "p not defined" if test["p"] is None else f"p {test['p']:.3g}"
    return f"{test['difference']:+.1f} points, {p}, {test['pages']} pages"


def make_claim(
    key: str, world: PredictionWorld, holds: bool | None, numbers: str, why: str = "", reading: str = ""
) -> Claim:
    """A claim of R on a world."""
    place, says = r.STATEMENTS[key]
    reason = r.TOO_FEW if holds is None else why or r.why(key, made=world.label == "planted")
    return Claim.of(place, says, world.title, holds, numbers, reason, reading=reading)


def progress_steps(options: ExperimentOptions, total: int) -> Callable[[], None]:
    """A function that reports one more world as done."""
    evaluations = 0

    def step() -> None:
        nonlocal evaluations
        evaluations += 1
        options.progress(evaluations, total)

    return step


def _percent(by_page: Floats) -> float | None:
    known = by_page[np.isfinite(by_page)]
    return 100 * float(known.mean()) if len(known) else None
