"""Protocols of sites, cycles, archive files and single values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from recrawl.record.rows import NO_LIMIT, CycleRow, SiteRow


class MetaTable(Protocol):
    """Single values, by name."""

    def get(self, name: str, default: Any) -> Any:
        """The value of a name."""

    def set(self, name: str, value: float | str) -> None:
        """Write a value."""


class SiteTable(Protocol):
    """Servers."""

    def all(self) -> list[SiteRow]:
        """All sites, by number."""

    def get(self, site: int) -> SiteRow:
        """One site."""

    def origins(self) -> set[str]:
        """The origins of all sites."""

    def number(self, origin: str) -> int | None:
        """The number of the site with this origin."""

    def names(self, limit: int) -> list[tuple[int, str]]:
        """Number and origin of sites, by origin."""

    def frame(self, site: int) -> bytes | None:
        """What is known of the lines that its pages share, packed; None if nothing is."""

    def held_until(self, origin: str) -> float | None:
        """Until when a site asked to be left alone; None for an unknown site."""


class CycleTable(Protocol):
    """Crawls and cycles. Each method that writes is a transaction of its own."""

    def newest(self, limit: int = NO_LIMIT) -> list[CycleRow]:
        """Cycles, newest first."""

    def begin(self, row: CycleRow) -> None:
        """Record a new cycle."""

    def set_limits(self, cycle: int, limits: str) -> None:
        """Record a cycle's limits."""

    def finish(self, cycle: int, at: float) -> None:
        """Record the end of a cycle."""

    def reopen(self, cycle: int) -> None:
        """A run goes on after its end."""

    def without_summary(self) -> list[CycleRow]:
        """Finished cycles that have no summary, oldest first."""


class WarcTable(Protocol):
    """Files of the archive."""

    def names(self) -> dict[int, str]:
        """The name of each file."""

    def lengths(self) -> dict[int, int]:
        """The committed length of each file in bytes."""

    def total_bytes(self) -> int:
        """The committed length of all files in bytes."""

    def stored(self) -> set[int]:
        """Files that were put into the object store."""

    def set_stored(self, files: Iterable[int]) -> None:
        """Record that files were put into the object store."""

    def clear_stored(self) -> None:
        """Record that there is no object store."""
