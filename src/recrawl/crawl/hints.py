"""What servers offer besides pages: robots.txt, and hints about which pages have changed (spec H1 to H5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.book import Book, Hints
from recrawl.columns import DAY, WEEK, Floats, Ints, unique
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.machine import FEED_BYTES
from recrawl.crawl.visits.servers import Server
from recrawl.discover import sitemaps
from recrawl.discover.sitemaps import PERIODS
from recrawl.discover.urls import canonical, key, origin
from recrawl.errors import UsageError
from recrawl.learn.hints import MAX_AHEAD, plausible, signals_change
from recrawl.model import Answer, Outcome, sendable
from recrawl.record.rows import CycleRow, FeedRow, HintRow, PushRow, SourceRow
from recrawl.record.storage import Storage
from recrawl.record.store import Columns, Store

if TYPE_CHECKING:
    from recrawl.crawl.visits.recorder import Recorder


# --------------------------------------------------------------------------------------------------------------------
# From the dates that a source claims to rows of the store: which are signals, which are ignored and why.


_MIN_DATES = 20
"""Fewer dates than this can all be new by coincidence."""
_JUST_NOW = 60.0
"""Seconds: a date this close to the time of reading was generated for the answer."""


def claims(
    store: Store, site: int, kind: str, dates: Mapping[int, float], seen: float, *, whole: bool = True, bad: int = 0
) -> tuple[list[HintRow], SourceRow]:
    """Rows for pages whose date has changed, and the row of the source. `bad` is the number of invalid dates.

    `whole` means that the source was read completely, so that pages it does not list count as unchanged.
    """
    page = np.fromiter(dates, np.int64, len(dates))
    date = np.fromiter(dates.values(), np.float64, len(dates))
    known = store.hints.claims(kind, dates)
    order = np.argsort(known["page"])
    place = (
        order[np.minimum(np.searchsorted(known["page"][order], page), max(len(order) - 1, 0))] if len(order) else page
    )
    there = known["page"][place] == page if len(order) else np.zeros(len(page), bool)
    page, date, place = page[there], date[there], place[there]
    last, before = known["last"][place], known["before"][place]
    valid = plausible(date, seen)
    signalled = signals_change(date, np.where(before < 0, np.nan, before), last, seen)
    rows = [
        HintRow(number, kind, seen, value, int(signal))
        for number, value, signal in zip(
            page[valid & (date != before)].tolist(),
            date[valid & (date != before)].tolist(),
            signalled[valid & (date != before)].tolist(),
            strict=True,
        )
    ]
    ignored = int(np.count_nonzero(~valid)) + bad
    source = SourceRow(
        site, kind, seen if whole else 0.0, int(signalled.sum()), ignored, _problem(date, valid, seen, bad)
    )
    return rows, source


def add_claim(dates: dict[int, float], page: int, date: float, now: float) -> None:
    """Add a date that a source names for a page; of several, the newest that is not in the future counts."""
    before = dates.get(page)
    if before is None or (date > before and date <= now + MAX_AHEAD) or before > now + MAX_AHEAD:
        dates[page] = date


def promises(store: Store, kind: str, values: Mapping[int, float], seen: float) -> list[HintRow]:
    """Rows for pages whose promised interval of change, in seconds, or priority is new."""
    known = store.hints.values(kind, values)
    return [HintRow(page, kind, seen, value, 0) for page, value in values.items() if known.get(page) != value]


def _problem(date: np.ndarray, valid: np.ndarray, seen: float, bad: int) -> str:
    """Problems with the dates, for display; empty if there are none."""
    wrong = []
    future = int(np.count_nonzero(date[~valid] > seen))
    if future:
        wrong.append(f"{future:,} dates lie in the future")
    if bad:
        wrong.append(f"{bad:,} dates cannot be read")
    if len(date) >= _MIN_DATES and (np.abs(date - seen) < _JUST_NOW).all():
        wrong.append("every date is the time of the reading")
    return "; ".join(wrong)


# --------------------------------------------------------------------------------------------------------------------
# Hints as rows of the store, as arrays of the book, and packed into the record of a visit.
#
# The store holds for each page and kind the last claim of its source, and the number of signals since the page's last
# visit. A visit stores them packed into one integer, so that trust in sources can be learned again from visits alone.
# Each kind has one byte, in the order of `KINDS`: the number of signals (at most 15), and the share of the time since
# the previous visit that the source covers (in 15ths).
#
# Sources with dates cover the time until they were last read; pushes cover the time until now. `changefreq` and the
# meta-updates tag are promises: they signal when the promised interval has passed.


KINDS = ("lastmod", "changefreq", "feed", "updates", "indexnow", "websub")
"""The kinds of hints by their number; add new ones at the end."""
PROMISES = frozenset({"changefreq", "updates"})
PUSHES = frozenset({"indexnow", "websub"})
_MAX_NIBBLE = 15
"""The largest number in four bits."""


def hints_for(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> Hints:
    """The hints at the start of a cycle, also for a resumed one (see `book_columns`)."""
    path = hints_file(repository)
    kept = read_arrays(path)
    if kept is not None and int(kept["cycle"]) == cycle.id:
        kinds = tuple(str(kind) for kind in kept["kinds"])
        return Hints(kinds, kept["signals"], kept["claimed"], kept["until"]).first(len(book))
    hints = _as_arrays(repository.store.hints.columns(KINDS), len(book), book.now)
    if begin:
        head: Arrays = {"cycle": np.array(cycle.id), "kinds": np.array(hints.kinds, "U16")}
        columns: Arrays = {"signals": hints.signals, "claimed": hints.claimed, "until": hints.until}
        write_arrays(path, {**head, **columns})
    return hints


def hints_file(repository: Storage) -> Path:
    """The file with the hints at the start of the cycle."""
    return repository.folder / "models" / "hints-of-cycle.npz"


def pack_hints(store: Store, pages: Iterable[int], now: float) -> dict[int, int]:
    """By page, the hints since its last visit, for the record of its next visit; pages without hints are left out."""
    rows = store.hints.columns(KINDS, pages)
    if not len(rows["page"]):
        return {}
    page, kind, signals, until = _read(rows, now)
    gap = np.clip(now - rows["last"][rows["kind"] >= 0], 1.0, 1e10)
    share = np.ceil(_MAX_NIBBLE * np.clip(1 - (now - until) / gap, 0, 1)).astype(np.int64)
    bits = (np.minimum(signals, _MAX_NIBBLE) + 16 * share) << (8 * kind)
    found: dict[int, int] = {}
    for number, value in zip(page.tolist(), bits.tolist(), strict=True):
        found[number] = found.get(number, 0) | value
    return found


def unpack_hints(pages: Ints, bits: Ints, book: Book) -> Hints:
    """The hints packed in visits, for the book before these visits."""
    kinds = tuple(kind for place, kind in enumerate(KINDS) if ((bits >> (8 * place)) & 255).any())
    hints = _empty_hints(kinds, len(book))
    gap = np.clip(book.now - book.last_visit[pages], 1.0, 1e10)
    for row, kind in enumerate(kinds):
        byte = (bits >> (8 * KINDS.index(kind))) & 255
        share = (byte >> 4) / _MAX_NIBBLE
        hints.signals[row, pages] = byte & _MAX_NIBBLE
        hints.until[row, pages] = np.where(share > 0, book.now - (1 - share) * gap, -np.inf)
    return hints


def _as_arrays(rows: Columns, pages: int, now: float) -> Hints:
    """Rows as arrays, kind by page."""
    page, kind, signals, until = _read(rows, now)
    value = rows["value"][rows["kind"] >= 0]
    inside = page < pages
    there = unique(kind[inside])
    place = np.searchsorted(there, kind[inside])
    hints = _empty_hints(tuple(KINDS[number] for number in there.tolist()), pages)
    at = place, page[inside]
    hints.signals[at] = np.minimum(signals[inside], 1000)
    hints.until[at] = until[inside]
    promised = np.isin(kind[inside], [KINDS.index(name) for name in PROMISES])
    hints.claimed[at] = np.where(promised, -np.inf, value[inside])
    return hints


def _read(rows: Columns, now: float) -> tuple[Ints, Ints, Ints, Floats]:
    """Page, kind, signals and end of coverage of the rows of known kinds."""
    known = rows["kind"] >= 0
    page, kind, signals, last = (rows[name][known] for name in ("page", "kind", "signals", "last"))
    promised = np.isin(kind, [KINDS.index(name) for name in PROMISES])
    pushed = np.isin(kind, [KINDS.index(name) for name in PUSHES])
    waited = np.clip(now - last, 0.0, 1e10)  # never-visited pages do not matter here
    due = waited // np.maximum(rows["value"][known], 60.0)
    signals = np.where(promised, np.minimum(due, _MAX_NIBBLE), signals).astype(np.int64)
    until = np.where(promised | pushed, now, np.maximum(rows["seen"], rows["read"])[known])
    return page, kind, signals, np.minimum(until, now)


def _empty_hints(kinds: tuple[str, ...], pages: int) -> Hints:
    shape = (len(kinds), pages)
    return Hints(kinds, np.zeros(shape, np.int16), np.full(shape, -np.inf), np.full(shape, -np.inf))


# --------------------------------------------------------------------------------------------------------------------
# How reliable each source of pushes is: the share of its pages that had changed at the following visit.
#
# Trust in a *kind* of hint is learned per site (`learn.hints`); but one sender can spoil it for others, and one that is
# nearly always wrong would still get visits from the reserve for pushes. So each source has a score of its own: with
# less than a quarter right it loses access to the reserve, and its pages compete like any others. Its pushes still
# count, and it regains access when enough of them prove right.


_MIN_VISITS = 20.0
"""Visits after which a source is judged."""
_LOSE_BELOW = 0.25
_REGAIN_FROM = 0.4
_MEMORY = 100.0
"""Visits that count; older ones are discounted."""
_MAX_WAIT = WEEK
"""Seconds: a later visit is no evidence about a push, since the page may have changed anyway."""
_MAX_AWAITED = 200_000
"""Pushes that can await a visit at a time."""
_PUSH_SOURCES_MAX_SOURCES = 1000


def note(store: Store, pushes: Iterable[tuple[int, str, str, float]]) -> None:
    """Store pushes (page, source, kind, time) until the next visit of the page confirms or refutes them."""
    awaited = store.pushes.count_awaited()
    for page, source, kind, at in pushes:
        store.pushes.count_claim(source, kind, at)
        if awaited < _MAX_AWAITED:  # of several pushes before a visit the first counts
            awaited += store.pushes.await_visit(page, source, at)
    store.pushes.keep_sources(_PUSH_SOURCES_MAX_SOURCES)


def judge_sources(store: Store, now: float) -> list[str]:
    """Judge the sources by the visits that followed; returns messages about sources that gained or lost trust."""
    counts: dict[str, list[int]] = {}
    judged = [row for row in store.pushes.awaited(_MAX_WAIT) if row[2] is not None]
    for _, source, outcome in judged:
        counts.setdefault(source, [0, 0])[outcome == Outcome.UNCHANGED] += 1
    store.pushes.remove_awaited(row[:2] for row in judged)
    store.pushes.remove_awaited_before(now - _MAX_WAIT)
    changes = [_update_score(store, source, right, wrong) for source, (right, wrong) in counts.items()]
    return [text for text in changes if text]


def pushers(store: Store) -> list[dict[str, Any]]:
    """All sources with their precision; untrusted ones first."""
    return [
        {
            **row,
            "trusted": bool(row["trusted"]),
            "precision": round(row["right"] / (row["right"] + row["wrong"]), 4)
            if row["right"] + row["wrong"]
            else None,
        }
        for row in store.pushes.sources()
    ]


def troubles(store: Store) -> list[str]:
    """Messages about untrusted sources."""
    return [
        f"{row['source']}: {row['precision'] or 0:.0%} of the pushed pages had changed; its pushes are not preferred "
        "any more."
        for row in pushers(store)
        if not row["trusted"]
    ]


def _update_score(store: Store, source: str, more_right: int, more_wrong: int) -> str:
    """Update the score of a source; returns a message if it gained or lost trust."""
    score = store.pushes.score(source)
    if score is None:
        return ""
    right, wrong, trusted = score[0] + more_right, score[1] + more_wrong, score[2]
    faded = min(1.0, _MEMORY / (right + wrong))
    right, wrong = right * faded, wrong * faded
    share = right / (right + wrong)
    after = share >= _REGAIN_FROM if not trusted else right + wrong < _MIN_VISITS or share >= _LOSE_BELOW
    store.pushes.set_score(source, right, wrong, trusted=after)
    if after == trusted:
        return ""
    return (
        f"pushes of {source}: {share:.0%} were right; they are {'preferred again' if after else 'no longer preferred'}"
    )


# --------------------------------------------------------------------------------------------------------------------
# Pushes: a source reports that pages have changed (IndexNow, WebSub; spec H5). They are queued, and processed later.
#
# `accept` may be called at any time, also during a crawl or a cycle: it only writes to a table of its own. The next
# cycle processes the queue before it chooses (`process_pushes`): a known page gets a hint, an unknown URL is treated
# like any other new URL. Floods do no harm: each source has an hourly limit, repeated URLs count once, the queue is
# bounded, and URLs of sites outside the repository are rejected. How far a push is trusted is learned from visits, as
# for any other hint; a source that is mostly wrong loses its priority (`push_sources`).


PER_HOUR = 10_000
"""URLs accepted from one source per hour."""
MAX_WAITING = 200_000
"""URLs in the queue, from all sources together."""
_MAX_SOURCES = 1000
_MAX_LENGTH = 2048
"""Characters of a URL."""
_DELAY = 60.0
"""Seconds: a push within this time after a visit is about the version that the visit saw."""
_MAX_BATCH = 50_000
"""URLs processed per cycle."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of the URLs of one push."""

    taken: int = 0
    repeated: int = 0
    """Already in the queue."""
    bad: int = 0
    """Not valid URLs."""
    foreign: int = 0
    """Of sites outside the repository."""
    refused: int = 0
    """Over the hourly limit of the source, or the limit of the queue."""


def accept(repository: Storage, urls: Iterable[str], kind: str, source: str, now: float) -> Accepted:
    """Queue the URLs that `source` reports as changed; `kind` is indexnow or websub."""
    if kind not in PUSHES:
        raise UsageError(f"a push is {' or '.join(sorted(PUSHES))}, not '{kind}'")
    store, source = repository.store, source[:200]
    sites = store.sites.origins()
    counts = dict.fromkeys(("taken", "repeated", "bad", "foreign", "refused"), 0)
    with store.transaction():
        room = _room(store, source, now)
        for url in urls:
            if room <= 0:
                counts["refused"] += 1
                continue
            what = _put(store, url, kind, source, now, sites)
            counts[what] += 1
            room -= 1  # rejected URLs count towards the limit too
        spent = sum(counts.values()) - counts["refused"]
        store.pushes.add_to_hour(source, spent, counts["refused"])
    return Accepted(**counts)


def _put(store: Store, url: str, kind: str, source: str, now: float, sites: set[str]) -> str:
    clean = canonical(url) if len(url) <= _MAX_LENGTH else None
    if clean is None:
        return "bad"
    if origin(clean) not in sites:
        return "foreign"
    return "taken" if store.pushes.put(PushRow(key(clean), kind, source, now, clean)) else "repeated"


def _room(store: Store, source: str, now: float) -> int:
    """Number of URLs that can still be accepted from a source in this hour."""
    hour = int(now // 3600)
    store.pushes.start_hour(hour)  # also if the clock was set back
    if store.pushes.count_other_senders(source) >= _MAX_SOURCES:
        return 0
    return min(PER_HOUR - store.pushes.taken_in_hour(source, hour), MAX_WAITING - store.pushes.waiting())


def process_pushes(store: Store, discovery: Discovery, recorder: Recorder, now: float) -> list[str]:
    """Process the queue: known pages get a signal, other URLs are added. Returns messages about sources."""
    with store.transaction():
        messages = judge_sources(store, now)
        untrusted = store.pushes.untrusted()
    rows = store.pushes.oldest(_MAX_BATCH)
    known: list[tuple[int, str, str, float]] = []
    for _, kind, source, at, url in rows:
        page, _ = discovery.add(url, parent=-1, depth=1, at=at, batch=recorder.batch)
        if page >= 0:
            known.append((page, source, kind, at))
    recorder.commit()  # hints refer to rows of the store
    sites = store.pages.sites_of({page for page, _, _, _ in known})
    by_kind: dict[tuple[int, str], dict[int, float]] = {}
    for page, source, kind, at in known:
        if source not in untrusted:
            by_kind.setdefault((sites[page], kind), {})[page] = at - _DELAY
    for (site, kind), dates in by_kind.items():
        recorder.claim(site, kind, dates, max(dates.values()) + _DELAY, whole=False)
    recorder.commit()
    # Removed last: after a crash they are processed again, with the same result.
    with store.transaction():
        note(store, (row for row in known if row[1]))
        store.pushes.remove(rows)
    return messages


# --------------------------------------------------------------------------------------------------------------------
# What the sitemaps and feeds of a server say of its pages. When they are requested is decided by the machine.
#
# A file is read size-limited and tolerant of malformed XML. Feeds (spec H3) are those that pages name, on the site's
# own server, at most 8 per server: new items, and dates that say a page has changed. An item seen before with the same
# date is ignored; an item without a date only makes its page known.


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
