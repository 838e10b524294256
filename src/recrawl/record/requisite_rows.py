"""Rows of the store about requisites: files that pages need to be shown as they looked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class RequisiteRow(NamedTuple):
    """A file that pages need to be shown as they looked: a stylesheet, an image, a font, a script."""

    id: int
    key: int
    style: int
    """Whether it is a stylesheet."""
    level: int
    """Which requisites the pages keep that need it (`discover.requisites.Level`): decides on what it needs itself."""
    depth: int
    """Stylesheets and redirects between a page and this one."""
    checked: float | None
    """The last request; None if it waits for the first."""
    failures: int
    """Requests in a row without an answer that could be kept."""
    failure: str | None
    version: int
    """The newest version; -1 without one."""
    target: int
    """The requisite that it redirects to; -1 without one."""
    etag: str
    modified: str
    url: str


class RequisiteVersion(NamedTuple):
    """The contents of a requisite at one time and their place in the archive."""

    id: int
    requisite: int
    at: float
    record: int
    """The version whose record holds the bytes: this one, or an earlier one of any requisite with the same bytes."""
    size: int
    warc: int
    start: int
    length: int
    payload: bytes
    mime: str
    styles: str
    """URLs that a stylesheet imports, one per line."""
    files: str
    """URLs that a stylesheet shows, one per line."""


class OutgoingRequisite(NamedTuple):
    """A requisite that this shard of a cluster needs and another one owns, who requests it."""

    shard: int
    key: int
    url: str
    style: int
    level: int
    depth: int


class HostRow(NamedTuple):
    """A server that is asked for requisites alone; no pages of it are kept."""

    origin: str
    robots_status: int
    robots_body: bytes
    robots_at: float
    robots_held: float
    held_until: float


@dataclass(slots=True)
class RequisiteBatch:
    """Rows about requisites that are committed together."""

    rows: list[RequisiteRow] = field(default_factory=list)
    """New ones and changed ones; of several rows with one number the last counts."""
    versions: list[tuple[RequisiteVersion, bytes]] = field(default_factory=list)
    """Each with its WARC records; without records if an earlier version has the same bytes."""
    pages: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Page, level, and the numbers of its requisites as packed int32."""
    hosts: list[HostRow] = field(default_factory=list)
    outbox: list[OutgoingRequisite] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.versions or self.pages or self.hosts or self.outbox)
