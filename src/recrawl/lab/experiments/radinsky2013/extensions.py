"""Beyond R: our predictors beside R's, the calibration of probabilities, and the value of each feature family.

Not only pages that flip often are judged here, but a sample of all pages. Over all pages, the page's own rate already
predicts almost everything, so pages with a middling change rate (0.1 to 0.9) are shown separately.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from statistics import median

import numpy as np

from recrawl.lab.experiments.intervals import interval
from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    LABELS,
    MULTIPLE,
    NAMES,
    SINGLE,
    WEEK,
    PredictionWorld,
    Row,
    better,
    compare,
    describe_test,
    measure_worlds,
    measured_row,
    setting_of,
    test_day_count,
)
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.evaluation import evaluate_predictions
from recrawl.lab.predict.methods import Predictions, PredictionSetting
from recrawl.lab.predict.pooled_predictor import FAMILIES, predict
from recrawl.lab.predict.scores import paired

POOLED, ONLINE = "pooled", "online-3d"
METHODS = ("frequency", SINGLE, "online-2d", MULTIPLE, ONLINE, POOLED)
CHEAPER = 100
"""`pooled` is to cost this many times less than multiple experts."""
CALIBRATED = 0.05
"""A mean distance between predicted and observed rates below this counts as calibrated."""
_PREDICT_ALL = ("frequency", POOLED)
"""Methods that predict all pages of a world, whichever are judged."""
_PLACE = "beyond R"
_FEW_LEFT = (
    "assumed: most pages change almost daily or almost never, which leaves too few to decide; see the middling pages"
)
_SHORT_SECONDS, _REPEATS = 2.0, 5
_SMALL_WORLD = "measured: a fit and one call per day cost about the same however few pages there are"
_ROUGH = "assumed: a share of fifty days is a rough estimate, and nothing shrinks it towards the middle"
_NO_RHYTHM = "by construction: this world has no weekly rhythm"
_OVERFITTED = "assumed: overfitting on so few pages"
_SKETCH = "assumed: it sees each day once, and a sketch instead of all words"
_COST = (
    "Cost is CPU time per thousand predictions (one page on one day), including learning and the choice of experts. "
    "`pooled` and frequency predict all pages of a world, the others only the judged pages; so multiple experts were "
    "also run for all pages, and `pooled` is compared with that run. Runs of under two seconds were made five times; "
    "the median counts."
)


def ours(options: ExperimentOptions) -> Result:
    """Accuracy, Brier score and cost."""

    def measure(world: PredictionWorld) -> tuple[Iterable[Row], list[Claim]]:
        test_days = world.last_days(test_day_count(options))
        by_method = {method: _row_with_cost(world, method, test_days) for method in METHODS}
        by_method[MULTIPLE]["cost_of_all"] = _cost_of_all(world, test_days)
        return by_method.values(), _claims_of_ours(world, test_days, by_method)

    picture = Picture(
        "grouped", "world", "brier", "Brier score by method (less is better)", "", "Brier score", colour="method",
        facet="label",
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure, LABELS, every_page=True),
        pictures=[picture],
        notes=[_COST],
        table={
            "world": "world", "label": "label", "method": "method", "accuracy": ">accuracy, %", "auc": ">AUC",
            "brier": ">Brier", "middling_accuracy": ">middling pages, %", "middling_auc": ">AUC",
            "middling_brier": ">Brier", "cost": ">s for 1,000", "cost_of_all": ">of all pages",
        },
    )  # fmt: skip


def _row_with_cost(world: PredictionWorld, method: str, test_days: range) -> Row:
    setting = setting_of(world, method)
    row = measured_row(world, setting, test_days, NAMES[method])
    pages = len(world.days) if method in _PREDICT_ALL else int(world.judged.sum())
    return {**row, "cost": 1000 * _median_seconds(world, setting, test_days) / (pages * len(test_days))}


def _median_seconds(world: PredictionWorld, setting: PredictionSetting, test_days: range) -> float:
    """CPU time of a run; the median of five where it is too short to be measured reliably once."""
    cpu_seconds = [world.cpu_seconds[setting, test_days]]
    while 0 < cpu_seconds[0] < _SHORT_SECONDS and len(cpu_seconds) < _REPEATS:
        cpu_seconds.append(world.timed(setting, test_days, world.judged)[1])
    return median(cpu_seconds)


def _cost_of_all(world: PredictionWorld, test_days: range) -> float:
    """CPU seconds per thousand predictions of multiple experts for all pages of the world, as `pooled` makes.

    The words and relations of all pages are computed in either case; here more predictions share that cost.
    """
    return 1000 * world.timed(setting_of(world, MULTIPLE), test_days)[1] / (len(world.days) * len(test_days))


def _claims_of_ours(world: PredictionWorld, test_days: range, rows: dict[str, Row]) -> list[Claim]:
    """Our own claims, judged by what was measured."""

    def claim(says: str, holds: bool | None, numbers: str, why: str) -> Claim:
        return Claim.of(_PLACE, says, world.title, holds, numbers, why)

    accuracy_test = compare(world, setting_of(world, POOLED), setting_of(world, MULTIPLE), test_days)
    pooled_brier, multiple_brier = (
        world.evaluate_setting(setting_of(world, method), test_days).brier_by_page() for method in (POOLED, MULTIPLE)
    )
    brier_test = paired(multiple_brier, pooled_brier)
    brier_better = None if brier_test["p"] is None else bool(brier_test["difference"] > 0 and brier_test["p"] < r.LEVEL)
    online_test = compare(world, setting_of(world, ONLINE), setting_of(world, MULTIPLE), test_days)
    worse = online_test["p"] is not None and online_test["difference"] < 0 and online_test["p"] < r.LEVEL
    return [
        claim(
            "`pooled` is more accurate than multiple experts.",
            better(accuracy_test),
            describe_test(accuracy_test),
            _FEW_LEFT,
        ),
        claim(
            "`pooled` has the better Brier score.",
            brier_better,
            f"{rows[POOLED]['brier']:.4f} against {rows[MULTIPLE]['brier']:.4f}, p {brier_test['p'] or 1:.3g}",
            _FEW_LEFT,
        ),
        claim("`pooled` costs a hundredth.", *_cheaper(rows), _SMALL_WORLD),
        claim(
            "Experts that are updated day by day are not worse than experts that are retrained every day.",
            not worse,
            f"{describe_test(online_test)}; a thousand cost {rows[ONLINE]['cost']:.3f} s",
            _SKETCH,
        ),
    ]


def _cheaper(rows: dict[str, Row]) -> tuple[bool | None, str]:
    """Whether `pooled` costs `CHEAPER` times less than multiple experts for all pages (None: no clock), in words."""
    pooled, of_all, of_judged = rows[POOLED]["cost"], rows[MULTIPLE]["cost_of_all"], rows[MULTIPLE]["cost"]
    if not pooled:
        return None, "not measured: no clock"
    return of_all >= CHEAPER * pooled, (
        f"a thousand cost {of_all / pooled:.0f} times less: {pooled:.3f} s against {of_all:.3f} s, all pages "
        f"predicted; against {of_judged:.3f} s for the judged pages {of_judged / pooled:.0f} times less"
    )


def calibration(options: ExperimentOptions) -> Result:
    """Predicted against observed rates."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        rows: list[Row] = []
        claims: list[Claim] = []
        test_days = world.last_days(test_day_count(options))
        for method in METHODS:
            evaluation = world.evaluate_setting(setting_of(world, method), test_days)
            rows += [{"world": world.title, "method": NAMES[method], **tenth} for tenth in evaluation.calibration()]
            error = evaluation.summary()["calibration_error"]
            says = f"{NAMES[method]}: predicted and observed rates differ by less than {CALIBRATED:.0%} on average."
            numbers = "nothing was predicted" if error is None else f"{error:.1%} on average"
            why = _ROUGH if method == "frequency" else _OVERFITTED
            claims.append(
                Claim.of(_PLACE, says, world.title, None if error is None else error < CALIBRATED, numbers, why)
            )
        return rows, claims

    picture = Picture(
        "calibration", "said", "came", "Calibration: predicted probability against observed rate",
        "predicted probability", "share that changed", colour="method", facet="world", size="count",
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure, LABELS, every_page=True),
        pictures=[picture],
        notes=[
            "A point is a tenth of the probability range, sized by predictions; on the dashed line both rates agree."
        ],
        table={"world": "world", "method": "method", "said": ">said", "came": ">came", "count": ">predictions"},
    )


def feature_families(options: ExperimentOptions) -> Result:
    """`pooled` with all features, then without each family; over all pages of a world."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(test_day_count(options))
        ablated = [_ablated(world, evaluation) for evaluation in ablation(world.days, r.TRAIN, test_days, seed=1)]
        gains = [_gain_by_rhythm(world.days, test_days, seed) for seed in range(1, options.seeds + 1)]
        return ablated, [_claim_of_ablation(world, ablated, [gain for gain in gains if gain is not None])]

    picture = Picture(
        "grouped", "without", "loses", "What the Brier score loses without a family of features", "left out",
        "Brier score, thousandths", colour="world",
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure, every_page=True, week=True),
        pictures=[picture],
        notes=[
            "One run per line; differences of a thousandth or less may be random.",
            "The claim is judged over seeds of the model.",
            f"*{WEEK}* has a tenth of the changes on Saturdays and Sundays; the other planted worlds have no week.",
        ],
        table={
            "world": "world", "without": "without", "accuracy": ">accuracy, %", "auc": ">AUC", "brier": ">Brier",
            "middling_accuracy": ">middling pages, %", "middling_auc": ">AUC", "middling_brier": ">Brier",
        },
    )  # fmt: skip


def ablation(
    days: Days, train: int, test_days: range, seed: int, families: Collection[str] = FAMILIES
) -> Iterator[Row]:
    """The scores of `pooled` with all features, then without each family; over all and over middling pages."""
    for family in ("", *families):
        probability = predict(days, train, test_days, seed, without=(family,) if family else ())
        predicted = Predictions(probability, probability >= 0.5, np.zeros(probability.shape, np.bool_))
        yield {"without": family or "nothing", **evaluate_predictions(days, predicted, test_days).summary()}


def _ablated(world: PredictionWorld, evaluation: Row) -> Row:
    """A row of the table."""
    middling = evaluation["middling"]
    figures = {key: evaluation[key] for key in ("auc", "brier")}
    figures |= {f"middling_{key}": middling[key] for key in ("auc", "brier")}
    shares = {"accuracy": evaluation["accuracy"], "middling_accuracy": middling["accuracy"]}
    per_cent = {key: None if share is None else 100 * share for key, share in shares.items()}
    return {"world": world.name, "label": world.label, "without": evaluation["without"], **figures, **per_cent}


def _gain_by_rhythm(days: Days, test_days: range, seed: int) -> float | None:
    """By how much weekdays and hours raise the AUC of middling pages."""
    both = [one["middling"]["auc"] for one in ablation(days, r.TRAIN, test_days, seed, ("rhythm",))]
    return None if None in both else both[0] - both[1]


def _claim_of_ablation(world: PredictionWorld, rows: list[Row], gains: list[float]) -> Claim:
    """The claim that weekdays matter; adds to each row how much worse it is than with all features."""
    full = rows[0]
    for row in rows[1:]:
        row["loses"] = 1000 * (row["brier"] - full["brier"])
    largest = sorted(rows[1:], key=itemgetter("loses"), reverse=True)[:3]
    losses = ", ".join(f"{row['without']} {row['loses']:+.1f}" for row in largest)
    gain = interval(gains) if gains else None
    holds = None if gain is None else True if gain.low > 0 else False if gain.high < 0 else None
    numbers = f"gain {gain or 'not defined'}; largest losses of Brier score, in thousandths, without {losses}"
    says = "Weekday and hour rhythms raise the AUC of middling pages."
    no_week = world.label == "planted" and world.name != WEEK
    why = _NO_RHYTHM if no_week else "assumed: these pages have little of a weekly rhythm"
    return Claim.of(_PLACE, says, world.title, holds, numbers, why)
