"""Single and multiple experts that go on learning (spec L5): each day is taken in once, as it comes.

Features, experts and the vote are those of `methods`; the machines differ (`update.experts.online_learner`). The
distribution of words is summed with random signs into a few numbers, since a machine that keeps no old day cannot
compare with one. Where experts were chosen by cross-correlation, how much each counts is kept up to date too, from
the newest snapshot alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.lab.predict.days import Days
from recrawl.learn.experts.classifiers import MIN_EXAMPLES, votes
from recrawl.learn.experts.features import FeatureWindow, Observations, numeric_features, pair_features, row_sums
from recrawl.learn.experts.incremental import IncrementalRelations
from recrawl.learn.experts.online_learner import OnlineClassifiers
from recrawl.learn.experts.selection import Experts
from recrawl.learn.experts.word_dynamics import WordDynamics

SKETCH = 4
"""Numbers that stand for the distribution of words."""
_TARGETS = 250
_SEED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """What all machines look at: pages by day."""

    days: Days
    shape: FeatureWindow
    observations: Observations
    values: Float32s
    present: Flags
    words: Float32s
    """Text by number."""

    @classmethod
    def of(cls, days: Days, shape: FeatureWindow) -> Stream:
        """From days."""
        observations = Observations(days.bags, days.text, days.changed, days.labelled)
        values, _, present = numeric_features(observations, shape)
        return cls(days, shape, observations, values, present, sketched(days.bags, observations.known))


def sketched(bags: sparse.csr_array, text: Int32s) -> Float32s:
    """Text by number: the shares of words summed with random signs; only of texts that occur."""
    rng = np.random.default_rng(_SEED)
    wide = bags.shape[1]
    signs = rng.choice(np.array([-1.0, 1.0], np.float32), size=wide)
    mix = sparse.csr_array((signs, (np.arange(wide), rng.integers(SKETCH, size=wide))), shape=(wide, SKETCH))
    found = np.zeros((bags.shape[0] + 1, SKETCH), np.float32)  # the last stands for a page that was never seen
    used = np.unique(text[text >= 0])
    chosen = bags[used].astype(np.float32)
    found[used] = (chosen @ mix).toarray() / np.maximum(row_sums(chosen), 1.0)[:, None]
    return found


def scores(
    days: Days,
    asked: range,
    train: int,
    shape: FeatureWindow,
    chosen: Experts | None,
    words: WordDynamics | None,
    targets: Ints,
) -> tuple[Flags, Floats]:
    """Page by day asked: yes or no, and how sure. Learning begins `train` days before the first day asked.

    `words` are those by which experts were chosen, from the days before the first one asked.
    """
    begin = max(0, asked.start - train - 2 * shape.interval - shape.window)
    stream = Stream.of(days.between(begin, asked.stop), shape)
    says = np.zeros((len(days), len(asked)), np.bool_)
    score = np.full((len(days), len(asked)), np.nan)
    weight = None if chosen is None else weights(days, asked, chosen, words, targets)
    first = max(shape.interval, asked.start - train - begin)
    for start, stop in pairwise([*range(0, len(targets), _TARGETS), len(targets)]):
        some = targets[start:stop]
        for day, margin in _margins(stream, range(first, asked.stop - begin), chosen, some):
            place = day + begin - asked.start
            if place >= 0 and weight is None:
                says[some, place], score[some, place] = margin[:, 0] > 0, margin[:, 0]
            elif place >= 0 and weight is not None:
                says[some, place], score[some, place] = votes(margin, weight[place, start:stop])
    return says, score


def weights(days: Days, asked: range, chosen: Experts, words: WordDynamics | None, targets: Ints) -> Floats:
    """Day asked by target by expert, the target itself first: how much votes count, from the days before."""
    found = np.ones((len(asked), len(targets), chosen.page.shape[1] + 1))
    found[:, :, 1:] = chosen.weight[targets]
    known = chosen.page[targets] >= 0
    if chosen.kind != "xcorr" or words is None or not known.any():
        return found
    a = np.broadcast_to(targets[:, None], known.shape)[known]
    following = IncrementalRelations(words, a, chosen.page[targets][known].astype(np.int64))
    for day in range(asked.stop):
        if day >= asked.start:
            found[day - asked.start, :, 1:][known] = following.weights()
        following.add(days.counts(day), days.seen[:, day])
    return found


def _margins(stream: Stream, days: range, chosen: Experts | None, targets: Ints) -> Iterator[tuple[int, Floats]]:
    """For each day, target by expert: on which side the day lies, not a number where the expert abstains."""
    expert = targets[:, None]
    if chosen is not None:
        expert = np.concatenate((expert, chosen.page[targets]), axis=1).astype(np.int64)
    places = expert.shape
    # In place of nobody the target itself looks: its vote has no weight.
    expert = np.where(expert >= 0, expert, targets[:, None]).ravel()
    target = np.repeat(targets, places[1])
    values, present = stream.values[expert], stream.present[expert]
    if chosen is not None:
        values = np.concatenate((values, pair_features(stream.observations, target, expert, stream.shape)), axis=2)
    machines = OnlineClassifiers(len(target), values.shape[2] + SKETCH, grouped=SKETCH)
    labelled, changed = stream.days.labelled[target], stream.days.changed[target]
    for day in days:
        before = day - stream.shape.interval
        words = stream.words[stream.observations.known[expert, before]]
        seen = machines.scale(np.concatenate((values[:, before], words), axis=1), present[:, before])
        asked = present[:, before] & (machines.examples >= MIN_EXAMPLES)
        yield day, np.where(asked, machines.margin(seen), np.nan).reshape(places)
        machines.update(seen, changed[:, day], present[:, before] & labelled[:, day])
