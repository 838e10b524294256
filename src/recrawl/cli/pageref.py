"""Pages and versions as people name them on the command line."""

from __future__ import annotations

from typing import Any

from recrawl.cli.session import seed_url
from recrawl.cli.times import moment
from recrawl.discover.urls import key
from recrawl.errors import UsageError
from recrawl.record import questions
from recrawl.record.repository import Repository
from recrawl.record.rows import VersionRow


def page_of(repository: Repository, url: str) -> dict[str, Any]:
    """The page that a URL names."""
    clean = seed_url(url)
    return questions.find_page(repository.store.db, key(clean), clean)


def versions_of(repository: Repository, page: int) -> list[VersionRow]:
    """A page's versions, oldest first; at least one."""
    versions = questions.versions(repository.store.db, page)
    if not versions:
        raise UsageError("this page was never downloaded; 'recrawl why' says why")
    return versions


def pick(versions: list[VersionRow], text: str, now: float) -> VersionRow:
    """A version by number (1 is the oldest, -1 the newest) or by a time at which it was the stored one."""
    try:
        number = int(text)
    except ValueError:
        at = moment(text, now)
        past = [version for version in versions if version.at <= at]
        if not past:
            raise UsageError("there was no version yet at that time; 'recrawl log' lists them") from None
        return past[-1]
    if number == 0 or abs(number) > len(versions):
        raise UsageError(f"there are versions 1 to {len(versions)}; 'recrawl log' lists them")
    return versions[number - 1 if number > 0 else number]
