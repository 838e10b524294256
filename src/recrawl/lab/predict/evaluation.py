"""R's evaluation protocol (spec L6; R §7): which pages and days are predicted, and what is measured.

The last `days` days that the history allows are predicted, each from the window before it. In the partially observed
setting, pages are visited at random; the predictor sees these visits only, and is scored on what really happened on all
pages, each day against the day before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.errors import UsageError
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.methods import DayPasses, Predictions, PredictionSetting, predict
from recrawl.lab.predict.scores import MIDDLING, by_page, calibration, score_predictions

ALPHA = 0.3
"""R's minimum share of days on which a page's change flag flips."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Predictions and outcomes of a run, for the pages that are scored."""

    truth: Flags
    evaluated: Flags
    """Page by test day: there is a label and a prediction."""
    missing: int
    """Labelled page-days without a prediction, for lack of history."""
    predicted: Predictions
    middling: Flags
    """One per page: its change rate is between 0.1 and 0.9."""

    def by_page(self) -> Floats:
        """One per page: the accuracy."""
        return by_page(self.truth, self.predicted.decision, self.evaluated)

    def brier_by_page(self) -> Floats:
        """One per page: the mean of (probability - outcome)²; NaN where nothing was evaluated."""
        missed = np.where(self.evaluated, (self.predicted.probability - self.truth) ** 2, 0.0).sum(axis=1)
        labelled_pairs = self.evaluated.sum(axis=1)
        mean: Floats = np.divide(
            missed, labelled_pairs, out=np.full(len(labelled_pairs), np.nan), where=labelled_pairs > 0
        )
        return mean

    def calibration(self) -> list[dict[str, float]]:
        """Predicted probability, observed rate and count, by tenths of the prediction."""
        return calibration(self.truth[self.evaluated], self.predicted.probability[self.evaluated])

    def summary(self) -> dict[str, Any]:
        """The scores of spec M8, over all pages and over the middling ones."""
        return {
            **self._figures(np.ones(len(self.middling), np.bool_)),
            "days": self.truth.shape[1],
            "not_enough_history": self.missing,
            "by_frequency": int((self.predicted.fallback & self.evaluated).sum()),
            "middling": self._figures(self.middling),
        }

    def _figures(self, pages: Flags) -> dict[str, Any]:
        evaluated = self.evaluated & pages[:, None]
        figures = score_predictions(self.truth, self.predicted.probability, self.predicted.decision, evaluated)
        return {**figures, "pages": int(evaluated.any(axis=1).sum()), "predictions": int(evaluated.sum())}


def sample_pages(days: Days, pages: int | None, seed: int) -> Days:
    """A random sample of the pages, in their order."""
    if pages is None or pages >= len(days):
        return days
    return days.take(np.sort(np.random.default_rng(seed).choice(len(days), pages, replace=False)))


def random_observations(days: Days, share: float, seed: int) -> Flags:
    """Page by day: visited at random with this probability (spec L1, partially observed)."""
    return np.random.default_rng([seed, 7]).random(days.seen.shape) < share


def often_flipping(days: Days, alpha: float = ALPHA) -> Flags:
    """One per page: its change flag differs from one day to the next on at least this share of its days (R §7.1).

    R reads this from the whole history, so the selection of pages knows the test days; the predictions do not.
    """
    both = days.labelled[:, 1:] & days.labelled[:, :-1]
    flips = ((days.changed[:, 1:] != days.changed[:, :-1]) & both).sum(axis=1)
    labelled_pairs = both.sum(axis=1)
    share = np.divide(flips, labelled_pairs, out=np.zeros(len(labelled_pairs)), where=labelled_pairs > 0)
    selected: Flags = (share >= alpha) & (labelled_pairs > 0)
    return selected


def predictable_days(days: Days, setting: PredictionSetting, count: int | None) -> range:
    """The last `count` days that can be predicted, or all of them."""
    total = days.seen.shape[1]
    first = setting.first
    if total <= first:
        raise UsageError(
            f"not enough history: {setting.train} training days and one day to predict need {first + 1} observations, "
            f"but there are {total}; use a smaller --train"
        )
    return range(max(first, total - count) if count else first, total)


def evaluate(
    days: Days,
    setting: PredictionSetting,
    test_range: range,
    *,
    observe: float = 1.0,
    judged: Flags | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    passes: DayPasses | None = None,
) -> Evaluation:
    """Predict and score; only the pages in `judged` are scored, but all may be experts.

    `passes` are shared with other settings on the same days, all of which are observed.
    """
    if not 0 < observe <= 1:
        raise UsageError(f"invalid share of observed pages {observe:g}; use a number above 0 and up to 1")
    known = days if observe == 1 else days.visited(random_observations(days, observe, setting.seed))
    targets = None if judged is None else np.flatnonzero(judged)
    shared = passes if known is days else None
    predicted = predict(known, setting, test_range, progress, targets=targets, passes=shared)
    return evaluate_predictions(days, predicted, test_range, judged)


def evaluate_predictions(
    days: Days, predicted: Predictions, test_range: range, judged: Flags | None = None
) -> Evaluation:
    """Score predictions against the labels."""
    part = slice(test_range.start, test_range.stop)
    label = days.labelled[:, part].copy()
    if judged is not None:
        label &= judged[:, None]
    evaluated = label & np.isfinite(predicted.probability)
    rate = np.nan_to_num(days.rate(), nan=-1.0)
    middling = (rate >= MIDDLING[0]) & (rate <= MIDDLING[1])
    return Evaluation(days.changed[:, part], evaluated, int((label & ~evaluated).sum()), predicted, middling)
