"""Sites: rate, freshness, budget share, health; the tree of directories of one, and when its pages changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from recrawl.crawl.reports.figures import band
from recrawl.crawl.reports.hint_trust import trust
from recrawl.discover.urls import key
from recrawl.errors import NotKnown
from recrawl.fetch.robots import Robots
from recrawl.model import Outcome, State
from recrawl.repository.lookup import origin_of
from recrawl.repository.reader import Reader
from recrawl.repository.results.words import percent

MAX_PAGES = 5_000


"""Only the pages of a site that were discovered first are read."""


_MAX_CHILDREN = 40


_MAX_DEPTH = 6


PageCounts = tuple[int, str, int, int]


"""Page, URL, visits, changes."""


@dataclass(slots=True)
class Folder:
    """A directory: its pages and subdirectories, and totals over everything below it."""

    name: str
    pages: int = 0
    visits: int = 0
    """Visits without the first one of each page, which cannot find a change."""
    changes: int = 0
    folders: dict[str, Folder] = field(default_factory=dict)
    leaves: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Name, page, visits, changes; most changes first."""
    hidden: int = 0
    """Number of entries that are not listed."""

    @property
    def share(self) -> float | None:
        """Share of visits that found a change; None without such visits."""
        return self.changes / self.visits if self.visits else None


def tree(pages: Iterable[PageCounts], name: str) -> Folder:
    """Return pages as a tree.

    >>> top = tree([(0, "http://x/", 3, 3), (1, "http://x/a/b", 3, 1), (2, "http://x/a/c", 1, 1)], "x")
    >>> (top.share, top.folders["a"].pages, top.folders["a"].share)
    (0.5, 2, 0.0)
    """
    top = Folder(name)
    for page, url, visits, changes in pages:
        path, _, query = url.partition("?")  # stored URLs are canonical: no fragment, and a path that begins with /
        *folders, last = path.split("/")[3:] or [""]
        leaf = (unquote(last) or "/") + (f"?{query}" if query else "")
        compared, changed = max(0, visits - 1), max(0, changes - 1)
        here = top
        _count(here, compared, changed)
        for part in folders[:_MAX_DEPTH]:
            if part not in here.folders:
                here.folders[part] = Folder(unquote(part) or "/")
            here = here.folders[part]
            _count(here, compared, changed)
        here.leaves.append((leaf, page, compared, changed))
    _trim(top)
    return top


def _count(folder: Folder, visits: int, changes: int) -> None:
    folder.pages += 1
    folder.visits += visits
    folder.changes += changes


def _trim(folder: Folder) -> None:
    """Keep the entries that changed most and count the others."""
    folder.leaves.sort(key=lambda leaf: (-leaf[3], leaf[0]))
    ordered = sorted(folder.folders.items(), key=lambda item: (-item[1].changes, -item[1].pages, item[0]))
    folder.hidden = max(0, len(folder.leaves) - _MAX_CHILDREN) + max(0, len(ordered) - _MAX_CHILDREN)
    folder.leaves = folder.leaves[:_MAX_CHILDREN]
    folder.folders = dict(ordered[:_MAX_CHILDREN])
    for child in folder.folders.values():
        _trim(child)


_ROWS = 30


_COLUMNS = 32


_VISITS = 300


"""Only the newest visits of a page are read."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One page: visits and updates found, per interval."""

    page: int
    url: str
    visits: list[int]
    updates: list[int]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Pages by time; `edges` are the starts of the intervals and the end of the last one."""

    rows: list[HeatRow]
    edges: list[float]


def heat_map(repo: Reader, pages: Sequence[PageCounts], since: float = 0.0, until: float = math.inf) -> HeatMap:
    """Return the heat map of the pages that changed most, of this time; their first visits are left out."""
    top = sorted((row for row in pages if row[2] > 1), key=lambda row: (-row[3], -row[2], row[0]))[:_ROWS]
    visits = {page: [(at, new) for at, new in _visits(repo, page) if since <= at <= until] for page, _, _, _ in top}
    times = [at for rows in visits.values() for at, _ in rows]
    if not times:
        return HeatMap([], [])
    begin, end = min(times), max(times)
    columns = max(1, min(_COLUMNS, len({round(at, -3) for at in times})))
    step = max((end - begin) / columns, 1e-6)
    edges = [begin + k * step for k in range(columns + 1)]
    return HeatMap([_row(page, url, visits[page], begin, step, columns) for page, url, _, _ in top], edges)


def _row(page: int, url: str, visits: list[tuple[float, bool]], begin: float, step: float, columns: int) -> HeatRow:
    seen, updates = [0] * columns, [0] * columns
    for at, changed in visits:
        column = min(columns - 1, int((at - begin) / step))
        seen[column] += 1
        updates[column] += changed
    return HeatRow(page, url, seen, updates)


def _visits(repo: Reader, page: int) -> list[tuple[float, bool]]:
    """Return times of visits, newest first, and whether each found an update; without the page's first visit."""
    rows = repo.storage.store.visits.of_page(page, _VISITS)
    first = 1 if len(rows) < _VISITS else 0
    return [(at, outcome != int(Outcome.UNCHANGED)) for at, outcome in rows[: len(rows) - first]]


RECENT_CYCLES = 10


"""Cycles and crawls over which a site's share of the visits is computed."""


_MAX_NAMES = 500


_MAX_ROBOTS = 20_000


_WINDOW = 50_000


"""Pages scanned per call, however few of them match."""


_FAILING = 0.5


_UNSTABLE = 0.1


@dataclass(frozen=True, slots=True)
class SitePoliteness:
    """How a site is crawled: its robots.txt, rate limits, and how far its validators can be trusted."""

    robots_status: int
    """HTTP status of robots.txt; 0 without response, -1 before the first request."""
    robots_at: float
    robots: str
    """Text of robots.txt, shortened; empty if there is none."""
    held_since: float | None
    """Since when the site is on hold, because robots.txt is unavailable."""
    crawl_delay: float
    sitemaps: int
    """Sitemaps that robots.txt names."""
    sitemap_at: float
    delay: float
    """Seconds between two requests."""
    per_server: int
    held_until: float
    """Until when the server has asked for a pause."""
    last_modified: tuple[int, int]
    """How often Last-Modified was right and wrong."""
    etag: tuple[int, int]


def names(repo: Reader) -> list[tuple[int, str]]:
    """Return number and origin of the first 500 sites, by origin."""
    return repo.storage.store.sites.names(_MAX_NAMES)


def origin_named(repo: Reader, site: str) -> str:
    """Return the origin of a site as people write it; empty for an empty name; raise NotKnown if it is unknown."""
    return origin_of(repo.storage, site)


def number_named(repo: Reader, site: str) -> int | None:
    """Return the number of a site as people write it; None for an empty name."""
    origin = origin_named(repo, site)
    return repo.storage.store.sites.number(origin) if origin else None


def sites(repo: Reader, only: int | None = None) -> list[dict[str, Any]]:
    """Return all sites, or one, with their figures; some are None before a site's first cycle."""
    total, rows = repo.storage.store.summaries.recent(RECENT_CYCLES, only)
    return [_figures(row, total, repo.now()) for row in rows]


def summaries(repo: Reader, after: int, limit: int) -> list[dict[str, Any]]:
    """Return the sites with numbers above `after`, with totals and trust in their hints."""
    found, trusted = repo.storage.store.summaries.sites(after, limit), hints(repo)
    return [{**row, "hints": trusted.get(row["url"], [])} for row in found]


def summary(repo: Reader, number: int) -> dict[str, Any]:
    """Return a site with its totals, trust in its hints and its latest cycles; raise NotKnown if it is unknown."""
    store = repo.storage.store
    found = store.summaries.site(number)
    if found is None:
        raise NotKnown(f"there is no site {number}")
    return {**found, "hints": hints(repo).get(found["url"], []), "cycles": store.summaries.site_cycles(number, 100)}


def busiest(repo: Reader, limit: int) -> list[dict[str, Any]]:
    """Return the sites with most changes in the last cycles."""
    return repo.storage.store.summaries.busiest_sites(limit)


def hints(repo: Reader) -> dict[str, list[dict[str, Any]]]:
    """Return by origin how far each kind of hint is trusted."""
    return trust(repo.storage)


def rules(repo: Reader, number: int) -> SitePoliteness:
    """Return how a site is crawled."""
    stored, options = repo.storage.store.sites.get(number), repo.options()
    own = options.of_site(stored.origin).delay
    robots = Robots.from_answer(
        max(0, stored.robots_status),
        stored.robots_body,
        stored.robots_at,
        agent=options.agent,
        max_age=options.robots_age,
        failure=stored.robots_status == 0,
        held_since=stored.robots_held,
    )
    asked = stored.robots_status >= 0
    crawl_delay = robots.delay if asked else 0.0
    delay = options.delay if own is None else own
    body = stored.robots_body[:_MAX_ROBOTS] if stored.robots_status == 200 else b""
    return SitePoliteness(
        robots_status=stored.robots_status,
        robots_at=stored.robots_at,
        robots=body.decode("utf-8", "replace"),
        held_since=robots.held_since if asked and robots.hold_off else None,
        crawl_delay=crawl_delay,
        sitemaps=len(robots.sitemaps) if asked else 0,
        sitemap_at=stored.sitemap_at,
        delay=max(delay, min(crawl_delay, options.max_delay)),
        per_server=options.per_server,
        held_until=stored.held_until,
        last_modified=(stored.lm_good, stored.lm_bad),
        etag=(stored.etag_good, stored.etag_bad),
    )


def page_counts(repo: Reader, number: int, limit: int) -> list[PageCounts]:
    """Return number, URL, visits and changes of a site's pages."""
    return repo.storage.store.pages.of_site(number, limit)


def site_pages(
    repo: Reader, number: int, after: tuple[int, int], state: str, limit: int
) -> tuple[list[dict[str, Any]], tuple[int, int] | None]:
    """Return pages of a site by state and number, and the place after which to continue; None at the end.

    This is the order of an index, so that only the returned rows are read.
    """
    found = repo.storage.store.reports.pages_of_site(number, after, state, limit)
    return _named(found), (found[-1]["state"], found[-1]["id"]) if len(found) == limit else None


def all_pages(repo: Reader, after: int, state: str, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return pages in order of discovery, and the number after which to continue; None at the end.

    At most 50,000 pages are read, however few of them are in the state.
    """
    found = repo.storage.store.reports.pages_after(after, _WINDOW, state, limit)
    if len(found) == limit:
        return _named(found), int(found[-1]["id"])
    return _named(found), after + _WINDOW if after + _WINDOW < repo.storage.store.next_id("pages") - 1 else None


def page_number(repo: Reader, url: str) -> int | None:
    """Return the number of a page; None if it is unknown."""
    return repo.storage.store.pages.number(key(url))


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "state": State(row["state"]).name.lower()} for row in rows]


def _figures(row: dict[str, Any], total: int, now: float) -> dict[str, Any]:
    good, bad = row["lm_good"] + row["etag_good"], row["lm_bad"] + row["etag_bad"]
    low, high = band(row["freshness"], row["freshness_sd"])
    return {
        "id": row["id"],
        "origin": row["origin"],
        "pages": row["pages"] or 0,
        "missing": row["missing"] or 0,
        "rate": row["rate"],
        "fresh": row["freshness"],
        "low": low,
        "high": high,
        "age": row["age"],
        "visits": row["visits"],
        "updates": row["updates"],
        "share": row["visits"] / total if total else None,
        "trust": good / (good + bad) if good + bad else None,
        "last_visit": row["last_visit"],
        "health": health(row, now),
    }


def health(row: dict[str, Any], now: float) -> tuple[str, str, str]:
    """Return the health of a site: CSS class, label and reason."""
    failed = row["failed"] / row["visits"] if row["visits"] else 0.0
    if row["robots_held"] > 0:
        return "bad", "on hold", "robots.txt is unavailable"
    if row["held_until"] > now:
        return "warn", "waiting", "the server requested a back-off"
    if failed >= _FAILING:
        return "bad", "failing", f"{percent(failed)} of the last visits failed"
    if failed >= _UNSTABLE:
        return "warn", "unstable", f"{percent(failed)} of the last visits failed"
    if row["last_visit"] is None:
        return "", "new", "not downloaded yet"
    return "good", "good", "responding"
