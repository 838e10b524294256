"""Compare policies on the history of a web: how many changes would each have found?

    python examples/compare_policies.py [ARCHIVE...]

An archive is a Parquet file with the columns url, time and html, a folder of them, or a CDX listing; without one, a
history is generated. A replay downloads nothing.
"""

from __future__ import annotations

import sys

import recrawl
from recrawl.testing import GeneratedWeb

POLICIES = ("round-robin", "random", "change-frequency", "shock")


def compare(history: recrawl.History) -> None:
    """Replay the history under each policy, with 5 % of the pages a day."""
    print(f"{len(history)} pages on {len(history.sites)} sites")
    for policy in POLICIES:
        result = recrawl.lab.replay(history, policy=policy, budget=0.05, cycle="1d")
        print(f"{policy:18} found {result.found:4} updates in {result.visits} visits ({result.recall:.0%} of all)")


def main(archives: list[str]) -> None:
    """Read the archives, or generate a history of 40 days."""
    if archives:
        compare(recrawl.History.read(archives))
        return
    with GeneratedWeb(sites=3, pages=100, days=40.0, seed=7) as web:
        compare(recrawl.History.read(web.file))


if __name__ == "__main__":
    main(sys.argv[1:])
