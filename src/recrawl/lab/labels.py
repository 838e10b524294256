"""Judge given changes of an archive at every level (bytes, text, content), to compare the verdicts with labels.

A pair names a page and the times of two versions. Only what the archive held up to the second time is used.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from recrawl.compare.content.judge import NOTHING, ContentChange
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.errors import Unreadable, UsageError
from recrawl.lab.formats.archive import Archive, files_of, urls_of
from recrawl.lab.formats.page_facts import pool_of
from recrawl.lab.histories.content_walk import ContentWalk

_COLUMNS = ("url", "before", "after")


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Read a file of tab-separated pairs with a header; needs the columns url, before and after (seconds UTC)."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    for number, row in enumerate(rows, 2):
        for name in _COLUMNS:
            if row.get(name) is None:
                raise UsageError(f"{path}, line {number}: no column '{name}'; a pair has url, before and after")
        for name in ("before", "after"):
            try:
                row[name] = int(row[name])
            except ValueError:
                raise UsageError(f"{path}, line {number}: {name} '{row[name]}' is not a time in seconds") from None
    return rows


def judge_pairs(
    paths: Sequence[Path],
    pairs: Sequence[Mapping[str, Any]],
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    workers: int | None = 1,
) -> list[dict[str, Any]]:
    """Judge each pair; returns them in their order, with bytes, text, content, content_share and significance."""
    found: dict[int, dict[str, Any]] = {}
    groups = _by_site([file for path in paths for file in files_of(path)], {site_of(pair["url"]) for pair in pairs})
    with pool_of(workers, len(groups)) as pool:
        tasks = [
            pool.submit(_judge_group, files, {i: pair for i, pair in enumerate(pairs) if site_of(pair["url"]) in sites})
            for sites, files in groups
        ]
        for task in as_completed(tasks):
            found |= task.result()
            progress(len(found), len(pairs))
    missing = [pair["url"] for i, pair in enumerate(pairs) if i not in found]
    if missing:
        raise UsageError(
            f"no archive has the page {missing[0]}; {len(missing)} of {len(pairs)} pairs name unknown pages"
        )
    return [{**pair, **found[i]} for i, pair in enumerate(pairs)]


def _judge_group(files: Sequence[Path], pairs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Judge the pairs whose sites these files hold, in the order of time."""
    archive = Archive.open(files)
    walk = ContentWalk(archive)
    order = sorted(pairs, key=lambda i: int(pairs[i]["after"]))
    pages = {i: archive.find(pairs[i]["url"]) for i in order}
    return {i: _verdict(archive, walk, page, pairs[i]) for i, page in pages.items() if page is not None}


def _verdict(archive: Archive, walk: ContentWalk, page: int, pair: Mapping[str, Any]) -> dict[str, Any]:
    before, after = archive.row_at(page, int(pair["before"])), archive.row_at(page, int(pair["after"]))
    there = [row is not None and not archive.removed[row] for row in (before, after)]
    if before is None or after is None or not all(there):
        differs = there[0] != there[1]
        return _levels(differs, differs, ContentChange(differs, float(differs), float(differs)))
    old, new = archive.html(before), archive.html(after)
    if old == new:
        return _levels(False, False, NOTHING)
    differs = _text(old) != _text(new)
    return _levels(True, differs, walk.judge(page, before, after) if differs else NOTHING)


def _levels(bytes_: bool, text_: bool, change: ContentChange) -> dict[str, Any]:
    return {
        "bytes": bytes_,
        "text": text_,
        "content": change.content,
        "content_share": round(change.share, 6),
        "significance": round(change.significance, 6),
    }


def _text(body: bytes) -> str | bytes:
    try:
        return text.visible(parse(decode(body).text))
    except Unreadable:
        return body


def site_of(url: str) -> str:
    """The host of a URL."""
    return str(url).partition("://")[2].partition("/")[0].lower()


def _by_site(files: Sequence[Path], wanted: set[str]) -> list[tuple[set[str], list[Path]]]:
    """Group the files that hold wanted sites, so that each site is in one group; returns sites and files."""
    groups: list[tuple[set[str], list[Path]]] = []
    for file in files:
        sites = {site_of(url) for url in urls_of(file)}
        if not sites & wanted:
            continue
        members = [file]
        for group in [group for group in groups if group[0] & sites]:
            groups.remove(group)
            sites, members = sites | group[0], group[1] + members
        groups.append((sites, members))
    return groups
