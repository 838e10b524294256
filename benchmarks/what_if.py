"""How much more a small budget would find if a policy knew more: a fast simulation of quiet pages, without shocks.

    python -m benchmarks.what_if ARCHIVE... [--change content] [--budget 0.0025] [--seeds 3]

A replay of `shock` takes seconds; this takes a fraction of one, since it chooses once per day and predicts each page
from its own visits, its URL template, its site, its prior and new pages alone. Where almost every page is visited less
than once a year, that finds up to a few points less. So ideas can be compared on many collections of sites before one
is built; what gains here need not gain in `shock`.

The sites are divided at random into two halves, and six collections of fourteen sites are drawn from each. Every line
is a JSON object: what was known or assumed, and per half the mean share of the clairvoyant's finds, its difference from
the first line, and the standard error of the difference, over collections and seeds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.opinion import clairvoyant, part
from recrawl.lab.histories.history import ABSENT
from recrawl.lab.histories.opening import open_history
from recrawl.learn.shocks.model import MIN_PAGES
from recrawl.learn.shocks.new_pages import FIRST_CRAWL, INITIAL
from recrawl.learn.shocks.url_templates import index_pages

DAY = 86400.0
RATES = np.exp(np.linspace(np.log(3e-4), np.log(1.5), 14))
"""Changes per day: the grid of the log-normal page model."""
YOUNG, PRIOR_POWER, FIRST_RATE = 10.0, 0.8, 0.01


def versions_by_day(history, cycles: int):
    """Day by page: the version at the beginning of each cycle."""
    day = np.ceil(np.maximum(history.time, 0) / DAY - 1e-9).astype(np.int64)
    rows = np.flatnonzero(day <= cycles)  # sorted by page and time, so that the last row of a day is kept
    row = np.full((len(history), cycles + 1), -1)
    row[history.page_of[rows], day[rows]] = rows
    np.maximum.accumulate(row, axis=1, out=row)
    return np.where(row >= 0, history.version[row], ABSENT).T.copy()


@dataclass(slots=True)
class World:
    """The pages of a history, day by day."""

    versions: np.ndarray
    site: np.ndarray
    group: np.ndarray
    group_site: np.ndarray
    folder: np.ndarray
    home: np.ndarray
    """The directory in which a page stands; that of an index is the one above."""
    index: np.ndarray
    birth: np.ndarray
    new: np.ndarray
    factor: np.ndarray
    inside: np.ndarray
    """Day by directory: the days with new pages up to then."""
    below: np.ndarray
    """The same for all directories beneath."""
    bound: int = 0
    visits: int = 0
    changed: np.ndarray = field(init=False)
    """Day by page: whether the page was there the day before and has changed."""

    def __post_init__(self) -> None:
        before = self.versions[:-1]
        self.changed = np.zeros(self.versions.shape, bool)
        self.changed[1:] = (self.versions[1:] != before) & (before != ABSENT)


def world_of(history, budget: float, cycles: int) -> World:
    folder, parent = history.folder.astype(np.int64), history.folders.parent
    index = index_pages(history.urls)
    home = np.where(index & (parent[folder] >= 0), parent[folder], folder)
    birth = history.time[history.first[:-1]] / DAY
    first = np.full(len(history.sites), np.inf)
    np.minimum.at(first, history.site, birth)
    new = birth > first[history.site] + FIRST_CRAWL / DAY
    day, directory = np.ceil(birth[new]).astype(np.int64), home[new]
    inside, below = np.zeros((2, cycles + 2, len(parent)), np.float32)
    inside[np.minimum(day, cycles + 1), directory] = 1
    while len(directory):
        day, directory = day[parent[directory] >= 0], parent[directory][parent[directory] >= 0]
        below[np.minimum(day, cycles + 1), directory] = 1
    _, form, size = np.unique(
        np.stack((history.site, history.form), axis=1), axis=0, return_inverse=True, return_counts=True
    )
    _, group = np.unique(np.where(size[form] < MIN_PAGES, -1 - history.site, form), return_inverse=True)
    group_site = np.zeros(int(group.max()) + 1, np.int64)
    group_site[group] = history.site
    factor = np.exp(PRIOR_POWER * np.nan_to_num(history.prior.astype(np.float64)))
    visits, bound = clairvoyant(history, budget, cycles)
    place = (history.site, group, group_site, folder, home, index, birth, new, factor)
    days = (inside.cumsum(axis=0), below.cumsum(axis=0))
    return World(versions_by_day(history, cycles), *place, *days, bound=bound, visits=visits)


class Gamma:
    """A rate per page with a Gamma posterior; a change counts as the expected number of changes."""

    def __init__(self, pages: int, weight: float, forget: float = 0.02) -> None:
        self.weight, self.keep = weight, 1 - forget
        self.changes, self.watched = np.zeros((2, pages))

    def fade(self) -> None:
        self.changes *= self.keep
        self.watched *= self.keep

    def predict(self, pages, mean, time):
        """The probability of a change in so much time, and the mean rate, given the mean of the prior."""
        a = self.changes[pages] + self.weight
        b = self.watched[pages] + self.weight / mean
        return 1 - (b / (b + time)) ** a, a / b

    def observe(self, pages, time, changed, expected) -> None:
        self.changes[pages] += np.where(changed, expected, 0.0)
        self.watched[pages] += time


class LogNormal(Gamma):
    """A rate per page on a grid, with a log-normal prior: pages that change daily are not ruled out."""

    def __init__(self, pages: int, spread: float, middle: float = -1.0, forget: float = 0.01) -> None:
        super().__init__(pages, 0.0)
        self.spread, self.middle, self.keep_logs = spread, middle, 1 - forget
        self.logs = np.zeros((pages, len(RATES)), np.float32)

    def fade(self) -> None:
        super().fade()
        self.logs *= self.keep_logs

    def predict(self, pages, mean, time):
        away = (np.log(RATES) - np.log(mean)[:, None] - self.middle) / self.spread
        logs = self.logs[pages] - away**2 / 2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        return 1 - (posterior * np.exp(-time[:, None] * RATES)).sum(axis=1), posterior @ RATES

    def observe(self, pages, time, changed, expected) -> None:
        super().observe(pages, time, changed, expected)
        expected = time[:, None] * RATES
        self.logs[pages] += np.where(changed[:, None], np.log(-np.expm1(-expected)), -expected)


def group_rates(world: World, model):
    """Changes per day and page of each group, with the site's as the prior mean."""
    groups, sites = len(world.group_site), int(world.site.max()) + 1
    changes = np.bincount(world.group, model.changes, groups)
    watched = np.bincount(world.group, model.watched * world.factor, groups)
    by_site = (np.bincount(world.group_site, column, sites) for column in (changes, watched))
    site_rate = (next(by_site) + 1) / (next(by_site) + 1 / FIRST_RATE)
    return (changes + 1) / (watched + 1 / site_rate[world.group_site])


def log_unchanged(world: World, pages, day: int, last):
    """The logarithm of the probability that new pages have not changed a page since its last visit."""
    folder, home, index = world.folder[pages], world.home[pages], world.index[pages]

    def days(table, directory):
        return table[day, directory] - table[last, directory]

    siblings = days(world.inside, home) * (~index | (home != folder))
    counts = (days(world.inside, folder) * index, days(world.below, folder) * index, siblings)
    return sum(count * np.log1p(-q) for count, q in zip(counts, INITIAL * (1, 1, 0.5), strict=True))


def simulate(world: World, model, seed: int, clock=None, known=None) -> int:
    """The updates found. `clock` is day by page, the activity up to then; `known` are log survivals that replace p."""
    rng, versions = np.random.default_rng(seed), world.versions
    held, last = versions[0].copy(), np.zeros(versions.shape[1], np.int64)
    visited, found = held != ABSENT, 0
    for day in range(1, len(versions)):
        now = versions[day]
        there = (now != ABSENT) | (held != ABSENT)
        chosen = rng.permutation(np.flatnonzero(there & ~visited))[: world.visits]
        pages, count = np.flatnonzero(there & visited), world.visits - len(chosen)
        model.fade()
        if count and len(pages):
            mean = (group_rates(world, model)[world.group] * world.factor)[pages]
            age, before = (np.maximum(at - world.birth[pages], 0) for at in (day, last[pages]))
            waited = day - last[pages] if clock is None else clock[day, pages] - clock[last[pages], pages]
            rise = np.log((1 + age) / (1 + before)) / np.maximum(age - before, 1e-6)
            time = np.maximum(waited * (1 + YOUNG * world.new[pages] * rise), 1e-6)
            alone, rate = model.predict(pages, mean, time)
            probability = 1 - (1 - alone) * np.exp(log_unchanged(world, pages, day, last[pages]))
            if known is not None:
                probability = -np.expm1(known[last[pages], pages] - known[day, pages])
            best = np.argsort(-probability - 1e-6 * rng.random(len(pages)))[:count]
            share = alone[best] / np.maximum(probability[best], 1e-9)  # not explained by new pages
            number = rate[best] * time[best]
            expected = share * number / -np.expm1(-np.maximum(number, 1e-12))
            model.observe(pages[best], time[best], now[pages[best]] != held[pages[best]], expected)
            chosen = np.concatenate((chosen, pages[best]))
        found += int(np.count_nonzero(now[chosen] != held[chosen]))
        held[chosen], last[chosen], visited[chosen] = now[chosen], day, True
    return found


def smoothed(daily, days: int):
    """The mean of each day and so many days before and after it, summed up to each day."""
    total = np.vstack((np.zeros((1, daily.shape[1])), np.cumsum(daily, axis=0)))
    at = np.arange(len(daily))
    low, high = np.maximum(at - days, 0), np.minimum(at + days + 1, len(daily))
    return np.cumsum((total[high] - total[low]) / (high - low)[:, None], axis=0)


def true_rates(world: World, days: int):
    """Each page's true number of changes near each day, as a sum up to the day."""
    return smoothed(world.changed.astype(np.float64), days) + 1e-5 * np.arange(len(world.changed))[:, None]


def true_activity(world: World, of, days: int):
    """The share of a page's directory or site that changes near each day, as a clock with the mean speed 1."""
    size = np.maximum(np.bincount(of), 1)
    daily = np.array([np.bincount(of, row, len(size)) / size for row in world.changed])
    clock = smoothed(daily, days)
    return (clock / np.maximum(clock[-1:], 1e-9) * len(clock))[:, of]


def gamma(world: World):
    return Gamma(world.versions.shape[1], 0.5)


CASES = {
    "visits, priors and new pages": lambda w: {"model": gamma(w)},
    "Gamma prior of half the weight": lambda w: {"model": Gamma(w.versions.shape[1], 0.25)},
    "log-normal prior, spread 1.2": lambda w: {"model": LogNormal(w.versions.shape[1], 1.2)},
    "log-normal prior, spread 1.5": lambda w: {"model": LogNormal(w.versions.shape[1], 1.5)},
    "log-normal prior, spread 2": lambda w: {"model": LogNormal(w.versions.shape[1], 2.0)},
    "true activity of the site within 30 days": lambda w: {"model": gamma(w), "clock": true_activity(w, w.site, 30)},
    "of the directory within 30 days": lambda w: {"model": gamma(w), "clock": true_activity(w, w.folder, 30)},
    "of the directory on the day": lambda w: {"model": gamma(w), "clock": true_activity(w, w.folder, 0)},
    "true rate of the page in the year": lambda w: {"model": gamma(w), "known": true_rates(w, 365)},
    "within 90 days": lambda w: {"model": gamma(w), "known": true_rates(w, 90)},
    "within 30 days": lambda w: {"model": gamma(w), "known": true_rates(w, 30)},
    "within 10 days": lambda w: {"model": gamma(w), "known": true_rates(w, 10)},
}
"""What is known or assumed, and the arguments of `simulate`."""


def collections(history, asked):
    """Per half of the sites, the worlds of its collections."""
    rng = np.random.default_rng(0)
    halves = np.array_split(rng.permutation(len(history.sites)), 2)
    for half in halves:
        drawn = [np.sort(rng.choice(half, min(14, len(half)), replace=False)) for _ in range(6)]
        yield [world_of(part(history, sites), asked.budget, asked.cycles) for sites in drawn]


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("archives", nargs="+", type=Path)
    ask.add_argument("--change", default="content")
    ask.add_argument("--budget", type=float, default=0.0025)
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--seeds", type=int, default=1)
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    halves = list(collections(open_history(asked.archives, asked.change, asked.cache), asked))
    first: list = []
    for name, case in CASES.items():
        row: dict = {"known": name}
        for number, worlds in enumerate(halves):
            runs = [(w, seed) for w in worlds for seed in range(1, asked.seeds + 1)]
            shares = np.array([100 * simulate(w, seed=seed, **case(w)) / max(w.bound, 1) for w, seed in runs])
            first += [shares] if len(first) == number else []
            more = shares - first[number]
            error = more.std(ddof=1) / np.sqrt(len(more))
            row[f"half {number + 1}"] = [round(float(value), 2) for value in (shares.mean(), more.mean(), error)]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
