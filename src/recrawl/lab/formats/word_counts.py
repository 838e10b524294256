"""Hashed word counts of every version in an archive, extracted once and cached.

The facts of an archive hold the words of each page's first version only; prediction from content (spec L2) needs those
of all versions. Consecutive versions with the same text share one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from recrawl.columns import Flags, Ints
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.terms import BUCKETS, hashed, stacked
from recrawl.errors import Unreadable
from recrawl.extras import pq, sparse
from recrawl.lab.formats.cached_columns import file_name, from_cache, pool_of, to_cache
from recrawl.lab.formats.page_facts import Facts

_CACHE_FORMAT = "bags 1"
_BATCH = 2_000


def word_counts_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    cache: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    workers: int | None = None,
) -> tuple[sparse.csr_array, Ints]:
    """Text by word: counts; and the text number of every row of the concatenated files."""
    parts: list[sparse.csr_array] = []
    of_row: list[Ints] = []
    texts = done = 0
    total = sum(map(len, facts))
    for file, part in zip(files, facts, strict=True):
        first = np.append(True, (part.url[1:] != part.url[:-1]) | (part.text[1:] != part.text[:-1]))[: len(part)]
        name = cache / f"{file_name(file, _CACHE_FORMAT)}.npz" if cache else None
        cached = from_cache(name)
        if cached is None:
            bags = stacked(_count_file(file, first, workers))
            cached = {"data": bags.data, "indices": bags.indices, "indptr": bags.indptr}
            to_cache(name, cached)
        columns = (cached["data"], cached["indices"], cached["indptr"])
        parts.append(sparse.csr_array(columns, shape=(len(cached["indptr"]) - 1, BUCKETS)))
        of_row.append(texts + np.cumsum(first) - 1)
        texts += parts[-1].shape[0]
        done += len(part)
        progress(done, total)
    whole = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
    return whole, np.concatenate(of_row)


def texts_of(file: Path, selected: Flags, groups: list[int] | None = None) -> Iterator[str]:
    """The visible texts of the selected rows of a file or of its row groups, in order; empty for a removal."""
    offset = 0
    for batch in pq.ParquetFile(file).iter_batches(_BATCH, row_groups=groups, columns=["html"]):
        rows = np.flatnonzero(selected[offset : offset + len(batch)])
        offset += len(batch)
        for html in batch.column("html").take(rows).to_pylist():
            yield visible_text(html)


def visible_text(html: bytes | str | None) -> str:
    """The visible text of a page; empty if it cannot be parsed."""
    if html is None:
        return ""
    try:
        return text.visible(parse(html if isinstance(html, str) else decode(html).text))
    except Unreadable:
        return ""


def _count_file(file: Path, selected: Flags, workers: int | None) -> Iterator[sparse.csr_array]:
    """The counts of a file, batch by batch."""
    parquet = pq.ParquetFile(file)
    ends = np.cumsum([0, *(parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups))])
    groups = [selected[ends[n] : ends[n + 1]] for n in range(parquet.num_row_groups)]
    with pool_of(workers, len(groups), int(selected.sum())) as pool:
        yield from pool.map(_count_row_group, [file] * len(groups), range(len(groups)), groups)


def _count_row_group(file: Path, group: int, selected: Flags) -> sparse.csr_array:
    """The counts of one row group."""
    return hashed(texts_of(file, selected, [group]))
