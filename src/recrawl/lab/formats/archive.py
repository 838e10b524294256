"""Archive Parquet: the history of web pages as three columns (design §3).

`url` string, `time` int64 (seconds since 1970, UTC), `html` binary, null where the page was removed; sorted by url,
then time. A page's first row is its state at the start of the window, or its birth. An archive is one file, a folder of
files, or several of either.

In memory a page is a number (its index among the sorted URLs) and a version is a row. The rows of page p are
`first[p] .. first[p + 1] - 1`. The bodies stay in Arrow buffers; only `html(row)` creates a bytes object.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.columns import Flags, Int32s, Ints
from recrawl.durable_files import replacing
from recrawl.errors import BadArchive
from recrawl.extras import pa, pc, pq

COLUMNS = ("url", "time", "html")
"""The columns of a file."""

_GROUP_ROWS = 4096
_GROUP_BYTES = 64 << 20


@cache
def schema() -> pa.Schema:
    """The columns of a file with their types."""
    return pa.schema(zip(COLUMNS, (pa.string(), pa.int64(), pa.binary()), strict=True))


@cache
def _in_memory() -> dict[str, Any]:
    """The types of the columns in memory: of any length."""
    return dict(zip(COLUMNS, (pa.large_string(), pa.int64(), pa.large_binary()), strict=True))


@dataclass(frozen=True, eq=False)
class Archive:
    """The versions of all pages. Built by `open`, or by `of` from a table in memory.

    >>> archive = Archive.of(pa.table({
    ...     "url": ["https://a.example/", "https://a.example/"], "time": [10, 20], "html": [b"one", b"two"]}))
    >>> archive.urls, archive.sites, archive.start, archive.end
    (['https://a.example/'], ['a.example'], 10, 20)
    >>> archive.row_at(0, 9.9), archive.row_at(0, 19), archive.html(archive.row_at(0, 20))
    (None, 0, b'two')
    """

    urls: list[str]
    """Per page, sorted."""
    times: Ints
    """Per row."""
    first: Ints
    """The first row of each page; the last entry is the number of rows."""
    removed: Flags
    """Per row: whether the page is gone from this time on."""
    sites: list[str]
    """The hosts, sorted."""
    site_of: Int32s
    """Per page: its index in `sites`."""
    column: pa.ChunkedArray
    """The bodies per row, null where removed."""
    _starts: Ints

    @classmethod
    def open(cls, paths: Sequence[Path]) -> Archive:
        """Read archives; sort their rows and drop duplicates."""
        files = [file for path in paths for file in files_of(path)]
        if not files:
            raise BadArchive("no archive given; use a Parquet file or a folder of them")
        return cls._of(pa.concat_tables([_read(file) for file in files]), ", ".join(map(str, paths)))

    @classmethod
    def of(cls, table: pa.Table) -> Archive:
        """Build an archive from a table."""
        return cls._of(checked(table, "the table"), "the table")

    @classmethod
    def _of(cls, table: pa.Table, name: str) -> Archive:
        if table.num_rows == 0:
            raise BadArchive(f"{name} has no rows")
        table, pages, names = _ordered(table)
        urls: list[str] = names.to_pylist()
        sites, site_of = _sites(urls)
        html = table["html"]
        lengths = np.array([len(chunk) for chunk in html.chunks], dtype=np.int64)
        return cls(
            urls=urls,
            times=table["time"].to_numpy(),
            first=np.append(np.flatnonzero(np.diff(pages, prepend=-1)), len(pages)).astype(np.int64),
            removed=html.is_null().to_numpy(),
            sites=sites,
            site_of=site_of,
            column=html,
            _starts=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        )

    @property
    def start(self) -> int:
        """The time of the earliest row."""
        return int(self.times.min())

    @property
    def end(self) -> int:
        """The time of the latest row."""
        return int(self.times.max())

    @property
    def page_of(self) -> Ints:
        """Per row: its page."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def find(self, url: str) -> int | None:
        """Return the page with this URL."""
        at = bisect_left(self.urls, url)
        return at if at < len(self.urls) and self.urls[at] == url else None

    def row_at(self, page: int, t: float) -> int | None:
        """Return the page's row at a time, None before its birth; `removed[row]` tells whether it is gone."""
        low, high = self.first[page], self.first[page + 1]
        row = int(low + np.searchsorted(self.times[low:high], t, side="right") - 1)
        return row if row >= low else None

    def rows_at(self, t: float) -> Ints:
        """`row_at` for every page at once, -1 before its birth."""
        begun = np.add.reduceat(self.times <= t, self.first[:-1], dtype=np.int64)
        return np.where(begun > 0, self.first[:-1] + begun - 1, -1)

    def pages_at(self, t: float) -> Ints:
        """Return the pages that exist at a time."""
        rows = self.rows_at(t)
        return np.flatnonzero((rows >= 0) & ~self.removed[rows])

    def html(self, row: int) -> bytes:
        """Return the body of a row, empty for a removal."""
        chunk = int(np.searchsorted(self._starts, row, side="right")) - 1
        body: bytes | None = self.column.chunk(chunk)[row - int(self._starts[chunk])].as_py()
        return body or b""

    def bodies(self) -> Iterator[tuple[int, pa.Array]]:
        """Yield the bodies in order, chunk by chunk, each with the number of its first row."""
        yield from zip(self._starts.tolist(), self.column.chunks, strict=False)

    def __len__(self) -> int:
        """Number of pages."""
        return len(self.urls)


def write(path: Path, urls: Any, times: Any, html: Any) -> int:
    """Write an archive from rows in any order; return the number of rows."""
    table = checked(pa.table({"url": urls, "time": pa.array(times, pa.int64()), "html": html}), "the table")
    return write_batches(path, _ordered(table)[0].to_batches(max_chunksize=_GROUP_ROWS))


def write_batches(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write sorted rows in row groups; the file appears only once it is complete."""
    rows = 0
    with (
        replacing(path) as part,
        pq.ParquetWriter(
            part,
            schema(),
            compression="zstd",
            compression_level=3,
            # A dictionary or statistics of whole pages would only take space.
            use_dictionary=["url"],
            write_statistics=["url", "time"],
        ) as writer,
    ):
        for batch in batches:
            # Split before the cast: 32-bit offsets address at most 2 GB per piece.
            for piece in _pieces(batch):
                writer.write_batch(piece.cast(schema()))
            rows += batch.num_rows
    return rows


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or (batch.num_rows <= _GROUP_ROWS and batch.nbytes <= _GROUP_BYTES):
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def files_of(path: Path) -> list[Path]:
    """Return the Parquet files of a path: the file itself, or those in the folder."""
    if path.is_dir():
        found = sorted(path.rglob("*.parquet"))
        if not found:
            raise BadArchive(f"{path} contains no .parquet file")
        return found
    if not path.is_file():
        raise BadArchive(f"{path} does not exist")
    return [path]


def urls_of(file: Path) -> list[str]:
    """Return the distinct URLs of a file, without reading its bodies."""
    try:
        table = pq.read_table(file, columns=["url"])
    except (pa.ArrowException, OSError) as error:
        raise BadArchive(f"cannot read {file} as Parquet: {error}") from error
    urls: list[str] = table["url"].unique().to_pylist()
    return urls


def _read(path: Path) -> pa.Table:
    try:
        file = pq.ParquetFile(path)
        present = [name for name in COLUMNS if name in file.schema_arrow.names]
        return checked(file.read(columns=present), str(path))
    except (pa.ArrowException, OSError) as error:
        raise BadArchive(f"cannot read {path} as Parquet: {error}") from error


def checked(table: pa.Table, name: str) -> pa.Table:
    """Return the three columns with their types in memory; raise `BadArchive` if one is missing or of a wrong type."""
    columns = []
    for column, kind in _in_memory().items():
        if column not in table.column_names:
            raise BadArchive(f"{name} has no column '{column}'; an archive has url, time and html")
        values = table[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if not _fits(column, values.type):
            raise BadArchive(f"{name}: column '{column}' is {values.type}, not {schema().field(column).type}")
        if column != "html" and values.null_count:
            raise BadArchive(f"{name}: column '{column}' has {values.null_count} empty rows")
        columns.append(values.cast(kind))
    return pa.table(columns, names=list(_in_memory()))


def _fits(column: str, kind: pa.DataType) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if column == "url":
        return bool(text)
    if column == "time":
        return bool(pa.types.is_integer(kind))
    return bool(text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind))


def _ordered(table: pa.Table) -> tuple[pa.Table, Ints, pa.Array]:
    """Return the table sorted by url and time without duplicates, each row's page, and the pages' URLs."""
    coded = table["url"].combine_chunks().dictionary_encode()
    by_name = pc.sort_indices(coded.dictionary).to_numpy()
    place = np.empty(len(by_name), dtype=np.int64)
    place[by_name] = np.arange(len(by_name))
    pages = place[coded.indices.to_numpy()]
    times = table["time"].to_numpy()
    order = np.lexsort((times, pages))
    pages, times = pages[order], times[order]
    last = np.append((pages[1:] != pages[:-1]) | (times[1:] != times[:-1]), True)
    order, pages = order[last], pages[last]
    if len(order) < table.num_rows or not np.array_equal(order, np.arange(len(order))):
        table = table.take(pa.array(order))
    return table, pages, coded.dictionary.take(pa.array(by_name))


def _sites(urls: list[str]) -> tuple[list[str], Int32s]:
    hosts = []
    for url in urls:
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0].lower()
        if scheme not in ("http", "https") or not host:
            raise BadArchive(f"'{url[:200]}' is not an http or https URL")
        hosts.append(host)
    names, inverse = np.unique(np.array(hosts, dtype=object), return_inverse=True)
    return names.tolist(), inverse.astype(np.int32)
