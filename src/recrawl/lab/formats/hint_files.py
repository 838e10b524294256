"""Hint files: what the sitemaps and feeds of sites said over time, one Parquet file or more.

Columns: `source` (the address of the sitemap or feed), `kind` (sitemap, feed; gone if the whole source was removed),
`time` (when it was published, seconds since 1970 UTC), `url` (a page), `lastmod` (the date as written; null for none),
`listed` (false: the entry is gone). A row only where an entry is new, says something else, or is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recrawl.columns import Flags, Floats, Int32s
from recrawl.discover.dates import parse_date
from recrawl.errors import BadArchive, UsageError
from recrawl.extras import pa, pq

COLUMNS = ("source", "kind", "time", "url", "lastmod", "listed")
KINDS = {"sitemap": "lastmod", "feed": "feed"}
"""From the kinds of sources to the kinds of hints."""


@dataclass(frozen=True, slots=True, eq=False)
class HintEvents:
    """Entries of sitemaps and feeds, in order of publication; sources and URLs are numbers."""

    sources: list[str]
    kinds: list[str]
    """Per source: its kind of hint, `lastmod` or `feed`."""
    urls: list[str]
    source: Int32s
    url: Int32s
    time: Floats
    date: Floats
    """The date that the entry names, in seconds since 1970; nan for none, or one that cannot be read."""
    listed: Flags


def hint_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, or the file itself."""
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else [folder]
    if not files or not all(file.is_file() for file in files):
        raise UsageError(f"there are no hint files in {folder}; use a Parquet file, or a folder of them")
    return files


def hint_digest(folder: Path) -> str:
    """Return a digest of the files' content."""
    digest = hashlib.blake2b(digest_size=16)
    for file in hint_files(folder):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def read_hints(folder: Path) -> HintEvents:
    """Read hint files; raise a BadArchive if one is not a hint file."""
    table = pa.concat_tables([_read(file) for file in hint_files(folder)])
    if not len(table):
        raise BadArchive(f"the hint files in {folder} have no rows")
    names, source = np.unique(np.array(table["source"].to_pylist(), object), return_inverse=True)
    urls, url = np.unique(np.array(table["url"].to_pylist(), object), return_inverse=True)
    kind_of = {
        name: KINDS[kind]
        for name, kind in zip(table["source"].to_pylist(), table["kind"].to_pylist(), strict=True)
        if kind in KINDS
    }
    time = table["time"].to_numpy().astype(np.float64)
    order = np.argsort(time, kind="stable")
    return HintEvents(
        sources=names.tolist(),
        kinds=[kind_of.get(name, "lastmod") for name in names],
        urls=urls.tolist(),
        source=source[order].astype(np.int32),
        url=url[order].astype(np.int32),
        time=time[order],
        date=_dates(table["lastmod"].to_pylist())[order],
        listed=table["listed"].to_numpy(zero_copy_only=False)[order].astype(bool),
    )


def _read(file: Path) -> pa.Table:
    try:
        table = pq.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadArchive(f"cannot read {file}: {error}") from error
    lacking = [name for name in COLUMNS if name not in table.column_names]
    if lacking:
        raise BadArchive(f"{file} is not a hint file: it lacks the column {lacking[0]}")
    return table.select(list(COLUMNS))


def _dates(written: Sequence[str | None]) -> Floats:
    read = (None if text is None else parse_date(text) for text in written)
    return np.array([np.nan if date is None else date for date in read], np.float64)
