"""Machines that tell whether a page will change, each taught by what one page showed (spec L3; R §5).

A *problem* is a target and an expert: examples are the expert's features on past days, labels are whether the target
changed some days later, and the question is asked with the expert's features of today. With the page itself as its only
expert that is R's single expert. With several it is a weighted vote (R fig. 3); with the features of all of them in
one machine, the relational union, which can be bagged or boosted.

Features are brought to variance 1 over the examples of the problem; the distribution of words together counts as
much as one feature. A day without features or without a label is no example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.learn.experts.features import OwnFeatures, Shape
from recrawl.learn.experts.svm import polynomial, solve

LEAST = 10
"""Fewer examples teach nothing: such a machine abstains."""
_FURTHEST = 5.0
_AT_ONCE = 1_000
_BASES = 10
"""Machines that are bagged or boosted."""
_GRID = (0.1, 1.0, 10.0)
_FOLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Targets, their experts, and the features that these bring."""

    own: OwnFeatures
    changed: Flags
    labelled: Flags
    target: Ints
    """One per problem."""
    expert: Ints
    pairs: Float32s | None = None
    """Problem by day by feature: kinds 6 and 7; None in the settings 1D and 2D."""
    flat: bool = False
    """Only the history of changes (1D)."""
    shape: Shape = field(default_factory=Shape)

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What some problems have to learn from for a day: the last example is the question."""

    inner: Floats
    """Problem by example by example: inner products of features."""
    yes: Flags
    use: Flags
    """Problem by example: it has features and a label."""
    asked: Flags
    """One per problem: it has features today and enough examples."""


def lesson(panel: Panel, part: slice, day: int, train: int) -> Lesson:
    """The examples of some problems for the prediction of a day, from the `train` days before it."""
    target, expert = panel.target[part], panel.expert[part]
    labels = slice(day - train, day)
    features = slice(day - train - panel.shape.interval, day - panel.shape.interval + 1)
    there = panel.own.there[expert, features]
    numbers = panel.own.numbers[expert, features]
    if panel.flat:
        numbers = numbers[:, :, : panel.own.flat]
    if panel.pairs is not None:
        numbers = np.concatenate((numbers, panel.pairs[part, features]), axis=2)
    use = there[:, :-1] & panel.labelled[target, labels]
    words = None if panel.flat else panel.own.words[expert, features, features]
    inner = products(numbers.astype(np.float64), words, there, use)
    return Lesson(inner, panel.changed[target, labels], use, there[:, -1] & (use.sum(axis=1) >= LEAST))


def products(numbers: Floats, words: Float32s | None, there: Flags, use: Flags) -> Floats:
    """Inner products between examples, every feature of variance 1 over the examples in use, 1 of them on average."""
    weight = use / np.maximum(use.sum(axis=1, keepdims=True), 1)
    mean = np.einsum("bi,bif->bf", weight, numbers[:, :-1])
    centred = numbers - mean[:, None]
    spread = np.sqrt(np.einsum("bi,bif->bf", weight, centred[:, :-1] ** 2))
    usable = spread > 1e-6 * np.maximum(np.abs(mean), 1.0)
    scale = np.divide(1.0, spread, out=np.zeros(spread.shape), where=usable)
    scaled = np.clip(centred * scale[:, None], -_FURTHEST, _FURTHEST) * there[:, :, None]
    inner = np.matmul(scaled, scaled.transpose(0, 2, 1))
    features = numbers.shape[2]
    if words is not None:
        inner += _words(words.astype(np.float64), weight, there)
        features += 1
    scaled_down: Floats = inner / features
    return scaled_down


def _words(words: Floats, weight: Floats, there: Flags) -> Floats:
    """The part of the words: their inner products about the mean distribution, of variance 1 all together."""
    to_mean = np.einsum("bij,bj->bi", words[:, :, :-1], weight)
    square = np.einsum("bi,bi->b", to_mean[:, :-1], weight)
    centred = words - to_mean[:, :, None] - to_mean[:, None, :] + square[:, None, None]
    spread = np.einsum("bi,bii->b", weight, centred[:, :-1, :-1])
    usable = spread > 1e-6 * np.maximum(square, 1e-12)
    scale = np.divide(1.0, spread, out=np.zeros(len(spread)), where=usable)
    both = there[:, :, None] & there[:, None, :]
    drawn_in: Floats = np.clip(centred * scale[:, None, None], -(_FURTHEST**2), _FURTHEST**2) * both
    return drawn_in


def margins(panel: Panel, day: int, train: int, cost: float = 1.0) -> Floats:
    """One per problem: on which side today lies, over 0 for change; not a number where the expert abstains."""
    found = np.full(len(panel), np.nan)
    for part in _parts(len(panel)):
        taught = lesson(panel, part, day, train)
        kernel = polynomial(taught.inner, 1.0)
        side = solve(kernel[:, :-1, :-1], taught.yes, taught.use * np.float64(cost)).decide(kernel[:, -1, :-1])
        found[part] = np.where(taught.asked, side, np.nan)
    return found


def votes(margin: Floats, weight: Floats) -> tuple[Flags, Floats]:
    """The weighted majority of experts (page by expert), and the weighted mean of how sure they are.

    Who abstains does not count; where all do, the mean is not a number.

    >>> votes(np.array([[1.0, -1.0, -2.0], [np.nan] * 3]), np.array([[1.0, 0.7, 0.7], [1.0] * 3]))
    (array([False, False]), array([-0.45833333,         nan]))
    """
    counts = np.where(np.isfinite(margin), weight, 0.0)
    total = counts.sum(axis=1)
    side = np.where(np.isfinite(margin), margin, 0.0)
    ballot = (counts * np.where(side > 0, 1.0, -1.0)).sum(axis=1)
    # One expert that is very sure must not be the only one who is heard.
    sure = (counts * np.clip(side, -2.0, 2.0)).sum(axis=1)
    return ballot > 0, np.divide(sure, total, out=np.full(len(total), np.nan), where=total > 0)


def united(panels: list[Panel], day: int, train: int) -> Iterator[tuple[slice, Lesson]]:
    """Relational union (R §5.3.2): the features of all experts of a target as those of one machine.

    `panels` have one problem for each target; the first is that of the target itself and says which days count.
    """
    for part in _parts(len(panels[0])):
        first = lesson(panels[0], part, day, train)
        inner = first.inner.copy()
        for panel in panels[1:]:
            inner += lesson(panel, part, day, train).inner
        yield part, Lesson(inner / len(panels), first.yes, first.use, first.asked)


def one(taught: Lesson, cost: float) -> Floats:
    """A single machine."""
    kernel = polynomial(taught.inner, 1.0)
    side = solve(kernel[:, :-1, :-1], taught.yes, taught.use * np.float64(cost)).decide(kernel[:, -1, :-1])
    return np.where(taught.asked, side, np.nan)


def bagged(taught: Lesson, cost: float, rng: np.random.Generator, bases: int = _BASES) -> Floats:
    """The majority of machines taught by examples drawn with replacement (R §5.3.3)."""
    kernel = polynomial(taught.inner, 1.0)
    known = np.maximum(taught.use.sum(axis=1, keepdims=True), 1)
    ballot = np.zeros(len(known))
    for _ in range(bases):
        drawn = rng.multinomial(known[:, 0], taught.use / known)
        machines = solve(kernel[:, :-1, :-1], taught.yes, drawn * np.float64(cost))
        ballot += np.sign(machines.decide(kernel[:, -1, :-1]))
    return np.where(taught.asked, ballot / bases, np.nan)


def boosted(taught: Lesson, cost: float, bases: int = _BASES) -> Floats:
    """AdaBoost (R §5.3.3): every machine looks most at the examples that those before got wrong."""
    kernel = polynomial(taught.inner, 1.0)
    known = np.maximum(taught.use.sum(axis=1, keepdims=True), 1)
    sign = np.where(taught.yes, 1.0, -1.0)
    weight = taught.use / known
    total, trust_sum = np.zeros(len(known)), np.zeros(len(known))
    open_ = np.ones(len(known), np.bool_)
    for _ in range(bases):
        machines = solve(kernel[:, :-1, :-1], taught.yes, cost * weight * known)
        says = np.where(
            np.einsum("bij,bj->bi", kernel[:, :-1, :-1], machines.weight) + machines.bias[:, None] > 0, 1, -1
        )
        error = np.clip((weight * (says != sign)).sum(axis=1), 1e-3, 1.0)
        trust = np.where(open_ & (error < 0.5), 0.5 * np.log((1 - np.minimum(error, 0.5)) / error), 0.0)
        # A first machine that is no better than a coin still has to answer.
        trust = np.where((trust_sum == 0) & (trust == 0), 1e-3, trust) * open_
        total += trust * np.sign(machines.decide(kernel[:, -1, :-1]))
        trust_sum += trust
        open_ &= (error < 0.5) & (error > 1e-3)
        weight = weight * np.exp(-trust[:, None] * sign * says)
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    side = np.divide(total, trust_sum, out=np.zeros(len(total)), where=trust_sum > 0)
    return np.where(taught.asked, side, np.nan)


def calibrated(panel: Panel, day: int, train: int) -> float:
    """The cost of a wrong example that does best on the training days themselves, a third left out in turn.

    R calibrates all parameters on the training data and does not say how; one value for all pages is chosen here.
    """
    right = np.zeros(len(_GRID))
    fold = np.arange(train) * _FOLDS // train
    for part in _parts(len(panel)):
        taught = lesson(panel, part, day, train)
        kernel = polynomial(taught.inner, 1.0)[:, :-1, :-1]
        for number, cost in enumerate(_GRID):
            for out in range(_FOLDS):
                machines = solve(kernel, taught.yes, cost * (taught.use & (fold != out)))
                side = np.einsum("bij,bj->bi", kernel, machines.weight) + machines.bias[:, None]
                right[number] += ((side > 0) == taught.yes)[taught.use & (fold == out)].sum()
    return _GRID[int(right.argmax())]


def _parts(problems: int) -> Iterator[slice]:
    for start in range(0, problems, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, problems))
