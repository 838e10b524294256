"""The `pooled` predictor at the size of R's data: 54,816 pages watched for 184 days.

What is measured is a run of `pooled_predictor`: all days gone through, the model fitted on at most a million
sampled rows, and all pages asked about one day. Bars: trained under 5 minutes, applied to all pages under 5 s. The
pages are coins with weekly rhythms and rates of their own; what they are does not change what it costs.

`python -m benchmarks.lab_pooled [PAGES [DAYS]]`
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
from scipy import sparse

from recrawl.lab.predict.days import Days, observed
from recrawl.lab.predict.pooled_predictor import FeatureRows

PAGES, DAYS = 54_816, 184
PER_SITE = 260
ROWS = 1_000_000
TRAINED, APPLIED = 300.0, 5.0
"""Seconds that it may take."""
LASTS = 28
"""Days for which a model is used."""


def pooled(pages: int = PAGES, days: int = DAYS) -> dict[str, float]:
    """Seconds of wall clock and of CPU for each part, and the largest memory."""
    world = made_up(pages, days, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    last = days - 1
    share = min(1.0, ROWS / max(1, int(world.labelled[:, :last].sum())))
    began, cpu = time.perf_counter(), time.process_time()
    rows = FeatureRows(world, 0)
    for day in range(last):
        rows.advance(day, share, rng)
    gone_through = time.perf_counter()
    model = rows.fitted(rng)
    trained, worked = time.perf_counter(), time.process_time()
    cpu = worked - cpu
    features = rows.features(np.arange(pages), last)
    known = time.perf_counter()
    chance = model.probability(features)
    applied = time.perf_counter()
    return {
        "pages": pages,
        "days": days,
        "rows learned from": sum(len(kept[1]) for kept in rows.training_rows),
        "trees": len(model.trees),
        "seconds, going through the days": gone_through - began,
        "seconds, fitting": trained - gone_through,
        "seconds, trained in all": trained - began,
        "CPU seconds, trained in all": cpu,
        "seconds, features of all pages": known - trained,
        "seconds, applied to all pages": applied - trained,
        "CPU seconds, applied to all pages": time.process_time() - worked,
        "Brier score": float(((chance - world.changed[:, last]) ** 2).mean()),
        "MiB at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def made_up(pages: int, days: int, rng: np.random.Generator) -> Days:
    """Pages whose chance to change is their own, and on one weekday another."""
    rate = rng.beta(0.5, 0.7, pages)
    special, other = rng.integers(7, size=pages), rng.beta(0.5, 0.7, pages)
    chance = np.where(np.arange(days) % 7 == special[:, None], other[:, None], rate[:, None])
    version = np.cumsum(rng.random((pages, days)) < chance, axis=1, dtype=np.int64)
    return observed(
        [f"https://s{page // PER_SITE}.example/{page % 7}/{page}" for page in range(pages)],
        1_700_000_000 + 86_400 * np.arange(days),
        version,
        np.ones((pages, days), np.bool_),
        label="text",
        text=np.zeros((pages, days), np.int32),
        bags=sparse.csr_array(np.ones((1, 2), np.uint16)),
    )


if __name__ == "__main__":
    print(json.dumps(pooled(*map(int, sys.argv[1:])), indent=1))
