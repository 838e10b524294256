"""Anchors of sites, and how change declines with the number of links from the anchor (spec A1, A2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recrawl.columns import Floats
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.anchors import Survey, survey
from recrawl.crawl.reports.anchors import load as load_with_links
from recrawl.crawl.state.book_columns import named_pages
from recrawl.crawl.state.limits import visitable
from recrawl.discover.urls import origin
from recrawl.errors import UsageError
from recrawl.learn.structure.anchor import why
from recrawl.learn.structure.depth import DEEPEST, pays
from recrawl.record.shards.folders import reading_folder
from recrawl.record.storage import SETTINGS, Storage
from recrawl.record.store.location import shards_of
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.opening import load
from recrawl.repository.results.values import Row
from recrawl.settings import changing, write_value

_RUNNERS_UP = 5


@dataclass(frozen=True, slots=True)
class SiteAnchor:
    """The anchor of a site, other candidates, and change by depth."""

    site: str
    pages: int
    anchor: Row
    """url, score, named (whether the user set it), why."""
    runners_up: list[Row]
    """url, score, links_from_root, links, new, changed."""
    depths: list[Row]
    """One row for each number of links from the anchor; `depth` is None for pages out of reach."""
    uniform: float | None
    """The share of changed pages that uniform visits would find."""
    recommended: Row
    """n (the depth up to which to visit often), why, pages."""

    def as_dict(self) -> Row:
        """As `recrawl anchor --json` prints it."""
        return asdict(self)


def keep_named(storage: Storage, site: str, name: str) -> str:
    """Store the URL that the user named as an anchor; without one, forget it. Returns the site's origin."""
    url = page_of(storage, name)["url"] if name else ""
    where = origin_of(storage, site) or (origin(url) if url else "")
    if not where:
        raise UsageError("name the site whose anchor is to be detected: recrawl anchor SITE --auto")
    if url and origin(url) != where:
        raise UsageError(f"{url} is not a page of {where}")
    with changing(storage.folder / SETTINGS):
        others = [other for other in load(storage.folder)["anchors"] if origin(other) != where]
        write_value(storage.folder / SETTINGS, "anchors", [*others, *([url] if url else [])])
    return where


def survey_sites(
    storage: Storage, options: CrawlOptions, now: float, period: float, per_minute: float, where: str
) -> list[SiteAnchor]:
    """The anchor of one site, or of every site that has one; in a cluster shard by shard."""
    if period <= 0 or per_minute < 0:
        raise UsageError(f"invalid period of {period:g} s or limit of {per_minute:g} pages per minute")
    overall = per_minute / 60 if per_minute else options.per_second or np.inf
    shards = shards_of(storage.folder)
    if not shards:
        return _survey(storage, options, now, period, overall, 1.0, where) or [_nothing(where)]
    number = storage.store.sites.number(where) if where else None
    asked = range(shards) if number is None else (number % shards,)
    pages, found = visitable(storage.store, options), []
    for shard in asked:
        with Storage(reading_folder(storage.folder, shard)) as own:
            share = visitable(own.store, options) / max(pages, 1)
            found += _survey(own, options, now, period, overall, share, where)
    return sorted(found, key=lambda row: row.site) or [_nothing(where)]


def _survey(
    storage: Storage, options: CrawlOptions, now: float, period: float, overall: float, share: float, where: str
) -> list[SiteAnchor]:
    """The anchors in one store, which has a share of the visits per second over all sites; none without a page."""
    store = storage.store
    book = load_with_links(store, now)
    pace = _pace(storage, options, book.sites)
    room = overall * period * share if share else 0.0
    named = named_pages(store, options.anchors)
    seen = survey(book, named, period=period, room=room, room_per_site=pace * period)
    return [
        _site(storage, seen, row.id, row.origin, float(min(pace[row.id], overall)))
        for row in store.sites.all()
        if row.id < len(pace) and (row.origin == where if where else seen.anchor[row.id] >= 0)
    ]


def _pace(storage: Storage, options: CrawlOptions, sites: int) -> Floats:
    """Requests per second that each site allows."""
    pace = np.full(sites, np.inf)
    for row in storage.store.sites.all():
        own = options.of_site(row.origin).delay
        delay = options.delay if own is None else own
        if row.id < sites and delay > 0:
            pace[row.id] = options.per_server / delay
    return pace


def _site(storage: Storage, seen: Survey, site: int, where: str, pace: float) -> SiteAnchor:
    def url(page: int) -> str:
        return storage.store.pages.get(page)[0]

    anchor = int(seen.anchor[site])
    if anchor < 0:
        return _nothing(where)
    found = seen.found.of(site)
    score = found.score[found.page == anchor]
    others = [
        {
            "url": url(int(found.page[k])),
            "score": float(found.score[k]),
            "links_from_root": int(found.away[k]),
            "links": int(found.links[k]),
            "new": int(found.new[k]),
            "changed": int(found.changed[k]),
        }
        for k in range(min(_RUNNERS_UP + 1, len(found)))
        if found.page[k] != anchor
    ]
    return SiteAnchor(
        site=where,
        pages=int(seen.table.pages[site].sum()),
        anchor={
            "url": url(anchor),
            "score": float(score[0]) if len(score) else None,
            "named": bool((seen.named == anchor).any()),
            "why": why(found, anchor),
        },
        runners_up=others[:_RUNNERS_UP],
        depths=_depths(seen, site, pace),
        uniform=_number(seen.table.uniform[site]),
        recommended=_advice(seen, site),
    )


def _nothing(where: str) -> SiteAnchor:
    raise UsageError(f"no page of {where or 'any site'} was downloaded yet; run 'recrawl crawl' first")


def _depths(seen: Survey, site: int, pace: float) -> list[dict[str, Any]]:
    """One row per depth (B fig. 2), with totals of all pages up to it (B table 1); then the pages out of reach."""
    table = seen.table
    rows: list[dict[str, Any]] = []
    for depth in np.flatnonzero(table.pages[site]).tolist():
        upto = slice(0, depth + 1)
        visits, changed = int(table.visits[site, depth]), int(table.changed[site, depth])
        group, tried = table.pages[site, upto], ~np.isnan(table.expected[site, upto])
        hits = float(np.nansum(table.expected[site, upto] * group))
        reached = depth <= DEEPEST
        rows.append(
            {
                "depth": depth if reached else None,
                "pages": int(table.pages[site, depth]),
                "visits": visits,
                "changed": changed / visits if visits else None,
                "expected": _number(table.expected[site, depth]),
                "pages_up_to": int(group.sum()) if reached else None,
                "success_up_to": hits / int(group[tried].sum()) if reached and tried.any() else None,
                "hours_up_to": float(group.sum() / pace / 3600) if reached else None,
            }
        )
    return rows


def _advice(seen: Survey, site: int) -> dict[str, Any]:
    """The recommended n, and why it is not larger."""
    n, table = int(seen.n[site]), seen.table
    following = n + 1
    if following > DEEPEST or not table.pages[site, following]:
        reason = "no page is deeper"
    elif np.isnan(table.uniform[site]):
        reason = "no page was visited twice yet; this is the value of Barbosa et al., as far as the limits allow"
    elif not pays(table)[site, following]:
        share, uniform = np.nan_to_num(table.expected[site, following]), table.uniform[site]
        reason = (
            f"at depth {following}, {share:.1%} of the pages change in that time; uniform visits find {uniform:.1%}"
        )
    else:
        reason = f"the pages up to depth {following} cannot all be visited in that time within the limits"
    return {"n": n, "why": reason, "pages": int(table.pages[site, : n + 1].sum())}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
