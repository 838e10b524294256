"""What other programs ask of the service: Prometheus, Memento, IndexNow, WebSub."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from email.utils import format_datetime, parsedate_to_datetime

import pytest

from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import write_value
from tests.serving import TOKEN, Asker, Hub
from tests.world import Repo, Site, page

KEY = "0123456789abcdef"
Served = tuple[Repo, Service, Site]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    repo = Repo.create(tmp_path_factory.mktemp("standards") / "repo")
    pages = {"/": page("Start", "/a?x=1"), "/a?x=1": b"<script>alert(1)</script><p>first"}
    with Site(pages) as site:
        site[f"/{KEY}.txt"] = KEY.encode()
        repo.crawl(site.url())
        repo.later(days=1)
        site["/a?x=1"] = b"<script>alert(2)</script><p>second"
        repo.cycle()
        write_value(repo.folder / "recrawl.toml", "indexnow_keys", [KEY])
        with Service(repo.folder, ServiceConfig(schedule=False, token=TOKEN)) as service:
            yield repo, service, site


@pytest.fixture
def ask(served: Served) -> Asker:
    return Asker(served[1], Authorization=f"Bearer {TOKEN}")


def pushed(repo: Repo) -> set[tuple[str, str]]:
    return set(repo.sql("SELECT url, kind FROM pushes"))


# -- Prometheus ----------------------------------------------------------------------------------------------


def test_metrics(ask: Asker) -> None:
    ask.get("/api/v1/status")
    found = ask.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=")
    values = dict(re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", found.text, re.MULTILINE))
    assert float(values['recrawl_pages{state="live"}']) == 2
    assert float(values['recrawl_visits_total{outcome="changed"}']) == 1
    assert 0.5 < float(values["recrawl_freshness"]) <= 1
    assert float(values["recrawl_received_bytes_total"]) > 0
    assert float(values["recrawl_cycle_budget"]) == 1000
    assert float(values["recrawl_age_seconds"]) >= 0
    assert any(name.startswith('recrawl_http_request_seconds_count{part="api"') for name in values)


def test_metrics_of_an_empty_repository(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        found = Asker(service).get("/metrics")
    assert found.status == 200
    assert "recrawl_freshness " not in found.text


# -- Memento -------------------------------------------------------------------------------------------------


def links(text: str) -> list[tuple[str, str]]:
    return re.findall(r'<([^>]+)>; rel="([^"]+)"', text)


def test_a_timemap_lists_what_a_timegate_leads_to(ask: Asker, served: Served) -> None:
    _, service, site = served
    url = site.url("/a?x=1")
    found = ask.get(f"/timemap/{url}")
    assert found.headers["content-type"].startswith("application/link-format")
    mementos = [where for where, kind in links(found.text) if "memento" in kind]
    assert [kind for _, kind in links(found.text)] == ["original", "timegate", "self", "first memento", "last memento"]
    newest = ask.get(f"/timegate/{url}")
    assert (newest.status, newest.headers["vary"]) == (302, "accept-datetime")
    assert newest.headers["location"] == mementos[-1]
    long_ago = ask.get(f"/timegate/{url}", Accept_Datetime="Thu, 01 Jan 1998 00:00:00 GMT")
    assert long_ago.headers["location"] == mementos[0]
    for where, words in zip(mementos, (b"first", b"second"), strict=True):
        stored = ask.get(where.partition(str(service.port))[2])
        assert stored.body.endswith(words)
        assert stored.headers["content-type"].startswith("text/plain")  # never live
        assert "sandbox" in stored.headers["content-security-policy"]
        at = parsedate_to_datetime(stored.headers["memento-datetime"])
        exact = ask.get(f"/timegate/{url}", Accept_Datetime=format_datetime(at, usegmt=True))
        assert exact.headers["location"] == where
        assert f'<{url}>; rel="original"' in stored.headers["link"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/timegate/https://nowhere.example/", 404),
        ("/timegate/", 400),
        ("/timegate/%00", 400),
        ("/timemap/javascript:alert(1)", 400),
        ("/memento/2026/https://nowhere.example/", 404),
        ("/memento/20261399999999/https://nowhere.example/", 404),
    ],
)
def test_what_is_not_kept(ask: Asker, path: str, status: int) -> None:
    found = ask.get(path)
    assert found.status == status
    assert found.headers["content-type"] == "application/problem+json"


def test_a_time_that_is_none(ask: Asker, served: Served) -> None:
    assert ask.get(f"/timegate/{served[2].url('/')}", Accept_Datetime="yesterday").status == 400


# -- IndexNow ------------------------------------------------------------------------------------------------


def test_indexnow(served: Served) -> None:
    repo, service, site = served
    stranger = Asker(service)  # without our token: it has a key of its own
    host = site.url().removeprefix("http://").rstrip("/")
    assert stranger.get(f"/indexnow?url={site.url('/one')}&key={KEY}").status == 202
    many = {"host": host, "key": KEY, "urlList": [site.url("/two"), site.url("/two")]}
    assert stranger.post("/indexnow", many).json == {"taken": 1, "repeated": 1, "foreign": 0, "bad": 0}
    assert pushed(repo) >= {(site.url("/one"), "indexnow"), (site.url("/two"), "indexnow")}


def test_indexnow_refuses(served: Served) -> None:
    repo, service, site = served
    before = pushed(repo)
    stranger = Asker(service)
    host = site.url().removeprefix("http://").rstrip("/")
    assert stranger.get(f"/indexnow?url={site.url('/x')}&key=wrong-key-123").status == 403
    assert stranger.get(f"/indexnow?url={site.url('/x')}").status == 403
    assert stranger.post("/indexnow", {"host": host, "key": KEY, "urlList": ["https://other.example/"]}).status == 422
    assert stranger.post("/indexnow", {"host": host, "key": KEY, "urlList": "x"}).status == 400
    assert stranger.post("/indexnow", {"host": host, "key": KEY, "urlList": []}).status == 400
    assert stranger.post("/indexnow", {"host": host, "key": KEY, "urlList": [1]}).status == 400
    assert stranger.post("/indexnow", b"{").status == 400
    assert stranger.post("/indexnow", b"[" * 50_000).status == 400
    too_many = {"host": host, "key": KEY, "urlList": [f"{site.url('/')}{k}" for k in range(10_001)]}
    assert stranger.post("/indexnow", too_many).status == 400
    assert pushed(repo) == before


def test_without_keys_nobody_may(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        assert Asker(service).get("/indexnow?url=https://x.example/&key=").status == 403


# -- WebSub --------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(served: Served) -> Iterator[Hub]:
    with Hub() as made:
        write_value(served[0].folder / "recrawl.toml", "private_targets", [made.url, "http://127.0.0.1:1"])
        yield made


def test_websub(ask: Asker, served: Served, hub: Hub) -> None:
    repo, service, site = served
    topic = site.url("/feed.xml")
    made = ask.post("/api/v1/subscriptions", {"topic": topic, "hub": hub.url})
    assert made.status == 202
    path = made.json["callback"].partition(str(service.port))[2]
    asked = hub.asked[0]
    assert (asked["hub.mode"], asked["hub.topic"]) == ("subscribe", topic)
    stranger = Asker(service)
    feed = f"<feed><entry><link href='{site.url('/news')}'/></entry></feed>".encode()
    signed = "sha256=" + hmac.new(asked["hub.secret"].encode(), feed, hashlib.sha256).hexdigest()
    send = {"X-Hub-Signature": signed, "Content-Type": "application/atom+xml"}
    assert stranger.post(path, feed, headers=send).status == 404  # the hub has not confirmed it yet

    question = f"{path}?hub.mode=subscribe&hub.challenge=c123&hub.lease_seconds=1000&hub.topic="
    assert stranger.get(f"{question}https://other.example/").status == 404
    assert stranger.get(question + topic).text == "c123"
    assert stranger.post(path, feed, headers={**send, "X-Hub-Signature": "sha256=" + "0" * 64}).status == 202
    assert stranger.post(path, feed).status == 202
    assert not any("/news" in url for url, _ in pushed(repo))  # not signed, not believed
    assert stranger.post(path, feed, headers=send).status == 202
    assert (site.url("/news"), "websub") in pushed(repo)

    (row,) = ask.get("/api/v1/subscriptions").json["items"]
    assert row["state"] == "active"
    assert "secret" not in row
    assert ask.ask("DELETE", f"/api/v1/subscriptions/{row['name']}").status == 200
    assert hub.asked[-1]["hub.mode"] == "unsubscribe"
    assert stranger.post(path, feed, headers=send).status == 404


def test_a_hub_that_does_not_want_to(ask: Asker, served: Served, hub: Hub) -> None:
    hub.status = 403
    assert ask.post("/api/v1/subscriptions", {"topic": "https://x.example/f", "hub": hub.url}).status == 502
    assert (
        ask.post("/api/v1/subscriptions", {"topic": "https://x.example/f", "hub": "http://127.0.0.1:1/"}).status == 502
    )
    assert ask.post("/api/v1/subscriptions", {"topic": "no address", "hub": hub.url}).status == 400
    assert Asker(served[1]).get("/websub/guessed?hub.mode=subscribe&hub.topic=x&hub.challenge=y").status == 404
