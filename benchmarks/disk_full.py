"""A disk that fills up: `python -m benchmarks.disk_full --count 200 --seed 1` (as root: it mounts a small tmpfs).

Each trial copies a repository to a disk with a random number of free bytes and runs a command there, with the same
commands and checks as `benchmarks.kills`, and a few more that write other files. Where the disk is full the command
must say so in one line and end with code 1; nothing that was recorded may be lost; and once there is space, running it
again must come to the same result as on a large disk.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.kills_commands import Command, Served, apart, commands, launch, refreshed, void
from benchmarks.kills_verdict import recorded, verdict
from benchmarks.report import Table

LIMIT = 120.0
_BLOCK = 4096
_LARGE = "300m"


def more_commands(work: Path, plans: list[Command]) -> list[Command]:
    """Commands that write other files: models, a new index, a WACZ file."""
    by_name = {plan.name: plan for plan in plans}
    cycle, check, export = by_name["cycle"], by_name["check"], by_name["export"]
    indexless = shutil.copytree(check.begin, work / "indexless")
    shutil.rmtree(indexless / "index")
    return [
        *(plan for plan in plans if plan.name != "serve"),
        replace(cycle, name="cycle, shock", words=("cycle", "--budget", "60"), finish=lambda repo, _: refreshed(repo)),
        replace(check, name="check, no index", begin=indexless),
        replace(
            export,
            name="export wacz",
            words=("export", "{trial}/all.wacz"),
            finish=lambda repo, trial: void(repo.export(trial / "all.wacz")),
            export=b"",
        ),
    ]


def size_of(folder: Path) -> int:
    """Bytes that a folder takes on a tmpfs, about."""
    files = list(folder.rglob("*"))
    return sum(-(-file.stat().st_size // _BLOCK) * _BLOCK for file in files if file.is_file()) + _BLOCK * 8


@contextmanager
def disk(place: Path, size: int) -> Iterator[None]:
    """A tmpfs of a size."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def attempt(plan: Command, place: Path, free: int) -> tuple[str, list[str]]:
    """Run a command on a disk with so many free bytes: how it ended, and what is wrong."""
    with disk(place, size_of(plan.begin) + free):
        copy = shutil.copytree(plan.begin, place / "repo")
        before = recorded(copy)
        process = launch(plan, copy, place)
        process.join(LIMIT)
        stuck = process.is_alive()
        if stuck:
            process.kill()
            process.join()
        subprocess.run(["mount", "-o", f"remount,size={_LARGE}", str(place)], check=True)
        said = place / "output.txt"
        last = [line for line in said.read_text(errors="replace").splitlines() if line.startswith("recrawl: ")]
        found = ["stuck"] if stuck else []
        found += [f"ended with code {process.exitcode}"] if process.exitcode not in (0, 1) else []
        found += [f"{len(last)} lines instead of one"] if process.exitcode and len(last) != 1 else []
        wrong = apart(lambda: verdict(plan, copy, place, before))
        found += [f"{kind}: {text}" for kind, texts in wrong.items() for text in texts]
        return kind_of(last[-1] if last else "", process.exitcode), found


def kind_of(message: str, code: int | None) -> str:
    """What was full, by the message."""
    if not code:
        return "enough space"
    kinds = {"recrawl.db": "database", ".warc": "archive", "index": "index"}
    return next((kind for words, kind in kinds.items() if words in message), "other file")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk_full", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="trials (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the free bytes (1)")
    parser.add_argument("--only", action="append", default=[], metavar="COMMAND", help="only this command; repeatable")
    chosen = parser.parse_args()
    rng, begun = np.random.default_rng(chosen.seed), time.monotonic()
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    faults = 0
    with tempfile.TemporaryDirectory(prefix="disk-full-") as scratch:
        work, place = Path(scratch), Path(scratch) / "disk"
        place.mkdir()
        web = Served(work)
        plans = more_commands(work, commands(work, web))
        plans = [plan for plan in plans if not chosen.only or plan.name in chosen.only]
        grown = {plan.name: growth(plan, work, web) for plan in plans}
        for number in range(chosen.count):
            plan = plans[number % len(plans)]
            free = int(rng.uniform(0.0, 1.1) * grown[plan.name])
            web.show(plan.day)
            kind, found = attempt(plan, place, free)
            ends[plan.name][kind] += 1
            faults += bool(found)
            for text in found:
                print(f"trial {number}, {plan.name}, {free:,} bytes free: {text}", flush=True)
    show(ends)
    print(f"{chosen.count} trials, {faults} with a fault, {time.monotonic() - begun:.0f} s, seed {chosen.seed}")
    sys.exit(1 if faults else 0)


def growth(plan: Command, work: Path, web: Served) -> int:
    """Bytes by which a command lets the disk grow, temporary files included."""
    place = work / "growth"
    place.mkdir(exist_ok=True)
    web.show(plan.day)
    with disk(place, 300 << 20):
        copy = shutil.copytree(plan.begin, place / "repo")
        process, most = launch(plan, copy, place), 0
        while process.is_alive():
            most = max(most, shutil.disk_usage(place).used)
            process.join(0.01)
    return most - size_of(plan.begin)


def show(ends: dict[str, Counter[str]]) -> None:
    kinds = ["enough space", "database", "archive", "index", "other file"]
    rows = [[name, *(str(counts[kind]) for kind in kinds)] for name, counts in ends.items()]
    Table("How commands ended on a disk that fills up, by what could not be written", ["command", *kinds], rows).show()


if __name__ == "__main__":
    main()
