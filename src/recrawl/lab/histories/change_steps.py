"""Which versions differ enough from the one before: significantly (spec C2), or by a share of their words (spec C7).

A step counts by itself: many small ones do not add up to a large one. Only steps that change the text at all are
looked at, and the verdicts are kept beside the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recrawl.compare import text
from recrawl.compare.divergence import divergence
from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.compare.significance import significant_many
from recrawl.compare.terms import Vocabulary, counts
from recrawl.errors import Unreadable, UsageError
from recrawl.lab.formats.page_facts import Facts, file_name, from_cache, pool_of, to_cache

_FORM = "steps 2"
_AT_ONCE = 1000
_TEXT_BYTES = 200_000
"""Of longer texts the beginning decides."""


def least(change: str) -> float | None:
    """The divergence that counts, None for significance.

    >>> least("divergence:0.1"), least("significant")
    (0.1, None)
    """
    kind, _, number = change.partition(":")
    if change == "significant":
        return None
    try:
        share = float(number)
    except ValueError:
        share = float("nan")
    if kind != "divergence" or not 0 < share <= 1:
        raise UsageError(f"change is text, raw, significant or divergence:X with X from 0 to 1, not '{change}'")
    return share


def steps_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    change: str,
    cache: Path | None,
    progress: Callable[[int, int], None],
    *,
    workers: int | None = None,
) -> list[NDArray[np.bool_]]:
    """For each row of each file: does it differ enough from the version before it on the same page?"""
    limit = least(change)
    total, done = sum(map(len, facts)), 0
    found = []
    with pool_of(workers) as pool:
        names = [cache / f"{file_name(file, f'{_FORM} {change}')}.npz" if cache else None for file in files]
        kept = [from_cache(name) for name in names]
        waiting = [
            None if known else pool.submit(_judged, file, item.text, limit)
            for file, item, known in zip(files, facts, kept, strict=True)
        ]
        for name, known, task in zip(names, kept, waiting, strict=True):
            columns = known or {"steps": task.result()}  # type: ignore[union-attr]
            if not known:
                to_cache(name, columns)
            found.append(columns["steps"])
            done += len(columns["steps"])
            progress(done, total)
    return found


def _judged(file: Path, seal: NDArray[np.int64], limit: float | None) -> NDArray[np.bool_]:
    """The steps of one file."""
    table = pq.read_table(file, columns=["url", "time", "html"])
    url = table["url"].combine_chunks().dictionary_encode().indices.to_numpy()
    time = table["time"].to_numpy()
    order = np.lexsort((time, url))
    twice = (np.diff(url[order]) == 0) & (np.diff(time[order]) == 0)
    order = order[np.append(~twice, True)]  # of equal rows the last counts, as in the history
    same = np.diff(url[order]) == 0
    before, after = order[:-1][same], order[1:][same]
    changed = (seal[before] != seal[after]) & (seal[before] != 0) & (seal[after] != 0)
    steps = np.zeros(len(seal), bool)
    # A birth, a removal and a return always count.
    steps[after[(seal[before] == 0) != (seal[after] == 0)]] = True
    before, after = before[changed], after[changed]
    html = table["html"]
    for start in range(0, len(after), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        old = [_text(html[int(row)].as_py()) for row in before[part]]
        new = [_text(html[int(row)].as_py()) for row in after[part]]
        steps[after[part]] = _enough(old, new, limit)
    return steps


def _enough(old: list[str], new: list[str], limit: float | None) -> NDArray[np.bool_]:
    if limit is not None:
        return np.array([divergence(a, b) >= limit for a, b in zip(old, new, strict=True)], bool)
    known = Vocabulary()
    return significant_many(counts(old, known), counts(new, known), np.ones(len(old), bool))


def _text(html: bytes | str) -> str:
    try:
        tree = parse(html if isinstance(html, str) else decode(html).text)
    except Unreadable:
        return ""
    return text.visible(tree)[:_TEXT_BYTES]
