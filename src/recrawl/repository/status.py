"""Totals of a repository and its sites, as `recrawl status` and `recrawl sites` show them."""

from __future__ import annotations

from typing import Any

from recrawl.choose.budget.allowance import Allowance
from recrawl.crawl.reports.figures import current
from recrawl.crawl.reports.hint_trust import trust
from recrawl.crawl.visits.shared_text import brakes
from recrawl.discover.urls import origin
from recrawl.errors import DamagedIndex, UsageError
from recrawl.record.storage import Storage
from recrawl.record.store import Store
from recrawl.record.unindexable import unindexable_pages
from recrawl.repository.opening import check_plugins, options_of
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import Row, Site, Status, utc
from recrawl.repository.results.words import shared_text
from recrawl.repository.running import running
from recrawl.settings import Settings, default_of
from recrawl.times import stamp

_NAMED = 5
"""Pages that a sentence about many names."""


def status(storage: Storage, settings: Settings, now: float) -> Status:
    """Totals, freshness and age of the pages, the last cycles and what they spent."""
    store = storage.store
    braked, cycles = brakes(store), store.reports.cycles(5)
    figures = current(store, now)[0].as_dict(now)
    searchable, problem = _searchable(storage)
    run = running(storage.folder)
    return Status(
        **{**figures, "last_visit": utc(figures["last_visit"])},
        versions=store.count("versions"),
        requisites=store.count("requisites"),
        screenshots=store.count("screenshots"),
        archive_bytes=store.warcs.total_bytes(),
        searchable=searchable,
        spending=_spending(storage, cycles),
        brakes=[
            {**brake._asdict(), "site": store.sites.get(brake.site).origin, "since": utc(brake.since)}
            for brake in braked
        ],
        cycles=[{**row, "started": utc(row["started"]), "finished": utc(row["finished"])} for row in cycles],
        running=None if run is None else run.as_dict(),
        problems=(*filter(None, (problem, _settings_problem(settings))), *index_problems(store)),
    )


def _settings_problem(settings: Settings) -> str:
    """What a cycle would refuse in the settings; empty if nothing."""
    try:
        check_plugins(options_of(settings), settings)
        if settings["policy"] != default_of("policy"):
            from recrawl.choose import make_policy  # lazy: loads the policies

            make_policy(settings["policy"])
    except UsageError as error:
        return f"a cycle would fail: {error}"
    return ""


def _searchable(storage: Storage) -> tuple[int, str]:
    """The number of searchable pages; with the problem if the index is damaged."""
    if not (storage.folder / "index").is_dir():
        return 0, ""
    try:
        return len(storage.index), ""
    except DamagedIndex as error:
        return 0, str(error)


def index_problems(store: Store) -> list[str]:
    """A sentence on the pages that the index cannot have, with the first of them."""
    pages = unindexable_pages(store)
    if not pages:
        return []
    named = "; ".join(f"{store.pages.get(page).url} ({reason})" for page, reason in list(pages.items())[:_NAMED])
    more = f"; and {len(pages) - _NAMED:,} more" if len(pages) > _NAMED else ""
    return [f"search cannot find {len(pages):,} of the pages, which the index cannot have: {named}{more}"]


def brake_problems(store: Store) -> list[str]:
    """A sentence for each site whose pages suddenly share one text."""
    return [
        shared_text(store.sites.get(brake.site).origin, brake.title, brake.pages, brake.recent, stamp(brake.since))
        for brake in brakes(store)
    ]


def sites(storage: Storage, settings: Settings, now: float) -> list[Site]:
    """All sites with their counts, by origin; last those that were added and not crawled yet."""
    hints = trust(storage)
    counts = {row["site"]: row for row in current(storage.store, now)[1]}
    known = sorted(storage.store.sites.all(), key=lambda row: row.origin)
    crawled = [Site.of(row, counts.get(row.id, {}), hints.get(row.origin, [])) for row in known]
    origins = {row.origin for row in known}
    return crawled + [Site(seed.url, crawled=False) for seed in settings.seeds if origin(seed.url) not in origins]


def held_to_share(storage: Storage, allowance: Allowance) -> list[Row]:
    """The sites that a cycle holds to their share: their visits by right, and those that others leave to them."""
    held = allowance.held
    return [
        {"site": storage.store.sites.get(site).origin, "right": right, "visits": room}
        for site, (right, room) in held.items()
    ]


def held_in_last_cycle(repo: Reader) -> list[Row]:
    """The sites that the last refresh cycle held to their share."""
    last = next((row for row in repo.storage.store.cycles.newest(limit=20) if row.kind == "cycle"), None)
    return [] if last is None else held_to_share(repo.storage, Allowance.of(last.limits or ""))


def _spending(storage: Storage, cycles: list[dict[str, Any]]) -> Row | None:
    """What the last refresh cycle spent, by site."""
    last = next((row for row in cycles if row["kind"] == "cycle"), None)
    if last is None:
        return None
    by_site = storage.store.reports.spent_by_site(last["cycle"], last["first_visit"], -1)
    allowance = Allowance.of(last["limits"] or "")
    return {
        "cycle": last["cycle"],
        "budget": last["budget"],
        "visits": last["visits"],
        "received": last["received"],
        "not_modified": sum(row["not_modified"] for row in by_site),
        "limits": {name: value for name, value in allowance.limits().items() if name != "held"},
        "held": held_to_share(storage, allowance),
        "sites": by_site,
    }
