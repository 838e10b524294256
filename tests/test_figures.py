"""One truth on every screen: command line, API, dashboard and metrics show the same figures of one repository."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recrawl.crawl.reports import figures
from recrawl.crawl.reports.figures import NOTHING, current, measure, stored
from recrawl.model import State
from recrawl.record.store import SqliteStore
from recrawl.serve.dashboard.render import percent
from recrawl.serve.service import Service, ServiceConfig
from recrawl.times import span
from tests.serving import Asker
from tests.world import Reply, Repo, Site, page

LINKS = ("/a", "/b", "/c", "/file.zip", "/private/x", "/broken", "/lost")


def web() -> dict[str, Any]:
    return {
        "/": page("Start", *LINKS),
        **{name: page(f"text of {name}") for name in ("/a", "/b", "/c", "/lost")},
        "/file.zip": Reply(b"PK", kind="application/zip"),
        "/private/x": page("hidden"),
        "/robots.txt": Reply(b"User-agent: *\nDisallow: /private/\n", kind="text/plain"),
        "/broken": Reply(b"no", status=500),
    }


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Site]]:
    """Two sites after crawls and cycles with changes, failures, a removed page, and then a removed site."""
    repo = Repo.create(tmp_path_factory.mktemp("figures") / "repo")
    with Site(web()) as first, Site(web()) as second:
        repo.crawl(first.url(), second.url())
        for day in range(4):
            repo.later(days=1)
            first["/a"] = page(f"news of day {day}")
            first["/b"] = Reply(b"down", status=503) if day == 2 else page("text of /b")
            if day == 1:
                del first["/lost"]
            repo.cycle(6)
        repo.run("rm", second.url())
        yield repo, first


@pytest.fixture
def lived(past: tuple[Repo, Site], tmp_path: Path) -> tuple[Repo, Site]:
    """A copy of its own for a test."""
    shutil.copytree(past[0].folder, tmp_path / "copy")
    return replace(past[0], folder=tmp_path / "copy"), past[1]


def metrics_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name if not sample.labels else f"{sample.name}/{'/'.join(sample.labels.values())}"] = (
                sample.value
            )
    return found


def figure(html: str, title: str) -> str:
    """The text of a figure of the dashboard's start page."""
    match = re.search(rf"<dt>{title}</dt><dd>(.*?)</dd>", html, re.DOTALL)
    assert match, title
    return unescape(re.sub(r"<[^>]+>", " ", match[1])).strip()


def test_all_screens_agree(lived: tuple[Repo, Site]) -> None:
    repo, _ = lived
    now = repo.now()
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        scanned, by_site = measure(store, store.pages.summary_columns(), now, 1.0)
        kept = stored(store)
    assert kept is not None
    status, sites, pages = repo.json("status"), repo.json("sites"), repo.json("pages")
    with Service(repo.folder, ServiceConfig(schedule=False, clock=lambda: now)) as service:
        ask = Asker(service)
        api, api_sites = ask.get("/api/v1/status").json, ask.get("/api/v1/sites").json["items"]
        api_pages = ask.get("/api/v1/pages?limit=500").json["items"]
        home, site_list = ask.get("/").text, ask.get("/sites").text
        measured = metrics_of(ask.get("/metrics").text)
    # counts
    assert (scanned.states, scanned.stored, scanned.sites) == (kept.states, kept.stored, kept.sites)
    assert status["pages"] == len(pages) == len(api_pages) == api["pages"] == scanned.pages
    assert status["pages"] == sum(row["pages"] for row in sites) == sum(row["pages"] or 0 for row in api_sites)
    assert status["stored"] == api["stored"] == measured["recrawl_stored_pages"] == scanned.stored
    assert status["states"] == api["states"] == scanned.states
    assert status["states"] == {state.name.lower(): measured[f"recrawl_pages/{state.name.lower()}"] for state in State}
    assert status["states"]["dropped"] == len(repo.json("pages", "--state", "dropped")) > 0
    assert {state: number for state, number in status["states"].items() if number} == {
        state: number for state in status["states"] if (number := len(repo.json("pages", "--state", state)))
    }
    assert status["sites"] == api["sites"] == measured["recrawl_sites"] == sum(row["pages"] > 0 for row in sites) == 1
    assert figure(home, "Pages").split() == [str(status["pages"]), str(status["stored"]), "stored,", "on", "1", "site"]
    assert sorted(row["pages"] for row in by_site) == sorted(row["pages"] for row in sites)
    for row, other in zip(sites, sorted(api_sites, key=lambda one: str(one["url"])), strict=True):
        for name in ("url", "pages", "live", "found", "gone", "visits", "changes"):
            assert row[name] == other[name], name
        assert row["url"] in site_list
    # visits
    assert status["visits"] == api["visits"] == repo.sql("SELECT count(*) FROM visits")[0][0]
    outcomes = [value for name, value in measured.items() if name.startswith("recrawl_visits_total/")]
    assert sum(outcomes) == status["visits"]
    # freshness and time since the last visit: between two commands the clock goes on
    assert status["freshness"] == pytest.approx(api["freshness"], abs=1e-3)
    assert status["freshness"] == pytest.approx(measured["recrawl_freshness"], abs=1e-3)
    assert status["freshness"] == pytest.approx(scanned.fresh(now), abs=1e-3)
    assert figure(home, "Fresh now").startswith(percent(api["freshness"])[:2])
    assert status["age_seconds"]["p50"] == pytest.approx(api["age_seconds"]["p50"], abs=60)
    assert status["age_seconds"]["p50"] == pytest.approx(measured["recrawl_age_seconds"], abs=60)
    assert span(api["age_seconds"]["p50"]) in figure(home, "Last checked")


def test_figures_follow_a_run_under_way(repo: Repo, site: Callable[..., Site]) -> None:
    """Visits that no summary covers yet count on the command line."""
    start = site(web())
    repo.crawl(start.url())
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        before = stored(store)
        assert before is not None
        figures.write(store, NOTHING)
        assert current(store, repo.now())[0].states == before.states


def test_freshness_fades_as_it_is_measured(lived: tuple[Repo, Site]) -> None:
    """What is computed ahead is what a measurement gives at that time."""
    repo, _ = lived
    with contextlib.closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        written = stored(store)
        assert written is not None
        for hours in (0, 1, 24, 24 * 7):
            later = written.at + hours * 3600
            then, _ = measure(store, store.pages.summary_columns(), later, written.spread)
            assert written.fresh(later) == pytest.approx(then.fresh(later))
            assert written.ages_at(later) == pytest.approx(then.ages_at(later))
        between = written.at + 5 * 3600
        assert written.fresh(between) == pytest.approx(
            measure(store, store.pages.summary_columns(), between, 1.0)[0].fresh(between), abs=0.01
        )


def test_a_share_of_the_pages_is_of_those_that_can_be_visited(lived: tuple[Repo, Site]) -> None:
    repo, _ = lived
    states = repo.json("status")["states"]
    repo.later(days=40)  # no page waits after a failure any more
    plan = repo.json("cycle", "--dry-run", "--budget", 0.999)
    assert plan["budget"] == states["found"] + states["live"] + states["missing"]


def test_a_share_does_not_count_pages_beyond_the_limit_of_their_site(repo: Repo, site: Callable[..., Site]) -> None:
    links = [f"/{number}" for number in range(20)]
    start = site({"/": page("Start", *links), **{link: page(link) for link in links}})
    repo.add(start.url(), "--limit", 5)
    repo.crawl()
    assert len(repo.pages()) > 10
    repo.later(days=1)
    assert repo.json("cycle", "--dry-run", "--budget", 0.8)["budget"] == 4


@pytest.mark.parametrize("policy", ["shock", "predicted", "round-robin"])
def test_a_page_has_one_change_probability(lived: tuple[Repo, Site], policy: str) -> None:
    """The same figure in `why`, `predict`, `rates`, the plan, the API and the Outlook, whatever the policy."""
    repo, start = lived
    repo.config(policy=policy)
    repo.later(days=2)
    url = start.url("/a")
    chance = repo.json("predict", url)["probability"]
    assert 0 < chance < 1
    same = pytest.approx(chance, abs=1e-3)
    assert repo.json("rates", url)[0]["chance_by_now"] == same
    explained = repo.json("why", url)
    assert explained["plan"]["probability"] == same
    planned = {row["url"]: row["probability"] for row in repo.json("cycle", "--dry-run", "--budget", 100)["pages"]}
    assert planned[url] == same
    shown = percent(chance).replace("\xa0", " ")
    for words in (["predict", url], ["why", url], ["rates", url]):
        assert shown in repo.run(*words).out, words
    with Service(repo.folder, ServiceConfig(schedule=False, clock=repo.now)) as service:
        ask = Asker(service)
        number = ask.get(f"/api/v1/page?url={url}").json["id"]
        assert ask.get(f"/api/v1/pages/{number}/predict").json["probability"] == same
        outlook = ask.get(f"/pages/{number}/outlook").text
    assert set(re.findall(r"([\d.]+ %) likely", outlook)) == {shown}
    assert f"<strong>{shown}</strong>" in outlook.replace("\xa0", " ")
    (meter,) = re.findall(r'<meter min="0" max="1" value="([\d.]+)"', outlook)
    assert float(meter) == same
