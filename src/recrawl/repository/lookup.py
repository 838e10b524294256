"""Find pages, sites and versions by what people write: `example.org`, a URL, a number, a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recrawl.crawl.state.known_pages import old_spelling
from recrawl.discover.urls import UrlRules, key, origin
from recrawl.errors import NotKnown
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.record.store.location import shards_of
from recrawl.repository.opening import load
from recrawl.repository.seed_rules import seed_url
from recrawl.times import moment

When = str | float | datetime
"""A point in time: `2026-03-01`, `2d` (ago), seconds since 1970, or a datetime."""


def seconds(when: When, now: float) -> float:
    """A point in time in seconds since 1970.

    >>> seconds("1h", 7200.0), seconds(5, 0.0)
    (3600.0, 5.0)
    """
    if isinstance(when, str):
        return moment(when, now)
    return when.timestamp() if isinstance(when, datetime) else float(when)


def as_text(which: int | When) -> str:
    """A version's number or a time, as the command line takes it."""
    return which.isoformat(timespec="microseconds") if isinstance(which, datetime) else str(which)


def key_of(storage: Storage, url: str) -> tuple[int, str]:
    """The key of the page that a URL names, and the clean URL; without a scheme, https is tried before http."""
    rules = UrlRules(tracking=tuple(load(storage.folder)["tracking"]))
    clean = seed_url(url, rules)
    plain = clean.replace("https://", "http://", 1)
    pages = storage.store.pages
    if "://" not in url and pages.number(key(clean)) is None and pages.number(key(plain)) is not None:
        clean = plain
    if pages.number(key(clean)) is None:
        clean = url if pages.number(key(url)) is not None else old_spelling(storage.store, clean)
    return key(clean), clean


def page_of(storage: Storage, url: str) -> dict[str, Any]:
    """The row of the page that a URL names."""
    number, clean = key_of(storage, url)
    page = storage.store.pages.find(number)
    if page is None:
        raise NotKnown(f"{clean} is not known here; 'recrawl pages' lists what is")
    return page


def origin_of(storage: Storage, site: str) -> str:
    """The origin of the site that an option names; '' for all sites."""
    if not site:
        return ""
    wanted = origin(seed_url(site))
    known = {row.origin for row in storage.store.sites.all()}
    for name in (wanted, wanted.replace("https://", "http://", 1) if "://" not in site else wanted):
        if name in known:
            return name
    raise NotKnown(f"the site '{site}' is not in this repository; 'recrawl sites' lists all sites")


def versions_of(storage: Storage, page: int) -> list[VersionRow]:
    """A page's versions, oldest first; at least one."""
    versions = storage.store.versions.of_page(page)
    if not versions:
        raise NotKnown("this page was never downloaded; 'recrawl why' explains it")
    return versions


def pick(versions: Sequence[VersionRow], which: str, now: float) -> VersionRow:
    """A version by number (1 is the oldest, -1 the newest) or by a time at which it was the stored one."""
    return versions[place_of([version.at for version in versions], which, now)]


def place_of(times: Sequence[float], which: str, now: float) -> int:
    """The place of that version, given the times of all versions, oldest first."""
    try:
        number = int(which)
    except ValueError:
        at = moment(which, now)
        at += 0.001 if "." in which else 1.0  # printed times are rounded down; a version is in force at its own time
        past = sum(time < at for time in times)
        if not past:
            raise NotKnown("no version is that old; 'recrawl log' lists the versions") from None
        return past - 1
    if number == 0 or abs(number) > len(times):
        raise NotKnown(f"this page has versions 1 to {len(times)}, not {number}; 'recrawl log' lists them")
    return number - 1 if number > 0 else len(times) + number


def planning_folder(storage: Storage, url: str) -> Path:
    """The folder of the repository that plans the visits to a page: in a cluster that of its shard."""
    if not shards_of(storage.folder):
        return storage.folder
    from recrawl.record.shards.folders import folder_of  # lazy: few repositories are clusters

    page = storage.store.pages.number(key_of(storage, url)[0])
    return storage.folder if page is None else folder_of(storage.folder, page)
