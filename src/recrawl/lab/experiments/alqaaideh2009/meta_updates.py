"""Q's figure 1.3: an ordinary crawler against one that follows the meta-updates tag (spec H1), by needless crawls.

A tag names the days between two changes: PERIODIC or VARIABLE with a number of days, STATIC for 90. The ordinary
crawler visits every page every day, the other one a page when its tag says that it is due. A *needless crawl* is a
visit that finds nothing new. Q reports only that the tags showed good results over three weeks, so the worlds are those
of table 4.1. There a page's tag is its site's (or, with two kinds of pages, its own) real rate; on archives it is the
page's rate in the three weeks before. Authors need not set tags, as Q says, so half of them do not in one variant: then
a page is visited every day.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.experiments.alqaaideh2009 import measures
from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.experiments.alqaaideh2009.figures import WORLD_NAMES, changed_by_day
from recrawl.lab.experiments.intervals import above, interval
from recrawl.lab.experiments.readings import reading
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row, by_world
from recrawl.lab.experiments.tan2007 import ARCHIVES, archive_history

STATIC_DAYS = 90
ORDINARY, EQUAL, TAGS, HALF = "ordinary", "ordinary, as many visits", "meta-updates", "meta-updates, half the pages"


def fig_1_3(options: ExperimentOptions) -> Result:
    """Needless crawls and freshness of both crawlers, for both readings of when a tag was written."""
    rows: list[Row] = []
    for name, tags, runs in _worlds(options):
        by_crawler: dict[str, list[dict[str, Any]]] = {}
        for changed, days in runs:
            for crawler, found in compare_crawlers(changed, days).items():
                by_crawler.setdefault(crawler, []).append(found)
        rows += [_row(name, tags, crawler, found) for crawler, found in by_crawler.items()]
    return Result(
        rows,
        claims=[claim for world, part in by_world(rows).items() for claim in _claims(world, part)],
        pictures=[
            Picture("grouped", "crawler", "freshness", "Fig. 1.3: freshness average", "", "freshness", colour="world"),
        ],
        worlds=[
            "*made*: the nine sites of table 4.1 over six weeks, of which the last three are crawled",
            *([f"*{ARCHIVES}*: six weeks in the middle of each real site's history, of which three are crawled"]
              * bool(options.archives)),
        ],
        notes=["Q's figure has no printed values; Q names the number of needless crawls as the measure (§1.3.1).",
               ("*tags from before*: a tag is the rate in the three weeks before the crawl. *tags from the days "
               "crawled*: the rate of the very days, with which the tag cannot but agree.")],
        table={"world": "world", "reading": "reading", "crawler": "crawler", "visits": ">visits", "found": ">found",
               "needless": ">needless", "freshness": ">freshness"},
    )  # fmt: skip


def _row(world: str, tags: str, crawler: str, runs: list[dict[str, Any]]) -> Row:
    """The means over the runs."""
    means = {key: fmean(run[key] for run in runs) for key in ("visits", "found", "needless", "freshness")}
    by_seed = {f"{key}_by_seed": [run[key] for run in runs] for key in ("needless", "freshness")}
    return {"world": world, "reading": tags, "crawler": crawler, **means, **by_seed}


def _worlds(options: ExperimentOptions) -> Iterator[tuple[str, str, list[tuple[Flags, Ints]]]]:
    """A world, a reading, and for each run the days that are crawled and the tags."""
    spans: dict[str, slice] = {reading("tags"): slice(0, q.DAYS), reading("tags", 1): slice(q.DAYS, 2 * q.DAYS)}
    seeds = range(1, options.seeds + 1)
    for mix, name in WORLD_NAMES.items():
        runs = [measures.nine_sites(mix, seed, days=2 * q.DAYS) for seed in seeds]
        for tags, span in spans.items():
            yield (
                name,
                tags,
                [(changed[q.DAYS :], tag_days(_rates(site, changed[span], mix))) for site, changed in runs],
            )
    if options.archives:
        _, changed = changed_by_day(archive_history(options), 2 * q.DAYS)
        for tags, span in spans.items():
            yield ARCHIVES, tags, [(changed[q.DAYS :], tag_days(changed[span].mean(axis=0)))]


def _rates(site: Ints, changed: Flags, mix: str) -> Floats:
    """Each page's rate, or where the pages of a site are alike, its site's."""
    if mix == "two-kinds":
        return np.asarray(changed.mean(axis=0))
    return np.array([changed[:, site == w].mean() for w in range(len(q.SITES))])[site]


def tag_days(rate: Floats) -> Ints:
    """The days between two changes that a tag names, from the share of days with a change; STATIC for the rarest.

    >>> tag_days(np.array([1.0, 0.5, 0.001, 0.0])).tolist()
    [1, 2, 90, 90]
    """
    return np.clip(np.round(1 / np.maximum(rate, 1e-9)), 1, STATIC_DAYS).astype(np.int64)


def compare_crawlers(changed: Flags, days: Ints) -> dict[str, dict[str, Any]]:
    """Visits, finds, needless crawls and mean freshness of each crawler; `changed` is by day and page."""
    pages = changed.shape[1]
    every_day = np.ones(pages, np.int64)
    half = np.where(np.random.default_rng(13).random(pages) < 0.5, days, every_day)
    found = {ORDINARY: follow(changed, every_day), TAGS: follow(changed, days), HALF: follow(changed, half)}
    return found | {EQUAL: in_turn(changed, found[TAGS]["visits"])}


def follow(changed: Flags, days: Ints) -> dict[str, Any]:
    """Visit every page whose last visit is at least its `days` ago, once a day, after the day's changes.

    >>> follow(np.array([[True, False], [False, False]]), np.array([1, 2]))["needless"]
    2
    """
    last = np.zeros(changed.shape[1], np.int64)
    return _crawl(changed, lambda day: _visit_due(last, days, day))


def in_turn(changed: Flags, visits: int) -> dict[str, Any]:
    """Visit the pages in turn, with this many visits spread evenly over the days."""
    pages, length = changed.shape[1], len(changed)

    def due(day: int) -> Flags:
        chosen = np.zeros(pages, bool)
        chosen[np.arange(visits * (day - 1) // length, visits * day // length) % pages] = True
        return chosen

    return _crawl(changed, due)


def _visit_due(last: Ints, days: Ints, day: int) -> Flags:
    due: Flags = day - last >= days
    last[due] = day
    return due


def _crawl(changed: Flags, due: Any) -> dict[str, Any]:
    stale = np.zeros(changed.shape[1], bool)
    visits = found = 0
    fresh = []
    for day, now in enumerate(changed, 1):
        stale |= now
        chosen = due(day)
        visits += int(chosen.sum())
        found += int((stale & chosen).sum())
        stale &= ~chosen
        fresh.append(1 - float(stale.mean()))
    return {"visits": visits, "found": found, "needless": visits - found, "freshness": float(np.mean(fresh))}


def _claims(world: str, rows: list[Row]) -> Iterator[Claim]:
    place = "§1.3.1, fig. 1.3"
    for tags in dict.fromkeys(row["reading"] for row in rows):
        figures = {row["crawler"]: row for row in rows if row["reading"] == tags}
        tagged, ordinary, equal = figures[TAGS], figures[ORDINARY], figures[EQUAL]
        given = tags == reading("tags", 1)
        fewer = above(ordinary["needless_by_seed"], tagged["needless_by_seed"])
        yield Claim.of(
            place, "With tags there are fewer needless crawls.", world, fewer,
            f"{tagged['needless']:,.0f} of {tagged['visits']:,.0f} visits against {ordinary['needless']:,.0f} of "
            f"{ordinary['visits']:,.0f}",
            "assumed: most pages change daily, so hardly any crawl is needless", given=given, reading=tags,
        )  # fmt: skip
        fresher = above(tagged["freshness_by_seed"], equal["freshness_by_seed"])
        yield Claim.of(
            place, "With tags the freshness average is higher (for as many visits).", world, fresher,
            f"{interval(tagged['freshness_by_seed'])}, an ordinary crawler with as many visits "
            f"{interval(equal['freshness_by_seed'])}, with all of its visits {interval(ordinary['freshness_by_seed'])}",
            "assumed: a page's past rate says little about the next weeks", given=given, reading=tags,
        )  # fmt: skip
