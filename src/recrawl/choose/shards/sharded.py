"""A policy over several shards in one process: each shard has a book of its own pages, and a memory of its own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice, Learner, Policy, needs_of
from recrawl.choose.shards.placement import shard_of
from recrawl.choose.shards.rounds import rounds
from recrawl.choose.shards.splitting import Splittable, why_one_shard
from recrawl.columns import Floats, Int32s, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Pages, Picks


@dataclass(frozen=True, slots=True, eq=False)
class _Shards:
    """The division of a book's pages: page numbers of each shard, and the place of each page in it."""

    of: Int32s
    place: Ints
    pages: list[Pages]

    @classmethod
    def by(cls, of: Int32s, shards: int) -> _Shards:
        pages = [np.flatnonzero(of == shard) for shard in range(shards)]
        place = np.zeros(len(of), np.int64)
        for some in pages:
            place[some] = np.arange(len(some))
        return cls(of, place, pages)

    def divide(self, seen: Outcomes) -> list[Outcomes]:
        """Return the outcomes of each shard, with its own page numbers."""
        of = self.of[seen.pages]
        rows = [np.flatnonzero(of == shard) for shard in range(len(self.pages))]
        return [Outcomes(self.place[seen.pages[some]], seen.what[some]) for some in rows]


class Sharded:
    """A policy that can be split, over shards: `shard_of_site` holds the shard of each site.

    `late` is the share of shards whose visits are still under way when a round begins, as on a cluster.

    >>> from recrawl.choose import make_policy
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(6, now=1e6)
    >>> book.site[3:], book.last_try[:] = 1, [0, 9e5, 9e5, 5e5, 8e5, 9e5]
    >>> batches(Sharded(make_policy("round-robin"), [0, 1], 2), book, budget=3)
    [[0, 3, 4]]
    """

    name: ClassVar[str] = "sharded"
    source: ClassVar[str] = "recrawl's own: a policy over shards"

    def __init__(self, policy: Policy, shard_of_site: Sequence[int] | Ints, shards: int, *, late: float = 0.0) -> None:
        why = why_one_shard(policy)
        if why and shards > 1:
            raise UsageError(f"{policy.name} runs on one shard only, because {why}")
        self.needs = needs_of(policy)
        self._policy = policy
        self.shard_of_site = np.asarray(shard_of_site, np.int32)
        self._shards = shards
        self._late = late

    def inner_policy(self) -> Policy:
        """The policy that runs on every shard."""
        return self._policy

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Run all shards with one budget; the first shard draws from `rng` itself, the others from its children."""
        split = self._divided(book)
        books = [self._book(book, split, shard) for shard in range(self._shards)]
        policy = cast(Splittable, self._policy)
        luck, *others = rng.spawn(self._shards)
        generators = [rng, *others]
        plans = [policy.begin(own, budget, own_rng) for own, own_rng in zip(books, generators, strict=True)]
        run = rounds(policy, plans, budget, lambda _: luck.random() < self._late)
        try:
            picks = next(run)
            while True:
                seen = yield from _visit(picks, split)
                picks = run.send(split.divide(seen))
        except StopIteration:
            return

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Let every shard learn from its own visits."""
        if not isinstance(self._policy, Learner):
            return
        split = self._divided(book)
        for shard, own in enumerate(split.divide(seen)):
            part = self._book(book, split, shard)
            self._policy.learn(part, own, at[split.of[seen.pages] == shard])
            book.memory |= {f"{_prefix(shard)}{name}": column for name, column in part.memory.items()}

    def _divided(self, book: Book) -> _Shards:
        return _Shards.by(self.shard_of_site[book.site], self._shards)

    def _book(self, book: Book, split: _Shards, shard: int) -> Book:
        part, prefix = book.part(split.pages[shard]), _prefix(shard)
        part.memory = {
            name.removeprefix(prefix): column for name, column in book.memory.items() if name.startswith(prefix)
        }
        return part


def by_domain(policy: Policy, domains: Sequence[str], shards: int) -> Policy:
    """Return a policy over shards, given the registrable domain of each site; as it is if it runs on one shard."""
    if shards == 1 or why_one_shard(policy):
        return policy
    return Sharded(policy, [shard_of(domain, shards) for domain in domains], shards)


def _prefix(shard: int) -> str:
    return f"shard {shard}/"


def _visit(picks: list[Picks], split: _Shards) -> Generator[Picks, Outcomes, Outcomes]:
    """Visit the picks of all shards, best first: at once, but for those with other reasons."""
    parts = []
    for reason in dict.fromkeys(some.reason for some in picks if len(some)):
        same = [
            (pages[some.pages], some.score, np.arange(len(some)) >= some.needed)
            for pages, some in zip(split.pages, picks, strict=True)
            if some.reason == reason and len(some)
        ]
        pages, score, unawaited = (np.concatenate(columns) for columns in zip(*same, strict=True))
        order = np.lexsort((-score, unawaited)) if len(same) > 1 else np.arange(len(pages))
        chosen = Picks(pages[order], score[order], reason)
        parts.append((yield chosen.awaiting(int(np.count_nonzero(~unawaited))) if unawaited.any() else chosen))
    return Outcomes(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("pages", "what")))
