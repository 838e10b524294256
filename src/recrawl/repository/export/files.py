"""Write an export: the name of the file says in which format, and it appears only once it is complete.

.parquet             all versions of all pages (url, time, html), or a table of pages, visits, versions or changes
.warc.gz             the records of the archive
.wacz                records, index and page list in one file
.cdxj                the index of the records
any other            a list of URLs
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from recrawl.durable_files import replacing
from recrawl.errors import UnknownName, UsageError
from recrawl.extras import pq
from recrawl.record.captures import captures
from recrawl.repository.export import cdxj, wacz, warc
from recrawl.repository.lookup import When, seconds
from recrawl.repository.reader import Reader
from recrawl.repository.results.rows import Rows

Table = Literal["pages", "visits", "versions", "changes"]
TABLES: tuple[Table, ...] = ("pages", "visits", "versions", "changes")


def write(
    repository: Reader, file: Path, *, since: When | None, table: Table | None, left_out: Callable[[str], None]
) -> int:
    """Write the file; returns the number of its rows, records or URLs. See `Repository.export`."""
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}")
    if table is not None and file.suffix != ".parquet":
        raise UsageError(f"--table writes Parquet: use a name that ends in .parquet instead of {file.name}")
    begin = float("-inf") if since is None else seconds(since, repository.now())
    storage = repository.storage
    if file.suffix == ".parquet" and table is None:
        from recrawl.repository.export import histories  # lazy: loads pyarrow

        return histories.write(storage, file, begin, left_out)
    with replacing(file) as part:
        if table is not None:
            return _table(repository, table, since, part)
        if file.suffix == ".wacz":
            versions = repository.versions(since=since)
            return wacz.write(storage, captures(storage, begin), versions, part, repository.now())
        if file.name.endswith(".warc.gz"):
            return warc.write(storage, captures(storage, begin), part)
        if file.suffix == ".cdxj":
            return cdxj.write(captures(storage, begin), part)
        return _list(repository, begin, part)


def _table(repository: Reader, table: Table, since: When | None, file: Path) -> int:
    match table:
        case "pages":
            if since is not None:
                raise UsageError("--since does not apply to the table of pages; use visits, versions or changes")
            return _write_table(repository.pages(), file)
        case "visits":
            return _write_table(repository.visits(since=since), file)
        case "versions":
            return _write_table(repository.versions(since=since), file)
        case "changes":
            return _write_table(repository.changes(since=since), file)
        case _:
            raise UnknownName("table", table, TABLES)


def _write_table(rows: Rows[Any], file: Path) -> int:
    """Write a table with a column for each field; returns the number of rows."""
    written = 0
    with pq.ParquetWriter(file, rows.schema(), compression="zstd") as writer:
        for batch in rows.batches():
            writer.write_batch(batch)
            written += batch.num_rows
    return written


def _list(repository: Reader, since: float, file: Path) -> int:
    """One URL per line; with `since`, those of pages that have a version since then."""
    urls = sorted({version.url for version in repository.versions(since=since)}) if since > 0 else repository.urls()
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for count, url in enumerate(urls, 1):  # noqa: B007
            out.write(f"{url}\n")
    return count
