"""`recrawl export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from recrawl.cli.output import AsJson, as_json, note
from recrawl.cli.session import reading
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import SCHEMA, write_batches
from recrawl.model import Outcome
from recrawl.record import questions
from recrawl.record.storage import Storage

EXAMPLE = "Example: recrawl export history.parquet"
_ROWS = 256


def command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to: .parquet for all versions, else a URL list; - for stdout.")],
    json: AsJson = False,
) -> None:
    """Write all versions of all pages as a Parquet archive (url, time, html), or the addresses as a list."""
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}")
    with reading(ctx) as repository:
        if file.suffix == ".parquet":
            rows = write_batches(file, _batches(repository))
        else:
            urls = list(_live(repository))
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


def _live(repository: Storage) -> Iterator[str]:
    for (url,) in repository.store.db.execute("SELECT url FROM pages WHERE state IN (0, 1, 2) ORDER BY url"):
        yield url


def _batches(repository: Storage) -> Iterator[pa.RecordBatch]:
    """All versions and removals, by address and time, a few at a time."""
    db = repository.store.db
    rows: list[tuple[str, int, bytes | None]] = []
    for page, url in db.execute("SELECT id, url FROM pages WHERE visits > 0 ORDER BY url").fetchall():
        history: list[tuple[float, bytes | None]] = [
            (version.at, repository.body(version)[2]) for version in questions.versions(db, page)
        ]
        gone = db.execute("SELECT at FROM visits WHERE page = ? AND outcome = ?", (page, int(Outcome.GONE)))
        history += [(at, None) for (at,) in gone]
        rows += [(url, int(at), body) for at, body in sorted(history, key=lambda pair: pair[0])]
        if len(rows) >= _ROWS:
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
