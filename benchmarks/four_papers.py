"""Every policy of the four documents beside the default one, on made worlds and on real histories.

    python -m benchmarks.four_papers run --out FILE [--data FOLDER] [--worlds news ...] [--only POLICY ...] ...
    python -m benchmarks.four_papers table FILE... [--world news] [--against anchor-depth] [--only POLICY ...]
    python -m benchmarks.four_papers live FILE... [--world news]

`run` appends one JSON object per replay as soon as it is known and leaves out those that the file has, so it can be
stopped and started again. A sample is another made world, other pages and another stretch of time, or another draw of
sites. `table` prints means over samples with 95 % intervals, and with `--against` the differences from one policy,
paired by sample. `live` shows for how many pages the machines of R's methods have an answer after 13 days, since when
and for how many they decide (where they predict better than the page's own rate), and what each method finds beside
that rate and `pooled`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recrawl.columns import DAY, HOUR
from recrawl.lab.histories.history import History, select_rows, without_start
from recrawl.lab.predict.days import Planted, as_history, planted
from recrawl.lab.replays.clairvoyant import upper_bound
from recrawl.lab.replays.replay import replay
from recrawl.lab.replays.runner import policy_for, setup_for
from recrawl.lab.synth import SyntheticWorld, write

TAN = (
    *("sampling(neighbours=links, d=1)", "sampling(neighbours=directory, d=1)", "sampling(neighbours=clusters, d=1)"),
    *("sampling(neighbours=directory, d=1, phi=ha)", "sampling(neighbours=directory, d=1, phi=wha)"),
    *("sampling(neighbours=directory, d=1, phi=pra)", "random", "greedy"),
)
RADINSKY = (
    *("predicted(method=1d)", "predicted(method=2d)", "predicted(method=3d)", "predicted(method=3d, experts=dtw)"),
    *("predicted(method=3d, experts=content)", "predicted(method=3d, experts=graph)", "predicted(method=union)"),
    *("predicted(method=bagging)", "predicted(method=boosting)", "predicted(method=3d, pick=coin)", "predicted"),
)
BARBOSA = (
    *("anchor-depth", "anchor-depth(rest=0, slow=14)", "anchor-depth(n=1)", "anchor-depth(n=1, rest=0, slow=14)"),
    "grouped(inner=anchor-depth)",
)
AL_QAAIDEH = (
    *("round-robin", "proportional", "proportional(level=directory)", "greedy(sample=optimal)"),
    *("greedy(level=directory)", "greedy(level=cluster)", "adaptive-sampling", "grouped"),
    *("frequency-greedy", "frequency-greedy(level=directory)", "frequency-greedy(level=cluster)"),
    *("frequency-greedy(versions=auto)", "frequency-adaptive", "change-frequency(allocation=uniform)"),
    *("change-frequency", "change-frequency(allocation=optimal)"),
)
OTHERS = ("optimal-freshness", "optimal-age", "lambda-crawl")
OURS = ("shock", "shock(objective=freshness)", "shock(objective=harmonic)", "shock(objective=age)")
POLICIES = (*OURS, *BARBOSA, *AL_QAAIDEH, *TAN, *RADINSKY, *OTHERS)
CACHE = Path(tempfile.gettempdir()) / "recrawl-four-papers"
"""What was read of real histories."""
FIGURES = {
    "share": "finds",
    "freshness": "freshness",
    "age": "age",
    "delay": "until found",
    "discovery": "new pages",
    "visits": "requests",
}
"""Column of a row, and its heading; times in days."""
DIGITS = {"visits": 0, "age": 2, "delay": 2, "discovery": 2}
FIRST_DAYS = 13.0
"""After so many days `live` counts the pages that machines decide."""


class World(NamedTuple):
    """How to make a sample of a world, and how to replay it."""

    made: Callable[[int, Path], History]
    budget: float
    cycle: float
    cycles: int
    discover: str = "births"


def synthetic(**parameters: Any) -> Callable[[int, Path], History]:
    """A made world per sample."""

    def made(sample: int, data: Path) -> History:  # noqa: ARG001
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "world.parquet"
            write(SyntheticWorld(seed=sample, size_min=1500, size_max=4000, **parameters), file)
            return History.read(file, "text", clusters=True, words=True)

    return made


def fronts(sample: int, data: Path) -> History:
    """Half of the front pages of news sites on 60 of 360 days: twelve samples that share nothing."""
    if sample > 12:
        raise SystemExit("there are 12 samples of the front pages; use --samples 12 or fewer")
    history = front_pages(data)
    halves = np.random.default_rng(0).permutation(len(history)) % 2
    history = select_rows(history, halves[history.page_of] == sample % 2)
    skipped = (sample - 1) // 2 * 60 * DAY
    return without_start(history, skipped) if skipped else history


@cache
def front_pages(data: Path) -> History:
    """All of them."""
    return History.read(data / "daily" / "news-fronts-2024.parquet", cache=CACHE, clusters=True, words=True)


def archives(sample: int, data: Path) -> History:
    """Four real sites of less than 1 MB each; their first 120 days."""
    small = [file for file in sorted((data / "sites").glob("*.parquet")) if file.stat().st_size < 1_000_000]
    chosen = np.random.default_rng(sample).choice(len(small), 4, replace=False)
    history = History.read([small[n] for n in chosen], cache=CACHE, clusters=True, words=True)
    early = history.time <= 120 * DAY  # what a replay of so many days reads
    return select_rows(history, early)


def related(sample: int, data: Path) -> History:  # noqa: ARG001
    """24 pages of which half lead the others: their words say which will change."""
    return as_history(planted(Planted(groups=3, size=8, leaders=4, days=30, seed=sample)).days)


WORLDS = {
    "news": World(synthetic(sites=3, pages=100, days=21, kinds="news", links=20), 0.03, 6 * HOUR, 80, "links"),
    "news-listed": World(synthetic(sites=3, pages=100, days=21, kinds="news", links=20), 0.03, 6 * HOUR, 80),
    "mixed": World(synthetic(sites=5, pages=60, days=45, links=20), 0.05, DAY, 45),
    "fronts": World(fronts, 0.2, DAY, 60),
    "daily": World(synthetic(sites=2, pages=12, days=22, kinds="news,university", links=5), 1000, DAY, 21),
    "related": World(related, 24, DAY, 26),
    "sites": World(archives, 0.03, DAY, 120),
}
"""Made news sites whose new pages are found by links, or listed in sitemaps; five kinds of made sites; front pages of
news sites; two made sites of 12 pages, and pages that lead others, all visited every day; real sites."""


def run(asked: argparse.Namespace) -> None:
    """Replay what the file does not have yet."""
    known = {(row["world"], row["sample"], row["policy"]) for row in rows([asked.out])} if asked.out.exists() else set()
    with asked.out.open("a", encoding="utf-8") as file:
        for sample, name in itertools.product(range(1, asked.samples + 1), asked.worlds):
            missing = [policy for policy in asked.only or POLICIES if (name, sample, policy) not in known]
            if not missing:
                continue
            world = WORLDS[name]
            history = world.made(sample, asked.data)
            for policy in missing:
                file.write(json.dumps(measured(world, history, policy, name, sample)) + "\n")
                file.flush()


def measured(world: World, history: History, policy: str, name: str, sample: int) -> dict[str, Any]:
    """One replay."""
    setup = setup_for(history, world.budget, world.cycle, world.cycles, sample, discover=world.discover, samples=4)
    bound, _ = upper_bound(history, *setup.moments(len(history)))
    asked: list[int] = []
    decided: list[int] = []
    chosen, began = policy_for(policy, history, setup), time.process_time()
    if hasattr(chosen, "work"):
        learn = chosen.learn  # type: ignore[attr-defined]

        def counted(book: Any, seen: Any, at: Any) -> None:
            learn(book, seen, at)
            work = chosen.work(book)
            asked.append(work.get("pages_with_machines", 0))
            decided.append(work.get("pages_by_machines", 0))

        chosen.learn = counted  # type: ignore[attr-defined]
    found = replay(history, chosen, setup).summary()
    early = min(round(FIRST_DAYS * DAY / world.cycle), len(decided)) - 1
    first = next((cycle for cycle, pages in enumerate(decided, 1) if pages), None)
    return {
        "world": name,
        "sample": sample,
        "policy": policy,
        "pages": len(history),
        "share": found["found"] / max(bound, 1),
        "found": found["found"],
        "freshness": found["freshness"],
        "age": found["age_days"],
        "delay": found["delay_days_of_all"],
        "discovery": found["discovery_days"],
        "visits": found["visits"],
        "seconds": time.process_time() - began,
        "decided_from_day": None if first is None else first * world.cycle / DAY,
        "asked_13": asked[early] if asked else None,
        "decided_13": decided[early] if decided else None,
        "decided": decided[-1] if decided else None,
    }


def rows(files: list[Path]) -> Iterator[dict[str, Any]]:
    """The replays of files."""
    for file in files:
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def table(asked: argparse.Namespace) -> None:
    """Print means and intervals, best age first."""
    by_policy = by_policies(asked)
    reference = by_policy.get(asked.against, {})
    figures = [figure for figure in FIGURES if any(row[figure] is not None for row in reached(by_policy))]
    lines = []
    for policy, samples in by_policy.items():
        if asked.only and policy not in asked.only:
            continue
        cells = [
            interval(differences(samples, reference, figure, paired=bool(asked.against)), DIGITS.get(figure, 3))
            for figure in figures
        ]
        lines.append((float(np.mean([row["age"] for row in samples.values()])), [f"`{policy}`", len(samples), *cells]))
    write_table(["policy", "samples", *map(FIGURES.__getitem__, figures)], [cells for _, cells in sorted(lines)])


def live(asked: argparse.Namespace) -> None:
    """Print what machines decide and find, beside the page's own rate and `pooled`."""
    by_policy = by_policies(asked)
    own, pooled = by_policy.get("predicted(method=1d)", {}), by_policy.get("predicted", {})
    lines = []
    for policy, samples in by_policy.items():
        if policy not in RADINSKY:
            continue
        deciding = [row for row in samples.values() if row["decided_from_day"] is not None]
        known = [row for row in samples.values() if row["decided"] is not None]
        cells = [
            interval([row["decided_from_day"] for row in deciding], 1),
            interval([row["asked_13"] for row in known], 0),
            interval([row["decided_13"] for row in known], 0),
            interval([row["decided"] for row in known], 0),
            interval([row["pages"] for row in samples.values()], 0),
            interval([row["share"] for row in samples.values()]),
            interval(differences(samples, own, "share", paired=True)) if policy != "predicted(method=1d)" else "",
            interval(differences(samples, pooled, "share", paired=True)) if policy != "predicted" else "",
            interval([row["seconds"] for row in samples.values()], 1),
        ]
        lines.append([f"`{policy}`", len(samples), f"{len(deciding)} of {len(known)}" if known else "-", *cells])
    headings = ["policy", "samples", "machines decide", "from day", "answers, day 13", "decided, day 13"]
    headings += ["decided, end", "pages", "finds", "beside own rate", "beside `pooled`", "CPU s"]
    write_table(headings, lines)


def by_policies(asked: argparse.Namespace) -> dict[str, dict[int, dict[str, Any]]]:
    """Per policy and sample of a world: the row."""
    by_policy: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows(asked.files):
        if row["world"] == asked.world:
            by_policy.setdefault(row["policy"], {})[row["sample"]] = row
    return by_policy


def reached(by_policy: dict[str, dict[int, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """All rows."""
    return itertools.chain.from_iterable(samples.values() for samples in by_policy.values())


def differences(
    samples: dict[int, dict[str, Any]], reference: dict[int, dict[str, Any]], figure: str, *, paired: bool
) -> list[float]:
    """The values of a figure, or their differences from a reference, paired by sample."""
    found = {sample: row[figure] for sample, row in samples.items() if row[figure] is not None}
    if not paired:
        return list(found.values())
    return [value - reference[sample][figure] for sample, value in found.items() if sample in reference]


def write_table(headings: list[str], lines: list[list[Any]]) -> None:
    """Print a Markdown table."""
    sys.stdout.write(f"| {' | '.join(headings)} |\n|---|{'--:|' * (len(headings) - 1)}\n")
    for cells in lines:
        sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")


def interval(values: list[float], digits: int = 3) -> str:
    """The mean and half the width of its 95 % interval (Student's t)."""
    if not values:
        return "-"
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    from scipy.stats import t  # lazy: loads slowly

    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--data", type=Path, default=Path("../shared/data"))
    running.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    running.add_argument("--only", nargs="+")
    running.add_argument("--samples", type=int, default=10)
    running.set_defaults(command=run)
    for name, command in (("table", table), ("live", live)):
        showing = commands.add_parser(name)
        showing.add_argument("files", type=Path, nargs="+")
        showing.add_argument("--world", choices=WORLDS, default="news")
        showing.set_defaults(command=command)
        if command is table:
            showing.add_argument("--against", default="")
            showing.add_argument("--only", nargs="+")
    asked = parser.parse_args()
    asked.command(asked)


if __name__ == "__main__":
    main()
