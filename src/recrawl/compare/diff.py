"""A unified diff of lines for people (spec C7), with the changed words marked.

@@ -1 +1 @@
 Opening hours
-Monday to [-Friday-]
+Monday to {+Saturday+}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from recrawl.compare.edits import matches
from recrawl.words import tokens

_MAX_LINES = 20_000
_MAX_WORDS = 2_000
_SIGNS = {"same": " ", "out": "-", "in": "+"}

Marks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line and the ranges of its changed words. A changed line without marks changed as a whole."""

    kind: Literal["same", "out", "in"]
    text: str
    marks: Marks = ()
    frame: bool = False
    """Whether a changed line belongs to the frame of the site, not to the page's content."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed lines with unchanged context, and the old and new line numbers of its first line, from 1."""

    old_start: int
    new_start: int
    rows: tuple[DiffRow, ...]


def diff(old: Sequence[str], new: Sequence[str], context: int = 2) -> list[Hunk]:
    """Return the hunks from the old lines to the new ones; none if they are equal.

    Only the first 20,000 lines are compared; later lines count as equal.
    """
    old, new = old[:_MAX_LINES], new[:_MAX_LINES]
    hunks: list[Hunk] = []
    rows: list[DiffRow] = []
    start = (0, 0)
    a = b = 0
    for x, y, n in [*matches(old, new), (len(old), len(new), 0)]:
        rows += _changed(old[a:x], new[b:y])
        a, b = x + n, y + n
        changed = any(row.kind != "same" for row in rows)
        if changed and n > 2 * context:
            rows += [DiffRow("same", line) for line in old[x : x + context]]
            hunks.append(Hunk(start[0] + 1, start[1] + 1, tuple(rows)))
            changed, rows = False, []
        if not changed:
            keep = min(n, context)
            start, rows = (a - keep, b - keep), [DiffRow("same", line) for line in old[a - keep : a]]
        else:
            rows += [DiffRow("same", line) for line in old[x:a]]
    if any(row.kind != "same" for row in rows):
        hunks.append(Hunk(start[0] + 1, start[1] + 1, _trimmed(rows, context)))
    return hunks


def with_frame(hunks: Sequence[Hunk], is_frame: Callable[[str], bool]) -> list[Hunk]:
    """Mark the changed lines that belong to the frame."""
    return [
        replace(
            hunk,
            rows=tuple(
                replace(row, frame=True) if row.kind != "same" and is_frame(row.text) else row for row in hunk.rows
            ),
        )
        for hunk in hunks
    ]


def folded(hunks: Sequence[Hunk]) -> list[Hunk]:
    """Leave out the changed lines of the frame, and hunks that have no others."""
    kept = (replace(hunk, rows=tuple(row for row in hunk.rows if not row.frame)) for hunk in hunks)
    return [hunk for hunk in kept if any(row.kind != "same" for row in hunk.rows)]


def unified(hunks: Sequence[Hunk]) -> str:
    """Return the diff as plain text; `[-` `-]` and `{+` `+}` enclose changed words.

    >>> print(unified(diff(["a", "one two"], ["a", "one 2"])))
    @@ -1 +1 @@
     a
    -one [-two-]
    +one {+2+}
    """
    out: list[str] = []
    for hunk in hunks:
        out.append(f"@@ -{hunk.old_start} +{hunk.new_start} @@")
        out += [_SIGNS[row.kind] + _marked(row) for row in hunk.rows]
    return "\n".join(out)


def _trimmed(rows: list[DiffRow], context: int) -> tuple[DiffRow, ...]:
    """Cut the unchanged rows at the end to `context`."""
    last = max(i for i, row in enumerate(rows) if row.kind != "same")
    return tuple(rows[: last + 1 + context])


def _changed(old: Sequence[str], new: Sequence[str]) -> list[DiffRow]:
    """Return the rows of one replaced stretch: removed lines, then added ones, words marked line against line."""
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for before, after in zip_longest(old, new):
        marks = _word_marks(before, after) if before is not None and after is not None else ((), ())
        if before is not None:
            removed.append(DiffRow("out", before, marks[0]))
        if after is not None:
            added.append(DiffRow("in", after, marks[1]))
    return removed + added


def _word_marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Return the ranges in which two lines differ; none for very long or very different lines."""
    before, after = tokens(old), tokens(new)
    if max(len(before), len(after)) > _MAX_WORDS:
        return (), ()
    runs = matches(before, after, max_edits=60)
    kept = sum(len(token) for x, _, n in runs for token in before[x : x + n])
    if 3 * kept < max(len(old), len(new)):
        return (), ()
    return _gaps(before, [(x, n) for x, _, n in runs]), _gaps(after, [(y, n) for _, y, n in runs])


def _gaps(pieces: list[str], kept: list[tuple[int, int]]) -> Marks:
    """Return the character ranges of the pieces that were not kept."""
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    marks = []
    at = 0
    for start, n in [*kept, (len(pieces), 0)]:
        if start > at:
            marks.append((offsets[at], offsets[start]))
        at = start + n
    return tuple(marks)


def _marked(row: DiffRow) -> str:
    left, right = ("[-", "-]") if row.kind == "out" else ("{+", "+}")
    pieces = []
    at = 0
    for start, end in row.marks:
        pieces += [row.text[at:start], left, row.text[start:end], right]
        at = end
    return "".join(pieces) + row.text[at:]
