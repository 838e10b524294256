"""The scheduler: turns by the clock, pauses that last, failures that are waited out, cycles that are gone on with."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recrawl.serve.scheduler import Scheduler
from recrawl.serve.service import Service, ServiceConfig
from recrawl.serve.turn_process import Message, ProcessRunner, TurnResult
from tests.clocks import Clock
from tests.serving import Asker
from tests.world import Reply, Repo, Site, page

DONE = {"finished": True, "cycle": 1}
WAIT = 600.0


class Turns:
    """A runner whose turns end when and how the test says."""

    def __init__(self) -> None:
        self.begun: queue.Queue[Message] = queue.Queue()
        self.ends: queue.Queue[TurnResult] = queue.Queue()
        self.stopped = 0

    def run(self, order: Message, on_message: Callable[[Message], None]) -> TurnResult:
        self.begun.put(order)
        on_message({"doing": "visiting", "visits": 3})
        return self.ends.get(timeout=WAIT)

    def stop(self) -> None:
        self.stopped += 1
        self.ends.put(TurnResult(summary=None))


class Told:
    """What the scheduler tells; `wait` for the next of a kind."""

    def __init__(self) -> None:
        self.events: queue.Queue[tuple[str, Message]] = queue.Queue()

    def __call__(self, kind: str, data: Message) -> None:
        self.events.put((kind, data))

    def wait(self, kind: str) -> Message:
        while True:
            told, data = self.events.get(timeout=WAIT)
            if told == kind:
                return data


@contextmanager
def scheduled(repo: Repo, clock: Clock, turns: Turns, told: Told, **more: Any) -> Iterator[Scheduler]:
    scheduler = Scheduler(repo.folder, turns, clock, publish=told, **more)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


def later(scheduler: Scheduler, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    scheduler.wake()


def test_turns_come_at_multiples_of_the_period(repo: Repo) -> None:
    repo.config(every="6h")
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    begin = clock.now
    with scheduled(repo, clock, turns, told) as scheduler:
        assert turns.begun.get(timeout=WAIT) == {"period": 21600.0}  # the first one at once
        assert scheduler.status().running
        clock.now += 600  # the turn takes ten minutes
        turns.ends.put(TurnResult(DONE))
        assert told.wait("ended")["finished"]
        assert scheduler.status().due == begin + 21600
        later(scheduler, clock, 21600 - 600 - 1)
        assert turns.begun.empty()
        later(scheduler, clock, 1)
        turns.begun.get(timeout=WAIT)
        clock.now += 50_000  # longer than two periods
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        assert scheduler.status().due == begin + 4 * 21600  # what was missed is not made up for


def test_a_shorter_period_counts_at_once(repo: Repo) -> None:
    repo.config(every="6h")
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        repo.config(every="1h")
        assert scheduler.status().due == clock.now + 3600
        later(scheduler, clock, 3600)
        assert turns.begun.get(timeout=WAIT)["period"] == 3600.0
        turns.ends.put(TurnResult(DONE))


CRAWL = {"period": 86400.0, "crawl": True}


def test_a_site_is_crawled_as_soon_as_it_is_added(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)  # without a site, as a container that was just started
        turns.ends.put(TurnResult({**DONE, "visits": 0}))
        told.wait("ended")
        cycle = scheduler.status().cycle_due
        for name in ("news", "more"):
            later(scheduler, clock, 60)
            assert turns.begun.empty()
            repo.run("add", f"http://{name}.test/")
            assert turns.begun.get(timeout=WAIT) == CRAWL
            turns.ends.put(TurnResult({**DONE, "visits": 1}))
            told.wait("ended")
        assert scheduler.status().cycle_due == cycle  # a crawl puts no cycle off
        repo.run("add", "http://news.test/", "--limit", "7")  # other pages may be its own now
        assert turns.begun.get(timeout=WAIT) == CRAWL
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        repo.run("add", "http://news.test/", "--every", "6h")
        later(scheduler, clock, 6 * 3600)
        order = turns.begun.get(timeout=WAIT)
        assert order["requests"]  # a rule for visits asks for no crawl
        turns.ends.put(TurnResult(DONE))


def test_what_runs_makes_way_for_a_new_site_and_goes_on(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        scheduler.run_now(budget=7.0)
        ordered = turns.begun.get(timeout=WAIT)
        repo.run("add", "http://news.test/")
        scheduler.wake()  # it stops the turn
        assert turns.begun.get(timeout=WAIT) == CRAWL
        turns.ends.put(TurnResult(DONE))
        assert turns.begun.get(timeout=WAIT) == ordered
        turns.ends.put(TurnResult(DONE))


def test_a_visit_that_is_requested_during_a_turn_follows_it(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)
        assert not scheduler.run_requests()
        turns.ends.put(TurnResult(DONE))
        assert turns.begun.get(timeout=WAIT) == {"period": 86400.0, "requests": True}
        turns.ends.put(TurnResult(DONE))


def test_a_site_added_during_a_pause_waits_for_its_end(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        scheduler.pause()
        repo.run("add", "http://news.test/")
        later(scheduler, clock, 60)
        assert scheduler.status().due is None
        assert turns.begun.empty()
        scheduler.resume()
        assert turns.begun.get(timeout=WAIT) == CRAWL
        turns.ends.put(TurnResult(DONE))


def test_a_pause_stops_the_turn_and_outlasts_a_restart(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        turns.begun.get(timeout=WAIT)
        scheduler.pause()
        assert told.wait("ended") == {"summary": None, "finished": False}
        assert scheduler.status().paused
        later(scheduler, clock, 1e6)
    with scheduled(repo, clock, turns, told) as scheduler:
        assert scheduler.status().paused
        assert scheduler.status().due is None
        assert turns.begun.empty()
        scheduler.resume()
        turns.begun.get(timeout=WAIT)  # at once: the turn that was stopped did not come to its end


def test_run_now_works_even_when_paused(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told, enabled=False) as scheduler:
        assert scheduler.run_now(budget=7, policy="random", bytes_="2MB")
        assert turns.begun.get(timeout=WAIT) == {"period": 86400.0, "budget": 7, "policy": "random", "bytes": "2MB"}
        assert not scheduler.run_now()
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        later(scheduler, clock, 1e6)
        assert scheduler.status().due is None
        assert turns.begun.empty()


def test_failures_are_tried_again_later_and_later(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        waits = []
        for number in range(1, 4):
            turns.begun.get(timeout=WAIT)
            turns.ends.put(TurnResult(error="no such policy"))
            assert told.wait("failed") == {"error": "no such policy", "failures": number}
            status = scheduler.status()
            assert (status.error, status.failures, status.running) == ("no such policy", number, False)
            assert status.due is not None
            waits.append(status.due - clock.now)
            later(scheduler, clock, 0)  # settings were touched: that is a reason to try at once
        turns.begun.get(timeout=WAIT)
        turns.ends.put(TurnResult(DONE))
        told.wait("ended")
        assert scheduler.status().error == ""
        assert waits == [30, 60, 120]


def test_broken_settings_do_not_end_it(repo: Repo) -> None:
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    good = (repo.folder / "recrawl.toml").read_text()
    (repo.folder / "recrawl.toml").write_text("[settings]\nevery = 'soon'\n")
    with scheduled(repo, clock, turns, told) as scheduler:
        assert "invalid duration" in told.wait("failed")["error"]
        (repo.folder / "recrawl.toml").write_text(good)
        scheduler.wake()
        turns.begun.get(timeout=WAIT)
        turns.ends.put(TurnResult(DONE))


# -- real processes ------------------------------------------------------------------------------------------


def web() -> dict[str, bytes | Reply]:
    pages: dict[str, bytes | Reply] = {f"/{k}": Reply(b"<p>page %d" % k, wait=0.05) for k in range(20)}
    return {**pages, "/": page("Start", *pages)}


def test_a_process_tells_what_it_does_and_stops_when_told(repo: Repo, site: Callable[..., Site]) -> None:
    repo.crawl(site(web()).url())
    runner = ProcessRunner(repo.folder)
    told: list[Message] = []
    ended = runner.run({"period": 3600.0, "budget": 5}, told.append)
    assert ended.summary is not None
    assert ended.summary["visits"] == 5
    assert {message.get("doing") for message in told} >= {"crawling", "visiting"}
    begun = threading.Event()

    def hear(message: Message) -> None:
        if message.get("doing") == "visiting":
            begun.set()
            runner.stop()

    stopped = runner.run({"period": 3600.0, "budget": 21}, hear)
    assert begun.is_set()
    assert stopped.error == ""
    assert stopped.summary is not None
    assert not stopped.summary["finished"]
    rest = runner.run({"period": 3600.0}, told.append)
    assert rest.summary is not None
    assert rest.summary["finished"]
    assert rest.summary["resumed"]
    assert rest.summary["visits"] + stopped.summary["visits"] == 21


def test_what_goes_wrong_in_a_process_is_told(repo: Repo) -> None:
    repo.config(policy="round-robin")
    (repo.folder / "recrawl.toml").write_text("[settings]\npolicy = 'nonsense'\n")
    assert "unknown policy 'nonsense'" in ProcessRunner(repo.folder).run({"period": 3600.0}, lambda _: None).error


@pytest.mark.slow
def test_a_service_that_is_killed_goes_on_where_it_was(repo: Repo, site: Callable[..., Site]) -> None:
    repo.crawl(site(web()).url())
    repo.config(budget=21, every="1d")
    first = repo.start("serve", "--port", 0, "--json")
    begun = _until(repo, "SELECT count(*) FROM visits WHERE cycle > 0", lambda count: count >= 1)
    os.kill(first.pid, signal.SIGKILL)
    repo.wait(first)
    with Service(repo.folder, ServiceConfig()) as service:
        _until(repo, "SELECT count(*) FROM cycles WHERE kind = 'cycle' AND finished NOT NULL", lambda count: count == 1)
        assert Asker(service).get("/healthz").status == 200
    assert begun >= 1
    rows = repo.sql(
        "SELECT page, count(*) FROM visits v JOIN cycles c ON c.id = v.cycle WHERE c.kind = 'cycle' GROUP BY 1"
    )
    assert len(rows) == 21
    assert {count for _, count in rows} == {1}  # nothing lost, nothing twice
    assert [row[0] for row in repo.sql("SELECT kind FROM cycles WHERE kind = 'cycle'")] == ["cycle"]


def _until(repo: Repo, sql: str, enough: Callable[[int], bool]) -> int:
    """Ask the store until the answer will do."""
    for _ in range(3000):
        count = int(repo.sql(sql)[0][0])
        if enough(count):
            return count
        threading.Event().wait(0.02)
    raise AssertionError(sql)
