"""Lanes: politeness as laws, checked on made-up clocks."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recrawl.fetch.lanes import Lanes, parse_retry_after

SERVERS = st.integers(0, 3)
STEPS = st.sampled_from([0.0, 0.001, 0.1, 0.5, 1.0, 3.0, 30.0, 700.0])
TINY = 1e-6


class Politeness(RuleBasedStateMachine):
    """Random work, random answers, a clock of our own; the laws are checked at every pop and every step."""

    @initialize(
        delay=st.sampled_from([0.0, 0.2, 1.0]),
        per_server=st.integers(1, 3),
        overall=st.sampled_from([0.0, 0.5, 20.0]),
        order=st.sampled_from(["breadth", "depth"]),
    )
    def begin(self, delay, per_server, overall, order):
        self.lanes = Lanes(delay=delay, per_server=per_server, overall_per_second=overall, order=order)
        self.base, self.per_server, self.overall, self.order = delay, per_server, overall, order
        self.now = 1_700_000_000.0
        self.numbers = itertools.count()
        self.waiting: dict[int, list[int]] = {}
        self.flying: list[tuple[int, int]] = []
        self.delays: dict[int, float] = {}
        self.last: dict[int, float] = {}
        self.hold: dict[int, float] = {}
        self.asked: list[float] = []
        self.out: set[int] = set()

    @rule(server=SERVERS, n=st.integers(1, 4))
    def push(self, server, n):
        for item in itertools.islice(self.numbers, n):
            self.lanes.push(server, item)
            self.waiting.setdefault(server, []).append(item)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), status=st.sampled_from([200, 304, 404, 500, 503, 429]), failed=st.booleans(),
          header=st.sampled_from(["", "7", "soon", "-3", "99999999"]))  # fmt: skip
    def done(self, data, status, failed, header):
        server, item = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        self.lanes.done(server, self.now, status=status, failed=failed, retry_after=header)
        self.last[server] = self.now
        if failed or status in (429, 503):
            asked = {"7": 7.0, "99999999": 86400.0}.get(header)
            assert self.lanes.held(server) >= self.now + (asked or 5.0) - TINY
            self.hold[server] = max(self.hold.get(server, 0.0), self.now + (asked or 5.0))
            # Tried again, in front of the rest.
            self.out.discard(item)
            self.lanes.push_front(server, item)
            line = self.waiting.setdefault(server, [])
            line.insert(len(line) if self.order == "depth" else 0, item)

    @rule(step=STEPS)
    def time_passes(self, step):
        self.now += step

    @rule(server=SERVERS, seconds=st.sampled_from([0.0, 0.1, 2.0, 500.0, float("nan"), -1.0]))
    def crawl_delay(self, server, seconds):
        self.lanes.set_delay(server, seconds)
        self.delays[server] = max(self.base, min(seconds, 60.0)) if seconds > 0 else self.base

    @rule(server=SERVERS, seconds=st.sampled_from([-5.0, 0.0, 2.0, 100.0]))
    def hold_off(self, server, seconds):
        self.lanes.hold(server, self.now + seconds)
        assert self.lanes.held(server) >= self.now + seconds

    @rule(server=SERVERS)
    def abandon(self, server):
        items = self.lanes.abandon(server)
        assert items == self.waiting.pop(server, [])

    @rule()
    def pop(self):
        wait = self.lanes.wait(self.now)
        got = self.lanes.pop(self.now)
        assert (got is not None) == (wait == 0.0)
        if got is not None:
            self.check(*got)

    @rule()
    def wait_and_pop(self):
        wait = self.lanes.wait(self.now)
        if wait is None:
            full = {s for s, line in self.waiting.items() if line}
            assert all(sum(s == f for f, _ in self.flying) >= self.per_server for s in full)
            return
        assert wait >= 0
        self.now += wait
        got = self.lanes.pop(self.now)
        assert got is not None
        self.check(*got)

    def check(self, server: int, item: int) -> None:
        line = self.waiting[server]
        assert line.pop(-1 if self.order == "depth" else 0) == item
        assert item not in self.out
        self.out.add(item)
        assert self.now >= self.last.get(server, 0.0) + self.delays.get(server, self.base) - TINY
        assert self.now >= self.hold.get(server, 0.0) - TINY
        assert self.now >= self.lanes.held(server)
        self.last[server] = self.now
        self.flying.append((server, item))
        assert sum(s == server for s, _ in self.flying) <= self.per_server
        self.asked.append(self.now)
        if self.overall:
            slack = 0.1 if self.overall > 10 else 0.0
            for n, begin in enumerate(reversed(self.asked), 1):
                assert n <= (self.now - begin + slack) * self.overall + 1 + 1e-3  # a clock this late is coarse

    @invariant()
    def counts_agree(self):
        if hasattr(self, "lanes"):
            assert len(self.lanes) == sum(map(len, self.waiting.values()))
            assert self.lanes.in_flight == len(self.flying)
            for server, line in self.waiting.items():
                assert self.lanes.upcoming(server, 3) == (line[::-1] if self.order == "depth" else line)[:3]


TestPoliteness = Politeness.TestCase
TestPoliteness.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def drain(lanes: Lanes, now: float = 0.0, took: float = 0.0) -> list[tuple[float, int, int]]:
    """Ask for everything, one at a time, answers at once; gives when, whom, what."""
    seen = []
    while (wait := lanes.wait(now)) is not None:
        now += wait
        server, item = lanes.pop(now) or (-1, -1)
        seen.append((now, server, item))
        now += took
        lanes.done(server, now, status=200, seconds=took)
    return seen


def test_order_within_a_server() -> None:
    for order, expected in (("breadth", [1, 2, 3]), ("depth", [3, 2, 1])):
        lanes = Lanes(delay=0.0, order=order)  # type: ignore[arg-type]
        for item in (1, 2, 3):
            lanes.push(0, item)
        assert [item for _, _, item in drain(lanes)] == expected


def test_servers_take_turns() -> None:
    lanes = Lanes(delay=0.0)
    for server, item in itertools.product(range(3), range(3)):
        lanes.push(server, item)
    servers = [server for _, server, _ in drain(lanes)]
    assert servers == [0, 1, 2] * 3


def test_a_new_server_does_not_overtake_and_is_not_forgotten() -> None:
    lanes = Lanes(delay=0.0)
    for item in range(4):
        lanes.push(0, item)
    asked = []
    for new in range(1, 4):
        lanes.push(new, 0)
        server, _ = lanes.pop(float(new)) or (-1, -1)
        lanes.done(server, float(new), status=200)
        asked.append(server)
    assert 0 in asked
    assert asked[0] != asked[1]


def test_the_delay_counts_from_the_end_and_grows_with_slow_answers() -> None:
    lanes = Lanes(delay=1.0)
    for item in range(3):
        lanes.push(0, item)
    assert [when for when, _, _ in drain(lanes, took=0.25)] == [0.0, 1.25, 2.5]
    for item in range(3):
        lanes.push(0, item)
    assert [when for when, _, _ in drain(lanes, 100.0, took=5.0)] == [100.0, 110.0, 120.0]


def test_no_delay_means_no_pause_even_after_slow_answers() -> None:
    lanes = Lanes(delay=0.0)
    lanes.push(0, 1)
    lanes.push(0, 2)
    assert [when for when, _, _ in drain(lanes, took=5.0)] == [0.0, 5.0]


def backs_off(lanes: Lanes, now: float, **answer: object) -> float:
    """Ask once, get that answer; how long is the server left alone?"""
    lanes.push(0, 1)
    now += lanes.wait(now) or 0.0
    assert lanes.pop(now) == (0, 1)
    lanes.done(0, now, **answer)  # type: ignore[arg-type]
    return max(0.0, lanes.held(0) - now)


@pytest.mark.parametrize("answer", [{"status": 429}, {"status": 503}, {"failed": True}])
def test_back_off_doubles_and_a_success_resets_it(answer: dict[str, object]) -> None:
    lanes = Lanes(delay=0.0)
    waits = [backs_off(lanes, lanes.held(0), **answer) for _ in range(9)]
    assert waits == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert backs_off(lanes, lanes.held(0), status=500) == 0.0
    assert backs_off(lanes, lanes.held(0), **answer) == 600
    assert backs_off(lanes, lanes.held(0), status=404) == 0.0
    assert backs_off(lanes, lanes.held(0), **answer) == 5


def test_retry_after_is_obeyed_up_to_a_day() -> None:
    lanes = Lanes(delay=0.0)
    assert backs_off(lanes, 0.0, status=503, retry_after="30") == 30
    assert backs_off(lanes, 30.0, status=429, retry_after="Thu, 01 Jan 1970 00:02:00 GMT") == 90
    assert backs_off(lanes, 120.0, status=429, retry_after="9" * 20) == 86400
    assert backs_off(lanes, lanes.held(0), status=429, retry_after="0") == 40


def test_silence_is_counted_until_the_server_speaks() -> None:
    lanes = Lanes(delay=0.0)
    for expected in (1, 2, 3):
        backs_off(lanes, lanes.held(0), failed=True)
        assert lanes.silent(0) == expected
    backs_off(lanes, lanes.held(0), status=500)
    assert lanes.silent(0) == 0
    assert lanes.silent(99) == 0
    assert lanes.held(99) == 0.0


def test_two_refusals_of_the_same_moment_count_once() -> None:
    lanes = Lanes(delay=0.0, per_server=2)
    lanes.push(0, 1)
    lanes.push(0, 2)
    assert lanes.pop(0.0)
    assert lanes.pop(0.0)
    lanes.done(0, 1.0, status=503)
    lanes.done(0, 1.0, status=503)
    assert lanes.held(0) == 6.0


def test_a_hold_can_be_lifted_but_not_what_the_server_asked() -> None:
    lanes = Lanes(delay=0.0)
    backs_off(lanes, 0.0, status=503, retry_after="30")
    lanes.push(0, 1)
    lanes.hold(0, 1000.0)
    assert lanes.wait(0.0) == 1000.0
    lanes.hold(0, 0.0)
    assert lanes.wait(0.0) == 30.0
    lanes.hold(0, float("inf"))
    assert lanes.wait(0.0) is None


def test_a_server_held_off_does_not_hold_up_the_others() -> None:
    lanes = Lanes(delay=0.0)
    lanes.push(0, 1)
    lanes.push(1, 2)
    lanes.hold(0, 50.0)
    assert lanes.pop(0.0) == (1, 2)
    assert lanes.pop(0.0) is None
    assert lanes.wait(0.0) == 50.0


def test_abandon_takes_what_waits_and_leaves_what_flies() -> None:
    lanes = Lanes(delay=0.0)
    for item in (1, 2, 3):
        lanes.push(0, item)
    assert lanes.pop(0.0) == (0, 1)
    assert lanes.abandon(0) == [2, 3]
    assert lanes.abandon(7) == []
    assert (len(lanes), lanes.in_flight, lanes.wait(0.0)) == (0, 1, None)
    lanes.done(0, 1.0, status=200)
    with pytest.raises(ValueError, match="no request under way"):
        lanes.done(0, 1.0)


@given(st.text(max_size=80), st.floats(0, 4e9))
def test_any_retry_after_is_a_wait_of_at_most_a_day_or_ignored(text: str, now: float) -> None:
    wait = parse_retry_after(text, now)
    assert wait is None or 0 <= wait <= 86400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-5",
        "1.5",
        "0x10",
        "٣",
        "1" * 100,
        "Thu, 99 Foo 2024 00:00:00 GMT",
        "Thu, 01 Jan 99999 00:00:00 GMT",
    ],
)
def test_nonsense_in_retry_after_is_ignored(text: str) -> None:
    assert parse_retry_after(text, 0.0) is None


def test_one_item_that_fails_again_does_not_raise_the_pause() -> None:
    lanes = Lanes(delay=0.0)
    waits = []
    for item in (1, 2, 1, 2, 1, 2):
        now = lanes.held(0)
        lanes.push(0, item)
        assert lanes.pop(now) == (0, item)
        lanes.done(0, now, status=503, item=item)
        waits.append(lanes.held(0) - now)
    assert waits == [5, 10, 10, 10, 10, 10]


def test_a_guessed_pause_is_longer_than_our_patience_only_when_several_items_have_failed() -> None:
    lanes = Lanes(delay=0.0, patience=3.0)
    waits = []
    for item in range(4):
        now = lanes.held(0)
        lanes.push(0, item)
        assert lanes.pop(now) == (0, item)
        lanes.done(0, now, status=429, item=item)
        waits.append(lanes.held(0) - now)
    assert waits == [3, 3, 20, 40]


@pytest.mark.parametrize("order", ["breadth", "depth"])
def test_what_has_failed_comes_last(order: Literal["breadth", "depth"]) -> None:
    lanes = Lanes(delay=0.0, order=order)
    lanes.push_last(0, 9)
    for item in (1, 2):
        lanes.push(0, item)
    assert lanes.upcoming(0, 5)[-1] == 9
    assert [item for _, _, item in drain(lanes)][-1] == 9
    lanes.push_last(0, 9)
    assert lanes.abandon(0) == [9]
    assert len(lanes) == 0
