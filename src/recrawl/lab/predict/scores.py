"""How good predictions are: spec M8, R §7.2, and the paired t-test."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from recrawl.columns import Flags, Floats

MIDDLING = (0.1, 0.9)
"""Change rates in between: over all pages the page's own rate already says most."""


def scored(truth: Flags, chance: Floats, says: Flags, counts: Flags) -> dict[str, float | None]:
    """Accuracy, precision, recall, AUC, Brier score and calibration error over the predictions that count.

    Precision without a yes, recall without a change and AUC with one class only are None: there is nothing to tell.

    >>> yes = np.array([True, True, False, False])
    >>> scored(yes, np.array([0.9, 0.4, 0.2, 0.1]), np.array([1, 0, 0, 0]) > 0, yes | True)["accuracy"]
    0.75
    """
    truth, chance, says = truth[counts], chance[counts], says[counts]
    hits = int((says & truth).sum())
    return {
        "accuracy": float((says == truth).mean()) if len(truth) else None,
        "precision": hits / int(says.sum()) if says.any() else None,
        "recall": hits / int(truth.sum()) if truth.any() else None,
        "auc": auc(truth, chance),
        "brier": float(((chance - truth) ** 2).mean()) if len(truth) else None,
        "calibration_error": calibration_error(truth, chance),
        "change_rate": float(truth.mean()) if len(truth) else None,
    }


def auc(truth: Flags, chance: Floats) -> float | None:
    """How often a change has the higher chance than none; ties count half."""
    yes, no = int(truth.sum()), int((~truth).sum())
    if not yes or not no:
        return None
    rank = stats.rankdata(chance)
    return float((rank[truth].sum() - yes * (yes + 1) / 2) / (yes * no))


def calibration(truth: Flags, chance: Floats, bins: int = 10) -> list[dict[str, float]]:
    """For each tenth of the chances that occurs: what was said, what came, and how often."""
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    return [
        {
            "said": float(chance[place == b].mean()),
            "came": float(truth[place == b].mean()),
            "count": int((place == b).sum()),
        }
        for b in range(bins)
        if (place == b).any()
    ]


def calibration_error(truth: Flags, chance: Floats) -> float | None:
    """The mean distance of what was said from what came."""
    rows = calibration(truth, chance)
    total = sum(row["count"] for row in rows)
    return sum(abs(row["said"] - row["came"]) * row["count"] for row in rows) / total if total else None


def by_page(truth: Flags, says: Flags, counts: Flags) -> Floats:
    """One per page: its accuracy (R §7.2); not a number where nothing counts."""
    right = ((says == truth) & counts).sum(axis=1)
    known = counts.sum(axis=1)
    share: Floats = np.divide(right, known, out=np.full(len(known), np.nan), where=known > 0)
    return share


def paired(one: Floats, other: Floats) -> dict[str, Any]:
    """The paired t-test over pages: the mean difference, and how likely one as large is by chance."""
    both = np.isfinite(one) & np.isfinite(other)
    difference = one[both] - other[both]
    if both.sum() < 2 or np.ptp(difference) == 0:
        return {"pages": int(both.sum()), "difference": float(difference.mean()) if both.any() else None, "p": None}
    test = stats.ttest_rel(one[both], other[both])
    return {"pages": int(both.sum()), "difference": float(difference.mean()), "p": float(test.pvalue)}
