"""What has to be fetched besides pages: robots.txt before anything else of a server, then its sitemaps and feeds.

Chores travel through the same lanes as pages, as negative items, so that they are paced like everything else. While a
server's robots.txt is on its way the server's lane is held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urljoin

from recrawl.crawl.hints.feeds import FEED_BYTES, Feeds
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.discover import sitemaps
from recrawl.discover.sitemaps import PERIODS
from recrawl.discover.urls import canonical, origin
from recrawl.fetch.http import Client, Request
from recrawl.fetch.lanes import Lanes
from recrawl.fetch.robots import Robots
from recrawl.model import Answer, Failure, Validators

_ROBOTS_BYTES = 512_000  # RFC 9309: what lies behind that need not be read
_SITEMAP_BYTES = 52_428_800
_HOPS = 5
_MAX_SITEMAPS = 500
_MAX_NESTING = 3


@dataclass(slots=True)
class _Chore:
    """One thing to fetch."""

    kind: str
    server: int
    url: str
    hops: int = 0
    level: int = 0
    validators: Validators | None = None


@dataclass(slots=True)
class _Listing:
    """The sitemaps of one server while they are being read."""

    asked: set[str] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)
    dates: dict[int, float] = field(default_factory=dict)
    periods: dict[int, float] = field(default_factory=dict)
    bad_dates: int = 0
    left: int = 0
    whole: bool = True


class SiteResources:
    """robots.txt, sitemaps and feeds of all servers; `warnings` gets what was ignored of them."""

    def __init__(
        self,
        client: Client,
        lanes: Lanes,
        servers: Servers,
        discovery: Discovery,
        recorder: Recorder,
        options: CrawlOptions,
        warnings: list[str],
    ) -> None:
        self._client = client
        self._lanes = lanes
        self._servers = servers
        self._discovery = discovery
        self._recorder = recorder
        self._options = options
        self._chores: dict[int, _Chore] = {}
        self._last = 0
        self._greeted: set[int] = set()
        self._listings: dict[int, _Listing] = {}
        self._warnings = warnings
        self.feeds = Feeds(discovery, recorder, options, warnings)

    def greet(self, server: Server) -> None:
        """Do what comes before a server's first page in this run."""
        if server.id in self._greeted:
            return
        self._greeted.add(server.id)
        self._pace(server)
        self._lanes.hold(server.id, server.held_until)
        if not self.robots_due(server):
            self._listen(server)

    def hear(self, server: Server) -> None:
        """Read what a server volunteers, where that is due, although no page of it was chosen."""
        if self._sitemaps_due(server) or self.feeds.due(server):
            self.greet(server)
            if self.robots_due(server):
                self.renew_robots(server)

    def _listen(self, server: Server) -> None:
        self._begin_sitemaps(server)
        for feed in self.feeds.due(server):
            asked = Validators(feed.etag, feed.modified) or None
            self._lanes.push_front(server.id, self._number(_Chore("feed", server.id, feed.url, validators=asked)))
            self.feeds.begun(feed)

    # -- robots.txt ------------------------------------------------------------------------------------

    def robots_due(self, server: Server) -> bool:
        """Whether robots.txt must be fetched before the server is asked for anything."""
        if server.refused:
            return False
        return server.robots is None or server.robots.expires <= self._options.clock()

    def ask_robots(self, server: Server) -> None:
        """Fetch robots.txt, in the turn that a page gave up for it."""
        self._lanes.hold(server.id, float("inf"))
        self._start(_Chore("robots", server.id, f"{server.origin}/robots.txt"))

    def renew_robots(self, server: Server) -> None:
        """Have robots.txt fetched again although no page asks for it."""
        self._lanes.push(server.id, self._number(_Chore("robots", server.id, f"{server.origin}/robots.txt")))

    def _robots_arrived(self, server: Server, chore: _Chore, answer: Answer) -> None:
        if answer.status in (301, 302, 303, 307, 308) and chore.hops < _HOPS:
            target = canonical(answer.header("location"), chore.url)
            if target is not None:
                self._start(_Chore("robots", server.id, target, hops=chore.hops + 1))
                return
        self._lanes.done(server.id, self._options.timer(), status=200, seconds=answer.seconds)
        self._lanes.hold(server.id, server.held_until)
        if answer.failure is Failure.ADDRESS:
            server.refused = answer.detail  # our own doing: it says nothing about the server's robots.txt
            return
        before = server.robots
        server.robots = Robots.from_answer(
            # A redirect that leads nowhere is a robots.txt that is not there (RFC 9309 §2.3.1.2).
            404 if 300 <= answer.status < 400 else answer.status,
            answer.body,
            self._options.clock(),
            agent=self._options.agent,
            max_age=self._options.robots_age,
            failure=answer.failure is not None,
            held_since=before.held_since if before else 0.0,
        )
        server.dirty = True
        self._pace(server)
        if not server.robots.hold_off:
            self._listen(server)

    def _pace(self, server: Server) -> None:
        ours = self._options.delay if server.options.delay is None else server.options.delay
        theirs = server.robots.delay if server.robots else 0.0
        self._lanes.set_delay(server.id, theirs, ours=ours)

    # -- sitemaps --------------------------------------------------------------------------------------

    def _sitemaps_due(self, server: Server) -> bool:
        wanted = self._options.sitemaps and self._options.scopes.wants_sitemaps(server.origin)
        # A clock that was put back must not put off sitemaps until it is where it was.
        fresh = 0 <= self._options.clock() - server.sitemap_at < self._options.sitemap_age
        return wanted and not fresh and server.id not in self._listings

    def _begin_sitemaps(self, server: Server) -> None:
        if not self._sitemaps_due(server):
            return
        named = [urljoin(server.origin + "/", url) for url in (server.robots.sitemaps if server.robots else ())]
        self._listings[server.id] = _Listing()
        for url in named or [f"{server.origin}/sitemap.xml"]:
            self._queue_sitemap(server, url, level=0)

    def _queue_sitemap(self, server: Server, url: str, level: int) -> None:
        listing = self._listings[server.id]
        clean = canonical(url)
        if clean is None or clean in listing.asked:
            return
        if origin(clean) != server.origin:  # another server has its own robots.txt, pace and sitemaps
            listing.whole = False
            return
        if len(listing.asked) >= _MAX_SITEMAPS or level > _MAX_NESTING:
            listing.whole = False
            return
        listing.asked.add(clean)
        listing.left += 1
        self._lanes.push_front(server.id, self._number(_Chore("sitemap", server.id, clean, level=level)))

    def _sitemap_arrived(self, server: Server, chore: _Chore, answer: Answer) -> None:
        listing = self._listings[server.id]
        if answer.status in (301, 302, 303, 307, 308):
            target = canonical(answer.header("location"), chore.url)
            if target is not None and chore.hops < _HOPS and origin(target) == server.origin:
                again = _Chore("sitemap", server.id, target, hops=chore.hops + 1, level=chore.level)
                self._lanes.push_front(server.id, self._number(again))
                return
        listing.left -= 1
        if answer.status == 200 and answer.failure is None:
            self._read_sitemap(server, listing, chore, answer)
        else:
            listing.whole = False
        if not listing.left:
            self._listed(server, listing)

    def _read_sitemap(self, server: Server, listing: _Listing, chore: _Chore, answer: Answer) -> None:
        sitemap = sitemaps.parse(answer.body, chore.url)
        if sitemap.problem:
            listing.whole = False
        batch = self._recorder.batch
        for entry in sitemap.entries:
            if sitemap.kind == "index":
                self._queue_sitemap(server, entry.url, chore.level + 1)
                continue
            url = canonical(entry.url, rules=self._options.rules)
            if url is None:
                continue
            page, _ = self._discovery.add(url, parent=-1, depth=1, at=answer.at, batch=batch, listed=1)
            if page >= 0:
                listing.pages.add(page)
                if entry.lastmod is not None:
                    listing.dates[page] = entry.lastmod
                if entry.changefreq:
                    listing.periods[page] = PERIODS[entry.changefreq]
        listing.bad_dates += sitemap.bad_dates

    def _listed(self, server: Server, listing: _Listing) -> None:
        """All sitemaps are read: note what is named, and, when all could be read, what no longer is."""
        server.sitemap_at, server.dirty = self._options.clock(), True
        if not listing.pages:
            return
        self._recorder.commit()
        before = self._recorder.listed_pages(server.id)
        self._recorder.batch.listed += [(1, page) for page in listing.pages - before]
        if listing.whole:
            self._recorder.batch.listed += [(2, page) for page in before - listing.pages]
        if listing.dates or listing.bad_dates:
            source = self._recorder.claim(
                server.id, "lastmod", listing.dates, server.sitemap_at, whole=listing.whole, bad=listing.bad_dates
            )
            if source.problem:
                self._warnings.append(f"{server.origin}: in its sitemap, {source.problem}")
        self._recorder.promise("changefreq", listing.periods, server.sitemap_at)
        self._recorder.commit()

    # -- on the way ----------------------------------------------------------------------------------------

    def begin(self, server: Server, item: int) -> None:
        """A chore's turn has come."""
        chore = self._chores[item]
        if chore.kind == "robots":
            self._lanes.hold(server.id, float("inf"))
        elif self.robots_due(server):
            self._lanes.push_front(server.id, item)
            self.ask_robots(server)
            return
        self._client.start(item, self._request(server, chore))

    def arrived(self, ticket: int, answer: Answer, now: float) -> Server:
        """A chore's answer is here; returns whose it is."""
        chore = self._chores.pop(ticket)
        server = self._servers[chore.server]
        if chore.kind == "robots":
            self._robots_arrived(server, chore, answer)
            return server
        self._lanes.answered(server.id, now, answer)
        if chore.kind == "feed":
            self.feeds.arrived(server, chore.url, answer)
        else:
            self._sitemap_arrived(server, chore, answer)
        return server

    def _start(self, chore: _Chore) -> None:
        self._client.start(self._number(chore), self._request(self._servers[chore.server], chore))

    def _request(self, server: Server, chore: _Chore) -> Request:
        """A request; what the user allowed for one server counts for no other, wherever a redirect leads."""
        allowed = self._options.allow_private or (origin(chore.url) == server.origin and server.options.allow_private)
        if chore.kind == "robots":
            return Request(chore.url, allow_private=allowed, max_bytes=_ROBOTS_BYTES, cut=True)
        if chore.kind == "feed":
            return Request(chore.url, validators=chore.validators, allow_private=allowed, max_bytes=FEED_BYTES)
        return Request(chore.url, allow_private=allowed, max_bytes=_SITEMAP_BYTES)

    def _number(self, chore: _Chore) -> int:
        self._last -= 1
        self._chores[self._last] = chore
        return self._last
