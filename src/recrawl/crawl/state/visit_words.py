"""The words of the versions that recorded visits have found, for policies that learn from words (see `learn.experts`).

They are read from the archive, about 1 ms each, and only where a visit found a change: elsewhere the words are those of
the version before. A body that cannot be read has no words.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recrawl.book import PageWords
from recrawl.columns import Ints
from recrawl.compare.terms import hashed
from recrawl.crawl.visits.stored_text import read_page
from recrawl.errors import RecrawlError
from recrawl.model import Outcome
from recrawl.record.storage import Storage
from recrawl.record.store import Columns


def words_of_visits(repository: Storage, visits: Columns, rows: Ints) -> PageWords:
    """The words of the pages that these visits found changed."""
    rows = rows[(visits["outcome"][rows] == Outcome.CHANGED) & (visits["version"][rows] >= 0)]
    rows = rows[np.argsort(visits["page"][rows])]
    versions = visits["version"][rows].tolist()
    counts = hashed(_texts(repository, versions))
    return PageWords(visits["page"][rows], counts.indptr.astype(np.int64), counts.indices, counts.data)


def _texts(repository: Storage, versions: list[int]) -> Iterator[str]:
    for number in versions:
        version = repository.store.versions.get(number)
        try:
            yield "" if version is None else _text(repository.body(version))
        except (OSError, ValueError, KeyError, RecrawlError):
            yield ""


def _text(stored: tuple[int, tuple[tuple[str, str], ...], bytes]) -> str:
    _, headers, body = stored
    return read_page(body, headers)[0]
