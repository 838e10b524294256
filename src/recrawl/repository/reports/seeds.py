"""How the crawl of each site or page that was added goes: how many pages are stored, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recrawl.discover.urls import canonical, key, origin
from recrawl.model import Failure
from recrawl.repository.reader import Reader
from recrawl.repository.results.failures import advice, sentence
from recrawl.settings import Seed

STORED = ("live", "moved")
"""States of the page of a seed that answered."""


@dataclass(frozen=True, slots=True)
class SeedState:
    """A site or page that was added, and how its crawl goes."""

    url: str
    site: int | None
    """Number of its site; None before its first visit."""
    page: int | None
    """Number of its page; None before it is known."""
    state: str
    """waiting (not visited yet), stored, failing (its page cannot be read), missing (404 or 410) or gone."""
    failure: str = ""
    """Why its page could not be read, as a word: dns, robots-disallowed, http-4xx ..."""
    cause: str = ""
    """The same in a sentence."""
    advice: str = ""
    """What to do about it."""
    at: float | None = None
    """When it was visited last."""


def begun_seeds(repo: Reader, seeds: Iterable[Seed]) -> list[Seed]:
    """Return the seeds whose page is known: their crawl has begun at some time."""
    pages = repo.storage.store.pages
    return [seed for seed in seeds if pages.number(key(canonical(seed.url) or seed.url)) is not None]


def seed_states(repo: Reader, seeds: Iterable[Seed]) -> list[SeedState]:
    """Return how the crawl of each seed goes, in their order."""
    return [_state(repo, seed.url) for seed in seeds]


def _state(repo: Reader, url: str) -> SeedState:
    store = repo.storage.store
    number = store.pages.number(key(canonical(url) or url))
    found = None if number is None else store.pages.details(number)
    if number is None or found is None:
        return SeedState(url, store.sites.number(origin(url)), None, "waiting")
    visits = store.reports.visits_of_page(number, 1)
    if found["state"] == "moved" and found["target"] >= 0:
        target = store.pages.details(found["target"])
        if target is not None and target["state"] not in STORED and target["last_try"] is not None:
            visits, found = store.reports.visits_of_page(target["id"], 1), target  # it leads where nothing can be read
    state, failure = found["state"], visits[0]["failure"] if visits else None
    at = visits[0]["at"] if visits else None
    if not visits and state == "found":
        return SeedState(url, found["site"], number, "waiting")
    if failure is None or failure in (Failure.MOVED, Failure.LIMIT):
        return SeedState(url, found["site"], number, "gone" if state == "gone" else "stored", at=at)
    status, detail = visits[0]["status"], visits[0]["detail"] or ""
    return SeedState(
        url,
        found["site"],
        number,
        "missing" if failure == Failure.MISSING else "failing",
        failure,
        sentence(failure, status, detail),
        advice(failure, status, detail, found["url"]),
        at,
    )
