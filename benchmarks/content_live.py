"""Labelled changes judged by what a live crawl of the site would have counted by then.

The lab judges with all pages of a site as they are at the time of a change. A crawl counts fewer: the members of its
census (`recrawl.crawl.state.site_frames`), each as it was when it was last visited. Here a crawl of the site begins
90 days before the change (or when the archive begins), front page first, and visits every page once in a period, at a
time of its own. The page itself was last visited when it had its former version. What its own history tells
(`compare.content.own_history`) is learned from its visits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks.content_labels import Sample, labelled_rows
from recrawl.columns import Floats
from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import FEATURES, LineChange, feature_matrix
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.content.own_history import OwnHistory
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.discover.urls import directory, key
from recrawl.errors import Unreadable
from recrawl.lab.formats.archive import Archive
from recrawl.lab.labels import site_of

DAY = 86400
CRAWLED_DAYS = 90
"""How long before a change the crawl of its site began."""
PERIODS = (1, 7, 30)
"""Days from one visit of a page to the next."""


class LiveCrawl:
    """A crawl of the sites of an archive, with what it has counted at a time."""

    def __init__(self, archive: Archive, period: int, seed: int = 1) -> None:
        self._archive = archive
        self._period = period * DAY
        rng = np.random.default_rng(seed)
        self._phase = rng.integers(self._period, size=len(archive))
        chance = rng.random(len(archive)).tolist()
        depth = [(len(path), path.count("/")) for path in (urlsplit(url).path for url in archive.urls)]
        self._order = sorted(range(len(archive)), key=lambda page: (depth[page][0] > 1, depth[page][1], chance[page]))
        self._read = lru_cache(maxsize=4096)(self._read_row)

    def features(self, page: int, before: int, after: int) -> tuple[list[LineChange], Floats]:
        """The changed lines of a page and their features, as a visit at the time of `after` has them."""
        frame, history = self._counted(page, before, int(self._archive.times[after]))
        changes = history.explain(changed_lines(self._read(before), self._read(after)))
        if not changes:
            return changes, np.zeros((0, len(FEATURES)))
        return changes, feature_matrix(changes, CensusEvidence(frame.census, counts_old=page in frame.members))

    def _counted(self, page: int, before: int, end: int) -> tuple[SiteFrame, OwnHistory]:
        """The frame of a page's site before a visit of the page, and the page's own history."""
        archive = self._archive
        begin = max(int(archive.start), end - CRAWLED_DAYS * DAY)
        others = [other for other in self._order if archive.site_of[other] == archive.site_of[page]]
        seen = ((*visit, n, other) for n, other in enumerate(others) for visit in self._visits(other, begin, end))
        visits = [(other, row) for _, row, _, other in sorted(seen, key=itemgetter(0, 2))]
        frame, history = SiteFrame(), OwnHistory()
        held: dict[int, list[Line]] = {}
        for other, row in [*visits, (page, before)]:
            place, old = key(directory(archive.urls[other])), held.get(other)
            if other not in frame.members and not frame.wants(place) and other != page:
                continue
            held[other] = new = self._read(row)
            if other == page and old is not None and old != new:
                history.note(changed_lines(old, new))
            if other in frame.members:
                frame.census.replace({line.key for line in old or ()}, {line.key for line in new})
            elif frame.wants(place):
                frame.add(other, place, {line.key for line in new})
        return frame, history

    def _visits(self, page: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The visits of a page that found another version than the visit before: time and row."""
        archive = self._archive
        first = archive.row_at(page, begin)
        when = begin
        if first is None or archive.removed[first]:
            when += int(self._phase[page])
        last = -1
        while when < end:
            row = archive.row_at(page, when)
            if row is not None and row != last and not archive.removed[row]:
                last = row
                yield when, row
            when = self._next_visit(page, when, row)

    def _next_visit(self, page: int, when: int, row: int | None) -> int:
        """The first visit after the page's next version."""
        archive = self._archive
        following = int(archive.first[page]) if row is None else row + 1
        if following >= archive.first[page + 1]:
            return 1 << 62
        wait = max(int(archive.times[following]), when + 1) - int(self._phase[page])
        return -(-wait // self._period) * self._period + int(self._phase[page])

    def _read_row(self, row: int) -> list[Line]:
        try:
            return lines(parse(decode(self._archive.html(row)).text))
        except Unreadable:
            return []


def collect_live(paths: Sequence[Path], labels: Path, period: int) -> list[Sample]:
    """All labelled changes as a live crawl sees them."""
    files, rows = labelled_rows(paths, labels)
    samples: list[Sample] = []
    for name, group in groupby(rows, itemgetter("archive")):
        archive = Archive.open([files[name]])
        crawl = LiveCrawl(archive, period)
        samples += [_sample(archive, crawl, row) for row in group]
    return samples


def _sample(archive: Archive, crawl: LiveCrawl, row: Mapping[str, Any]) -> Sample:
    page = archive.find(row["url"])
    assert page is not None
    before, after = (archive.row_at(page, row[time]) for time in ("before", "after"))
    assert before is not None
    assert after is not None
    return Sample(row["label"], site_of(row["url"]), *crawl.features(page, before, after), {})
