"""R's features and machines over the visits of a crawl instead of days (spec L1, partially observed).

The time axis of a target is its own visits: column c is the moment just before its visit c + 1, the last column is now.
In column c the target is as its visit c found it, and an expert is as its last visit before that moment found it. The
label of column c is whether visit c found a change. So an example is what a crawler knew just before a visit, and what
the visit found; a page that was not visited in a cycle has no label and no new features for it.

A crawl visits a page a few times a month, so the machines are not R's one per page: one machine learns from the visits
of all pages, with the page's own rate among its features, and for `3d` a second one from their experts. They answer
from a page's third visit on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recrawl.book import LinkGraph
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.learn.experts import classifiers
from recrawl.learn.experts.classifiers import FOLDS, MIN_EXAMPLES, TrainingSet, best_cost
from recrawl.learn.experts.features import (
    FeatureWindow,
    Observations,
    numeric_features,
    pair_features,
    rows_of_counts,
)
from recrawl.learn.experts.panels import ENSEMBLES, SINGLE_PAGE, Machines, Panel
from recrawl.learn.experts.selection import Experts, by_content, by_graph, by_time
from recrawl.learn.experts.visit_log import NO_LABEL, VisitLog
from recrawl.learn.experts.word_dynamics import word_dynamics

MAX_EXAMPLES = 500
"""Examples that a machine is fitted to, the newest."""


def predictable(log: VisitLog) -> Ints:
    """Slots with features: their last two visits are known."""
    return np.flatnonzero((log.text[:, -2:] >= 0).all(axis=1))


def choose_experts(
    log: VisitLog,
    how: str,
    k: int,
    lags: tuple[int, int],
    moments: Floats,
    links: LinkGraph | None,
    omega: str = "last",
) -> Experts:
    """The experts of every slot among the tracked pages (spec L4); `moments` are the ends of the last cycles."""
    if how == "graph":
        return by_graph(_links_among(links, log.page), k)
    if how == "content":
        return by_content(rows_of_counts(log.bags, log.text[:, -1]), k)
    times = np.broadcast_to(np.nextafter(moments, np.inf), (len(log), len(moments)))
    dynamics = word_dynamics(log.bags, log.text_at(np.arange(len(log)), times), omega=omega)
    return by_time(dynamics, k, how, lags[1], first_lag=lags[0])


def margins(log: VisitLog, machines: Machines, panel: Panel, *, tune: bool = False) -> tuple[Floats, float, int]:
    """Fit the machines that all pages share, and ask them about a visit now.

    Returns the margin of each target of the panel (slots of the log), above 0 for a change and NaN where there is no
    answer; the cost parameter, with `tune` the best one in cross-validation over pages; and the number of machines.
    """
    nothing = np.full(len(panel.target), np.nan), machines.cost, 0
    if not len(panel.target):
        return nothing
    if machines.method in SINGLE_PAGE:
        panel = Panel.of(panel.target, None)
    shared = SharedExamples.of(log, machines, panel)
    own = shared.training(slice(0, 1))
    if own is None:
        return nothing
    if machines.method in ("union", *ENSEMBLES):
        own = shared.union(own)
    cost = best_cost([own.examples], own.page % FOLDS) if tune else machines.cost
    rng = np.random.default_rng([machines.seed, int((~np.isnan(log.at)).sum())])

    def side(it: TrainingSet) -> Floats:
        if machines.method == "bagging":
            return classifiers.bagging(it, cost, rng)
        return (classifiers.boosting if machines.method == "boosting" else classifiers.single)(it, cost)

    vote = np.full(panel.expert.shape, np.nan)
    vote[own.asked, 0] = side(own.examples)[0]
    if machines.method != "3d":
        return vote[:, 0], cost, classifiers.ENSEMBLE if machines.method in ENSEMBLES else 1
    theirs = shared.training(slice(1, None))
    if theirs is not None:
        vote[theirs.asked, theirs.rank] = side(theirs.examples)[0]
    return classifiers.votes(vote, panel.weight)[1], cost, 1 + (theirs is not None)


@dataclass(frozen=True, slots=True)
class Taught:
    """Examples and queries of many pages for one machine."""

    examples: TrainingSet
    page: Ints
    """One per example: its target, as a row of the panel."""
    asked: Ints
    """One per query: its target."""
    rank: Ints
    """One per query: the rank of the expert."""
    column: Ints
    """One per example, then per query: the column of its features."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedExamples:
    """The visits of all targets of a panel, from which machines for all of them learn.

    An example is what was known of a target, or of an expert of it, at a visit of the target, and what its next visit
    found; its features are R's, and the log odds by the target's own rate. Only the newest examples are used.
    """

    observed: Observations
    panel: Panel
    numbers: Float32s
    """Row of the observations by column by feature."""
    present: Flags
    labelled: Flags
    """Target by column: the visit to predict from here has a result."""
    changed: Flags
    at: Floats
    """Target by column: the time of the visit."""
    odds: Float32s
    shape: FeatureWindow

    @classmethod
    def of(cls, log: VisitLog, machines: Machines, panel: Panel) -> SharedExamples:
        """The examples of these targets."""
        observed, rows = _observations(log, panel)
        numbers, _, present = numeric_features(observed, machines.shape)
        targets, ahead = len(rows.expert), machines.shape.interval
        labelled = np.zeros((targets, present.shape[1]), bool)
        changed = np.zeros_like(labelled)
        labelled[:, :-ahead] = observed.labelled[:targets, ahead:]
        changed[:, :-ahead] = observed.changed[:targets, ahead:]
        at, odds = log.at[panel.target], log.odds[panel.target]
        return cls(observed, rows, numbers, present, labelled, changed, at, odds, machines.shape)

    def training(self, ranks: slice) -> Taught | None:
        """What a machine learns and is asked, with the experts of these ranks; None if that is too little."""
        expert = self.panel.expert[:, ranks]
        target, rank = np.nonzero(expert >= 0)
        row = expert[target, rank]
        place, column = np.nonzero(self.present[row] & self.labelled[target])
        newest = np.argsort(-self.at[target[place], column], kind="stable")[:MAX_EXAMPLES]
        place, column = place[newest], column[newest]
        label = self.changed[target[place], column]
        last = self.present.shape[1] - self.shape.interval
        query = np.flatnonzero(self.present[row, last])
        if not len(query) or len(label) < MIN_EXAMPLES or label.all() or not label.any():
            return None
        both, columns = np.concatenate((place, query)), np.concatenate((column, np.full(len(query), last)))
        related = ranks.start > 0
        inner = self._inner(target[both], row[both], columns, len(label), related=related)
        return Taught(_taught(inner, label), target[place], target[query], rank[query] + ranks.start, columns)

    def union(self, own: Taught) -> Taught:
        """The same with the features of all experts together; the target stands in for a missing expert."""
        target = np.concatenate((own.page, own.asked))
        inner, ranks = own.examples.inner[0].copy(), self.panel.expert.shape[1]
        for rank in range(1, ranks):
            row = self.panel.expert[target, rank]
            row = np.where(row >= 0, row, self.panel.expert[target, 0])
            inner += self._inner(target, row, own.column, len(own.page), related=True)
        return replace(own, examples=_taught(inner / ranks, own.examples.label[0]))

    def _inner(self, target: Ints, row: Ints, column: Ints, examples: int, *, related: bool) -> Floats:
        """Inner products of rows with the first ones, the examples."""
        numbers = np.column_stack((self.numbers[row, column], self.odds[target, column]))
        if related:
            pairs, pair = np.unique(np.stack((target, row)), axis=1, return_inverse=True)
            found = pair_features(self.observed, pairs[0], pairs[1], self.shape)
            numbers = np.column_stack((numbers, found[pair.reshape(-1), column]))
        present = self.present[row, column]
        words = _word_products(self.observed, row, column, examples)
        usable = np.ones((1, examples), bool)
        inner: Floats = classifiers.gram_matrix(numbers[None].astype(np.float64), words[None], present[None], usable)[0]
        return inner


def _taught(inner: Floats, label: Flags) -> TrainingSet:
    every = np.ones((1, len(label)), bool)
    return TrainingSet(inner[None], label[None], every, np.ones(1, bool))


def _word_products(observed: Observations, row: Ints, column: Ints, examples: int) -> Float32s:
    """Row by example: inner products of word distributions."""
    text, number = np.unique(observed.known[row, column], return_inverse=True)
    shares = rows_of_counts(observed.bags, text.astype(np.int32)).astype(np.float64)
    length = np.maximum(np.asarray(shares.sum(axis=1)).ravel(), 1.0)
    shares.data /= np.repeat(length, np.diff(shares.indptr))
    first = np.unique(number[:examples])
    table = np.zeros((len(text), len(text)), np.float32)
    table[:, first] = (shares @ shares[first].T).toarray()
    return table[number[:, None], number[None, :examples]]


def _observations(log: VisitLog, panel: Panel) -> tuple[Observations, Panel]:
    """The targets, then the experts of each as it knew them; and the panel with the rows of these observations."""
    row, rank = np.nonzero(panel.expert[:, 1:] >= 0)
    own = log.changed[panel.target]
    moment = _moments(log, panel.target)
    place = log.visits_before(panel.expert[row, rank + 1], moment[row])
    text = np.concatenate((log.text[panel.target], _at_place(log.text, panel.expert[row, rank + 1], place)))
    # An expert's label: whether its visits since the column before found a change.
    changes = np.cumsum(log.changed == 1, axis=1)[panel.expert[row, rank + 1]]
    count = np.where(place >= 0, np.take_along_axis(changes, np.maximum(place, 0), axis=1), 0)
    visited = np.diff(place, axis=1, prepend=-1) > 0
    changed = np.concatenate((own == 1, np.diff(count, axis=1, prepend=0) > 0))
    labelled = np.concatenate((own != NO_LABEL, visited))
    expert = np.full(panel.expert.shape, -1, np.int64)
    expert[:, 0] = np.arange(len(expert))
    expert[row, rank + 1] = len(expert) + np.arange(len(row))
    return Observations(log.bags, text, changed, labelled), Panel(np.arange(len(expert)), expert, panel.weight)


def _moments(log: VisitLog, targets: Ints) -> Floats:
    """Target by column: the time of the next visit; +inf for now, -inf before the target's first visit."""
    at = log.at[targets]
    moment = np.concatenate((at[:, 1:], np.full((len(at), 1), np.inf)), axis=1)
    return np.where(np.isnan(at), -np.inf, moment)


def _at_place(column: Int32s, slots: Ints, place: Ints) -> Int32s:
    return np.where(place >= 0, np.take_along_axis(column[slots], np.maximum(place, 0), axis=1), -1).astype(np.int32)


def _links_among(links: LinkGraph | None, pages: Ints) -> LinkGraph:
    """The links between these pages, which are numbered in their order."""
    if links is None:
        return LinkGraph(np.zeros(len(pages) + 1, np.int64), np.zeros(0, np.int32))
    number = np.full(max(len(links), int(pages.max(initial=-1)) + 1), -1, np.int32)
    number[pages] = np.arange(len(pages))
    inside = pages[pages < len(links)]
    lengths = np.diff(links.start)[inside]
    source = np.repeat(number[inside], lengths)
    entry = np.repeat(links.start[inside] - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    target = number[links.target[entry]]
    counts = np.bincount(source[target >= 0], minlength=len(pages))
    return LinkGraph(np.concatenate(([0], np.cumsum(counts))), target[target >= 0])
