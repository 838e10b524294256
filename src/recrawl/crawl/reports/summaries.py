"""Sums by cycle and site, written when a crawl or cycle ends, so that displaying them needs no scan of the tables.

    cycle_summaries   one row per cycle: outcomes of its visits, expected updates, freshness of the repository
    site_cycles       the visits of a cycle by site
    site_summaries    one row per site: its state after the last cycle

`catch_up` adds rows for cycles from before these tables, and for cycles whose process died at their very end.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from recrawl.columns import DAY, HOUR, Floats
from recrawl.learn.rates.staleness import RateModel, fit_rates, mean_and_deviation, spread
from recrawl.model import Outcome, State
from recrawl.record.rows import CycleRow
from recrawl.record.store import Columns, Store

AGES = (HOUR, 6 * HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY)
"""Upper ends of the classes of the age distribution, in seconds; the last class is open."""


def summarise(store: Store, cycle: CycleRow, now: float) -> None:
    """Write the sums for a cycle that has just ended."""
    visits = store.visits.with_previous(cycle)
    pages = store.pages.summary_columns()
    sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
    changes = pages["changes"] - 1  # without its creation
    model, rates = fit_rates(pages["site"], pages["visits"], changes, pages["last_visit"] - pages["found"], sites)
    expected, wider = _expected(visits, pages, sites)
    row = _cycle_row(store, cycle, visits, expected, wider)
    fresh = _fresh(pages, model, now)
    kept = ~np.isnan(fresh)
    row["pages"] = int(kept.sum())
    row["freshness"], row["freshness_sd"] = mean_and_deviation(fresh[kept], wider)
    ages = now - pages["last_visit"][kept]
    row["age"] = float(ages.mean()) if len(ages) else None
    row["ages"] = json.dumps(np.bincount(np.digitize(ages, AGES), minlength=len(AGES) + 1).tolist())
    store.summaries.write(
        row,
        _site_cycles(cycle, visits, pages, expected, sites),
        _site_rows(pages, fresh, rates, wider, now, sites),
    )


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
    return len(missing)


def _expected(visits: Columns, pages: Columns, sites: int) -> tuple[Floats, float]:
    """The probability of an update before each visit, NaN for first and failed visits; and the overdispersion of the
    updates found around it."""
    page = visits["page"]
    found = np.isin(visits["outcome"], (Outcome.CHANGED, Outcome.GONE))
    again = np.isfinite(visits["before"]) & (visits["outcome"] != Outcome.FAILED)
    mine = {name: pages[name][page] for name in ("site", "visits", "changes", "found")}
    before = np.where(again, visits["before"], 0.0)
    model, _ = fit_rates(mine["site"], mine["visits"] - 1, mine["changes"] - 1 - found, before - mine["found"], sites)
    probability = np.where(again, 1.0 - model.unchanged(visits["at"] - before), np.nan)
    wider = spread(mine["site"][again], probability[again], found[again], sites)
    return probability, wider


def _cycle_row(store: Store, cycle: CycleRow, visits: Columns, expected: Floats, wider: float) -> dict[str, Any]:
    outcomes = np.bincount(visits["outcome"], minlength=len(Outcome))
    probability = expected[~np.isnan(expected)]
    return {
        "cycle": cycle.id,
        "visits": len(visits["page"]),
        **{outcome.name.lower(): int(outcomes[outcome]) for outcome in Outcome},
        "not_modified": int((visits["status"] == 304).sum()),
        "received": int(visits["received"].sum()),
        "seconds": float(visits["seconds"].sum()),
        "expected": float(probability.sum()),
        "expected_sd": float(np.sqrt(wider * (probability * (1.0 - probability)).sum())),
        "failures": json.dumps(store.visits.failures_of_cycle(cycle)),
    }


def _fresh(pages: Columns, model: RateModel, now: float) -> Floats:
    """The probability that a page is still as stored; NaN for pages without a stored version."""
    kept = np.isin(pages["state"], (State.LIVE, State.MISSING)) & np.isfinite(pages["last_visit"])
    return np.where(kept, model.unchanged(np.where(kept, now - pages["last_visit"], 0.0)), np.nan)


def _site_cycles(
    cycle: CycleRow, visits: Columns, pages: Columns, expected: Floats, sites: int
) -> list[dict[str, Any]]:
    site = pages["site"][visits["page"]]
    updates = np.isin(visits["outcome"], (Outcome.CHANGED, Outcome.NEW, Outcome.GONE))
    sums = {
        "visits": np.ones(len(site)),
        "updates": updates,
        "failed": visits["outcome"] == Outcome.FAILED,
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


def _site_rows(
    pages: Columns, fresh: Floats, rates: Floats, wider: float, now: float, sites: int
) -> list[dict[str, Any]]:
    site, kept = pages["site"], ~np.isnan(fresh)
    states = {state: np.bincount(site[pages["state"] == state], minlength=sites) for state in State}
    number = {
        "pages": np.bincount(site, minlength=sites),
        **{state.name.lower(): states[state] for state in State},
        "visits": np.bincount(site, pages["visits"], sites),
        "changes": np.bincount(site, pages["changes"], sites),
        "failing": np.bincount(site[pages["failures"] > 0], minlength=sites),
        "bytes": np.bincount(site, pages["size"], sites),
    }
    live = np.maximum(np.bincount(site[kept], minlength=sites), 1)
    probability = fresh[kept]
    mean = np.bincount(site[kept], probability, sites) / live
    deviation = np.sqrt(np.bincount(site[kept], probability * (1 - probability), sites) * wider) / live
    age = np.bincount(site[kept], now - pages["last_visit"][kept], sites) / live
    last = {}
    for name in ("last_visit", "last_change"):
        last[name] = np.full(sites, -np.inf)
        np.maximum.at(last[name], site, pages[name])
    has_pages = np.bincount(site[kept], minlength=sites) > 0
    return [
        {
            "site": k,
            "at": now,
            **{name: int(values[k]) for name, values in number.items()},
            **{name: float(values[k]) if np.isfinite(values[k]) else None for name, values in last.items()},
            "rate": float(rates[k]) * DAY,
            "freshness": float(mean[k]) if has_pages[k] else None,
            "freshness_sd": float(deviation[k]) if has_pages[k] else None,
            "age": float(age[k]) if has_pages[k] else None,
        }
        for k in np.flatnonzero(number["pages"]).tolist()
    ]
