"""Tan et al.'s figure 9 at their full size: the end of the long run, with changed samples or any leading.

    python -m benchmarks.tan_full [--seeds 10] [--out FILE]

`recrawl lab reproduce t-fig9` has all readings, worlds and statements; at full size that takes an hour on two cores.
Here the made world of 284,692 pages is replayed with six policies only, about a minute per seed. `--out` keeps one JSON
object per replay, and a later run goes on after those that it has. Then a table: means with 95 % intervals, the
difference from DB, paired by world, and the cycle from which a policy stays above DB (T: WHA 16, HA 18).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import fmean

from recrawl.choose import make_policy
from recrawl.columns import WEEK
from recrawl.lab.experiments.intervals import interval
from recrawl.lab.experiments.tan2007 import TWorld, generated, sampling
from recrawl.lab.replays.replay import Setup, replay

POLICIES = {
    "DB": sampling("DB", 1),
    "RNS": "random",
    "HA": sampling("DB", 1, "ha"),
    "WHA": sampling("DB", 1, "wha"),
    "HA, any sample leads": sampling("DB", 1, "ha", reading="leads=any"),
    "WHA, any sample leads": sampling("DB", 1, "wha", reading="leads=any"),
}


SPANS = {"cycles 2 to 5": slice(1, 5), "cycles 17 to 24": slice(16, 24), "last cycle": slice(23, 24)}
_LATE = SPANS["cycles 17 to 24"]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="append one JSON object per replay; those in it are not made again")
    asked = parser.parse_args()
    lines = asked.out.read_text(encoding="utf-8").splitlines() if asked.out and asked.out.exists() else []
    found = {(row["policy"], row["seed"]): row["change_ratio_by_cycle"] for row in map(json.loads, lines)}
    for seed in range(1, asked.seeds + 1):
        missing = [name for name in POLICIES if (name, seed) not in found]
        history = generated(TWorld(seed=seed)) if missing else None
        for name in missing:
            setup = Setup(budget=25_000, cycle=2 * WEEK, cycles=24, seed=seed, samples=1)
            ratios = replay(history, make_policy(POLICIES[name]), setup).change_ratios.tolist()  # type: ignore[arg-type]
            found[name, seed] = ratios
            line = json.dumps({"seed": seed, "policy": name, "change_ratio_by_cycle": ratios}) + "\n"
            if asked.out:
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(line)
            else:
                sys.stdout.write(line)
                sys.stdout.flush()
    seeds = range(1, asked.seeds + 1)
    sys.stdout.write(f"| policy | {' | '.join(SPANS)} | against DB, cycles 17 to 24 | stays above DB |\n")
    sys.stdout.write(f"|---|{'--:|' * (len(SPANS) + 2)}\n")
    for name in POLICIES:
        by_seed = [found[name, seed] for seed in seeds]
        of_db = [found["DB", seed] for seed in seeds]
        means = [interval([fmean(ratios[span]) for ratios in by_seed]) for span in SPANS.values()]
        late = interval([fmean(own[_LATE]) - fmean(db[_LATE]) for own, db in zip(by_seed, of_db, strict=True)])
        against = "" if name == "DB" else f"{late.mean:+.3f} ± {(late.high - late.low) / 2:.3f}"
        firsts = [above_from(own, db) for own, db in zip(by_seed, of_db, strict=True)]
        cycles = [float(first) for first in firsts if first is not None]
        stays = f"from cycle {fmean(cycles):.1f}, {len(cycles)} of {len(firsts)} worlds" if cycles else "in no world"
        cells = [*map(str, means), against, "" if name == "DB" else stays]
        sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")


def above_from(own: list[float], other: list[float]) -> int | None:
    """The cycle from which one is above the other until the end; None if it is not above it at the end.

    >>> above_from([1, 3, 1, 3, 3], [2, 2, 2, 2, 2]), above_from([3, 1], [2, 2])
    (4, None)
    """
    behind = [cycle for cycle, (one, two) in enumerate(zip(own, other, strict=True), 1) if one <= two]
    first = max(behind, default=0) + 1
    return first if first <= len(own) else None


if __name__ == "__main__":
    main()
