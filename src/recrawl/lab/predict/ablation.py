"""Which information pays: the `pooled` predictor with everything, then without each family of features in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from recrawl.lab.predict.days import Days
from recrawl.lab.predict.methods import Predictions
from recrawl.lab.predict.pooled_predictor import FAMILIES, predict
from recrawl.lab.predict.protocol import outcome


def ablation(
    days: Days, train: int, test_days: range, seed: int, families: Collection[str] = FAMILIES
) -> Iterator[dict[str, Any]]:
    """For all features, then without each family: accuracy, AUC, Brier score, over all and over middling pages."""
    for family in ("", *families):
        chance = predict(days, train, test_days, seed, without=(family,) if family else ())
        told = Predictions(chance, chance >= 0.5, np.zeros(chance.shape, np.bool_))
        yield {"without": family or "nothing", **outcome(days, told, test_days).summary()}
