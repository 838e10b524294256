"""Hints as rows of the store, as arrays of the book, and packed into the record of a visit.

The store holds for each page and kind the last claim of its source, and the number of signals since the page's last
visit. A visit stores them packed into one integer, so that trust in sources can be learned again from visits alone.
Each kind has one byte, in the order of `KINDS`: the number of signals (at most 15), and the share of the time since the
previous visit that the source covers (in 15ths).

Sources with dates cover the time until they were last read; pushes cover the time until now. `changefreq` and the
meta-updates tag are promises: they signal when the promised interval has passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from recrawl.book import Book, Hints
from recrawl.columns import Floats, Ints, unique
from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Columns, Store

KINDS = ("lastmod", "changefreq", "feed", "updates", "indexnow", "websub")
"""The kinds of hints by their number; add new ones at the end."""
PROMISES = frozenset({"changefreq", "updates"})
PUSHES = frozenset({"indexnow", "websub"})
_MAX_NIBBLE = 15
"""The largest number in four bits."""


def hints_for(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> Hints:
    """The hints at the start of a cycle, also for a resumed one (see `book_columns`)."""
    path = hints_file(repository)
    kept = read_arrays(path)
    if kept is not None and int(kept["cycle"]) == cycle.id:
        kinds = tuple(str(kind) for kind in kept["kinds"])
        return Hints(kinds, kept["signals"], kept["claimed"], kept["until"]).first(len(book))
    hints = _as_arrays(repository.store.hints.columns(KINDS), len(book), book.now)
    if begin:
        head: Arrays = {"cycle": np.array(cycle.id), "kinds": np.array(hints.kinds, "U16")}
        columns: Arrays = {"signals": hints.signals, "claimed": hints.claimed, "until": hints.until}
        write_arrays(path, {**head, **columns})
    return hints


def hints_file(repository: Storage) -> Path:
    """The file with the hints at the start of the cycle."""
    return repository.folder / "models" / "hints-of-cycle.npz"


def pack_hints(store: Store, pages: Iterable[int], now: float) -> dict[int, int]:
    """By page, the hints since its last visit, for the record of its next visit; pages without hints are left out."""
    rows = store.hints.columns(KINDS, pages)
    if not len(rows["page"]):
        return {}
    page, kind, signals, until = _read(rows, now)
    gap = np.clip(now - rows["last"][rows["kind"] >= 0], 1.0, 1e10)
    share = np.ceil(_MAX_NIBBLE * np.clip(1 - (now - until) / gap, 0, 1)).astype(np.int64)
    bits = (np.minimum(signals, _MAX_NIBBLE) + 16 * share) << (8 * kind)
    found: dict[int, int] = {}
    for number, value in zip(page.tolist(), bits.tolist(), strict=True):
        found[number] = found.get(number, 0) | value
    return found


def unpack_hints(pages: Ints, bits: Ints, book: Book) -> Hints:
    """The hints packed in visits, for the book before these visits."""
    kinds = tuple(kind for place, kind in enumerate(KINDS) if ((bits >> (8 * place)) & 255).any())
    hints = _empty_hints(kinds, len(book))
    gap = np.clip(book.now - book.last_visit[pages], 1.0, 1e10)
    for row, kind in enumerate(kinds):
        byte = (bits >> (8 * KINDS.index(kind))) & 255
        share = (byte >> 4) / _MAX_NIBBLE
        hints.signals[row, pages] = byte & _MAX_NIBBLE
        hints.until[row, pages] = np.where(share > 0, book.now - (1 - share) * gap, -np.inf)
    return hints


def _as_arrays(rows: Columns, pages: int, now: float) -> Hints:
    """Rows as arrays, kind by page."""
    page, kind, signals, until = _read(rows, now)
    value = rows["value"][rows["kind"] >= 0]
    inside = page < pages
    there = unique(kind[inside])
    place = np.searchsorted(there, kind[inside])
    hints = _empty_hints(tuple(KINDS[number] for number in there.tolist()), pages)
    at = place, page[inside]
    hints.signals[at] = np.minimum(signals[inside], 1000)
    hints.until[at] = until[inside]
    promised = np.isin(kind[inside], [KINDS.index(name) for name in PROMISES])
    hints.claimed[at] = np.where(promised, -np.inf, value[inside])
    return hints


def _read(rows: Columns, now: float) -> tuple[Ints, Ints, Ints, Floats]:
    """Page, kind, signals and end of coverage of the rows of known kinds."""
    known = rows["kind"] >= 0
    page, kind, signals, last = (rows[name][known] for name in ("page", "kind", "signals", "last"))
    promised = np.isin(kind, [KINDS.index(name) for name in PROMISES])
    pushed = np.isin(kind, [KINDS.index(name) for name in PUSHES])
    waited = np.clip(now - last, 0.0, 1e10)  # never-visited pages do not matter here
    due = waited // np.maximum(rows["value"][known], 60.0)
    signals = np.where(promised, np.minimum(due, _MAX_NIBBLE), signals).astype(np.int64)
    until = np.where(promised | pushed, now, np.maximum(rows["seen"], rows["read"])[known])
    return page, kind, signals, np.minimum(until, now)


def _empty_hints(kinds: tuple[str, ...], pages: int) -> Hints:
    shape = (len(kinds), pages)
    return Hints(kinds, np.zeros(shape, np.int16), np.full(shape, -np.inf), np.full(shape, -np.inf))
