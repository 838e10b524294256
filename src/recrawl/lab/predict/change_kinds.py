"""Two kinds of change that are not a matter of a page's own text: new out-links (spec C3), relevance (spec C4)."""

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

_LEAST_LIST = 1 << 40
"""Later than any day: of a list without links."""


def new_links(facts: Sequence[Facts], urls: Sequence[str], row: Ints) -> Ints:
    """Page by day: a number that grows where the page links to an address that nobody had linked to before (C3).

    `row` is the row in force of each page on each day, as a place in the files one after another, -1 for none. An
    address is known from the first day on which any page links to it, or on which it is seen itself.
    """
    before = np.cumsum([0, *(len(part.link_start) - 1 for part in facts[:-1])])
    list_of = np.concatenate([part.links + shift for part, shift in zip(facts, before, strict=True)]).astype(np.int64)
    keys = np.concatenate([part.link_key for part in facts])
    lengths = np.concatenate([np.diff(part.link_start) for part in facts])
    here = row >= 0
    lists = np.where(here, list_of[np.maximum(row, 0)], -1)
    day = np.broadcast_to(np.arange(row.shape[1]), row.shape)
    first_of_list = np.full(len(lengths), _LEAST_LIST, np.int64)
    np.minimum.at(first_of_list, lists[here], day[here])
    names, number = np.unique(keys, return_inverse=True)
    first_of_key = np.full(len(names), _LEAST_LIST, np.int64)
    np.minimum.at(first_of_key, number, np.repeat(first_of_list, lengths))
    _know_pages(first_of_key, names, urls, here)
    # A list used on a day has a link that is new then exactly if its newest link is.
    newest = np.full(len(lengths), -1, np.int64)
    np.maximum.at(newest, np.repeat(np.arange(len(lengths)), lengths), first_of_key[number])
    fresh = here & (newest[np.maximum(lists, 0)] == day) & (day > 0)
    return np.cumsum(fresh, axis=1)


def _know_pages(first: Ints, names: Ints, urls: Sequence[str], here: Flags) -> None:
    """A page that is seen is known from that day on."""
    if not len(names):
        return
    for url, there in zip(urls, here, strict=True):
        address = canonical(url)
        place = int(np.searchsorted(names, key(address))) if address else len(names)
        if place < len(names) and names[place] == key(address or "") and there.any():
            first[place] = min(first[place], int(there.argmax()))


def relevance(
    files: Sequence[Path], facts: Sequence[Facts], queries: Path, row: Ints, progress: Callable[[int, int], None]
) -> Ints:
    """One per row of the files: a number for the queries that its version answers (C4).

    Every version is put into a search index, and every query is asked there, as `recrawl search` would. A page enters
    or leaves a matching set where the number changes. Titles and addresses are not searched: they are not the content.
    """
    asked = [line.strip() for line in queries.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not asked:
        raise UsageError(f"{queries} holds no query: write one on each line")
    total = sum(map(len, facts))
    used = np.zeros(total, np.bool_)
    used[row[row >= 0]] = True
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder))
        documents = 0
        for file, start, part in zip(files, np.cumsum([0, *map(len, facts[:-1])]), facts, strict=True):
            wanted = used[start : start + len(part)]
            for place, words in zip(np.flatnonzero(wanted) + start, texts_of(file, wanted), strict=True):
                index.put(Document(int(place), "", "", "", words, 0.0, new=True))
                documents += 1
            progress(int(start) + len(part), total)
        index.close()
        answers = [_matching(index, query, documents, total) for query in asked]
    _, number = np.unique(np.packbits(np.array(answers), axis=0), axis=1, return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def _matching(index: Index, query: str, documents: int, total: int) -> Flags:
    """Which rows a query finds."""
    found = np.zeros(total, np.bool_)
    found[[hit.page for hit in index.search(query, limit=max(1, documents))]] = True
    return found
