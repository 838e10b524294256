"""The API: it does what its own document says, whatever is sent to it; and it does what the command line does."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from recrawl.serve.api import OPERATIONS
from recrawl.serve.api.openapi import document
from recrawl.serve.context import ServiceLimits
from recrawl.serve.service import Service, ServiceConfig
from recrawl.serve.turn_process import TurnResult
from tests.serving import Asker
from tests.world import Repo, Site, page

API = "/api/v1"
HOSTILE = "<script>alert('x')</script>"


class Idle:
    """A runner that does nothing."""

    def run(self, order: Any, on_message: Any) -> TurnResult:
        del order, on_message
        return TurnResult(summary=None)

    def stop(self) -> None:
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Service, Site]]:
    """A repository with a little history, served."""
    repo = Repo.create(tmp_path_factory.mktemp("api") / "repo")
    with Site({"/": page("Start", "/a", "/b"), "/a": b"<title>One</title><p>apples", "/b": b"<p>pears"}) as site:
        repo.crawl(site.url())
        repo.later(days=1)
        site["/a"] = f"<title>{HOSTILE.replace('<', '&lt;')}</title><p>oranges".encode()
        repo.cycle()
        plan = ServiceConfig(schedule=False, runner=Idle(), limits=ServiceLimits(per_minute=1e9, burst=1e9, streams=2))
        with Service(repo.folder, plan) as service:
            yield repo, service, site


@pytest.fixture
def ask(served: tuple[Repo, Service, Site]) -> Asker:
    return Asker(served[1])


def number_of(ask: Asker, url: str) -> int:
    found = ask.get(f"{API}/page?url={url}")
    assert found.status == 200, found.text
    return int(found.json["id"])


# -- the document --------------------------------------------------------------------------------------------


def test_the_document_is_served_and_names_every_operation(ask: Asker) -> None:
    told = ask.get(f"{API}/openapi.json").json
    assert told == json.loads(json.dumps(document(OPERATIONS)))
    names = [operation["operationId"] for path in told["paths"].values() for operation in path.values()]
    assert sorted(names) == sorted({operation.name for operation in OPERATIONS})


def test_a_page_is_named_by_its_url_everywhere(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    """Its number is local to the store; the operations that take it are deprecated, and answer the same."""
    url = served[2].url("/a")
    number = number_of(ask, url)
    paths = ask.get(f"{API}/openapi.json").json["paths"]
    numbered = [path for path in paths if path.startswith(f"{API}/pages/{{page}}")]
    assert len(numbered) == 10
    for path in numbered:
        assert paths[path]["get"]["deprecated"]
        by_url = path.replace("/pages/{page}", "/page")
        assert not paths[by_url]["get"].get("deprecated")
        if "predict" not in path:  # it says when it was asked
            one, other = ask.get(path.replace("{page}", str(number))), ask.get(f"{by_url}?url={quote(url)}")
            assert (one.status, one.body) == (other.status, other.body), path
    assert ask.get(f"{API}/page/versions?url=https://nowhere.example/").status == 404
    assert "did you mean 'url'?" in ask.get(f"{API}/page/versions?urls=x").text


def test_a_whole_list_says_how_long_it_is(ask: Asker) -> None:
    whole = ask.get(f"{API}/pages?limit=500")
    assert whole.headers["x-total-count"] == str(len(whole.json["items"]))
    for part in (f"limit={len(whole.json['items'])}", "limit=1", f"limit=500&after={whole.json['items'][0]['id']}"):
        assert "x-total-count" not in ask.get(f"{API}/pages?{part}").headers
    for path in ("settings", "alerts", "files", "jobs", "tags", "policies", "sites", "cycles", "deliveries"):
        found = ask.get(f"{API}/{path}")
        assert found.headers["x-total-count"] == str(len(found.json["items"])), path


@pytest.mark.parametrize(
    "path",
    ["pages", "sites", "changes", "cycles", "page/versions?url={a}", "page/visits?url={a}", "rates", "search?q=pears"],
)
def test_a_list_in_parts_is_the_list(ask: Asker, served: tuple[Repo, Service, Site], path: str) -> None:
    """Each row once and in order, whatever the length of a part; only the last part has no cursor."""
    where = f"{API}/{path.format(a=quote(served[2].url('/a')))}"
    where += "&" if "?" in where else "?"
    whole = ask.get(f"{where}limit=100")
    assert (whole.json["next"], whole.headers["x-total-count"]) == (None, str(len(whole.json["items"])))
    rows, after = [], ""
    while True:
        part = ask.get(f"{where}limit=1&after={quote(after)}")
        rows += part.json["items"]
        if part.json["next"] is None:
            break
        assert len(part.json["items"]) <= 1
        assert "x-total-count" not in part.headers
        after = part.json["next"]
    assert [without_times(row) for row in rows] == [without_times(row) for row in whole.json["items"]]
    assert rows
    assert ask.get(f"{where}after=nonsense").status == 400


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what depends on when it was asked for."""
    return {name: value for name, value in row.items() if name not in ("freshness", "age", "even_chance_by")}


_JOBS = {
    operation.name for operation in OPERATIONS if operation.method == "POST" and operation.path.startswith("/jobs/")
}
_NOT_AT_RANDOM = {"events", "subscribe", "compare", "rates", "preview_filter"} | _JOBS
"""An endless answer, and what starts processes or asks other servers."""
SCHEMA = schemathesis.openapi.from_dict(
    json.loads(json.dumps(document(operation for operation in OPERATIONS if operation.name not in _NOT_AT_RANDOM)))
)


@SCHEMA.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_anything_at_all_gets_an_answer_that_is_documented(case: Any, served: tuple[Repo, Service, Site]) -> None:
    repo, service, _ = served
    before = (repo.folder / "recrawl.toml").read_text()
    try:
        case.call_and_validate(
            base_url=service.url.rstrip("/"),
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )
    finally:
        (repo.folder / "recrawl.toml").write_text(before)


@pytest.mark.parametrize(
    "path",
    [
        "/pages?limit=0",
        "/pages?limit=x",
        "/pages?limit=1e3",
        "/pages?limit=99999999999999999999999",
        "/pages?nonsense=1",
        "/pages?limit=1&limit=2",
        "/pages?after=-1",
        "/pages?after=%00",
        "/pages?state=odd",
        "/changes?since=whenever",
        "/changes?divergence=nan",
        "/changes?divergence=2",
        "/changes?after=1_x",
        "/changes?after=nan_1",
        "/search",
        "/search?q=",
        "/search?q=a&after=99999",
        "/cycles?after=zzz",
        "/page",
        "/page?url=%FF%FE",
        "/anchors?every=0s",
    ],
)
def test_bad_questions_are_told_what_is_wrong(ask: Asker, path: str) -> None:
    found = ask.get(API + path)
    assert found.status == 400, found.text
    assert found.headers["content-type"] == "application/problem+json"
    assert len(found.json["detail"]) > 10


@pytest.mark.parametrize("path", ["/pages/999", "/pages/999/why", "/sites/99", "/page?url=https://nowhere.example/"])
def test_what_is_not_there(ask: Asker, path: str) -> None:
    assert ask.get(API + path).status == 404


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"value": 1}', "text/plain", 415),
        (b'{"value": 1}', "application/x-www-form-urlencoded", 415),
        (b"[" * 100_000, "application/json", 400),
        (b'{"value": "x"}', "application/json", 400),
        (b'{"value": NaN}', "application/json", 400),
        (b'{"value": 1, "more": 2}', "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"value": "\\ud800"}', "application/json", 400),
    ],
)
def test_bad_bodies_change_nothing(ask: Asker, body: bytes, kind: str, status: int) -> None:
    before = ask.get(f"{API}/settings").json
    found = ask.ask("PUT", f"{API}/settings/delay", body, headers={"Content-Type": kind})
    assert found.status == status, found.text
    assert ask.get(f"{API}/settings").json == before


# -- the same as the command line ----------------------------------------------------------------------------


def test_questions_are_answered_as_on_the_command_line(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    repo, _, site = served
    told = ask.get(f"{API}/status").json
    status = repo.json("status")
    assert (told["pages"], told["sites"]) == (status["pages"], status["sites"])
    assert told["freshness"] > 0.5
    listed = ask.get(f"{API}/pages").json["items"]
    assert {row["url"]: row["state"] for row in listed} == repo.states()
    of_site = ask.get(f"{API}/pages?site={site.url()}").json["items"]
    assert {row["url"] for row in of_site} == {row["url"] for row in listed}
    changed = ask.get(f"{API}/changes?outcome=changed").json["items"]
    assert [row["url"] for row in changed] == [site.url("/a")]
    assert ask.get(f"{API}/search?q=pears").json["items"][0]["url"] == site.url("/b")
    assert {row["name"] for row in ask.get(f"{API}/policies").json["items"]} >= {"round-robin", "shock"}
    assert [row["kind"] for row in ask.get(f"{API}/cycles").json["items"]] == ["cycle", "crawl"]
    assert ask.get(f"{API}/sites/0").json["cycles"][0]["visits"] == 3


def test_a_page(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    repo, _, site = served
    number = number_of(ask, site.url("/a"))
    told = ask.get(f"{API}/pages/{number}").json
    assert told["title"] == HOSTILE
    versions = ask.get(f"{API}/pages/{number}/versions").json["items"]
    assert len(versions) == 2
    assert "oranges" in ask.get(f"{API}/pages/{number}/text").json["text"]
    assert "apples" in ask.get(f"{API}/pages/{number}/text?version={versions[1]['id']}").json["text"]
    diff = ask.get(f"{API}/pages/{number}/diff").json
    assert "-apples" in diff["diff"].replace("- ", "-")
    assert diff["divergence"] == repo.json("diff", site.url("/a"))["divergence"]
    assert [row["outcome"] for row in ask.get(f"{API}/pages/{number}/visits").json["items"]] == ["changed", "new"]
    assert ask.get(f"{API}/pages/{number}/why").json["state"] == "live"
    assert ask.get(f"{API}/pages/{number}/predict").json["url"] == site.url("/a")


def test_a_stored_page_is_a_file_and_never_live(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    found = ask.get(f"{API}/pages/{number_of(ask, served[2].url('/a'))}/source")
    assert found.body.endswith(b"oranges")
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment; ")
    assert "sandbox" in found.headers["content-security-policy"]


def test_lists_go_on_where_they_ended(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    for path in ("/pages?", f"/pages?site={served[2].url()}&", "/changes?", "/cycles?", "/sites?"):
        whole = list(ask.get(f"{API}{path}").json["items"])
        pieces: list[Any] = []
        after = ""
        for _ in range(20):
            told = ask.get(f"{API}{path}limit=1&after={after}").json
            pieces += told["items"]
            after = told["next"]
            if after is None:
                break
        assert pieces == whole, path


# -- changes -------------------------------------------------------------------------------------------------


def test_settings_seeds_and_filters(ask: Asker, served: tuple[Repo, Service, Site]) -> None:
    repo, _, site = served
    before = (repo.folder / "recrawl.toml").read_text()
    try:
        assert ask.ask("PUT", f"{API}/settings/budget", {"value": 7.0}).json == {"name": "budget", "value": 7.0}
        assert repo.json("config", "budget")[0]["value"] == 7.0
        assert ask.ask("PUT", f"{API}/settings/policy", {"value": "nonsense"}).status == 400
        assert ask.ask("PUT", f"{API}/settings/every", {"value": "soon"}).status == 400
        assert ask.ask("PUT", f"{API}/settings/odd", {"value": 1}).status == 400
        added = ask.post(f"{API}/seeds", {"url": "https://other.example/docs/", "include": ["/docs/*"], "limit": 5})
        assert (added.status, added.json["limit"]) == (201, 5)
        again = ask.post(f"{API}/seeds", {"url": "https://other.example/docs/", "depth": 2})
        assert (again.json["limit"], again.json["include"], again.json["depth"]) == (5, ["/docs/*"], 2)
        assert again.json["notes"] == ["depth: none → 2"]
        below = ask.post(f"{API}/seeds", {"url": "https://other.example/docs/page"})
        assert "the limit of its site is 5 pages" in below.json["notes"]
        assert ask.ask("DELETE", f"{API}/seeds?url=https://other.example/docs/page").status == 200
        assert ask.post(f"{API}/seeds", {"url": "not an address"}).status == 400
        assert ask.post(f"{API}/seeds", {"url": "https://x.example/", "include": ["re:("]}).status == 400
        assert [row["url"] for row in ask.get(f"{API}/seeds").json["items"]] == [
            site.url(),
            "https://other.example/docs/",
        ]
        assert ask.ask("DELETE", f"{API}/seeds?url=https://other.example/docs/").status == 200
        assert ask.ask("DELETE", f"{API}/seeds?url=https://other.example/docs/").status == 404
        made = ask.post(f"{API}/filters", {"selectors": ["#clock"]})
        assert made.status == 201
        assert ask.post(f"{API}/filters", {"selectors": ["#clock"]}).status == 400
        assert ask.post(f"{API}/filters", {"patterns": ["("]}).status == 400
        assert ask.post(f"{API}/filters", {}).status == 400
        assert ask.ask("DELETE", f"{API}/filters/{made.json['number']}").status == 200
        assert ask.ask("DELETE", f"{API}/filters/7").status == 404
    finally:
        (repo.folder / "recrawl.toml").write_text(before)


def test_a_filter_is_tried_before_it_is_kept(ask: Asker) -> None:
    tried = ask.post(f"{API}/filters/preview", {"selectors": ["p"]})
    assert (tried.status, tried.json["hides"], tried.json["of"]) == (200, 1, 1)
    assert ask.post(f"{API}/filters/preview", {"patterns": ["("]}).status == 400


def test_policies_are_compared_and_rates_estimated(ask: Asker) -> None:
    assert ask.get(f"{API}/lab/comparison").json["state"] == "none"
    for bad in (
        {"policies": ["nonsense"], "budgets": [1]},
        {"policies": [], "budgets": [1]},
        {"policies": ["random"], "budgets": [-1]},
        {"policies": ["random"], "budgets": [1], "cycle": "soon"},
    ):
        assert ask.post(f"{API}/lab/comparison", bad).status == 400
    assert ask.post(f"{API}/lab/comparison", {"policies": ["random"], "budgets": [1]}).status == 202
    found = ask.get(f"{API}/rates?by=site&limit=5")
    assert found.status == 200, found.text
    assert len(found.json["items"]) == 1
    assert ask.get(f"{API}/rates?estimator=odd").status == 400


def test_the_scheduler_is_steered(ask: Asker) -> None:
    assert ask.post(f"{API}/scheduler/pause").json["paused"]
    assert not ask.post(f"{API}/scheduler/resume", {}).json["paused"]
    assert ask.post(f"{API}/cycles", {"budget": 0}).status == 400
    assert ask.post(f"{API}/cycles", {"policy": "nonsense"}).status == 400
    assert ask.post(f"{API}/cycles", {"budget": 3, "policy": "random"}).status == 202


def test_events_are_told_as_they_happen(served: tuple[Repo, Service, Site]) -> None:
    _, service, _ = served
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("GET", f"{API}/events?kinds=alert")
    stream = connection.getresponse()
    assert stream.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert stream.readline() == b"retry: 3000\n"
    service.context.events.publish("progress", {"not": "wanted"})
    service.context.events.publish("alert", {"title": HOSTILE, "at": 5.0})
    lines = [stream.readline().decode() for _ in range(4)]
    assert lines[2] == "event: alert\n"
    assert json.loads(lines[3].removeprefix("data: ")) == {"title": HOSTILE, "at": "1970-01-01T00:00:05.000+00:00"}
    connection.close()


def test_only_so_many_may_listen(served: tuple[Repo, Service, Site]) -> None:
    _, service, _ = served
    open_ones = []
    answers: list[int] = []
    for _ in range(4):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request("GET", f"{API}/events")
        answer = connection.getresponse()
        if answer.status == 200:
            answer.readline()
        answers.append(answer.status)
        open_ones.append(connection)
    for connection in open_ones:
        connection.close()
    assert answers.count(503) >= 1
