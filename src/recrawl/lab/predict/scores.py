"""Scores of predictions (spec M8, R §7.2), and the paired t-test."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats
from recrawl.extras import scipy

MIDDLING = (0.1, 0.9)
"""Change rates between these are *middling*; outside, a page's own rate already predicts almost everything."""


def score_predictions(truth: Flags, probability: Floats, decision: Flags, evaluated: Flags) -> dict[str, float | None]:
    """Accuracy, precision, recall, AUC, Brier score and calibration error over the evaluated predictions.

    Precision without a yes, recall without a change and AUC with one class only are undefined (None).

    >>> yes = np.array([True, True, False, False])
    >>> score_predictions(yes, np.array([0.9, 0.4, 0.2, 0.1]), np.array([1, 0, 0, 0]) > 0, yes | True)["accuracy"]
    0.75
    """
    truth, probability, decision = truth[evaluated], probability[evaluated], decision[evaluated]
    hits = int((decision & truth).sum())
    return {
        "accuracy": float((decision == truth).mean()) if len(truth) else None,
        "precision": hits / int(decision.sum()) if decision.any() else None,
        "recall": hits / int(truth.sum()) if truth.any() else None,
        "auc": auc(truth, probability),
        "brier": float(((probability - truth) ** 2).mean()) if len(truth) else None,
        "calibration_error": calibration_error(truth, probability),
        "change_rate": float(truth.mean()) if len(truth) else None,
    }


def auc(truth: Flags, probability: Floats) -> float | None:
    """The probability that a change has a higher predicted probability than a non-change; ties count half."""
    yes, no = int(truth.sum()), int((~truth).sum())
    if not yes or not no:
        return None
    rank = scipy.stats.rankdata(probability)
    return float((rank[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def calibration(truth: Flags, probability: Floats, bins: int = 10) -> list[dict[str, float]]:
    """For each tenth of predicted probability that occurs: the mean prediction, the observed rate, and the count."""
    tenth = np.minimum((probability * bins).astype(np.int64), bins - 1)
    return [
        {
            "said": float(probability[tenth == b].mean()),
            "came": float(truth[tenth == b].mean()),
            "count": int((tenth == b).sum()),
        }
        for b in range(bins)
        if (tenth == b).any()
    ]


def calibration_error(truth: Flags, probability: Floats) -> float | None:
    """The mean distance between predicted probability and observed rate."""
    rows = calibration(truth, probability)
    total = sum(row["count"] for row in rows)
    return sum(abs(row["said"] - row["came"]) * row["count"] for row in rows) / total if total else None


def by_page(truth: Flags, decision: Flags, evaluated: Flags) -> Floats:
    """One per page: its accuracy (R §7.2); NaN where nothing was evaluated."""
    correct = ((decision == truth) & evaluated).sum(axis=1)
    total = evaluated.sum(axis=1)
    accuracy: Floats = np.divide(correct, total, out=np.full(len(total), np.nan), where=total > 0)
    return accuracy


def paired(first: Floats, second: Floats) -> dict[str, Any]:
    """The paired t-test over pages: the mean difference, and its p-value."""
    both = np.isfinite(first) & np.isfinite(second)
    difference = first[both] - second[both]
    if both.sum() < 2 or np.ptp(difference) == 0:
        return {"pages": int(both.sum()), "difference": float(difference.mean()) if both.any() else None, "p": None}
    test = scipy.stats.ttest_rel(first[both], second[both])
    return {"pages": int(both.sum()), "difference": float(difference.mean()), "p": float(test.pvalue)}
