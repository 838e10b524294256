"""Fits the prior of change rates from a page's first download (`recrawl.compare.change_prior`), and measures it.

    python -m benchmarks.prior ARCHIVE... [--change content] [--folds 4] [--seeds 2] [--budgets 0.0025] [--write]
    python -m benchmarks.prior ARCHIVE... --by-changes [--change stripped] [--budgets 0.0025]
    python -m benchmarks.prior ARCHIVE... --cost

The sites are divided into folds. For each fold, a Poisson regression of the changes of a year on the features of first
versions is fitted on the sites of the other folds (every site with the square root of its page-days as its weight), so
no page is ever scored by weights that have seen its site. Then the policy `shock` is replayed on all sites together
with these priors, and without any. `--by-changes` shows instead, for pages by their number of changes in the year, how
many `shock` with these priors and the clairvoyant find. `--write` fits on all sites and writes the weights into
recrawl; `--cost` measures the time for a page, beside that of parsing it. With `--change stripped`, versions that
differ from the one before in frame only, by the crude rule of `benchmarks.content`, are left out, and any change of the
text counts.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.linear_model import PoissonRegressor

from benchmarks.content_labels import crude_steps
from benchmarks.default_policy import Visited
from benchmarks.opinion import clairvoyant
from recrawl.choose.shock.policy import Shock
from recrawl.compare.change_prior import FEATURES, FURTHEST, LARGEST, change_prior, features
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.discover.links import LinkReader
from recrawl.errors import Unreadable
from recrawl.lab.formats.archive import Archive, files_of
from recrawl.lab.formats.page_facts import facts_of, file_name, from_cache, to_cache
from recrawl.lab.histories.opening import history_of, open_history
from recrawl.lab.replays.clairvoyant import schedule, unit_jobs
from recrawl.lab.replays.replay import Setup, replay

DAY = 86400.0
MOST = 40
"""Changes of one page in a year that count: a few pages change every day and would decide the fit."""
SHRINK = 0.3
"""The penalty on weights."""


def first_versions(paths):
    """URL, time and bytes of each page's first version."""
    for path in (file for given in paths for file in files_of(given)):
        archive = Archive.open([path])
        rows = np.flatnonzero(~archive.removed)
        for row in rows[np.unique(archive.page_of[rows], return_index=True)[1]].tolist():
            yield archive.urls[archive.page_of[row]], float(archive.times[row]), archive.html(row)


def stripped(paths, cache):
    """The history of archives without versions that differ in frame only."""
    paths = [file for given in paths for file in files_of(given)]
    facts, steps = facts_of(paths, cache), []
    for path, known in zip(paths, facts, strict=True):
        name = cache / f"{file_name(path, 'stripped')}.npz"
        kept = from_cache(name) or {"steps": crude_steps(path, known.text)}
        to_cache(name, kept)
        steps.append(kept["steps"])
    return replace(history_of(facts, "content", steps), change="text")


def words_of(body: bytes) -> str:
    try:
        return text.visible(parse(decode(body).text))
    except Unreadable:
        return ""


def changes_of(history, cycles: int):
    """Per page: changes that daily visits would see, and the days in which it is there."""
    jobs = unit_jobs(history, np.arange(1, cycles + 1) * DAY)
    birth = history.time[history.first[:-1]] / DAY
    changes = np.bincount(jobs.page, minlength=len(history)) - ((birth > 0) & (birth <= cycles))
    return np.maximum(changes, 0), np.maximum(cycles - birth, 1.0), birth > 0


def fit(values, history, changes, days, born, chosen):
    """The weights of a fit on chosen pages; pages born later change more, which no other feature shall explain."""
    site_days = np.bincount(history.site, days)[history.site]
    weight = (days / np.sqrt(site_days))[chosen]
    mean, spread = values[chosen].mean(axis=0), np.maximum(values[chosen].std(axis=0), 0.01)
    scaled = np.clip((values - mean) / spread, -FURTHEST, FURTHEST)
    later = ((born - born[chosen].mean()) / (born[chosen].std() + 1e-6))[:, None]
    model = PoissonRegressor(alpha=SHRINK, max_iter=200)
    rate = 100 * np.minimum(changes, MOST) / days
    model.fit(np.hstack((scaled, later))[chosen], rate[chosen], sample_weight=weight * len(weight) / weight.sum())
    score = scaled @ model.coef_[:-1]
    constant = -float(np.log(np.average(np.exp(score[chosen]), weights=days[chosen])))
    return {"mean": mean, "spread": spread, "weight": model.coef_[:-1], "constant": constant}


def score_of(values, weights):
    scaled = np.clip((values - weights["mean"]) / weights["spread"], -FURTHEST, FURTHEST)
    return np.clip(scaled @ weights["weight"] + weights["constant"], -LARGEST, LARGEST).astype(np.float32)


def gain(prior, changes, days) -> float:
    """Log-likelihood per change of rates in proportion to the prior, minus that of equal rates."""
    rate = np.exp(prior.astype(float))
    rate *= (changes.sum()) / (rate * days).sum()
    return float((changes * np.log(rate / (changes.sum() / days.sum()))).sum() / changes.sum())


def cost(paths) -> None:
    spent = np.zeros(2)
    reader, pages = LinkReader(), 0
    for url, at, body in first_versions(paths):
        began = time.process_time()
        words = words_of(body)
        reader.read(parse(decode(body).text), url)
        read = time.process_time()
        change_prior(url, words, at)
        spent += (read - began, time.process_time() - read)
        pages += 1
    print(
        json.dumps({"pages": pages, "us to parse": spent[0] / pages * 1e6, "us for the prior": spent[1] / pages * 1e6})
    )


class Counted(Visited):
    """A policy whose visits, revisits and finds are counted page by page."""

    def __init__(self, policy, pages: int) -> None:
        super().__init__(policy)
        self.visits, self.revisits, self.found = np.zeros((3, pages), np.int64)

    def learn(self, book, seen, at) -> None:
        self.visits[seen.pages] += 1
        self.revisits[seen.pages] += book.visits[seen.pages] > 0
        self.found[seen.pages] += seen.changed
        super().learn(book, seen, at)


def by_changes(history, budget: float, cycles: int) -> None:
    """Visits and finds of `shock`, and the finds of the clairvoyant, by the number of changes of the pages visited."""
    jobs = unit_jobs(history, np.arange(1, cycles + 1) * DAY)
    changes = np.bincount(jobs.page, minlength=len(history))
    visits = max(1, round(budget * len(history)))
    best = np.bincount(np.concatenate(schedule(jobs, len(history), np.full(cycles, visits))), minlength=len(history))
    counted = Counted(Shock(), len(history))
    replay(history, counted, Setup(budget=visits, cycle=DAY, cycles=cycles, samples=1))
    for least, below in itertools.pairwise((0, 1, 2, 4, 8, 16, cycles + 1)):
        rows = (changes >= least) & (changes < below)
        columns = {"pages": rows, "changes": changes, "clairvoyant": best, "visits": counted.visits}
        columns |= {"revisits": counted.revisits, "found": counted.found}
        sums = {name: int(column[rows].sum()) for name, column in columns.items()}
        print(json.dumps({"budget": budget, "changes from": least, "below": below, **sums}), flush=True)


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("archives", nargs="+", type=Path)
    ask.add_argument("--change", default="content")
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--folds", type=int, default=4)
    ask.add_argument("--seeds", type=int, default=2)
    ask.add_argument("--budgets", type=float, nargs="+", default=[0.0025])
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    ask.add_argument("--cost", action="store_true")
    ask.add_argument("--by-changes", action="store_true")
    ask.add_argument("--write", action="store_true")
    asked = ask.parse_args()
    if asked.cost:
        cost(asked.archives)
        return
    by = (asked.archives, asked.cache)
    history = stripped(*by) if asked.change == "stripped" else open_history(by[0], asked.change, by[1])
    changes, days, born = changes_of(history, asked.cycles)
    known = {url: features(url, words_of(body), at) for url, at, body in first_versions(asked.archives)}
    values = np.array([known.get(url, [0.0] * len(FEATURES)) for url in history.urls], float)
    if asked.write:
        fitted = fit(values, history, changes, days, born, np.ones(len(history), bool))
        kept = {name: np.round(np.asarray(value, float), 4).tolist() for name, value in fitted.items()}
        place = Path(str(files("recrawl.compare").joinpath("change_prior.json")))
        place.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        return
    fold = (np.random.default_rng(0).permutation(len(history.sites)) % asked.folds)[history.site]
    prior = np.zeros(len(history), np.float32)
    for number in range(asked.folds):
        here = fold == number
        prior[here] = score_of(values[here], fit(values, history, changes, days, born, ~here))
    print(json.dumps({"pages": len(history), "gain per change, held-out sites": round(gain(prior, changes, days), 3)}))
    if asked.by_changes:
        for budget in asked.budgets:
            by_changes(replace(history, prior=prior), budget, asked.cycles)
        return
    for name, one in (("none", np.zeros_like(prior)), ("of other sites", prior)):
        for budget in asked.budgets:
            visits, bound = clairvoyant(history, budget, asked.cycles)
            for seed in range(1, asked.seeds + 1):
                setup = Setup(budget=visits, cycle=DAY, cycles=asked.cycles, seed=seed, samples=1)
                found = replay(replace(history, prior=one), Shock(prior=bool(one.any())), setup).found.sum()
                print(
                    json.dumps({"prior": name, "budget": budget, "seed": seed, "share": round(found / bound, 4)}),
                    flush=True,
                )


if __name__ == "__main__":
    main()
