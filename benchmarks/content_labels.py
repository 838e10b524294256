"""Labelled changes of archives, with what content detection and its yardsticks need to judge them.

The columns of a file of labels are id, label (news, noise or border), kind, archive, url, before and after.
Every change is judged by what the archive held up to `after`, as `recrawl lab label` does.
"""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recrawl.columns import Floats
from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import FEATURES, LineChange, feature_matrix
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.tree.documents import parse_html
from recrawl.compare.tree.renderers import text_lines
from recrawl.errors import Unreadable, UsageError
from recrawl.lab.formats.archive import Archive, files_of
from recrawl.lab.histories.content_walk import ContentWalk, row_places
from recrawl.lab.labels import read_pairs, site_of

try:
    from trafilatura import extract as trafilatura_extract
except ImportError:
    trafilatura_extract = None
try:
    from readability import Document as ReadabilityDocument
except ImportError:
    ReadabilityDocument = None

LABELS = ("news", "noise", "border")
OTHER_PAGES = 40
"""Other pages of the site that the crude rule looks at."""
FRAME_EXACT, FRAME_LOOSE = 2, 3
"""On this many of them a frame line stands as it is, or up to its digits."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Sample:
    """A labelled change."""

    label: str
    site: str
    changes: list[LineChange]
    features: Floats
    """One row for each changed line, as `judge.feature_matrix`."""
    differs: dict[str, bool | None]
    """The verdict of each yardstick; None if it is not installed."""


class PageLines(NamedTuple):
    """The lines of a page, as they are and up to their digits."""

    exact: frozenset[str]
    loose: frozenset[str]

    @classmethod
    def of(cls, lines: Iterable[str]) -> PageLines:
        exact = frozenset(lines)
        return cls(exact, frozenset(map(_up_to_digits, exact)))


class EvidenceWalk(ContentWalk):
    """A walk that gives the features of a change instead of a verdict."""

    def features(self, page: int, before: int, after: int) -> tuple[list[LineChange], Floats]:
        time = int(self._archive.times[after])
        self._move_to(time - 1)
        self._move_to(time)
        changes = changed_lines(self._read(before), self._read(after))
        census = self._census[self._archive.site_of[page]]
        if not changes:
            return changes, np.zeros((0, len(FEATURES)))
        return changes, feature_matrix(changes, CensusEvidence(census, counts_new=True))


class CrudeRule:
    """A changed line that stands on two of forty other pages of the site, or up to its digits on three, is frame."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._read: dict[int, PageLines] = {}

    def differs(self, page: int, before: int, after: int) -> bool:
        archive = self._archive
        time = int(archive.times[after])
        there = archive.pages_at(time)
        others = there[(archive.site_of[there] == archive.site_of[page]) & (there != page)]
        chosen = np.random.default_rng(after).permutation(others)[:OTHER_PAGES]
        earlier, later = ([self._lines(row) for row in archive.rows_at(t)[chosen].tolist()] for t in (time - 1, time))
        return crude_differs(_raw_lines(archive.html(before)), _raw_lines(archive.html(after)), earlier, later)

    def _lines(self, row: int) -> PageLines:
        if row not in self._read:
            self._read[row] = PageLines.of(_raw_lines(self._archive.html(row)) if row >= 0 else ())
        return self._read[row]


def crude_steps(file: Path, text: np.ndarray) -> np.ndarray:
    """Mark the rows of a file that change more than frame by the crude rule; `text` holds digests, 0 for a removal."""
    archive, place = Archive.open([file]), row_places(file)
    rule, digest, page_of = CrudeRule(archive), text[place], archive.page_of
    found = np.zeros(len(text), bool)
    for row in np.flatnonzero((page_of[1:] == page_of[:-1]) & (digest[1:] != digest[:-1])) + 1:
        removal = digest[row] == 0 or digest[row - 1] == 0
        found[place[row]] = removal or rule.differs(int(page_of[row]), int(row) - 1, int(row))
    return found


def crude_differs(
    old: Sequence[str], new: Sequence[str], earlier: Sequence[PageLines], later: Sequence[PageLines]
) -> bool:
    """Whether a changed line is not frame; removed lines are looked up in the other pages as they were before."""
    before, after = Counter(old), Counter(new)
    removed, added = before - after, after - before
    return any(not _is_frame(line, earlier) for line in removed) or any(not _is_frame(line, later) for line in added)


def _is_frame(line: str, pages: Sequence[PageLines]) -> bool:
    loose = _up_to_digits(line)
    return (
        sum(line in page.exact for page in pages) >= FRAME_EXACT
        or sum(loose in page.loose for page in pages) >= FRAME_LOOSE
    )


def _up_to_digits(line: str) -> str:
    return _DIGITS.sub("0", line)


def _raw_lines(body: bytes) -> list[str]:
    try:
        return [line.text for line in text_lines(parse_html(decode(body).text).tree)]
    except Unreadable:
        return []


def _visible(body: bytes) -> str:
    return text.visible(parse(decode(body).text))


def _trafilatura(body: bytes) -> str:
    return trafilatura_extract(decode(body).text) or ""


def _readability(body: bytes) -> str:
    page = decode(body).text
    return _visible(ReadabilityDocument(page).summary().encode()) if page.strip() else ""


EXTRACTORS: dict[str, Callable[[bytes], str] | None] = {
    "plain text": _visible,
    "trafilatura": _trafilatura if trafilatura_extract else None,
    "readability": _readability if ReadabilityDocument else None,
}
"""Yardsticks that extract a text from a page: it differs, or it does not."""
CRUDE = "crude rule"
YARDSTICKS = (*EXTRACTORS, CRUDE)


def labelled_rows(paths: Sequence[Path], labels: Path) -> tuple[dict[str, Path], list[dict[str, Any]]]:
    """The archives by name, and the rows of a file of labels by archive and time."""
    files = {file.name: file for path in paths for file in files_of(path)}
    rows = sorted(read_pairs(labels), key=itemgetter("archive", "after"))
    wrong = [row for row in rows if row["archive"] not in files or row["label"] not in LABELS]
    if wrong:
        raise UsageError(f"{labels}: no archive {wrong[0]['archive']}, or the label is not one of {', '.join(LABELS)}")
    return files, rows


def collect(paths: Sequence[Path], labels: Path, kept: Path | None = None) -> list[Sample]:
    """All labelled changes, archive by archive, small ones first; what is kept is not read again."""
    files, rows = labelled_rows(paths, labels)
    groups = [(name, list(group)) for name, group in groupby(rows, itemgetter("archive"))]
    samples: list[Sample] = []
    for name, group in sorted(groups, key=lambda one: files[one[0]].stat().st_size):
        file = kept / f"{name}.samples" if kept is not None else None
        if file is not None and file.exists():
            samples.extend(pickle.loads(file.read_bytes()))
            continue
        found = list(_samples(Archive.open([files[name]]), group))
        samples.extend(found)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(found))
    return samples


def _samples(archive: Archive, rows: Sequence[Mapping[str, Any]]) -> Iterator[Sample]:
    walk, crude = EvidenceWalk(archive), CrudeRule(archive)
    for row in rows:
        page = archive.find(row["url"])
        before, after = (None if page is None else archive.row_at(page, row[time]) for time in ("before", "after"))
        if page is None or before is None or after is None:
            raise UsageError(f"{row['archive']} has no two versions of {row['url']} at these times")
        differs = {name: _differs(extract, archive, before, after) for name, extract in EXTRACTORS.items()}
        differs[CRUDE] = crude.differs(page, before, after)
        yield Sample(row["label"], site_of(row["url"]), *walk.features(page, before, after), differs)


def _differs(extract: Callable[[bytes], str] | None, archive: Archive, before: int, after: int) -> bool | None:
    return None if extract is None else extract(archive.html(before)) != extract(archive.html(after))
