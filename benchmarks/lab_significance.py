"""Chi-squared significance (spec C2) of a million pairs of versions; `python -m benchmarks.lab_significance [PAIRS]`.

A version has 150 different words, some of them often; in the next one a tenth of the counts are others. The pairs are
made some at a time, so that only the test is measured, and so that they fit into memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
from scipy import sparse

from recrawl.compare.significance import significant_many
from recrawl.compare.terms import BUCKETS

PAIRS = 1_000_000
AT_ONCE = 50_000
WORDS = 150
SECONDS = 60.0


def significance(pairs: int = PAIRS) -> dict[str, float]:
    """CPU seconds for the test alone."""
    rng = np.random.default_rng(1)
    took = worked = 0.0
    significant = 0
    for start in range(0, pairs, AT_ONCE):
        old, new = _pairs(min(AT_ONCE, pairs - start), rng)
        began, cpu = time.perf_counter(), time.process_time()
        significant += int(significant_many(old, new, np.ones(old.shape[0], np.bool_)).sum())
        took, worked = took + time.perf_counter() - began, worked + time.process_time() - cpu
    return {
        "pairs": pairs,
        "words of a version": WORDS,
        "seconds": round(took, 2),
        "CPU seconds": round(worked, 2),
        "significant": round(significant / pairs, 3),
        "MiB at most": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _pairs(many: int, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Versions and those that follow them."""
    step = BUCKETS // WORDS
    words = (np.arange(WORDS) * step + rng.integers(0, step, (many, WORDS))).astype(np.int32).ravel()
    counts = np.minimum(rng.zipf(1.8, (many, WORDS)), 60).astype(np.uint16)
    moved = np.where(rng.random((many, WORDS)) < 0.1, rng.integers(1, 12, (many, WORDS)), counts).astype(np.uint16)
    start = np.arange(many + 1, dtype=np.int64) * WORDS
    shape = (many, BUCKETS)
    return sparse.csr_array((counts.ravel(), words, start), shape), sparse.csr_array(
        (moved.ravel(), words, start), shape
    )


if __name__ == "__main__":
    print(json.dumps(significance(*map(int, sys.argv[1:]))))
