"""What the sitemaps and feeds of a server say of its pages. When they are requested is decided by the machine.

A file is read size-limited and tolerant of malformed XML. Feeds (spec H3) are those that pages name, on the site's own
server, at most 8 per server: new items, and dates that say a page has changed. An item seen before with the same date
is ignored; an item without a date only makes its page known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from recrawl.columns import DAY
from recrawl.crawl.hints.claims import add_claim
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.machine import FEED_BYTES
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Server
from recrawl.discover import sitemaps
from recrawl.discover.sitemaps import PERIODS
from recrawl.discover.urls import canonical, origin
from recrawl.model import Answer, sendable
from recrawl.record.rows import FeedRow, SourceRow

_MAX_ITEMS = 2000
_MAX_FEEDS = 8
"""Per server."""
_TURN = 50
"""Sitemaps without dates by which their order moves on each day."""


@dataclass(slots=True)
class _Listed:
    """What the sitemaps of one server have said so far."""

    pages: set[int] = field(default_factory=set)
    dates: dict[int, float] = field(default_factory=dict)
    periods: dict[int, float] = field(default_factory=dict)
    priorities: dict[int, float] = field(default_factory=dict)
    bad_dates: int = 0


class SiteFiles:
    """Sitemaps and feeds of all servers; problems with them are added to `warnings`."""

    def __init__(self, discovery: Discovery, recorder: Recorder, options: CrawlOptions, warnings: list[str]) -> None:
        self._discovery, self._recorder, self._options = discovery, recorder, options
        self._warnings = warnings
        self._listed: dict[int, _Listed] = {}
        self._feeds: dict[int, dict[str, FeedRow]] = {}
        self._named: set[tuple[int, str]] = set()
        """Feeds that pages have named in this run: they are read from the next one on."""

    # -- sitemaps --------------------------------------------------------------------------------------

    def read_sitemap(self, server: Server, url: str, answer: Answer) -> tuple[Sequence[str], bool]:
        """Add the pages that a sitemap lists; the sitemaps that an index lists, and whether it is broken."""
        listed = self._listed.setdefault(server.id, _Listed())
        sitemap = sitemaps.parse(answer.body, url)
        batch, now = self._recorder.batch, self._options.clock()
        if sitemap.kind == "index":
            listed.bad_dates += sitemap.bad_dates
            return [entry.url for entry in _newest_first(sitemap.entries, now)], bool(sitemap.problem)
        for entry in sitemap.entries:
            clean = canonical(entry.url, rules=self._options.rules)
            if clean is None:
                continue
            page, _ = self._discovery.add(clean, parent=-1, depth=1, at=answer.at, batch=batch, listed=1)
            if page >= 0:
                listed.pages.add(page)
                if entry.lastmod is not None:
                    add_claim(listed.dates, page, entry.lastmod, now)
                if entry.changefreq:
                    listed.periods[page] = PERIODS[entry.changefreq]
                if entry.priority is not None:
                    listed.priorities[page] = entry.priority
        listed.bad_dates += sitemap.bad_dates
        return (), bool(sitemap.problem)

    def record_listing(self, server: Server, *, complete: bool) -> None:
        """All sitemaps are read: record the pages that they list and, if `complete`, those no longer listed."""
        listed, now = self._listed.pop(server.id, None), self._options.clock()
        if listed is None or not listed.pages:
            return
        self._recorder.commit()
        before = self._recorder.listed_pages(server.id)
        self._recorder.batch.listed += [(1, page) for page in listed.pages - before]
        if complete:
            self._recorder.batch.listed += [(2, page) for page in before - listed.pages]
        if listed.dates or listed.bad_dates:
            source = self._recorder.claim(server.id, "lastmod", listed.dates, now, whole=complete, bad=listed.bad_dates)
            if source.problem:
                self._warnings.append(f"{server.origin}: in its sitemap, {source.problem}")
        self._recorder.promise("changefreq", listed.periods, now)
        self._recorder.promise("priority", listed.priorities, now)
        self._recorder.commit()

    # -- feeds -----------------------------------------------------------------------------------------

    def feeds(self, server: int) -> list[FeedRow]:
        """The feeds of a server that were known before this run."""
        return [feed for feed in self._of(server).values() if (server, feed.url) not in self._named]

    def name_feeds(self, server: Server, urls: str) -> None:
        """Add the feeds that a page names, one per line."""
        known = self._of(server.id)
        for url in urls.split("\n"):
            if url not in known and len(known) < _MAX_FEEDS and origin(url) == server.origin:
                known[url] = FeedRow(server.id, url, 0.0, "", "")
                self._named.add((server.id, url))
                self._recorder.batch.feeds.append(known[url])

    def read_feed(self, server: Server, url: str, answer: Answer) -> None:
        """Take the items of a feed."""
        now = self._options.clock()
        row = self._of(server.id)[url]._replace(seen=now)
        if answer.failure is None and answer.status == 200:
            etag, modified = (sendable(answer.header(name)) for name in ("etag", "last-modified"))
            row = row._replace(etag=etag, modified=modified)
            self._take_items(server, url, answer)
        elif answer.failure is None and answer.status == 304:
            self._recorder.batch.sources.append(SourceRow(server.id, "feed", now, 0, 0, ""))
        self._feeds[server.id][url] = row
        self._recorder.batch.feeds.append(row)

    def _take_items(self, server: Server, url: str, answer: Answer) -> None:
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
        if site not in self._feeds:
            self._feeds[site] = {feed.url: feed for feed in self._recorder.feeds(site)}
        return self._feeds[site]


def _newest_first(entries: Sequence[sitemaps.Entry], now: float) -> list[sitemaps.Entry]:
    """The sitemaps of an index in the order in which they are read, if not all are: those without dates take turns."""
    turn = int(now / DAY) * _TURN % max(1, len(entries))
    return sorted([*entries[turn:], *entries[:turn]], key=lambda entry: -(entry.lastmod or 0.0))
