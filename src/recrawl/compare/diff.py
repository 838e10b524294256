"""What changed, for people (spec C7): a unified diff of lines, with the changed words marked within them.

@@ -1 +1 @@
 Opening hours
-Monday to [-Friday-]
+Monday to {+Saturday+}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from recrawl.compare.edits import matches

_MOST_LINES = 20_000
_MOST_WORDS = 2_000
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SIGNS = {"same": " ", "out": "-", "in": "+"}

Marks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line, and where in it the changed words are. A changed line without marks changed as a whole."""

    kind: Literal["same", "out", "in"]
    text: str
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed lines with a few unchanged ones around them, and the numbers of the first, counted from 1."""

    old_start: int
    new_start: int
    rows: tuple[DiffRow, ...]


def diff(old: Sequence[str], new: Sequence[str], context: int = 2) -> list[Hunk]:
    """The hunks that lead from the old lines to the new; none when they are the same.

    Of very long texts only the first 20,000 lines are compared; the rest counts as the same.
    """
    old, new = old[:_MOST_LINES], new[:_MOST_LINES]
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


def unified(hunks: Sequence[Hunk]) -> str:
    """The diff as plain text; `[-` and `-]`, `{+` and `+}` stand around changed words.

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
    """The rows without more unchanged ones at the end than wanted."""
    last = max(i for i, row in enumerate(rows) if row.kind != "same")
    return tuple(rows[: last + 1 + context])


def _changed(out: Sequence[str], into: Sequence[str]) -> list[DiffRow]:
    """The rows of one replaced stretch: what went, then what came, words marked line against line."""
    gone: list[DiffRow] = []
    came: list[DiffRow] = []
    for before, after in zip_longest(out, into):
        marks = _word_marks(before, after) if before is not None and after is not None else ((), ())
        if before is not None:
            gone.append(DiffRow("out", before, marks[0]))
        if after is not None:
            came.append(DiffRow("in", after, marks[1]))
    return gone + came


def _word_marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Where the two lines differ, word by word; nothing for very long lines and very different ones."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if max(len(before), len(after)) > _MOST_WORDS:
        return (), ()
    runs = matches(before, after, most_edits=60)
    kept = sum(len(token) for x, _, n in runs for token in before[x : x + n])
    if 3 * kept < max(len(old), len(new)):
        return (), ()
    return _gaps(before, [(x, n) for x, _, n in runs]), _gaps(after, [(y, n) for _, y, n in runs])


def _gaps(tokens: list[str], kept: list[tuple[int, int]]) -> Marks:
    """The character ranges of the tokens that were not kept."""
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    marks = []
    at = 0
    for start, n in [*kept, (len(tokens), 0)]:
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
