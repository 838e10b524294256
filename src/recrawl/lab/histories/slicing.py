"""Parts of a history: one that begins later, so that what was tuned on its first part can be judged on the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, History, LinkLists


def later(history: History, seconds: float) -> History:
    """The history from so long after each site's beginning on. Pages that are gone by then for good are left out."""
    owner = history.page_of
    past = history.time <= seconds
    over = past & np.append((owner[1:] == owner[:-1]) & past[1:], False)  # another row is in force when it begins
    there = ~over & (history.version != ABSENT)
    kept = ~over & ~(past & ~there) & np.isin(owner, owner[there])
    if not there.any() or seconds >= history.span:
        raise UsageError(f"the archives last {history.span / 86400:.3g} days: skip less than that")
    rest = excerpt(history, kept)
    return replace(rest, time=np.maximum(rest.time - seconds, 0.0), begins=history.begins + seconds)


def excerpt(history: History, kept: NDArray[np.bool_]) -> History:
    """Some rows of a history; pages that have none are left out, and sites keep their numbers."""
    many = np.bincount(history.page_of[kept], minlength=len(history))
    pages = np.flatnonzero(many)
    return replace(
        history,
        urls=[history.urls[page] for page in pages.tolist()],
        site=history.site[pages],
        folder=history.folder[pages],
        form=history.form[pages],
        first=np.concatenate(([0], np.cumsum(many[pages]))),
        time=history.time[kept],
        version=history.version[kept],
        size=history.size[kept],
        links=_among(history.links, kept, pages, len(history)) if history.links else None,
        clusters=Clusters(history.clusters.of[pages], history.clusters.nearest) if history.clusters else None,
        weight=None if history.weight is None else history.weight[pages],
        facts={name: column[pages] for name, column in history.facts.items()},
    )


def _among(links: LinkLists, kept: NDArray[np.bool_], pages: NDArray[np.int64], many: int) -> LinkLists:
    """The lists of the rows that are kept, by the new numbers of pages; what leads elsewhere is left out."""
    number = np.full(many, -1, np.int32)
    number[pages] = np.arange(len(pages))
    target = number[links.target]
    before = np.concatenate(([0], np.cumsum(target >= 0)))
    return LinkLists(links.of_row[kept], before[links.start], target[target >= 0])
