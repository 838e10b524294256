"""Shards with one budget, against the same policy without shards.

    python -m benchmarks.cluster finds [ARCHIVE...] [--worlds 20] [--out FILE]   what 1, 2, 4 and 8 shards find
    python -m benchmarks.cluster ties [ARCHIVE...] [--worlds 20] [--out FILE]    other orders of pages of like value
    python -m benchmarks.cluster plan [--pages 10000000 30000000] [--shards 8]   what it costs to plan a cycle
    python -m benchmarks.cluster summary FILE                                    the table of `finds` or `ties`

`finds` replays generated worlds, or the archives together. One shard must choose what the policy chooses without
shards, page for page. A replay depends on luck: one without shards differs from itself with another seed by some per
cent. With `--seeds 5` the shards are compared with the mean of five such replays, with `--shard-seeds 3` each number of
shards is replayed with three seeds. Each line is a JSON object, written as soon as it is known; lines that FILE has are
not measured again, so a run that was stopped continues.

`ties` has no shards: pages whose value differs by less than 2 % are taken in a random order, or so that the first page
of each group comes before the second.

`plan` has all shards in one process, each with the sites of `benchmarks.plan_scale`; each size is a process of its own.
Seconds are of one core, bytes are the peak of the process, books included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.cluster_orders import ORDERS, Reordered
from benchmarks.plan_scale import DAY, Rebuilt, visited
from recrawl.choose import make_policy
from recrawl.choose.shards import offers
from recrawl.choose.shards.offers import settle
from recrawl.choose.shards.placement import shard_of
from recrawl.choose.shards.rounds import Sharded, rounds
from recrawl.choose.shock.policy import Shock
from recrawl.discover.registrable_domains import registrable_domain
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.shocks.new_pages import NewPages
from recrawl.loop import note
from recrawl.model import Outcomes

SHARDS = (2, 4, 8)
TEMPLATES = 4
"""URL templates of a site."""


class Noted:
    """A policy that also keeps the pages that it chooses, batch by batch."""

    source = "benchmark"

    def __init__(self, policy) -> None:
        self.policy, self.name, self.needs, self.picked = policy, policy.name, policy.needs, []

    def cycle(self, book, budget, rng):
        choice = self.policy.cycle(book, budget, rng)
        try:
            picks = next(choice)
            while True:
                self.picked.append(picks.pages)
                picks = choice.send((yield picks))
        except StopIteration:
            return

    def learn(self, book, seen, at) -> None:
        self.policy.learn(book, seen, at)


def generated(seed: int, sites: int, days: int) -> History:
    """Sites of 20 to 300 pages: pages with rates of their own, templates that are rebuilt now and then, new pages."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(20), np.log(300), sites)).astype(int)
    site = np.repeat(np.arange(sites), size)
    template = site * TEMPLATES + rng.integers(0, TEMPLATES, len(site))
    pages = len(site)
    born = np.where(rng.random(pages) < 0.05, rng.random(pages) * days, 0.0)
    calm = np.exp(rng.normal(np.log(0.004), 1.0, sites))[site]
    own = rng.poisson(rng.gamma(0.4, calm / 0.4) * days)
    page, when = [np.arange(pages), np.repeat(np.arange(pages), own)], [born, rng.random(own.sum()) * days]
    rebuilds = rng.poisson(rng.gamma(0.3, 0.02 / 0.3, sites * TEMPLATES) * days)
    for group, times in enumerate(rebuilds):
        for moment in rng.random(times) * days:
            members = np.flatnonzero(template == group)
            changed = members[rng.random(len(members)) < rng.uniform(0.3, 1.0)]
            page.append(changed)
            when.append(np.full(len(changed), moment))
    page, when = np.concatenate(page), np.concatenate(when)
    later = when >= born[page]
    order = np.lexsort((when[later], page[later]))
    page, when = page[later][order], when[later][order]
    kinds = ("a/{}.html", "b/c/{}.html", "d/{}/", "e-{}.html")
    urls = [
        f"https://s{s}.example/{kinds[t % TEMPLATES].format(f'p{n}x')}"
        for n, (s, t) in enumerate(zip(site.tolist(), template.tolist(), strict=True))
    ]
    return assemble(urls, page, when * DAY, np.arange(len(page)), change="text", carries=frozenset())


def measured(
    history: History, shards: int, budget: int, cycles: int, seed: int, late: float, order: str = ""
) -> tuple[dict, list]:
    """The finds of a replay, and its choices; 0 shards is the policy without shards."""
    policy = Reordered(ORDERS[order]) if order else make_policy("shock")
    if shards == 1:
        policy = Sharded(policy, [0] * len(history.sites), 1)
    elif shards:
        places = [shard_of(registrable_domain(site), shards) for site in history.sites]
        policy = Sharded(policy, places, shards, late=late)
    chosen, began = Noted(policy), time.process_time()
    record = replay(history, chosen, Setup(budget=budget, cycle=DAY, cycles=cycles, seed=seed, samples=1))
    row = {"visits": int(record.visits.sum()), "found": int(record.found.sum())}
    return {**row, "seconds": round(time.process_time() - began, 1)}, chosen.picked


def finds(asked) -> None:
    done = {line["world"] for line in lines(asked.out)}
    archives = open_history(asked.archives, "text", asked.cache) if asked.archives else None
    for seed in range(1, asked.worlds + 1):
        name = f"archives, seed {seed}" if archives else f"generated, seed {seed}"
        if name in done:
            continue
        history = archives or generated(seed, asked.sites, asked.cycles)
        budget = max(1, round(asked.budget * len(history)))
        alone, choices = measured(history, 0, budget, asked.cycles, seed, 0.0)
        row = {"world": name, "pages": len(history), "sites": len(history.sites), "budget": budget, "alone": alone}
        row["others"] = [
            measured(history, 0, budget, asked.cycles, seed + 1000 * number, 0.0)[0]["found"]
            for number in range(1, asked.seeds)
        ]
        row["late"] = asked.late
        if asked.what == "ties":
            row |= {order: measured(history, 0, budget, asked.cycles, seed, 0.0, order)[0] for order in ORDERS}
            write(row, asked.out)
            continue
        one, again = measured(history, 1, budget, asked.cycles, seed, 0.0)
        row["1"] = one
        row["same choices"] = len(choices) == len(again) and all(map(np.array_equal, choices, again))
        for shards in SHARDS:
            row[str(shards)], *others = (
                measured(history, shards, budget, asked.cycles, seed + 1000 * number, asked.late)[0]
                for number in range(asked.shard_seeds)
            )
            row[str(shards)]["others"] = [other["found"] for other in others]
        write(row, asked.out)


def write(row: dict, out: Path | None) -> None:
    print(json.dumps(row), flush=True)
    if out:
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")


def lines(file: Path | None) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []


def summary(asked) -> None:
    """Finds of all worlds relative to the mean of all seeds without shards, and the spread of single worlds."""
    rows = lines(asked.archives[0])
    print(f"{len(rows)} worlds, one shard chose the same pages in {sum(row.get('same choices', 0) for row in rows)}")
    seeds = [[row["alone"]["found"], *row.get("others", ())] for row in rows]
    alone = np.array([np.mean(found) for found in seeds])
    for arm in ("1", *map(str, SHARDS), *ORDERS):
        if any(arm not in row for row in rows):
            continue
        found = np.array([np.mean([row[arm]["found"], *row[arm].get("others", ())]) for row in rows])
        cpu = sum(row[arm]["seconds"] for row in rows) / sum(row["alone"]["seconds"] for row in rows)
        each = found / alone - 1
        print(
            f"{arm}: {found.sum():,.0f} of {alone.sum():,.0f} finds, {found.sum() / alone.sum() - 1:+.2%} in all, "
            f"mean of the worlds {each.mean():+.2%}, standard error {each.std(ddof=1) / len(each) ** 0.5:.2%}, "
            f"single worlds {each.min():+.1%} to {each.max():+.1%}, CPU {cpu:.2f} times"
        )
    if min(map(len, seeds)) > 1:
        apart = np.array([np.std(found, ddof=1) / np.mean(found) for found in seeds])
        print(f"standard deviation between seeds without shards: {np.sqrt((apart**2).mean()):.2%}")


class Clocked:
    """Measures the time in which thresholds are found, and the bytes of the offers."""

    def __init__(self) -> None:
        self.seconds, self.rounds, self.bytes = 0.0, 0, 0

    def __call__(self, offers, count):
        began = time.process_time()
        cuts = settle(offers, count)
        self.seconds += time.process_time() - began
        self.rounds += 1
        self.bytes += sum(len(offer.encoded()) for offer in offers)
        return cuts


def planned(books, worlds, policy, budget, seed) -> list[Outcomes]:
    """One cycle over the shards; returns the outcomes of each."""
    generators = [np.random.default_rng([seed, shard]) for shard in range(len(books))]
    plans = [policy.begin(book, budget, luck) for book, luck in zip(books, generators, strict=True)]
    run, seen = rounds(policy, plans, budget), [[] for _ in books]
    try:
        picks = next(run)
        while True:
            outcomes = [world.visit(some) for world, some in zip(worlds, picks, strict=True)]
            for part, outcome in zip(seen, outcomes, strict=True):
                part.append(outcome)
            picks = run.send(outcomes)
    except StopIteration:
        pass
    return [
        Outcomes(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("pages", "what")))
        for parts in seen
    ]


def plan(pages: int, shards: int, batches: int, bins: int) -> dict:
    rng = np.random.default_rng(1)
    books, policy, budget = [], Shock(batches=batches), pages // 100
    for _ in range(shards):
        book = visited(pages // shards, rng)
        book.memory["shock.times"] = np.linspace(0, 29, bins + 1)
        books.append(book)
    worlds = [Rebuilt(book, rng) for book in books]
    # A cycle before the one that counts, so that there is a memory to begin from.
    for book, seen in zip(books, planned(books, worlds, policy, budget, 1), strict=True):
        note(policy, book, seen, np.full(len(seen), book.now))
        book.now += DAY
    offers.settle = clock = Clocked()
    began = time.process_time()
    found = sum(int(seen.changed.sum()) for seen in planned(books, worlds, policy, budget, 2))
    seconds = time.process_time() - began
    return {
        "pages": pages,
        "shards": shards,
        "seconds": round(seconds, 1),
        "coordinator, ms a round": round(1000 * clock.seconds / clock.rounds, 2),
        "offer, bytes a shard and round": round(clock.bytes / clock.rounds / shards),
        "found": found,
        "peak bytes a page": round(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / pages, 1),
    }


def plans(asked) -> None:
    if asked.here:
        print(json.dumps(plan(asked.pages[0], asked.shards, asked.batches, asked.bins)))
        return
    for pages in asked.pages:
        line = [sys.executable, "-m", "benchmarks.cluster", "plan", "--here", "--pages", str(pages)]
        for name in ("shards", "batches", "bins"):
            line += [f"--{name}", str(getattr(asked, name))]
        run = subprocess.run(line, capture_output=True, text=True, check=True)
        print(run.stdout.strip(), flush=True)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("what", choices=("finds", "ties", "plan", "summary"))
    ask.add_argument("archives", nargs="*", type=Path)
    ask.add_argument("--worlds", type=int, default=20, help="generated worlds, or seeds of the archives")
    ask.add_argument("--seeds", type=int, default=1, help="seeds without shards")
    ask.add_argument("--shard-seeds", type=int, default=1, help="seeds with 2, 4 and 8 shards")
    ask.add_argument("--no-new-pages", action="store_true", help="predictions regardless of new pages")
    ask.add_argument("--sites", type=int, default=150)
    ask.add_argument("--budget", type=float, default=0.01, help="visits of a cycle, as a share of the pages")
    ask.add_argument("--cycles", type=int, default=40)
    ask.add_argument("--late", type=float, default=0.0, help="share of shards that are late in a round")
    ask.add_argument("--out", type=Path)
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    ask.add_argument("--pages", type=int, nargs="+", default=[10_000_000, 30_000_000])
    ask.add_argument("--shards", type=int, default=8)
    ask.add_argument("--batches", type=int, default=24)
    ask.add_argument("--bins", type=int, default=150)
    ask.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = ask.parse_args()
    if asked.no_new_pages:
        NewPages.predict = lambda _self, _pages, probability: probability
    {"finds": finds, "ties": finds, "plan": plans, "summary": summary}[asked.what](asked)


if __name__ == "__main__":
    main()
