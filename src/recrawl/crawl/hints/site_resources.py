"""What a server offers besides pages: robots.txt, fetched before anything else, then its sitemaps and feeds.

Their requests wait in the same lanes as pages, as negative numbers, so that the same pacing applies to them. While a
server's robots.txt is being fetched its lane is on hold.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urljoin

from recrawl.crawl.hints.claims import add_claim
from recrawl.crawl.hints.feeds import FEED_BYTES, Feeds
from recrawl.crawl.hints.resource_requests import Fetch, Listing
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.redirects import REDIRECTS
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.discover import sitemaps
from recrawl.discover.sitemaps import PERIODS
from recrawl.discover.urls import canonical, origin
from recrawl.fetch.fetcher import Fetcher, Request
from recrawl.fetch.lanes import Lanes
from recrawl.fetch.retry_after import MAX_RETRY_AFTER, parse_retry_after
from recrawl.fetch.robots import Robots, failure_text
from recrawl.model import SILENT, Answer, Failure, Validators

# RFC 9309: a crawler need not read more of a robots.txt.
_MAX_BYTES = {"robots": 512_000, "feed": FEED_BYTES, "sitemap": 52_428_800}
_MAX_REDIRECTS = 5
_MAX_SITEMAPS = 500
_MAX_NESTING = 3


class SiteResources:
    """robots.txt, sitemaps and feeds of all servers; problems with them are added to `warnings`."""

    def __init__(
        self,
        client: Fetcher,
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
        self._fetches: dict[int, Fetch] = {}
        self._last = 0
        self._prepared: set[int] = set()
        self._listings: dict[int, Listing] = {}
        self._warnings = warnings
        self.feeds = Feeds(discovery, recorder, options, warnings)

    def prepare(self, server: Server) -> None:
        """Set the server's pace, and queue its sitemaps and feeds, before its first page in this run."""
        if server.id in self._prepared or self._options.outside:
            return
        self._prepared.add(server.id)
        self._set_pace(server)
        self._lanes.hold(server.id, server.held_until)
        if not self.robots_due(server):
            self._queue_hints(server)

    def refresh(self, server: Server) -> None:
        """Fetch the server's sitemaps and feeds if they are due, although none of its pages was chosen."""
        if server.id not in self._prepared and (self._sitemaps_due(server) or (server.live and self.feeds.due(server))):
            self.prepare(server)
            if self.robots_due(server):
                self.queue_robots(server)

    def _queue_hints(self, server: Server) -> None:
        if server.robots is None or server.robots.hold_off:
            return
        self._queue_sitemaps(server)
        for feed in self.feeds.due(server):
            validators = Validators(feed.etag, feed.modified) or None
            fetch = Fetch("feed", server.id, feed.url, validators=validators)
            self._lanes.push_front(server.id, self._number(fetch))
            self.feeds.mark_started(feed)

    # -- robots.txt ------------------------------------------------------------------------------------

    def robots_due(self, server: Server) -> bool:
        """Whether robots.txt must be fetched before any other request to the server."""
        if server.refusal:
            return False
        return server.robots is None or server.robots.expires <= self._options.clock()

    def fetch_robots(self, server: Server) -> None:
        """Fetch robots.txt now, in the turn of a page."""
        self._lanes.hold(server.id, float("inf"))
        self._start(Fetch("robots", server.id, f"{server.origin}/robots.txt"))

    def queue_robots(self, server: Server) -> None:
        """Queue robots.txt for a server whose pages are not queued."""
        self._lanes.push(server.id, self._number(Fetch("robots", server.id, f"{server.origin}/robots.txt")))

    def _robots_answered(self, server: Server, fetch: Fetch, answer: Answer) -> None:
        if answer.status in REDIRECTS and fetch.redirects < _MAX_REDIRECTS:
            target = canonical(answer.header("location"), fetch.url)
            if target is not None and self._options.owns(target):
                self._start(Fetch("robots", server.id, target, redirects=fetch.redirects + 1))
                return
        self._lanes.done(server.id, self._options.timer(), status=200, seconds=answer.seconds)
        self._lanes.hold(server.id, server.held_until)
        if answer.failure is Failure.ADDRESS:
            server.refusal = answer.detail  # our own settings: says nothing about the server's robots.txt
            return
        if answer.failure is Failure.TLS:
            self._warnings.append(f"{origin(fetch.url)}: {answer.detail}")
        before = server.robots
        server.robots = Robots.from_answer(
            # A redirect without a usable target counts as a robots.txt that does not exist (RFC 9309 §2.3.1.2).
            404 if 300 <= answer.status < 400 else answer.status,
            answer.body if answer.failure is None else failure_text(answer.failure, answer.detail, fetch.redirects),
            self._options.clock(),
            agent=self._options.agent_of(server.origin),
            max_age=self._options.robots_age,
            failure=answer.failure is not None,
            held_since=before.held_since if before else 0.0,
        )
        server.dirty = True
        self._set_pace(server)
        self._queue_hints(server)

    def _set_pace(self, server: Server) -> None:
        ours = self._options.delay if server.options.delay is None else server.options.delay
        theirs = server.robots.delay if server.robots else 0.0
        self._lanes.set_delay(server.id, theirs, ours=ours)

    # -- sitemaps --------------------------------------------------------------------------------------

    def _sitemaps_due(self, server: Server) -> bool:
        enabled = self._options.sitemaps and self._options.scopes.wants_sitemaps(server.origin)
        # After the clock was set back, a time of reading in the future counts as expired; a pause is at most a day.
        fresh = -MAX_RETRY_AFTER <= self._options.clock() - server.sitemap_at < self._options.sitemap_age
        return enabled and not fresh and server.id not in self._listings

    def _queue_sitemaps(self, server: Server) -> None:
        if not self._sitemaps_due(server):
            return
        named = [urljoin(server.origin + "/", url) for url in (server.robots.sitemaps if server.robots else ())]
        self._listings[server.id] = Listing()
        for url in named or [f"{server.origin}/sitemap.xml"]:
            self._queue_sitemap(server, url, level=0)

    def _queue_sitemap(self, server: Server, url: str, level: int) -> None:
        listing = self._listings[server.id]
        clean = canonical(url)
        if clean is None or clean in listing.requested:
            return
        foreign = origin(clean) != server.origin  # another server has its own robots.txt, pace and sitemaps
        if foreign or len(listing.requested) >= _MAX_SITEMAPS or level > _MAX_NESTING:
            listing.complete = False
            return
        listing.requested.add(clean)
        listing.left += 1
        self._lanes.push_front(server.id, self._number(Fetch("sitemap", server.id, clean, level=level)))

    def _sitemap_answered(self, server: Server, fetch: Fetch, answer: Answer) -> None:
        listing = self._listings[server.id]
        if answer.status in REDIRECTS:
            target = canonical(answer.header("location"), fetch.url)
            if target is not None and fetch.redirects < _MAX_REDIRECTS and origin(target) == server.origin:
                again = Fetch("sitemap", server.id, target, redirects=fetch.redirects + 1, level=fetch.level)
                self._lanes.push_front(server.id, self._number(again))
                return
        if answer.failure in SILENT or answer.status in (429, 503):
            pause = parse_retry_after(answer.header("retry-after"), self._options.timer()) or 0.0
            listing.stopped, server.sitemap_at, server.dirty = True, self._options.clock() + pause, True
        if answer.status == 200 and answer.failure is None:
            self._read_sitemap(server, listing, fetch, answer)
        else:
            listing.complete = False
        self._record_listing(server, listing)

    def _read_sitemap(self, server: Server, listing: Listing, fetch: Fetch, answer: Answer) -> None:
        sitemap = sitemaps.parse(answer.body, fetch.url)
        if sitemap.problem:
            listing.complete = False
        batch = self._recorder.batch
        for entry in sitemap.entries:
            if sitemap.kind == "index":
                self._queue_sitemap(server, entry.url, fetch.level + 1)
                continue
            url = canonical(entry.url, rules=self._options.rules)
            if url is None:
                continue
            page, _ = self._discovery.add(url, parent=-1, depth=1, at=answer.at, batch=batch, listed=1)
            if page >= 0:
                listing.pages.add(page)
                if entry.lastmod is not None:
                    add_claim(listing.dates, page, entry.lastmod, self._options.clock())
                if entry.changefreq:
                    listing.periods[page] = PERIODS[entry.changefreq]
                if entry.priority is not None:
                    listing.priorities[page] = entry.priority
        listing.bad_dates += sitemap.bad_dates

    def _record_listing(self, server: Server, listing: Listing) -> None:
        """After the last sitemap: record the pages that they list and, if all could be read, those no longer listed."""
        listing.left -= 1
        now = self._options.clock()
        if not listing.left and not listing.stopped:
            server.sitemap_at, server.dirty = now, True
        if listing.left or not listing.pages:
            return
        self._recorder.commit()
        before = self._recorder.listed_pages(server.id)
        self._recorder.batch.listed += [(1, page) for page in listing.pages - before]
        if listing.complete:
            self._recorder.batch.listed += [(2, page) for page in before - listing.pages]
        if listing.dates or listing.bad_dates:
            source = self._recorder.claim(
                server.id, "lastmod", listing.dates, now, whole=listing.complete, bad=listing.bad_dates
            )
            if source.problem:
                self._warnings.append(f"{server.origin}: in its sitemap, {source.problem}")
        self._recorder.promise("changefreq", listing.periods, now)
        self._recorder.promise("priority", listing.priorities, now)
        self._recorder.commit()

    # -- requests and answers ------------------------------------------------------------------------------

    def start(self, server: Server, item: int) -> None:
        """The item's turn has come: request it, or robots.txt first."""
        fetch = self._fetches[item]
        if fetch.kind == "robots":
            self._lanes.hold(server.id, float("inf"))
        elif self.robots_due(server):
            self._lanes.push_front(server.id, item)
            self.fetch_robots(server)
            return
        elif fetch.kind == "sitemap" and self._listings[server.id].stopped:
            del self._fetches[item]
            self._lanes.skip(server.id, self._options.timer())
            self._record_listing(server, self._listings[server.id])
            return
        self._client.start(item, self._request(server, fetch))

    def answered(self, ticket: int, answer: Answer, now: float) -> Server:
        """Process the answer to a request; returns its server."""
        fetch = self._fetches.pop(ticket)
        server = self._servers[fetch.server]
        again = replace(fetch, identity=True) if answer.failure is Failure.BAD_ENCODING and not fetch.identity else None
        if fetch.kind == "robots":
            if again:
                self._start(again)
            else:
                request = self._client.request_head(fetch.url, None)
                self._recorder.archive(answer, request, truncated=len(answer.body) >= _MAX_BYTES["robots"])
                self._robots_answered(server, fetch, answer)
            return server
        self._lanes.answered(server.id, now, answer, ticket)
        if again:
            self._lanes.push_front(server.id, self._number(again))
        elif fetch.kind == "feed":
            self.feeds.answered(server, fetch.url, answer)
        else:
            self._sitemap_answered(server, fetch, answer)
        return server

    def _start(self, fetch: Fetch) -> None:
        self._client.start(self._number(fetch), self._request(self._servers[fetch.server], fetch))

    def _request(self, server: Server, fetch: Fetch) -> Request:
        """The request; a permission for one server does not extend to where it redirects."""
        allowed = self._options.allow_private or (origin(fetch.url) == server.origin and server.options.allow_private)
        return Request(
            fetch.url,
            validators=fetch.validators,
            allow_private=allowed,
            max_bytes=_MAX_BYTES[fetch.kind],
            cut=fetch.kind == "robots",
            identity=fetch.identity,
        )

    def _number(self, fetch: Fetch) -> int:
        self._last -= 1
        self._fetches[self._last] = fetch
        return self._last
