"""Pushes: a source reports that pages have changed (IndexNow, WebSub; spec H5). They are queued, and processed later.

`accept` may be called at any time, also during a crawl or a cycle: it only writes to a table of its own. The next cycle
processes the queue before it chooses (`process_pushes`): a known page gets a hint, an unknown URL is treated like any
other new URL. Floods do no harm: each source has an hourly limit, repeated URLs count once, the queue is bounded, and
URLs of sites outside the repository are rejected. How far a push is trusted is learned from visits, as for any
other hint; a source that is mostly wrong loses its priority (`push_sources`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recrawl.crawl.hints.hint_codec import PUSHES
from recrawl.crawl.hints.push_sources import judge_sources, note
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.recorder import Recorder
from recrawl.discover.urls import canonical, key, origin
from recrawl.errors import UsageError
from recrawl.record.rows import PushRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

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
