"""Instructions of this version against those of another one: `python -m benchmarks.instructions --before FOLDER`.

FOLDER is a checkout of the other version. Both run the same commands under valgrind (cachegrind without its cache),
which counts the instructions of all processes: unlike times, the counts do not depend on what else the machine does.
A process that is killed is not counted, so reader processes, which a crawl kills at its end, end by themselves here.
The cost of a page is the difference between a run with many pages and one with few: the start of the program is left
out. Refreshes are those of the default policy, which users run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.world import Reply, Site, page

from benchmarks.report import Table
from recrawl.lab.synth import SyntheticWorld, write

FEW, MANY = 20, 120
_WORDS = "a page with some words of its own "
_NO_KILL = "import subprocess\nsubprocess.Popen.kill = subprocess.Popen.wait\n"
"""Python runs this at its start; the readers' connection is closed before they are killed, and they end then."""
_REFS = re.compile(r"I +refs: +([\d,]+)")


def site(pages: int, *, validators: bool) -> dict[str, Reply | bytes]:
    """A front page that links pages, all with or all without validators."""
    paths = [f"/{number}.html" for number in range(pages)]
    bodies = {"/": page("front", *paths), **{path: page(f"{path} " + _WORDS * 100, title=path) for path in paths}}
    return {path: Reply(body, etag=f'"{path}"' if validators else "") for path, body in bodies.items()}


def recrawl(tree: Path, folder: Path, *words: str, counted: bool = False) -> float:
    """Run a command of a version; the instructions of all its processes, in millions, if they are counted."""
    valgrind = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        "--trace-children=yes",
        "--cachegrind-out-file=/dev/null",
    ]
    command = [sys.executable, "-m", "recrawl", "-C", str(folder), *words]
    (folder / "sitecustomize.py").write_text(_NO_KILL)
    paths = f"{tree / 'src'}{os.pathsep}{folder}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(
        [*valgrind, *command] if counted else command,
        check=False,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if ended.returncode:
        raise SystemExit(f"recrawl {' '.join(words)} of {tree} failed: {ended.stderr[-2000:]}")
    return sum(int(count.replace(",", "")) for count in _REFS.findall(ended.stderr)) / 1e6


def visits(tree: Path, scratch: Path, command: str, *, validators: bool = True) -> float:
    """Millions of instructions for a page: its first crawl, or its refresh with a 304 or with the same bytes."""
    counts = []
    for pages in (FEW, MANY):
        folder = scratch / f"{command}-{pages}"
        folder.mkdir()
        with Site(site(pages, validators=validators)) as web:
            recrawl(tree, folder, "init")
            for setting in ("parse_seconds", "timeout", "stall", "connect_timeout"):
                recrawl(tree, folder, "config", setting, "600")  # valgrind is slow
            recrawl(tree, folder, "add", web.url(), "--allow-private", "--delay", "0")
            counts.append(recrawl(tree, folder, "crawl", counted=command == "crawl"))
            if command == "refresh":
                counts[-1] = recrawl(tree, folder, "cycle", "--budget", str(pages + 1), counted=True)
            assert len(web.asked()) == (pages + 1) * (1 + (command == "refresh")), web.asked()
    return (counts[1] - counts[0]) / (MANY - FEW)


def replay(tree: Path, scratch: Path) -> float:
    """Millions of instructions of a replay."""
    world = scratch / "world.parquet"
    write(SyntheticWorld(seed=3, sites=2, pages=40, days=30.0), world, lambda _done, _rows: None)
    words = ("lab", "run", str(world), "--policy", "shock", "--budget", "0.05", "--cycle", "1d")
    return recrawl(tree, scratch, *words, counted=True)


WORK: dict[str, Callable[[Path, Path], float]] = {
    "refresh": lambda tree, scratch: visits(tree, scratch, "refresh"),
    "same": lambda tree, scratch: visits(tree, scratch, "refresh", validators=False),
    "crawl": lambda tree, scratch: visits(tree, scratch, "crawl"),
    "start": lambda tree, scratch: recrawl(tree, scratch, "--version", counted=True),
    "replay": replay,
}
NAMES = {
    "refresh": "refresh of an unchanged page (304), per page",
    "same": "refresh of an unchanged page (same bytes), per page",
    "crawl": "first crawl, per page",
    "start": "`recrawl --version`",
    "replay": "`lab run` with `shock`",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="checkout of the other version")
    parser.add_argument("--only", choices=WORK, action="append", default=[], help="only this work; repeatable")
    chosen = parser.parse_args()
    trees = (chosen.before.resolve(), Path(__file__).parents[1])
    rows = []
    for name in chosen.only or WORK:
        counts = []
        for tree in trees:
            with tempfile.TemporaryDirectory() as scratch:
                counts.append(WORK[name](tree, Path(scratch)))
        rows.append([NAMES[name], *(f"{count:,.2f}" for count in counts), f"{counts[1] / counts[0]:.3f}"])
        print(rows[-1], file=sys.stderr, flush=True)
    Table("Millions of instructions", ["work", "before", "now", "ratio"], rows).show()


if __name__ == "__main__":
    main()
