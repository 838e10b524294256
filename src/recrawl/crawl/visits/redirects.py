"""What a redirect means for a page (spec K5).

A temporary one is followed, within limits, and what it leads to is the page. A permanent one makes the page another
page's old address: the other page is visited in its own right. A redirect that leaves the site is recorded, not
followed, with one exception: when a seed itself has moved, its site has moved with it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.servers import Server
from recrawl.crawl.visits.verdicts import Flight
from recrawl.discover.scope import Scopes
from recrawl.discover.urls import canonical, origin
from recrawl.model import Answer, Failure
from recrawl.record.rows import Batch
from recrawl.record.store import Store

_ALIASES = "aliases"
_PERMANENT = (301, 308)


def recall_aliases(store: Store, scopes: Scopes) -> None:
    """Other names of sites that earlier runs have learned."""
    scopes.aliases.update(json.loads(store.meta(_ALIASES, "{}")))


class RedirectDecision(NamedTuple):
    """What to do: fail, follow, or (`target`) take the page for another one's old address."""

    failure: Failure | None = None
    detail: str = ""
    follow: str = ""
    target: int = -1


class Redirects:
    """Judges redirects; remembers the chains of this run, to see loops and endless ones."""

    def __init__(self, discovery: Discovery, options: CrawlOptions, store: Store) -> None:
        self._discovery = discovery
        self._options = options
        self._store = store
        self._moved: dict[int, int] = {}
        self._came_from: dict[int, int] = {}

    def judge(self, server: Server, flight: Flight, answer: Answer, batch: Batch) -> RedirectDecision:
        """What this redirect means."""
        location = answer.header("location")
        target = canonical(location, flight.ask, self._options.rules) if location else None
        if target is None:
            return RedirectDecision(Failure.REDIRECT_BAD, f"to '{location[:200]}'")
        if target == flight.ask or target in flight.trail:
            return RedirectDecision(Failure.REDIRECT_LOOP, f"back to {target}")
        scopes = self._options.scopes
        permanent = answer.status in _PERMANENT and not flight.trail
        if permanent and not scopes.knows(origin(target)) and scopes.is_seed(flight.url):
            scopes.adopt(flight.url, origin(target))
            self._store.set_meta(_ALIASES, json.dumps(scopes.aliases))
        if scopes.refuses(target, flight.depth) is not None:
            return RedirectDecision(Failure.REDIRECT_AWAY, f"to {target}")
        if permanent:
            return self._permanent(server, flight, answer, target, batch)
        if len(flight.trail) >= self._options.redirects:
            return RedirectDecision(Failure.REDIRECT_LIMIT, f"more than {self._options.redirects} in a row")
        if origin(target) != server.origin:
            return RedirectDecision(Failure.REDIRECT_AWAY, f"to {target}")
        if server.robots is not None and not server.robots.allows(target):
            return RedirectDecision(Failure.ROBOTS, f"redirected to {target}")
        return RedirectDecision(follow=target)

    def _permanent(self, server: Server, flight: Flight, answer: Answer, target: str, batch: Batch) -> RedirectDecision:
        if self._came_by_redirects(flight.page) >= self._options.redirects:
            return RedirectDecision(Failure.REDIRECT_LIMIT, f"more than {self._options.redirects} in a row")
        if server.habits.learn(flight.url, target):
            server.dirty = True
        page, _ = self._discovery.add(target, parent=flight.page, depth=flight.depth, at=answer.at, batch=batch)
        if page < 0:
            return RedirectDecision(Failure.REDIRECT_AWAY, f"to {target}")
        if self._leads_back(page, flight.page):
            return RedirectDecision(Failure.REDIRECT_LOOP, f"back from {target}")
        self._moved[flight.page] = page
        self._came_from[page] = flight.page
        return RedirectDecision(target=page)

    def _leads_back(self, page: int, start: int) -> bool:
        """Whether a page's own redirects, of this run or an earlier one, lead to where we come from."""
        seen: set[int] = set()
        while page >= 0 and page not in seen:
            if page == start:
                return True
            seen.add(page)
            page = self._moved.get(page, self._store.moved_to(page))
        return False

    def _came_by_redirects(self, page: int) -> int:
        """How many redirects in a row have led to this page."""
        count = 0
        while count <= self._options.redirects:
            before = self._came_from.get(page, self._store.moved_from(page))
            if before < 0:
                break
            page, count = before, count + 1
        return count
