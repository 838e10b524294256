"""The frame of each site: on how many of its pages each line stands (see `compare.content`), learned as pages are read.

A sample of a site's pages is enough: the first pages, and one of every other directory. They are the members of the
site's census. A member that changes is counted anew, so a frame that changes is learned within a few visits. The frames
are stored with the batch of visits that they were learned from.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from recrawl.compare.content.census import Census, CensusEvidence
from recrawl.compare.content.judge import ContentChange, judge
from recrawl.compare.content.own_history import OwnHistory
from recrawl.compare.noise.filters import NO_NOISE
from recrawl.crawl.options import CrawlOptions
from recrawl.discover.urls import directory, key
from recrawl.errors import RecrawlError
from recrawl.record.storage import Storage
from recrawl.record.store import Store

if TYPE_CHECKING:
    from recrawl.crawl.visits.messages import Reading

_FIRST_MEMBERS = 6
_MAX_MEMBERS = 24
"""More members hardly judge better, and cost as much as reading the page again: on small sites most of all."""
_MAX_LOADED = 200
"""Frames that are kept in memory, of whatever size ..."""
_MAX_LINES = 200_000
"""... and more of them, as long as all have no more lines than this, each counted with `_OVERHEAD`."""
_OVERHEAD = 16

StoredLines = Callable[[int], Iterator[tuple[int, str, list[int]]]]
"""For a site: some of its stored pages, with URL and the keys of their lines."""


@dataclass(slots=True)
class SiteFrame:
    """The census of a site, and its members by page: the key of their directory."""

    census: Census = field(default_factory=Census)
    members: dict[int, int] = field(default_factory=dict)
    awaited: dict[int, int] = field(default_factory=dict)
    """Pages that are being read and will be members: a fast crawl reads hundreds at the same time."""
    directories: Counter[int] = field(default_factory=Counter)
    dirty: bool = False

    def add(self, page: int, place: int, keys: Iterable[int]) -> None:
        """Count a page as a member."""
        self.members[page] = place
        self.directories[place] += 1
        self.census.add(keys)
        self.dirty = True

    def wants(self, place: int) -> bool:
        """Whether another page of a directory would be a useful member."""
        size = len(self.members) + len(self.awaited)
        return size < _FIRST_MEMBERS or (size < _MAX_MEMBERS and self.directories[place] == 0)

    def await_page(self, page: int, place: int) -> None:
        """A page is being read and will be a member."""
        self.awaited[page] = place
        self.directories[place] += 1

    def release(self, page: int) -> None:
        """A page is no longer awaited."""
        place = self.awaited.pop(page, None)
        if place is not None:
            self.directories[place] -= 1

    def pack(self) -> bytes:
        """The frame as bytes."""
        pages = np.fromiter(self.members.keys(), "<i8")
        places = np.fromiter(self.members.values(), "<i8")
        return len(pages).to_bytes(4, "little") + pages.tobytes() + places.tobytes() + self.census.pack()

    @classmethod
    def unpack(cls, data: bytes) -> SiteFrame:
        """The frame that was packed."""
        size = int.from_bytes(data[:4], "little")
        pages, places = np.frombuffer(data, "<i8", 2 * size, 4).reshape(2, size).tolist()
        census = Census.unpack(data[4 + 16 * size :])
        return cls(census, dict(zip(pages, places, strict=True)), directories=Counter(places))


class SiteFrames:
    """The frames of all sites, loaded when they are needed."""

    def __init__(self, store: Store, stored_lines: StoredLines) -> None:
        self._store = store
        self._stored_lines = stored_lines
        self._loaded: OrderedDict[int, SiteFrame] = OrderedDict()

    def wants(self, site: int, page: int, url: str) -> bool:
        """Whether the lines of a page that is read now are counted: it is a member, or becomes one."""
        frame = self._frame(site)
        if page in frame.members:
            return True
        if len(frame.members) + len(frame.awaited) >= _MAX_MEMBERS:
            return False
        place = _place(url)
        wanted = frame.wants(place)
        if wanted:
            frame.await_page(page, place)
        return wanted

    def returned(self, site: int, page: int) -> None:
        """A page that was wanted has been read, or could not be: it is no longer awaited. Before `note`."""
        frame = self._loaded.get(site)
        if frame is not None and frame.awaited:
            frame.release(page)

    def judge(self, site: int, page: int, reading: Reading, counters: bytes | None) -> ContentChange | None:
        """Judge a change of the text; None if its lines are unknown. Before `note`."""
        if reading.changes is None:
            return None
        frame = self._frame(site)
        changes = OwnHistory.unpack(counters).explain(reading.changes)
        known = CensusEvidence(frame.census, counts_old=page in frame.members)
        return judge(changes, reading.words, known)

    def note(self, site: int, page: int, url: str, reading: Reading) -> None:
        """Learn the lines of a page that was read."""
        if not reading.lines:
            return
        frame, keys = self._frame(site), np.frombuffer(reading.lines, np.int64).tolist()
        if page not in frame.members:
            frame.add(page, _place(url), keys)
        elif reading.old_lines:
            frame.census.replace(np.frombuffer(reading.old_lines, np.int64).tolist(), keys)
            frame.dirty = True

    def take_dirty(self) -> list[tuple[int, bytes]]:
        """The frames that changed since the last call, packed."""
        rows = [(site, frame.pack()) for site, frame in self._loaded.items() if frame.dirty]
        for frame in self._loaded.values():
            frame.dirty = False
        lines = sum(len(frame.census) + _OVERHEAD for frame in self._loaded.values())
        while len(self._loaded) > _MAX_LOADED and lines > _MAX_LINES:
            lines -= len(self._loaded.popitem(last=False)[1].census) + _OVERHEAD
        return rows

    def _frame(self, site: int) -> SiteFrame:
        frame = self._loaded.get(site)
        if frame is None:
            data = self._store.sites.frame(site)
            frame = SiteFrame.unpack(data) if data else self._learned(site)
            self._loaded[site] = frame
        else:
            self._loaded.move_to_end(site)
        return frame

    def _learned(self, site: int) -> SiteFrame:
        """The frame of a site that has none: from its stored pages, such as those of an earlier version of recrawl."""
        frame = SiteFrame()
        for page, url, keys in self._stored_lines(site):
            frame.add(page, _place(url), keys)
        return frame


def stored_lines(repository: Storage, options: CrawlOptions, site: int) -> Iterator[tuple[int, str, list[int]]]:
    """Number, URL and keys of lines of some stored pages of a site."""
    store = repository.store
    noise = options.noise(store.sites.get(site).origin) if site < store.next_id("sites") else NO_NOISE
    for page, url, visits, _ in store.pages.of_site(site, _FIRST_MEMBERS):
        version = store.versions.pick(page, None) if visits else None
        if version is not None:
            from recrawl.crawl.visits.stored_text import StoredText  # lazy: loads what parses pages

            try:
                _, headers, body = repository.body(version)
                found = StoredText(body, headers, noise).lines(noise)
            except (OSError, ValueError, RecrawlError):
                continue  # it is damaged: others tell the frame
            if found:
                yield page, url, list({line.key for line in found})


def counters_after(counters: bytes | None, reading: Reading) -> bytes | None:
    """The page's own history after a change of its text."""
    if reading.changes is None:
        return counters
    history = OwnHistory.unpack(counters)
    history.note(reading.changes)
    return history.pack()


def _place(url: str) -> int:
    return key(directory(url))
