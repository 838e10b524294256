"""What planning one cycle of `shock` costs as the repository grows: seconds of one core and bytes a page.

    python -m benchmarks.plan_scale [--pages 100000 1000000 10000000] [--batches 12] [--bins 150]

Each size is a process of its own: sites of a thousand pages in five forms and ten directories, thirty days of visits
behind them, cut into bins as after many cycles, one site in ten rebuilt since. The world answers at once, so that all
time is the policy's.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from recrawl.book import Book
from recrawl.choose.shock.policy import Shock
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes

DAY = 86400.0
SITE = 1000


class Rebuilt:
    """A world in which one site in ten has changed, and one page in fifty of the others."""

    def __init__(self, book, rng):
        sites = int(book.site.max()) + 1
        self.changed = (rng.random(sites) < 0.1)[book.site] | (rng.random(len(book)) < 0.02)

    def visit(self, picks):
        what = np.where(self.changed[picks.pages], Outcome.CHANGED, Outcome.UNCHANGED)
        return Outcomes(picks.pages, what.astype(np.int8))


def visited(pages, rng):
    book = Book.blank(pages, now=30 * DAY)
    book.site = (np.arange(pages) // SITE).astype(np.int32)
    book.folder = np.arange(pages) // (SITE // 10)
    book.form = book.site.astype(np.int64) * 8 + np.arange(pages) % 5
    book.visits[:] = rng.integers(1, 6, pages)
    book.changes[:] = 1 + rng.binomial(book.visits - 1, 0.2)
    book.last_visit = book.now - rng.integers(1, 30, pages) * DAY
    book.last_try = book.last_visit.copy()
    return book


def measure(pages, batches, bins):
    rng = np.random.default_rng(1)
    book = visited(pages, rng)
    book.memory["shock.times"] = np.linspace(0, 29, bins + 1)
    policy, world, budget = Shock(batches=batches), Rebuilt(book, rng), pages // 100
    # A cycle before the one that counts, so that there is a memory to begin from.
    seen = list(drive(policy, world, book, budget, seed=1))
    whole = Outcomes(np.concatenate([part.pages for part in seen]), np.concatenate([part.what for part in seen]))
    note(policy, book, whole, np.full(len(whole), book.now))
    book.now += DAY
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    found = sum(int(part.changed.sum()) for part in drive(policy, world, book, budget, seed=2))
    seconds = time.process_time() - began
    columns = sum(value.nbytes for value in [*vars_of(book), *book.memory.values()] if any(value.strides))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "pages": pages,
        "seconds": round(seconds, 2),
        "found": found,
        "columns a page": round(columns / pages, 1),
        "peak a page": round(1024 * max(held, most) / pages, 1),
    }


def vars_of(book):
    return [value for name in Book.__slots__ if isinstance(value := getattr(book, name), np.ndarray)]


def main():
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--pages", type=int, nargs="+", default=[100_000, 1_000_000])
    ask.add_argument("--batches", type=int, default=12)
    ask.add_argument("--bins", type=int, default=150)
    ask.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = ask.parse_args()
    if asked.here:
        print(json.dumps(measure(asked.pages[0], asked.batches, asked.bins)))
        return
    for pages in asked.pages:
        line = [sys.executable, "-m", "benchmarks.plan_scale", "--here", "--pages", str(pages)]
        line += ["--batches", str(asked.batches), "--bins", str(asked.bins)]
        run = subprocess.run(line, capture_output=True, text=True, check=True)
        print(run.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
