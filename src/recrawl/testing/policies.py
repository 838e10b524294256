"""The contract checks for policies."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.choose import Policy, describe, make_policy
from recrawl.choose.custom import check_policy_object
from recrawl.choose.protocol import Learner
from recrawl.choose.shards.rounds import Sharded, why_one_shard
from recrawl.columns import DAY
from recrawl.errors import PolicyError, UsageError
from recrawl.loop import Resumed, drive, note
from recrawl.model import Outcomes, Picks
from recrawl.testing.books import LateWorld, RandomWorld, columns, equal, equip, random_book
from recrawl.testing.io_watch import watching_io

RULES = {
    "protocol": "a policy has a name, a source, needs and cycle(book, budget, rng)",
    "text": "a policy can be built again from its text, module:Class(param=value), to resume an interrupted cycle",
    "picks": "a policy yields Picks: integer page numbers, one score per page that is not NaN, and a reason",
    "known": "a policy chooses pages with book.known only",
    "once": "a policy chooses a page at most once per cycle",
    "budget": "a policy chooses at most `budget` pages per cycle",
    "end": "a policy ends its cycle when it has nothing left to choose",
    "new pages": "a policy visits pages that were never visited when the budget allows it",
    "seed": "the same book, budget and seed give the same choices: use rng, and neither a clock nor other randomness",
    "state": "a policy object keeps nothing from cycle to cycle; what it learns goes into book.memory",
    "read-only": "cycle() does not change the book",
    "late": "a policy whose picks do not await all outcomes accepts them later, mixed with those of other batches",
    "resume": "a policy that is sent the same outcomes makes the same choices, so that a cycle can be resumed",
    "no I/O": "a policy opens no file, socket, database or process",
    "shards": "a policy that can be split chooses on one shard as without shards, and on several as many pages in all",
    "learn": "learn() changes book.memory only, and keeps numpy arrays of numbers there",
}
"""Rule to sentence; the message of a `PolicyError` begins with the rule."""

_MAX_EMPTY = 1000
_SHARDED_BOOKS = 2
"""Books on which shards are tried; each takes many cycles."""


def check_policy(policy: Policy, *, books: int = 12, seed: int = 0) -> None:
    """Raise `PolicyError` for the first rule that a policy breaks; `books` random books are tried from this seed."""
    _check_outside(policy)
    _check_small_books(policy)
    for number in range(books):
        rng = np.random.default_rng([seed, number])
        book = random_book(rng)
        budget = int(rng.integers(1, 60))
        _check_cycle(policy, book, budget, number)
        _check_late(policy, book, budget, number)
        _check_resume(policy, book, budget, number)
        _check_learning(policy, book, budget, number)
        if number < _SHARDED_BOOKS and not why_one_shard(policy):
            _check_shards(policy, book, budget, number)


class _Replayed:
    """A world that repeats the answers of another one."""

    def __init__(self, answers: dict[int, int]) -> None:
        self.answers = answers
        self.pages: list[int] = []

    def visit(self, picks: Picks, _due: Collection[int] = ()) -> Outcomes:
        self.pages += picks.pages.tolist()
        return Outcomes(picks.pages, np.array([self.answers.get(page, 0) for page in picks.pages.tolist()], np.int8))


def _fail(rule: str, detail: str) -> PolicyError:
    return PolicyError(f"{rule}: {RULES[rule]}; {detail}")


# -- the rules ---------------------------------------------------------------------------------------------------


def _check_outside(policy: Policy) -> None:
    try:
        check_policy_object(policy, type(policy).__name__)
    except UsageError as error:
        raise _fail("protocol", str(error)) from error
    try:
        text = describe(policy)
        again = describe(make_policy(text))
    except UsageError as error:
        raise _fail("text", str(error)) from error
    if again != text:
        raise _fail("text", f"'{text}' builds a policy that is described as '{again}'")


def _check_small_books(policy: Policy) -> None:
    rng = np.random.default_rng(0)
    for pages in (0, 9):
        book = Book.blank(pages, now=1e9)
        equip(book, rng, 1)
        book.known[:] = False
        _choices(policy, book, 5, 1)
    book = Book.blank(9, now=1e9)
    equip(book, rng, 1)
    world = _choices(policy, book, 1000, 1)
    missed = set(range(9)) - set(world.pages)
    if missed:
        raise _fail("new pages", f"of 9 new pages and a budget of 1,000 it left out {sorted(missed)}")


def _check_cycle(policy: Policy, book: Book, budget: int, seed: int) -> None:
    before = columns(book)
    first = _choices(policy, book, budget, seed)
    for name, column in columns(book).items():
        if not equal(column, before[name]):
            raise _fail("read-only", f"it changed book.{name}")
    _compare(first, _choices(policy, book, budget, seed), "seed")
    same = copy.deepcopy(policy)
    worlds = [RandomWorld(seed), RandomWorld(seed)]
    for world in worlds:
        for _ in drive(same, world, book, budget, seed):
            pass
    _compare(worlds[0], worlds[1], "state")
    with watching_io() as events:
        _choices(policy, book, budget, seed)
    if events:
        raise _fail("no I/O", f"cycle() did: {events[0]}")


def _check_late(policy: Policy, book: Book, budget: int, seed: int) -> None:
    """The same outcomes at the same time give the same choices, and pages under way are not chosen again."""
    try:
        runs = [_choices(policy, book, budget, seed, LateWorld(seed)) for _ in range(2)]
    except (PolicyError, LookupError, ValueError) as error:
        raise _fail("late", f"it failed with {type(error).__name__}: {error}") from error
    _compare(runs[0], runs[1], "late")


def _check_resume(policy: Policy, book: Book, budget: int, seed: int) -> None:
    """Visits end in any order: any part of a cycle may have been recorded before a crash."""
    whole = _choices(policy, book, budget, seed)
    told = whole.pages
    if any(picks.awaits < 1 for picks in whole.picks):  # then a live cycle tells it less with some batches
        whole, told = RandomWorld(seed), []
        for seen in drive(copy.deepcopy(policy), Resumed(whole, {}, site=book.site), book, budget, seed):
            told += seen.pages.tolist()
    kept = np.random.default_rng(seed).random(len(whole.pages)) < 0.5
    recorded = {page: whole.answers[page] for page, keep in zip(whole.pages, kept.tolist(), strict=True) if keep}
    rest = _Replayed(whole.answers)
    chosen: list[int] = []
    for seen in drive(copy.deepcopy(policy), Resumed(rest, recorded, site=book.site), book, budget, seed):
        chosen += seen.pages.tolist()
    if chosen != told or set(rest.pages) != set(whole.pages) - set(recorded):
        raise _fail("resume", f"it chose pages {_first(told)} at first and {_first(chosen)} when resumed")


def _check_learning(policy: Policy, book: Book, budget: int, seed: int) -> None:
    """Three cycles in a row, each learned from; every one of them must keep the rules."""
    book, learner = copy.deepcopy(book), copy.deepcopy(policy)
    for day in range(3):
        world = _choices(learner, book, budget, seed + day)
        pages = np.array(world.pages, np.int64)
        seen = Outcomes(pages, np.array([world.answers[page] for page in world.pages], np.int8))
        at = book.now + 0.001 * np.arange(len(pages), dtype=np.float64)
        if isinstance(learner, Learner):
            before = columns(book)
            with watching_io() as events:
                learner.learn(book, seen, at)
            _check_memory(book, before, events)
            book.known[seen.pages] = True
            book.note(seen, at)
        else:
            note(learner, book, seen, at)
        book.now += DAY


def _check_shards(policy: Policy, book: Book, budget: int, seed: int) -> None:
    """Two cycles in a row on one shard, the first learned from; then one cycle on three shards, twice."""
    whole, own = copy.deepcopy(book), copy.deepcopy(book)
    split = Sharded(copy.deepcopy(policy), [0] * book.sites, 1)
    for day in range(2):
        alone, divided = _choices(policy, whole, budget, seed + day), _choices(split, own, budget, seed + day)
        _compare(alone, divided, "shards")
        for some, chooser in ((whole, policy), (own, split)):
            _learn(chooser, some, divided)
            some.now += DAY
    split = Sharded(copy.deepcopy(policy), np.arange(book.sites) % 3, 3)
    divided = _choices(split, book, budget, seed)
    _compare(divided, _choices(split, book, budget, seed), "shards")
    alone = _choices(policy, book, budget, seed)
    if len(alone.pages) != len(divided.pages):
        raise _fail("shards", f"it chose {len(alone.pages)} pages, and {len(divided.pages)} on 3 shards")


def _learn(policy: Policy, book: Book, world: RandomWorld) -> None:
    seen = Outcomes(np.array(world.pages, np.int64), np.array([world.answers[page] for page in world.pages], np.int8))
    note(policy, book, seen, np.full(len(seen), book.now))


def _check_memory(book: Book, before: dict[str, Any], events: list[str]) -> None:
    changed = [
        name
        for name, column in columns(book).items()
        if not name.startswith("memory.") and not equal(column, before[name])
    ]
    if changed:
        raise _fail("learn", f"it changed book.{changed[0]}")
    odd = [name for name, column in book.memory.items() if getattr(column, "dtype", np.dtype(object)).kind == "O"]
    if odd:
        raise _fail("learn", f"book.memory['{odd[0]}'] is not a numpy array of numbers")
    if events:
        raise _fail("no I/O", f"learn() did: {events[0]}")


# -- a cycle, checked --------------------------------------------------------------------------------------------


def _choices(
    policy: Policy, book: Book, budget: int, seed: int, world: RandomWorld | LateWorld | None = None
) -> RandomWorld | LateWorld:
    """Drive a copy of the policy through one cycle and check every batch."""
    taken, empty, left = set[int](), 0, budget
    world = world or RandomWorld(seed)
    choice = copy.deepcopy(policy).cycle(book, budget, np.random.default_rng(seed))
    if not hasattr(choice, "send"):
        raise _fail("protocol", "cycle() must be a generator: yield Picks")
    seen: Outcomes | None = None
    try:
        while left > 0:
            picks = _checked(next(choice) if seen is None else choice.send(seen), book, taken)
            if len(picks) > left:
                raise _fail("budget", f"it chose {len(picks)} pages with {left} visits left of {budget}")
            empty = 0 if len(picks) else empty + 1
            if empty > _MAX_EMPTY:
                raise _fail("end", f"it yielded more than {_MAX_EMPTY} empty batches in a row")
            taken.update(picks.pages.tolist())
            seen = world.visit(picks)
            left -= len(picks)
    except StopIteration:
        pass
    finally:
        choice.close()
    return world


def _checked(picks: Any, book: Book, taken: set[int]) -> Picks:
    if not isinstance(picks, Picks):
        raise _fail("picks", f"it yielded a {type(picks).__name__}")
    pages, score = np.asarray(picks.pages), np.asarray(picks.score)
    if pages.ndim != 1 or (pages.dtype.kind not in "iu"):
        raise _fail("picks", f"its pages are an array of {pages.dtype} with {pages.ndim} dimensions")
    if score.shape != pages.shape or score.dtype.kind not in "fiu" or np.isnan(score).any():
        raise _fail("picks", f"it gave {len(pages)} pages the scores {_first(score.tolist())}")
    if not 0 <= picks.awaits <= 1:
        raise _fail("picks", f"it awaits {picks.awaits}, which is not a share from 0 to 1")
    reason: Any = picks.reason
    if not isinstance(reason, str) or not reason or reason != reason.strip():
        raise _fail("picks", f"its reason is {picks.reason!r}")
    if len(pages) and (pages.min() < 0 or pages.max() >= len(book) or not book.known[pages].all()):
        raise _fail("known", f"it chose {_first(pages.tolist())}")
    again = taken & set(pages.tolist())
    if again or len(set(pages.tolist())) < len(pages):
        raise _fail("once", f"it chose {_first(sorted(again) or pages.tolist())} again")
    return picks


def _compare(one: RandomWorld | LateWorld, other: RandomWorld | LateWorld, rule: str) -> None:
    if one.pages != other.pages:
        raise _fail(rule, f"it chose {_first(one.pages)}, then {_first(other.pages)}")
    scores = [[picks.score.tolist() for picks in world.picks] for world in (one, other)]
    if scores[0] != scores[1]:
        raise _fail(rule, "it gave the same pages other scores")


def _first(values: list[Any]) -> str:
    return f"{values[:5]}{' ...' if len(values) > 5 else ''}"
