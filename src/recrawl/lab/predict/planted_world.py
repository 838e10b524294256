"""Generated days whose relations are known: which experts selection must find, and which it must not.

Pages come in groups of one kind, each group with its own words:

    copies      some pages change together at random; the others show the same words `lag` days later
    common      all follow one hidden cause that is on or off for some days; while it is on they change often
    none        every page changes at random on its own

`noise` is the daily probability of an unrelated change. Members of every group link to their leader, so links show
which pages belong together, but not whether that helps prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import DAY, Flags, Floats, Int32s, Ints
from recrawl.compare.terms import BUCKETS
from recrawl.extras import sparse
from recrawl.lab.histories.history import LinkLists
from recrawl.lab.predict.days import Days, observed

KINDS = ("copies", "common", "none")
_TOPIC = 30
_OWN = 15
_MOVED = 8
"""Topic words whose counts a change redraws."""
_START = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Planted:
    """Parameters of a generated world."""

    groups: int = 12
    size: int = 6
    leaders: int = 1
    """How many pages of a group of copies lead the others."""
    days: int = 120
    lag: int = 1
    noise: float = 0.05
    rate: float = 0.5
    weekend: float = 1.0
    """Share of the changes of Saturdays and Sundays that take place; below 1 there is a weekly rhythm."""
    seed: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class PlantedWorld:
    """Generated days, and their true relations."""

    days: Days
    kind: Ints
    """One per page: the index of its kind in `KINDS`."""
    leader: Ints
    """One per page: the first page of its group."""


def planted(plan: Planted = Planted()) -> PlantedWorld:
    """Generate a world.

    >>> world = planted(Planted(groups=3, size=3, days=40, noise=0.0, lag=2))
    >>> copy, leader = world.days.changed[1], world.days.changed[0]
    >>> bool((copy[3:] == leader[1:-2]).all()), world.leader.tolist()
    (True, [0, 0, 0, 3, 3, 3, 6, 6, 6])
    """
    rng = np.random.default_rng(plan.seed)
    pages = plan.groups * plan.size
    group = np.repeat(np.arange(plan.groups), plan.size)
    topics = np.zeros((pages, plan.days, _TOPIC), np.int64)
    for number in range(plan.groups):
        members = slice(number * plan.size, (number + 1) * plan.size)
        topics[members] = _group(plan, KINDS[number % len(KINDS)], rng)
    text, bags = _texts(topics, group, rng)
    starts = np.arange(pages + 1)
    leader = group * plan.size
    days = observed(
        [f"https://group{g}.example/{n}" for n, g in enumerate(group.tolist())],
        _START + int(DAY) * np.arange(plan.days),
        text.astype(np.int64),
        np.ones((pages, plan.days), np.bool_),
        label="planted",
        text=text,
        bags=bags,
        lists=np.broadcast_to(np.arange(pages, dtype=np.int32)[:, None], text.shape).copy(),
        links=LinkLists(np.zeros(0, np.int32), starts, leader.astype(np.int32)),
    )
    return PlantedWorld(days, group % len(KINDS), leader)


def _group(plan: Planted, kind: str, rng: np.random.Generator) -> Ints:
    """Page by day by word: counts of the topic's words."""
    if kind == "copies":
        # Days before the first are generated too, so that copies have something to show.
        leader = _walk(_draws(plan, plan.days + plan.lag, rng) < plan.rate, rng)
        series = [leader[plan.lag :]] * plan.leaders + [leader[: plan.days]] * (plan.size - plan.leaders)
    elif kind == "common":
        cause = _switch(plan.days, rng)
        news = _walk(np.ones(plan.days, np.bool_), rng)
        series = [_showing(news, _draws(plan, plan.days, rng) < np.where(cause, 0.9, 0.1)) for _ in range(plan.size)]
    else:
        series = [_walk(_draws(plan, plan.days, rng) < plan.rate, rng) for _ in range(plan.size)]
    return np.array([_noisy(page, plan.noise, rng) for page in series])


def _draws(plan: Planted, days: int, rng: np.random.Generator) -> Floats:
    """A random number per day; a day changes where it is below the rate. Fewer are low at weekends."""
    drawn = rng.random(days)
    weekday = (_START // int(DAY) + np.arange(days) + 3) % 7  # 1 January 1970 was a Thursday
    return np.where(weekday >= 5, drawn / max(plan.weekend, 1e-9), drawn)


def _walk(changes: Flags, rng: np.random.Generator) -> Ints:
    """Day by word: counts, some of which are redrawn on every change."""
    counts = np.empty((len(changes), _TOPIC), np.int64)
    now = rng.integers(0, 6, _TOPIC)
    for day, change in enumerate(changes.tolist()):
        if change:
            now = now.copy()
            words = rng.choice(_TOPIC, _MOVED, replace=False)
            now[words] = (now[words] + rng.integers(1, 6, _MOVED)) % 6
        counts[day] = now
    return counts


def _switch(days: int, rng: np.random.Generator, stays: float = 0.8) -> Flags:
    """On or off, each for some days."""
    turns = rng.random(days) > stays
    active: Flags = np.cumsum(turns) % 2 == 1
    return active


def _showing(news: Ints, changes: Flags) -> Ints:
    """A page that shows the news of the day on which it last changed."""
    last = np.maximum.accumulate(np.where(changes, np.arange(len(changes)), 0))
    return news[last]


def _noisy(counts: Ints, noise: float, rng: np.random.Generator) -> Ints:
    """The page with unrelated changes: one more word on that day."""
    counts = counts.copy()
    active = rng.random(len(counts)) < noise
    counts[active, rng.integers(_TOPIC, size=int(active.sum()))] += 1
    return counts


def _texts(topics: Ints, group: Ints, rng: np.random.Generator) -> tuple[Int32s, sparse.csr_array]:
    """Page by day: its text; and the texts: the topic's words, and words of the page that never change."""
    pages, days, _ = topics.shape
    new = np.ones((pages, days), np.bool_)
    new[:, 1:] = (topics[:, 1:] != topics[:, :-1]).any(axis=2)
    text = (np.cumsum(new) - 1).reshape(pages, days).astype(np.int32)
    own = rng.integers(1, 4, (pages, _OWN))
    page, day = np.nonzero(new)
    counts = np.concatenate((topics[page, day], own[page]), axis=1)
    topic_words = group[page][:, None] * _TOPIC + np.arange(_TOPIC)
    own_words = (group.max() + 1) * _TOPIC + page[:, None] * _OWN + np.arange(_OWN)
    words = np.concatenate((topic_words, own_words), axis=1)
    row = np.repeat(np.arange(len(page)), counts.shape[1])
    positive = counts.ravel() > 0
    matrix = sparse.csr_array(
        (counts.ravel()[positive].astype(np.uint16), (row[positive], words.ravel()[positive])),
        shape=(len(page), BUCKETS),
    )
    matrix.sort_indices()
    return text, matrix
