"""What people attach to pages and changes: requested visits, intervals, tags, read marks, filters, quiet hours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recrawl
from recrawl.errors import NotKnown, UsageError
from recrawl.repository.marks import due_pages
from recrawl.serve.scheduler import Scheduler
from recrawl.serve.service import Service, ServiceConfig
from recrawl.serve.turn_process import TurnResult
from recrawl.times import WEEKDAYS, moment, next_allowed, quiet_hours
from tests.clocks import Clock
from tests.serving import Asker
from tests.test_serve_scheduler import Told, Turns, scheduled
from tests.world import Repo, Site, page

API = "/api/v1"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": page("Hello", "/a", "/b"), "/a": b"<p>a text", "/b": b"<p>b text"}) as started:
        yield started


@pytest.fixture
def repo(tmp_path: Path, site: Site) -> Repo:
    made = Repo.create(tmp_path / "repo")
    made.crawl(site.url("/"))
    return made


# -- visits on request, and intervals ------------------------------------------------------------------


def test_a_page_is_visited_on_request(repo: Repo, site: Site) -> None:
    site["/a"] = b"<p>another text of a"
    report = repo.json("recheck", site.url("/a"))
    assert (report["kind"], report["visits"], report["changed"]) == ("recheck", 1, 1)
    assert repo.outcomes(site.url("/a")) == ["new", "changed"]
    assert repo.outcomes(site.url("/b")) == ["new"]
    visit = repo.json("log", site.url("/a"), "--visits")[0]
    assert "requested" in visit["reason"]
    assert repo.json("recheck") is None, "the request is fulfilled"


def test_a_site_is_visited_on_request(repo: Repo, site: Site) -> None:
    report = repo.json("recheck", site.url("/").rstrip("/"))
    assert report["visits"] == 3
    assert repo.run("recheck", "https://nowhere.example", code=None).code == 2
    assert repo.run("recheck", site.url("/none"), code=None).code == 2


def test_a_request_waits_for_the_next_cycle(repo: Repo, site: Site) -> None:
    with recrawl.open(repo.folder) as opened:
        assert opened.request_recheck(site.url("/b"), site.url("/b")) == 2
    repo.cycle(1)
    assert len(repo.outcomes(site.url("/b"))) >= 2
    with recrawl.open(repo.folder) as opened:
        assert opened.storage.store.marks.requested() == []


def test_pages_with_an_interval_are_visited_when_it_is_over(repo: Repo, site: Site) -> None:
    repo.add(site.url("/a"), "--depth", "0", "--every", "2h")
    repo.later(hours=1)
    assert repo.json("recheck") is None
    repo.later(hours=1.5)
    assert repo.json("recheck")["visits"] == 1
    assert len(repo.outcomes(site.url("/a"))) == 2
    repo.add(site.url("/"), "--every", "1h")
    repo.later(hours=1.2)
    assert repo.json("recheck")["visits"] == 3, "all pages of the site"
    with recrawl.open(repo.folder, clock=repo.now) as opened:
        assert due_pages(opened.storage, opened.settings, opened.now()) == []
    assert "use 1m or more" in repo.run("add", site.url("/a"), "--every", "5s", code=2).err


def test_the_scheduler_looks_at_intervals_between_cycles(repo: Repo, site: Site) -> None:
    repo.add(site.url("/a"), "--depth", "0", "--every", "2h")
    clock, turns, told = Clock(1_000_000.0), Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        assert "requests" not in turns.begun.get(timeout=600), "the first turn is a whole one"
        turns.ends.put(_done())
        told.wait("ended")
        assert scheduler.status().due == pytest.approx(clock.now + 7200)
        _forward(scheduler, clock, 7201)
        assert turns.begun.get(timeout=600)["requests"]
        turns.ends.put(_done())
        told.wait("ended")
        assert scheduler.run_requests()
        assert turns.begun.get(timeout=600)["requests"]
        turns.ends.put(_done())
        told.wait("ended")
        _forward(scheduler, clock, 86400)
        assert "requests" not in turns.begun.get(timeout=600), "the cycle kept its time"
        turns.ends.put(_done())


def _done() -> TurnResult:
    return TurnResult(summary={"finished": True})


def _forward(scheduler: Scheduler, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    scheduler.wake()


# -- tags, read marks, saved filters -------------------------------------------------------------------


def test_changes_of_tagged_pages(repo: Repo, site: Site) -> None:
    repo.run("tag", "prices", site.url("/a"))
    assert [row["url"] for row in repo.json("changes", "--tag", "prices")] == [site.url("/a")]
    repo.run("tag", "prices", site.url("/").rstrip("/"))
    assert len(repo.json("changes", "--tag", "prices")) == 3
    assert repo.json("tag") == [{"tag": "prices", "sites": 1, "pages": 1}]
    repo.run("tag", "prices", site.url("/").rstrip("/"), "--remove")
    repo.run("tag", "prices", site.url("/a"), "--remove")
    assert repo.json("tag") == []
    assert "has no tag" in repo.run("tag", "prices", site.url("/a"), "--remove", code=2).err
    assert "invalid tag" in repo.run("tag", "a<b", site.url("/a"), code=2).err
    assert "name the pages" in repo.run("tag", "prices", code=2).err


def test_changes_are_unread_until_they_are_marked(repo: Repo, site: Site) -> None:
    with recrawl.open(repo.folder) as opened:
        first = list(opened.changes(unread=True))
        assert len(first) == 3
        opened.mark_read(first[0].id)
        assert {change.id for change in opened.changes(unread=True)} == {change.id for change in first[1:]}
        opened.mark_read()
        assert list(opened.changes(unread=True)) == []
        opened.mark_read(first[2].id, read=False)
        assert [change.id for change in opened.changes(unread=True)] == [first[2].id]
        with pytest.raises(UsageError):
            opened.mark_read(read=False)
    repo.run("changes", "--mark-read")
    assert repo.json("changes", "--unread") == []
    site["/a"] = b"<p>quite another text"
    repo.json("recheck", site.url("/a"))
    assert [row["url"] for row in repo.json("changes", "--unread")] == [site.url("/a")]


def test_the_api_does_all_of_it(repo: Repo, site: Site) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        assert ask.ask("PUT", f"{API}/tags", {"name": "prices", "target": site.url("/a")}).status == 200
        assert ask.get(f"{API}/tags").json["items"] == [{"name": "prices", "sites": 0, "pages": 1}]
        rows = ask.get(f"{API}/changes?tag=prices&unread=true").json["items"]
        assert [(row["url"], row["unread"]) for row in rows] == [(site.url("/a"), 1)]
        assert ask.post(f"{API}/changes/read", {"ids": [rows[0]["id"]]}).json == {"marked": 1, "read": True}
        assert ask.get(f"{API}/changes?tag=prices&unread=true").json["items"] == []
        assert ask.post(f"{API}/changes/read", {}).json["marked"] == "all"
        assert ask.get(f"{API}/changes?unread=true").json["items"] == []
        saved = {"name": "prices only", "tag": "prices"}
        assert ask.ask("PUT", f"{API}/saved-filters", saved).status == 200
        found = ask.get(f"{API}/saved-filters").json["items"]
        assert found == [{"name": "prices only", "filter": {"tag": "prices"}}]
        assert ask.ask("DELETE", f"{API}/saved-filters?name=prices%20only").status == 200
        assert ask.ask("DELETE", f"{API}/saved-filters?name=prices%20only").status == 404
        assert ask.ask("DELETE", f"{API}/tags?name=prices&target={site.url('/a')}").status == 200
        answer = ask.post(f"{API}/recheck", {"target": site.url("/b")})
        assert (answer.status, answer.json["pages"]) == (202, 1)
        assert ask.post(f"{API}/recheck", {"target": "https://nowhere.example/x"}).status == 404


def test_a_filter_has_known_fields_only(repo: Repo) -> None:
    with recrawl.open(repo.folder) as opened:
        with pytest.raises(UsageError, match="unknown filter field"):
            opened.save_filter("x", colour="red")  # type: ignore[call-arg]
        with pytest.raises(NotKnown):
            opened.remove_filter("x")


def test_filters_are_saved_used_and_deleted_on_the_command_line(repo: Repo) -> None:
    with Site({"/": page("one", "/a", "/b"), "/a": page("a"), "/b": page("b")}) as site:
        repo.crawl(site.url("/"))
        repo.later(days=2)
        site["/a"] = page("Something else entirely.")
        repo.cycle()
        repo.run("changes", "--since", "1d", "--site", site.url(""), "--save", "of today")
        assert [row["url"] for row in repo.json("changes", "--filter", "of today")] == [site.url("/a")]
        with recrawl.open(repo.folder) as opened:
            opened.save_filter("new b", path="/b", what="new", site=site.url(""))
            opened.save_filter("great", what="changed", least="10", significant="1")
            assert [change.url for change in opened.saved_changes("new b")] == [site.url("/b")]
            assert [change.outcome for change in opened.saved_changes("great", limit=5)] in ([], ["changed"])
        assert "since 1d" in repo.run("changes", "--saved").out
        assert set(repo.json("changes", "--saved")) == {"of today", "new b", "great"}
        assert "not both" in repo.run("changes", "--filter", "new b", "--unread", code=2).err
        repo.run("changes", "--forget", "new b")
        assert "'new b'" in repo.run("changes", "--filter", "new b", code=2).err


# -- quiet hours and weekdays --------------------------------------------------------------------------

TIMES = st.floats(min_value=0, max_value=4e9)
HOURS = st.builds(
    lambda a, b, zone: f"{a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02} {zone}" if a != b else "",
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)


@given(TIMES, HOURS, st.lists(st.sampled_from(WEEKDAYS), unique=True))
def test_a_cycle_starts_at_an_allowed_time_and_no_later_than_needed(at: float, quiet: str, days: list[str]) -> None:
    found = next_allowed(at, quiet, days)
    hours = quiet_hours(quiet)
    local = datetime.fromtimestamp(found, ZoneInfo(hours.zone))
    assert found >= at
    assert found - at <= 9 * 86400
    assert not hours.covers(local.hour * 60 + local.minute)
    assert not days or WEEKDAYS[local.weekday()] in days
    assert next_allowed(found, quiet, days) == found
    middle = (at + found) / 2
    assert next_allowed(middle, quiet, days) == found or found == at


@pytest.mark.parametrize("text", ["22-6", "25:00-06:00", "22:00-06:00 Mars/Base", "06:00-06:00", "night"])
def test_quiet_hours_that_cannot_be_read(repo: Repo, text: str) -> None:
    assert repo.run("config", "quiet_hours", text, code=2).err
    assert "invalid weekday" in repo.run("config", "weekdays", "mon,someday", code=2).err


def test_the_scheduler_waits_for_the_end_of_quiet_hours(repo: Repo) -> None:
    repo.config(quiet_hours="22:00-06:00", weekdays=["mon", "tue"])
    clock = Clock(1_000_000.0)
    clock.now = moment("2026-03-06T23:00", 0)  # a Friday
    turns, told = Turns(), Told()
    with scheduled(repo, clock, turns, told) as scheduler:
        assert scheduler.status().due == moment("2026-03-09T06:00", 0)
        assert turns.begun.empty()
        _forward(scheduler, clock, moment("2026-03-09T06:00", 0) - clock.now)
        turns.begun.get(timeout=600)
        turns.ends.put(_done())
        told.wait("ended")
        assert scheduler.run_now(), "what a person starts, starts"
        turns.begun.get(timeout=600)
        turns.ends.put(_done())
