"""Plans of `shock` that take pages of like value in another order, for `benchmarks.cluster ties`."""

from __future__ import annotations

import numpy as np

from recrawl.choose.shock.plan import ShockPlan
from recrawl.choose.shock.policy import Shock
from recrawl.choose.top_k import rank_within

LIKE = 0.02
"""Values that differ by less are like."""


class Nudged(ShockPlan):
    """A plan that takes pages of like value in another order."""

    def best(self, value, count, per_group):
        return super().best((value * (1 + LIKE * self.nudges(value))).astype(np.float32), count, per_group)


class Random(Nudged):
    def nudges(self, value):
        return np.random.default_rng([len(value), int(self._book.now)]).random(len(value))


class Spread(Nudged):
    def nudges(self, value):
        order, rank = np.argsort(-value, kind="stable"), np.empty(len(value))
        rank[order] = rank_within(self.change_model.shocks.groups.of[order])
        return 1 / (1 + rank)


class Reordered(Shock):
    """The policy with such a plan."""

    def __init__(self, plan: type[Nudged]) -> None:
        super().__init__()
        self._plan = plan

    def plan(self, book, open_, budget, *, pages=0, weighted=False):
        return self._plan(book, open_, budget, pages=pages, weighted=weighted)


ORDERS = {"random": Random, "spread over groups": Spread}
