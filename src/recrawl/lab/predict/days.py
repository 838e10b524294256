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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recrawl.book import LinkGraph
from recrawl.columns import DAY, Flags, Floats, Int32s, Ints
from recrawl.compare.terms import BUCKETS
from recrawl.errors import BadArchive, UsageError
from recrawl.extras import sparse
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.page_facts import Facts, facts_of, word_counts_of
from recrawl.lab.histories.history import History, LinkLists, VersionWords, assemble, step_level, steps_of
from recrawl.lab.histories.opening import SortedRows, history_of, sorted_rows
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


# --------------------------------------------------------------------------------------------------------------------
# The observed days of archives: Parquet files, read through the lab's cached facts (spec L1, C1 to C4, C7).
#
#
# Every level of change is a label (see `compare.levels`): text, significance (C2), new links (C3), relevance (C4) ...


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
    row to the last. Labels are the levels of change: `text` (spec C1), `significant` (C2), `divergence:X` (C7),
    `words:N`, `new-link` (C3), `relevance:FILE` with one query per line (C4) and so on. Where several versions lie
    between two observations, any step between them counts, but for `text`.
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
    if label != "text":
        try:
            step_level(label)
        except UsageError as error:
            raise UsageError(str(error).replace("invalid change", "invalid label").replace(", raw", "")) from error


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
    version = _joined(facts, "text")
    if label != "text":
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


# --------------------------------------------------------------------------------------------------------------------
# Generated days whose relations are known: which experts selection must find, and which it must not.
#
# Pages come in groups of one kind, each group with its own words:
#
#     copies      some pages change together at random; the others show the same words `lag` days later
#     common      all follow one hidden cause that is on or off for some days; while it is on they change often
#     none        every page changes at random on its own
#
# `noise` is the daily probability of an unrelated change. Members of every group link to their leader, so links show
# which pages belong together, but not whether that helps prediction.


KINDS = ("copies", "common", "none")
_TOPIC = 30
_OWN = 15
_MOVED = 8
"""Topic words whose counts a change redraws."""
_START = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Planted:
    """Parameters of a generated world."""

    groups: int = 12
    size: int = 6
    leaders: int = 1
    """How many pages of a group of copies lead the others."""
    days: int = 120
    lag: int = 1
    noise: float = 0.05
    rate: float = 0.5
    weekend: float = 1.0
    """Share of the changes of Saturdays and Sundays that take place; below 1 there is a weekly rhythm."""
    seed: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class PlantedWorld:
    """Generated days, and their true relations."""

    days: Days
    kind: Ints
    """One per page: the index of its kind in `KINDS`."""
    leader: Ints
    """One per page: the first page of its group."""


def planted(plan: Planted = Planted()) -> PlantedWorld:
    """Generate a world.

    >>> world = planted(Planted(groups=3, size=3, days=40, noise=0.0, lag=2))
    >>> copy, leader = world.days.changed[1], world.days.changed[0]
    >>> bool((copy[3:] == leader[1:-2]).all()), world.leader.tolist()
    (True, [0, 0, 0, 3, 3, 3, 6, 6, 6])
    """
    rng = np.random.default_rng(plan.seed)
    pages = plan.groups * plan.size
    group = np.repeat(np.arange(plan.groups), plan.size)
    topics = np.zeros((pages, plan.days, _TOPIC), np.int64)
    for number in range(plan.groups):
        members = slice(number * plan.size, (number + 1) * plan.size)
        topics[members] = _group(plan, KINDS[number % len(KINDS)], rng)
    text, bags = _texts(topics, group, rng)
    starts = np.arange(pages + 1)
    leader = group * plan.size
    days = observed(
        [f"https://group{g}.example/{n}" for n, g in enumerate(group.tolist())],
        _START + int(DAY) * np.arange(plan.days),
        text.astype(np.int64),
        np.ones((pages, plan.days), np.bool_),
        label="planted",
        text=text,
        bags=bags,
        lists=np.broadcast_to(np.arange(pages, dtype=np.int32)[:, None], text.shape).copy(),
        links=LinkLists(np.zeros(0, np.int32), starts, leader.astype(np.int32)),
    )
    return PlantedWorld(days, group % len(KINDS), leader)


def _group(plan: Planted, kind: str, rng: np.random.Generator) -> Ints:
    """Page by day by word: counts of the topic's words."""
    if kind == "copies":
        # Days before the first are generated too, so that copies have something to show.
        leader = _walk(_draws(plan, plan.days + plan.lag, rng) < plan.rate, rng)
        series = [leader[plan.lag :]] * plan.leaders + [leader[: plan.days]] * (plan.size - plan.leaders)
    elif kind == "common":
        cause = _switch(plan.days, rng)
        news = _walk(np.ones(plan.days, np.bool_), rng)
        series = [_showing(news, _draws(plan, plan.days, rng) < np.where(cause, 0.9, 0.1)) for _ in range(plan.size)]
    else:
        series = [_walk(_draws(plan, plan.days, rng) < plan.rate, rng) for _ in range(plan.size)]
    return np.array([_noisy(page, plan.noise, rng) for page in series])


def _draws(plan: Planted, days: int, rng: np.random.Generator) -> Floats:
    """A random number per day; a day changes where it is below the rate. Fewer are low at weekends."""
    drawn = rng.random(days)
    weekday = (_START // int(DAY) + np.arange(days) + 3) % 7  # 1 January 1970 was a Thursday
    return np.where(weekday >= 5, drawn / max(plan.weekend, 1e-9), drawn)


def _walk(changes: Flags, rng: np.random.Generator) -> Ints:
    """Day by word: counts, some of which are redrawn on every change."""
    counts = np.empty((len(changes), _TOPIC), np.int64)
    now = rng.integers(0, 6, _TOPIC)
    for day, change in enumerate(changes.tolist()):
        if change:
            now = now.copy()
            words = rng.choice(_TOPIC, _MOVED, replace=False)
            now[words] = (now[words] + rng.integers(1, 6, _MOVED)) % 6
        counts[day] = now
    return counts


def _switch(days: int, rng: np.random.Generator, stays: float = 0.8) -> Flags:
    """On or off, each for some days."""
    turns = rng.random(days) > stays
    active: Flags = np.cumsum(turns) % 2 == 1
    return active


def _showing(news: Ints, changes: Flags) -> Ints:
    """A page that shows the news of the day on which it last changed."""
    last = np.maximum.accumulate(np.where(changes, np.arange(len(changes)), 0))
    return news[last]


def _noisy(counts: Ints, noise: float, rng: np.random.Generator) -> Ints:
    """The page with unrelated changes: one more word on that day."""
    counts = counts.copy()
    active = rng.random(len(counts)) < noise
    counts[active, rng.integers(_TOPIC, size=int(active.sum()))] += 1
    return counts


def _texts(topics: Ints, group: Ints, rng: np.random.Generator) -> tuple[Int32s, sparse.csr_array]:
    """Page by day: its text; and the texts: the topic's words, and words of the page that never change."""
    pages, days, _ = topics.shape
    new = np.ones((pages, days), np.bool_)
    new[:, 1:] = (topics[:, 1:] != topics[:, :-1]).any(axis=2)
    text = (np.cumsum(new) - 1).reshape(pages, days).astype(np.int32)
    own = rng.integers(1, 4, (pages, _OWN))
    page, day = np.nonzero(new)
    counts = np.concatenate((topics[page, day], own[page]), axis=1)
    topic_words = group[page][:, None] * _TOPIC + np.arange(_TOPIC)
    own_words = (group.max() + 1) * _TOPIC + page[:, None] * _OWN + np.arange(_OWN)
    words = np.concatenate((topic_words, own_words), axis=1)
    row = np.repeat(np.arange(len(page)), counts.shape[1])
    positive = counts.ravel() > 0
    matrix = sparse.csr_array(
        (counts.ravel()[positive].astype(np.uint16), (row[positive], words.ravel()[positive])),
        shape=(len(page), BUCKETS),
    )
    matrix.sort_indices()
    return text, matrix
