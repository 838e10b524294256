"""Random books and worlds for the checks of policies."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from recrawl.book import Book, Clusters, Directories, Hints, LinkGraph, PageWords
from recrawl.columns import DAY
from recrawl.loop import enough
from recrawl.model import NOTHING, Outcome, Outcomes, Picks

_FOLDERS_PER_SITE = 4


def random_book(rng: np.random.Generator, *, most: int = 40) -> Book:
    """A book of any state: pages never visited, failing, gone; with all that a policy can need."""
    pages, sites = int(rng.integers(1, most)), int(rng.integers(1, 6))
    book = Book.blank(pages, now=float(rng.choice([0.0, 1e3, 1.7e9])))
    book.site[:] = rng.integers(0, sites, pages)
    book.folder[:] = book.site * _FOLDERS_PER_SITE + rng.integers(0, _FOLDERS_PER_SITE, pages)
    book.depth[:] = rng.integers(0, 6, pages)
    book.found[:] = book.now - rng.integers(0, 100, pages) * DAY
    book.size[:] = rng.integers(0, 10**6, pages)
    book.known[:] = rng.random(pages) < rng.choice([0.7, 1.0])
    if rng.random() < 0.5:
        book.weight = rng.gamma(0.5, 2.0, pages) * (rng.random(pages) < 0.8)
        book.cost = rng.uniform(0.1, 9, pages)
    equip(book, rng, sites)
    for _ in range(int(rng.integers(0, 6))):
        visited = np.flatnonzero(rng.random(pages) < 0.5)
        at = book.now - rng.integers(0, 30, len(visited)) * DAY / 2
        found = rng.choice(5, len(visited), p=[0.4, 0.3, 0.1, 0.05, 0.15]).astype(np.int8)
        book.note(Outcomes(visited, found), at)
    return book


class RandomWorld:
    """A world where a visit finds a change or fails with fixed probabilities; it keeps its answers."""

    def __init__(self, seed: int, *, changed: float = 0.3, failed: float = 0.05) -> None:
        self._rng = np.random.default_rng(seed)
        self._shares = [1 - changed - failed, changed, failed]
        self.picks: list[Picks] = []
        self.answers: dict[int, int] = {}

    @property
    def pages(self) -> list[int]:
        """All pages visited, in order."""
        return [page for picks in self.picks for page in picks.pages.tolist()]

    def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
        """Draw an outcome for each page."""
        del due  # all outcomes come at once
        kinds = np.array([Outcome.UNCHANGED, Outcome.CHANGED, Outcome.FAILED], np.int8)
        seen = Outcomes(picks.pages, self._rng.choice(kinds, len(picks), p=self._shares))
        self.picks.append(picks)
        self.answers.update(zip(seen.pages.tolist(), seen.what.tolist(), strict=True))
        return seen


class LateWorld(RandomWorld):
    """A random world that returns no more outcomes than it must (`enough`), and the others with later picks."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._order = np.random.default_rng([seed, 1])
        self._waiting = NOTHING
        self.returned: list[list[int]] = []
        """The pages whose outcomes each call has returned."""

    def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
        """Draw an outcome for each page; return enough of them, those that are due, and some of earlier picks."""
        earlier = self._order.random(len(self._waiting)) < 0.5
        awaited = np.arange(len(picks)) < picks.needed
        if enough(picks) < picks.needed:
            awaited[self._order.permutation(picks.needed)[enough(picks) :]] = False
        ready = np.concatenate((earlier, awaited)) | (picks.awaits >= 1)
        waiting = self._waiting + super().visit(picks)
        ready |= np.isin(waiting.pages, list(due))
        self._waiting = waiting.take(~ready)
        self.returned.append(waiting.pages[ready].tolist())
        return waiting.take(ready)


def equip(book: Book, rng: np.random.Generator, sites: int) -> None:
    """Give a book directories, links, clusters, forms of URLs, hints and words."""
    pages = len(book)
    parent = np.full(sites * _FOLDERS_PER_SITE, -1, np.int64)
    level = np.zeros(sites * _FOLDERS_PER_SITE, np.int32)
    for folder in range(sites * _FOLDERS_PER_SITE):
        if folder % _FOLDERS_PER_SITE and rng.random() < 0.8:
            parent[folder] = rng.integers(folder - folder % _FOLDERS_PER_SITE, folder)
            level[folder] = level[parent[folder]] + 1
    degree = rng.integers(0, 5, pages) * (rng.random(pages) < 0.8)
    target = rng.integers(0, max(pages, 1), degree.sum()).astype(np.int32)
    groups = int(rng.integers(1, 6))
    nearest = [[own, *rng.permutation(np.delete(np.arange(groups), own))] for own in range(groups)]
    shape = (2, pages)
    claimed = book.now - rng.choice([-1e9, 0.0, 1e6, np.inf], shape)
    signals = rng.choice([0, 0, 1, 7], shape).astype(np.int16)
    book.folders = Directories(parent, level)
    book.links = LinkGraph(np.concatenate(([0], np.cumsum(degree))).astype(np.int64), target)
    book.clusters = Clusters(rng.integers(-1, groups, pages).astype(np.int32), np.array(nearest, np.int32))
    book.form = rng.integers(0, 5, pages)
    book.words = random_words(rng, pages)
    book.hints = Hints(("lastmod", "feed"), signals, claimed, book.now - rng.choice([0.0, 1e5, np.inf], shape))


def random_words(rng: np.random.Generator, pages: int) -> PageWords:
    """Words for most of the pages, as visits may have read them."""
    page = np.flatnonzero(rng.random(pages) < 0.9)
    texts = [np.unique(rng.integers(0, 30, rng.integers(0, 9))) for _ in page]
    word = np.concatenate([np.zeros(0, np.int64), *texts]).astype(np.int32)
    start = np.cumsum([0, *map(len, texts)])
    return PageWords(page, start, word, rng.integers(1, 5, len(word)).astype(np.uint16))


def columns(book: Book) -> dict[str, Any]:
    """A copy of every array of a book, by name."""
    parts = {item.name: getattr(book, item.name) for item in dataclasses.fields(book)}
    memory = {f"memory.{name}": column for name, column in parts.pop("memory").items()}
    for name in ("folders", "links", "clusters", "hints", "words"):
        part = parts.pop(name)
        parts |= {f"{name}.{item.name}": getattr(part, item.name) for item in dataclasses.fields(part)} if part else {}
    return copy.deepcopy(parts | memory)


def equal(one: Any, other: Any) -> bool:
    """Whether two columns hold the same values."""
    return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
