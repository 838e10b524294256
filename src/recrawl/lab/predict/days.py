"""Pages observed on a row of days, as columns: what predictors learn from and are judged on (spec L1, L6).

    days = days_of([Path("teletext-2024.parquet")], "text", cache=folder)
    days.changed[page, day]         # the label: it differs from the observation before
    days.counts(day)                # page by word: how often each word stands in that day's version
    days.visited(mask)              # the same world as somebody saw it who was there only then

Axis 0 is pages and axis 1 is days everywhere. An observation that was not made has no label and no features. Texts are
kept once for each version, not for each day: a page that does not change costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from recrawl.book import LinkGraph
from recrawl.columns import DAY, Flags, Floats, Int32s, Ints
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.page_facts import Facts, facts_of
from recrawl.lab.histories.change_steps import least, steps_of
from recrawl.lab.histories.history import LinkLists
from recrawl.lab.histories.opening import HistoryRows, history_of, sorted_rows
from recrawl.lab.predict.change_kinds import new_links, relevance
from recrawl.lab.predict.word_counts import bags_of
from recrawl.learn.experts.features import row_sums
from recrawl.learn.structure.directories import places

UNSEEN = -1
"""The version, text and list of a page that was not observed."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Days:
    """What was seen of every page on every day. Made by `days_of`, or by `observed` from columns."""

    urls: list[str]
    sites: list[str]
    site: Int32s
    """One per page."""
    times: Ints
    """One per day: when pages were looked at, seconds since 1970, UTC."""
    seen: Flags
    """Page by day: it was there and was observed."""
    version: Ints
    """Page by day: equal numbers mean no change under the label; `UNSEEN` where it was not observed."""
    changed: Flags
    """Page by day: the label, that it differs from the observation before. False where `labelled` is."""
    labelled: Flags
    """Page by day: it is observed, and was before."""
    label: str
    words: Int32s
    """Page by day: how many words it has."""
    size: Ints
    """Page by day: bytes."""
    text: Int32s
    """Page by day: the row of `bags`; `UNSEEN` where it was not observed."""
    bags: sparse.csr_array
    """Text by word, hashed to `terms.BUCKETS` columns: how often it stands there."""
    lists: Int32s | None = None
    """Page by day: its list in `links`."""
    links: LinkLists | None = None
    """Lists of links, as page numbers; `of_row` is not used here."""
    kept: Ints | None = None
    """One per page: its number in `links`, where pages were taken out since."""

    def __len__(self) -> int:
        """How many pages there are."""
        return len(self.site)

    def counts(self, day: int) -> sparse.csr_array:
        """Page by word: the counts of that day's versions; no words where a page was not observed."""
        return bag_rows(self.bags, self.text[:, day])

    def links_on(self, day: int) -> LinkGraph:
        """The links among these pages on a day; of a page that was not observed, none."""
        if self.links is None or self.lists is None:
            return LinkGraph(np.zeros(len(self) + 1, np.int64), np.zeros(0, np.int32))
        found = self.links.at(self.lists[:, day])
        if self.kept is None:
            return found
        number = np.full(int(max(self.kept.max(initial=-1), found.target.max(initial=-1))) + 1, -1, np.int32)
        number[self.kept] = np.arange(len(self))
        target = number[found.target]
        ends = np.concatenate(([0], np.cumsum(target >= 0)))
        return LinkGraph(ends[found.start], target[target >= 0])

    def take(self, pages: Ints) -> Days:
        """Some of the pages."""
        per_page = ("seen", "version", "changed", "labelled", "words", "size", "text")
        columns = {name: getattr(self, name)[pages] for name in per_page}
        names, site = np.unique(self.site[pages], return_inverse=True)
        return replace(
            self,
            urls=[self.urls[page] for page in pages.tolist()],
            sites=[self.sites[number] for number in names.tolist()],
            site=site.astype(np.int32),
            lists=None if self.lists is None else self.lists[pages],
            kept=np.arange(len(self))[pages] if self.kept is None else self.kept[pages],
            **columns,
        )

    def between(self, start: int, stop: int) -> Days:
        """The days from `start` up to `stop`; what was before is forgotten, but labels are kept as they are."""
        part = slice(start, stop)
        columns = {
            name: getattr(self, name)[:, part]
            for name in ("seen", "version", "changed", "labelled", "words", "size", "text")
        }
        lists = None if self.lists is None else self.lists[:, part]
        return replace(self, times=self.times[part], lists=lists, **columns)

    def visited(self, where: Flags) -> Days:
        """What is known to somebody who looked only there: the label compares with the last visit (spec L1)."""
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
        """One per page: the share of its labelled days that have a change; not a number where it has none."""
        known = self.labelled.sum(axis=1)
        changes = self.changed.sum(axis=1)
        share: Floats = np.divide(changes, known, out=np.full(len(self), np.nan), where=known > 0)
        return share


def labels(version: Ints, seen: Flags) -> tuple[Flags, Flags]:
    """Whether each observation differs from the one before on the same page, and where there is one before.

    >>> changed, known = labels(np.array([[1, 1, -1, 2, 2]]), np.array([[True, True, False, True, True]]))
    >>> changed.astype(int).tolist(), known.astype(int).tolist()
    ([[0, 0, 0, 1, 0]], [[0, 1, 0, 1, 1]])
    """
    changed = np.zeros(seen.shape, np.bool_)
    known = np.zeros(seen.shape, np.bool_)
    last = np.full(len(seen), UNSEEN, np.int64)
    before = np.zeros(len(seen), np.bool_)
    for day in range(seen.shape[1]):
        here = seen[:, day]
        known[:, day] = here & before
        changed[:, day] = known[:, day] & (version[:, day] != last)
        last = np.where(here, version[:, day], last)
        before |= here
    return changed, known


def bag_rows(bags: sparse.csr_array, rows: Int32s) -> sparse.csr_array:
    """Rows of a matrix as fractions; an empty one for `UNSEEN`."""
    safe = np.maximum(rows, 0)
    lengths = np.where(rows >= 0, bags.indptr[safe + 1] - bags.indptr[safe], 0).astype(np.int64)
    start = np.concatenate(([0], np.cumsum(lengths)))
    place = np.repeat(bags.indptr[safe].astype(np.int64) - start[:-1], lengths) + np.arange(start[-1])
    data = bags.data[place].astype(np.float32)
    return sparse.csr_array((data, bags.indices[place], start), shape=(len(rows), bags.shape[1]))


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


def days_of(
    paths: Sequence[Path],
    label: str = "text",
    times: Ints | None = None,
    *,
    cache: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Days:
    """The days of archives: Parquet files, or folders of them.

    Pages are looked at at `times`; else at those of the file NAME.times beside NAME.parquet; else once a day from the
    first row to the last. Labels: `text` (spec C1), `significant` (C2), `divergence:X` (C7), `new-link` (C3),
    `relevance:FILE` with a query a line (C4). Where several versions lie between two observations, a step between
    any of them counts for `significant` and `divergence`.
    """
    checked(label)
    files = [file for path in paths for file in files_of(path)]
    facts = facts_of(files, cache, progress)
    rows = sorted_rows(facts)
    grid, looked = _grid(files, facts, rows, times)
    place = _rows_at(facts, rows, grid)
    gone = _column(facts, "raw")[rows.place] == 0
    seen = (place >= 0) & looked & ~gone[np.maximum(place, 0)]
    row = np.where(seen, rows.place[np.maximum(place, 0)], UNSEEN)
    bags, bag_of = bags_of(files, facts, cache, progress)

    def at(values: Ints, otherwise: int) -> Ints:
        return np.where(seen, values[np.maximum(row, 0)], otherwise).astype(np.int64)

    links = history_of(facts).links
    assert links is not None
    # The history's rows are sorted as `rows` are, so its lists belong to places among them.
    lists = np.where(seen, links.of_row[np.maximum(place, 0)], UNSEEN).astype(np.int32)
    return observed(
        rows.urls,
        grid,
        at(_versions(files, facts, rows, row, label, cache, progress), UNSEEN)
        if label != "new-link"
        else np.where(seen, new_links(facts, rows.urls, row), UNSEEN),
        seen,
        label=label,
        text=at(bag_of, UNSEEN).astype(np.int32),
        bags=bags,
        words=at(_column(facts, "words"), 0).astype(np.int32),
        size=at(_column(facts, "size"), 0),
        lists=lists,
        links=links,
    )


def checked(label: str) -> None:
    """Refuse a label that is none, before anything is read."""
    kind, _, name = label.partition(":")
    if kind == "relevance":
        if not Path(name).is_file():
            raise UsageError(f"relevance:FILE needs a file with a query on each line; there is no '{name}'")
    elif label not in ("text", "significant", "new-link"):
        try:
            least(label)
        except UsageError as error:
            known = "text, divergence:X, significant, new-link and relevance:FILE"
            raise UsageError(f"'{label}' is no label: there are {known}") from error


def _versions(
    files: list[Path],
    facts: list[Facts],
    rows: HistoryRows,
    row: Ints,
    label: str,
    cache: Path | None,
    progress: Progress,
) -> Ints:
    """One per row of the files: its version under the label."""
    if label == "text":
        return _column(facts, "text")
    if label.startswith("relevance:"):
        return relevance(files, facts, Path(label.partition(":")[2]), row, progress)
    steps = np.concatenate(steps_of(files, facts, label, cache, progress))[rows.place]
    version = np.empty(len(_column(facts, "text")), np.int64)
    version[rows.place] = np.cumsum(steps | (np.diff(rows.page, prepend=-1) != 0))
    return version


def _column(facts: Sequence[Facts], name: str) -> Ints:
    column: Ints = np.concatenate([getattr(part, name) for part in facts]).astype(np.int64)
    return column


def _rows_at(facts: Sequence[Facts], rows: HistoryRows, grid: Ints) -> Ints:
    """Page by day: the place among the sorted rows of the row in force, -1 before the first."""
    time = _column(facts, "time")[rows.place]
    begin = min(int(time.min()), int(grid.min()))
    span = max(int(time.max()), int(grid.max())) - begin + 1
    keys = rows.page * span + (time - begin)
    wanted = np.arange(len(rows.urls))[:, None] * span + (grid - begin)
    place = np.searchsorted(keys, wanted, side="right") - 1
    found = (place >= 0) & (rows.page[np.maximum(place, 0)] == np.arange(len(rows.urls))[:, None])
    return np.where(found, place, -1)


def _grid(files: list[Path], facts: list[Facts], rows: HistoryRows, times: Ints | None) -> tuple[Ints, Flags]:
    """All times of observation, and which pages were looked at at which."""
    if times is not None:
        return times, np.ones((len(rows.urls), len(times)), np.bool_)
    own = [_times(file, part) for file, part in zip(files, facts, strict=True)]
    grid = np.unique(np.concatenate(own))
    file_of_row = np.repeat(np.arange(len(files)), [len(part) for part in facts])[rows.place]
    file_of_page = file_of_row[np.flatnonzero(np.diff(rows.page, prepend=-1))]
    looked = np.array([np.isin(grid, mine) for mine in own])
    return grid, looked[file_of_page]


def _times(file: Path, facts: Facts) -> Ints:
    """When the pages of one file were looked at."""
    beside = file.with_suffix(".times")
    if beside.is_file():
        try:
            found = np.unique(np.array(beside.read_text(encoding="utf-8").split(), np.int64))
        except (ValueError, UnicodeDecodeError) as error:
            raise BadArchive(f"{beside} must hold a time a line, in seconds since 1970") from error
        if len(found):
            return found
    if not len(facts):
        return np.zeros(0, np.int64)
    return np.arange(facts.time.min(), facts.time.max() + 1, int(DAY), dtype=np.int64)
