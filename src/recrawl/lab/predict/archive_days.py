"""The observed days of archives: Parquet files, read through the lab's cached facts (spec L1, C1 to C4, C7).

days = days_of([Path("teletext-2024.parquet")], "text", cache=folder)

Beyond changes of a page's own text there are two kinds of change: new out-links (C3) and search relevance (C4).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from recrawl.columns import DAY, Flags, Ints
from recrawl.discover.urls import canonical, key
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.page_facts import Facts, facts_of
from recrawl.lab.formats.word_counts import texts_of, word_counts_of
from recrawl.lab.histories.change_steps import step_level, steps_of
from recrawl.lab.histories.opening import SortedRows, history_of, sorted_rows
from recrawl.lab.predict.days import UNSEEN, Days, observed
from recrawl.record.index import Document, Index

Progress = Callable[[int, int], None]


def read_days(
    paths: Sequence[Path],
    label: str = "text",
    times: Ints | None = None,
    *,
    cache: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Days:
    """The days of archives: Parquet files, or folders of them.

    Pages are observed at `times`; else at the times in NAME.times beside NAME.parquet; else once a day from the first
    row to the last. Labels: `text` (spec C1), `significant` (C2), `divergence:X` (C7), `words:N`, `new-link` (C3),
    `relevance:FILE` with one query per line (C4). Where several versions lie between two observations, any step between
    them counts for `significant`, `divergence` and `words`.
    """
    check_label(label)
    files = [file for path in paths for file in files_of(path)]
    facts = facts_of(files, cache, progress)
    rows = sorted_rows(facts)
    grid, visited = _grid(files, facts, rows, times)
    sorted_row = _rows_at(facts, rows, grid)
    removed = _joined(facts, "raw")[rows.place] == 0
    seen = (sorted_row >= 0) & visited & ~removed[np.maximum(sorted_row, 0)]
    row = np.where(seen, rows.place[np.maximum(sorted_row, 0)], UNSEEN)
    bags, bag_of = word_counts_of(files, facts, cache, progress)

    def on_day(values: Ints, default: int) -> Ints:
        return np.where(seen, values[np.maximum(row, 0)], default).astype(np.int64)

    links = history_of(facts).links
    assert links is not None
    # The history's rows are in the order of `rows`, so its link lists are indexed by sorted row.
    lists = np.where(seen, links.of_row[np.maximum(sorted_row, 0)], UNSEEN).astype(np.int32)
    return observed(
        rows.urls,
        grid,
        np.where(seen, _versions(files, facts, rows, row, label, cache, progress), UNSEEN).astype(np.int64),
        seen,
        label=label,
        text=on_day(bag_of, UNSEEN).astype(np.int32),
        bags=bags,
        words=on_day(_joined(facts, "words"), 0).astype(np.int32),
        size=on_day(_joined(facts, "size"), 0),
        lists=lists,
        links=links,
    )


def check_label(label: str) -> None:
    """Raise UsageError for an invalid label, before anything is read."""
    kind, _, name = label.partition(":")
    if kind == "relevance":
        if not Path(name).is_file():
            raise UsageError(f"no file '{name}'; relevance:FILE needs a file with one query per line")
    elif label not in ("text", "significant", "new-link"):
        try:
            step_level(label)
        except UsageError as error:
            labels = "text, divergence:X, words:N, significant, new-link or relevance:FILE"
            raise UsageError(f"invalid label '{label}'; use {labels}") from error


def _versions(
    files: list[Path],
    facts: list[Facts],
    rows: SortedRows,
    row: Ints,
    label: str,
    cache: Path | None,
    progress: Progress,
) -> Ints:
    """Page by day: the version under the label; any number where `row` is `UNSEEN`."""
    if label == "new-link":
        return new_links(facts, rows.urls, row)
    version = _joined(facts, "text")
    if label.startswith("relevance:"):
        version = relevance(files, facts, Path(label.partition(":")[2]), row, progress)
    elif label != "text":
        steps = np.concatenate(steps_of(files, facts, label, cache, progress))[rows.place]
        version = np.empty(len(version), np.int64)
        version[rows.place] = np.cumsum(steps | (np.diff(rows.page, prepend=-1) != 0))
    return version[np.maximum(row, 0)]


def _joined(facts: Sequence[Facts], name: str) -> Ints:
    column: Ints = np.concatenate([getattr(part, name) for part in facts]).astype(np.int64)
    return column


def _rows_at(facts: Sequence[Facts], rows: SortedRows, grid: Ints) -> Ints:
    """Page by day: the index among the sorted rows of the current row, -1 before the first."""
    time = _joined(facts, "time")[rows.place]
    begin = min(int(time.min()), int(grid.min()))
    span = max(int(time.max()), int(grid.max())) - begin + 1
    keys = rows.page * span + (time - begin)
    sought = np.arange(len(rows.urls))[:, None] * span + (grid - begin)
    sorted_row = np.searchsorted(keys, sought, side="right") - 1
    found = (sorted_row >= 0) & (rows.page[np.maximum(sorted_row, 0)] == np.arange(len(rows.urls))[:, None])
    return np.where(found, sorted_row, -1)


def _grid(files: list[Path], facts: list[Facts], rows: SortedRows, times: Ints | None) -> tuple[Ints, Flags]:
    """All times of observation, and which pages were observed at each."""
    if times is not None:
        return times, np.ones((len(rows.urls), len(times)), np.bool_)
    by_file = [_observation_times(file, part) for file, part in zip(files, facts, strict=True)]
    grid = np.unique(np.concatenate(by_file))
    file_of_row = np.repeat(np.arange(len(files)), [len(part) for part in facts])[rows.place]
    file_of_page = file_of_row[np.flatnonzero(np.diff(rows.page, prepend=-1))]
    visited = np.array([np.isin(grid, times_of_file) for times_of_file in by_file])
    return grid, visited[file_of_page]


def _observation_times(file: Path, facts: Facts) -> Ints:
    """When the pages of one file were observed."""
    times_file = file.with_suffix(".times")
    if times_file.is_file():
        try:
            found = np.unique(np.array(times_file.read_text(encoding="utf-8").split(), np.int64))
        except (ValueError, UnicodeDecodeError) as error:
            raise BadArchive(f"{times_file} must hold one time per line, in seconds since 1970") from error
        if len(found):
            return found
    if not len(facts):
        return np.zeros(0, np.int64)
    return np.arange(facts.time.min(), facts.time.max() + 1, int(DAY), dtype=np.int64)


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
