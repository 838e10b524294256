"""Two kinds of change beyond a page's own text: new out-links (spec C3) and search relevance (spec C4)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from recrawl.columns import Flags, Ints
from recrawl.discover.urls import canonical, key
from recrawl.errors import UsageError
from recrawl.lab.formats.page_facts import Facts
from recrawl.lab.predict.word_counts import texts_of
from recrawl.record.index import Document, Index

_NEVER = 1 << 40
"""A day later than any, for lists without links."""


def new_links(facts: Sequence[Facts], urls: Sequence[str], row: Ints) -> Ints:
    """Page by day: a number that grows where the page links to a URL that no page had linked to before (C3).

    `row` is the current row of each page on each day, as an index into the concatenated files, -1 for none. A URL is
    known from the first day on which any page links to it or on which it is observed itself.
    """
    before = np.cumsum([0, *(len(part.link_start) - 1 for part in facts[:-1])])
    list_of = np.concatenate([part.links + shift for part, shift in zip(facts, before, strict=True)]).astype(np.int64)
    keys = np.concatenate([part.link_key for part in facts])
    lengths = np.concatenate([np.diff(part.link_start) for part in facts])
    observed = row >= 0
    lists = np.where(observed, list_of[np.maximum(row, 0)], -1)
    day = np.broadcast_to(np.arange(row.shape[1]), row.shape)
    first_of_list = np.full(len(lengths), _NEVER, np.int64)
    np.minimum.at(first_of_list, lists[observed], day[observed])
    names, number = np.unique(keys, return_inverse=True)
    first_of_key = np.full(len(names), _NEVER, np.int64)
    np.minimum.at(first_of_key, number, np.repeat(first_of_list, lengths))
    _mark_observed(first_of_key, names, urls, observed)
    # A list in use on a day has a link that is new that day exactly if its newest link is.
    newest = np.full(len(lengths), -1, np.int64)
    np.maximum.at(newest, np.repeat(np.arange(len(lengths)), lengths), first_of_key[number])
    fresh = observed & (newest[np.maximum(lists, 0)] == day) & (day > 0)
    return np.cumsum(fresh, axis=1)


def _mark_observed(first_day: Ints, keys: Ints, urls: Sequence[str], observed: Flags) -> None:
    """A page is known from the first day it is observed."""
    if not len(keys):
        return
    for url, page_observed in zip(urls, observed, strict=True):
        normalized = canonical(url)
        index = int(np.searchsorted(keys, key(normalized))) if normalized else len(keys)
        if index < len(keys) and keys[index] == key(normalized or "") and page_observed.any():
            first_day[index] = min(first_day[index], int(page_observed.argmax()))


def relevance(
    files: Sequence[Path], facts: Sequence[Facts], queries: Path, row: Ints, progress: Callable[[int, int], None]
) -> Ints:
    """One per row of the files: a number for the set of queries that its version matches (C4).

    Every version goes into a search index, which runs every query as `recrawl search` would. A page enters or leaves a
    result set where the number changes. Titles and URLs are not searched, since they are not content.
    """
    query_lines = [line.strip() for line in queries.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not query_lines:
        raise UsageError(f"{queries} holds no query; write one query per line")
    total = sum(map(len, facts))
    used = np.zeros(total, np.bool_)
    used[row[row >= 0]] = True
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder))
        documents = 0
        for file, start, part in zip(files, np.cumsum([0, *map(len, facts[:-1])]), facts, strict=True):
            used_here = used[start : start + len(part)]
            for number, words in zip(np.flatnonzero(used_here) + start, texts_of(file, used_here), strict=True):
                index.put(Document(int(number), "", "", "", words, 0.0, new=True))
                documents += 1
            progress(int(start) + len(part), total)
        index.close()
        answers = [_matching(index, query, documents, total) for query in query_lines]
    _, query_set = np.unique(np.packbits(np.array(answers), axis=0), axis=1, return_inverse=True)
    return query_set.reshape(-1).astype(np.int64)


def _matching(index: Index, query: str, documents: int, total: int) -> Flags:
    """The rows that match a query."""
    found = np.zeros(total, np.bool_)
    found[[hit.page for hit in index.search(query, limit=max(1, documents))]] = True
    return found
