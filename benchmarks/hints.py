"""How honest are sitemaps and feeds, and what are they worth? Measured on hint files and the archives of their sites.

    python -m benchmarks.hints sources ARCHIVES HINTS      what every sitemap and feed says, and its class
    python -m benchmarks.hints value ARCHIVES HINTS        each site alone, with and without its hints, five seeds
    python -m benchmarks.hints together ARCHIVES HINTS     all sites with hints share one budget
    python -m benchmarks.hints discovery ARCHIVES HINTS    days from the birth of a page to its first visit
    python -m benchmarks.hints table FILE                  the lines of a file as a table for the documentation

ARCHIVES and HINTS are folders with files of the same names; `--only TEXT` selects files. Each line is a JSON object,
printed as soon as it is known. `value` and `discovery` start 30 days before the first hint of a site after its start,
and take a year.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.report import Table
from recrawl.choose import make_policy
from recrawl.lab.formats.hint_files import HintEvents, read_hints
from recrawl.lab.histories.history import ABSENT, History, without_start
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.clairvoyant import upper_bound
from recrawl.lab.replays.metrics import Record
from recrawl.lab.replays.replay import Setup, replay

Line = dict[str, Any]
DAY = 86400.0
BEFORE = 30.0
"""Days of a replay before the first hint."""
FEW = 10
"""With fewer new dates, a source cannot be judged."""
CRITICAL = 2.306
"""Student's t for 95 % and two times five seeds."""


@dataclass(frozen=True)
class Source:
    """What one sitemap or feed said, measured against the changes of its pages."""

    site: str
    source: str
    kind: str
    pages: int
    dated: int
    """Pages with a date that can be read."""
    moves: int
    """New dates of pages that had another date before."""
    true: int
    """New dates of pages that changed within the day before."""
    base: float
    """Share of all listed pages that changed in those days: what guessing would give."""
    new: int
    """New entries after the first publication."""
    born: int
    """New entries of pages that were born within the day before."""
    everything: float
    """Share of the publications with new dates that redate nine tenths of the pages."""

    @property
    def precision(self) -> float:
        return self.true / self.moves if self.moves else math.nan

    def verdict(self) -> str:
        """The class of the source."""
        if not self.dated:
            return "no dates"
        if not self.moves:
            return "dates never move"
        if self.moves < FEW:
            return "dates hardly move"
        if self.everything > 0.5:
            return "redates everything"
        if self.precision <= 0.2:
            return "mostly false"
        return "informative" if self.precision >= 2 * self.base else "no better than guessing"


def files_of(asked: argparse.Namespace) -> list[tuple[Path, Path]]:
    """Archives and hint files of the same names, small ones first."""
    pairs = [(asked.archives / file.name, file) for file in asked.hints.glob("*.parquet")]
    pairs = [pair for pair in pairs if not asked.only or any(text in pair[0].name for text in asked.only)]
    lacking = [archive for archive, _ in pairs if not archive.exists()]
    if lacking or not pairs:
        raise SystemExit(f"there is no archive {lacking[0]}" if lacking else f"no hint file in {asked.hints} matches")
    return sorted(pairs, key=lambda pair: pair[0].stat().st_size)


def changes_of(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Page and time (seconds since 1970) of every change, sorted by page and time; births are none."""
    owner = history.page_of
    changed = np.append(False, (owner[1:] == owner[:-1]) & (history.version[1:] != history.version[:-1]))
    changed &= history.version != ABSENT
    return owner[changed], history.time[changed] + history.begins[history.site[owner[changed]]]


def changed_since(pages: np.ndarray, times: np.ndarray, page: np.ndarray, time: float) -> np.ndarray:
    """Whether each page changed in the day before a time."""
    key = pages * 1e11 + times
    return np.searchsorted(key, page * 1e11 + time, side="right") > np.searchsorted(key, page * 1e11 + time - DAY)


def measure_source(history: History, events: HintEvents, number: int, site: str) -> Source:
    """Follow one source through its publications."""
    rows = np.flatnonzero(events.source == number)
    where = {url: page for page, url in enumerate(history.urls)}
    pages, times = changes_of(history)
    date: dict[int, float] = {}
    listed: set[int] = set()
    birth = history.time[history.first[:-1]] + history.begins[history.site]
    seen: set[int] = set()
    moves = true = everything = publications = new_entries = born = 0
    base = 0.0
    for place, batch in enumerate(np.split(rows, np.flatnonzero(np.diff(events.time[rows])) + 1)):
        at, moved = float(events.time[batch[0]]), []
        for row in batch.tolist():
            page = where.get(events.urls[events.url[row]], -1)
            if page < 0:
                continue
            if not events.listed[row]:
                listed.discard(page)
                continue
            if place and page not in seen:
                new_entries += 1
                born += 0 <= at - birth[page] <= DAY
            seen.add(page)
            listed.add(page)
            if not math.isnan(events.date[row]):
                if page in date and events.date[row] != date[page]:
                    moved.append(page)
                date[page] = float(events.date[row])
        if moved:
            hits = changed_since(pages, times, np.array(moved), at)
            rate = float(changed_since(pages, times, np.array(sorted(listed)), at).mean())
            publications += 1
            everything += len(moved) >= 0.9 * len(listed)
            moves, true, base = moves + len(moved), true + int(hits.sum()), base + rate * len(moved)
    return Source(
        site=site,
        source=events.sources[number],
        kind="feed" if events.kinds[number] == "feed" else "sitemap",
        pages=len({events.url[row] for row in rows.tolist()}),
        dated=len(date),
        moves=moves,
        true=true,
        base=base / moves if moves else math.nan,
        new=new_entries,
        born=born,
        everything=everything / publications if publications else 0.0,
    )


def sources(asked: argparse.Namespace) -> Iterator[Line]:
    for archive, file in files_of(asked):
        history, events = open_history([archive], asked.change, asked.cache, workers=1), read_hints(file)
        for number in range(len(events.sources)):
            found = measure_source(history, events, number, archive.stem)
            yield {
                **{name: getattr(found, name) for name in ("site", "source", "kind", "pages", "dated", "moves")},
                "precision": None if math.isnan(found.precision) else round(found.precision, 3),
                "base": None if math.isnan(found.base) else round(found.base, 3),
                "new entries": found.new,
                "of new pages": int(found.born),
                "class": found.verdict(),
            }


def from_first_hint(history: History, file: Path) -> History:
    """Cut off the time before the first hint that comes after the start, but for 30 days."""
    events = read_hints(file)
    later = events.time[events.time > history.begins.min()] - history.begins.min()
    skip = (later.min() if len(later) else 0.0) - BEFORE * DAY
    return without_start(history, skip) if 0 < skip < history.span else history


def run(history: History, hints: str, seed: int, asked: argparse.Namespace, discover: str) -> tuple[float, Record]:
    """Share of the clairvoyant that is found, and the measurements."""
    visits = max(1, round(asked.budget * len(history)))
    cycles = min(asked.cycles, max(1, int(history.span / DAY)))
    setup = Setup(budget=visits, cycle=DAY, cycles=cycles, seed=seed, hints=hints, discover=discover, samples=2)
    record = replay(history, make_policy(asked.policy), setup)
    return float(record.found.sum() / max(upper_bound(history, *setup.moments(len(history)))[0], 1)), record


def compared(name: str, history: History, hints: str, asked: argparse.Namespace, discover: str = "births") -> Line:
    """One line: what is found without and with hints, the difference and its 95 % interval."""
    seeds = range(1, asked.seeds + 1)
    plain, told = ([run(history, text, seed, asked, discover) for seed in seeds] for text in ("", hints))
    without, with_ = ([100 * share for share, _ in runs] for runs in (plain, told))
    spread = math.sqrt(sum(stdev(shares) ** 2 / len(shares) for shares in (without, with_))) if len(seeds) > 1 else 0.0
    difference = fmean(with_) - fmean(without)
    line = {
        "site": name,
        "pages": len(history),
        "without": round(fmean(without), 2),
        "with": round(fmean(with_), 2),
        "difference": round(difference, 2),
        "interval": round(CRITICAL * spread, 2),
        "verdict": "equal" if abs(difference) <= CRITICAL * spread else "more" if difference > 0 else "less",
    }
    if discover == "links":
        line |= {"new pages": told[0][1].new_pages}
        line |= {"days without": round(fmean(record.discovery for _, record in plain), 2)}
        line |= {"days with": round(fmean(record.discovery for _, record in told), 2)}
    return line


def value(asked: argparse.Namespace, discover: str = "births") -> Iterator[Line]:
    for archive, file in files_of(asked):
        history = open_history([archive], asked.change, asked.cache, workers=1)
        yield compared(archive.stem, from_first_hint(history, file), str(file), asked, discover)


def discovery(asked: argparse.Namespace) -> Iterator[Line]:
    yield from value(asked, "links")


def together(asked: argparse.Namespace) -> Iterator[Line]:
    archives = [archive for archive, _ in files_of(asked)]
    history = open_history(archives, asked.change, asked.cache, workers=1)
    yield compared(f"{len(archives)} sites", history, str(asked.hints), asked)


def table(lines: Sequence[Line]) -> Table:
    """The lines of a file as a table."""
    heads = list(lines[0])
    return Table("", heads, [["" if line[head] is None else str(line[head]) for head in heads] for line in lines])


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=("sources", "value", "together", "discovery", "table"))
    ask.add_argument("archives", type=Path)
    ask.add_argument("hints", type=Path, nargs="?")
    ask.add_argument("--only", action="append", default=[], help="files whose name contains this text; repeatable")
    ask.add_argument("--policy", default="shock")
    ask.add_argument("--budget", type=float, default=0.01, help="visits per day, as a share of the pages (0.01)")
    ask.add_argument("--cycles", type=int, default=365)
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--change", default="text")
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    if asked.what == "table":
        print(table([json.loads(line) for line in asked.archives.read_text().splitlines()]).markdown())
        return
    if asked.hints is None:
        ask.error("name the folder of hint files")
    measures = {"sources": sources, "value": value, "together": together, "discovery": discovery}
    for line in measures[asked.what](asked):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
