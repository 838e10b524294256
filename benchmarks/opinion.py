"""Fits the weights of the second opinion (`recrawl.learn.opinion`) on replays of archives.

    python -m benchmarks.opinion ARCHIVE... [--cycles 365]

The policy `shock` is replayed at three budgets, exploring more than usual, and what it saw of every page that it
visited is written down beside what it found. A logistic regression on that, each budget counting the same, gives the
weights. They are printed as they stand in the source. Half of the sites, drawn by chance, are kept back to say how well
the weights do on sites that they have not seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from recrawl.choose.shock import Plan, Shock
from recrawl.lab.histories import open_history
from recrawl.lab.replay import Setup, replay
from recrawl.learn.opinion import NAMES

BUDGETS = (0.0025, 0.01, 0.04)


class Noting(Plan):
    """A plan that keeps what it saw of pages before they were visited."""

    rows: list

    def take(self, seen):
        told = seen.pages[seen.answered]
        self.rows.append((self.evidence(told), seen.changed[seen.answered], self._book.site[told].copy()))
        super().take(seen)

    def drawn(self, rng):
        return rng.random(len(self.pages)) if rng.random() < 0.3 else super().drawn(rng)


class Exploring(Shock):
    def __init__(self, rows):
        super().__init__(explore=0.35)
        self.rows = rows

    def plan(self, book, open_):
        plan = Noting(book, open_)
        plan.rows = self.rows
        return plan


def collect(history, cycles):
    parts = []
    for budget in BUDGETS:
        rows = []
        visits = max(1, round(budget * len(history)))
        record = replay(history, Exploring(rows), Setup(budget=visits, cycle=86400.0, cycles=cycles))
        seen, found, site = (np.concatenate(column) for column in zip(*rows, strict=True))
        parts.append((seen, found, site, np.full(len(found), 1.0 / len(found))))
        print(f"budget {budget}: {len(found):,} rows, change ratio {record.change_ratio:.3f}", flush=True)
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def fit(seen, found, weight):
    middle, spread = seen.mean(axis=0), seen.std(axis=0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit((seen - middle) / spread, found, sample_weight=weight * len(weight))
    weights = model.coef_[0] / spread
    return weights, float(model.intercept_[0] - (middle * weights).sum())


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("archives", nargs="+", type=Path)
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    seen, found, site, weight = collect(open_history(asked.archives, cache=asked.cache), asked.cycles)
    known = np.random.default_rng(0).random(site.max() + 1) < 0.5
    learnt = known[site]
    weights, bias = fit(seen[learnt], found[learnt], weight[learnt])
    chance = 1 / (1 + np.exp(-(seen @ weights + bias)))
    belief = 1 / (1 + np.exp(-seen[:, 0]))
    for name, value in (("belief alone", belief), ("second opinion", chance)):
        scores = [
            f"{told} AUC {roc_auc_score(found[part], value[part], sample_weight=weight[part]):.3f}, "
            f"log loss {log_loss(found[part], np.clip(value[part], 1e-4, 1 - 1e-4), sample_weight=weight[part]):.3f}"
            for told, part in (("known sites:", learnt), ("others:", ~learnt))
        ]
        print(f"{name}: {'; '.join(scores)}")
    weights, bias = fit(seen, found, weight)
    print("WEIGHTS = np.array([" + ", ".join(f"{value:.3f}" for value in weights) + "])")
    print(f"BIAS = {bias:.3f}")
    print(dict(zip(NAMES, weights.round(2).tolist(), strict=True)))


if __name__ == "__main__":
    main()
