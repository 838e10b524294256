"""Kills during other runs of a cluster: `python -m benchmarks.cluster_run_faults --count 40 --seed 1`.

A session is a new cluster as in `benchmarks.cluster_faults`. While each of these runs, processes are killed (kill -9),
or frozen until after their lease:

    crawl     of pages that need files (stylesheets, images) of sites of other shards
    import    of a history of pages with several versions
    check     `check --repair`, after counters in all shards were made wrong

After the crawl, a cycle without faults requests the files that were found when their owner had ended. At the end:

* the rules of `benchmarks.cluster_faults` for requests, pages, visits and `check`;
* files: each was downloaded by the shard that owns it, and by no other;
* the import: each page has its versions, once each, and nothing is left in the object store;
* counters: the repaired ones are those before the damage.

Each fault and each session is a line of FILE (`--results`). The first session has no faults.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks import cluster_verdict
from benchmarks.cluster_faults import Fault, Session, follow, summary
from benchmarks.cluster_processes import Processes
from benchmarks.cluster_stand import Stand, end_by_signals, stand
from benchmarks.cluster_trouble import Trouble
from benchmarks.referee import Sites
from benchmarks.referee_verdict import judge
from recrawl.cluster.layout import layout_of
from recrawl.lab.formats.archive import write
from recrawl.record import storage
from recrawl.settings import write_value

KINDS = ("worker", "node", "coordinator", "lease")
VERSIONS = 4
"""Versions of a page of the history."""
FIRST = {"crawl": 6.0, "import": 6.0, "check": 3.0}
"""Seconds within which the first fault of a run comes."""


def history(file: Path, sites: int, pages: int) -> dict[str, int]:
    """Write a history; return the number of versions of each page."""
    urls = [f"https://h{site}.example/{page}.html" for site in range(sites) for page in range(pages)]
    rows = [(url, 1e9 + 86400 * n, f"<p>{url} version {n}</p>".encode()) for url in urls for n in range(VERSIONS)]
    write(file, *zip(*rows, strict=True))
    return dict.fromkeys(urls, VERSIONS)


def import_faults(at: Stand, shards: int, expected: dict[str, int]) -> list[str]:
    """Pages whose versions are not those of the history, and objects that are left."""
    found: dict[str, list[int]] = {}
    for shard in range(shards):
        schema = f"{at.schema}_s{shard:03d}"
        found |= {
            url: counts
            for url, *counts in at.query(
                f"""SELECT p.url, count(*), count(DISTINCT v.at) FROM {schema}.versions v
                    JOIN {schema}.pages p ON p.id = v.page GROUP BY p.url"""
            )
        }
    wrong = [url for url, n in expected.items() if found.get(url) != [n, n]]
    objects = at.objects.objects(urlsplit(layout_of(at.folder).archive).path.strip("/"))
    return [
        *(f"{url} has {found.get(url)} versions and times" for url in wrong[:5]),
        *(f"{name} is left" for name in objects if "/imports/" in name),
    ]


def file_faults(at: Stand, shards: int) -> list[str]:
    """Files that no shard, a wrong one or several have downloaded."""
    sql = "SELECT url FROM {}_s{:03d}.requisites WHERE version >= 0"
    known = Counter((url, shard) for shard in range(shards) for (url,) in at.query(sql.format(at.schema, shard)))
    return cluster_verdict.known_faults(known, set(at.web.sites.file_urls(at.web.port)), shards)


def counters(at: Stand, shards: int) -> list[list[tuple[int, int]]]:
    """The counter of visits of every page, by shard."""
    return [at.query(f"SELECT id, visits FROM {at.schema}_s{shard:03d}.pages ORDER BY id") for shard in range(shards)]


def damage(at: Stand, shards: int) -> None:
    """Make the counters of some pages wrong, in all shards."""
    for shard in range(shards):
        at.query(f"UPDATE {at.schema}_s{shard:03d}.pages SET visits = visits + 1 WHERE mod(id, 3) = 0")


@contextmanager
def command(at: Stand, *words: str) -> Iterator[Callable[[], bool]]:
    """A command under way; gives whether it has ended, and fails if it did not succeed."""
    with at.recrawl(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        yield lambda: process.poll() is not None
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"recrawl {words[0]} ended with code {process.returncode}: {said}")


def session(number: int, asked: argparse.Namespace, work: Path, wanted: int) -> list[Fault | Session]:
    """One cluster, with so many faults in each of its runs at most."""
    rng, began, shards = np.random.default_rng([asked.seed, number]), time.monotonic(), asked.shards
    result, faults = Session(number, 0), list[Fault]()
    with ExitStack() as open_:
        at = open_.enter_context(stand(work, Sites(asked.sites, asked.pages, asked.seed, files=True), asked.delay))
        at.create("--shards", str(shards))
        write_value(at.folder / storage.SETTINGS, "requisites", "all")
        cluster = open_.enter_context(Processes(at, shards, nodes=2, lease=asked.lease).up())
        cluster.settled(shards)
        trouble = Trouble(at, cluster, rng, [], asked.lease)

        def struck(kind: str, finished: Callable[[], bool]) -> None:
            each = [str(kind) for kind in rng.permutation(list(KINDS) * -(-wanted // len(KINDS)))]
            trouble.kinds = each[:wanted]
            faults.extend(follow(finished, kind, trouble, number, first=FIRST[kind]))
            trouble.kinds = []

        struck("crawl", partial(at.finished, at.request("crawl")))
        crawled = cluster_verdict.visits_of(at, shards)
        follow(partial(at.finished, at.request("cycle", budget=9)), "cycle", trouble, number)
        visits = cluster_verdict.visits_of(at, shards)
        result.wrong["visits"] = [*cluster_verdict.visit_faults([], crawled)]
        result.wrong["visits"] += cluster_verdict.visit_faults(crawled, visits)
        expected = history(work / "history.parquet", asked.imported, asked.pages * 4)
        with command(at, "import", str(work / "history.parquet")) as ended:
            struck("import", ended)
        before = counters(at, shards)
        damage(at, shards)
        with command(at, "check", "--repair") as ended:
            struck("check", ended)
        result.wrong["counters"] = [] if counters(at, shards) == before else ["the counters differ"]
        trouble.tend(all_of_it=True)
        cluster.end()
        judge_all(result, at, visits, shards, expected)
    result.faults, result.seconds = len(faults), round(time.monotonic() - began, 1)
    return [*faults, result]


def judge_all(
    result: Session, at: Stand, visits: list[cluster_verdict.Visit], shards: int, expected: dict[str, int]
) -> None:
    """Judge requests, pages, files, imports and shards at the end of a session."""
    rows = at.web.requests()
    verdict = judge(rows, at.delay, cluster_verdict.turns_of(at, shards))
    pages = [row for row in rows if not row[4].endswith((".css", ".png"))]
    unseen, result.unrecorded = cluster_verdict.request_faults(visits, pages)
    result.requests, result.clients, result.unknown = verdict.requests, verdict.clients, verdict.unknown
    result.smallest_gap, result.visits = round(verdict.smallest_gap, 4), [len(visits)]
    result.wrong |= {
        "politeness": verdict.faults,
        "pages": cluster_verdict.page_faults(at, shards, also=expected),
        "requests": unseen,
        "files": file_faults(at, shards),
        "import": import_faults(at, shards, expected),
        "check": cluster_verdict.check_faults(at, shards),
    }


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--count", type=int, default=40, help="faults (40)")
    ask.add_argument("--seed", type=int, default=1, help="seed of web, faults, victims and moments (1)")
    ask.add_argument("--results", type=Path, help="file of faults and sessions")
    ask.add_argument("--each", type=int, default=4, help="most faults of a run (4)")
    ask.add_argument("--sites", type=int, default=30)
    ask.add_argument("--pages", type=int, default=6, help="mean pages of a site")
    ask.add_argument("--imported", type=int, default=300, help="sites of the history")
    ask.add_argument("--shards", type=int, default=3)
    ask.add_argument("--delay", type=float, default=0.5, help="seconds between requests to a site")
    ask.add_argument("--lease", type=float, default=4.0, help="seconds of a lease")
    asked = ask.parse_args()
    end_by_signals()
    lines, work = [], Path(tempfile.mkdtemp(prefix="faults-"))
    while not lines or sum("kind" in line for line in lines) < asked.count:
        number = sum("wrong" in line for line in lines)
        made = [asdict(it) for it in session(number, asked, work / str(number), asked.each if number else 0)]
        print(json.dumps(made[-1]), flush=True)
        lines += made
        if asked.results:
            with asked.results.open("a") as file:
                file.writelines(json.dumps(it) + "\n" for it in made)
    print(dict(Counter(line["during"] for line in lines if "kind" in line)))
    sys.exit(0 if summary(lines) else 1)


if __name__ == "__main__":
    main()
