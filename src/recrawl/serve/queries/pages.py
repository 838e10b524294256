"""One page: what is known of it, its versions, and what a version says, safe to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recrawl.compare.diff import DiffRow, Hunk, diff
from recrawl.compare.divergence import divergence
from recrawl.compare.encoding import decode
from recrawl.compare.noise.filters import Noise
from recrawl.crawl.visits.stored_text import header, read_lines, read_text
from recrawl.errors import NotKnown, Unreadable
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

MOST_VERSIONS = 200
"""Versions of a page that are listed: the newest."""
LARGEST = 1 << 62
"""Larger than any number in the store, and not too large for it."""
_MOST_LINES = 5_000
_MOST_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class Text:
    """A version as lines; `cut` when there are more than are shown."""

    lines: list[str]
    cut: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of a side-by-side view; None where the other side has no counterpart."""

    old: DiffRow | None
    new: DiffRow | None
    old_number: int | None
    new_number: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two versions."""

    hunks: list[Hunk]
    share: float | None
    """The share of words that differ; None when a text could not be read."""
    problem: str = ""


def page(store: Store, number: int) -> dict[str, Any]:
    """What is known of a page; NotKnown when there is none."""
    found = store.pages.details(min(number, LARGEST))
    if found is None:
        raise NotKnown("there is no such page here")
    return found


def versions(store: Store, number: int) -> list[VersionRow]:
    """The newest versions of a page, newest first."""
    return store.versions.newest_of_page(number, MOST_VERSIONS)


def version(store: Store, number: int, wanted: int | None) -> VersionRow:
    """A version of a page by its number, the newest without one; NotKnown when it is not this page's."""
    found = store.versions.pick(number, wanted)
    if found is None:
        raise NotKnown("this page was never downloaded" if wanted is None else "this page has no such version")
    return found


def text_of(repository: Storage, which: VersionRow, noise: Noise) -> Text:
    """What a version says, line by line, without markup."""
    try:
        _, headers, body = repository.body(which)
        lines = read_lines(body, headers, noise)
    except (OSError, ValueError, KeyError, Unreadable) as error:
        return Text([], cut=False, problem=f"This version cannot be read: {error}.")
    return _cut(lines)


def source_of(repository: Storage, which: VersionRow) -> tuple[Text, list[tuple[str, str]]]:
    """A version's bytes as text, and its headers."""
    try:
        _, headers, body = repository.body(which)
    except (OSError, ValueError, KeyError) as error:
        return Text([], cut=False, problem=f"This version cannot be read: {error}."), []
    if b"\0" in body[:512]:
        return Text([], cut=False, problem="This is no text."), list(headers)
    return _cut(decode(body, header(headers, "content-type")).text.splitlines()), list(headers)


def difference(repository: Storage, old: VersionRow, new: VersionRow, noise: Noise) -> Difference:
    """What changed from one version to another."""
    try:
        bodies = [repository.body(which)[1:] for which in (old, new)]
        before, after = (read_lines(body, headers, noise) for headers, body in bodies)
        texts = [read_text(body, headers, noise) for headers, body in bodies]
    except (OSError, ValueError, KeyError, Unreadable) as error:
        return Difference([], None, f"These versions cannot be compared: {error}.")
    return Difference(diff(before, after), divergence(texts[0], texts[1]))


def side_by_side(hunk: Hunk) -> list[Pair]:
    """The rows of a hunk in two columns: what went beside what came in its place.

    >>> hunk = diff(["a", "one", "z"], ["a", "two", "new", "z"])[0]
    >>> [(p.old and p.old.text, p.new and p.new.text) for p in side_by_side(hunk)]
    [('a', 'a'), ('one', 'two'), (None, 'new'), ('z', 'z')]
    """
    pairs: list[Pair] = []
    left, right = hunk.old_start, hunk.new_start
    gone: list[DiffRow] = []
    came: list[DiffRow] = []

    def flush() -> None:
        nonlocal left, right
        for k in range(max(len(gone), len(came))):
            old, new = gone[k] if k < len(gone) else None, came[k] if k < len(came) else None
            pairs.append(Pair(old, new, left if old else None, right if new else None))
            left, right = left + (old is not None), right + (new is not None)
        gone.clear()
        came.clear()

    for row in hunk.rows:
        if row.kind == "same":
            flush()
            pairs.append(Pair(row, row, left, right))
            left, right = left + 1, right + 1
        else:
            (gone if row.kind == "out" else came).append(row)
    flush()
    return pairs


def stretches(row: DiffRow) -> list[tuple[bool, str]]:
    """A row's text in pieces, each with whether it was changed.

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
    kept, room = [], _MOST_CHARACTERS
    for line in lines[:_MOST_LINES]:
        kept.append(line[:room])
        room -= len(line)
        if room <= 0:
            break
    return Text(kept, cut=room <= 0 or len(lines) > len(kept))
