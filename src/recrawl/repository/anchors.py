"""The anchors of sites, and how change falls off with the number of links from them (spec A1, A2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.crawl.reports.anchors import Survey, named_pages, survey
from recrawl.crawl.reports.anchors import load as load_with_links
from recrawl.discover.urls import origin
from recrawl.errors import UsageError
from recrawl.learn.structure.anchor import why
from recrawl.learn.structure.depth import DEEPEST, pays
from recrawl.record.storage import SETTINGS, Storage
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.opening import load, options_of
from recrawl.settings import Settings, write_value


def keep_named(repository: Storage, site: str, name: str) -> str:
    """Write down the anchor that was named, or, without a name, that it is to be found again; whose it is."""
    url = page_of(repository, name)["url"] if name else ""
    where = origin_of(repository, site) or (origin(url) if url else "")
    if not where:
        raise UsageError("say whose anchor is to be found again: recrawl anchor SITE --auto")
    if url and origin(url) != where:
        raise UsageError(f"{url} is no page of {where}")
    others = [other for other in load(repository.folder)["anchors"] if origin(other) != where]
    write_value(repository.folder / SETTINGS, "anchors", [*others, *([url] if url else [])])
    return where


def surveyed(
    repository: Storage, values: Settings, now: float, period: float, per_minute: float, where: str
) -> list[dict[str, Any]]:
    """What there is to say about the anchor of the wanted site, or of every one."""
    store = repository.store
    book = load_with_links(store, now)
    options = options_of(values)
    sites = store.sites()
    pace = np.full(book.sites, np.inf)
    for row in sites:
        own = options.sites[row.origin].delay if row.origin in options.sites else None
        delay = options.delay if own is None else own
        if row.id < len(pace) and delay > 0:
            pace[row.id] = options.per_server / delay
    overall = per_minute / 60 if per_minute else options.per_second or np.inf
    seen = survey(
        book,
        named_pages(store, values["anchors"]),
        period=period,
        room=overall * period,
        room_per_site=pace * period,
    )
    return [
        _site(repository, seen, row.id, row.origin, float(min(pace[row.id], overall)))
        for row in sites
        if row.id < len(pace) and (row.origin == where if where else seen.anchor[row.id] >= 0)
    ] or [_nothing(where)]


def _site(repository: Storage, seen: Survey, site: int, where: str, pace: float) -> dict[str, Any]:
    def url(page: int) -> str:
        return repository.store.page(page)[0]

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
        for k in range(min(6, len(found)))
        if found.page[k] != anchor
    ]
    return {
        "site": where,
        "pages": int(seen.table.pages[site].sum()),
        "anchor": {
            "url": url(anchor),
            "score": float(score[0]) if len(score) else None,
            "named": bool((seen.named == anchor).any()),
            "why": why(found, anchor),
        },
        "runners_up": others[:5],
        "depths": _depths(seen, site, pace),
        "uniform": _number(seen.table.uniform[site]),
        "recommended": _advice(seen, site),
    }


def _nothing(where: str) -> dict[str, Any]:
    raise UsageError(f"no page of {where or 'any site'} was downloaded yet: run 'recrawl crawl' first")


def _depths(seen: Survey, site: int, pace: float) -> list[dict[str, Any]]:
    """One row a depth (B fig. 2), with what all pages up to it come to (B table 1); then the pages out of reach."""
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
    """The recommended n, and what keeps it from being larger."""
    n, table = int(seen.n[site]), seen.table
    following = n + 1
    if following > DEEPEST or not table.pages[site, following]:
        reason = "no page is deeper"
    elif np.isnan(table.uniform[site]):
        reason = "no page was visited twice yet, so this is what Barbosa et al. came to, as far as the limits allow"
    elif not pays(table)[site, following]:
        share, uniform = np.nan_to_num(table.expected[site, following]), table.uniform[site]
        reason = f"at depth {following} {share:.1%} of the pages change in that time, uniform visits find {uniform:.1%}"
    else:
        reason = f"the pages up to depth {following} could not be visited in that time without asking too much"
    return {"n": n, "why": reason, "pages": int(table.pages[site, : n + 1].sum())}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
