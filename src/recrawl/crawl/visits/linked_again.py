"""Pages that were gone or had moved, and to which a page has begun to link: they may be back."""

from __future__ import annotations

import numpy as np

from recrawl.columns import Int32s
from recrawl.crawl.visits.machine import PageVisit
from recrawl.model import State
from recrawl.record.store import Store


class LinkedAgain:
    """Collects such pages during a run; they become visitable between two cycles.

    A link that was there before says nothing: pages keep links to what is gone for years.
    """

    def __init__(self, store: Store) -> None:
        self._links = store.links
        self._absent = store.pages.absent()["id"]
        self.pages: set[int] = set()

    def note(self, visit: PageVisit, links: Int32s) -> None:
        """A page was read that links to these pages."""
        if not len(self._absent) or not len(links):
            return
        place = np.minimum(np.searchsorted(self._absent, links), len(self._absent) - 1)
        absent = set(links[self._absent[place] == links].tolist())
        if absent and visit.state.state not in (State.GONE, State.MOVED):  # else all its links are there again
            packed = self._links.of_pages([visit.page]).get(visit.page, b"")
            absent -= set(np.frombuffer(packed, "<i4").tolist())
        self.pages |= absent
