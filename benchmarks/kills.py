"""kill -9 at random moments: `python -m benchmarks.kills --count 1000 --seed 1`.

Each trial copies a repository, runs a command against a generated web in a process of its own (a copy of one that has
loaded the program: no time goes into its start), and kills it after a random time: the command alone (`parent`), one of
the processes that it has started (`child`), all of these (`children`), or everything (`both`). `crawl`, `cycle`,
`serve` and `import git` start processes; their turn comes twice as often, and half of their kills spare the command.
Then it looks for what must not be:

* `check`: `Repository.check` finds a problem;
* lost: a version or visit that was recorded before the command began is not there any more, or is another one;
* doubled: a version is there twice in a row, or a page was visited twice in one crawl or cycle;
* wrong: when the command is run again, to its end, the repository differs from one that nobody disturbed;
* stuck: a process is still there 30 s after the command was killed.

The same seed gives the same commands, victims and shares of a command's duration; where a kill lands depends on the
machine. With `--signal TERM` the command is asked to stop instead (`stopped`). Two trials run side by side. Every trial
is a line of `--results FILE`: Ctrl-C prints the table so far, and the same command continues. Repositories with a fault
are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import numpy as np

from benchmarks.kills_commands import LIMIT, Command, Launched, Served, apart, commands, launch
from benchmarks.kills_verdict import KINDS, recorded, verdict
from benchmarks.report import Table

VICTIMS = ("parent", "child", "children", "both")
STARTED = VICTIMS[1:]
"""Victims among the processes that a command has started."""
STARTS = {"crawl": 1.0, "cycle": 1.0, "serve": 1.0, "import git": 0.04}
"""Commands that start processes, and the share of the time from the first process on in which there are some."""
PATIENCE = 30.0


# -- processes ---------------------------------------------------------------------------------------------


def offspring(pid: int) -> list[int]:
    """All processes below a process."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found + [below for child in list(found) for below in offspring(child)]


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def working_on(folder: Path) -> list[int]:
    """All processes that name the repository: one may have been started while its parent was killed."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def attack(plan: Command, folder: Path, process: Launched, victim: str, share: float) -> tuple[bool, int]:
    """Kill after a share of the command's time; whether it still ran then, and how many processes stayed.

    For a kill that hits processes of the command, the time begins when it has some.
    """
    begun = time.monotonic()
    seconds = plan.seconds
    if victim in STARTED:
        awaited(process)
        seconds = max(seconds - (time.monotonic() - begun), 0.1) * STARTS[plan.name]
    process.join(share * seconds)
    below = awaited(process) if victim in STARTED else offspring(process.pid)
    if not process.is_alive():
        return False, 0
    if victim in STARTED:
        kill([below[int(share * len(below))]] if victim == "child" else below)
    if victim in ("parent", "both", "stopped"):
        kill([process.pid], signal.SIGTERM if victim == "stopped" else signal.SIGKILL)
    elif plan.name == "serve":
        time.sleep(1.0)
        process.terminate()
    deadline = time.monotonic() + (PATIENCE if victim in ("parent", "both", "stopped") else LIMIT)
    while time.monotonic() < deadline and (process.is_alive() or any(map(alive, below)) or working_on(folder)):
        time.sleep(0.05)
    left = [pid for pid in {process.pid, *below, *working_on(folder)} if alive(pid)]
    kill(left)
    process.join()
    return True, len(left)


def awaited(process: Launched) -> list[int]:
    """The processes of a command, as soon as it has some; empty if it ended."""
    while process.is_alive():
        if below := offspring(process.pid):
            return below
        time.sleep(0.005)
    return []


# -- trials ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One kill and what was found after it; a line of the results file."""

    seed: int
    number: int
    command: str
    victim: str
    share: float
    """Of the command's duration, at which it was killed."""
    killed: bool
    """False: the command ended first."""
    stuck: int
    seconds: float
    """Duration of the trial."""
    wrong: dict[str, list[str]]

    def __str__(self) -> str:
        found = [f"{kind}: {text}" for kind, texts in self.wrong.items() for text in texts]
        found += [f"{self.stuck} processes are stuck"] if self.stuck else []
        heading = f"trial {self.number}, {self.command}, {self.victim} at {self.share:.0%}: "
        return "\n".join(heading + text for text in found)


def attempt(plan: Command, folder: Path, number: int, chosen: argparse.Namespace, durations: dict[str, float]) -> Trial:
    """One trial; victim and moment follow from the seed and the number."""
    rng = np.random.default_rng([chosen.seed, number])
    victim = VICTIMS[int(rng.integers(len(VICTIMS)))] if plan.name in STARTS else "parent"
    share = float(rng.uniform(0.02 if victim == "parent" else 0.0, 1.0))
    victim = "stopped" if chosen.signal == "TERM" else victim
    copy = shutil.copytree(plan.begin, folder / "repo")
    before = recorded(copy)
    begun = time.monotonic()
    process = launch(plan, copy, folder)
    try:
        killed, stuck = attack(replace(plan, seconds=durations[plan.name]), copy, process, victim, share)
    finally:
        kill([*offspring(process.pid), process.pid] if process.is_alive() else [])
    if not killed:  # the machine is less busy now than when it was measured
        durations[plan.name] = time.monotonic() - begun
    wrong = apart(lambda: verdict(plan, copy, folder, before))
    if not any(wrong.values()):
        shutil.rmtree(folder)
    return Trial(chosen.seed, number, plan.name, victim, share, killed, stuck, time.monotonic() - begun, wrong)


def work(
    folder: Path, chosen: argparse.Namespace, numbers: SimpleQueue[int | None], trials: SimpleQueue[Trial | str]
) -> None:
    """A process that makes the trials of the numbers that it gets; its web is its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops it between two trials
    try:
        web = Served(folder)
        plans = [plan for plan in commands(folder, web) if not chosen.only or plan.name in chosen.only]
        order = [plan for plan in plans for _ in range(1 + (plan.name in STARTS))]
        durations = {plan.name: plan.seconds for plan in order}
        for number in iter(numbers.get, None):
            plan = order[number % len(order)]
            web.show(plan.day)
            trials.put(attempt(plan, folder / f"trial-{number}", number, chosen, durations))
    except BaseException as error:  # the parent waits for an answer
        trials.put(f"{type(error).__name__}: {error}")
        raise


@contextmanager
def workers(
    chosen: argparse.Namespace,
) -> Iterator[tuple[SimpleQueue[int | None], SimpleQueue[Trial | str]]]:
    """Processes side by side, and the queues to and from them."""
    context = get_context("spawn")
    numbers, trials = context.SimpleQueue(), context.SimpleQueue()
    scratch = Path(tempfile.mkdtemp(dir=chosen.work, prefix="kills-"))
    folders = [scratch / str(place) for place in range(chosen.workers)]
    processes = [context.Process(target=work, args=(folder, chosen, numbers, trials)) for folder in folders]
    for folder, process in zip(folders, processes, strict=True):
        folder.mkdir()
        process.start()
    try:
        yield numbers, trials
    finally:
        for _ in processes:
            numbers.put(None)
        for process in processes:
            process.join()
        if not list(scratch.glob("*/trial-*/repo")):  # repositories with a fault are kept
            shutil.rmtree(scratch)


def make(count: int, done: list[Trial], results: Path, chosen: argparse.Namespace) -> Iterator[Trial]:
    """Kill until `count` kills have come in time; each trial is written to the results file as it ends."""
    kills = sum(trial.killed for trial in done)
    known = {trial.number for trial in done}
    fresh = (number for number in range(sys.maxsize) if number not in known)
    with workers(chosen) as (numbers, trials):
        for _ in range(chosen.workers):
            numbers.put(next(fresh))
        while kills < count:
            trial = trials.get()
            if isinstance(trial, str):
                raise SystemExit(f"a trial failed: {trial}")
            with results.open("a") as file:
                file.write(json.dumps(asdict(trial)) + "\n")
            yield trial
            kills += trial.killed
            numbers.put(next(fresh))


def earlier(results: Path, seed: int) -> list[Trial]:
    """The trials of an earlier run with the same seed."""
    lines = results.read_text().splitlines() if results.exists() else []
    return [trial for trial in (Trial(**json.loads(line)) for line in lines) if trial.seed == seed]


@dataclass
class Tally:
    """The kills of one command."""

    victims: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    too_late: int = 0
    stuck: int = 0

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.victims.update([trial.victim] if trial.killed else [])
        self.too_late += not trial.killed
        self.stuck += trial.stuck > 0
        self.wrong.update(kind for kind, found in trial.wrong.items() if found)


def table(trials: list[Trial]) -> Table:
    """The kills by command and victim."""
    tallies = {name: Tally() for name in dict.fromkeys([*(trial.command for trial in trials), "all"])}
    for trial in trials:
        tallies[trial.command].add(trial)
        tallies["all"].add(trial)
    heads = ["command", "kills", *VICTIMS, "stopped", "ended first", *KINDS, "stuck"]
    rows = []
    for name, tally in tallies.items():
        counts = [tally.victims.total(), *(tally.victims[victim] for victim in (*VICTIMS, "stopped")), tally.too_late]
        counts += [*(tally.wrong[kind] for kind in KINDS), tally.stuck]
        rows.append([name, *map(str, counts)])
    return Table("Commands killed or stopped at random moments", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="kills (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of commands, victims and moments (1)")
    parser.add_argument("--only", action="append", default=[], metavar="COMMAND", help="only this command; repeatable")
    parser.add_argument("--work", type=Path, help="folder for the repositories")
    parser.add_argument("--workers", type=int, default=2, help="trials side by side (2)")
    parser.add_argument("--signal", choices=("KILL", "TERM"), default="KILL", help="TERM asks the command to stop")
    parser.add_argument("--results", type=Path, help="file of trials; an existing one is continued")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # also when it was started in the background
        signal.signal(number, signal.default_int_handler)
    results = chosen.results or Path(tempfile.mkstemp(prefix="kills-", suffix=".jsonl")[1])
    trials = earlier(results, chosen.seed)
    with suppress(KeyboardInterrupt):
        for trial in make(chosen.count, trials, results, chosen):
            trials.append(trial)
            print(trial, end="\n" if str(trial) else "", flush=True)
            if len(trials) % 10 == 0:
                kills = sum(trial.killed for trial in trials)
                print(f"{kills} kills, {sum(bool(str(trial)) for trial in trials)} faults", file=sys.stderr, flush=True)
    table(sorted(trials, key=lambda trial: trial.number)).show()
    print(f"{sum(trial.seconds for trial in trials):.0f} s of trials, seed {chosen.seed}, results in {results}")
    sys.exit(1 if any(map(str, trials)) else 0)


if __name__ == "__main__":
    main()
