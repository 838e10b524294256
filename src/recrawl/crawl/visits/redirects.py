"""Where a redirect leads (spec K5): pages that replace others, the chains of the store and of this run.

Whether a redirect is followed or makes its target a page of its own is decided by the machine
(`VisitMachine._page_redirected`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.rescope import forget_scopes
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.machine import FindTarget, PageVisit, TargetKnown
from recrawl.crawl.visits.servers import Server
from recrawl.discover.scope import Scopes, site
from recrawl.model import Failure
from recrawl.record.rows import Batch
from recrawl.record.store import Store

_ALIASES = "aliases"


def add_aliases(store: Store, aliases: Mapping[str, str]) -> None:
    """Store new locations of moved sites that other shards of a cluster have learned."""
    known = json.loads(store.meta.get(_ALIASES, "{}"))
    if not aliases.items() <= known.items():
        store.meta.set(_ALIASES, json.dumps(known | dict(aliases)))
        forget_scopes(store)


def recall_aliases(store: Store, scopes: Scopes) -> None:
    """Load the new locations of moved sites that earlier runs have learned."""
    scopes.aliases.update(json.loads(store.meta.get(_ALIASES, "{}")))


def keep_aliases(store: Store, scopes: Scopes) -> None:
    """Store the new locations of moved sites."""
    store.meta.set(_ALIASES, json.dumps(scopes.aliases))


class Redirects:
    """The pages that redirects lead to; keeps the chains of this run to detect loops and endless chains."""

    def __init__(self, discovery: Discovery, options: CrawlOptions, store: Store) -> None:
        self._discovery = discovery
        self._options = options
        self._store = store
        self._moved: dict[int, int] = {}
        self._came_from: dict[int, int] = {}

    def find(self, what: FindTarget, server: Server, batch: Batch) -> TargetKnown:
        """The page of the target, which replaces the visited one; a new one is added to `batch`."""
        visit, target = what.visit, what.url
        if what.permanent:
            if self._redirects_before(visit.page) >= self._options.redirects:
                detail = f"more than {self._options.redirects} in a row"
                return TargetKnown(visit, failure=Failure.REDIRECT_LIMIT, detail=detail)
            if server.habits.learn(visit.url, target):
                server.dirty = True
        if self._options.outside:
            page, _ = self._discovery.admit(target, at=what.at, batch=batch)
        else:
            page, new = self._discovery.add(target, parent=visit.page, depth=visit.depth, at=what.at, batch=batch)
            if new:
                self._discovery.moved(visit.page, page)
        if page < 0 and self._discovery.was_erased(target):
            return TargetKnown(visit, failure=Failure.REDIRECT_AWAY, detail="to an erased address")
        if page < 0:
            return TargetKnown(visit, failure=Failure.REDIRECT_AWAY, detail=f"to {target}")
        if self._leads_back(page, visit.page):
            return TargetKnown(visit, failure=Failure.REDIRECT_LOOP, detail=f"back from {target}")
        self._moved[visit.page] = page
        self._came_from[page] = visit.page
        return TargetKnown(visit, page, detail=f"to {target}")

    def returned(self, visit: PageVisit) -> None:
        """A page that had moved has answered itself: if it is a seed, its site has not moved along after all."""
        scopes, target = self._options.scopes, visit.state.target
        if target < 0 or not scopes.is_seed(visit.url):
            return
        host = site(self._store.pages.get(target).url)
        if scopes.aliases.get(host) == site(visit.url):
            del scopes.aliases[host]
            keep_aliases(self._store, scopes)
            forget_scopes(self._store)

    def _leads_back(self, page: int, start: int) -> bool:
        """Whether the redirects of a page, from this run or an earlier one, lead to `start`."""
        seen: set[int] = set()
        while page >= 0 and page not in seen:
            if page == start:
                return True
            seen.add(page)
            page = self._moved.get(page, self._store.pages.moved_to(page))
        return False

    def _redirects_before(self, page: int) -> int:
        """The length of the redirect chain that led to this page."""
        count = 0
        while count <= self._options.redirects:
            before = self._came_from.get(page, self._store.pages.moved_from(page))
            if before < 0:
                break
            page, count = before, count + 1
        return count
