"""R's experiment (spec L6; R §7): which pages, which days, what is measured.

Everything is predicted for the last `days` days that the history allows, each from the window before it. In the
partially observed setting pages are visited by chance; the predictor sees the visits only, and is judged by what
really happened, day against day before, on all pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.errors import UsageError
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.methods import Predictions, PredictionSetting, observations, predict
from recrawl.lab.predict.scores import MIDDLING, by_page, calibration, scored

ALPHA = 0.3
"""R's least share of days on which a page's flag flips."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a run predicted and what came, for the pages that are judged."""

    truth: Flags
    counts: Flags
    """Page by test day: there is a label, and a prediction."""
    unknown: int
    """Predictions that were not made: not enough history yet."""
    predicted: Predictions
    middling: Flags
    """One per page."""

    def by_page(self) -> Floats:
        """One per page: the accuracy."""
        return by_page(self.truth, self.predicted.says, self.counts)

    def brier_by_page(self) -> Floats:
        """One per page: the mean of (chance - outcome)²; not a number where nothing counts."""
        missed = np.where(self.counts, (self.predicted.chance - self.truth) ** 2, 0.0).sum(axis=1)
        known = self.counts.sum(axis=1)
        mean: Floats = np.divide(missed, known, out=np.full(len(known), np.nan), where=known > 0)
        return mean

    def calibration(self) -> list[dict[str, float]]:
        """What was said, what came and how often, by tenths of what was said."""
        return calibration(self.truth[self.counts], self.predicted.chance[self.counts])

    def summary(self) -> dict[str, Any]:
        """The figures of spec M8, over all pages and over the middling ones."""
        return {
            **self._figures(np.ones(len(self.middling), np.bool_)),
            "days": self.truth.shape[1],
            "not_enough_history": self.unknown,
            "by_frequency": int((self.predicted.fallback & self.counts).sum()),
            "middling": self._figures(self.middling),
        }

    def _figures(self, pages: Flags) -> dict[str, Any]:
        counts = self.counts & pages[:, None]
        figures = scored(self.truth, self.predicted.chance, self.predicted.says, counts)
        return {**figures, "pages": int(counts.any(axis=1).sum()), "predictions": int(counts.sum())}


def flipping(days: Days, alpha: float = ALPHA) -> Flags:
    """One per page: its flag differs from one day to the next on at least this share of its days (R §7.1).

    R reads this from the whole history, so the set is chosen with knowledge of the test days; predictions are not.
    """
    both = days.labelled[:, 1:] & days.labelled[:, :-1]
    flips = ((days.changed[:, 1:] != days.changed[:, :-1]) & both).sum(axis=1)
    known = both.sum(axis=1)
    share = np.divide(flips, known, out=np.zeros(len(known)), where=known > 0)
    kept: Flags = (share >= alpha) & (known > 0)
    return kept


def last_days(days: Days, setting: PredictionSetting, wanted: int | None) -> range:
    """The last days that can be predicted."""
    total = days.seen.shape[1]
    first = setting.first
    if total <= first:
        raise UsageError(
            f"not enough history: {setting.train} training days and one to predict need {first + 1} observations, "
            f"and there are {total}; take fewer with --train"
        )
    return range(max(first, total - wanted) if wanted else first, total)


def run(
    days: Days,
    setting: PredictionSetting,
    over: range,
    *,
    observe: float = 1.0,
    judged: Flags | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Evaluation:
    """Predict and compare; only the pages `judged` count, but all may be experts."""
    if not 0 < observe <= 1:
        raise UsageError(f"the share of observed pages is over 0 and up to 1, not {observe:g}")
    known = days if observe == 1 else days.visited(observations(days, observe, setting.seed))
    targets = None if judged is None else np.flatnonzero(judged)
    return outcome(days, predict(known, setting, over, progress, targets=targets), over, judged)


def outcome(days: Days, predicted: Predictions, over: range, judged: Flags | None = None) -> Evaluation:
    """Predictions held against what came."""
    part = slice(over.start, over.stop)
    label = days.labelled[:, part].copy()
    if judged is not None:
        label &= judged[:, None]
    counts = label & np.isfinite(predicted.chance)
    rate = np.nan_to_num(days.rate(), nan=-1.0)
    middling = (rate >= MIDDLING[0]) & (rate <= MIDDLING[1])
    return Evaluation(days.changed[:, part], counts, int((label & ~counts).sum()), predicted, middling)
