"""Sums by cycle and site, written when a crawl or cycle ends, so that displaying them needs no scan of the tables.

    cycle_summaries   one row per cycle: outcomes of its visits, expected updates, freshness of the repository
    site_cycles       the visits of a cycle by site
    site_summaries    one row per site: its state after the last cycle

`catch_up` adds rows for cycles from before these tables, and for cycles whose process died at their very end.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from recrawl.columns import Floats
from recrawl.crawl.reports.figures import measure, renew, stored, write
from recrawl.learn.rates import fit_rates, spread
from recrawl.model import SKIPPED, Failure, Outcome
from recrawl.record.rows import CycleRow
from recrawl.record.store import Columns, Store


def summarise(store: Store, cycle: CycleRow, now: float, pages: Columns | None = None) -> None:
    """Write the sums for a cycle that has just ended, and the figures of the repository and its sites.

    `pages` are the columns of `summary_columns`, if they were read.
    """
    visits = store.visits.with_previous(cycle)
    pages = store.pages.summary_columns() if pages is None else pages
    sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
    expected, wider = _expected(visits, pages, sites)
    measured, site_rows = measure(store, pages, now, wider)
    ages = measured.ages_at(now)
    row = {
        **_cycle_row(store, cycle, visits, expected, wider),
        "pages": measured.stored,
        "freshness": measured.fresh(now),
        "freshness_sd": measured.deviation if measured.fading else None,
        "age": ages.get("p50"),
        "ages": json.dumps(measured.ages),
    }
    store.summaries.write(row, _site_cycles(cycle, visits, pages, expected, sites), site_rows)
    write(store, measured)


def catch_up(store: Store, now: float) -> int:
    """Write missing sums; returns the number of cycles. Past freshness is left empty, as it is not known."""
    missing = store.cycles.without_summary()
    pages = store.pages.summary_columns() if len(missing) > 1 else {}
    for cycle in missing[:-1]:
        visits = store.visits.with_previous(cycle)
        sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
        expected, wider = _expected(visits, pages, sites)
        row = _cycle_row(store, cycle, visits, expected, wider)
        store.summaries.write(row, _site_cycles(cycle, visits, pages, expected, sites))
    if missing:
        newest = missing[-1]
        summarise(store, newest, now if newest.finished is None else newest.finished)
    elif stored(store) is None:
        renew(store, now)
    return len(missing)


def _expected(visits: Columns, pages: Columns, sites: int) -> tuple[Floats, float]:
    """The probability of an update before each visit, NaN for first and failed visits; and the overdispersion of the
    updates found around it."""
    page = visits["page"]
    found = np.isin(visits["outcome"], (Outcome.CHANGED, Outcome.GONE))
    again = np.isfinite(visits["before"]) & (visits["outcome"] != Outcome.FAILED)
    mine = {name: pages[name][page] for name in ("site", "visits", "changes", "found")}
    before = np.where(again, visits["before"], 0.0)
    model = fit_rates(mine["site"], mine["visits"] - 1, mine["changes"] - 1 - found, before - mine["found"], sites)
    probability = np.where(again, 1.0 - model.unchanged(visits["at"] - before), np.nan)
    wider = spread(mine["site"][again], probability[again], found[again], sites)
    return probability, wider


def _cycle_row(store: Store, cycle: CycleRow, visits: Columns, expected: Floats, wider: float) -> dict[str, Any]:
    outcomes = np.bincount(visits["outcome"], minlength=len(Outcome))
    probability = expected[~np.isnan(expected)]
    failures = Counter(store.visits.failures_of_cycle(cycle))
    return {
        "cycle": cycle.id,
        "visits": len(visits["page"]),
        **{outcome.name.lower(): int(outcomes[outcome]) for outcome in Outcome},
        "failed": int(visits["failed"].sum()),
        "skipped": sum(failures[word] for word in SKIPPED),
        "missing": failures[Failure.MISSING],
        "frame_only": store.visits.frame_only(cycle),
        "not_modified": int((visits["status"] == 304).sum()),
        "received": int(visits["received"].sum()),
        "seconds": float(visits["seconds"].sum()),
        "expected": float(probability.sum()),
        "expected_sd": float(np.sqrt(wider * (probability * (1.0 - probability)).sum())),
        "failures": json.dumps(failures),
    }


def _site_cycles(
    cycle: CycleRow, visits: Columns, pages: Columns, expected: Floats, sites: int
) -> list[dict[str, Any]]:
    site = pages["site"][visits["page"]]
    updates = np.isin(visits["outcome"], (Outcome.CHANGED, Outcome.NEW, Outcome.GONE))
    sums = {
        "visits": np.ones(len(site)),
        "updates": updates,
        "failed": visits["failed"],
        "not_modified": visits["status"] == 304,
        "received": visits["received"],
        "seconds": visits["seconds"],
        "expected": np.nan_to_num(expected),
    }
    table = {name: np.bincount(site, values, sites) for name, values in sums.items()}
    whole = {"visits", "updates", "failed", "not_modified", "received"}
    return [
        {
            "cycle": cycle.id,
            "site": number,
            **{name: int(values[number]) if name in whole else float(values[number]) for name, values in table.items()},
        }
        for number in np.flatnonzero(table["visits"]).tolist()
    ]
