"""The service over a cluster: dashboard, API, metrics, alerts, and the page with machines, workers and shards."""

from __future__ import annotations

import functools
import json
import queue
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout, layout_of
from recrawl.cluster.search_server import SearchServer
from recrawl.errors import RepositoryBusy
from recrawl.record.rows import Batch
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Alert, write_alerts, write_value
from tests import clusters
from tests.crashes import site_row
from tests.serving import Asker
from tests.test_cluster_reads import Crawled, NewCluster, crawled, grow  # noqa: F401
from tests.test_cluster_runs import HOSTS
from tests.test_record_postgres import page_row
from tests.test_serve_alerts import Receiver
from tests.test_serve_dashboard import ARGUMENTS, CHROMIUM, LOOKS, tab
from tests.world import Repo, Site, page

HOSTILE = "<script>hacked=1</script>"


def populate(layout: Layout) -> None:
    """Two machines, a worker with a shard, a run under way."""
    with closing(layout.open()) as cluster:
        for node in ("alpha", HOSTILE):
            cluster.nodes.node_seen(node, "host")
        cluster.db.run("UPDATE nodes SET seen = seen + 3600")  # however long a test takes
        cluster.nodes.worker_seen("alpha/0/1", "alpha", "host", 1)
        assert cluster.leases.take(0, "alpha/0/1", 600.0) is not None
        run = cluster.runs.request("crawl", policy="explore", budget=0, seed=0, settings="", options={})
        cluster.runs.report(run, 0, "running", {"outcomes": {"new": 7}})
        cluster.db.run(
            "INSERT INTO outbox_links (shard, key, url, depth, alias) VALUES (1, 1, 'http://a.example/', 1, '')"
        )


@pytest.fixture(scope="module")
def served(crawled: Crawled) -> Iterator[tuple[Service, Layout, Crawled]]:  # noqa: F811
    folder = crawled[0].folder
    layout = layout_of(folder)
    populate(layout)
    clock = crawled[0].now
    with Service(folder, ServiceConfig(schedule=False, clock=clock)) as service:
        yield service, layout, crawled


def test_every_page_and_query_works_over_a_cluster(served: tuple[Service, Layout, Crawled]) -> None:
    service, layout, (whole, one, _, right) = served
    asker = Asker(service)
    status = asker.get("/api/v1/status").json
    assert (status["pages"], status["sites"]) == (len(one.pages()), 2)
    pages = asker.get("/api/v1/pages?limit=100").json["items"]
    assert {row["url"] for row in pages} == set(one.pages())
    page = next(row["id"] for row in pages if row["url"] == right.url("/2"))
    site = asker.get("/api/v1/sites").json["items"][1]["id"]
    changes = asker.get("/api/v1/changes").json["items"]
    assert len(changes) == len(one.json("changes", "--since", "30d"))
    with closing(layout.open()) as cluster, SearchServer(cluster, 1, whole.folder.parent / "work1"):
        found = asker.get("/api/v1/search?q=otter").json
        assert [hit["page"] for hit in found["items"]] == [page]
        assert found["unanswered"] == [0]
        shown = asker.get("/search?q=otter")
        assert "shard 0 did not answer" in shown.text
        assert right.url("/2") in shown.text
    texts = {}
    for path in (
        "/", "/sites", f"/sites/{site}", f"/pages/{page}", f"/pages/{page}/text", f"/pages/{page}/diff",
        f"/pages/{page}/outlook", "/changes", "/changes.atom", "/pages", "/cluster", "/running",
        "/lab", "/settings", "/alerts", "/settings/deliveries", "/api/docs", "/metrics",
        f"/api/v1/pages/{page}/visits", "/api/v1/sinks", "/api/v1/deliveries",
        "/api/v1/cycles", f"/api/v1/sites/{site}", "/api/v1/outbox", f"/api/v1/pages/{page}/why",
    ):  # fmt: skip
        answer = asker.get(path)
        assert answer.status == 200, (path, answer.text[:300])
        texts[path] = answer.text
    assert "otter two" in texts[f"/pages/{page}/diff"]
    assert f"recrawl_stored_pages {float(status['stored'])}" in texts["/metrics"]
    assert 'recrawl_cluster_links{shard="1"} 1.0' in texts["/metrics"]
    assert "recrawl_cluster_shards_owned 1.0" in texts["/metrics"]
    assert ">Cluster</a>" in texts["/"]
    assert "7" in texts["/running"]


def test_nodes_are_drained_and_shards_moved(served: tuple[Service, Layout, Crawled]) -> None:
    service, layout, _ = served
    asker = Asker(service)
    state = asker.get("/api/v1/cluster").json
    assert [node["name"] for node in state["nodes"]] == ["alpha", HOSTILE]
    assert [(shard["worker"], shard["visits"], shard["links"]) for shard in state["shards"]] == [
        ("alpha/0/1", 7, 0),
        ("", 0, 1),
    ]
    assert state["run"]["kind"] == "crawl"
    page = asker.get("/cluster").text
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "1 shard has no worker: 1" in page
    moved = asker.post("/api/v1/cluster/move", {"shard": 1, "node": "alpha"})
    assert moved.json["shards"][1]["wanted"] == "alpha"
    drained = asker.post("/api/v1/cluster/drain", {"node": "alpha"})
    assert [node["draining"] for node in drained.json["nodes"]] == [True, False]
    assert asker.post("/api/v1/cluster/drain", {"worker": "alpha/0/1"}).status == 200
    with closing(layout.open()) as cluster:
        assert cluster.nodes.worker_seen("alpha/0/1", "alpha", "host", 1)
        assert cluster.nodes.placements() == {1: "alpha"}
    form = {"do": "undo", "node": "alpha", "csrf": _token(page)}
    assert asker.post("/cluster", form, form=True).status == 403  # without the session of the page
    for body, status in (
        ({"node": "nowhere"}, 404),
        ({"worker": "nobody"}, 404),
        ({}, 400),
        ({"node": "alpha", "worker": "alpha/0/1"}, 400),
    ):
        assert asker.post("/api/v1/cluster/drain", body).status == status, body
    assert asker.post("/api/v1/cluster/move", {"shard": 9, "node": "alpha"}).status == 400


def _token(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_a_repository_on_one_machine_has_no_cluster(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        assert Asker(service).get("/api/v1/cluster").status == 404
        assert Asker(service).get("/cluster").status == 404
        assert ">Cluster</a>" not in Asker(service).get("/").text
        assert "recrawl_cluster" not in Asker(service).get("/metrics").text


def test_alerts_of_all_shards_go_out_once(new_cluster: NewCluster, tmp_path: Path) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    with Receiver() as receiver:
        write_value(folder / "recrawl.toml", "private_targets", [receiver.url])
        write_alerts(folder / "recrawl.toml", (Alert("all", receiver.url),))
        with Service(folder, ServiceConfig(schedule=False)):
            other = tmp_path / "other"
            other.mkdir()
            for file in folder.glob("*.toml"):
                (other / file.name).write_bytes(file.read_bytes())
            with pytest.raises(RepositoryBusy, match="recrawl serve"):
                Service(other, ServiceConfig(schedule=False))
            for shard in (1, 0, 1):
                with closing(PostgresStore(layout.target.of_shard(shard))) as store:
                    if not store.count("pages"):
                        _one_page(store, shard)
                    grow(store, 2)
            await_requests(receiver, 6)
        with Service(folder, ServiceConfig(schedule=False)):  # goes on where the other one stopped
            with closing(PostgresStore(layout.target.of_shard(0))) as store:
                grow(store, 1)
            await_requests(receiver, 7)
    told = [(item["url"], item["at"]) for _, body in receiver.got for item in json.loads(body)["items"]]
    assert len(told) == len(set(told)) == 7
    assert {url for url, _ in told} == {"https://s0.example/", "https://s1.example/"}


def _one_page(store: PostgresStore, shard: int) -> None:
    site = f"https://s{shard}.example"
    store.commit(Batch(sites=[site_row(0, site)], pages=[page_row(0)._replace(url=f"{site}/", key=shard)]), [])


def await_requests(receiver: Receiver, number: int) -> None:
    """Wait until so many requests have come."""
    while len(receiver.got) < number:
        assert receiver.came.wait(60)
        receiver.came.clear()


def test_a_turn_of_the_service_is_made_by_the_workers_and_found_by_a_search(
    new_cluster: NewCluster, tmp_path: Path
) -> None:
    layout, repo = new_cluster(2), Repo(tmp_path / "cluster")
    ended: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
    with Site() as site:
        one, two = (functools.partial(site.url, host=host) for host in HOSTS)
        site["/a"], site["/b"] = page("walrus", "/1", two("/2")), page("seal")
        site.pages |= {path: page(f"walrus {path}") for path in ("/1", "/2")}
        clusters.configure(repo.folder, one("/a"), two("/b"))
        with (
            clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")),
            Service(repo.folder, ServiceConfig(schedule=False)) as service,
        ):
            service.context.events.log = lambda kind, data: ended.put((kind, data))
            asker = Asker(service)
            assert asker.post("/api/v1/cycles", {"budget": 50, "policy": "round-robin"}).status == 202
            while (news := ended.get(timeout=120))[0] not in ("ended", "failed"):
                pass
            runs = asker.get("/api/v1/cycles").json["items"]
            found = asker.get("/api/v1/search?q=walrus").json
            status = asker.get("/api/v1/status").json
    assert news[0] == "ended", news
    assert news[1]["summary"]["visits"] == 4
    assert [(row["kind"], row["visits"], row["finished"] is not None) for row in runs] == [
        ("cycle", 4, True),
        ("crawl", 4, True),
    ]
    assert found["unanswered"] == []
    assert {hit["url"] for hit in found["items"]} == {one("/a"), one("/1"), two("/2")}
    assert (status["pages"], status["stored"], status["visits"]) == (4, 4, 8)


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test the dashboard")
def test_the_page_of_the_cluster_in_a_browser(new_cluster: NewCluster, tmp_path: Path) -> None:
    layout = new_cluster(2)
    populate(layout)
    with (
        Service(tmp_path / "cluster", ServiceConfig(schedule=False)) as service,
        sync_playwright() as driver,
        closing(driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())) as browser,
    ):
        for look in ("light", "phone"):
            context, watched = tab(browser, service, **LOOKS[look])
            page = watched.go("/cluster")
            assert page.get_by_role("heading", name="Shards").is_visible()
            wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wider <= 0, look
            watched.check()
            page.screenshot(path=tmp_path / f"{look}.png", full_page=True)
            context.close()
        context, watched = tab(browser, service)
        page = watched.go("/cluster")
        page.get_by_role("button", name="Drain", exact=True).first.click()
        page.get_by_text("draining").wait_for()
        page.get_by_role("button", name="Use again").click()
        page.get_by_text("draining").wait_for(state="detached")
        page.get_by_label("Shard", exact=True).select_option("1")
        page.get_by_label("To the node").select_option("alpha")
        page.get_by_role("button", name="Move").click()
        page.get_by_text("goes to alpha").wait_for()
        watched.check()
        context.close()
