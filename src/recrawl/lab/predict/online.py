"""R's single and multiple experts, updated day by day instead of being retrained (spec L5).

Features, experts and the vote are those of `methods`; the classifiers differ (`learn.experts.online_learner`). The word
distribution is projected with random signs to a few numbers, since a classifier that keeps no old day cannot compare
with one. Where experts were chosen by cross-correlation, their weights are updated too, from the newest snapshot alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.lab.predict.days import Days
from recrawl.learn.experts.classifiers import MIN_EXAMPLES, votes
from recrawl.learn.experts.features import FeatureWindow, Observations, numeric_features, pair_features, row_sums
from recrawl.learn.experts.online_learner import IncrementalRelations, OnlineClassifiers
from recrawl.learn.experts.selection import Experts
from recrawl.learn.experts.word_dynamics import WordDynamics

SKETCH = 4
"""Numbers that represent the word distribution."""
_BATCH = 250
_SEED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The features of all pages on all days."""

    days: Days
    shape: FeatureWindow
    observations: Observations
    values: Float32s
    present: Flags
    words: Float32s
    """Text by number: the word sketch."""

    @classmethod
    def of(cls, days: Days, shape: FeatureWindow) -> Stream:
        """The features of `days`."""
        observations = Observations(days.bags, days.text, days.changed, days.labelled)
        values, _, present = numeric_features(observations, shape)
        return cls(days, shape, observations, values, present, word_sketch(days.bags, observations.known))


def word_sketch(bags: sparse.csr_array, text: Int32s) -> Float32s:
    """Text by number: word shares summed with random signs, for the texts that occur."""
    rng = np.random.default_rng(_SEED)
    width = bags.shape[1]
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=width)
    projection = sparse.csr_array((signs, (np.arange(width), rng.integers(SKETCH, size=width))), shape=(width, SKETCH))
    sketch = np.zeros((bags.shape[0] + 1, SKETCH), np.float32)  # the last row is for a page that was never observed
    used = np.unique(text[text >= 0])
    counts = bags[used].astype(np.float32)
    sketch[used] = (counts @ projection).toarray() / np.maximum(row_sums(counts), 1.0)[:, None]
    return sketch


def scores(
    days: Days,
    scored_days: range,
    train: int,
    shape: FeatureWindow,
    experts: Experts | None,
    words: WordDynamics | None,
    targets: Ints,
) -> tuple[Flags, Floats]:
    """Page by scored day: decision and margin. Learning begins `train` days before the first scored day.

    `words` are the dynamics by which the experts were chosen, from the days before the first scored day.
    """
    first_day = max(0, scored_days.start - train - 2 * shape.interval - shape.window)
    stream = Stream.of(days.between(first_day, scored_days.stop), shape)
    decision = np.zeros((len(days), len(scored_days)), np.bool_)
    score = np.full((len(days), len(scored_days)), np.nan)
    weight = None if experts is None else vote_weights_by_day(days, scored_days, experts, words, targets)
    first = max(shape.interval, scored_days.start - train - first_day)
    for start, stop in pairwise([*range(0, len(targets), _BATCH), len(targets)]):
        batch = targets[start:stop]
        for day, margin in _margins(stream, range(first, scored_days.stop - first_day), experts, batch):
            column = day + first_day - scored_days.start
            if column >= 0 and weight is None:
                decision[batch, column], score[batch, column] = margin[:, 0] > 0, margin[:, 0]
            elif column >= 0 and weight is not None:
                decision[batch, column], score[batch, column] = votes(margin, weight[column, start:stop])
    return decision, score


def vote_weights_by_day(
    days: Days, scored_days: range, experts: Experts, words: WordDynamics | None, targets: Ints
) -> Floats:
    """Scored day by target by expert, the target itself first: the weight of each vote, from the days before."""
    vote_weights = np.ones((len(scored_days), len(targets), experts.page.shape[1] + 1))
    vote_weights[:, :, 1:] = experts.weight[targets]
    known = experts.page[targets] >= 0
    if experts.kind != "xcorr" or words is None or not known.any():
        return vote_weights
    a = np.broadcast_to(targets[:, None], known.shape)[known]
    relations = IncrementalRelations(words, a, experts.page[targets][known].astype(np.int64))
    for day in range(scored_days.stop):
        if day >= scored_days.start:
            vote_weights[day - scored_days.start, :, 1:][known] = relations.weights()
        relations.add(days.counts(day), days.seen[:, day])
    return vote_weights


def _margins(stream: Stream, days: range, experts: Experts | None, targets: Ints) -> Iterator[tuple[int, Floats]]:
    """For each day, target by expert: the margin; NaN where the expert abstains."""
    expert = targets[:, None]
    if experts is not None:
        expert = np.concatenate((expert, experts.page[targets]), axis=1).astype(np.int64)
    shape = expert.shape
    # The target stands in for a missing expert; that vote has weight 0.
    expert = np.where(expert >= 0, expert, targets[:, None]).ravel()
    target = np.repeat(targets, shape[1])
    values, present = stream.values[expert], stream.present[expert]
    if experts is not None:
        values = np.concatenate((values, pair_features(stream.observations, target, expert, stream.shape)), axis=2)
    classifiers = OnlineClassifiers(len(target), values.shape[2] + SKETCH, grouped=SKETCH)
    labelled, changed = stream.days.labelled[target], stream.days.changed[target]
    for day in days:
        feature_day = day - stream.shape.interval
        words = stream.words[stream.observations.known[expert, feature_day]]
        seen = classifiers.scale(np.concatenate((values[:, feature_day], words), axis=1), present[:, feature_day])
        answerable = present[:, feature_day] & (classifiers.examples >= MIN_EXAMPLES)
        yield day, np.where(answerable, classifiers.margin(seen), np.nan).reshape(shape)
        classifiers.update(seen, changed[:, day], present[:, feature_day] & labelled[:, day])
