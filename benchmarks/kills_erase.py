"""Kills of `recrawl erase` at random moments: `python -m benchmarks.kills_erase --count 200 --seed 1`.

Each trial copies a small repository, erases a page and a PDF in a process that kills itself at a random call of a
function (the moment does not depend on the speed of the machine), and runs a crawl, which finishes what was begun. Then

* `half`: the page is still known, and something of it or of any other page is missing; or it is gone, and its
  token is still found in a file, decompressed or not;
* `check`: `recrawl check --truth --erased` finds a problem;
* `again`: erasing it (again) leaves the token in a file.

Prints how many trials had not begun and were finished, and every fault with its moment.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from tests.erasing import TOKEN, calls_of, killed_at, recorded, traces
from tests.world import Repo, Site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, Site() as site:
        repo, url = recorded(Path(scratch) / "repo", site)
        words = ("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")
        calls = calls_of(lambda: _copy(repo, Path(scratch) / "counted").run(*words))
        chance, ends = random.Random(given.seed), Counter[str]()
        for number in range(given.count):
            one, moment = _copy(repo, Path(scratch) / "trial"), chance.randrange(1, calls)
            ends["killed" if killed_at(lambda one=one: one.run(*words), moment) else "ended"] += 1  # type: ignore[misc]
            ends[_verdict(repo, one, url, words, f"trial {number}, call {moment:,} of {calls:,}")] += 1
            shutil.rmtree(one.folder)
    print(", ".join(f"{name} {number}" for name, number in sorted(ends.items())))


def _copy(repo: Repo, folder: Path) -> Repo:
    shutil.copytree(repo.folder, folder)
    return Repo(folder, repo.ahead)


def _verdict(repo: Repo, one: Repo, url: str, words: tuple[str, ...], where: str) -> str:
    one.run("crawl", code=None)
    begun = url not in one.pages()
    kept = {page: row for page, row in repo.pages().items() if not begun or page in one.pages()}
    faults = []
    if one.pages() != kept or (begun and traces(one.folder)):
        faults.append("half")
    if one.run("check", "--truth", "--erased", code=None).code:
        faults.append("check")
    one.run(*words, code=None)
    if traces(one.folder):
        faults.append("again")
    if faults:
        print(f"{where}: {', '.join(faults)}", flush=True)
    return "fault" if faults else "finished" if begun else "not begun"


if __name__ == "__main__":
    main()
