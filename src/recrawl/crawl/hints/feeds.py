"""Feeds of sites, as pages name them (spec H3): what is new in them, and what of it says that a page has changed.

A feed is read like a sitemap: bounded, never believed to be well formed, asked for with what the server gave to ask
"has it changed?". Only feeds on the site's own server are read, and only so many. An item that was there before with
the same date says nothing; one without a date makes a page known and no more.
"""

from __future__ import annotations

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Server
from recrawl.discover import sitemaps
from recrawl.discover.urls import canonical, origin
from recrawl.model import Answer
from recrawl.record.rows import FeedRow, SourceRow

FEED_BYTES = 4_000_000
_ITEMS = 2000
_MOST = 8
"""Feeds of one server."""
_VALIDATOR = 500


class Feeds:
    """The feeds of all servers, and when each was read."""

    def __init__(self, discovery: Discovery, recorder: Recorder, options: CrawlOptions, warnings: list[str]) -> None:
        self._discovery = discovery
        self._recorder = recorder
        self._options = options
        self._warnings = warnings
        self._known: dict[int, dict[str, FeedRow]] = {}
        self._begun: set[tuple[int, str]] = set()

    def due(self, server: Server) -> list[FeedRow]:
        """Feeds that it is time to read, each once a run."""
        if self._options.feed_age <= 0:
            return []
        now = self._options.clock()
        return [
            feed
            for feed in self._of(server.id).values()
            if (feed.site, feed.url) not in self._begun and not 0 <= now - feed.seen < self._options.feed_age
        ]

    def begun(self, feed: FeedRow) -> None:
        """A feed is on its way."""
        self._begun.add((feed.site, feed.url))

    def named(self, server: Server, urls: str) -> None:
        """Feeds that a page names, one a line; new ones are read from the next run on."""
        known = self._of(server.id)
        for url in urls.split("\n"):
            if url not in known and len(known) < _MOST and origin(url) == server.origin:
                known[url] = FeedRow(server.id, url, 0.0, "", "")
                self.begun(known[url])
                self._recorder.batch.feeds.append(known[url])

    def arrived(self, server: Server, url: str, answer: Answer) -> None:
        """A feed was read, or could not be."""
        now = self._options.clock()
        row = self._of(server.id)[url]._replace(seen=now)
        if answer.failure is None and answer.status == 200:
            etag, modified = (answer.header(name)[:_VALIDATOR] for name in ("etag", "last-modified"))
            row = row._replace(etag=etag, modified=modified)
            self._read(server, url, answer)
        elif answer.failure is None and answer.status == 304:
            self._recorder.batch.sources.append(SourceRow(server.id, "feed", now, 0, 0, ""))
        self._known[server.id][url] = row
        self._recorder.batch.feeds.append(row)

    def _read(self, server: Server, url: str, answer: Answer) -> None:
        feed = sitemaps.parse(answer.body, url, max_bytes=FEED_BYTES, max_entries=_ITEMS)
        if feed.kind != "urls":
            return
        dates: dict[int, float] = {}
        for entry in feed.entries:
            place = canonical(entry.url, rules=self._options.rules)
            if place is None:
                continue
            batch = self._recorder.batch
            page, _ = self._discovery.add(place, parent=-1, depth=1, at=answer.at, batch=batch)
            if page >= 0 and entry.lastmod is not None:
                dates[page] = max(entry.lastmod, dates.get(page, 0.0))  # of several items of a page the newest
        self._recorder.commit()  # new pages must be in the store before anything is said of them
        source = self._recorder.claim(server.id, "feed", dates, self._options.clock(), bad=feed.bad_dates)
        if source.problem:
            self._warnings.append(f"{server.origin}: in its feed, {source.problem}")

    def _of(self, site: int) -> dict[str, FeedRow]:
        if site not in self._known:
            self._known[site] = {feed.url: feed for feed in self._recorder.feeds(site)}
        return self._known[site]
