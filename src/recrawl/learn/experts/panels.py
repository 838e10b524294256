"""R's methods on any observations: the margins of single machines, weighted votes, relational union and ensembles.

A *panel* holds target pages, each with its experts: the page itself comes first, with weight 1. `lab.predict.methods`
uses panels on recorded days, `crawl_learner` on the visits of a crawl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.learn.experts import classifiers
from recrawl.learn.experts.classifiers import Problems
from recrawl.learn.experts.features import FeatureWindow, Observations, OwnFeatures, pair_features
from recrawl.learn.experts.selection import Experts

SINGLE_PAGE = ("1d", "2d")
"""Methods that use only the page's own features."""
ENSEMBLES = ("bagging", "boosting")
"""Methods that train several machines per target."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Targets and their experts, as rows of the observations."""

    target: Ints
    expert: Ints
    """Target by rank: the expert, the target itself first; -1 for none."""
    weight: Floats
    """Target by rank: the weight of the expert's vote."""

    @classmethod
    def of(cls, targets: Ints, experts: Experts | None) -> Panel:
        """The panel of these pages; None for the page as its only expert."""
        own, ones = targets[:, None], np.ones((len(targets), 1))
        if experts is None:
            return cls(targets, own, ones)
        expert = np.concatenate((own, experts.page[targets]), axis=1).astype(np.int64)
        return cls(targets, expert, np.concatenate((ones, experts.weight[targets]), axis=1).astype(np.float64))


@dataclass(frozen=True, slots=True)
class Machines:
    """The parameters of the machines."""

    method: str
    train: int
    """Days, or visits, that machines are trained on."""
    cost: float = 1.0
    """The SVM's C."""
    seed: int = 1
    shape: FeatureWindow = field(default_factory=FeatureWindow)


def own_problems(features: OwnFeatures, observed: Observations, machines: Machines, pages: Ints) -> Problems:
    """One problem per page, with the page as its own expert."""
    return Problems(
        features,
        observed.changed,
        observed.labelled,
        pages,
        pages,
        history_only=machines.method == "1d",
        shape=machines.shape,
    )


def day_classifier(
    features: OwnFeatures, observed: Observations, machines: Machines, panel: Panel
) -> Callable[[int], tuple[Flags, Floats]]:
    """A function of the day: decision and margin for each target; NaN where the machines abstain."""
    problems = own_problems(features, observed, machines, panel.target)
    if machines.method in SINGLE_PAGE:
        return lambda day: _decided(classifiers.margins(problems, day, machines.train, machines.cost))
    if machines.method == "3d":
        return _voting(problems, observed, machines, panel)
    # The target stands in for a missing expert.
    expert = np.where(panel.expert >= 0, panel.expert, panel.target[:, None])
    related = _pairs(observed, np.broadcast_to(panel.target[:, None], expert.shape), expert, machines)
    per_expert = [
        replace(problems, expert=expert[:, column], pairs=related[:, column]) for column in range(expert.shape[1])
    ]
    return lambda day: _decided(_union_margins(per_expert, machines, day))


def _voting(
    problems: Problems, observed: Observations, machines: Machines, panel: Panel
) -> Callable[[int], tuple[Flags, Floats]]:
    """The vote of one machine per expert (R fig. 3)."""
    each, row, rank = expert_problems(problems, observed, machines, panel)

    def classify(day: int) -> tuple[Flags, Floats]:
        margin = np.full(panel.expert.shape, np.nan)
        margin[row, rank] = classifiers.margins(each, day, machines.train, machines.cost)
        return classifiers.votes(margin, panel.weight)

    return classify


def expert_problems(
    problems: Problems, observed: Observations, machines: Machines, panel: Panel
) -> tuple[Problems, Ints, Ints]:
    """One problem per target and expert, and their places in the panel; a missing expert has none."""
    row, rank = np.nonzero(panel.expert >= 0)
    target, expert = panel.target[row], panel.expert[row, rank]
    pairs = _pairs(observed, target, expert, machines)
    return replace(problems, target=target, expert=expert, pairs=pairs), row, rank


def _pairs(observed: Observations, target: Ints, expert: Ints, machines: Machines) -> Float32s:
    """The shape of `target`, by day, by feature: kinds 6 and 7."""
    found = pair_features(observed, target.ravel(), expert.ravel(), machines.shape)
    return found.reshape(*target.shape, observed.text.shape[1], -1)


def _decided(margin: Floats) -> tuple[Flags, Floats]:
    return margin > 0, margin


def _union_margins(per_expert: list[Problems], machines: Machines, day: int) -> Floats:
    """Margins of relational union, bagging or boosting."""
    margin = np.full(len(per_expert[0]), np.nan)
    rng = np.random.default_rng([machines.seed, day])
    for part, examples in classifiers.relational_union(per_expert, day, machines.train):
        if machines.method == "bagging":
            margin[part] = classifiers.bagging(examples, machines.cost, rng)[:, 0]
        elif machines.method == "boosting":
            margin[part] = classifiers.boosting(examples, machines.cost)[:, 0]
        else:
            margin[part] = classifiers.single(examples, machines.cost)[:, 0]
    return margin
