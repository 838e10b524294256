"""The words of every version of an archive, counted and hashed, read out of the pages once and kept.

The facts of an archive hold the words of each page's first version only. Prediction from content (spec L2) needs those
of all of them. Versions that follow each other with the same text share one row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy import sparse

from recrawl.columns import Flags, Ints
from recrawl.compare import text
from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.compare.terms import BUCKETS, hashed, stacked
from recrawl.errors import Unreadable
from recrawl.lab.formats.page_facts import Facts, file_name, from_cache, to_cache

_FORM = "bags 1"
_AT_ONCE = 2_000


def bags_of(
    files: Sequence[Path],
    facts: Sequence[Facts],
    cache: Path | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[sparse.csr_array, Ints]:
    """Text by word: counts; and for every row of the files, one after another, its text's number."""
    parts: list[sparse.csr_array] = []
    of_row: list[Ints] = []
    known = done = 0
    total = sum(map(len, facts))
    for file, part in zip(files, facts, strict=True):
        first = np.append(True, (part.url[1:] != part.url[:-1]) | (part.text[1:] != part.text[:-1]))[: len(part)]
        name = cache / f"{file_name(file, _FORM)}.npz" if cache else None
        kept = from_cache(name)
        if kept is None:
            bags = stacked(_counted(file, first))
            kept = {"data": bags.data, "indices": bags.indices, "indptr": bags.indptr}
            to_cache(name, kept)
        columns = (kept["data"], kept["indices"], kept["indptr"])
        parts.append(sparse.csr_array(columns, shape=(len(kept["indptr"]) - 1, BUCKETS)))
        of_row.append(known + np.cumsum(first) - 1)
        known += parts[-1].shape[0]
        done += len(part)
        progress(done, total)
    whole = parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
    return whole, np.concatenate(of_row)


def texts_of(file: Path, wanted: Flags) -> Iterator[str]:
    """The visible texts of the wanted rows of a file, in order; of a removal, nothing."""
    before = 0
    for batch in pq.ParquetFile(file).iter_batches(_AT_ONCE, columns=["html"]):
        here = np.flatnonzero(wanted[before : before + len(batch)])
        before += len(batch)
        for html in batch.column("html").take(here).to_pylist():
            yield visible(html)


def visible(html: bytes | str | None) -> str:
    """The text of a page; of what cannot be read, nothing."""
    if html is None:
        return ""
    try:
        return text.visible(parse(html if isinstance(html, str) else decode(html).text))
    except Unreadable:
        return ""


def _counted(file: Path, wanted: Flags) -> Iterator[sparse.csr_array]:
    """The counts of a file, batch by batch, on all cores."""
    parquet = pq.ParquetFile(file)
    ends = np.cumsum([0, *(parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups))])
    groups = [wanted[ends[n] : ends[n + 1]] for n in range(parquet.num_row_groups)]
    with ProcessPoolExecutor(os.cpu_count() or 1, get_context("spawn")) as pool:
        yield from pool.map(_group, [file] * len(groups), range(len(groups)), groups)


def _group(file: Path, group: int, wanted: Flags) -> sparse.csr_array:
    """The counts of one row group."""

    def texts() -> Iterator[str]:
        before = 0
        for batch in pq.ParquetFile(file).iter_batches(_AT_ONCE, row_groups=[group], columns=["html"]):
            here = np.flatnonzero(wanted[before : before + len(batch)])
            before += len(batch)
            yield from map(visible, batch.column("html").take(here).to_pylist())

    return hashed(texts())
