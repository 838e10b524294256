"""From URLs to pages: known pages are looked up, new URLs in scope become pages, the others are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recrawl.columns import Int32s, Ints
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.discover import urls as addresses
from recrawl.discover.endless_spaces import LIMIT, EndlessSpaces, Judged
from recrawl.discover.known_urls import KnownUrls
from recrawl.discover.scope import Scopes, site
from recrawl.discover.traps import TrapGuard, TrapLimits
from recrawl.learn.copies.parameters import IdleParameter, KnownParameters
from recrawl.learn.structure.neighbours import FrontierRank
from recrawl.model import State
from recrawl.record.rows import Batch, NewPage, OutgoingLink
from recrawl.record.store import Store
from recrawl.record.tombstones import Tombstones

_FOUND = int(State.FOUND)
_ENDLESS = "endless-spaces"
"""Key of the endless URL spaces in the metadata."""
_MAX_REFUSED = 200_000
"""Refused URLs kept, so that the external links of a menu are not checked again on every page."""
_WAITING = 100_000
"""Pages found on pages without news, or made of their URLs, that are kept until they are visited."""
_SAMPLE = 50_000
"""Known URLs given to the trap guard at its start; a sample if there are more."""


class _Led(NamedTuple):
    """What led to a page that was not visited yet."""

    behind: int
    """How many pages without news in a row."""
    made: bool = False
    """Whether its URL is made of that of the page that it was found on."""


class Fresh(NamedTuple):
    """A page found since the last commit."""

    url: str
    site: int
    depth: int
    parent: int


class Discovery:
    """All known URLs. New pages go into the current batch and, as (page, site), to the list `found`."""

    def __init__(
        self,
        store: Store,
        servers: Servers,
        scopes: Scopes,
        known: KnownUrls,
        *,
        cycle: int,
        now: float,
        traps: TrapLimits | None = None,
        parameters: Iterable[IdleParameter] = (),
        found: list[tuple[int, int]] | None = None,
        rank: FrontierRank | None = None,
    ) -> None:
        self._store = store
        self._servers = servers
        self._scopes = scopes
        self._traps = traps or TrapLimits()
        self._now = now
        self._parameters = KnownParameters(parameters)
        self._guard: TrapGuard | None = None
        self._known = known
        self._tombstones = Tombstones(store.meta)
        self._next = self._first = store.next_id("pages")
        self._led: dict[int, _Led] = {}
        self._folder_key = lru_cache(maxsize=1024)(addresses.key)
        self._refused: set[int] = set()
        self._cycle = cycle
        self._found = found
        self._rank = rank
        self._ownership = servers.ownership
        self._stored_spaces = store.meta.get(_ENDLESS, "")
        self.endless = EndlessSpaces(self._stored_spaces)
        self.fresh: dict[int, Fresh] = {}
        self.refusals: Counter[str] = Counter()

    def look_up(self, keys: Ints) -> Ints:
        """Page numbers of URLs by their keys, -1 for unknown ones."""
        return self._known.find(keys)

    def linked(self, readings: list[Reading]) -> Iterator[Ints]:
        """For each page what `look_up` returns for its links; one by one would cost four times as much."""
        pages = self.look_up(np.frombuffer(b"".join([reading.keys for reading in readings]), np.int64))
        start = 0
        for reading in readings:
            end = start + len(reading.keys) // pages.itemsize
            yield pages[start:end]
            start = end

    def links(
        self, pages: Ints, reading: Reading, *, parent: int, url: str = "", depth: int, at: float, batch: Batch
    ) -> tuple[Int32s, int]:
        """The pages that a page links to, and the number of new ones; `pages` is what `look_up` returned for them.

        `url` is that of the page, if its links may lead into an endless space.
        """
        unknown = (pages < 0).nonzero()[0]
        asked: list[tuple[int, int, str]] = []
        if len(unknown):
            lines, keys = reading.urls.split("\n"), np.frombuffer(reading.keys, np.int64)
            asked = [
                (place, key, lines[place])
                for place, key in zip(unknown.tolist(), keys[unknown].tolist(), strict=True)
                if key not in self._refused
            ]
        judged = Judged(set(), 0)
        if url and (asked or parent in self._led):
            led = self._led_to(parent, depth)
            judged = self.endless.judge(url, reading.said, [link for _, _, link in asked], led.behind, led.made)
        new = 0
        for place, key, link in asked:
            if link in judged.refused:
                self._refuse(key, "endless-space")
                continue
            page, is_new = self.add(link, parent=parent, depth=depth, at=at, batch=batch, key=key)
            pages[place] = page
            new += is_new
            if is_new and (judged.behind or link in judged.made):
                self._note(page, _Led(judged.behind, link in judged.made))
        if len(unknown):
            pages = pages[pages >= 0]
        linked = pages.astype(np.int32)
        if self._rank is not None:
            self._rank.visited(parent, linked)
        return linked, new

    def add(
        self, url: str, *, parent: int, depth: int, at: float, batch: Batch, listed: int = 0, key: int | None = None
    ) -> tuple[int, bool]:
        """The page of a URL (-1 if it is refused), and whether it is new. `key` is that of the URL, if it is known."""
        origin = addresses.origin(url)
        if key is None:
            key = addresses.key(url)
        if not self._scopes.knows(origin):
            self._refuse(key, "other-site")
            return -1, False
        if self.was_erased(url):
            self._refuse(key, "erased")
            return -1, False
        if self._ownership is not None and (owner := self._ownership.shard_of(url)) != self._ownership.shard:
            if self._scopes.refuses(url, depth) is None:
                alias = self._scopes.aliases.get(site(url), "")
                batch.outbox.append(OutgoingLink(owner, key, url, depth, alias))
            self._refuse(key, "other-shard")
            return -1, False
        server = self._servers.of(origin)
        target = self._parameters.without(server.habits.apply(url))
        if target != url:
            url, key = target, addresses.key(target)
        page = self._known.get(key)
        if page >= 0:
            return page, False
        reason = self._scopes.refuses(url, depth) or server.refuses_more() or self._trap_guard().admits(url)
        if reason:
            self._refuse(key, reason)
            return -1, False
        return self._make(url, key, server, parent=parent, depth=depth, at=at, batch=batch, listed=listed), True

    def admit(self, url: str, *, at: float, batch: Batch) -> tuple[int, bool]:
        """The page of a URL that the user gave, and whether it is new; nothing is refused but what was erased (-1)."""
        key = addresses.key(url)
        page = self._known.get(key)
        if page >= 0:
            return page, False
        if self.was_erased(url):
            self._refuse(key, "erased")
            return -1, False
        server = self._servers.of(addresses.origin(url))
        return self._make(url, key, server, parent=-1, depth=0, at=at, batch=batch, listed=0), True

    def was_erased(self, url: str) -> bool:
        """Whether a URL was erased and is kept from coming back."""
        return bool(self._tombstones) and bool(self._tombstones.covers(url, addresses.origin))

    def moved(self, page: int, target: int) -> None:
        """A new page was found by a redirect of another one: what led to the one leads to the other."""
        if led := self._led.get(page):
            self._note(target, led)

    def needs_no_request(self, page: int, url: str) -> bool:
        """Whether a page that was not visited yet is in an endless space, and was found on a page without news there.

        Of a page that was found in an earlier run that is not known; all of an endless space count.
        """
        led = self._led.get(page) or _Led(0 if page >= self._first else 1)
        found_on = self._found_on(page) if (led.behind or led.made) and self.endless.any else None
        return found_on is not None and self.endless.leads_on(found_on, url, led.behind, led.made)

    def _led_to(self, page: int, depth: int) -> _Led:
        """What led to a page; to one of an earlier run so many pages without news that ten more may follow at least."""
        return self._led.pop(page, None) or _Led(0 if page >= self._first else min(depth, LIMIT - 10))

    def _note(self, page: int, led: _Led) -> None:
        self._led[page] = led
        if len(self._led) > _WAITING:
            del self._led[next(iter(self._led))]

    def _found_on(self, page: int) -> str | None:
        """The URL of the page that led to a page, if one did."""
        fresh = self.fresh.get(page)
        if fresh is None:
            details = self._store.pages.details(page)
            return details["parent_url"] if details else None
        if fresh.parent in self.fresh:
            return self.fresh[fresh.parent].url
        return self._store.pages.get(fresh.parent).url if fresh.parent >= 0 else None

    def save(self) -> None:
        """Store the endless URL spaces, so that the next run knows them."""
        spaces = self.endless.stored()
        if spaces != self._stored_spaces:
            self._store.meta.set(_ENDLESS, spaces)
            self._stored_spaces = spaces

    def committed(self, _batch: Batch) -> None:
        """Forget the new pages: the store has them now."""
        self.fresh.clear()

    def _make(
        self,
        url: str,
        key: int,
        server: Server,
        *,
        parent: int,
        depth: int,
        at: float,
        batch: Batch,
        listed: int,
    ) -> int:
        page, self._next = self._next, self._next + 1
        self._known.add(key, page)
        server.pages += 1
        folder = self._folder_key(addresses.directory(url))
        batch.pages.append(NewPage(page, key, server.id, folder, depth, parent, at, self._cycle, _FOUND, listed, url))
        self.fresh[page] = Fresh(url, server.id, depth, parent)
        if self._rank is not None:
            self._rank.found(page, depth)
        if self._found is not None:
            self._found.append((page, server.id))
        return page

    def _trap_guard(self) -> TrapGuard:
        """The trap guard, created with the first new URL: it has to read the known ones."""
        if self._guard is None:
            self._guard = TrapGuard(self._traps, now=self._now)
            every = 1 + self._store.next_id("pages") // _SAMPLE
            for url in self._store.pages.urls(every):
                self._guard.note(url, every)
            for fresh in self.fresh.values():
                self._guard.note(fresh.url)
        return self._guard

    def _refuse(self, key: int, reason: str) -> None:
        self.refusals[reason] += 1
        if reason == "too-deep":
            return  # a shorter path may still be found
        if len(self._refused) >= _MAX_REFUSED:
            self._refused.clear()
        self._refused.add(key)
