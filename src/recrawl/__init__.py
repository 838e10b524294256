"""recrawl keeps a local copy of web pages, and a search index over it, as fresh as a download budget allows.

    import recrawl

    with recrawl.open("news") as repo:                    # or recrawl.init("news")
        repo.add("https://example.org", limit=500)
        repo.crawl()
        report = repo.cycle(budget=100, policy="shock")   # or policy=MyPolicy(alpha=0.2)
        for change in repo.changes(since="1d"):
            print(change.time, change.url)

    history = recrawl.History.read("sites/")
    result = recrawl.lab.replay(history, policy="shock", budget=0.01, cycle="1d")

Names are imported when they are first used: `import recrawl` alone loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recrawl.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recrawl import lab
    from recrawl.book import Book
    from recrawl.choose import Policy, make_policy
    from recrawl.errors import RecrawlError
    from recrawl.fetch.fetcher import Request
    from recrawl.lab.histories.history import History
    from recrawl.loop import drive
    from recrawl.model import Answer, Failure, Outcome, Outcomes, Picks
    from recrawl.repository.repository import Repository
    from recrawl.repository.results.pages import Page, Version
    from recrawl.repository.results.values import Change

__all__ = [
    "Answer",
    "Book",
    "Change",
    "Failure",
    "History",
    "Outcome",
    "Outcomes",
    "Page",
    "Picks",
    "Policy",
    "RecrawlError",
    "Repository",
    "Request",
    "Version",
    "__version__",
    "drive",
    "init",
    "lab",
    "make_policy",
    "open",
]

_HOMES = {
    "Answer": "recrawl.model",
    "Book": "recrawl.book",
    "Change": "recrawl.repository.results.values",
    "Failure": "recrawl.model",
    "History": "recrawl.lab.histories.history",
    "Outcome": "recrawl.model",
    "Outcomes": "recrawl.model",
    "Page": "recrawl.repository.results.pages",
    "Picks": "recrawl.model",
    "Policy": "recrawl.choose",
    "RecrawlError": "recrawl.errors",
    "Repository": "recrawl.repository.repository",
    "Request": "recrawl.fetch.http",
    "Version": "recrawl.repository.results.pages",
    "drive": "recrawl.loop",
    "make_policy": "recrawl.choose",
}
"""The module of each name that is imported when it is first used."""


def open(  # noqa: A001
    folder: Path | str = ".",
    *,
    notify: Callable[[str], None] | None = None,
    clock: Callable[[], float] | None = None,
    timer: Callable[[], float] | None = None,
) -> Repository:
    """Open the repository in a folder, or in the nearest one above it; `NoRepository` when there is none.

    `notify` gets sentences for people (waiting for the lock, resuming a cycle). `clock` gives the times that are
    recorded, `timer` those that pace requests: both in seconds since 1970, the system's clock by default.
    """
    from recrawl.cluster.opening import open_repository  # lazy: import recrawl must stay cheap

    return open_repository(folder, notify=notify, clock=clock, timer=timer)


def init(
    folder: Path | str = ".",
    *,
    notify: Callable[[str], None] | None = None,
    clock: Callable[[], float] | None = None,
    timer: Callable[[], float] | None = None,
    store: str = "",
    archive: str = "",
) -> Repository:
    """Make a repository in a folder, which may exist, and open it; the options are those of `open`.

    `store` is the URL of a PostgreSQL database for the facts, `archive` that of an object store for archive files and
    models, see `Repository.create`.
    """
    from recrawl.repository.repository import Repository  # lazy: import recrawl must stay cheap

    return Repository.create(folder, store=store, archive=archive, notify=notify, clock=clock, timer=timer)


if not TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> Any:
        if name == "lab":
            return import_module("recrawl.lab")
        if name not in _HOMES:
            raise AttributeError(f"module 'recrawl' has no attribute '{name}'")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
