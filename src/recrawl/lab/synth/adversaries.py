"""Sites that take what belongs to others: an adversary beside the sites of a history.

An adversary has as many pages as the largest site of the history, unless its kind says otherwise. Its pages exist in
the lab only: they have no text, no links and no change priors. Which pages are its own is in the history's `facts`, so
that a replay measures the others.

A page that changes only for crawlers is a page that is rewritten between any two visits. A site that copies others and
pretends never to change is a site that never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recrawl.book import Directories
from recrawl.columns import HOUR, Floats, Ints
from recrawl.errors import UnknownName
from recrawl.lab.histories.history import ABSENT, HOSTILE, LIES, History, assemble
from recrawl.parameters import ADVERSARIES

_EVERY = 6 * HOUR
"""How often an adversary rewrites a page."""
_HOSTS = 50
"""Hosts of a site that pretends to be many."""
_Rows = tuple[list[str], Ints, Floats, Ints]


def _rewriting(pages: int, span: float) -> _Rows:
    return _versions([f"https://rewriting.example/{page}" for page in range(pages)], span)


def _many(pages: int, span: float) -> _Rows:
    return _versions([f"https://host{page % _HOSTS}.many.example/{page}" for page in range(pages)], span)


def _farm(pages: int, span: float) -> _Rows:
    return _versions([f"https://farm{page}.example/" for page in range(pages)], span)


def _still(pages: int, span: float) -> _Rows:  # noqa: ARG001
    """Pages never change."""
    urls = [f"https://still.example/{page}" for page in range(pages)]
    return urls, np.arange(pages), np.zeros(pages), np.arange(pages)


def _endless(pages: int, span: float) -> _Rows:
    """Pages are born as fast as the site has any, and never change."""
    born = np.linspace(0.0, span, pages * 5, endpoint=False)
    born[:pages] = 0.0
    urls = [f"https://endless.example/day/{page}" for page in range(len(born))]
    return urls, np.arange(len(born)), born, np.arange(len(born))


def _sessions(pages: int, span: float) -> _Rows:
    """Every page gets a new URL five times, and the old one is gone."""
    starts = np.arange(5) * (span / 5)
    urls = [f"https://sessions.example/{page}?session={number}" for page in range(pages) for number in range(5)]
    page, time, version = np.repeat(np.arange(len(urls)), 2), np.zeros(2 * len(urls)), np.zeros(2 * len(urls), np.int64)
    time[::2], time[1::2] = np.tile(starts, pages), np.tile(starts, pages) + span / 5
    version[::2], version[1::2] = np.arange(len(urls)), ABSENT
    return urls, page, time, version


_KINDS: dict[str, Callable[[int, float], _Rows]] = dict(
    zip(ADVERSARIES, (_rewriting, _many, _farm, _endless, _sessions, _still, _still, _rewriting), strict=True)
)
_LIARS = ("lying", "boasting")
"""Kinds with a sitemap that says of all pages, at each reading, that they changed just now."""


def with_adversary(history: History, kind: str, pages: int | None = None) -> History:
    """Return the history with an adversary beside its sites; it loses its links, words and clusters."""
    if kind not in ADVERSARIES:
        raise UnknownName("adversary", kind, ADVERSARIES)
    size = int(np.bincount(history.site).max()) if pages is None else pages
    urls, page, time, version = _KINDS[kind](size, history.span)
    both = joined(history, assemble(urls, page, time, version, change=history.change, carries=frozenset()))
    hostile = (np.arange(len(both)) >= len(history)).astype(np.float64)
    return replace(both, facts={HOSTILE: hostile} | ({LIES: hostile} if kind in _LIARS else {}))


def joined(first: History, second: History) -> History:
    """Return the sites of both histories, without links, words and clusters."""
    folders = len(first.folders.parent)
    parent = second.folders.parent
    empty = np.full(len(second), np.nan, np.float32)
    return replace(
        first,
        urls=[*first.urls, *second.urls],
        sites=[*first.sites, *second.sites],
        site=np.concatenate((first.site, second.site + np.int32(len(first.sites)))),
        folder=np.concatenate((first.folder, second.folder + folders)),
        folders=Directories(
            np.concatenate((first.folders.parent, np.where(parent < 0, parent, parent + folders))),
            np.concatenate((first.folders.level, second.folders.level)),
        ),
        form=np.concatenate((first.form, second.form + int(first.form.max(initial=-1)) + 1)),
        first=np.concatenate((first.first, second.first[1:] + first.first[-1])),
        time=np.concatenate((first.time, second.time)),
        version=np.concatenate((first.version, np.where(second.version < 0, ABSENT, second.version))),
        size=np.concatenate((first.size, second.size)),
        carries=first.carries & {"folders", "forms"},
        begins=np.concatenate((first.begins, second.begins)),
        links=None,
        clusters=None,
        words=None,
        weight=None if first.weight is None else np.concatenate((first.weight, np.ones(len(second)))),
        prior=None if first.prior is None else np.concatenate((first.prior, empty)),
        facts={},
    )


def _versions(urls: list[str], span: float) -> _Rows:
    """Return rows in which every page is rewritten again and again."""
    times = np.arange(0.0, span + _EVERY, _EVERY)
    page = np.repeat(np.arange(len(urls)), len(times))
    return urls, page, np.tile(times, len(urls)), np.arange(len(page))
