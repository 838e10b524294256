"""Where a redirect leads (spec K5).

A temporary redirect is followed, within limits, and its target counts as the page. A permanent one makes the page an
old URL of another page, which is visited separately. So does a temporary one to another site that is kept, except for a
page that is stored: it stays, and its target becomes a page too. A redirect to a site that is not kept is recorded and
not followed, with one exception: when a seed has moved permanently, its site has moved with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.rescope import forget_scopes
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.servers import Server
from recrawl.discover.scope import Scopes, site
from recrawl.discover.urls import canonical, origin
from recrawl.model import Answer, Failure
from recrawl.record.rows import Batch
from recrawl.record.store import Store

_ALIASES = "aliases"
REDIRECTS = (301, 302, 303, 307, 308)
ARCHIVED = frozenset({*REDIRECTS, 404, 410})
"""Statuses of answers that are archived although they are no version of the page."""
PERMANENT = (301, 308)


def add_aliases(store: Store, aliases: Mapping[str, str]) -> None:
    """Store new locations of moved sites that other shards of a cluster have learned."""
    known = json.loads(store.meta.get(_ALIASES, "{}"))
    if not aliases.items() <= known.items():
        store.meta.set(_ALIASES, json.dumps(known | dict(aliases)))
        forget_scopes(store)


def recall_aliases(store: Store, scopes: Scopes) -> None:
    """Load the new locations of moved sites that earlier runs have learned."""
    scopes.aliases.update(json.loads(store.meta.get(_ALIASES, "{}")))


class Redirect(NamedTuple):
    """Where a redirect leads: to a failure, to a URL to follow, or to the page (`target`) that replaces this one."""

    failure: Failure | None = None
    detail: str = ""
    follow: str = ""
    target: int = -1


class Redirects:
    """Resolves redirects; keeps the chains of this run to detect loops and endless chains."""

    def __init__(self, discovery: Discovery, options: CrawlOptions, store: Store) -> None:
        self._discovery = discovery
        self._options = options
        self._store = store
        self._moved: dict[int, int] = {}
        self._came_from: dict[int, int] = {}

    def resolve(self, server: Server, visit: PendingVisit, answer: Answer, batch: Batch) -> Redirect:
        """Where this redirect leads. The target of a permanent one becomes a known page, in `batch`."""
        location = answer.header("location")
        target = canonical(location, visit.request_url, self._options.rules) if location else None
        if target is None:
            return Redirect(Failure.REDIRECT_BAD, f"to '{location[:200]}'")
        if target == visit.request_url or target in visit.redirects:
            return Redirect(Failure.REDIRECT_LOOP, f"back to {target}")
        scopes = self._options.scopes
        permanent = answer.status in PERMANENT and not visit.redirects
        if permanent and not scopes.knows(origin(target)) and scopes.is_seed(visit.url):
            scopes.adopt(visit.url, origin(target))
            self._store.meta.set(_ALIASES, json.dumps(scopes.aliases))
        if not self._options.outside and scopes.refuses(target, visit.depth) is not None:
            return Redirect(Failure.REDIRECT_AWAY, f"to {target}")
        if permanent:
            return self._permanent(server, visit, answer, target, batch)
        if len(visit.redirects) >= self._options.redirects:
            return Redirect(Failure.REDIRECT_LIMIT, f"more than {self._options.redirects} in a row")
        if origin(target) != server.origin:
            found = self._replaced(visit, answer, target, batch)
            stored = found.failure is None and visit.state.payload is not None
            return Redirect(Failure.REDIRECT_AWAY, f"to {target}") if stored else found
        if not self._options.outside and server.robots is not None and not server.robots.allows(target):
            return Redirect(Failure.ROBOTS, f"redirected to {target}")
        return Redirect(follow=target)

    def returned(self, visit: PendingVisit) -> None:
        """A page that had moved has answered itself: if it is a seed, its site has not moved along after all."""
        scopes, target = self._options.scopes, visit.state.target
        if target < 0 or not scopes.is_seed(visit.url):
            return
        host = site(self._store.pages.get(target).url)
        if scopes.aliases.get(host) == site(visit.url):
            del scopes.aliases[host]
            self._store.meta.set(_ALIASES, json.dumps(scopes.aliases))
            forget_scopes(self._store)

    def _permanent(self, server: Server, visit: PendingVisit, answer: Answer, target: str, batch: Batch) -> Redirect:
        if self._redirects_before(visit.page) >= self._options.redirects:
            return Redirect(Failure.REDIRECT_LIMIT, f"more than {self._options.redirects} in a row")
        if server.habits.learn(visit.url, target):
            server.dirty = True
        return self._replaced(visit, answer, target, batch)

    def _replaced(self, visit: PendingVisit, answer: Answer, target: str, batch: Batch) -> Redirect:
        """The page of the target URL replaces the visited one; a new one is added to `batch`."""
        if self._options.outside:
            page, _ = self._discovery.admit(target, at=answer.at, batch=batch)
        else:
            page, _ = self._discovery.add(target, parent=visit.page, depth=visit.depth, at=answer.at, batch=batch)
        if page < 0:
            return Redirect(Failure.REDIRECT_AWAY, f"to {target}")
        if self._leads_back(page, visit.page):
            return Redirect(Failure.REDIRECT_LOOP, f"back from {target}")
        self._moved[visit.page] = page
        self._came_from[page] = visit.page
        return Redirect(target=page)

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
