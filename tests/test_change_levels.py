"""The levels of change of R §3.1, the whole way: significant, relevance, new links; live, in the lab, in alerts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.errors import UsageError
from recrawl.lab.formats.archive import schema
from recrawl.lab.histories.history import History, link_steps
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.runner import policy_for
from recrawl.repository.alerts.matching import match_visits
from recrawl.repository.repository import Repository
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Alert, load, write_alerts
from tests.serving import Asker, Got
from tests.world import Repo, Site

DAY = 86400


def linked(text: str, *paths: str) -> bytes:
    """A page whose links all have the same text, so that only their targets can differ."""
    return f"<html><body><p>{text}</p>{''.join(f'<p><a href={path}>more</a>' for path in paths)}</body></html>".encode()


@pytest.fixture
def crawled(repo: Repo, site: Callable[..., Site]) -> tuple[Repo, Site]:
    server = site({"/": linked("Start", "/a"), "/a": linked("An article"), "/known": linked("Known")})
    repo.add(server.url("/"), "--allow-private")
    repo.run("add", server.url("/known"), "--allow-private")
    repo.crawl()
    return repo, server


def changed(crawled: tuple[Repo, Site], pages: dict[str, bytes], *options: object) -> list[str]:
    """The pages that a cycle, a day later, finds changed."""
    repo, server = crawled
    server.pages.update(pages)
    repo.later(days=1)
    repo.cycle(100, "--policy", "round-robin", *options)
    rows = repo.json("changes", "--since", "12h")
    return [row["url"].removeprefix(server.url("")) for row in rows if row["outcome"] == "changed"]


LINKS = [
    ("another text, the same links", linked("Start again", "/a"), [], []),
    ("a link to a page that is known", linked("Start", "/a", "/known"), [], ["/"]),
    ("the same text, another target that is known", linked("Start", "/known"), [], ["/"]),
    ("the same text, another target that is new", linked("Start", "/new"), ["/"], ["/"]),
    ("a new link among the old ones", linked("Start", "/a", "/new"), ["/"], ["/"]),
    ("a link less", linked("Start"), [], []),
]


@pytest.mark.parametrize(("what", "body", "new", "out"), LINKS)
def test_links_are_changes(crawled: tuple[Repo, Site], what: str, body: bytes, new: list[str], out: list[str]) -> None:
    assert changed(crawled, {"/": body}, "--change", "new-link") == new, what
    crawled[1].pages["/"] = linked("Start", "/a")
    changed(crawled, {})
    assert changed(crawled, {"/": body}, "--change", "out-link") == out, what


def test_a_site_and_the_setting_take_links_as_changes(crawled: tuple[Repo, Site]) -> None:
    repo, server = crawled
    repo.run("config", "change", "new-link")
    assert changed(crawled, {"/": linked("Other words", "/a")}) == []
    assert changed(crawled, {"/": linked("Other words", "/a", "/n1")}) == ["/"]
    repo.run("add", server.url("/"), "--change", "out-link", "--allow-private")
    assert changed(crawled, {"/": linked("Other words", "/known")}) == ["/"]
    assert changed(crawled, {"/": linked("Quite other words", "/known")}) == []


def test_the_objective_links_counts_what_changes_bring(crawled: tuple[Repo, Site]) -> None:
    """A policy for new links runs at that level, and visits the page that brings them before others."""
    repo, server = crawled
    paths = ["/a"]
    for day in range(6):
        paths.append(f"/new{day}")
        changed(crawled, {"/": linked("Start", *paths), f"/new{day}": linked(f"Page {day}")}, "--change", "new-link")
    changed(crawled, {}, "--change", "new-link")
    repo.later(days=1)
    server.pages["/"] = linked("Start", *paths, "/newest")
    report = repo.cycle(1, "--policy", "shock(objective=links)", "--change", "new-link")
    assert (report["visits"], report["changed"]) == (1, 1)


def test_a_page_that_ceases_to_match_has_not_changed_in_relevance(crawled: tuple[Repo, Site], tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("storm warning\nelection\n", encoding="utf-8")
    begins, both = f"relevance:{queries}", f"relevance-both:{queries}"
    assert changed(crawled, {"/a": linked("A storm without consequences")}, "--change", begins) == []
    assert changed(crawled, {"/a": linked("A storm, and a warning of it")}, "--change", begins) == ["/a"]
    assert changed(crawled, {"/a": linked("The warning of the storm holds")}, "--change", begins) == []
    assert changed(crawled, {"/a": linked("An election during the storm")}, "--change", begins) == ["/a"]
    assert changed(crawled, {"/a": linked("Nothing")}, "--change", begins) == [], "from relevant to not relevant"
    assert changed(crawled, {"/a": linked("The election")}, "--change", both) == ["/a"]
    assert changed(crawled, {"/a": linked("Nothing again")}, "--change", both) == ["/a"]


def test_a_significant_change_is_one_of_many_words(crawled: tuple[Repo, Site]) -> None:
    many = "common words that stand there often " * 60
    changed(crawled, {"/a": linked(many)})
    assert changed(crawled, {"/a": linked(many + " more")}, "--change", "significant") == []
    assert changed(crawled, {"/a": linked("quite another text of its own " * 60)}, "--change", "significant") == ["/a"]


# -- alerts ------------------------------------------------------------------------------------------------------------


def told(crawled: tuple[Repo, Site], pages: dict[str, bytes]) -> dict[str, list[str]]:
    """What each rule tells of a cycle."""
    repo, server = crawled
    changed(crawled, pages)
    found: dict[str, list[str]] = {}
    with Repository(repo.folder) as repository:
        for row in match_visits(repository, repository.settings.alerts, 1.0)[0]:
            found.setdefault(row["alert"], []).append(row["url"].removeprefix(server.url("")))
    return found


def test_an_alert_has_a_level_of_its_own(crawled: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, _ = crawled
    queries = tmp_path / "queries.txt"
    queries.write_text("election\n", encoding="utf-8")
    levels = ("new-link", "out-link", "text", "words:9", "significant", f"relevance:{queries}")
    rules = [Alert(f"r{number}", "feed", change=level, outcomes=("changed",)) for number, level in enumerate(levels)]
    write_alerts(repo.folder / "recrawl.toml", (*rules, Alert("site", "feed", outcomes=("changed",))))
    repo.run("config", "change", "divergence:0.9")
    told(crawled, {})
    assert told(crawled, {"/a": linked("An article about an election")}) == {"r2": ["/a"], "r4": ["/a"], "r5": ["/a"]}
    assert told(crawled, {"/": linked("Start", "/new")}) == {"r0": ["/"], "r1": ["/"]}
    assert told(crawled, {"/a": linked("An article about nothing")}) == {"r2": ["/a"], "r4": ["/a"]}
    quite_other = told(crawled, {"/a": linked("entirely other words stand here now " * 30)})
    assert quite_other == {"r2": ["/a"], "r3": ["/a"], "r4": ["/a"], "site": ["/a"]}
    assert told(crawled, {}) == {}


# -- the service -------------------------------------------------------------------------------------------------------


def test_the_service_takes_every_level(crawled: tuple[Repo, Site]) -> None:
    repo, server = crawled
    (repo.folder / "queries.txt").write_text("election\n", encoding="utf-8")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        for level in ("new-link", "out-link", "significant", "relevance:queries.txt", "relevance-both:queries.txt"):
            assert ask.ask("PUT", "/api/v1/settings/change", {"value": level}).status == 200, level
            assert ask.post("/api/v1/seeds", {"url": server.url("/"), "change": level}).status < 300, level
            assert ask.ask("PUT", "/api/v1/alerts/x", {"target": "feed", "change": level}).status == 200, level
        kept = load(repo.folder / "recrawl.toml")
        path = f"relevance-both:{repo.folder / 'queries.txt'}"
        assert [kept["change"], kept.seeds[0].change, kept.alerts[0].change] == [path] * 3, "wherever the service runs"
        for wrong in ("relevance:/etc/passwd", "relevance:../x", "relevance-both:/etc/passwd", "new-links"):
            assert ask.ask("PUT", "/api/v1/settings/change", {"value": wrong}).status == 400, wrong
            assert ask.post("/api/v1/seeds", {"url": server.url("/"), "change": wrong}).status == 400, wrong
            assert ask.ask("PUT", "/api/v1/alerts/x", {"target": "feed", "change": wrong}).status == 400, wrong
        assert ask.post("/api/v1/jobs/lab-run", {"policy": ["random"], "change": "relevance:/etc/passwd"}).status >= 400


def submit(ask: Asker, path: str, **form: str) -> Got:
    """Send a form with the token and the cookie of its page."""
    shown = ask.get(path)
    token = re.search(r'name="csrf" value="([^"]+)"', shown.text)
    assert token is not None
    cookie = {"Cookie": shown.headers["set-cookie"].partition(";")[0]}
    return ask.post(path, {**form, "csrf": token[1]}, form=True, headers=cookie)


def test_the_forms_take_every_level(crawled: tuple[Repo, Site]) -> None:
    repo, server = crawled
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service, Accept="text/html")
        submit(ask, "/alerts", name="links", target="feed", change="new-link")
        submit(ask, "/settings", url=server.url("/"), change="out-link", editing="1", allow_private="on")
        kept = load(repo.folder / "recrawl.toml")
        assert (kept.alerts[0].change, kept.seeds[0].change) == ("new-link", "out-link")
        assert "new-link" in ask.get("/alerts").text
        assert "new-link" in ask.get("/settings/changes").text, "suggested"
        refused = submit(ask, "/alerts", name="links", target="feed", change="new-links")
        assert refused.status == 400
        assert "invalid change" in refused.text
        outside = submit(ask, "/settings", url=server.url("/"), change="relevance:/etc/passwd", editing="1")
        assert "outside the repository" in outside.text


# -- the lab -----------------------------------------------------------------------------------------------------------

A, B, NEW = "https://a.example/", "https://a.example/b", "https://a.example/new"
VERSIONS: dict[str, list[tuple[int, bytes | None]]] = {
    A: [(0, linked("election", "/b")), (1, linked("storm", "/b")), (2, linked("storm", "/new")),
        (4, linked("storm", "/b", "/new"))],
    B: [(0, linked("b")), (3, linked("b", "/new")), (5, None), (6, linked("b", "/new", "/other"))],
    NEW: [(4, linked("new", "/b"))],
}  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    rows = [{"url": url, "time": day * DAY, "html": body} for url, states in VERSIONS.items() for day, body in states]
    pq.write_table(pa.Table.from_pylist(rows, schema()), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


STEPS = {
    "new-link": {A: [2], B: [5, 6], NEW: []},
    "out-link": {A: [2, 4], B: [3, 5, 6], NEW: []},
    "relevance": {A: [1], B: [5, 6], NEW: []},
    "relevance-both": {A: [1], B: [5, 6], NEW: []},
}


@pytest.mark.parametrize("level", STEPS)
def test_an_archive_is_read_at_every_level(archive: Path, tmp_path: Path, level: str) -> None:
    """Births, removals and returns count at every level; a page is known from its birth or the first link to it."""
    queries = tmp_path / "queries.txt"
    queries.write_text("storm\n", encoding="utf-8")
    named = f"{level}:{queries}" if level.startswith("relevance") else level
    history = History.read(archive, named, cache=tmp_path / "cache")
    assert {url: _days(history, url) for url in history.urls} == STEPS[level]
    queries.write_text("election\n", encoding="utf-8")
    if level == "relevance":
        assert _days(History.read(archive, named, cache=tmp_path / "cache"), A) == [], (
            "other queries, not those of the cache"
        )
    if level == "relevance-both":
        assert _days(History.read(archive, named, cache=tmp_path / "cache"), A) == [1]


def _days(history: History, url: str) -> list[int]:
    """The days on which a page differs from the version before."""
    page = list(history.urls).index(url)
    rows = slice(history.first[page], history.first[page + 1])
    times = (history.time[rows] / DAY).astype(int)
    return [int(day) for day, differs in zip(times[1:], np.diff(history.version[rows]) != 0, strict=True) if differs]


@pytest.mark.parametrize("policy", ["shock(objective=links)", "shock(objective=changes)", "shock(objective=age)"])
def test_a_replay_finds_new_links_under_every_objective(archive: Path, policy: str) -> None:
    history = History.read(archive, "new-link")
    setup = Setup(budget=3, cycle=DAY, cycles=6, samples=1)
    summary = replay(history, policy_for(policy, history, setup), setup).summary()
    rows = np.flatnonzero(np.diff(history.version) * (np.diff(history.page_of) == 0))
    assert summary["found"] == len(rows) + 1, "every page is visited every day; one was born"


def test_the_lab_runs_at_every_level(repo: Repo, archive: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("storm\n", encoding="utf-8")
    found = {}
    for level in ("text", "new-link", "out-link", "significant", f"relevance:{queries}"):
        rows = repo.json(
            "lab", "run", archive, "--policy", "round-robin", "--budget", 3, "--change", level, "--no-cache"
        )
        found[level.partition(":")[0]] = rows["policies"][0]["found"] if "policies" in rows else rows[0]["found"]
    assert found["new-link"] < found["text"]
    assert found["out-link"] > found["new-link"]
    assert found["relevance"] < found["text"]
    (tmp_path / "none.txt").touch()
    with pytest.raises(UsageError, match="holds no query"):
        History.read(archive, f"relevance:{tmp_path / 'none.txt'}")


def test_links_of_files_are_known_to_all(tmp_path: Path) -> None:
    """A page linked in one file of an archive is no new one in another."""
    from recrawl.lab.formats.page_facts import facts_of

    for name, day in (("x", 0), ("y", 1)):
        rows = [
            {"url": f"https://{name}.example/", "time": 0, "html": linked("one")},
            {"url": f"https://{name}.example/", "time": (day + 1) * DAY, "html": linked("two", "https://z.example/")},
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema()), tmp_path / f"{name}.parquet")
    facts = facts_of([tmp_path / "x.parquet", tmp_path / "y.parquet"], None, workers=1)
    assert [steps.tolist() for steps in link_steps(facts, known=True)] == [[True, True], [True, False]]
