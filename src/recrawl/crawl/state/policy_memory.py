"""What a policy remembers from cycle to cycle, live (see `recrawl.choose.protocol.Learner`).

A policy's memory is a fold over the recorded visits, in the order of their numbers. The file in `models/` is a
checkpoint: the last visit folded, and what was learned until then. If the file is missing, damaged, from another
policy, program version or store, the fold starts at the first visit; if it is behind, because a crawl or a cycle of
another policy came in between, the fold goes on from there.

    cycle begins      fold up to the cycle's first visit; the policy chooses by that
    cycle crashes     nothing was saved: the resumed cycle folds up to the same visit
    cycle finished    fold up to the cycle's last visit, save

`learn` gets one *run* of visits at a time: consecutive visits of one cycle or crawl. It sees the book as it was before
the run, without pages found later; `known` excludes only pages that are gone, since other past reasons are not
recorded. So the same visits give the same memory, regardless of when and in how many steps they are folded; except that
a long fold, such as the first use of a policy on an old repository, reads the words of its newest visits only.

Arrays that the user gives to the policy, such as named anchors, enter its memory before it learns: they count from the
next cycle on, even if the file holds others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import OF_VISITS, Book, Clusters, LinkGraph, PageWords
from recrawl.choose import Policy, describe
from recrawl.choose.protocol import Learner, names_of, needs_of
from recrawl.columns import Ints
from recrawl.crawl.hints import unpack_hints
from recrawl.crawl.state.array_files import Arrays, read_arrays, write_arrays
from recrawl.crawl.state.book_columns import equip
from recrawl.crawl.state.load_book import load_book, mark_before, split_repeats, step_back
from recrawl.errors import RecrawlError
from recrawl.learn.structure.neighbours import fitted
from recrawl.loop import Recorded, note
from recrawl.model import Outcome, Outcomes
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Columns, Store
from recrawl.version import __version__

_MEMORY_PREFIX = "kept "
"""Prefix of the policy's own arrays in the file."""
REMOVAL = "rm"
"""The kind of run that records what the user removed."""
MAX_WORDY = 50_000
"""Visits of a fold whose words are read, the newest; reading takes about 1 ms for each that found a change."""
_WHOLE = ("now", "folders", "links", "clusters", "form", "index", "hints", "words", "prior", "share", "memory")
_PER_PAGE = tuple(item.name for item in fields(Book) if item.name not in _WHOLE)


@dataclass(slots=True)
class Past:
    """The book before visit `upto`, with the policy's memory at that time; only its first `pages` pages existed."""

    book: Book
    upto: int
    pages: int


def ready_book(
    repository: Storage,
    policy: Policy,
    cycle: CycleRow,
    limits: Mapping[int, int],
    *,
    begin: bool,
    given: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    share: float = 1.0,
) -> tuple[Book, Past | None]:
    """The book for a cycle with all that the policy needs, and the past to continue from after the cycle.

    The past may share columns with the book: once it has noted visits of the cycle, the book is not to be used. Without
    `begin` nothing is written, for a cycle that is only planned. `given` are arrays from the user, by their name in the
    memory of policies; each policy gets its own. `share` is that of a shard among all pages.
    """
    book = load_book(repository.store, cycle, limits)
    book.share = share
    equip(book, repository, cycle, needs_of(policy), begin=begin)
    own = tuple(f"{name}." for name in names_of(policy))
    given = {name: column for name, column in given.items() if name.startswith(own)}
    if not isinstance(policy, Learner):
        book.memory.update(given)
        return book, None
    past = _read_saved(repository, policy, cycle, book) or _empty_past(book)
    past.book.memory.update(given)
    for visits in _visits_until(repository, policy, past, cycle.first_visit):
        note(policy, *visits)
    book.memory = dict(past.book.memory)
    return book, past


def recorded_visits(repository: Storage, policy: Policy, cycle: CycleRow, past: Past | None) -> Iterator[Recorded]:
    """The recorded visits of a finished cycle, for the policy to learn from; none for a policy that does not learn."""
    if past is None:
        return
    store = repository.store
    # Not beyond its own last visit: later visits may belong to a crawl that is still open.
    yield from _visits_until(repository, policy, past, store.visits.end_of_cycle(cycle))


def save_memory(repository: Storage, policy: Policy, past: Past | None) -> None:
    """Save what the policy has learned, after a finished cycle."""
    if past is None:
        return
    head = {
        "policy": np.array(describe(policy)),
        "version": np.array(__version__),
        "upto": np.array(past.upto),
        "last": mark_before(repository.store, past.upto),
        "known": past.book.known[: past.pages],
    }
    kept = {_MEMORY_PREFIX + name: column for name, column in past.book.memory.items()}
    write_arrays(file_of(repository, policy), {**head, **kept})


def file_of(repository: Storage, policy: Policy) -> Path:
    """The file of a policy's memory; other parameters make another policy."""
    mark = hashlib.blake2b(describe(policy).encode(), digest_size=6).hexdigest()
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", policy.name)[:60]  # a user's own policy may have any name
    return repository.folder / "models" / f"{name}-{mark}.npz"


# -- start of the fold --------------------------------------------------------------------------------------


def _empty_past(book: Book) -> Past:
    """The past before the first visit."""
    past = Past(_copied(book), 0, 0)
    past.book.forget(np.arange(len(book)))
    return past


def _read_saved(repository: Storage, policy: Policy, cycle: CycleRow, book: Book) -> Past | None:
    """The past as saved; None if the file cannot be used."""
    file = read_arrays(file_of(repository, policy))
    if file is None or not _fits(file, repository.store, policy, cycle, len(book)):
        return None
    upto, known = int(file["upto"]), np.ones(len(book), bool)
    known[: len(file["known"])] = file["known"]
    memory = {name.removeprefix(_MEMORY_PREFIX): file[name] for name in file if name.startswith(_MEMORY_PREFIX)}
    before = book  # the past has the same columns, unless it is behind the cycle's start
    if upto < cycle.first_visit:
        before = _copied(book)
        step_back(before, repository.store, upto)
    return Past(replace(before, known=known, memory=memory), upto, len(file["known"]))


def _fits(file: Arrays, store: Store, policy: Policy, cycle: CycleRow, pages: int) -> bool:
    """Whether the file belongs to this policy and store, and is not ahead of the cycle."""
    return (
        {"policy", "version", "upto", "last", "known"} <= file.keys()
        and str(file["policy"]) == describe(policy)
        and str(file["version"]) == __version__
        and int(file["upto"]) <= cycle.first_visit
        and np.array_equal(file["last"], mark_before(store, int(file["upto"])))
        and len(file["known"]) <= pages
    )


def _copied(book: Book) -> Book:
    """A copy of the book with an empty memory, and its own columns of all that visits change."""
    return replace(book, memory={}, **{name: getattr(book, name).copy() for name in OF_VISITS})


# -- the fold -----------------------------------------------------------------------------------------------------


def _visits_until(repository: Storage, policy: Policy, past: Past, end: int) -> Iterator[Recorded]:
    """All visits from `past` up to number `end`, which the caller notes one after another; `past` moves along."""
    if past.upto >= end:
        return
    store = repository.store
    cycles = {row.id: row for row in store.cycles.newest()}
    for visits in _runs(store, past.upto, end, sorted({row.first_visit for row in cycles.values()})):
        cycle = cycles[int(visits["cycle"][0])]
        if cycle.kind == REMOVAL:
            continue  # what the user removes says nothing of how pages change
        past.pages = max(past.pages, cycle.known, int(visits["page"].max()) + 1)
        view = _first_pages(past.book, past.pages, cycle.started)
        for rows in split_repeats(visits["page"]):  # only imported visits can contain a page more than once
            pages = visits["page"][rows]
            if "hints" in policy.needs:
                view.hints = unpack_hints(pages, visits["hints"][rows], view)
            if "words" in policy.needs:
                view.words = words_of_visits(repository, visits, rows[visits["id"][rows] >= end - MAX_WORDY])
            outcomes = Outcomes(pages, visits["outcome"][rows])
            yield Recorded(view, outcomes, visits["at"][rows], visits["held"][rows] == 0)
    past.upto = end


def _runs(store: Store, begin: int, end: int, firsts: list[int]) -> Iterator[Columns]:
    """Visits in runs: cut where a cycle began, and where an interrupted one was resumed.

    A fold ends where a cycle begins, or after the last visit of a finished one. Both are cuts, so the runs do not
    depend on the number of steps of the fold.
    """
    cuts = [begin, *(first for first in firsts if begin < first < end), end]
    for first, last in pairwise(cuts):
        visits = store.visits.between(first, last)
        other = np.flatnonzero(np.diff(visits["cycle"])) + 1
        for start, stop in zip([0, *other], [*other, len(visits["cycle"])], strict=True):
            if stop > start:
                yield {name: column[start:stop] for name, column in visits.items()}


def _first_pages(book: Book, pages: int, now: float) -> Book:
    """A view of the book with its first `pages` pages, on the same columns and memory."""
    columns = {name: getattr(book, name)[:pages] for name in _PER_PAGE}
    view = replace(book, now=now, **columns)
    if book.links is not None:
        view.links = _links_among(book.links, pages)
    if book.clusters is not None:
        view.clusters = Clusters(book.clusters.of[:pages], book.clusters.nearest)
    for name in ("form", "index", "prior"):
        if (column := getattr(book, name)) is not None:
            setattr(view, name, column[:pages])
    view.hints = None  # each recorded visit carries its own
    return view


def _links_among(links: LinkGraph, pages: int) -> LinkGraph:
    """The links between the first `pages` pages. They are the current links: past links are not recorded."""
    if pages >= len(links):
        return fitted(links, pages)
    start = links.start[: pages + 1]
    inside = links.target[: start[-1]] < pages
    before = np.concatenate(([0], np.cumsum(inside)))
    return LinkGraph(before[start], links.target[: start[-1]][inside])


def words_of_visits(repository: Storage, visits: Columns, rows: Ints) -> PageWords:
    """The words of the pages that these visits found changed, for policies that learn from words.

    They are read from the archive, about 1 ms each. A body that cannot be read has no words.
    """
    from recrawl.compare.terms import hashed  # lazy: few policies read words

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
    from recrawl.crawl.visits.stored_text import read_page  # lazy: loads what parses pages; few policies read words

    _, headers, body = stored
    return read_page(body, headers)[0]
