"""Machines that are trained once and asked on later days (R §8.3: batch crawling, without training in the crawl).

    machines = FrozenMachines.fit(known, PredictionSetting("3d", train=100), day=100)
    machines.probability(known_later, 103)

The features of a later day come from what is known by then; training examples, experts and calibration stay those of
the day of the fit. Platt calibration is fitted to margins from cross-validation on the training examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.predict.days import Days
from recrawl.lab.predict.methods import PredictionSetting, chosen_experts
from recrawl.learn.experts.classifiers import Problems, TrainingSet, select_cost, training_set, votes
from recrawl.learn.experts.features import Observations, own_features
from recrawl.learn.experts.panels import Machines, Panel, expert_problems, own_problems
from recrawl.learn.experts.svm import PlattCurve, TrainedSVMs, fit_platt_curve, polynomial, solve

_BATCH = 1_000
_FOLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class FrozenMachines:
    """Single or multiple experts of all pages, as of one day."""

    machines: Machines
    panel: Panel
    day: int
    trained: list[TrainedSVMs]
    curve: PlattCurve

    @classmethod
    def fit(cls, known: Days, setting: PredictionSetting, day: int) -> FrozenMachines:
        """Train on the `train` days before a day; the method is 2d or 3d."""
        experts = None if setting.method == "2d" else chosen_experts(known, setting, day)
        panel = Panel.of(np.arange(len(known)), experts)
        own, *_ = _problems(known, replace(setting, method="2d").machines(), Panel.of(panel.target, None), day + 1)
        machines = setting.machines(select_cost(own, day, setting.train))
        problems, *place = _problems(known, machines, panel, day + 1)
        trained: list[TrainedSVMs] = []
        margin = np.full((len(known), panel.expert.shape[1], setting.train), np.nan)
        for part, examples in _examples(problems, day, setting.train):
            kernel = polynomial(examples.inner, 1.0)[:, :-1]
            trained.append(solve(kernel, examples.label, examples.usable * np.float64(machines.cost)))
            enough = examples.answerable[:, None] & examples.usable
            margin[place[0][part], place[1][part]] = np.where(
                enough, _out_of_fold(kernel, examples, machines.cost), np.nan
            )
        label = known.changed[:, day - setting.train : day]
        return cls(machines, panel, day, trained, _calibrated(margin, panel.weight, label))

    def probability(self, known: Days, day: int) -> Floats:
        """One per page: the probability of a change on a day; NaN where the machines abstain."""
        return self.curve(self.margin(known, day))

    def margin(self, known: Days, day: int) -> Floats:
        """One per page: the weighted mean margin of its machines, above 0 for a change."""
        problems, *place = _problems(known, self.machines, self.panel, day + 1)
        margin = np.full(self.panel.expert.shape, np.nan)
        parts = _examples(problems, self.day, self.machines.train, day - self.day)
        for trained, (part, examples) in zip(self.trained, parts, strict=True):
            query = polynomial(examples.inner, 1.0)[:, -1]
            margin[place[0][part], place[1][part]] = np.where(examples.answerable, trained.margin(query), np.nan)
        return margin[:, 0] if self.machines.method == "2d" else votes(margin, self.panel.weight)[1]


def _problems(known: Days, machines: Machines, panel: Panel, stop: int) -> tuple[Problems, Ints, Ints]:
    """The problems of the panel, and their places in it, from the days before `stop`."""
    days = known.between(0, stop)
    observed = Observations(days.bags, days.text, days.changed, days.labelled)
    problems = own_problems(own_features(observed, machines.shape), observed, machines, panel.target)
    if machines.method == "2d":
        return problems, panel.target, np.zeros(len(panel.target), np.int64)
    return expert_problems(problems, observed, machines, panel)


def _examples(problems: Problems, day: int, train: int, ahead: int = 0) -> Iterator[tuple[slice, TrainingSet]]:
    for start in range(0, len(problems), _BATCH):
        part = slice(start, min(start + _BATCH, len(problems)))
        yield part, training_set(problems, part, day, train, ahead)


def _out_of_fold(kernel: Floats, examples: TrainingSet, cost: float) -> Floats:
    """Problem by example: the margin of a machine that was not trained on the example."""
    fold = np.arange(kernel.shape[1]) * _FOLDS // kernel.shape[1]
    side = np.full(examples.label.shape, np.nan)
    for number in range(_FOLDS):
        out = fold == number
        machine = solve(kernel, examples.label, np.where(out, 0.0, cost) * examples.usable)
        side[:, out] = np.einsum("bij,bj->bi", kernel[:, out], machine.weight) + machine.bias[:, None]
    return side


def _calibrated(margin: Floats, weight: Floats, label: Flags) -> PlattCurve:
    """From margins (page by expert by example) and labels (page by example)."""
    by_example = np.stack([votes(margin[:, :, place], weight)[1] for place in range(margin.shape[2])], axis=1)
    known = np.isfinite(by_example)
    return fit_platt_curve(by_example[known], label[known])
