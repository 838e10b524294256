"""One page: its facts and versions, and the text, source and difference of versions, with size limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from recrawl.compare.diff import DiffRow, Hunk, unified
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.reports.frames import compare_versions
from recrawl.crawl.visits.stored_text import header, read_lines
from recrawl.discover.urls import origin
from recrawl.errors import DamagedRecord, NotKnown, RepositoryError, Unreadable
from recrawl.record.rows import NO_NUMBER, VersionRow
from recrawl.repository.lookup import page_of
from recrawl.repository.reader import Reader
from recrawl.repository.results.answers import VersionAnswer, VersionDifferenceAnswer, VersionTextAnswer, made

StoredVersion = VersionRow
"""The columns of a version."""
MAX_VERSIONS = 200
"""Only the newest versions of a page are listed."""
MAX_ID = 1 << 62
"""Larger than any id in the store, and within SQLite's range."""
_MAX_LINES = 5_000
_MAX_CHARACTERS = 400_000
_MAX_HTML = 4_000_000


@dataclass(frozen=True, slots=True)
class Text:
    """A version as lines; `cut` if it is truncated."""

    lines: list[str]
    cut: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ShownContent:
    """The content of a version for a reader."""

    html: str = ""
    """Safe to show: text, and links that lead away."""
    markdown: str = ""
    """Of a version that is too long to be rendered."""
    facts: dict[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of a side-by-side view; None where a side has no counterpart."""

    old: DiffRow | None
    new: DiffRow | None
    old_number: int | None
    new_number: int | None


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """The difference between two versions, or the reason why there is none."""

    hunks: list[Hunk]
    share: float | None
    """Share of words that differ; None if a version is unreadable."""
    problem: str = ""

    @property
    def unified(self) -> str:
        """The difference as a unified diff."""
        return unified(self.hunks)


def page(repo: Reader, number: int) -> dict[str, Any]:
    """Return the facts of a page; raise NotKnown if it does not exist."""
    found = repo.storage.store.pages.details(min(number, MAX_ID))
    if found is None:
        raise NotKnown(f"there is no page {number}")
    return found


def find(repo: Reader, url: str) -> dict[str, Any]:
    """Return the columns of the page with this URL, as people write it; raise NotKnown if it does not exist."""
    return page_of(repo.storage, url)


def visits(repo: Reader, number: int, limit: int, before: int = NO_NUMBER) -> list[dict[str, Any]]:
    """Return the newest visits of a page with numbers below `before`, newest first."""
    return repo.storage.store.reports.visits_of_page(number, limit=limit, before=before)


def versions(repo: Reader, number: int, limit: int = MAX_VERSIONS, before: int = NO_NUMBER) -> list[StoredVersion]:
    """Return the newest versions of a page with numbers below `before`, newest first."""
    return repo.storage.store.versions.newest_of_page(number, limit, before)


def version_times(repo: Reader, number: int, limit: int) -> list[float]:
    """Return the times of the newest versions of a page, newest first."""
    return repo.storage.store.versions.times(number, limit)


def version_in_force(repo: Reader, number: int, at: float | None) -> StoredVersion:
    """Return the version in force at a time: the newest for None, the first if the time is earlier."""
    found = repo.storage.store.versions.in_force(number, 1e300 if at is None else at)
    if found is None:
        raise NotKnown("this page has no downloaded version")
    return found


def version_before(repo: Reader, which: StoredVersion) -> StoredVersion | None:
    """Return the version before this one."""
    return repo.storage.store.versions.before(which.page, which.id)


def version(repo: Reader, number: int, wanted: int | None) -> StoredVersion:
    """Return a version of a page by id, or the newest; raise NotKnown if the page has no such version."""
    found = repo.storage.store.versions.pick(number, wanted)
    if found is None:
        raise NotKnown(
            "this page has no downloaded version" if wanted is None else f"this page has no version {wanted}"
        )
    return found


def pair(
    repo: Reader, url: str, old: int | None, new: int | None
) -> tuple[dict[str, Any], StoredVersion, StoredVersion]:
    """Return a page and two of its versions by id: the last two if none are named."""
    known = find(repo, url)
    after = version(repo, known["id"], new)
    if old is None:
        return known, version_before(repo, after) or after, after
    return known, version(repo, known["id"], old), after


def answer_with_text(repo: Reader, url: str, number: int | None) -> VersionTextAnswer:
    """Return a version of a page with its text."""
    known = find(repo, url)
    chosen = version(repo, known["id"], number)
    found = text_of(repo, known["url"], chosen)
    content = {"text": "\n".join(found.lines), "cut": found.cut, "problem": found.problem}
    return made(VersionTextAnswer, {"url": known["url"], **chosen._asdict(), **content})


def answer_with_difference(repo: Reader, url: str, old: int | None, new: int | None) -> VersionDifferenceAnswer:
    """Return the difference between two versions of a page."""
    known, before, after = pair(repo, url, old, new)
    found = difference(repo, known["url"], before, after)
    return VersionDifferenceAnswer(
        url=known["url"],
        old=made(VersionAnswer, before),
        new=made(VersionAnswer, after),
        divergence=found.share,
        diff=found.unified,
        problem=found.problem,
    )


def body_of(repo: Reader, which: StoredVersion) -> bytes:
    """Return the stored body of a version; raise RepositoryError if it cannot be read."""
    try:
        return repo.storage.body(which)[2]
    except DamagedRecord as error:
        raise RepositoryError(f"This version is unreadable: {error}.") from error


def text_of(repo: Reader, url: str, which: StoredVersion) -> Text:
    """Return the visible text of a version of this page by lines."""
    try:
        _, headers, body = repo.storage.body(which)
        lines = read_lines(body, headers, repo.noise_filter(origin(url)))
    except (DamagedRecord, Unreadable) as error:
        return Text([], cut=False, problem=f"This version is unreadable: {error}.")
    return _cut(lines)


def content_of(repo: Reader, url: str, which: StoredVersion) -> ShownContent:
    """Return the content of a version of this page as HTML for a reader."""
    from recrawl.repository.results.content import content_of as read  # lazy: loads what judges pages

    try:
        found = read(repo, url, which)
    except (DamagedRecord, Unreadable) as error:
        return ShownContent(problem=f"This version is unreadable: {error}.")
    text = found.html
    cut = len(text) > _MAX_HTML
    return ShownContent("" if cut else text, found.markdown if cut else "", found.facts())


def source_of(repo: Reader, which: StoredVersion) -> tuple[Text, list[tuple[str, str]]]:
    """Return the decoded body of a version, and its headers."""
    try:
        _, headers, body = repo.storage.body(which, plain=True)
    except DamagedRecord as error:
        return Text([], cut=False, problem=f"This version is unreadable: {error}."), []
    if b"\0" in body[:512]:
        return Text([], cut=False, problem="This version is binary, not text."), list(headers)
    return _cut(decode(body, header(headers, "content-type")).text.splitlines()), list(headers)


def difference(repo: Reader, url: str, old: StoredVersion, new: StoredVersion) -> ShownDifference:
    """Return the difference between two versions of this page."""
    noise = repo.noise_filter(origin(url))
    try:
        found = compare_versions(repo.storage, old, new, noise)
    except (DamagedRecord, Unreadable) as error:
        return ShownDifference([], None, f"These versions cannot be compared: {error}.")
    return ShownDifference(found.hunks, found.divergence)


def side_by_side(hunk: Hunk) -> list[Pair]:
    """Return the rows of a hunk in two columns: removed lines beside the lines that replaced them.

    >>> from recrawl.compare.diff import diff
    >>> hunk = diff(["a", "one", "z"], ["a", "two", "new", "z"])[0]
    >>> [(p.old and p.old.text, p.new and p.new.text) for p in side_by_side(hunk)]
    [('a', 'a'), ('one', 'two'), (None, 'new'), ('z', 'z')]
    """
    pairs: list[Pair] = []
    left, right = hunk.old_start, hunk.new_start
    removed: list[DiffRow] = []
    added: list[DiffRow] = []

    def flush() -> None:
        nonlocal left, right
        for old, new in zip_longest(removed, added):
            pairs.append(Pair(old, new, left if old else None, right if new else None))
            left, right = left + (old is not None), right + (new is not None)
        removed.clear()
        added.clear()

    for row in hunk.rows:
        if row.kind == "same":
            flush()
            pairs.append(Pair(row, row, left, right))
            left, right = left + 1, right + 1
        else:
            (removed if row.kind == "out" else added).append(row)
    flush()
    return pairs


def stretches(row: DiffRow) -> list[tuple[bool, str]]:
    """Split a row's text into (changed, text) pieces.

    >>> stretches(DiffRow("in", "one two", ((4, 7),)))
    [(False, 'one '), (True, 'two')]
    """
    pieces, at = [], 0
    for start, end in row.marks:
        pieces += [(False, row.text[at:start]), (True, row.text[start:end])]
        at = end
    pieces.append((False, row.text[at:]))
    return [piece for piece in pieces if piece[1]]


def _cut(lines: list[str]) -> Text:
    kept, room = [], _MAX_CHARACTERS
    for line in lines[:_MAX_LINES]:
        kept.append(line[:room])
        room -= len(line)
        if room <= 0:
            break
    return Text(kept, cut=room <= 0 or len(lines) > len(kept))
