"""Protocol of what people attach to pages and changes: requests for a visit, tags, read marks, saved filters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

WHOLE_SITE = -1
"""Stands for the page where a tag is on a whole site."""


class MarkTable(Protocol):
    """Marks of people. Each method that writes is a transaction of its own and needs no lock."""

    def request(self, pages: Iterable[int], at: float) -> None:
        """Request a visit to pages."""

    def requested(self) -> list[int]:
        """Pages with a request that was not fulfilled, oldest request first."""

    def fulfil(self, pages: Iterable[int]) -> None:
        """Remove the requests for pages."""

    def pages_not_tried_since(self, site: int, page: int | None, at: float, now: float = math.inf) -> list[int]:
        """Downloaded visitable pages of a site (or one page of it) whose last attempt was before a time, or after
        `now`: the clock was wrong then."""

    def pages_to_recheck(self, site: int) -> list[int]:
        """All pages of a site that can be visited: found, live, missing, gone or moved."""

    def tag(self, name: str, site: int, page: int) -> None:
        """Put a tag on a page, or with `WHOLE_SITE` on a site."""

    def untag(self, name: str, site: int, page: int) -> bool:
        """Remove a tag; returns whether it was there."""

    def tags(self) -> list[tuple[str, int, int]]:
        """Each tag with its number of sites and of single pages, by name."""

    def tags_of(self, site: int, page: int) -> list[str]:
        """The tags of a page, or of a site itself, by name; without those that a page has from its site."""

    def mark_all_read(self) -> int:
        """Mark all recorded changes as read; returns the number of the newest visit."""

    def mark_read(self, visits: Iterable[int], *, read: bool) -> None:
        """Mark single changes as read or unread."""

    def saved_filters(self) -> dict[str, str]:
        """Saved filters of changes by name, each as JSON."""

    def save_filter(self, name: str, query: str) -> None:
        """Save a filter, replacing one of the same name."""

    def remove_filter(self, name: str) -> bool:
        """Delete a saved filter; returns whether it was there."""
