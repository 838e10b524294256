"""The cost of content detection beside that of reading a page: CPU time and bytes.

Only some pages of a site are counted in its census (`crawl.state.site_frames`): a first crawl pays for their lines
alone. Every counted page is read once, in a random order, so that caches of lines are as full as in a crawl. Compare
figures only within one run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple, TypeVar

import numpy as np
from turbohtml import Document

from benchmarks.report import Table
from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import content_words, judge
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import TaskReader
from recrawl.discover.urls import UrlRules, directory, key
from recrawl.errors import Unreadable
from recrawl.lab.formats.archive import Archive, files_of

T = TypeVar("T")
MAX_CHANGES = 20
"""Changes of each site that are judged."""


class SiteCost(NamedTuple):
    """What one site costs; times are CPU seconds of all its counted pages, or of all judged changes."""

    pages: int
    members: int
    """Pages that are counted in its census."""
    frame_bytes: int
    parsing: float
    """Parsing and extracting the visible text."""
    lines: float
    """Finding the lines, after that."""
    reading: float
    """All that a reader process does with a new page that is not counted."""
    changes: int
    judging: float
    """Comparing and judging, once the lines of both versions are known."""


def cost(paths: Sequence[Path]) -> list[Table]:
    """The tables of CPU time and of bytes."""
    sites = [site_cost(Archive.open([file])) for path in paths for file in files_of(path)]
    total = SiteCost(*(sum(column) for column in zip(*sites, strict=True)))
    parsing, counting, reading = (value / total.members for value in (total.parsing, total.lines, total.reading))
    counted = total.members / total.pages
    steps = [
        ("parse and visible text", parsing),
        ("all of reading a new page", reading),
        ("lines of a page that is counted", counting),
        (f"the same, mean of a first crawl ({counted:.0%} counted)", counting * counted),
        ("lines of both versions of a page whose text differs", 2 * counting),
        ("comparing them and judging", total.judging / max(total.changes, 1)),
    ]
    shares = [site.frame_bytes / site.pages for site in sites]
    return [
        Table(
            f"CPU time, mean of {total.members:,} pages and {total.changes:,} changes of {len(sites)} archives",
            ["step", "µs", "of parse and text", "of reading a page"],
            [[name, f"{1e6 * cpu:.0f}", f"{cpu / parsing:.1%}", f"{cpu / reading:.1%}"] for name, cpu in steps],
        ),
        Table(
            f"Bytes of the stored frames of {total.pages:,} pages, {total.members:,} of them counted",
            ["per", "bytes"],
            [
                ["page", f"{total.frame_bytes / total.pages:.0f}"],
                ["page of the median site", f"{np.median(shares):.0f}"],
                ["page that is counted", f"{total.frame_bytes / total.members:.0f}"],
            ],
        ),
    ]


def site_cost(archive: Archive) -> SiteCost:
    """Crawl an archive as it was first: every page that the frame of its site wants is read and counted."""
    rows = archive.first[:-1]
    order = np.random.default_rng(1).permutation(np.flatnonzero(~archive.removed[rows])).tolist()
    frame, reader = SiteFrame(), TaskReader(ReaderConfig(UrlRules()))
    parsing = finding = reading = 0.0
    for page in order:
        url, place = archive.urls[page], key(directory(archive.urls[page]))
        if not frame.wants(place):
            continue
        task = _task(url, archive.html(int(rows[page])))
        try:
            spent, tree = _timed(partial(_read, task.body))
        except Unreadable:
            continue
        parsing += spent
        spent, found = _timed(partial(lines, tree))
        finding += spent
        reading += _timed(partial(reader.read, task))[0]
        frame.add(page, place, {line.key for line in found})
    pairs, known = list(_changes(archive, order)), CensusEvidence(frame.census)
    judging, _ = _timed(lambda: [judge(changed_lines(*pair), content_words(*pair), known) for pair in pairs])
    return SiteCost(len(order), len(frame.members), len(frame.pack()), parsing, finding, reading, len(pairs), judging)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = process_time()
    done = work()
    return process_time() - began, done


def _read(body: bytes) -> Document:
    tree = parse(decode(body).text)
    text.visible(tree)
    return tree


def _task(url: str, body: bytes) -> Task:
    headers = (("content-type", "text/html"),)
    payload = hashlib.sha1(body).digest()
    return Task(0, url, 0.0, "127.0.0.1", 200, headers, b"GET / HTTP/1.1", body, payload, 0, None, None, True)


def _changes(archive: Archive, pages: Sequence[int]) -> Iterator[tuple[list[Line], list[Line]]]:
    """The lines of the first two versions of some pages, where they differ."""
    found = 0
    for page in pages:
        first, last = int(archive.first[page]), int(archive.first[page + 1]) - 1
        if found == MAX_CHANGES or first == last or archive.removed[first + 1]:
            continue
        try:
            old, new = (lines(parse(decode(archive.html(row)).text)) for row in (first, first + 1))
        except Unreadable:
            continue
        if old != new:
            found += 1
            yield old, new
