"""The protocol of checks: is the store consistent, and what must archive and index hold?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol


class Inconsistency(NamedTuple):
    """Rows that contradict each other."""

    what: str
    """A sentence without the number of rows."""
    rows: int
    repairable: bool


class StoredVersion(NamedTuple):
    """A version of a page or of a requisite, or a screenshot, as the archive must hold it."""

    id: int
    kind: str
    """page, requisite or screenshot."""
    url: str
    at: float
    start: int
    length: int
    payload: bytes


class IndexedPage(NamedTuple):
    """A page as the index may hold it."""

    page: int
    url: str
    expected: bool
    """Whether it must be there."""
    earliest: float
    """The time of its last change: what is indexed is not older."""
    site: int
    digest: bytes
    """Of the text that it changed to."""


class Checks(Protocol):
    """Questions of `recrawl check`, and the repairs in the store."""

    def integrity(self) -> list[str]:
        """What is wrong with the file itself; empty if nothing is."""

    def rebuild_indexes(self) -> None:
        """Make the indexes of all tables anew."""

    def inconsistencies(self) -> list[Inconsistency]:
        """Rows that contradict each other."""

    def repair(self) -> None:
        """Compute again what the rows of visits and versions determine: counters and newest versions of pages."""

    def counts(self) -> tuple[int, int, int]:
        """The numbers of pages, visits and versions."""

    def versions_of(self, warc: int) -> Iterator[StoredVersion]:
        """The versions in a file of the archive, by their place; without those marked as lost."""

    def lost(self) -> int:
        """The number of versions that are marked as lost."""

    def mark_lost(self, versions: Iterable[int]) -> None:
        """Mark versions as lost. Their pages are downloaded in full at the next visit."""

    def mark_requisites_lost(self, versions: Iterable[int]) -> None:
        """Mark versions of page requisites as lost, and all that share their records; they are requested again."""

    def mark_screenshots_lost(self, screenshots: Iterable[int]) -> None:
        """Mark screenshots as lost, and all that share their records."""

    def set_length(self, warc: int, length: int) -> None:
        """Change the valid length of a file of the archive."""

    def indexed_pages(self) -> Iterator[IndexedPage]:
        """The pages that the index may hold."""
