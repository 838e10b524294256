"""Beyond R: our predictors beside R's, whether chances are what they say, and which information pays.

Not only pages that flip often are judged here, but a sample of all: over all pages the page's own rate already says
most, so those with a middling change rate (0.1 to 0.9) are shown apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import itemgetter
from statistics import median

import numpy as np

from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    LABELS,
    MULTIPLE,
    NAMES,
    SINGLE,
    Row,
    Where,
    better,
    compared,
    days_wanted,
    measured,
    setting_of,
    shown,
    stepping,
    worlds,
)
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result
from recrawl.lab.experiments.result import Row as AnyRow
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.evaluation import evaluate_predictions
from recrawl.lab.predict.methods import Predictions, PredictionSetting
from recrawl.lab.predict.pooled_predictor import FAMILIES, predict
from recrawl.lab.predict.scores import paired

POOLED, GOES_ON = "pooled", "online-3d"
METHODS = ("frequency", SINGLE, "online-2d", MULTIPLE, GOES_ON, POOLED)
CHEAPER = 100
"""So many times less than multiple experts `pooled` is to cost."""
WELL = 0.05
"""A mean distance between what was said and what came that still counts as calibrated."""
_FOR_ALL = ("frequency", POOLED)
"""Methods that predict all pages of a world whichever are judged."""
_PLACE = "beyond R"
_LITTLE_LEFT = (
    "most pages change nearly every day or hardly ever, and too few are left to decide; see the middling ones"
)
_SHORT, _RUNS = 2.0, 5
_SMALL_WORLD = "measured: a fit, and a call for each day, cost about the same however few pages there are"
_UNSURE = "a share of fifty days is a rough chance, and nothing draws it towards the middle"
_TOO_MUCH = "supposed: on so few pages more is found than there is"
_SKETCH = "supposed: one look at each day, and a sketch of the words in place of all of them"
_COST = (
    "Cost is processor time for a thousand predictions (a page on a day), learning and choice of experts included. "
    "`pooled` and frequency predict all pages of a world, the others only those that are judged; so multiple experts "
    "were asked about all pages once more, and that is what `pooled` is held against. Runs of under two seconds were "
    "made five times, and the one in the middle counts."
)


def ours(options: ExperimentOptions) -> Result:
    """Accuracy, Brier score and cost."""
    rows: list[AnyRow] = []
    claims: list[Claim] = []
    places = worlds(options, LABELS, every_page=True)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        mine = {method: _costed(where, method, over) for method in METHODS}
        mine[MULTIPLE]["cost_of_all"] = _cost_of_all(where, over)
        rows += mine.values()
        claims += _of_ours(where, over, mine)
        step()
    picture = Picture(
        "grouped", "world", "brier", "Brier score by method (less is better)", "", "Brier score", colour="method",
        facet="label",
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[_COST],
        table={
            "world": "world", "label": "label", "method": "method", "accuracy": ">accuracy, %", "auc": ">AUC",
            "brier": ">Brier", "middling_accuracy": ">middling pages, %", "middling_auc": ">AUC",
            "middling_brier": ">Brier", "cost": ">s for 1,000", "cost_of_all": ">of all pages",
        },
    )  # fmt: skip


def _costed(where: Where, method: str, over: range) -> Row:
    setting = setting_of(where, method)
    row = measured(where, setting, over, NAMES[method])
    pages = len(where.days) if method in _FOR_ALL else int(where.judged.sum())
    return {**row, "cost": 1000 * _spent(where, setting, over) / (pages * len(over))}


def _spent(where: Where, setting: PredictionSetting, over: range) -> float:
    """Processor time of a run; the middle of five where it is so short that what else the machine does would decide."""
    spent = [where.spent[setting, over]]
    while 0 < spent[0] < _SHORT and len(spent) < _RUNS:
        spent.append(where.timed(setting, over, where.judged)[1])
    return median(spent)


def _cost_of_all(where: Where, over: range) -> float:
    """What a thousand predictions of multiple experts cost if all pages of the world are asked about, as `pooled` is.

    Words and relations of all pages are looked at in either case; then more predictions share in that.
    """
    return 1000 * where.timed(setting_of(where, MULTIPLE), over)[1] / (len(where.days) * len(over))


def _of_ours(where: Where, over: range, rows: dict[str, Row]) -> list[Claim]:
    """What was asked of them, held against what was measured."""
    name = f"{where.name} ({where.label})"

    def claim(says: str, holds: bool | None, numbers: str, why: str) -> Claim:
        return Claim.of(_PLACE, says, name, holds, numbers, why)

    right = compared(where, setting_of(where, POOLED), setting_of(where, MULTIPLE), over)
    one, other = (where.outcome(setting_of(where, method), over).brier_by_page() for method in (POOLED, MULTIPLE))
    missed = paired(other, one)
    sure = None if missed["p"] is None else bool(missed["difference"] > 0 and missed["p"] < r.LEVEL)
    little, online, much = rows[POOLED]["cost"], rows[GOES_ON]["cost"], rows[MULTIPLE]["cost_of_all"]
    some = rows[MULTIPLE]["cost"]
    told = (
        f"{much / little:.0f} times less: {little:.3f} s against {much:.3f} s, all pages asked about; against "
        f"{some:.3f} s for those that are judged {some / little:.0f} times less"
        if little
        else "no clock"
    )
    cheap = much >= CHEAPER * little if little else None
    goes_on = compared(where, setting_of(where, GOES_ON), setting_of(where, MULTIPLE), over)
    worse = goes_on["p"] is not None and goes_on["difference"] < 0 and goes_on["p"] < r.LEVEL
    return [
        claim("`pooled` is more accurate than multiple experts.", better(right), shown(right), _LITTLE_LEFT),
        claim(
            "`pooled` has the better Brier score.",
            sure,
            f"{rows[POOLED]['brier']:.4f} against {rows[MULTIPLE]['brier']:.4f}, p {missed['p'] or 1:.3g}",
            _LITTLE_LEFT,
        ),
        claim("`pooled` costs a hundredth.", cheap, f"a thousand cost {told}", _SMALL_WORLD),
        claim(
            "Experts that go on learning are not worse than those that are fitted anew every day.",
            not worse,
            f"{shown(goes_on)}; a thousand cost {online:.3f} s",
            _SKETCH,
        ),
    ]


def calibrations(options: ExperimentOptions) -> Result:
    """What was said against what came."""
    rows: list[AnyRow] = []
    claims: list[Claim] = []
    places = worlds(options, LABELS, every_page=True)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        for method in METHODS:
            found = where.outcome(setting_of(where, method), over)
            world = f"{where.name} ({where.label})"
            rows += [{"world": world, "method": NAMES[method], **tenth} for tenth in found.calibration()]
            off = found.summary()["calibration_error"]
            says = f"{NAMES[method]}: what was said and what came differ by less than {WELL:.0%} on average."
            numbers = "nothing was predicted" if off is None else f"{off:.1%} on average"
            why = _UNSURE if method == "frequency" else _TOO_MUCH
            claims.append(Claim.of(_PLACE, says, world, None if off is None else off < WELL, numbers, why))
        step()
    picture = Picture(
        "calibration", "said", "came", "Calibration: chances by tenths, against what came", "chance that was said",
        "share that changed", colour="method", facet="world", size="count",
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=["A point is a tenth of the chances, as large as the predictions in it; on the dashed line both agree."],
        table={"world": "world", "method": "method", "said": ">said", "came": ">came", "count": ">predictions"},
    )


def ablations(options: ExperimentOptions) -> Result:
    """`pooled` with everything, then without each family of features in turn; over all pages of a world."""
    rows: list[AnyRow] = []
    claims: list[Claim] = []
    places = worlds(options, every_page=True)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        mine = [_ablated(where, found) for found in ablation(where.days, r.TRAIN, over, seed=1)]
        rows += mine
        claims.append(_of_ablation(where, mine))
        step()
    picture = Picture(
        "grouped", "without", "loses", "What the Brier score loses without a family of features", "left out",
        "Brier score, thousandths", colour="world",
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=["One run for each line; differences of a thousandth or less may be chance."],
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


def _ablated(where: Where, found: Row) -> Row:
    """A line of the table, with how much worse it is than with everything."""
    middling = found["middling"]
    figures = {key: found[key] for key in ("auc", "brier")}
    figures |= {f"middling_{key}": middling[key] for key in ("auc", "brier")}
    shares = {"accuracy": found["accuracy"], "middling_accuracy": middling["accuracy"]}
    per_cent = {key: None if share is None else 100 * share for key, share in shares.items()}
    return {"world": where.name, "label": where.label, "without": found["without"], **figures, **per_cent}


def _of_ablation(where: Where, rows: list[Row]) -> Claim:
    """The one thing that was said before: that weekdays pay."""
    full = rows[0]
    for row in rows[1:]:
        row["loses"] = 1000 * (row["brier"] - full["brier"])
    most = sorted(rows[1:], key=itemgetter("loses"), reverse=True)[:3]
    bare = next(row for row in rows if row["without"] == "rhythm")
    auc, without = full["middling_auc"], bare["middling_auc"]
    told = ", ".join(f"{row['without']} {row['loses']:+.1f}" for row in most)
    holds = None if auc is None or without is None else auc > without
    numbers = f"{auc or 0:.3f}, without {without or 0:.3f}; in all, thousandths of Brier lost most without {told}"
    return Claim.of(
        _PLACE, "Weekday and hour rhythms lift the AUC of middling pages.", f"{where.name} ({where.label})", holds,
        numbers, "There is no weekly rhythm in it." if where.label == "planted" else "",
    )  # fmt: skip
