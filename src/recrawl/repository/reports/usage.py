"""What a repository takes on the disk: by kind, site and age, how it grows, and when the disk will be full.

Records of the archive are known one by one, by their site and time, but for visits without a version (revisits,
redirects, robots.txt), which are the rest of its files. What has no times of its own grows as the visits do (these
records, the database) or as the pages do (index, models).
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from recrawl.columns import DAY
from recrawl.errors import UsageError
from recrawl.record.storage import Storage
from recrawl.record.store.location import shards_of
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import at
from recrawl.repository.results.words import size
from recrawl.times import stamp

_MONTH = 30 * DAY
_YEAR = 365 * DAY
_LITTLE, _LITTLE_SHARE = 2e9, 0.05
"""Free bytes, and their share of the disk, under which it is called nearly full."""
_FORESEEN = 20 * _YEAR
_LEAST = DAY
"""Time that a repository must have been visited for before it is said how it grows, in seconds."""


@dataclass(frozen=True, slots=True)
class UsedSpace:
    """What a kind of data, or a site, takes."""

    name: str
    bytes: int
    month: int | None
    """Bytes of the last 30 days; None if the repository is younger than a day."""
    records: int = 0
    """Versions, screenshots and requisites in the archive; 0 for what is not made of these."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a repository takes on the disk."""

    bytes: int
    month: int | None
    """Bytes of the last 30 days; None if the repository is younger than a day."""
    free: int
    """Free bytes of the file system."""
    full: datetime | None
    """When it will be full if the repository goes on as in the last 30 days; None if that is not within 20 years."""
    kinds: tuple[UsedSpace, ...]
    """The largest first."""
    sites: tuple[UsedSpace, ...]
    """Versions and screenshots of each site, the largest first."""
    ages: dict[str, int]
    """Bytes of versions, screenshots and requisites of the last 30 days (`month`), the year before (`year`), older."""
    remote: bool = False
    """Whether finished archive files are in an object store: they take no space here."""
    limit: int | None = None
    """The setting `disk`; `full` says when that is reached, if it is sooner. None without a limit."""

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl usage --json` prints it."""
        return {**asdict(self), "full": None if self.full is None else stamp(self.full.timestamp())}


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def usage(storage: Storage, now: float, *, limit: int | None = None, free: Callable[[Path], int] = _free) -> Usage:
    """What a repository takes now."""
    if shards_of(storage.folder):
        raise UsageError("the space of a cluster is that of its database and object store: ask them for it")
    store = storage.store
    shares = store.reports.recent(now - _MONTH)
    age = 0.0 if shares["first"] is None else now - shares["first"]
    grows = age >= _LEAST
    rows = store.reports.archived((now - _MONTH, now - _YEAR))
    kinds = [_summed(kind, [row for row in rows if row["kind"] == kind], grows) for kind in _KINDS]
    known = sum(kind.bytes for kind in kinds)

    def part(name: str, size: int, share: float) -> UsedSpace:
        return UsedSpace(name, size, round(size * share) if grows else None)

    kinds += [
        part("other visits", max(0, store.warcs.total_bytes() - known), shares["visits"]),
        part("database", _size(storage.folder.glob("recrawl.db*")), shares["visits"]),
        part("index", _size((storage.folder / "index").rglob("*")), shares["pages"]),
        part("models", _size((storage.folder / "models").rglob("*")), shares["pages"]),
    ]
    sites = {row["site"] for row in rows if row["site"]}
    month = sum(kind.month or 0 for kind in kinds) if grows else None
    left = free(storage.folder)
    month_ago, year_ago = (sum(row["later"][place] for row in rows) for place in (0, 1))
    taken = sum(kind.bytes for kind in kinds)
    room = left if limit is None else min(left, max(0, limit - taken))
    lasts = room / month * min(age, _MONTH) if month else math.inf
    return Usage(
        bytes=taken,
        month=month,
        free=left,
        full=at(now + lasts) if lasts < _FORESEEN else None,
        kinds=_largest_first(kinds),
        sites=_largest_first([_summed(site, [row for row in rows if row["site"] == site], grows) for site in sites]),
        ages={"month": month_ago, "year": year_ago - month_ago, "older": known - year_ago},
        remote=storage.remote is not None,
        limit=limit,
    )


def full_disk(repo: Reader) -> list[str]:
    """A sentence if the disk of a repository is nearly full."""
    space = shutil.disk_usage(repo.folder)
    if space.free >= min(_LITTLE, space.total * _LITTLE_SHARE):
        return []
    return [f"the disk is nearly full: {size(space.free)} are left, and crawls stop when there is no space"]


_KINDS = ("versions", "screenshots", "requisites")


def _summed(name: str, rows: list[dict[str, Any]], grows: bool) -> UsedSpace:
    month = sum(row["later"][0] for row in rows)
    return UsedSpace(
        name,
        sum(row["bytes"] for row in rows),
        month if grows else None,
        sum(row["records"] for row in rows),
    )


def _largest_first(parts: list[UsedSpace]) -> tuple[UsedSpace, ...]:
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))


def _size(paths: Any) -> int:
    """Bytes of files; those that vanish meanwhile count nothing."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total
