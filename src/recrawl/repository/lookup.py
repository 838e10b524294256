"""Pages, sites and versions as people name them."""

from __future__ import annotations

from typing import Any

from recrawl.discover.urls import UrlRules, key, origin
from recrawl.errors import NotKnown
from recrawl.record import questions
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.opening import load, seed_url
from recrawl.repository.times import moment


def page_of(repository: Storage, url: str) -> dict[str, Any]:
    """The page that a URL names; without a scheme, https is tried before http."""
    rules = UrlRules(tracking=tuple(load(repository.folder)["tracking"]))
    clean = seed_url(url, rules)
    plain = clean.replace("https://", "http://", 1)
    db = repository.store.db
    if "://" not in url and not questions.knows(db, key(clean)) and questions.knows(db, key(plain)):
        clean = plain
    return questions.find_page(db, key(clean), clean)


def origin_of(repository: Storage, site: str) -> str:
    """The site that an option names, '' for all of them."""
    if not site:
        return ""
    wanted = origin(seed_url(site))
    known = {row.origin for row in repository.store.sites()}
    for name in (wanted, wanted.replace("https://", "http://", 1) if "://" not in site else wanted):
        if name in known:
            return name
    raise NotKnown(f"the site '{site}' is not known here; 'recrawl sites' lists what is")


def versions_of(repository: Storage, page: int) -> list[VersionRow]:
    """A page's versions, oldest first; at least one."""
    versions = questions.versions(repository.store.db, page)
    if not versions:
        raise NotKnown("this page was never downloaded; 'recrawl why' says why")
    return versions


def pick(versions: list[VersionRow], text: str, now: float) -> VersionRow:
    """A version by number (1 is the oldest, -1 the newest) or by a time at which it was the stored one."""
    try:
        number = int(text)
    except ValueError:
        at = moment(text, now)
        at += 0.001 if "." in text else 1.0  # times are printed rounded down; a version is in force at its own
        past = [version for version in versions if version.at < at]
        if not past:
            raise NotKnown("there was no version yet at that time; 'recrawl log' lists them") from None
        return past[-1]
    if number == 0 or abs(number) > len(versions):
        raise NotKnown(f"there are versions 1 to {len(versions)}; 'recrawl log' lists them")
    return versions[number - 1 if number > 0 else number]
