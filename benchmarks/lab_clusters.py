"""Clusters of similar pages at the size of T's experiments (spec S4): 284,692 pages of 210 sites.

The pages are made up as counts, not as texts: word lengths, distinct words and words of addresses are like those of
real documentation, project and news sites. What is measured is what a replay pays once: features and clusters, on one
core, and the largest memory of the process, the pages' word counts (most of it) included.

`python -m benchmarks.lab_clusters [PAGES]`
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy import sparse

from recrawl.compare.terms import BUCKETS, stacked
from recrawl.learn.structure.bisection import bisect
from recrawl.learn.structure.clusters import cluster, how_many
from recrawl.learn.structure.page_features import PageFacts, learn_features

PAGES = 284_692
SITES = 210
BATCH = 1_024
OWN_WORDS = 4_000


def clusters(pages: int = PAGES, seed: int = 1) -> dict[str, float]:
    """What features and clusters of so many pages cost."""
    facts = made_up(pages, np.random.default_rng(seed))
    before, cpu = time.perf_counter(), time.process_time()
    rng = np.random.default_rng(seed)
    _, matrix = learn_features(facts, rng)
    featured = time.perf_counter()
    found = bisect(matrix.astype(np.float64), how_many(pages), rng)
    clustered, cpu = time.perf_counter(), time.process_time() - cpu
    built = cluster(facts.take(np.arange(min(pages, 10_000))), rng)
    rebuilt = time.perf_counter()
    built.assign(facts.take(np.arange(min(pages, 10_000))))
    return {
        "pages": pages,
        "distinct words a page": facts.words.nnz / pages,
        "clusters": len(found),
        "seconds, features": featured - before,
        "seconds, clusters": clustered - featured,
        "seconds, both": clustered - before,
        "CPU seconds, both": cpu,
        "µs a page to assign": (time.perf_counter() - rebuilt) / min(pages, 10_000) * 1e6,
        "MiB at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def made_up(pages: int, rng: np.random.Generator) -> PageFacts:
    """Facts of pages of many sites, each with words of its own among those of everyone."""
    site = np.sort(rng.integers(SITES, size=pages))
    draws = np.clip(rng.lognormal(np.log(500), 0.8, pages), 5, 8_000).astype(np.int64)
    words = _counts(site, draws, rng)
    return PageFacts(
        words=words,
        url_words=_counts(site, rng.integers(5, 14, size=pages), rng),
        word_count=draws * 3,
        in_links=rng.zipf(2.0, pages).clip(max=10_000),
        out_links=rng.poisson(rng.gamma(2.0, 20.0, pages)),
        images=rng.poisson(rng.gamma(0.5, 8.0, pages)),
        tld=rng.choice(30, SITES, p=np.arange(30, 0, -1) / 465)[site],
        depth=rng.integers(1, 7, size=pages),
        size=draws * 60,
    )


def _counts(site: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> sparse.csr_array:
    """Words by a power law; half of them from the site's own."""

    def part(begin: int) -> sparse.csr_array:
        counts = draws[begin : begin + BATCH]
        total = int(counts.sum())
        rank = np.exp(rng.random(total, np.float32) * np.float32(np.log(120_000))).astype(np.int64)
        own = (np.repeat(site[begin : begin + BATCH], counts) + 1) * 1_000_003 + rank % OWN_WORDS
        word = np.where(rng.random(total, np.float32) < 0.5, own, rank)
        column = (((word * 2_654_435_761) >> 7) % BUCKETS).astype(np.int32)
        start = np.concatenate(([0], np.cumsum(counts)))
        found = sparse.csr_array((np.ones(total, np.int32), column, start), shape=(len(counts), BUCKETS))
        found.sum_duplicates()
        return found

    return stacked(map(part, range(0, len(site), BATCH)))


if __name__ == "__main__":
    for name, value in clusters(int(sys.argv[1]) if len(sys.argv) > 1 else PAGES).items():
        print(f"{name:24} {value:,.1f}")
