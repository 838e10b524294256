"""How the default policy does against all others on archives: all sites together, each site alone, ingredients, worlds.

    python -m benchmarks.default_policy together ARCHIVE... [--seeds 5] [--skip DAYS] [--change content]
    python -m benchmarks.default_policy alone ARCHIVE... [--budget 0.03] [--seeds 5]
    python -m benchmarks.default_policy collections ARCHIVE... [--seeds 2]   of fourteen sites that are mostly quiet
    python -m benchmarks.default_policy parts ARCHIVE...                     what each ingredient brings
    python -m benchmarks.default_policy noise ARCHIVE... [--only POLICY]     how many of the finds of text are content
    python -m benchmarks.default_policy poisson                              pages that change on their own, no shocks
    python -m benchmarks.default_policy speed                                10,000 pages, 365 cycles

Each line is a JSON object, printed as soon as it is known, so that a run that is stopped keeps what it has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.opinion import belief, clairvoyant, part
from recrawl.choose import make_policy
from recrawl.choose.shock import plan
from recrawl.choose.shock.policy import Shock
from recrawl.lab.histories.history import History, assemble, without_start
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.shocks import change_model, model
from recrawl.model import Picks

DAY = 86400.0
BUDGETS = (0.0025, 0.01, 0.04)
OTHERS = (
    *("round-robin", "random", "proportional", "greedy", "greedy(sample=10)", "greedy(sample=30)", "adaptive-sampling"),
    *("grouped", "frequency-greedy", "frequency-adaptive", "change-frequency"),
    *(
        "sampling(neighbours=directory)",
        "sampling(neighbours=directory, phi=ha)",
        "sampling(neighbours=directory, phi=status)",
    ),
    *("nutch", "stormcrawler(fill=true)", "norconex", "heritrix1", "manifoldcf", "marginalia"),
    *("optimal-freshness", "optimal-age", "lambda-crawl"),
)
QUIET = {0.04: (0.85, 0.93), 0.01: (0.69, 0.79), 0.0025: (0.64, 0.90)}
"""What `round-robin` finds in a collection of quiet sites, from and to, at each budget."""
SHOCKS = ("shock", "shock(objective=freshness)", "shock(objective=harmonic)", "shock(objective=age)")


def measured(history: History, policy, budget: float, seed: int, cycles: int) -> dict:
    visits, bound = clairvoyant(history, budget, cycles)
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    began = time.process_time()
    record = replay(history, chosen, Setup(budget=visits, cycle=DAY, cycles=cycles, seed=seed, samples=2))
    _, early = clairvoyant(history, budget, 30)
    return {
        "budget": budget,
        "seed": seed,
        "share": round(float(record.found.sum() / max(bound, 1)), 4),
        "first 30 days": round(float(record.found[:30].sum() / max(early, 1)), 4),
        "freshness": round(float(record.freshness.mean()), 4),
        "days stale": round(float(record.age.mean()), 3),
        "seconds": round(time.process_time() - began, 1),
    }


def told(**row) -> None:
    print(json.dumps(row), flush=True)


def together(history, asked) -> None:
    for budget in asked.budgets:
        for policy in asked.only or (*SHOCKS, *OTHERS):
            for seed in range(1, (asked.seeds if policy == "shock" else min(asked.seeds, 2)) + 1):
                told(policy=policy, **measured(history, policy, budget, seed, asked.cycles))


def alone(history, asked) -> None:
    rng = np.random.default_rng(1)
    sites = rng.permutation(len(history.sites))[: asked.sites]
    for site in sites:
        some = part(history, np.array([site]))
        for policy in asked.only or ("shock", *OTHERS):
            for seed in range(1, asked.seeds + 1):
                row = measured(some, policy, asked.budget, seed, asked.cycles)
                told(site=int(site), pages=len(some), policy=policy, **row)


def collections(history, asked) -> None:
    """Of collections drawn by chance, quiet sites the likelier, those that are as quiet as `QUIET` says."""

    def steady(some, budget) -> float:
        return measured(some, "round-robin", budget, 1, asked.cycles)["share"]

    rng = np.random.default_rng(5)
    quiet = np.array([steady(part(history, [site]), 0.01) for site in range(len(history.sites))])
    for number in range(200):
        odds = np.exp(rng.uniform(0, 6) * quiet)
        sites = np.sort(rng.choice(len(quiet), 14, replace=False, p=odds / odds.sum()))
        some = part(history, sites)
        if not all(low <= steady(some, budget) <= high for budget, (low, high) in QUIET.items()):
            continue
        for policy, budget in itertools.product(asked.only or ("shock", "round-robin"), BUDGETS):
            for seed in range(1, (asked.seeds if policy == "shock" else 1) + 1):
                row = measured(some, policy, budget, seed, asked.cycles)
                told(collection=number, sites=sites.tolist(), policy=policy, **row)


def parts(history, asked) -> None:
    """Leave one ingredient out at a time."""
    fitted = change_model.predict_by_network
    weight = model.SHOCK_WEIGHT

    def line(name, policy) -> None:
        for budget in BUDGETS:
            told(without=name, **measured(history, policy, budget, 1, asked.cycles))

    line("nothing", Shock())
    line("batches (one a cycle)", Shock(batches=1))
    line("exploration", Shock(explore=0.0))
    line("curiosity", Shock(curiosity=0.0))
    line("visits that sites are owed", Shock(probe=0.0))
    line("the Poisson model", Shock(experts="none"))
    line("the change prior", Shock(prior=False))
    change_model.predict_by_network = belief
    line("the network", Shock())
    model.SHOCK_WEIGHT = 1e9  # a prior that nothing can move: every group is always as usual
    line("the network and shocks", Shock())
    model.SHOCK_WEIGHT, change_model.predict_by_network = weight, fitted
    plan.CERTAIN = 0.0  # no group is uncertain
    line("samples of uncertain groups", Shock())


class Visited:
    """A policy that also writes down the pages it visits, cycle by cycle."""

    source = "benchmark"

    def __init__(self, policy) -> None:
        self.policy, self.name, self.needs, self.plan = policy, policy.name, policy.needs, []

    def cycle(self, book, budget, rng):
        choice, pages, seen = self.policy.cycle(book, budget, rng), [], None
        self.plan.append(pages)
        try:
            while True:
                picks = choice.send(seen)
                pages.append(picks.pages)
                seen = yield picks
        except StopIteration:
            return

    def learn(self, book, seen, at) -> None:
        if hasattr(self.policy, "learn"):
            self.policy.learn(book, seen, at)


class Again:
    """Visits the pages of a plan again, in another history of the same pages."""

    name, source, needs = "again", "benchmark", frozenset()

    def __init__(self, plan) -> None:
        self.plan = iter(plan)

    def cycle(self, book, _budget, _rng):
        pages = np.concatenate([np.zeros(0, np.int64), *next(self.plan)])
        pages = pages[book.known[pages]]
        yield Picks(pages, np.ones(len(pages)), "it was visited before")


def noise(asked) -> None:
    """The finds of policies that look for changes of the text, how many are content, and what they find of it."""
    text, content = (open_history(asked.archives, change, asked.cache) for change in ("text", "content"))
    for budget, policy in itertools.product(asked.budgets, asked.only or ("shock", *OTHERS)):
        setup = Setup(budget=clairvoyant(text, budget, asked.cycles)[0], cycle=DAY, cycles=asked.cycles, samples=1)
        visited = Visited(make_policy(policy))
        finds = int(replay(text, visited, setup).found.sum())
        of_content = int(replay(content, Again(visited.plan), setup).found.sum())
        direct = int(replay(content, make_policy(policy), setup).found.sum())
        told(policy=policy, budget=budget, finds=finds, content=of_content, looking_for_content=direct)


def poisson(asked) -> None:
    """Pages of one site whose rates have nothing to do with one another."""
    for seed in (1, 2, 3):
        world = independent(6000, asked.cycles, seed)
        for policy in (
            "shock",
            "change-frequency",
            "optimal-freshness",
            "lambda-crawl",
            "round-robin",
            "frequency-greedy",
        ):
            told(policy=policy, world=seed, **measured(world, policy, 0.02, 1, asked.cycles))


def independent(pages: int, days: int, seed: int) -> History:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 0.05 / 0.5, pages)
    many = rng.poisson(rates * days)
    page = np.repeat(np.arange(pages), many)
    when = rng.random(len(page)) * days * DAY
    rows = np.concatenate((np.arange(pages), page))
    times = np.concatenate((np.zeros(pages), when))
    order = np.lexsort((times, rows))
    rows, times = rows[order], times[order]
    version = np.arange(len(rows))
    urls = [f"https://a.example/{number % 20}/{number}" for number in range(pages)]
    return assemble(urls, rows, times, version, change="text", carries=frozenset())


def speed(_asked) -> None:
    world = independent(10_000, 365, 1)
    for policy in ("round-robin", "shock", "shock(batches=12)"):
        told(policy=policy, **measured(world, policy, 0.01, 1, 365))


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("what", choices=("together", "alone", "collections", "parts", "noise", "poisson", "speed"))
    ask.add_argument("archives", nargs="*", type=Path)
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--skip", type=float, default=0.0, help="days that are left out at the beginning")
    ask.add_argument("--change", default="text", help="what counts as change, as in `recrawl lab run`")
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--sites", type=int, default=1000)
    ask.add_argument("--budget", type=float, default=0.03)
    ask.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS), help="of `together` and `noise`")
    ask.add_argument("--only", action="append", metavar="POLICY", help="measure this policy; repeatable")
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    if asked.what in {"poisson", "speed", "noise"}:
        {"poisson": poisson, "speed": speed, "noise": noise}[asked.what](asked)
        return
    history = open_history(asked.archives, asked.change, asked.cache, clusters=asked.what == "parts")
    history = without_start(history, asked.skip * DAY) if asked.skip else history
    {"together": together, "alone": alone, "collections": collections, "parts": parts}[asked.what](history, asked)


if __name__ == "__main__":
    main()
