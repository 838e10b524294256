"""What runs now: seen from other processes while it runs, gone when it ends, and told in lines."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

import recrawl
from recrawl.crawl.tally import RunCounts
from recrawl.model import Outcome
from recrawl.repository.running import running, shown
from recrawl.serve.cycle_log import describe_plan, plan
from recrawl.serve.service import Service, ServiceConfig
from recrawl.serve.turn_process import Message, TurnResult
from tests.clocks import Clock
from tests.serving import Asker
from tests.world import Repo, Site, page


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path / "repo")


def tally(visits: int, waiting: int = 0, url: str = "https://x.example/<b>") -> RunCounts:
    made = RunCounts(received=2_000_000, found=7, waiting=waiting, url=url)
    made.outcomes[Outcome.CHANGED] = visits
    return made


def test_a_crawl_is_seen_from_outside_while_it_runs(repo: Repo) -> None:
    seen = []
    with Site({"/": page("Hello", "/a", "/b"), "/a": b"<p>a", "/b": b"<p>b"}) as site:
        repo.add(site.url("/"))
        with recrawl.open(repo.folder) as opened:
            opened.crawl(progress=lambda _: seen.append(running(repo.folder)))
            assert opened.running() is None
            opened.cycle(budget=2, progress=lambda _: seen.append(opened.running()))
    assert None not in seen
    assert {found.kind for found in seen if found} == {"crawl", "cycle"}
    assert {found.total for found in seen if found and found.kind == "cycle"} == {2}
    assert running(repo.folder) is None


def test_progress_share_rate_and_time_left(repo: Repo) -> None:
    with shown(repo.folder, "cycle", 40, lambda _: None) as report:
        report(tally(10))
        found = running(repo.folder)
        assert found is not None
        assert (found.visits, found.total, found.share, found.url) == (10, 40, 0.25, "https://x.example/<b>")
        assert found.rate > 0
        assert found.seconds_left == pytest.approx(30 / found.rate)
        line = repo.run("status").out.splitlines()[0]
        assert line.startswith("running: cycle, 10 of 40 visits, ")
        assert repo.json("status")["running"]["visits"] == 10
    assert repo.json("status")["running"] is None


def test_in_a_crawl_the_total_is_what_is_known(repo: Repo) -> None:
    with shown(repo.folder, "crawl", None, lambda _: None) as report:
        report(tally(3, waiting=9))
        found = running(repo.folder)
        assert found is not None
        assert (found.visits, found.total) == (3, 12)


def test_the_total_of_a_crawl_never_shrinks(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are requested and not answered yet are neither visited nor waiting."""
    monkeypatch.setattr("recrawl.repository.running._INTERVAL", 0.0)
    totals = []
    with shown(repo.folder, "crawl", None, lambda _: None) as report:
        for visits, waiting in ((3, 9), (4, 2), (9, 1), (12, 3)):
            report(tally(visits, waiting=waiting))
            found = running(repo.folder)
            assert found is not None
            totals.append(found.total)
    assert totals == [12, 12, 12, 15]


def test_the_file_of_a_killed_run_does_not_count(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repo.folder / "progress.json"
    with shown(repo.folder, "cycle", 40, lambda _: None):
        left = json.loads(file.read_text())
    file.write_text(json.dumps({**left, "pid": 2**22 + 1}))
    monkeypatch.setattr("recrawl.repository.running._FRESH", -1.0)
    assert running(repo.folder) is None
    file.write_text("{")
    assert running(repo.folder) is None


def test_the_dashboard_and_the_api_show_it(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        asker = Asker(service, accept="text/html")
        assert asker.get("/running").text.strip() == ""
        assert asker.get("/api/v1/running").json == {"running": False}
        with shown(repo.folder, "cycle", 40, lambda _: None) as report:
            report(tally(10))
            for path in ("/running", "/"):
                text = asker.get(path).text
                assert "Cycle running" in text
                assert "of 40" in text
                assert "10 changed" in text
                assert "Visiting https://x.example/&lt;b&gt;" in text
            assert "Cycle 25" in asker.get("/running?brief=1").text
            assert asker.get("/api/v1/running").json["share"] == 0.25


def test_the_service_says_what_it_will_do_and_logs_each_cycle(repo: Repo) -> None:
    lines: queue.Queue[str] = queue.Queue()
    with Service(repo.folder, ServiceConfig(schedule=False, log=lines.put)) as service:
        assert "no site was added yet" in describe_plan(plan(service.context))
        with Site({"/": page("Hello", "/a"), "/a": b"<p>a"}) as site:
            repo.crawl(site.url("/"))
            assert "crawl 0 finished in" in (line := lines.get(timeout=600))
            assert "2 visits: 2 new; " in line
            repo.cycle(1)
            told = [lines.get(timeout=600)]
            while "finished" not in told[-1]:
                told.append(lines.get(timeout=600))
        assert "cycle 1 finished in" in told[-1]
        assert "1 visit: 1 unchanged" in told[-1]
        service.context.events.publish("failed", {"error": "no disk", "failures": 1})
        assert "cycle failed: no disk" in lines.get(timeout=600)
    with Service(repo.folder, ServiceConfig(clock=lambda: 1e9, runner=_Never())) as service:
        service.context.scheduler.pause()
        assert "the scheduler is paused" in describe_plan(plan(service.context))
        service.context.scheduler._base = 1e9  # as after a turn
        service.context.scheduler.resume()
        text = describe_plan(plan(service.context))
        assert text == "next cycle in 24 h (2001-09-10 01:46Z), then every 24h: policy shock, budget 1 of 2 pages"


def test_the_next_cycle_is_told_alike_everywhere(repo: Repo) -> None:
    """Pages with an interval of their own are due at once after a start; that is no cycle."""
    clock = Clock(1e9)
    with Site({"/": page("Hello", "/a"), "/a": b"<p>a"}) as site:
        repo.run("add", site.url("/"), "--every", "6m")
        repo.crawl()
        repo.cycle(1)
    with Service(repo.folder, ServiceConfig(clock=clock, runner=_Never(), schedule=False)) as service:
        scheduler = service.context.scheduler
        scheduler._status = replace(scheduler._status, enabled=True)
        scheduler._base = clock.now - 3600  # as after a turn an hour ago
        planned, asked = plan(service.context), Asker(service).get("/api/v1/scheduler").json
        assert planned["due_in"] == 23 * 3600
        assert datetime.fromisoformat(planned["next_cycle"]) == datetime.fromisoformat(asked["cycle_due"])
        assert datetime.fromisoformat(asked["due"]).timestamp() == clock.now
        assert "next cycle in 23 h" in describe_plan(planned)
        assert "The next cycle starts in 23 h." in Asker(service, accept="text/html").get("/").text


class _Never:
    """A runner without turns."""

    def run(self, order: Message, on_message: Callable[[Message], None]) -> TurnResult:
        raise OSError("no turn in this test")

    def stop(self) -> None:
        pass
