"""`recrawl export`: write a URL list or a Parquet archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from recrawl.cli.terminal.output import AsJson, as_json, note
from recrawl.cli.terminal.session import reading
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import SCHEMA, write_batches
from recrawl.record.storage import Storage

EXAMPLE = "Example: recrawl export history.parquet"
_BATCH_ROWS = 256


def command(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="File to write: .parquet for all versions, otherwise a URL list; - for standard output."),
    ],
    json: AsJson = False,
) -> None:
    """Export all versions of all pages as a Parquet archive (url, time, html), or the URLs as a list."""
    if not file.parent.is_dir():
        raise UsageError(f"cannot write {file}: folder {file.parent} does not exist")
    with reading(ctx) as repository:
        if file.suffix == ".parquet":
            rows = write_batches(file, _batches(repository))
        else:
            urls = list(repository.store.pages.visitable_urls())
            text = "".join(f"{url}\n" for url in urls)
            if str(file) == "-":
                as_json([{"url": url} for url in urls]) if json else sys.stdout.write(text)
                return
            file.write_text(text, encoding="utf-8")
            rows = len(urls)
    if json:
        as_json({"file": str(file), "rows": rows})
    else:
        note(f"wrote {rows:,} rows to {file}")


def _batches(repository: Storage) -> Iterator[pa.RecordBatch]:
    """All versions and removals, by URL and time, in batches."""
    store = repository.store
    rows: list[tuple[str, int, bytes | None]] = []
    for page, url in store.pages.visited():
        history: list[tuple[float, bytes | None]] = [
            (version.at, repository.body(version)[2]) for version in store.versions.of_page(page)
        ]
        history += [(at, None) for at in store.visits.removals(page)]
        rows += [(url, int(at), body) for at, body in sorted(history, key=lambda pair: pair[0])]
        if len(rows) >= _BATCH_ROWS:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[str, int, bytes | None]]) -> pa.RecordBatch:
    urls, times, bodies = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(urls, pa.string()), pa.array(times, pa.int64()), pa.array(bodies, pa.large_binary())],
        names=SCHEMA.names,
    )
