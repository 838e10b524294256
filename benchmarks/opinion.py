"""Fits the network of the change model (`recrawl.learn.shocks.change_model`) on replays of archives.

    python -m benchmarks.opinion ARCHIVE... [--rounds 2] [--seeds 3] [--change content] [--write]

The policy `shock` is replayed at three budgets. At some times of its cycles, the features of highly ranked and of
random pages are recorded, with whether the page had changed, which the lab knows. The first round ranks by the shock
model alone; each further round uses networks fitted on the earlier rounds, since the features depend on the visits
made. The sites are split into two halves, and each half is scored by the network fitted on the other (two-fold
cross-validation), so the printed figures are for sites that the network has not seen. At the end all sites share one
budget, still scored by the network of the other half. The last fit is on all sites.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.neural_network import MLPClassifier

from recrawl.choose.shock.plan import ShockPlan
from recrawl.choose.shock.policy import Shock
from recrawl.choose.top_k import top_k
from recrawl.lab.histories.history import History, select_rows
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.clairvoyant import unit_jobs, upper_bound
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.shocks import change_model
from recrawl.learn.shocks.change_model import Network

BUDGETS = (0.0025, 0.01, 0.04)
HIDDEN = 32
ROWS = (60_000, 160_000, 160_000)
"""Rows of each budget that are fitted to: at the smallest most visits go to new pages, so there is little to learn."""
DAY = 86400.0


class Noting(ShockPlan):
    """A plan that writes down what it sees of some pages, and whether they have changed."""

    def __init__(self, book, open_, budget, notes) -> None:
        self.notes = notes
        super().__init__(book, open_, budget)

    def observe(self, seen):
        if self.notes.rng.random() < 0.5:
            open_, rng = np.flatnonzero(self.open), self.notes.rng
            best = open_[top_k(-self.probability[open_], 60)]
            pages = np.unique(
                np.concatenate(
                    [rng.choice(some, min(30, len(some)), replace=False) for some in (best, open_)]
                    + [seen.pages[seen.answered][:8]]
                )
            )
            self.notes.add(self, pages)
        super().observe(seen)


class Notes:
    def __init__(self, history, cycles, rng):
        jobs = unit_jobs(history, np.arange(1, cycles + 1) * DAY)
        self.when = np.sort(jobs.page * (cycles + 2) + jobs.release)
        self.cycles, self.rng, self.rows = cycles, rng, []

    def add(self, plan, pages):
        book = plan.change_model.book
        last, now = (np.round(np.broadcast_to(at, len(pages)) / DAY) for at in (book.last_visit[pages], book.now))
        changed = self.until(pages, now) > self.until(pages, last)
        self.rows.append((plan.change_model.features(pages), changed, book.site[pages].copy()))

    def until(self, pages, moment):
        return np.searchsorted(self.when, pages * (self.cycles + 2) + moment, side="right")


class Noted(Shock):
    def __init__(self, notes):
        super().__init__(explore=0.08)
        self.notes = notes

    def plan(self, book, open_, budget):
        return Noting(book, open_, budget, self.notes)


def part(history: History, sites) -> History:
    """The sites of a history that are named, without links and weights."""
    number = np.full(len(history.sites), -1, np.int32)
    number[sites] = np.arange(len(sites))
    some = select_rows(replace(history, links=None, weight=None), number[history.site[history.page_of]] >= 0)
    names = [history.sites[site] for site in sites]
    return replace(some, sites=names, site=number[some.site], begins=history.begins[sites])


def clairvoyant(history: History, budget: float, cycles: int) -> tuple[int, int]:
    """The visits of a cycle that are this share of the pages, and the most that so many can find in all cycles."""
    visits = max(1, round(budget * len(history)))
    bound, _ = upper_bound(history, np.arange(1, cycles + 1) * DAY, np.full(cycles, visits))
    return visits, bound


def collect(history, sites, cycles, chances: Callable) -> list:
    """Rows of each budget: what was seen, whether it had changed, the site, the budget."""
    change_model.predict_by_network = chances
    some, rows = part(history, sites), []
    for level, budget in enumerate(BUDGETS):
        notes = Notes(some, cycles, np.random.default_rng(level))
        visits, bound = clairvoyant(some, budget, cycles)
        record = replay(some, Noted(notes), Setup(budget=visits, cycle=DAY, cycles=cycles))
        seen, changed, site = (np.concatenate(column) for column in zip(*notes.rows, strict=True))
        print(f"  budget {budget}: {len(seen):,} rows, {record.found.sum() / bound:.3f} of the clairvoyant", flush=True)
        rows.append((seen, changed, sites[site], np.full(len(seen), level)))
    return rows


def fit(rows, seed=0) -> Network:
    rng = np.random.default_rng(seed)
    seen, changed, _, level = rows
    chosen = np.concatenate([rng.permutation(np.flatnonzero(level == one))[:many] for one, many in enumerate(ROWS)])
    middle, spread = seen[chosen].mean(axis=0), seen[chosen].std(axis=0) + 1e-6
    model = MLPClassifier((HIDDEN,), alpha=0.1, batch_size=512, learning_rate_init=2e-3, max_iter=12, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twelve rounds are what it gets, converged or not
        model.fit(np.clip((seen[chosen] - middle) / spread, -4, 4), changed[chosen])
    return Network(
        middle, spread, model.coefs_[0], model.intercepts_[0], model.coefs_[1][:, 0], float(model.intercepts_[1][0])
    )


def told(name, rows, chances) -> None:
    seen, changed, _, level = rows
    chance = np.clip(chances(seen), 1e-4, 1 - 1e-4)
    for one, budget in enumerate(BUDGETS):
        here = level == one
        area, loss = roc_auc_score(changed[here], chance[here]), log_loss(changed[here], chance[here])
        print(f"  {name}, budget {budget}: AUC {area:.3f}, log loss {loss:.3f}")


def belief(seen):
    return 1 / (1 + np.exp(-seen[:, 0].astype(np.float64)))


def together(history, halves, by, cycles, seeds) -> None:
    """Replay all sites together by two networks, each on the half that it was not fitted on."""
    by_one = change_model.ChangeModel.predict

    def predict(self, pages):
        predicted = np.empty(len(pages), np.float32)
        for network, sites in zip(by, halves, strict=True):
            change_model.predict_by_network, here = network, np.isin(self.book.site[pages], sites)
            predicted[here] = by_one(self, pages[here])
        return predicted

    change_model.ChangeModel.predict = predict
    for budget in BUDGETS:
        visits, bound = clairvoyant(history, budget, cycles)
        setups = [Setup(budget=visits, cycle=DAY, cycles=cycles, seed=seed) for seed in range(1, seeds + 1)]
        shares = [replay(history, Shock(), setup).found.sum() / bound for setup in setups]
        print(f"  all together, budget {budget}: {np.mean(shares):.3f} of the clairvoyant", flush=True)


def joined(parts):
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def as_text(fitted: Network) -> str:
    columns = {name: getattr(fitted, name) for name in ("middle", "spread", "hidden", "hidden_bias", "out", "out_bias")}
    return json.dumps({name: np.round(np.asarray(value, float), 4).tolist() for name, value in columns.items()})


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("archives", nargs="+", type=Path)
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--rounds", type=int, default=2)
    ask.add_argument("--change", default="text", help="what counts as change, as in `recrawl lab run`")
    ask.add_argument("--seeds", type=int, default=3, help="of the replays of all sites together")
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    ask.add_argument("--write", action="store_true", help="put the network where recrawl reads it")
    asked = ask.parse_args()
    history = open_history(asked.archives, asked.change, asked.cache)
    first = np.random.default_rng(0).random(len(history.sites)) < 0.5
    halves = (np.flatnonzero(first), np.flatnonzero(~first))
    by: tuple[Callable, Callable] = (belief, belief)
    rows: tuple[list, list] = ([], [])
    for round_ in range(asked.rounds):
        for half in (0, 1):
            print(f"round {round_ + 1}, half {half + 1} of the sites, by what was learnt on the other", flush=True)
            rows[half].extend(collect(history, halves[half], asked.cycles, by[half]))
        by = (fit(joined(rows[1])), fit(joined(rows[0])))
        for half in (0, 1):
            told("belief alone", joined(rows[half]), belief)
            told("network of the other half", joined(rows[half]), by[half])
    together(history, halves, by, asked.cycles, asked.seeds)
    text = as_text(fit(joined(rows[0] + rows[1])))
    if asked.write:
        Path(str(files("recrawl.learn.shocks").joinpath("change_model.json"))).write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
