"""The protocol of requisites: files that pages need to be shown as they looked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from recrawl.record.rows import HostRow, RequisiteRow, RequisiteVersion


class RequisiteTable(Protocol):
    """Requisites, their versions and the pages that need them. Writing goes through `Store.commit`."""

    def known(self, keys: Iterable[int]) -> list[tuple[int, int, int]]:
        """Key, number and level of those with these URL keys."""

    def get_many(self, requisites: Iterable[int]) -> list[RequisiteRow]:
        """Requisites by number."""

    def find(self, key: int) -> RequisiteRow | None:
        """The requisite with this URL key."""

    def waiting(self, limit: int) -> list[RequisiteRow]:
        """Requisites that were never requested: stylesheets first, then the oldest."""

    def due(
        self, requisites: Iterable[int], checked_before: float, failed_before: float, now: float = math.inf
    ) -> list[int]:
        """Those of the requisites that were last requested before a time; for those that failed, another time.

        Also those that were requested after `now`: the clock was wrong then.
        """

    def of_pages(self, pages: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        """Level and packed numbers of the requisites of each page; without those where they were never looked for."""

    def version(self, version: int) -> RequisiteVersion | None:
        """A version by its number."""

    def with_payload(self, payload: bytes) -> RequisiteVersion | None:
        """The first version of any requisite with these bytes whose record can be read."""

    def closest(self, requisite: int, at: float) -> RequisiteVersion | None:
        """The version of a requisite that was downloaded closest to a time."""

    def host(self, origin: str) -> HostRow | None:
        """What is known of a server that is asked for requisites alone."""
