"""Parts of a history: a later start, so that a policy tuned on the first part can be tested on the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.book import Clusters
from recrawl.columns import DAY, Flags, Ints
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, History, LinkLists


def without_start(history: History, seconds: float) -> History:
    """Cut `seconds` off each site's start; omit pages that are gone by then for good."""
    owner = history.page_of
    past = history.time <= seconds
    superseded = past & np.append((owner[1:] == owner[:-1]) & past[1:], False)  # superseded before the new start
    there = ~superseded & (history.version != ABSENT)
    kept = ~superseded & ~(past & ~there) & np.isin(owner, owner[there])
    if not there.any() or seconds >= history.span:
        raise UsageError(f"cannot skip {seconds / DAY:.3g} days: the archives last {history.span / DAY:.3g} days")
    rest = select_rows(history, kept)
    return replace(rest, time=np.maximum(rest.time - seconds, 0.0), begins=history.begins + seconds)


def select_rows(history: History, kept: Flags) -> History:
    """Return a history of the kept rows, without the pages that have none; sites keep their numbers."""
    rows = np.bincount(history.page_of[kept], minlength=len(history))
    pages = np.flatnonzero(rows)
    return replace(
        history,
        urls=[history.urls[page] for page in pages.tolist()],
        site=history.site[pages],
        folder=history.folder[pages],
        form=history.form[pages],
        first=np.concatenate(([0], np.cumsum(rows[pages]))),
        time=history.time[kept],
        version=history.version[kept],
        size=history.size[kept],
        links=_renumbered(history.links, kept, pages, len(history)) if history.links else None,
        clusters=Clusters(history.clusters.of[pages], history.clusters.nearest) if history.clusters else None,
        weight=None if history.weight is None else history.weight[pages],
        facts={name: column[pages] for name, column in history.facts.items()},
    )


def _renumbered(links: LinkLists, kept: Flags, pages: Ints, total: int) -> LinkLists:
    """Return the lists of the kept rows with the new page numbers, without links to other pages."""
    number = np.full(total, -1, np.int32)
    number[pages] = np.arange(len(pages))
    target = number[links.target]
    before = np.concatenate(([0], np.cumsum(target >= 0)))
    return LinkLists(links.of_row[kept], before[links.start], target[target >= 0])
