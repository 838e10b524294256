"""`make bench`: install the peers, run the benchmarks, print the tables, keep the figures in `.bench/`."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import crawl, lab, peers, prediction, scale, web
from benchmarks.report import Table, machine

FOLDER = Path(__file__).resolve().parents[1] / ".bench"
RESULTS = FOLDER / "results.json"
MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=["crawl", "scale", "lab", "prediction"], help="one of the benchmarks")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of `crawl` (3)")
    parser.add_argument("--pages", type=int, default=web.PAGES, help=f"pages of the site ({web.PAGES})")
    parser.add_argument("--site", type=Path, action="append", default=[], help="archive whose pages are crawled too")
    parser.add_argument("--peers", default="scrapy,wget,wget2", help=f"of {', '.join(peers.KINDS)}; empty for none")
    parser.add_argument("--sizes", default=",".join(map(str, scale.SIZES)), help="known pages, for `scale`")
    parser.add_argument("--lab-scale", type=float, default=1.0, help="smaller worlds for `lab` and `prediction` (1)")
    parser.add_argument("--work", type=Path, help="where crawlers write (memory if there is room, else .bench)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="only write the last figures to FILE")
    chosen = parser.parse_args()
    unknown = set(filter(None, chosen.peers.split(","))) - peers.KINDS.keys()
    if unknown:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}; use {', '.join(peers.KINDS)}")
    return chosen


def load() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def workplace(asked: Path | None) -> Path:
    """Return the folder for the crawlers' files: a file system in memory, if it has room.

    Disks would distort the comparison: ext4 without a journal does not reuse inodes freed within the last minutes, so
    removing the thousands of files of one run triples the CPU time of wget2 in the next.
    """
    if asked is None and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        return MEMORY
    return asked or FOLDER / "work"


def measure(chosen: argparse.Namespace) -> None:
    """Run the chosen benchmarks; figures of the others stay as they were."""
    work, disk = workplace(chosen.work), chosen.work or FOLDER / "work"
    for folder in (FOLDER, work, disk):
        folder.mkdir(parents=True, exist_ok=True)
    if chosen.only not in ("lab", "prediction"):
        measure_crawls(chosen, work, disk)
    if chosen.only in (None, "lab"):
        with tempfile.TemporaryDirectory(dir=disk) as place:
            done = lab.measure(Path(place), chosen.lab_scale)
        results = load()
        results["lab"] = {"machine": machine(disk), "figures": lab.as_json(done)}
        RESULTS.write_text(json.dumps(results, indent=1))
    if chosen.only in (None, "prediction"):
        figures = prediction.measure(chosen.lab_scale)
        results = load()
        results["prediction"] = {"machine": machine(disk), "figures": figures}
        RESULTS.write_text(json.dumps(results, indent=1))


def measure_crawls(chosen: argparse.Namespace, work: Path, disk: Path) -> None:
    """Crawls against peers, and large repositories."""
    results = load()
    contenders = [] if chosen.only == "scale" else peers.available(FOLDER, list(filter(None, chosen.peers.split(","))))
    with web.running(chosen.pages) as served:
        if chosen.only != "scale":
            print(f"{chosen.pages} pages, {chosen.repeats} rounds", flush=True)
            with tempfile.TemporaryDirectory(dir=work) as place:
                runs = crawl.rounds(served, contenders, chosen.repeats, Path(place))
            about = {peer.name: peer.about for peer in contenders}
            results["crawl"] = {"machine": machine(work), "about": about, "runs": crawl.as_json(runs)}
            RESULTS.write_text(json.dumps(results, indent=1))
        if chosen.only != "crawl":
            with tempfile.TemporaryDirectory(dir=disk) as place:
                done = scale.sizes(served, [int(size) for size in chosen.sizes.split(",")], Path(place))
            if done:
                results["scale"] = {"machine": machine(disk), "sizes": scale.as_json(done)}
                RESULTS.write_text(json.dumps(results, indent=1))
    if chosen.only != "scale":  # when the other server has ended: a measured command waits for all other children
        measure_real(chosen, work, contenders, results)


def measure_real(chosen: argparse.Namespace, work: Path, contenders: list[peers.Peer], results: dict[str, Any]) -> None:
    """The same crawls of real pages, if there are any."""
    if not chosen.site:
        print("without real pages: give archives with --site FILE", flush=True)
        return
    with web.running(archives=chosen.site) as served, tempfile.TemporaryDirectory(dir=work) as place:
        print(f"{served.pages} real pages, {chosen.repeats} rounds", flush=True)
        runs = crawl.rounds(served, contenders, chosen.repeats, Path(place))
    about = {peer.name: peer.about for peer in contenders}
    results["real"] = {"machine": machine(work), "about": about, "runs": crawl.as_json(runs)}
    RESULTS.write_text(json.dumps(results, indent=1))


def tables(results: dict[str, Any]) -> list[Table]:
    found = []
    if "crawl" in results:
        found += crawl.tables(crawl.from_json(results["crawl"]["runs"]), results["crawl"]["about"])
    if "real" in results:
        real = crawl.tables(crawl.from_json(results["real"]["runs"]), results["real"]["about"])
        found += [replace(table, title=f"{table.title}: real pages") for table in real]
    if "scale" in results:
        found += scale.tables(scale.from_json(results["scale"]["sizes"]))
    if "lab" in results:
        found += lab.tables(lab.from_json(results["lab"]["figures"]))
    if "prediction" in results:
        found += prediction.tables(results["prediction"]["figures"])
    return found


def one_table(results: dict[str, Any]) -> Table:
    """The ratios of generated and of real pages in one table."""
    kinds = [("crawl", "generated pages"), ("real", "real pages")]
    made = {
        kind: crawl.ratios(crawl.from_json(results[part]["runs"]), results[part]["about"])
        for part, kind in kinds
        if part in results
    }
    first = next(iter(made.values()))
    return replace(
        first,
        heads=["pages", *first.heads],
        rows=[[kind, *row] for kind, table in made.items() for row in table.rows],
    )


def markdown(results: dict[str, Any]) -> str:
    """Return the figures for the documentation."""
    here = next(
        (results[part]["machine"] for part in ("crawl", "scale", "lab", "prediction") if part in results),
        machine(FOLDER),
    )
    where = f"{here['processor']}, {here['cores']} cores, {here['system']}, Python {here['python']}"
    return "\n".join(
        [
            f"Measured on: {where}; files on {here['disk']}.\n",
            *(table.markdown() for table in tables(results)),
        ]
    )


def main() -> None:
    chosen = options()
    if chosen.markdown is None or not RESULTS.exists():
        measure(chosen)
    if chosen.markdown is not None:
        chosen.markdown.write_text(markdown(load()))
        return
    results = load()
    if "crawl" in results and chosen.only in (None, "crawl"):
        one_table(results).show()
    else:
        for table in tables(results):
            table.show()
    print(f"figures: {RESULTS.relative_to(FOLDER.parent)}; all tables: python -m benchmarks --markdown FILE")


if __name__ == "__main__":
    main()
