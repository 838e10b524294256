"""`recrawl.testing.check_policy` accepts a right policy and names the rule that a wrong one breaks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from recrawl import Book, Outcomes, Picks, testing
from recrawl.choose import Choice
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.errors import PolicyError


class Right:
    """Pages never visited first, then a random draw; learns how often it visited a page."""

    name: ClassVar[str] = "right"
    source: ClassVar[str] = "a test"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, share: float = 1.0) -> None:
        self.share = share

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = rng.permutation(self.pages(book))
        order = np.argsort(book.visits[pages], kind="stable")[:budget]
        yield Picks(pages[order], np.ones(len(order)), "it was visited least often")

    def pages(self, book: Book) -> Any:
        return np.flatnonzero(book.known)

    def learn(self, book: Book, seen: Outcomes, at: Any) -> None:
        visits = book.kept("right.visits", 0.0)
        visits[seen.pages] += 1
        book.memory["right.visits"] = visits


class NoSource(Right):
    source: ClassVar[str] = ""


class NotAGenerator(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Any:
        return [Picks(np.arange(0), np.zeros(0), "nothing")]


class Forgetful(Right):
    def __init__(self, *, alpha: float = 0.5) -> None:
        super().__init__()


class Rounding(Right):
    def __init__(self, *, alpha: float = 0.5) -> None:
        super().__init__()
        self.alpha = alpha + 1


class Bare(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Any:
        yield np.flatnonzero(book.known)[:budget]


class Nan(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[:budget]
        yield Picks(pages, np.full(len(pages), np.nan), "it has no score")


class FloatPages(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[:budget]
        yield Picks(pages.astype(float), np.ones(len(pages)), "it is a float")


class NoReason(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[:budget]
        yield Picks(pages, np.ones(len(pages)), "")


class Unknown(Right):
    def pages(self, book: Book) -> Any:
        return np.arange(len(book))


class Twice(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[: budget // 2]
        for _ in range(2):
            yield Picks(pages, np.ones(len(pages)), "it is so good")


class Greedy(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)
        yield Picks(pages, np.ones(len(pages)), "it is there")


class Endless(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        while True:
            yield Picks(np.arange(0), np.zeros(0), "it waits")


class NeverNew(Right):
    def pages(self, book: Book) -> Any:
        return np.flatnonzero(book.known & (book.visits > 0))


class OtherRandomness(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)
        drawn = np.array(random.sample(pages.tolist(), len(pages)), np.int64)[:budget]
        yield Picks(drawn, np.ones(len(drawn)), "it was drawn")


class Stateful(Right):
    def __init__(self) -> None:
        super().__init__()
        self.offset = 0

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        self.offset += 1
        pages = np.roll(np.flatnonzero(book.known), self.offset)[:budget]
        yield Picks(pages, np.ones(len(pages)), "it is next")


class Writer(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        book.depth[:] = 0
        yield from super().cycle(book, budget, rng)


class Whole(Right):
    """Leaves outcomes to later batches, and takes a page without an outcome for one that was not chosen."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        left = set(np.flatnonzero(book.known).tolist())
        for _ in range(2):
            pages = np.array(sorted(left), np.int64)[: budget // 2]
            seen = yield Picks(pages, np.ones(len(pages)), "it is first", awaits=0.5)
            left -= set(seen.pages.tolist())


class Eager(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[:budget]
        yield Picks(pages, np.ones(len(pages)), "it is first", awaits=1.5)


class Entangled(Right):
    """Goes by which object the outcomes hold, which differs when a cycle is resumed."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.flatnonzero(book.known)[:budget]
        for place in range(0, len(pages), 2):
            picks = Picks(pages[place : place + 1], np.ones(1), "it is first")
            seen = yield picks
            if seen.pages is picks.pages:
                second = pages[place + 1 : place + 2]
                yield Picks(second, np.ones(len(second)), "it is second")


class SplitsOtherwise(Right, RankedPolicy):
    """Chooses by visits without shards, and by page number on a shard."""

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:
        pages = self.pages(book)
        yield RankedPages(pages, np.ones(len(pages)), "it has the lowest number")


class Reader(Right):
    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        Path(__file__).with_name("golden.json").read_text()
        yield from super().cycle(book, budget, rng)


class LearnsIntoColumns(Right):
    def learn(self, book: Book, seen: Outcomes, at: Any) -> None:
        book.visits[:] += 1


class LearnsObjects(Right):
    def learn(self, book: Book, seen: Outcomes, at: Any) -> None:
        book.memory["right.all"] = [seen]  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (NoSource(), "protocol"),
        (NotAGenerator(), "protocol"),
        (Forgetful(), "text"),
        (Rounding(), "text"),
        (Bare(), "picks"),
        (Nan(), "picks"),
        (FloatPages(), "picks"),
        (NoReason(), "picks"),
        (Eager(), "picks"),
        (Unknown(), "known"),
        (Twice(), "once"),
        (Greedy(), "budget"),
        (Endless(), "end"),
        (NeverNew(), "new pages"),
        (OtherRandomness(), "seed"),
        (Stateful(), "state"),
        (Writer(), "read-only"),
        (Whole(), "late"),
        (Entangled(), "resume"),
        (SplitsOtherwise(), "shards"),
        (Reader(), "no I/O"),
        (LearnsIntoColumns(), "learn"),
        (LearnsObjects(), "learn"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_wrong_policy_fails_with_the_rule_it_breaks(policy: Any, rule: str) -> None:
    with pytest.raises(PolicyError) as caught:
        testing.check_policy(policy)
    assert str(caught.value).startswith(f"{rule}: {testing.RULES[rule]}; ")


def test_every_rule_has_a_wrong_policy() -> None:
    marks = test_a_wrong_policy_fails_with_the_rule_it_breaks.pytestmark
    assert {rule for _, rule in marks[0].args[1]} == set(testing.RULES)


def test_a_right_policy_passes() -> None:
    testing.check_policy(Right(share=0.5))
