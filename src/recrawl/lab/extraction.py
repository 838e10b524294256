"""The main content of pages whose sites are not known: what `recrawl lab extract` prints for each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from recrawl.characters import storable
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.tree.chunks import chunks_of
from recrawl.compare.tree.documents import ReadPage, read_html, read_roughly
from recrawl.compare.tree.main_content import main_blocks
from recrawl.compare.tree.renderers import markdown, plain_text
from recrawl.errors import RecrawlError, UsageError
from recrawl.extras import pa, pq
from recrawl.plugins import ERRORS

_COLUMNS = ("id", "url", "html")
_BATCH = 16
"""Pages that are in memory at the same time."""
_FAILURES = (*ERRORS, RecrawlError, MemoryError)
"""A hostile page exhausts the memory, or finds what nobody has thought of."""


def extract_pages(file: Path, latest: date) -> Iterator[dict[str, Any]]:
    """What is extracted of each row of a Parquet file with the columns id, url and html, in their order.

    A row always gives an object: a page that cannot be parsed gives its text without markup. Dates after `latest` are
    not believed.
    """
    try:
        opened = pq.ParquetFile(file)
        missing = [name for name in _COLUMNS if name not in opened.schema_arrow.names]
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"cannot read {file} as Parquet: {error}") from error
    if missing:
        raise UsageError(f"{file} has no column '{missing[0]}'; it needs id, url and html")
    for batch in opened.iter_batches(_BATCH, columns=list(_COLUMNS)):
        for identity, url, html in zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True):
            name = identity if isinstance(identity, str | int) else str(identity)
            yield {"id": name, **extract(html or b"", str(url or ""), latest)}


def extract(html: bytes | str, url: str, latest: date) -> dict[str, Any]:
    """What is extracted of one page; never fails.

    >>> page = b"<title>News</title><h1>News</h1><p>It will rain all day, and then it will snow."
    >>> found = extract(page, "https://example.org/", date(2024, 1, 1))
    >>> found["text"], found["title"], found["published"]
    ('It will rain all day, and then it will snow.', 'News', None)
    """
    text = decode(html).text if isinstance(html, bytes) else storable(html)
    try:
        return _rendered(read_html(text, url, latest))
    except _FAILURES:
        return _rendered(read_roughly(text, url))


def _rendered(page: ReadPage) -> dict[str, Any]:
    blocks = main_blocks(page.tree)
    stated = page.fields
    return {
        "text": storable(plain_text(blocks)),
        "markdown": storable(markdown(blocks)),
        "title": stated.title,
        "author": stated.author,
        "published": stated.published.isoformat() if stated.published else None,
        "modified": stated.modified.isoformat() if stated.modified else None,
        "language": stated.language,
        "chunks": [
            {"headings": list(chunk.headings), "kind": chunk.kind, "text": storable(chunk.text)}
            for chunk in chunks_of(blocks)
        ],
    }
