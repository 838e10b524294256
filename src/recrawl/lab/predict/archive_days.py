"""The observed days of archives: Parquet files, read through the lab's cached facts (spec L1, C1 to C4, C7).

days = days_of([Path("teletext-2024.parquet")], "text", cache=folder)

Every level of change is a label (see `compare.levels`): text, significance (C2), new links (C3), relevance (C4) ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from recrawl.columns import DAY, Flags, Ints
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.page_facts import Facts, facts_of
from recrawl.lab.formats.word_counts import word_counts_of
from recrawl.lab.histories.change_steps import step_level, steps_of
from recrawl.lab.histories.opening import SortedRows, history_of, sorted_rows
from recrawl.lab.predict.days import UNSEEN, Days, observed

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
