"""Visits to copies: what they find is told of the page that they are copies of, and told once.

A page is a copy from the end of the run that has shown it (`crawl.state.copies`), or from its first visit if that
finds what another new page of its site shows, or the page that it claims as its canonical address. A copy that no
longer agrees with its page is a page of its own again, at once: what was found is told of it.
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.results import Done
from recrawl.discover.urls import key
from recrawl.learn.copies.sketch import near
from recrawl.model import Outcome
from recrawl.record.rows import Batch
from recrawl.record.store import Store

_MOST_TEXTS = 50_000
"""Texts and sketches of new pages that are kept; the oldest is forgotten."""


class _Shown(NamedTuple):
    """What a page shows."""

    digest: bytes
    sketch: bytes

    def agrees(self, other: _Shown) -> bool:
        """Whether both pages show nearly the same."""
        return self.digest == other.digest or near(self.sketch, other.sketch)


class CopyWatch:
    """The copies among the pages of a run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: dict[tuple[int, bytes], int] = {}
        """From the sites, texts and sketches of new pages to the key of the first URL with each."""
        self._unstored: dict[int, _Shown] = {}
        """What pages show since the last commit, by the key of their URL."""

    def committed(self, _batch: Batch) -> None:
        """Forget what the store has now."""
        self._unstored.clear()

    def told(self, visit: PageVisit, reading: Reading, done: Done) -> Done:
        """The result of a visit that has read a page, marked if it is told of another page."""
        own, shown = key(visit.url), _Shown(reading.digest, reading.sketch or visit.state.sketch or b"")
        self._unstored[own] = shown
        outcome = done.visit.outcome
        if visit.state.same_as:
            if self._agrees(shown, visit.state.same_as):
                return _copy(done, visit.state.same_as)
            return done._replace(state=done.state._replace(same_as=0))
        if outcome != Outcome.NEW or not reading.sketch:
            return done
        claimed = done.state.claim
        if claimed and claimed != own and self._agrees(shown, claimed):
            return _copy(done, claimed)
        texts = [(visit.server, shows) for shows in (reading.digest, reading.sketch)]
        first = next((self._first[shows] for shows in texts if shows in self._first), own)
        for shows in texts:
            self._first.setdefault(shows, first)
            if len(self._first) > _MOST_TEXTS:
                self._first.pop(next(iter(self._first)))
        return done if first == own else _copy(done, first)

    def _agrees(self, shown: _Shown, other: int) -> bool:
        """Whether a page shows what the page of another URL does, if that is stored."""
        known = self._unstored.get(other)
        if known is None and (page := self._store.pages.number(other)) is not None:
            state = self._store.pages.get(page).state
            known = _Shown(state.digest, state.sketch or b"") if state.digest else None
        return known is not None and shown.agrees(known)


def _copy(done: Done, same_as: int) -> Done:
    return done._replace(visit=done.visit._replace(copy=1), state=done.state._replace(same_as=same_as))
