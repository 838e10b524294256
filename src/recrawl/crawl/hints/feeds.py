"""Feeds that pages name (spec H3): new items, and dates that say a page has changed.

A feed is read like a sitemap: size-limited, tolerant of malformed XML, requested with validators. Only feeds on the
site's own server are read, at most 8 per server. An item seen before with the same date is ignored; an item without
a date only makes its page known.
"""

from __future__ import annotations

from recrawl.crawl.hints.claims import add_claim
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Server
from recrawl.discover import sitemaps
from recrawl.discover.urls import canonical, origin
from recrawl.model import Answer
from recrawl.record.rows import FeedRow, SourceRow

FEED_BYTES = 4_000_000
_MAX_ITEMS = 2000
_MAX_FEEDS = 8
"""Per server."""
_MAX_VALIDATOR = 500


class Feeds:
    """The feeds of all servers, and when each was last read."""

    def __init__(self, discovery: Discovery, recorder: Recorder, options: CrawlOptions, warnings: list[str]) -> None:
        self._discovery = discovery
        self._recorder = recorder
        self._options = options
        self._warnings = warnings
        self._known: dict[int, dict[str, FeedRow]] = {}
        self._started: set[tuple[int, str]] = set()

    def due(self, server: Server) -> list[FeedRow]:
        """Feeds to be read now, each at most once per run."""
        if self._options.feed_age <= 0:
            return []
        now = self._options.clock()
        return [
            feed
            for feed in self._of(server.id).values()
            if (feed.site, feed.url) not in self._started and not 0 <= now - feed.seen < self._options.feed_age
        ]

    def mark_started(self, feed: FeedRow) -> None:
        """Remember that the feed was requested in this run."""
        self._started.add((feed.site, feed.url))

    def register(self, server: Server, urls: str) -> None:
        """Add the feeds that a page names, one per line; new ones are read from the next run on."""
        known = self._of(server.id)
        for url in urls.split("\n"):
            if url not in known and len(known) < _MAX_FEEDS and origin(url) == server.origin:
                known[url] = FeedRow(server.id, url, 0.0, "", "")
                self.mark_started(known[url])
                self._recorder.batch.feeds.append(known[url])

    def answered(self, server: Server, url: str, answer: Answer) -> None:
        """Process the answer to a feed's request."""
        now = self._options.clock()
        row = self._of(server.id)[url]._replace(seen=now)
        if answer.failure is None and answer.status == 200:
            etag, modified = (answer.header(name)[:_MAX_VALIDATOR] for name in ("etag", "last-modified"))
            row = row._replace(etag=etag, modified=modified)
            self._read(server, url, answer)
        elif answer.failure is None and answer.status == 304:
            self._recorder.batch.sources.append(SourceRow(server.id, "feed", now, 0, 0, ""))
        self._known[server.id][url] = row
        self._recorder.batch.feeds.append(row)

    def _read(self, server: Server, url: str, answer: Answer) -> None:
        feed = sitemaps.parse(answer.body, url, max_bytes=FEED_BYTES, max_entries=_MAX_ITEMS)
        if feed.kind != "urls":
            return
        dates: dict[int, float] = {}
        now = self._options.clock()
        for entry in feed.entries:
            link = canonical(entry.url, rules=self._options.rules)
            if link is None:
                continue
            batch = self._recorder.batch
            page, _ = self._discovery.add(link, parent=-1, depth=1, at=answer.at, batch=batch)
            if page >= 0 and entry.lastmod is not None:
                add_claim(dates, page, entry.lastmod, now)
        self._recorder.commit()  # claims refer to rows of the store
        source = self._recorder.claim(server.id, "feed", dates, now, bad=feed.bad_dates)
        if source.problem:
            self._warnings.append(f"{server.origin}: in its feed, {source.problem}")

    def _of(self, site: int) -> dict[str, FeedRow]:
        if site not in self._known:
            self._known[site] = {feed.url: feed for feed in self._recorder.feeds(site)}
        return self._known[site]
