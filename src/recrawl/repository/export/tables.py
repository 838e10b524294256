"""Pages, visits, versions and changes as Parquet tables for data frames, written in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recrawl.extras import pq
from recrawl.repository.results.rows import Rows


def write(rows: Rows[Any], file: Path) -> int:
    """Write a table with a column for each field; returns the number of rows."""
    written = 0
    with pq.ParquetWriter(file, rows.schema(), compression="zstd") as writer:
        for batch in rows.batches():
            writer.write_batch(batch)
            written += batch.num_rows
    return written
