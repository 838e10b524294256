"""Sums that are written when a crawl or a cycle ends, so that nobody has to scan pages or visits to show them.

    cycle_summaries   one row a cycle: what came of its visits, what was expected, how fresh the repository then was
    site_cycles       the same by site, as far as visits go
    site_summaries    one row a site: how it stands since the last cycle

Repositories of before these tables, and cycles whose process died at their very end, are caught up with by `catch_up`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from recrawl.learn.rates.staleness import Belief, Floats, believe, mean_and_deviation, spread
from recrawl.model import Outcome, State
from recrawl.record.rows import CycleRow
from recrawl.record.store import Columns, Store, Transaction

AGES = (3600.0, 21600.0, 86400.0, 259200.0, 604800.0, 1209600.0, 2592000.0, 7776000.0)
"""Where the classes of the age distribution end: 1 h, 6 h, 1 d, 3 d, 7 d, 14 d, 30 d, 90 d, and one beyond."""
_DAY = 86400.0
_PAGES = {
    "site": "i4",
    "state": "i1",
    "visits": "i4",
    "changes": "i4",
    "failures": "i4",
    "size": "i8",
    "found": "f8",
    "last_visit": "f8",
    "last_change": "f8",
}
_VISITS = {"page": "i8", "at": "f8", "outcome": "i1", "status": "i4", "received": "i8", "seconds": "f8", "before": "f8"}


def summarise(store: Store, cycle: CycleRow, now: float) -> None:
    """Write the sums for a cycle that has just ended."""
    visits = _visits(store, cycle)
    pages = _pages(store)
    sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
    changes = pages["changes"] - 1  # its creation is counted too
    belief, rates = believe(pages["site"], pages["visits"], changes, pages["last_visit"] - pages["found"], sites)
    expected, wider = _expected(visits, pages, sites)
    row = _cycle_row(store, cycle, visits, expected, wider)
    fresh = _fresh(pages, belief, now)
    kept = ~np.isnan(fresh)
    row["pages"] = int(kept.sum())
    row["freshness"], row["freshness_sd"] = mean_and_deviation(fresh[kept], wider)
    ages = now - pages["last_visit"][kept]
    row["age"] = float(ages.mean()) if len(ages) else None
    row["ages"] = json.dumps(np.bincount(np.digitize(ages, AGES), minlength=len(AGES) + 1).tolist())
    with Transaction(store.db):
        _write(store, "cycle_summaries", [row])
        _write(store, "site_cycles", _site_cycles(cycle, visits, pages, expected, sites))
        store.db.execute("DELETE FROM site_summaries")
        _write(store, "site_summaries", _site_rows(pages, fresh, rates, wider, now, sites))


def catch_up(store: Store, now: float) -> int:
    """Write what is missing; how many cycles that were. How fresh things were in the past is not made up."""
    missing = [
        CycleRow(*row)
        for row in store.db.execute(
            """SELECT c.* FROM cycles c LEFT JOIN cycle_summaries s ON s.cycle = c.id
               WHERE s.cycle IS NULL AND c.finished NOT NULL ORDER BY c.id"""
        )
    ]
    pages = _pages(store) if len(missing) > 1 else {}
    for cycle in missing[:-1]:
        visits = _visits(store, cycle)
        sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
        expected, wider = _expected(visits, pages, sites)
        with Transaction(store.db):
            _write(store, "cycle_summaries", [_cycle_row(store, cycle, visits, expected, wider)])
            _write(store, "site_cycles", _site_cycles(cycle, visits, pages, expected, sites))
    if missing:
        newest = missing[-1]
        summarise(store, newest, now if newest.finished is None else newest.finished)
    return len(missing)


def _pages(store: Store) -> Columns:
    names = ", ".join(f"ifnull({name}, -9e999)" if name.startswith("last_") else name for name in _PAGES)
    return store.columns(f"SELECT {names} FROM pages ORDER BY id", _PAGES)  # noqa: S608


def _visits(store: Store, cycle: CycleRow) -> Columns:
    """The cycle's visits; `before` is when the page was last looked at before, nan when it never was."""
    return store.columns(
        """SELECT v.page, v.at, v.outcome, v.status, v.received, v.seconds,
                  ifnull((SELECT w.at FROM visits w WHERE w.page = v.page AND w.id < v.id AND w.outcome != 4
                          ORDER BY w.id DESC LIMIT 1), -9e999)
           FROM visits v WHERE v.id >= ? AND v.id < ? AND v.cycle = ? ORDER BY v.id""",
        _VISITS,
        (cycle.first_visit, _end(store, cycle), cycle.id),
    )


def _end(store: Store, cycle: CycleRow) -> int:
    """The number of a visit behind all of the cycle's own. A crawl may have come between, when the cycle was stopped
    and gone on with; but not after its end."""
    sql = "SELECT min(first_visit) FROM cycles WHERE id > ? AND started >= ?"
    row = store.db.execute(sql, (cycle.id, cycle.finished)).fetchone()
    return 1 << 62 if row[0] is None else int(row[0])


def _expected(visits: Columns, pages: Columns, sites: int) -> tuple[Floats, float]:
    """The chance of an update at each visit as it was before the visit, nan where nothing could be expected; and how
    much wider than by chance what was found lies around it."""
    page = visits["page"]
    found = np.isin(visits["outcome"], (Outcome.CHANGED, Outcome.GONE))
    again = np.isfinite(visits["before"]) & (visits["outcome"] != Outcome.FAILED)
    mine = {name: pages[name][page] for name in ("site", "visits", "changes", "found")}
    before = np.where(again, visits["before"], 0.0)
    belief, _ = believe(mine["site"], mine["visits"] - 1, mine["changes"] - 1 - found, before - mine["found"], sites)
    chance = np.where(again, 1.0 - belief.still(visits["at"] - before), np.nan)
    wider = spread(mine["site"][again], chance[again], found[again], sites)
    return chance, wider


def _cycle_row(store: Store, cycle: CycleRow, visits: Columns, expected: Floats, wider: float) -> dict[str, Any]:
    outcomes = np.bincount(visits["outcome"], minlength=len(Outcome))
    chance = expected[~np.isnan(expected)]
    failures = store.db.execute(
        "SELECT failure, count(*) FROM visits WHERE id >= ? AND id < ? AND cycle = ? AND failure NOT NULL GROUP BY 1",
        (cycle.first_visit, _end(store, cycle), cycle.id),
    )
    return {
        "cycle": cycle.id,
        "visits": len(visits["page"]),
        **{outcome.name.lower(): int(outcomes[outcome]) for outcome in Outcome},
        "not_modified": int((visits["status"] == 304).sum()),
        "received": int(visits["received"].sum()),
        "seconds": float(visits["seconds"].sum()),
        "expected": float(chance.sum()),
        "expected_sd": float(np.sqrt(wider * (chance * (1.0 - chance)).sum())),
        "failures": json.dumps(dict(failures.fetchall())),
    }


def _fresh(pages: Columns, belief: Belief, now: float) -> Floats:
    """The chance that a page is still as stored; nan for pages of which nothing is stored."""
    kept = np.isin(pages["state"], (State.LIVE, State.MISSING)) & np.isfinite(pages["last_visit"])
    return np.where(kept, belief.still(np.where(kept, now - pages["last_visit"], 0.0)), np.nan)


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
    chance = fresh[kept]
    mean = np.bincount(site[kept], chance, sites) / live
    deviation = np.sqrt(np.bincount(site[kept], chance * (1 - chance), sites) * wider) / live
    age = np.bincount(site[kept], now - pages["last_visit"][kept], sites) / live
    last = {}
    for name in ("last_visit", "last_change"):
        last[name] = np.full(sites, -np.inf)
        np.maximum.at(last[name], site, pages[name])
    some = np.bincount(site[kept], minlength=sites) > 0
    return [
        {
            "site": k,
            "at": now,
            **{name: int(values[k]) for name, values in number.items()},
            **{name: float(values[k]) if np.isfinite(values[k]) else None for name, values in last.items()},
            "rate": float(rates[k]) * _DAY,
            "freshness": float(mean[k]) if some[k] else None,
            "freshness_sd": float(deviation[k]) if some[k] else None,
            "age": float(age[k]) if some[k] else None,
        }
        for k in np.flatnonzero(number["pages"]).tolist()
    ]


def _write(store: Store, table: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    names = list(rows[0])
    marks = ", ".join("?" * len(names))
    sql = f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
    store.db.executemany(sql, ([row[name] for name in names] for row in rows))
