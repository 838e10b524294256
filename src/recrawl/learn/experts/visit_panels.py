"""R's features and machines over the visits of a crawl instead of days (spec L1, partially observed).

The time axis of a target is its own visits: column c is the moment just before its visit c + 1, the last column is now.
In column c the target is as its visit c found it, and an expert is as its last visit before that moment found it. The
label of column c is whether visit c found a change. So an example is what a crawler knew just before a visit, and what
the visit found; a page that was not visited in a cycle has no label and no new features for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recrawl.book import LinkGraph
from recrawl.columns import Floats, Int32s, Ints
from recrawl.learn.experts.classifiers import MIN_EXAMPLES, select_cost
from recrawl.learn.experts.features import Observations, own_features, rows_of_counts
from recrawl.learn.experts.panels import SINGLE_PAGE, Machines, Panel, day_classifier, own_problems
from recrawl.learn.experts.selection import Experts, by_content, by_graph, by_time
from recrawl.learn.experts.visit_log import NO_LABEL, VisitLog
from recrawl.learn.experts.word_dynamics import word_dynamics

_BATCH = 50
"""Targets whose features are in memory together."""
_COST_PAGES = 60
"""Targets on which the machines' cost parameter is chosen."""


def predictable(log: VisitLog) -> Ints:
    """Slots with enough labelled visits, of both results."""
    labelled = (log.changed != NO_LABEL).sum(axis=1)
    changes = (log.changed == 1).sum(axis=1)
    return np.flatnonzero((labelled >= MIN_EXAMPLES) & (changes > 0) & (changes < labelled))


def choose_experts(log: VisitLog, how: str, k: int, lags: int, moments: Floats, links: LinkGraph | None) -> Experts:
    """The experts of every slot among the tracked pages (spec L4); `moments` are the ends of the last cycles."""
    if how == "graph":
        return by_graph(_links_among(links, log.page), k)
    if how == "content":
        return by_content(rows_of_counts(log.bags, log.text[:, -1]), k)
    times = np.broadcast_to(np.nextafter(moments, np.inf), (len(log), len(moments)))
    return by_time(word_dynamics(log.bags, log.text_at(np.arange(len(log)), times)), k, how, lags)


def choose_cost(log: VisitLog, machines: Machines, slots: Ints) -> float:
    """The SVM's C with the highest accuracy in cross-validation, on some of the slots; 1 without any."""
    if not len(slots):
        return 1.0
    sample = slots[np.unique(np.linspace(0, len(slots) - 1, min(_COST_PAGES, len(slots))).astype(np.int64))]
    observed = _observations(log, Panel.of(sample, None))[0]
    problems = own_problems(own_features(observed, machines.shape), observed, machines, np.arange(len(sample)))
    return select_cost(problems, log.at.shape[1], machines.train)


def margins(log: VisitLog, machines: Machines, panel: Panel) -> Floats:
    """One per target of the panel (slots of the log): the margin for a visit now, above 0 for a change."""
    found = np.full(len(panel.target), np.nan)
    for part in _batches(len(panel.target)):
        some = Panel(panel.target[part], panel.expert[part], panel.weight[part])
        if machines.method in SINGLE_PAGE:
            some = Panel.of(some.target, None)
        observed, rows = _observations(log, some)
        classify = day_classifier(own_features(observed, machines.shape), observed, machines, rows)
        found[part] = classify(log.at.shape[1])[1]
    return found


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


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, _BATCH):
        yield slice(start, min(start + _BATCH, count))
