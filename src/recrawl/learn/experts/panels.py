"""R's methods on any observations: the margins of single machines, weighted votes, relational union and ensembles.

A *panel* holds target pages, each with its experts: the page itself comes first, with weight 1. `lab.predict.methods`
uses panels on recorded days, `crawl_learner` on the visits of a crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph, PageWords
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.learn.experts import classifiers
from recrawl.learn.experts.classifiers import FOLDS, MIN_EXAMPLES, Problems, TrainingSet, best_cost
from recrawl.learn.experts.features import (
    FeatureWindow,
    Observations,
    OwnFeatures,
    numeric_features,
    pair_features,
    rows_of_counts,
)
from recrawl.learn.experts.selection import Experts, by_content, by_graph, by_time
from recrawl.learn.experts.word_dynamics import idf, word_dynamics

# --------------------------------------------------------------------------------------------------------------------
# The last visits of the pages that R's methods predict while crawling: times, labels and words of what was read.
#
#
# Only tracked pages are in the log, at most `limit`: pages that have changed, since the rate of a page that never does
# needs no machine. A page leaves when all the visits in its row had the same result. So the size of the log depends on
# its limits alone (pages, visits, words), not on the size of the repository.
#
# A version keeps its most characteristic words by tf·idf, at most `max_words`; a visit that finds no change refers to
# the version before.


NO_LABEL = -1
"""The label of a first visit, which has nothing to compare with, and of places not used yet."""
_EMPTY = {"at": np.nan, "changed": NO_LABEL, "text": -1, "odds": 0.0}
"""The columns by visit, and what they hold where there was no visit."""


@dataclass(frozen=True, slots=True, eq=False)
class VisitLog:
    """Tracked pages by visit, the newest visit last. A *slot* is a row of these arrays."""

    page: Ints
    """One per slot, ascending: the page."""
    at: Floats
    """Slot by visit: its time; NaN where there was none."""
    changed: NDArray[np.int8]
    """Slot by visit: 1 if it found a change, 0 if not, else `NO_LABEL`."""
    text: Int32s
    """Slot by visit: the row of the word counts; -1 where the words are unknown."""
    odds: Float32s
    """Slot by visit: the log odds of a change within a cycle after it, by the page's own rate as of this visit."""
    start: Ints
    word: Int32s
    count: NDArray[np.uint16]

    @classmethod
    def blank(cls, visits: int) -> Self:
        """A log without pages that keeps this many visits per page."""
        shape = (0, visits)
        return cls(
            page=np.zeros(0, np.int64),
            at=np.zeros(shape),
            changed=np.zeros(shape, np.int8),
            text=np.zeros(shape, np.int32),
            odds=np.zeros(shape, np.float32),
            start=np.zeros(1, np.int64),
            word=np.zeros(0, np.int32),
            count=np.zeros(0, np.uint16),
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The log from its arrays."""
        return cls(**{item.name: arrays[item.name] for item in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __len__(self) -> int:
        """The number of tracked pages."""
        return len(self.page)

    @property
    def bags(self) -> sparse.csr_array:
        """Text by word: counts."""
        width = int(self.word.max(initial=0)) + 1
        return sparse.csr_array((self.count, self.word, self.start), shape=(len(self.start) - 1, width))

    @property
    def last(self) -> Floats:
        """One per slot: the time of the last visit; -inf before the first."""
        return np.where(np.isnan(self.at[:, -1]), -np.inf, self.at[:, -1])

    def slots(self, pages: Ints) -> Ints:
        """The slot of each page; -1 for a page that is not tracked."""
        if not len(self):
            return np.full(len(pages), -1, np.int64)
        place = np.minimum(np.searchsorted(self.page, pages), len(self) - 1)
        return np.where(self.page[place] == pages, place, -1)

    def visits_before(self, slots: Ints, times: Floats) -> Ints:
        """Slot by time: the place of the last visit before each time (row by time); -1 before the first."""
        known = self.at[slots]
        before = (known[:, None, :] < times[:, :, None]).sum(axis=2)
        empty = np.isnan(known).sum(axis=1)[:, None]
        return np.where(before > 0, empty + before - 1, -1)

    def text_at(self, slots: Ints, times: Floats) -> Int32s:
        """Slot by time: the text known just before each time; -1 for none."""
        place = self.visits_before(slots, times)
        known = np.take_along_axis(self.text[slots], np.maximum(place, 0), axis=1)
        return np.where(place >= 0, known, -1).astype(np.int32)

    def noted(
        self, pages: Ints, at: Floats, changed: Flags, odds: Floats, words: PageWords | None, max_words: int
    ) -> Self:
        """The log after answered visits, each page at most once; pages that are not tracked are ignored."""
        slot = self.slots(pages)
        tracked = slot >= 0
        slot, pages, at, changed, odds = slot[tracked], pages[tracked], at[tracked], changed[tracked], odds[tracked]
        fresh = changed | (self.text[slot, -1] < 0)
        row = _rows(words, pages)
        new = np.flatnonzero(fresh & (row >= 0))
        text = np.where(fresh, -1, self.text[slot, -1]).astype(np.int32)
        text[new] = len(self.start) - 1 + np.arange(len(new))
        first = np.isnan(self.at[slot, -1])
        label = np.where(first, NO_LABEL, changed).astype(np.int8)
        grown = self if words is None else self._with_texts(words, row[new], max_words)
        columns = {}
        for name, newest in (("at", at), ("changed", label), ("text", text), ("odds", odds)):
            column = getattr(self, name).copy()
            column[slot] = np.concatenate((column[slot, 1:], newest[:, None].astype(column.dtype)), axis=1)
            columns[name] = column
        return replace(grown, **columns)._compact()

    def renewed(self, candidates: Ints, known: Flags, limit: int) -> Self:
        """The log without pages that are of no use any more, and with candidates, the first ones first, up to a limit.

        `known` is one per page of the book: whether it may be visited.
        """
        one_result = (self.changed[:, 0] != NO_LABEL) & (self.changed == self.changed[:, -1:]).all(axis=1)
        stays = ~one_result & known[self.page]
        new = candidates[self.slots(candidates) < 0][: max(0, limit - int(stays.sum()))]
        if stays.all() and not len(new):
            return self
        page = np.concatenate((self.page[stays], new))
        order = np.argsort(page)

        def grown(column: NDArray[Any], fill: float) -> NDArray[Any]:
            empty = np.full((len(new), column.shape[1]), fill, column.dtype)
            return np.concatenate((column[stays], empty))[order]

        columns = {name: grown(getattr(self, name), fill) for name, fill in _EMPTY.items()}
        return replace(self, page=page[order], **columns)._compact()

    def with_visits(self, visits: int) -> Self:
        """The log with another number of visits per page, the newest ones."""
        missing = visits - self.at.shape[1]
        if not missing:
            return self
        columns = {}
        for name, fill in _EMPTY.items():
            column = getattr(self, name)
            empty = np.full((len(self), max(missing, 0)), fill, column.dtype)
            columns[name] = np.concatenate((empty, column[:, max(-missing, 0) :]), axis=1)
        return replace(self, **columns)._compact()

    def _with_texts(self, words: PageWords, rows: Ints, max_words: int) -> Self:
        """The log with the texts of these rows, each limited to its best words by tf·idf among the tracked pages."""
        last = self.text[:, -1][self.text[:, -1] >= 0]
        width = max(int(self.word.max(initial=0)), int(words.word.max(initial=0))) + 1
        rarity = idf(np.bincount(self.bags[last].indices, minlength=width), len(last))
        texts = sparse.csr_array((words.count, words.word, words.start), shape=(len(words.page), width))[rows]
        texts = _limited(texts, rarity, max_words)
        return replace(
            self,
            start=np.concatenate((self.start, self.start[-1] + texts.indptr[1:].astype(np.int64))),
            word=np.concatenate((self.word, texts.indices.astype(np.int32))),
            count=np.concatenate((self.count, texts.data.astype(np.uint16))),
        )

    def _compact(self) -> Self:
        """The log without texts that no visit refers to."""
        used = np.unique(self.text[self.text >= 0])
        if len(used) == len(self.start) - 1:
            return self
        number = np.full(len(self.start), -1, np.int32)
        number[used] = np.arange(len(used))
        bags = self.bags[used]
        return replace(
            self,
            text=np.where(self.text >= 0, number[self.text], -1).astype(np.int32),
            start=bags.indptr.astype(np.int64),
            word=bags.indices.astype(np.int32),
            count=bags.data.astype(np.uint16),
        )


def _rows(words: PageWords | None, pages: Ints) -> Ints:
    """The row of each page in the word counts; -1 where they lack it."""
    if words is None or not len(words.page):
        return np.full(len(pages), -1, np.int64)
    place = np.minimum(np.searchsorted(words.page, pages), len(words.page) - 1)
    return np.where(words.page[place] == pages, place, -1)


def _limited(texts: sparse.csr_array, rarity: Floats, max_words: int) -> sparse.csr_array:
    """Each row with the words of highest count times rarity, at most `max_words`, in ascending order."""
    row = np.repeat(np.arange(texts.shape[0]), np.diff(texts.indptr))
    order = np.lexsort((texts.indices, -texts.data * rarity[texts.indices], row))
    rank = np.arange(len(order)) - texts.indptr[row[order]]
    kept = order[rank < max_words]
    kept = kept[np.lexsort((texts.indices[kept], row[kept]))]
    start = np.concatenate(([0], np.cumsum(np.bincount(row[kept], minlength=texts.shape[0]))))
    return sparse.csr_array((texts.data[kept], texts.indices[kept], start), shape=texts.shape)


# --------------------------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------------------------
# R's features and machines over the visits of a crawl instead of days (spec L1, partially observed).
#
# The time axis of a target is its own visits: column c is the moment just before its visit c + 1, the last column is
# now. In column c the target is as its visit c found it, and an expert is as its last visit before that moment found
# it. The label of column c is whether visit c found a change. So an example is what a crawler knew just before a visit,
# and what the visit found; a page that was not visited in a cycle has no label and no new features for it.
#
# A crawl visits a page a few times a month, so the machines are not R's one per page: one machine learns from the
# visits of all pages, with the page's own rate among its features, and for `3d` a second one from their experts. They
# answer from a page's third visit on.


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
