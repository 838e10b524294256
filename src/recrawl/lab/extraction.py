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
        schema = opened.schema_arrow
        missing = [name for name in _COLUMNS if name not in schema.names]
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"cannot read {file} as Parquet: {error}") from error
    if missing:
        raise UsageError(f"{file} has no column '{missing[0]}'; it needs id, url and html")
    kind = _value_type(schema.field("html").type)
    if not (_is_text(kind) or _is_bytes(kind) or pa.types.is_null(kind)):
        raise UsageError(f"column 'html' of {file} holds {kind}; it must hold text or bytes")
    for batch in opened.iter_batches(_BATCH, columns=list(_COLUMNS)):
        for identity, url, html in zip(*(_values(batch.column(name)) for name in _COLUMNS), strict=True):
            name = _shown(identity)
            known = name if name is None or isinstance(name, str | int) else str(name)
            yield {"id": known, **extract(html or b"", str(_shown(url) or ""), latest)}


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _values(column: Any) -> list[Any]:
    """The values of a column; what is called text and is no UTF-8 as bytes."""
    if not _is_text(_value_type(column.type)):
        return list(column.to_pylist())
    return [_text_or_bytes(value) for value in column.cast(pa.large_binary()).to_pylist()]


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    try:
        return value if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _shown(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


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
