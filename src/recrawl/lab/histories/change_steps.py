"""Which versions differ enough from the one before, by a level of change (see `compare.levels`).

Each step counts by itself: many small steps do not add up to a large one. Only steps that change the text are tested,
but for links, which are known from the facts; the results are cached beside the facts. In an archive, a link is new
(spec C3) where no version before it, on any page of the archive, had a link to its target, and where its target is no
page that was there before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Ints
from recrawl.compare.divergence import distance, divergence
from recrawl.compare.levels import FILE_PREFIXES, NAMES, ChangeLevel, parse_level
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.significance import significant_many
from recrawl.compare.terms import Vocabulary, counts
from recrawl.discover.urls import canonical, key
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

    >>> step_level("divergence:0.1").least, step_level("new-link").kind
    (0.1, 'new-link')
    """
    if change == "text" or change == "raw":  # noqa: PLR1714
        raise UsageError(f"every step counts for '{change}'")
    level = (
        parse_level(change) if change.startswith(FILE_PREFIXES) else None
    )  # its error says what is wrong with a file
    with contextlib.suppress(UsageError):
        level = level or parse_level(change)
    if level is None or level.plugin:
        raise UsageError(f"invalid change '{change}'; use {NAMES.replace('text,', 'text, raw,')}")
    return level


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
    level = step_level(change)
    if level.of_links:
        return link_steps(facts, known=level.kind == "new-link")
    total, done = sum(map(len, facts)), 0
    found = []
    named = f"{_CACHE_FORMAT} {level.kind} {level.queries}" if level.queries else f"{_CACHE_FORMAT} {change}"
    with pool_of(workers, len(files), total) as pool:
        names = [cache / f"{file_name(file, named)}.npz" if cache else None for file in files]
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
    if level.queries:
        return np.array([level.differs_in_relevance(a, b) for a, b in zip(old, new, strict=True)], bool)
    if level.kind == "words":
        return np.array([distance(a, b)[0] >= level.least for a, b in zip(old, new, strict=True)], bool)
    known = Vocabulary()
    return significant_many(counts(old, known), counts(new, known), np.ones(len(old), bool))


def link_steps(facts: Sequence[Facts], *, known: bool) -> list[Flags]:
    """Mark the rows of each file that bring a link: to an unknown page (`known`), or one that the page did not have."""
    shift = np.cumsum([0, *(len(part.link_start) - 1 for part in facts[:-1])])
    lists = np.concatenate([part.links + more for part, more in zip(facts, shift, strict=True)]).astype(np.int64)
    lengths = np.concatenate([np.diff(part.link_start) for part in facts])
    names, target = np.unique(np.concatenate([part.link_key for part in facts]), return_inverse=True)
    urls, page = np.unique(np.concatenate([part.url for part in facts]), return_inverse=True)
    time = np.concatenate([part.time for part in facts])
    removed = np.concatenate([part.text for part in facts]) == 0
    order = np.lexsort((np.arange(len(time)), time, page))
    before = np.full(len(time), -1)
    before[order[1:]] = np.where(np.diff(page[order]) == 0, order[:-1], -1)
    there = (before >= 0) & ~removed & ~removed[before]
    steps = (before >= 0) & (removed != removed[before])  # a removal and a reappearance always count
    steps |= before < 0
    owner = np.repeat(np.arange(len(lengths)), lengths)
    if known:
        steps[there] |= _brings_unknown(lists, owner, target, time, page, urls, names)[there]
        return np.split(steps, np.cumsum([len(part) for part in facts])[:-1])
    rows = np.flatnonzero(there)
    rows = rows[lists[rows] != lists[before[rows]]]
    pairs, pair = np.unique(np.stack((lists[before[rows]], lists[rows])), axis=1, return_inverse=True)
    start = np.concatenate(([0], np.cumsum(lengths)))
    adds = [
        bool(np.setdiff1d(target[start[b] : start[b + 1]], target[start[a] : start[a + 1]]).size) for a, b in pairs.T
    ]
    steps[rows] |= np.array(adds, bool)[pair.reshape(-1)]
    return np.split(steps, np.cumsum([len(part) for part in facts])[:-1])


def _brings_unknown(
    lists: Ints, owner: Ints, target: Ints, time: Ints, page: Ints, urls: NDArray[Any], names: Ints
) -> Flags:
    """Per row: whether one of its links leads to what no earlier row linked to and what was no page before."""
    never = np.iinfo(np.int64).max
    first_of_list = np.full(max(int(lists.max(initial=-1)), int(owner.max(initial=-1))) + 1, never)
    np.minimum.at(first_of_list, lists, time)
    first_of_target = np.full(len(names), never)
    np.minimum.at(first_of_target, target, first_of_list[owner])
    born = np.full(len(urls), never)
    np.minimum.at(born, page, time)
    for number, url in enumerate(urls.tolist()):
        clean = canonical(url)
        place = int(np.searchsorted(names, key(clean))) if clean else len(names)
        if clean and place < len(names) and names[place] == key(clean):
            first_of_target[place] = min(first_of_target[place], born[number])
    newest = np.full(len(first_of_list), np.iinfo(np.int64).min)
    np.maximum.at(newest, owner, first_of_target[target])
    return np.asarray(newest[lists] == time)


def _text(html: bytes | str) -> str:
    try:
        tree = parse(html if isinstance(html, str) else decode(html).text)
    except Unreadable:
        return ""
    return text.visible(tree)[:_MAX_TEXT]
