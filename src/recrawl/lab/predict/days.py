"""Pages observed on consecutive days, as columns: what predictors learn from and are evaluated on (spec L1, L6).

    days = read_days([Path("teletext-2024.parquet")], "text", cache=folder)   # of archive_days
    days.changed[page, day]         # the label: it differs from the observation before
    days.counts(day)                # page by word: the word counts of that day's versions
    days.visited(mask)              # the same history as known from only these observations
    as_history(days)                # a history that a policy can crawl

Axis 0 is pages and axis 1 is days everywhere. An observation that was not made has no label and no features. Texts are
stored once per version, not per day, so a page that does not change costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl.book import LinkGraph
from recrawl.columns import DAY, Flags, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.lab.histories.history import History, LinkLists, VersionWords, assemble
from recrawl.learn.experts.features import row_sums, rows_of_counts
from recrawl.learn.experts.word_dynamics import carry_forward
from recrawl.learn.structure.directories import places

UNSEEN = -1
"""The version, text and link list of a page that was not observed."""

_BY_PAGE_AND_DAY = ("seen", "version", "changed", "labelled", "words", "size", "text")
"""Fields of `Days` that are never None."""


@dataclass(frozen=True, eq=False)
class Days:
    """All observations of all pages on all days. Made by `archive_days.read_days`, or by `observed` from columns."""

    urls: list[str]
    sites: list[str]
    site: Int32s
    """One per page: its index in `sites`."""
    times: Ints
    """One per day: when pages were observed, in seconds since 1970, UTC."""
    seen: Flags
    """Page by day: it existed and was observed."""
    version: Ints
    """Page by day: equal numbers mean no change under the label; `UNSEEN` where not observed."""
    changed: Flags
    """Page by day: the label, whether it differs from the observation before. False where `labelled` is False."""
    labelled: Flags
    """Page by day: it is observed, and was observed before."""
    label: str
    words: Int32s
    """Page by day: the number of words."""
    size: Ints
    """Page by day: bytes."""
    text: Int32s
    """Page by day: the row of `bags`; `UNSEEN` where not observed."""
    bags: sparse.csr_array
    """Text by word, hashed to `terms.BUCKETS` columns: counts."""
    lists: Int32s | None = None
    """Page by day: its list in `links`."""
    links: LinkLists | None = None
    """Lists of links, as page numbers; `of_row` is unused here."""
    link_number: Ints | None = None
    """One per page: its number in `links`, where pages were left out since."""

    def __len__(self) -> int:
        """The number of pages."""
        return len(self.site)

    def counts(self, day: int) -> sparse.csr_array:
        """Page by word: the counts of that day's versions; empty where a page was not observed."""
        return rows_of_counts(self.bags, self.text[:, day])

    def links_on(self, day: int) -> LinkGraph:
        """The links among these pages on a day; none for a page that was not observed."""
        if self.links is None or self.lists is None:
            return LinkGraph(np.zeros(len(self) + 1, np.int64), np.zeros(0, np.int32))
        graph = self.links.at(self.lists[:, day])
        if self.link_number is None:
            return graph
        number = np.full(int(max(self.link_number.max(initial=-1), graph.target.max(initial=-1))) + 1, -1, np.int32)
        number[self.link_number] = np.arange(len(self))
        target = number[graph.target]
        ends = np.concatenate(([0], np.cumsum(target >= 0)))
        return LinkGraph(ends[graph.start], target[target >= 0])

    def take(self, pages: Ints) -> Days:
        """A subset of the pages."""
        columns = {name: getattr(self, name)[pages] for name in _BY_PAGE_AND_DAY}
        names, site = np.unique(self.site[pages], return_inverse=True)
        return replace(
            self,
            urls=[self.urls[page] for page in pages.tolist()],
            sites=[self.sites[number] for number in names.tolist()],
            site=site.astype(np.int32),
            lists=None if self.lists is None else self.lists[pages],
            link_number=np.arange(len(self))[pages] if self.link_number is None else self.link_number[pages],
            **columns,
        )

    def between(self, start: int, stop: int) -> Days:
        """The days from `start` up to `stop`; earlier days are dropped, but labels stay as they are."""
        span = slice(start, stop)
        columns = {name: getattr(self, name)[:, span] for name in _BY_PAGE_AND_DAY}
        lists = None if self.lists is None else self.lists[:, span]
        return replace(self, times=self.times[span], lists=lists, **columns)

    def visited(self, where: Flags) -> Days:
        """The history as known from these observations only: the label compares with the last visit (spec L1)."""
        seen = self.seen & where
        version = np.where(seen, self.version, UNSEEN)
        changed, labelled = labels(version, seen)
        return replace(
            self,
            seen=seen,
            version=version,
            changed=changed,
            labelled=labelled,
            words=np.where(seen, self.words, 0).astype(np.int32),
            size=np.where(seen, self.size, 0),
            text=np.where(seen, self.text, UNSEEN).astype(np.int32),
            lists=None if self.lists is None else np.where(seen, self.lists, UNSEEN).astype(np.int32),
        )

    def rate(self) -> Floats:
        """One per page: the share of its labelled days with a change; NaN where it has none."""
        comparable = self.labelled.sum(axis=1)
        changes = self.changed.sum(axis=1)
        share: Floats = np.divide(changes, comparable, out=np.full(len(self), np.nan), where=comparable > 0)
        return share


def labels(version: Ints, seen: Flags) -> tuple[Flags, Flags]:
    """Whether each observation differs from the page's one before, and where there is one before.

    >>> changed, comparable = labels(np.array([[1, 1, -1, 2, 2]]), np.array([[True, True, False, True, True]]))
    >>> changed.astype(int).tolist(), comparable.astype(int).tolist()
    ([[0, 0, 0, 1, 0]], [[0, 1, 0, 1, 1]])
    """
    changed = np.zeros(seen.shape, np.bool_)
    comparable = np.zeros(seen.shape, np.bool_)
    previous = np.full(len(seen), UNSEEN, np.int64)
    seen_before = np.zeros(len(seen), np.bool_)
    for day in range(seen.shape[1]):
        observed_now = seen[:, day]
        comparable[:, day] = observed_now & seen_before
        changed[:, day] = comparable[:, day] & (version[:, day] != previous)
        previous = np.where(observed_now, version[:, day], previous)
        seen_before |= observed_now
    return changed, comparable


def observed(
    urls: Sequence[str],
    times: Ints,
    version: Ints,
    seen: Flags,
    *,
    label: str,
    text: Int32s,
    bags: sparse.csr_array,
    words: Int32s | None = None,
    size: Ints | None = None,
    lists: Int32s | None = None,
    links: LinkLists | None = None,
) -> Days:
    """Days from columns; labels follow from versions.

    >>> seen = np.ones((1, 3), bool)
    >>> days = observed(["http://a.example/"], np.arange(3), np.array([[5, 5, 6]]), seen, label="text",
    ...     text=np.array([[0, 0, 1]], np.int32), bags=sparse.csr_array(np.eye(2)))
    >>> days.changed.tolist(), days.counts(2).toarray().tolist(), days.visited(np.array([[1, 0, 1]]) > 0).rate()
    ([[False, False, True]], [[0.0, 1.0]], array([1.]))
    """
    sites, site, _, _ = places(urls)
    changed, labelled = labels(version, seen)
    if words is None:
        words = np.where(text >= 0, row_sums(bags)[np.maximum(text, 0)], 0).astype(np.int32)
    return Days(
        urls=list(urls),
        sites=sites,
        site=site,
        times=times,
        seen=seen,
        version=version,
        changed=changed,
        labelled=labelled,
        label=label,
        words=words.astype(np.int32),
        size=words.astype(np.int64) if size is None else size,
        text=text,
        bags=bags,
        lists=lists,
        links=links,
    )


def as_history(days: Days) -> History:
    """One row where a page's version or text differs from the day before; a page not observed stays as it was.

    Day 0 is the start of the history: the repository holds the pages that were observed on it.
    """
    text = carry_forward(days.text)
    numbers = np.unique(days.version, return_inverse=True)[1].reshape(days.version.shape)  # versions may be digests
    version = carry_forward(np.where(days.seen, numbers, -1).astype(np.int32))
    known = text >= 0
    before = np.concatenate((np.full((len(days), 1), -1), version[:, :-1]), axis=1)
    text_before = np.concatenate((np.full((len(days), 1), -1), text[:, :-1]), axis=1)
    page, day = np.nonzero(known & ((version != before) | (text != text_before)))
    number = np.flatnonzero(known.any(axis=1))
    history = assemble(
        [days.urls[row] for row in number.tolist()],
        np.searchsorted(number, page),
        np.asarray(day * DAY, np.float64),
        version[page, day].astype(np.int64),
        change=days.label,
        carries=frozenset({"text", "words"}),
    )
    return replace(history, words=VersionWords(text[page, day].astype(np.int32), days.bags))
