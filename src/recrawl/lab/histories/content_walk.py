"""Changes of content in an archive (see `compare.content`), judged by what the archive held at the time of each change.

The walk goes through the rows in the order of time and keeps, for each site, the census of its pages' lines: a change
is judged as a crawler would judge it that has just seen the whole site, and never by what comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from recrawl.columns import Flags, Ints
from recrawl.compare.content.census import Census, CensusEvidence
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import ContentChange, content_words, judge
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.errors import Unreadable
from recrawl.extras import pq
from recrawl.lab.formats.archive import Archive

Lines = list[Line]


class ContentWalk:
    """The pages of an archive as they were at a time that only moves forward, with the census of each site."""

    def __init__(self, archive: Archive, same_text: Callable[[int, int], bool] = lambda _old, _new: False) -> None:
        """`same_text` tells whether two rows have the same text, so that the second need not be parsed."""
        self._archive = archive
        self._same_text = same_text
        self._row = np.full(len(archive), -1, np.int64)
        self._lines: dict[int, Lines] = {}
        self._census = [Census() for _ in archive.sites]

    def steps(self) -> Iterator[tuple[int, ContentChange | None]]:
        """All rows in the order of time, each with the change it makes; None for births, removals and returns."""
        page_of = self._archive.page_of
        order = np.argsort(self._archive.times, kind="stable")
        ends = np.flatnonzero(np.diff(self._archive.times[order], append=np.inf)) + 1
        for rows in np.split(order, ends[:-1]):
            pages = page_of[rows].tolist()
            before = [self._lines.get(page) for page in pages]
            for page, row in zip(pages, rows.tolist(), strict=True):
                self._apply(page, row)
            for page, row, old in zip(pages, rows.tolist(), before, strict=True):
                new = self._lines.get(page)
                yield row, None if old is None or new is None else self._judge(page, old, new)

    def judge(self, page: int, before: int, after: int) -> ContentChange:
        """Judge the change of a page between two rows, at the time of the second; calls must be in order of time."""
        time = int(self._archive.times[after])
        self._move_to(time - 1)
        self._move_to(time)
        return self._judge(page, self._read(before), self._read(after))

    def _move_to(self, time: int) -> None:
        """Bring all pages to their state at a time, without the states in between."""
        rows = self._archive.rows_at(time)
        for page in np.flatnonzero((rows != self._row) & (rows >= 0)).tolist():
            self._apply(page, int(rows[page]))

    def _apply(self, page: int, row: int) -> None:
        """The page is in the state of this row from now on."""
        census = self._census[self._archive.site_of[page]]
        old, before = self._lines.get(page), int(self._row[page])
        self._row[page] = row
        if self._archive.removed[row]:
            if old is not None:
                census.remove({line.key for line in old})
                del self._lines[page]
            return
        if old is not None and self._same_text(before, row):
            return
        new = self._lines[page] = self._read(row)
        if old is None:
            census.add({line.key for line in new})
        else:
            census.replace((line.key for line in old), (line.key for line in new))

    def _judge(self, page: int, old: Lines, new: Lines) -> ContentChange:
        census = self._census[self._archive.site_of[page]]
        return judge(changed_lines(old, new), content_words(old, new), CensusEvidence(census, counts_new=True))

    def _read(self, row: int) -> Lines:
        try:
            return lines(parse(decode(self._archive.html(row)).text))
        except Unreadable:
            return []


def content_steps(file: Path, text: Ints) -> Flags:
    """Mark the rows of a file that change content; `text` holds the digests of the rows' texts, 0 for a removal."""
    archive = Archive.open([file])
    place = row_places(file)
    digest = text[place]
    walk = ContentWalk(archive, lambda old, new: bool(digest[old] == digest[new]))
    found = np.zeros(len(text), bool)
    for row, change in walk.steps():
        found[place[row]] = change is None or change.content
    return found


def row_places(file: Path) -> Ints:
    """For each row of the file's archive, sorted by URL and time and without duplicates, its place in the file."""
    table = pq.read_table(file, columns=["url", "time"])
    time = table["time"].to_numpy()
    page = np.unique(table["url"].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    order = np.lexsort((time, page))
    last = np.append((np.diff(page[order]) != 0) | (np.diff(time[order]) != 0), True)
    kept: Ints = order[last]
    return kept
