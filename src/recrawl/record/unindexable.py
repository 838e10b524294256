"""Pages that the full-text index cannot have: listed with the reason, and left out of it.

They are few: what a reader process sends fits into the index. The list is one value of the store, so that every
command and every machine sees it.
"""

from __future__ import annotations

import json

from recrawl.characters import storable
from recrawl.record.store import Store

_META = "unindexable"
_MOST = 10_000
_LONGEST_REASON = 300


def unindexable_pages(store: Store) -> dict[int, str]:
    """The pages that the index cannot have, each with the reason."""
    return {int(page): reason for page, reason in json.loads(store.meta.get(_META, "{}")).items()}


class Unindexable:
    """The list, for the writer of a repository."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages = unindexable_pages(store)

    def note(self, page: int, reason: str) -> None:
        """List a page."""
        reason = storable(" ".join(reason.split()), _LONGEST_REASON)
        if self._pages.get(page) != reason and len(self._pages) < _MOST:
            self._pages[page] = reason
            self._save()

    def forget(self, page: int) -> None:
        """Take a page from the list: the index has it, or need not have it any more."""
        if self._pages.pop(page, None) is not None:
            self._save()

    def _save(self) -> None:
        self._store.meta.set(_META, json.dumps(self._pages))
