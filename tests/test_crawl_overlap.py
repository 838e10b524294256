"""Batches of a cycle overlap: a slow server does not keep the others waiting, and a crash changes no choice."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crashes import choices, judge
from tests.world import Asked, Reply, Repo, Site, page

SLOW, FAST = "slow.localhost", "fast.localhost"
MODULE = '''
"""A policy with four batches; the score of a page is the number of outcomes that the policy had when it chose it."""
import numpy as np
from recrawl import Picks

class Overlapping:
    """A page of each server in each batch; waits for that of the fast one."""
    name, source, needs = "overlapping", "a test", frozenset()

    def cycle(self, book, budget, rng):
        pages = np.flatnonzero(book.known & (book.depth > 0))
        heard = 0
        for batch in zip(*(pages[book.site[pages] == site] for site in (1, 0))):
            batch = np.array(batch)
            seen = yield Picks(batch, np.full(len(batch), float(heard)), "its turn came", awaits=0.5)
            heard += len(seen)

class Straggling:
    """Nine pages of the fast server and one of the slow one, all awaited; then another one of the fast server."""
    name, source, needs = "straggling", "a test", frozenset()

    def cycle(self, book, budget, rng):
        fast, slow = (np.flatnonzero(book.known & (book.depth > 0) & (book.site == site)) for site in (1, 0))
        seen = yield Picks(np.append(slow[:1], fast[:9]), np.zeros(10), "its turn came").awaiting(10)
        yield Picks(fast[9:], np.full(1, float(len(seen))), "its turn came", awaits=0.0)
'''


@pytest.fixture
def web() -> Iterator[Site]:
    """Two servers with the same pages: a first one and four others."""
    links = [f"/{name}" for name in "abcd"]
    with Site({"/": page("Welcome", *links), **{link: page(f"Page {link}") for link in links}}) as site:
        yield site


@pytest.fixture
def repo(tmp_path: Path, web: Site, monkeypatch: pytest.MonkeyPatch) -> Repo:
    (tmp_path / "overlapping_policy.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Repo.create(tmp_path / "repo", timeout=60, stall=60)
    made.crawl(web.url("/", SLOW), web.url("/", FAST))
    web.forget()
    return made


_CYCLE = ("cycle", "--budget", "8", "--policy", "overlapping_policy:Overlapping")


def _held(web: Site, go: threading.Event) -> None:
    """From now on the slow server answers when `go` comes."""

    def every(asked: Asked) -> bytes | Reply | None:
        kept = web.pages.get(asked.path)
        if asked.host == SLOW and isinstance(kept, bytes):
            return Reply(kept, until=go)
        return None

    web.every = every


def _fast(web: Site) -> list[str]:
    return [one.path for one in web.log if one.host == FAST and len(one.path) == 2]


def test_the_next_batch_starts_before_the_slow_server_has_answered(repo: Repo, web: Site) -> None:
    """The slow server waits for the fast one's last page, which only a later batch visits: else nobody would end."""
    go = threading.Event()
    _held(web, go)
    original = web.every
    under_way: list[int] = []

    def every(asked: Asked) -> bytes | Reply | None:
        if asked.host == FAST and len(set(_fast(web))) == 4:
            under_way.append(asked.beside)
            go.set()
        return original(asked) if original else None

    web.every = every
    summary: Any = repo.json(*_CYCLE)
    assert summary["visits"] == 8
    assert summary["failed"] == 0
    assert under_way[0] >= 1, "no page of the slow server was under way"
    (number,) = (cycle for (cycle,) in repo.sql("SELECT id FROM cycles WHERE kind = 'cycle'"))
    heard = sorted(score for score, _ in choices(repo.folder, number).values())
    assert heard == [0, 0, 1, 1, 2, 2, 3, 3], "a batch was chosen with other outcomes than those of the fast server"


def test_one_of_many_awaited_pages_does_not_keep_the_others_waiting(repo: Repo, web: Site) -> None:
    """The slow server answers when the second batch has come: else nobody would end."""
    links = [f"/{name}" for name in "abcdefghij"]
    web["/"] = page("Welcome", *links)
    for link in links:
        web[link] = page(f"Page {link}")
    for host in (SLOW, FAST):
        repo.json("recheck", web.url("/", host))
    repo.crawl()
    web.forget()
    go = threading.Event()
    _held(web, go)
    original = web.every

    def every(asked: Asked) -> bytes | Reply | None:
        if asked.host == FAST and len(set(_fast(web))) == 10:
            go.set()
        return original(asked) if original else None

    web.every = every
    summary: Any = repo.json("cycle", "--budget", "11", "--policy", "overlapping_policy:Straggling")
    assert summary["visits"] == 11
    assert summary["failed"] == 0
    (number,) = (cycle for (cycle,) in repo.sql("SELECT id FROM cycles WHERE kind = 'cycle'"))
    assert max(score for score, _ in choices(repo.folder, number).values()) == 9, "outcomes before the second batch"


def test_a_cycle_killed_while_batches_overlap_makes_the_same_choices(repo: Repo, web: Site) -> None:
    go, later = threading.Event(), threading.Event()
    _held(web, go)
    original = web.every

    def every(asked: Asked) -> bytes | Reply | None:
        if asked.host == FAST and len(set(_fast(web))) == 4:
            later.set()
            return Reply(page("An answer for nobody"), until=go)
        return original(asked) if original else None

    web.every = every
    process = repo.start(*_CYCLE)
    assert later.wait(120), "the last batch was never asked for"
    recorded = "SELECT count(*) FROM visits WHERE cycle = (SELECT max(id) FROM cycles)"
    pause, ends = threading.Event(), time.monotonic() + 60
    while repo.sql(recorded) != [(3,)]:  # committed by time, while the last batch is under way
        assert time.monotonic() < ends, "what had answered was not committed"
        pause.wait(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (number,) = (cycle for (cycle,) in repo.sql("SELECT id FROM cycles WHERE kind = 'cycle'"))
    before = choices(repo.folder, number)
    assert sorted(score for score, _ in before.values()) == [0, 1, 2], "three pages of the fast server had answered"
    web.every = None
    go.set()
    summary: Any = repo.json("cycle")
    assert summary["resumed"]
    after = choices(repo.folder, number)
    assert before.items() <= after.items(), "a choice of the killed run was changed"
    assert len(after) == 8
    assert sorted(score for score, _ in after.values()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert not (repo.folder / "models" / "batches-of-cycle.jsonl").exists()
    judge(repo.folder)
