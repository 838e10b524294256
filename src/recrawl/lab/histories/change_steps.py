"""Which versions differ enough from the one before: in content, significantly (spec C2), or in words (spec C7).

Each step counts by itself: many small steps do not add up to a large one. Only steps that change the text are tested;
the results are cached beside the facts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from recrawl.columns import Flags, Ints
from recrawl.compare.divergence import distance, divergence
from recrawl.compare.levels import ChangeLevel, parse_level
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.significance import significant_many
from recrawl.compare.terms import Vocabulary, counts
from recrawl.errors import Unreadable, UsageError
from recrawl.extras import pq
from recrawl.lab.formats.cached_columns import file_name, from_cache, pool_of, to_cache
from recrawl.lab.formats.page_facts import Facts
from recrawl.lab.histories.content_walk import content_steps

_CACHE_FORMAT = "steps 2"
_BATCH_ROWS = 1000
_MAX_TEXT = 200_000
"""Longer texts are cut to this length."""


def step_level(change: str) -> ChangeLevel:
    """Return the level of change of the steps between versions; every step counts for `text` and `raw`.

    >>> step_level("divergence:0.1").least, step_level("content").kind
    (0.1, 'content')
    """
    if change != "text" and not change.startswith("relevance:"):  # the lab knows no queries
        with contextlib.suppress(UsageError):
            return parse_level(change)
    raise UsageError(
        f"invalid change '{change}'; use text, raw, content, significant, divergence:X (X from 0 to 1) or words:N"
    )


def steps_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    change: str,
    cache: Path | None,
    progress: Callable[[int, int], None],
    *,
    workers: int | None = None,
) -> list[Flags]:
    """Mark the rows of each file that differ enough from the version before on the same page."""
    total, done = sum(map(len, facts)), 0
    found = []
    with pool_of(workers, len(files), total) as pool:
        names = [cache / f"{file_name(file, f'{_CACHE_FORMAT} {change}')}.npz" if cache else None for file in files]
        cached = [from_cache(name) for name in names]
        pending = [
            None if known else pool.submit(_steps_of_file, file, item.text, change)
            for file, item, known in zip(files, facts, cached, strict=True)
        ]
        for name, known, task in zip(names, cached, pending, strict=True):
            columns = known or {"steps": task.result()}  # type: ignore[union-attr]
            if not known:
                to_cache(name, columns)
            found.append(columns["steps"])
            done += len(columns["steps"])
            progress(done, total)
    return found


def _steps_of_file(file: Path, digest: Ints, change: str) -> Flags:
    """Mark the rows of one file."""
    level = step_level(change)
    if level.kind == "content":
        return content_steps(file, digest)
    table = pq.read_table(file, columns=["url", "time", "html"])
    url = table["url"].combine_chunks().dictionary_encode().indices.to_numpy()
    time = table["time"].to_numpy()
    order = np.lexsort((time, url))
    twice = (np.diff(url[order]) == 0) & (np.diff(time[order]) == 0)
    order = order[np.append(~twice, True)]  # the last of equal rows counts, as in the history
    same = np.diff(url[order]) == 0
    before, after = order[:-1][same], order[1:][same]
    changed = (digest[before] != digest[after]) & (digest[before] != 0) & (digest[after] != 0)
    steps = np.zeros(len(digest), bool)
    # A birth, a removal and a reappearance always count.
    steps[after[(digest[before] == 0) != (digest[after] == 0)]] = True
    before, after = before[changed], after[changed]
    html = table["html"]
    for start in range(0, len(after), _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        old = [_text(html[int(row)].as_py()) for row in before[part]]
        new = [_text(html[int(row)].as_py()) for row in after[part]]
        steps[after[part]] = _differ(old, new, level)
    return steps


def _differ(old: list[str], new: list[str], level: ChangeLevel) -> Flags:
    if level.kind == "divergence":
        return np.array([divergence(a, b) >= level.least for a, b in zip(old, new, strict=True)], bool)
    if level.kind == "words":
        return np.array([distance(a, b)[0] >= level.least for a, b in zip(old, new, strict=True)], bool)
    known = Vocabulary()
    return significant_many(counts(old, known), counts(new, known), np.ones(len(old), bool))


def _text(html: bytes | str) -> str:
    try:
        tree = parse(html if isinstance(html, str) else decode(html).text)
    except Unreadable:
        return ""
    return text.visible(tree)[:_MAX_TEXT]
