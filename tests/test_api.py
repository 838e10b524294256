"""The public Python API: names, reading, writing, locks, progress, and the same answers as the command line."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.errors import NoRepository, NotKnown, RepositoryBusy, RepositoryError, UnknownName, UsageError
from recrawl.model import Outcome
from recrawl.repository.results.runs import Progress
from tests.clocks import Clock
from tests.world import Repo, Site, page

QUICK = {"delay": 0.0, "timeout": 600.0, "connect_timeout": 300.0, "stall": 300.0, "patience": 3.0, "readers": 1}
DAY = 86400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def news(tmp_path: Path, clock: Clock) -> recrawl.Repository:
    repo = recrawl.init(tmp_path / "news", clock=clock)
    repo.configure(**QUICK)
    return repo


@pytest.fixture
def web(site: Callable[..., Site]) -> Site:
    return site({"/": page("Front page", "/a", "/b"), "/a": page("alpha words"), "/b": page("beta words")})


@pytest.fixture
def full(news: recrawl.Repository, web: Site, clock: Clock) -> recrawl.Repository:
    """Three pages, crawled, and one of them changed a day later."""
    news.add(web.url("/"), allow_private=True)
    news.crawl()
    clock.now += DAY
    web["/a"] = page("alpha other words")
    news.cycle(budget=10, policy="round-robin")
    return news


# -- names -------------------------------------------------------------------------------------------------


def test_all_names_resolve_and_are_listed() -> None:
    for name in recrawl.__all__:
        assert getattr(recrawl, name) is not None
    assert set(recrawl.__all__) <= set(dir(recrawl))
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        recrawl.opne  # type: ignore[attr-defined]  # noqa: B018


def test_the_import_loads_nothing() -> None:
    code = "import recrawl, sys; print([name for name in sys.modules if name.startswith(('numpy', 'recrawl.'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['recrawl.version']"


# -- a repository ------------------------------------------------------------------------------------------


def test_init_open_and_close(tmp_path: Path) -> None:
    with recrawl.init(tmp_path / "news") as repo:
        assert repr(repo) == f"Repository('{tmp_path / 'news'}')"
    with pytest.raises(RepositoryError, match="already"):
        recrawl.init(tmp_path / "news")
    with pytest.raises(NoRepository):
        recrawl.open(tmp_path)
    (tmp_path / "news" / "below").mkdir()
    with recrawl.open(tmp_path / "news" / "below") as repo:
        assert repo.folder == tmp_path / "news"
        repo.close()
        assert repo.status().pages == 0  # opens again


def test_crawl_cycle_changes(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    changes = list(full.changes())
    assert (changes[0].url, changes[0].outcome) == (web.url("/a"), "changed")
    assert len(changes) == 4
    assert [change.url for change in full.changes(since="1h")] == [web.url("/a")]
    assert changes[0].time == datetime.fromtimestamp(clock.now, UTC)
    assert changes[0].divergence is not None
    first = full.page(web.url("/a"))
    assert [version.text for version in first.versions] == ["alpha words", "alpha other words"]
    assert first.versions[-1].html == page("alpha other words").decode()
    assert first.text == "alpha other words"
    assert dict(first.versions[0].headers)["Content-Type"].startswith("text/html")
    assert [hit.url for hit in full.search("other")] == [web.url("/a")]


def test_the_report_of_a_cycle(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    clock.now += DAY
    web["/b"] = page("beta news")
    report = full.cycle(budget=2, policy="round-robin(order=random)")
    assert report.kind == "cycle"
    assert report.visits == 2
    assert report.policy == "round-robin(order=random)"
    assert report.finished
    assert not report.resumed
    assert report.as_dict()["visits"] == 2


def test_versions_by_number_and_time(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    first = full.page(web.url("/a"))
    assert first.version(1).text == "alpha words"
    assert first.version(-1).number == 2
    yesterday = datetime.fromtimestamp(clock.now, UTC) - timedelta(hours=1)
    assert first.version(yesterday).number == 1
    assert first.version("1h").number == 1
    assert first.version(first.versions[1].time).number == 2
    with pytest.raises(NotKnown, match="versions 1 to 2"):
        first.version(3)
    with pytest.raises(NotKnown):
        first.version("5d")


def test_diff(full: recrawl.Repository, web: Site) -> None:
    found = full.page(web.url("/a")).diff()
    assert (found.old.number, found.new.number) == (1, 2)
    assert "-alpha words\n+alpha {+other +}words" in str(found)
    assert 0 < found.divergence < 1
    assert full.page(web.url("/b")).diff().text == ""


def test_names_that_are_unknown(full: recrawl.Repository, web: Site) -> None:
    with pytest.raises(NotKnown):
        full.page(web.url("/nowhere"))
    with pytest.raises(NotKnown):
        full.pages(site="elsewhere.example")
    with pytest.raises(UnknownName):
        full.pages(state="alive")
    with pytest.raises(UsageError, match="not both"):
        full.changes(since="1d", after=3)


def test_changes_continue_after_an_id(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    seen = list(full.changes(after=-1))
    assert [change.id for change in seen] == sorted(change.id for change in full.changes())
    assert list(full.changes(after=seen[-1].id)) == []
    clock.now += DAY
    web["/b"] = page("beta news")
    full.cycle(budget=10, policy="round-robin")
    assert [change.url for change in full.changes(after=seen[-1].id)] == [web.url("/b")]


def test_iteration_survives_writing(full: recrawl.Repository, clock: Clock) -> None:
    pages = iter(full.pages())
    first = next(pages)
    clock.now += DAY
    full.cycle(budget=1, policy="round-robin")
    assert first.visits.first() is not None
    assert len(list(pages)) == 2


def test_rows_are_read_in_blocks(full: recrawl.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[list[Any]] = [list(full.pages()), list(full.changes()), list(full.visits()), list(full.versions())]
    monkeypatch.setattr("recrawl.record.listings._BLOCK", 2)
    blocks = [list(full.pages()), list(full.changes()), list(full.visits()), list(full.versions())]
    assert blocks == whole
    assert [len(rows) for rows in whole] == [3, 4, 6, 4]
    assert len(list(full.visits(limit=3))) == 3
    assert [visit.outcome for visit in full.page(whole[0][0].url).visits] == ["unchanged", "new"]


def test_tables(full: recrawl.Repository) -> None:
    for rows in (full.pages(), full.changes(), full.visits(), full.versions()):
        table = rows.to_arrow()
        assert table.num_rows == len(list(rows))
        assert not [name for name in table.column_names if name.startswith("_")]
    assert full.changes().to_arrow().column("time").type.tz == "UTC"
    assert full.pages(state="gone").to_arrow().num_rows == 0


def test_pandas_is_optional(full: recrawl.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        full.pages().to_pandas()


def test_values_are_frozen(full: recrawl.Repository) -> None:
    values: list[Any] = [full.pages().first(), full.changes().first(), full.visits().first(), full.versions().first()]
    for value in values:
        assert not hasattr(value, "__dict__")
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.url = "x"


# -- writing -----------------------------------------------------------------------------------------------


def test_one_writer_at_a_time_and_readers_never_wait(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    told: list[str] = []
    other = recrawl.open(full.folder, clock=clock, notify=told.append)
    clock.now += DAY

    def while_writing(_: Progress) -> None:
        assert other.status().pages == 3
        with pytest.raises(RepositoryBusy, match="recrawl cycle"):
            other.crawl()

    report = full.cycle(budget=1, policy="round-robin", progress=while_writing)
    assert report.visits == 1
    assert told == []
    assert other.crawl().finished  # the lock is free again
    other.close()


def test_progress_and_stop(full: recrawl.Repository, clock: Clock) -> None:
    clock.now += DAY
    seen: list[Progress] = []
    stopped = full.cycle(budget=3, policy="round-robin", progress=seen.append, stop=lambda: bool(seen))
    assert not stopped.finished
    assert {step.kind for step in seen} == {"cycle"}
    assert seen[0].total == 3
    told: list[str] = []
    with recrawl.open(full.folder, clock=clock, notify=told.append) as again:
        report = again.cycle(budget=1, policy="random")
    assert report.resumed
    assert report.finished
    assert report.policy == "round-robin"
    assert "resuming cycle" in told[0]
    assert "keeps its policy" in told[1]


def test_add_and_remove(full: recrawl.Repository, web: Site) -> None:
    (addition,) = full.add("https://example.org/docs", depth=2, limit=5, include=["/docs/*"])
    assert addition.seed.url == "https://example.org/docs"
    assert full.settings.seeds[-1] == addition.seed
    assert [place.crawled for place in full.sites()] == [True, False]
    removed = full.remove(web.url("/"))
    assert removed.as_dict() == {"removed": [web.url("/")], "pages": 3}
    assert not list(full.pages())
    assert len(list(full.pages(state="dropped"))) == 3
    with pytest.raises(NotKnown, match="never added"):
        full.remove("https://example.org/other")
    with pytest.raises(UsageError, match="not a valid URL"):
        full.add("foo")


def test_settings(news: recrawl.Repository) -> None:
    assert news.configure(delay=2.5, policy="random")["delay"] == 2.5
    assert news.settings["policy"] == "random"
    with pytest.raises(UnknownName):
        news.configure(delai=3)
    with pytest.raises(UnknownName):
        news.configure(policy="rondom")
    with pytest.raises(UsageError):
        news.configure(budget=0.5, delay="slow")
    assert news.settings["budget"] == 0.1  # all or none


def test_run_takes_turns(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    timer = Clock(clock.now)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        timer.now += 3600
        clock.now += 3600

    told: list[str] = []
    repo = recrawl.open(full.folder, clock=clock, timer=timer, notify=told.append)
    begun = clock.now
    reports = list(repo.run(every="6h", budget=2, policy="round-robin", count=2, sleep=sleep))
    assert [report.visits for report in reports] == [2, 2]
    assert len(slept) == math.ceil((6 * 3600 - begun % (6 * 3600)) / 3600), "turns begin at multiples of the interval"
    assert told[0].startswith("next cycle at ")
    with pytest.raises(UsageError, match="invalid sync"):
        next(repo.run(sync="later"))
    assert list(repo.run(stop=lambda: True)) == []
    repo.close()


def test_import_and_export(full: recrawl.Repository, tmp_path: Path, web: Site) -> None:
    assert full.export(tmp_path / "history.parquet") == 4
    assert full.export(tmp_path / "urls.txt") == 3
    copy = recrawl.init(tmp_path / "copy")
    steps: list[tuple[int, int]] = []
    taken = copy.import_history(tmp_path / "history.parquet", progress=lambda *step: steps.append(step))
    assert (taken.pages, taken.versions) == (3, 4)
    assert steps[-1] == (3, 3)
    assert [version.text for version in copy.page(web.url("/a")).versions] == ["alpha words", "alpha other words"]
    listed = copy.import_urls(["https://example.org/x", "nonsense"])
    assert listed.as_dict() == {"pages": 1, "versions": 0, "refused": ["nonsense"]}
    assert sorted(copy.urls()) == sorted([*full.urls(), "https://example.org/x"])
    with pytest.raises(UsageError, match="import_urls"):
        copy.import_history(tmp_path / "urls.txt")
    with pytest.raises(UsageError, match="no folder"):
        copy.export(tmp_path / "nowhere" / "x.parquet")
    copy.close()


# -- what is expected --------------------------------------------------------------------------------------


def test_plan_why_predict_rates_anchors(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    clock.now += DAY
    plan = full.plan(budget=2, policy="round-robin")
    assert [visit.place for visit in plan.pages] == [1, 2]
    assert plan.sites[0]["visits"] == 2
    told = full.why(web.url("/a"))
    assert told.state == "live"
    assert str(told)
    assert full.page(web.url("/a")).why() == told
    prediction = full.predict(web.url("/a"))
    assert prediction.probability is not None
    assert prediction.sentences()
    assert full.rates()[0].url == web.url("/a")
    assert full.rates(by="site")[0].pages == 3
    assert full.rate(web.url("/a")).rate.changes == 1
    assert full.anchors(web.url("/"))[0].anchor["url"] == web.url("/")
    assert full.set_anchor(url=web.url("/b")) == web.url("").rstrip("/")
    assert full.anchors()[0].anchor["named"]


def test_noise(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    for day in range(4):
        clock.now += DAY
        web["/b"] = page(f"beta words and <b id=n>{day} visitors</b>")
        full.cycle(budget=10, policy="round-robin")
    found = full.noise_proposals(web.url("/b"))
    assert found
    assert found[0].url == web.url("/b")
    preview = full.noise_preview(["#n"])
    assert 0 < preview.hides <= preview.of


# -- the same as the command line --------------------------------------------------------------------------


def test_as_dict_is_what_the_command_line_prints(full: recrawl.Repository, web: Site, clock: Clock) -> None:
    url, repo = web.url("/a"), Repo(full.folder)
    first = full.page(url)
    assert repo.json("pages") == [page.as_dict() for page in full.pages()]
    assert repo.json("changes") == [change.as_dict() for change in full.changes()]
    assert repo.json("log", url) == [version.as_dict() for version in first.versions[::-1]]
    assert repo.json("log", url, "--visits") == [visit.as_dict() for visit in first.visits]
    assert repo.json("diff", url) == first.diff().as_dict()
    assert repo.json("sites") == [site.as_dict() for site in full.sites()]
    assert repo.json("noise") == [proposal.as_dict() for proposal in full.noise_proposals()]
    assert repo.json("anchor") == [site.as_dict() for site in full.anchors()]
    assert repo.json("rates") == [rate.as_dict() for rate in full.rates()]
    found = full.search("words")
    hits = [{**hit.as_dict(), "marks": [list(mark) for mark in hit.marks], "also": list(hit.also)} for hit in found]
    assert repo.json("search", "words") == hits
    status, printed = full.status().as_dict(), repo.json("status")
    moving = dict.fromkeys(("age_seconds", "freshness", "freshness_low", "freshness_high"), 0)
    assert status | moving == printed | moving
    options = ("--budget", 2, "--policy", "round-robin", "--dry-run")
    planned, shown = full.plan(budget=2, policy="round-robin").as_dict(), repo.json("cycle", *options)
    assert [visit["url"] for visit in planned["pages"]] == [visit["url"] for visit in shown["pages"]]
    assert planned.keys() == shown.keys()
    assert full.predict(url).as_dict().keys() == repo.json("predict", url).keys()
    assert full.rate(url).as_dict().keys() == repo.json("rates", url)[0].keys()
    assert full.why(url).as_dict().keys() == repo.json("why", url).keys()


def test_outcomes_have_names() -> None:
    assert recrawl.Outcome is Outcome
