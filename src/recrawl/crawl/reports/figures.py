"""The figures of a repository, each computed here and nowhere else; the glossary defines them.

    pages      known URLs in any state but dropped
    stored     pages with a copy that counts: live, or missing and not yet gone
    fresh now  expected share of the stored pages whose copy is current
    checked    time since the last visit of the stored pages: quantiles

`renew` writes them at the end of every command that changes pages, so that reading them does not depend on the number
of pages. Freshness fades and ages grow with time: what is written allows for that. `current` measures them anew while
a crawl or cycle is under way.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.columns import DAY, HOUR, Flags, Floats, Ints, unique
from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.learn.chunks import where
from recrawl.learn.rates import page_rates, share_deviation, site_rates
from recrawl.model import State
from recrawl.record.storage import Storage
from recrawl.record.store import Columns, SqliteStore, Store
from recrawl.version import __version__

# --------------------------------------------------------------------------------------------------------------------
# The columns from which figures are computed, one row per page; large repositories keep them in a file.
#
# Reading a million rows from the store takes a second of CPU time. Most rows are as they were: the others are those of
# pages found or visited since, which their numbers tell, and of pages in the store's list of changes without a visit.
# The shards of a cluster have no file: several machines write them.


_MIN_PAGES = 100_000
"""Smaller repositories have no file."""
_SHARE = 16
"""The file is written anew when more than one row in this many is outdated."""
_HEAD = frozenset({"version", "touched", "upto", "last"})


def summary_columns(repository: Storage) -> Columns:
    """The columns that summaries need, as `PageTable.summary_columns` returns them; for the holder of the lock."""
    store, pages = repository.store, repository.store.next_id("pages")
    if pages < _MIN_PAGES or not isinstance(store, SqliteStore):
        return store.pages.summary_columns()
    file = read_arrays(_file(repository)) or {}
    outdated = _outdated(file, store, pages)
    if outdated is None or len(outdated) > pages // _SHARE:
        file.clear()
        columns = store.pages.summary_columns()
        _write(repository, columns)
        return columns
    columns = {}
    for name, rows in store.pages.summary_columns(outdated.tolist()).items():
        before = file.pop(name)
        columns[name] = column = np.empty(pages, before.dtype)
        column[: len(before)] = before
        column[outdated] = rows
    return columns


def _outdated(file: Arrays, store: Store, pages: int) -> Ints | None:
    """The pages whose rows in the file are missing or outdated; None if the file cannot be used."""
    from recrawl.crawl.state.load_book import mark_before  # lazy: loads what finds copies

    if not file.keys() > _HEAD or str(file["version"]) != __version__:
        return None
    number, touched = store.pages.touched()
    upto, known = int(file["upto"]), len(file["site"])
    if int(file["touched"]) != number or not 0 < known <= pages or upto > store.next_id("visits"):
        return None
    same_page = store.pages.summary_columns([known - 1])["found"][0] == file["found"][-1]
    if not same_page or not np.array_equal(file["last"], mark_before(store, upto)):
        return None  # a copy of the store from before was restored
    found: Ints = np.arange(known, pages)
    return unique(np.concatenate((store.visits.pages_since(upto), np.array(touched, np.int64), found)))


def _write(repository: Storage, columns: Columns) -> None:
    from recrawl.crawl.state.load_book import mark_before  # lazy: loads what finds copies

    store = repository.store
    number, upto = store.pages.touched()[0] + 1, store.next_id("visits")
    head = {
        "version": np.array(__version__),
        "touched": np.array(number),
        "upto": np.array(upto),
        "last": mark_before(store, upto),
    }
    write_arrays(_file(repository), {**head, **columns})
    store.pages.begin_touched(number)  # a crash before leaves a file with another number than the list


def _file(repository: Storage) -> Path:
    return repository.folder / "models" / "page-rows.npz"


# --------------------------------------------------------------------------------------------------------------------


AGES = (HOUR, 6 * HOUR, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY)
"""Upper ends of the classes of the age distribution, in seconds; the last class is open."""
QUANTILES = (10, 50, 90, 100)
_AHEAD = (0.0, 60.0, 600.0, *(n * HOUR for n in (1, 3, 6, 12)), *(n * DAY for n in (1, 2, 4, 7, 14, 30, 90, 365)))
"""Seconds after the measurement for which freshness is computed ahead."""
_META = "figures"
_Z90 = 1.64
"""Half-width of a 90 % interval, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured at a time, and how it goes on from there if nothing is visited."""

    at: float
    visits: int
    """All visits, whatever came of them."""
    sites: int
    """Sites with a page."""
    states: dict[str, int]
    stored: int
    fading: tuple[float, ...]
    """Freshness at the times `_AHEAD` after the measurement; empty without a stored page."""
    deviation: float
    """Standard deviation of the freshness."""
    spread: float
    """Overdispersion of updates, measured in the last cycle."""
    last_visits: tuple[float, ...]
    """Times of the last visits of stored pages: the quantiles of their age, youngest first."""
    ages: tuple[int, ...]
    """Stored pages by time since the last visit, in the classes of `AGES`, as of `at`."""
    last_visit: float | None
    """The last visit that was answered."""

    @property
    def pages(self) -> int:
        """Known URLs in any state but dropped."""
        return sum(self.states.values()) - self.states[State.DROPPED.name.lower()]

    def fresh(self, now: float) -> float | None:
        """The expected share of the stored pages whose copy is current; None without a stored page."""
        return float(np.interp(now - self.at, _AHEAD, self.fading)) if self.fading else None

    def ages_at(self, now: float) -> dict[str, float]:
        """Seconds since the last visit of a stored page: p10, p50, p90, p100; empty without one."""
        return {f"p{share}": max(0.0, now - time) for share, time in zip(QUANTILES, self.last_visits, strict=False)}

    def as_dict(self, now: float) -> dict[str, Any]:
        """The figures at a time, under the names that the command line, the API and the metrics share."""
        fresh = self.fresh(now)
        low, high = band(fresh, self.deviation)
        return {
            "pages": self.pages,
            "stored": self.stored,
            "states": self.states,
            "sites": self.sites,
            "visits": self.visits,
            "last_visit": self.last_visit,
            "freshness": fresh,
            "freshness_low": low,
            "freshness_high": high,
            "freshness_sd": self.deviation if self.fading else None,
            "age_seconds": self.ages_at(now),
        }


NOTHING = Figures(
    at=0.0,
    visits=0,
    sites=0,
    states={state.name.lower(): 0 for state in State},
    stored=0,
    fading=(),
    deviation=0.0,
    spread=1.0,
    last_visits=(),
    ages=(0,) * (len(AGES) + 1),
    last_visit=None,
)
"""The figures of an empty repository."""


def band(mean: float | None, deviation: float | None) -> tuple[float | None, float | None]:
    """Return the 90 % interval of a share.

    >>> band(0.5, 0.1), band(0.99, 0.1), band(None, None)
    ((0.336, 0.664), (0.826, 1.0), (None, None))
    """
    if mean is None or deviation is None:
        return None, None
    return max(0.0, round(mean - _Z90 * deviation, 6)), min(1.0, round(mean + _Z90 * deviation, 6))


def current(store: Store, now: float) -> tuple[Figures, list[dict[str, Any]]]:
    """The figures of the repository and of its sites; measured anew if visits were made since they were written."""
    written = stored(store)
    if written is not None and written.visits == store.count("visits"):
        return written, store.summaries.site_rows()
    return measure(store, store.pages.summary_columns(), now, written.spread if written else 1.0)


def stored(store: Store) -> Figures | None:
    """The figures as they were written last; None before the first crawl, import or removal has ended."""
    text = store.meta.get(_META, "")
    if not text:
        return None
    values = json.loads(text)
    lists = {name: tuple(values[name]) for name in ("fading", "last_visits", "ages")}
    return Figures(**{**values, **lists})


def renew(store: Store, now: float) -> None:
    """Measure and write the figures after pages have changed outside of a cycle."""
    before = stored(store)
    figures, sites = measure(store, store.pages.summary_columns(), now, before.spread if before else 1.0)
    store.summaries.write_sites(sites)
    write(store, figures)


def write(store: Store, figures: Figures) -> None:
    """Write the figures of the repository."""
    store.meta.set(_META, json.dumps(asdict(figures)))


@dataclass(frozen=True, slots=True)
class _Freshness:
    """Sums over the stored pages of the probability that a copy is current."""

    ahead: Floats
    """At the times `_AHEAD`."""
    now: Floats
    """Now, by site."""
    variance: Floats
    """Of the sums now, by site, if pages were independent."""


def measure(store: Store, pages: Columns, now: float, spread: float) -> tuple[Figures, list[dict[str, Any]]]:
    """Measure the repository and its sites, from one row per page."""
    from recrawl.crawl.state.load_book import past  # lazy: `status` reads what was counted

    sites = max(store.next_id("sites"), int(pages["site"].max(initial=-1)) + 1)
    pages = {**pages, "last_visit": past(pages["last_visit"], now)}
    watched = np.maximum(pages["last_visit"] - pages["found"], 0.0)
    changes = pages["changes"] - 1  # without its creation
    rates = site_rates(pages["site"], pages["visits"], changes, watched, sites)
    kept = np.isin(pages["state"], (State.LIVE, State.MISSING)) & np.isfinite(pages["last_visit"])
    fresh = _Freshness(np.zeros(len(_AHEAD)), np.zeros(sites), np.zeros(sites))
    for rows in where(kept):  # in chunks: columns of intermediate results would take more memory than the rows
        site, gap = pages["site"][rows], now - pages["last_visit"][rows]
        model = page_rates(pages["visits"][rows], changes[rows], watched[rows], rates[site])
        fresh.ahead[:] += [model.unchanged(gap + ahead).sum() for ahead in _AHEAD]
        current = model.unchanged(gap)
        fresh.now[:] += np.bincount(site, current, sites)
        fresh.variance[:] += np.bincount(site, current * (1 - current), sites)
    del watched, changes
    whole = _whole(store, pages, kept, fresh, now, spread)
    return whole, _site_rows(pages, kept, fresh, rates, spread, now, sites)


def _whole(store: Store, pages: Columns, kept: Flags, fresh: _Freshness, now: float, spread: float) -> Figures:
    states = np.bincount(pages["state"], minlength=len(State))
    last = np.sort(pages["last_visit"][kept])
    last_any = pages["last_visit"].max(initial=-np.inf)
    places = [min(len(last) - 1, int(share / 100 * len(last))) for share in QUANTILES] if len(last) else []
    return Figures(
        at=now,
        visits=store.count("visits"),
        sites=int(np.count_nonzero(np.bincount(pages["site"][pages["state"] != State.DROPPED]))),
        states={state.name.lower(): int(states[state]) for state in State},
        stored=len(last),
        fading=tuple((fresh.ahead / len(last)).tolist()) if len(last) else (),
        deviation=share_deviation(float(fresh.variance.sum()), len(last), spread),
        spread=spread,
        last_visits=tuple(last[::-1][places].tolist()),
        ages=tuple(np.bincount(np.digitize(now - last, AGES), minlength=len(AGES) + 1).tolist()),
        last_visit=float(last_any) if np.isfinite(last_any) else None,
    )


def _site_rows(
    pages: Columns, kept: Flags, fresh: _Freshness, rates: Floats, spread: float, now: float, sites: int
) -> list[dict[str, Any]]:
    site = pages["site"]
    states = {state: np.bincount(site[pages["state"] == state], minlength=sites) for state in State}
    rows = np.bincount(site, minlength=sites)
    number = {
        "pages": rows - states[State.DROPPED],
        **{state.name.lower(): states[state] for state in State},
        "visits": np.bincount(site, pages["visits"], sites),
        "changes": np.bincount(site, pages["changes"], sites),
        "failing": np.bincount(site[pages["failures"] > 0], minlength=sites),
        "bytes": np.bincount(site, pages["size"], sites),
    }
    has_pages = np.bincount(site[kept], minlength=sites)
    live = np.maximum(has_pages, 1)
    mean = fresh.now / live
    deviation = np.sqrt(fresh.variance * spread) / live
    age = np.bincount(site[kept], now - pages["last_visit"][kept], sites) / live
    last = {}
    for name in ("last_visit", "last_change"):
        last[name] = np.full(sites, -np.inf)
        np.maximum.at(last[name], site, pages[name])
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
        for k in np.flatnonzero(rows).tolist()
    ]
