"""What others tell us lasts and is proven: hubs are asked again in time, keys are looked up where they must be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from recrawl.crawl.state.array_files import write_arrays
from recrawl.record.storage import Storage
from recrawl.repository import push as websub
from recrawl.repository.delivery.senders import Senders
from recrawl.repository.push import LEASE, RENEW_AFTER, KeyClaim, KeyRefused, verify_key
from recrawl.repository.repository import Repository
from recrawl.serve import push as renewals
from recrawl.serve.push import Renewals, Renewing
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import write_value
from tests.serving import Asker, Dripping, Hub, in_time
from tests.world import Reply, Repo, Site, connection, page

DAY = 86400.0
TOPIC = "https://news.example/feed.xml"
KEY = "fedcba9876543210"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


class Opened:
    """A repository under a clock that is set by hand."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.store = repository.storage.store
        self.now = 0.0
        repository.now = lambda: self.now

    def allow(self, *hubs: str) -> None:
        write_value(self.repository.settings_file, "private_targets", list(hubs))

    def subscribe(self, topic: str, hub: str, now: float) -> str:
        self.now = now
        self.allow(hub)
        return str(websub.subscribe(self.repository, topic, hub, "http://us.example/")["name"])

    def confirm(self, name: str, now: float, lease: int) -> None:
        self.now = now
        websub.confirm(self.repository, name, lease)

    def renew(self, now: float) -> int:
        """Request what is due, and wait for the answers."""
        self.now = now
        senders: Renewing = Senders()
        count = renewals.renew(self.repository, senders)
        renewals.settle(self.repository, senders, 60.0)
        return count

    def problems(self, now: float) -> list[str]:
        self.now = now
        return websub.subscription_problems(self.repository)


@pytest.fixture
def opened(repo: Repo) -> Iterator[Opened]:
    with Repository(repo.folder) as found:
        yield Opened(found)


def only(opened: Opened) -> dict[str, Any]:
    (row,) = websub.subscriptions(opened.repository)
    return row


# -- leases --------------------------------------------------------------------------------------------------


def test_a_lease_is_renewed_before_it_ends(opened: Opened, hub: Hub) -> None:
    store = opened.store
    name = opened.subscribe(TOPIC, hub.url, 1000.0)
    opened.confirm(name, 1000.0, LEASE)
    assert opened.renew(1000.0 + LEASE * RENEW_AFTER - 1) == 0
    later = 1000.0 + LEASE * RENEW_AFTER
    assert opened.renew(later) == 1
    first, again = hub.asked
    assert again == first  # the same callback and the same secret
    row = store.subscriptions.get(name)
    assert row is not None
    assert (row["state"], row["expires"]) == ("active", 1000.0 + LEASE)  # what was granted counts until its end
    opened.confirm(name, later, LEASE)
    assert (only(opened)["expires"], only(opened)["tries"]) == (later + LEASE, 0)
    assert opened.renew(later + 1) == 0
    assert opened.problems(later) == []


def test_a_hub_that_refuses_is_asked_less_and_less_and_people_are_told(opened: Opened, hub: Hub) -> None:
    name = opened.subscribe(TOPIC, hub.url, 0.0)
    opened.confirm(name, 0.0, LEASE)
    hub.status = 503
    now, pauses = LEASE * RENEW_AFTER, []
    for _ in range(12):
        assert opened.renew(now) == 1
        pauses.append(only(opened)["due"] - now)
        assert opened.renew(only(opened)["due"] - 1) == 0
        now = only(opened)["due"]
    assert pauses[:4] == [300, 600, 1200, 2400]
    assert pauses[-1] == DAY
    (problem,) = opened.problems(LEASE * RENEW_AFTER)
    assert "HTTP 503" in problem
    assert "valid until" in problem
    assert "(expired)" in opened.problems(LEASE + 1.0)[0]
    hub.status = 202
    opened.renew(now)
    opened.confirm(name, now, LEASE)
    assert opened.problems(now) == []


def test_a_hub_that_agrees_but_never_confirms_is_told_of(opened: Opened, hub: Hub) -> None:
    opened.subscribe(TOPIC, hub.url, 0.0)
    opened.renew(300.0)
    assert opened.problems(300.0) == []
    opened.renew(900.0)
    assert "it has not confirmed the last request" in opened.problems(900.0)[0]


def test_a_hub_that_says_no_is_left_alone(opened: Opened, hub: Hub) -> None:
    store = opened.store
    name = opened.subscribe(TOPIC, hub.url, 0.0)
    store.subscriptions.deny(name)
    assert opened.renew(100 * DAY) == 0
    assert "denied" in opened.problems(1.0)[0]


def test_however_short_a_lease_a_hub_is_not_flooded(opened: Opened, hub: Hub) -> None:
    name = opened.subscribe(TOPIC, hub.url, 0.0)
    opened.confirm(name, 0.0, 0)
    assert opened.renew(59.0) == 0


def test_a_subscription_that_fails_leaves_what_was_there(opened: Opened, hub: Hub) -> None:
    store = opened.store
    name = opened.subscribe(TOPIC, hub.url, 0.0)
    opened.confirm(name, 0.0, LEASE)
    before = store.subscriptions.get(name)
    hub.status = 500
    with pytest.raises(Exception, match="HTTP 500"):
        opened.subscribe(TOPIC, hub.url, 5.0)
    assert store.subscriptions.get(name) == before
    with pytest.raises(Exception, match="HTTP 500"):
        opened.subscribe("https://other.example/f", hub.url, 5.0)
    assert len(store.subscriptions.public()) == 1


def test_renewals_survive_a_restart(repo: Repo, hub: Hub) -> None:
    moment = [1_800_000_000.0]
    plan = ServiceConfig(schedule=False, clock=lambda: moment[0])
    write_value(repo.folder / "recrawl.toml", "private_targets", [hub.url])
    with Service(repo.folder, plan) as service:
        ask = Asker(service)
        made = ask.post("/api/v1/subscriptions", {"topic": TOPIC, "hub": hub.url}).json
        path = made["callback"].partition(str(service.port))[2]
        query = f"hub.mode=subscribe&hub.topic={TOPIC}&hub.challenge=c&hub.lease_seconds=1000"
        assert ask.get(f"{path}?{query}").text == "c"
    moment[0] += 800.0  # while nobody was there, it came due
    hub.status = 410
    thread = Renewals(repo.folder, plan.clock)
    thread.start()
    thread.stop()  # the first round is made before it looks whether to end
    assert [row["hub.mode"] for row in hub.asked] == ["subscribe", "subscribe"]
    with Service(repo.folder, plan) as service:
        ask = Asker(service)
        (row,) = ask.get("/api/v1/subscriptions").json["items"]
        assert (row["state"], row["tries"]) == ("active", 1)
        assert "HTTP 410" in row["error"]
        assert "HTTP 410" in ask.get("/api/v1/status").json["problems"][0]
        assert "HTTP 410" in ask.get("/", Accept="text/html").text


def test_a_process_that_is_killed_during_a_renewal_asks_again_later(opened: Opened, hub: Hub) -> None:
    name = opened.subscribe(TOPIC, hub.url, 1000.0)
    opened.confirm(name, 1000.0, LEASE)
    later = opened.now = 1000.0 + LEASE * RENEW_AFTER
    (row,) = websub.due_renewals(opened.repository)
    websub.begin_renewal(opened.repository, row)  # killed here: the request is not sent
    assert opened.renew(later) == 0, "not at once: it may have been sent"
    assert only(opened)["expires"] == 1000.0 + LEASE
    assert opened.renew(later + DAY) == 1
    assert len(hub.asked) == 2


def test_a_process_that_is_killed_while_it_subscribes_asks_again(
    opened: Opened, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(websub, "_send_to_hub", killed)
        with pytest.raises(Killed):
            opened.subscribe(TOPIC, hub.url, 1000.0)
    assert opened.renew(1001.0) == 1
    assert len(hub.asked) == 1


def test_a_slow_hub_holds_up_no_other_one_and_not_the_end(repo: Repo, hub: Hub) -> None:
    with Dripping() as slow:
        write_value(repo.folder / "recrawl.toml", "private_targets", [hub.url, slow.url])
        with Storage(repo.folder) as opened:
            for number, url in enumerate((slow.url, hub.url)):
                row = {"name": str(number), "topic": f"https://a.example/{number}", "hub": url, "secret": "s"}
                opened.store.subscriptions.put({**row, "callback": "http://us.example/", "created": 0.0, "due": 0.0})
        thread = Renewals(repo.folder, lambda: 1000.0)
        thread.start()
        assert slow.reached.wait(60)
        assert hub.came.wait(60)
        in_time(thread.stop)


def test_a_hub_with_a_private_address_needs_permission(repo: Repo, opened: Opened, hub: Hub) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        for url in (hub.url, hub.url.replace("127.0.0.1", "localhost")):
            made = Asker(service).post("/api/v1/subscriptions", {"topic": TOPIC, "hub": url})
            assert made.status == 502
            assert "loopback; to allow it, add http://" in made.json["detail"]
    name = opened.subscribe(TOPIC, hub.url, 0.0)
    opened.confirm(name, 0.0, LEASE)
    opened.allow()
    opened.renew(float(LEASE))
    assert "private_targets" in only(opened)["error"]
    assert len(hub.asked) == 1


def test_hubs_are_asked_while_long_queries_run(repo: Repo, hub: Hub) -> None:
    """A hub may confirm before it answers; the confirmation must not wait for a place that the request holds."""
    write_value(repo.folder / "recrawl.toml", "private_targets", [hub.url])
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        for _ in range(2):
            service.context.query_slots.acquire()
        ask = Asker(service)
        made = in_time(lambda: ask.post("/api/v1/subscriptions", {"topic": TOPIC, "hub": hub.url}))
        path = made.json["callback"].partition(str(service.port))[2]
        query = f"hub.mode=subscribe&hub.topic={TOPIC}&hub.challenge=c&hub.lease_seconds=1000"
        assert in_time(lambda: ask.get(f"{path}?{query}")).text == "c"


# -- keys ----------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(repo: Repo) -> Iterator[tuple[Repo, Site]]:
    """A site that is kept, and whose key is known."""
    with Site({"/": page("Start", "/news/a"), "/news/a": b"<p>a"}) as site:
        repo.crawl(site.url())
        write_value(repo.folder / "recrawl.toml", "indexnow_keys", [KEY])
        yield repo, site


def push(ask: Asker, site: Site, path: str = "/news/a", **more: Any) -> int:
    host = site.url().removeprefix("http://").rstrip("/")
    return ask.post("/indexnow", {"host": host, "key": KEY, "urlList": [site.url(path)], **more}).status


def asked_for(site: Site, path: str) -> int:
    return len(site.requests(path))


def test_a_key_that_the_host_does_not_have_is_refused(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    moment = [1_800_000_000.0]
    with Service(repo.folder, ServiceConfig(schedule=False, clock=lambda: moment[0])) as service:
        ask = Asker(service)
        assert push(ask, site) == 403  # there is no such file
        site[f"/{KEY}.txt"] = b"another-key-123"
        assert push(ask, site) == 403
        assert asked_for(site, f"/{KEY}.txt") == 1  # it was not asked for again
        moment[0] += 3601
        assert push(ask, site) == 403  # it holds something else
        site[f"/{KEY}.txt"] = b"\xef\xbb\xbf" + KEY.encode() + b"\r\n"
        moment[0] += 3601
        assert push(ask, site) == 202
        moment[0] += DAY - 10
        site[f"/{KEY}.txt"] = b""
        assert push(ask, site) == 202  # it counts for a day
        assert asked_for(site, f"/{KEY}.txt") == 3
        moment[0] += 20
        assert push(ask, site) == 403
    assert repo.sql("SELECT count(*) FROM pushes") == [(1,)]


def test_a_key_elsewhere_speaks_for_its_folder(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    site["/news/key.txt"] = KEY.encode()
    where = site.url("/news/key.txt")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        assert push(ask, site, "/news/a", keyLocation=where) == 202
        assert push(ask, site, "/other", keyLocation=where) == 422
        assert push(ask, site, "/news/a", keyLocation="https://other.example/key.txt") == 422
        assert push(ask, site, "/news/a", keyLocation="nonsense") == 422
        assert push(ask, site, "/news/a", keyLocation=7) == 400
        one = ask.get(f"/indexnow?url={site.url('/news/a')}&key={KEY}&keyLocation={where}")
        assert one.status == 202


def test_a_redirect_or_a_large_file_proves_nothing(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    site["/elsewhere"] = KEY.encode()
    site[f"/{KEY}.txt"] = Reply(status=302, headers={"Location": "/elsewhere"})
    site["/large.txt"] = KEY.encode() + b" " * 10_000
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        assert push(ask, site) == 403
        assert push(ask, site, keyLocation=site.url("/large.txt")) == 403
    assert asked_for(site, "/elsewhere") == 0


def test_few_files_are_asked_for_in_an_hour(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        found = [push(ask, site, keyLocation=site.url(f"/{number}.txt")) for number in range(12)]
    assert found == [403] * 10 + [429] * 2


def test_inner_addresses_are_not_asked_unless_the_site_is_allowed_to_be_one(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    site[f"/{KEY}.txt"] = KEY.encode()
    file = repo.folder / "recrawl.toml"
    file.write_text(file.read_text().replace("allow_private = true", "allow_private = false"))
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        assert push(Asker(service), site) == 403
    assert asked_for(site, f"/{KEY}.txt") == 0


def test_a_server_that_wants_to_be_left_alone_is(kept: tuple[Repo, Site]) -> None:
    repo, site = kept
    site[f"/{KEY}.txt"] = KEY.encode()
    with Storage(repo.folder) as opened:
        connection(opened.store).execute("UPDATE sites SET held_until = ?", (time.time_ns() / 1e9 + 5000,))
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        assert push(Asker(service), site) == 503
    assert asked_for(site, f"/{KEY}.txt") == 0


def test_one_proven_scheme_does_not_speak_for_the_other(kept: tuple[Repo, Site]) -> None:
    """The first address is of a server that is not kept, and so not looked at; the second one still is."""
    repo, site = kept
    host = site.url().removeprefix("http://").rstrip("/")
    claim = KeyClaim(host, KEY, [f"https://{host}/x", site.url("/news/a")])
    with Repository(repo.folder) as opened, pytest.raises(KeyRefused, match="not confirmed by the host"):
        verify_key(opened, claim)


# -- what is shown -------------------------------------------------------------------------------------------


def test_how_hints_and_senders_proved_is_shown(kept: tuple[Repo, Site]) -> None:
    repo, _ = kept
    logs, counts = np.zeros((1, 87), np.float32), np.array([[20.0, 15.0, 30.0, 2.0]], np.float32)
    memory = {"kept hints.now": np.array(5.0), "kept hints.lastmod.logs": logs, "kept hints.lastmod.counts": counts}
    write_arrays(repo.folder / "models" / "ncis-1.npz", memory)
    with Storage(repo.folder) as opened:
        db = connection(opened.store)
        db.execute("INSERT OR REPLACE INTO sources VALUES (0, 'lastmod', 5, 35, 0, '')")
        db.execute("INSERT INTO push_sources VALUES ('<b>liar</b>', 'indexnow', 40, 2, 38, 5, 0)")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        (row,) = ask.get("/api/v1/sites").json["items"]
        (hint,) = row["hints"]
        assert (hint["kind"], hint["precision"], hint["visits"]) == ("lastmod", 0.7381, 50)
        assert ask.get("/api/v1/sites/0").json["hints"] == [hint]
        (sender,) = ask.get("/api/v1/pushers").json["items"]
        assert (sender["precision"], sender["trusted"]) == (0.05, False)
        shown = ask.get("/sites", Accept="text/html").text
        assert "sitemap dates: precision 74\xa0%" in shown
        assert "&lt;b&gt;liar&lt;/b&gt;" in shown
        assert "not prioritised" in shown
        assert "precision 74\xa0%" in ask.get("/sites/0", Accept="text/html").text
        assert "5% of the pushed pages had changed" in ask.get("/", Accept="text/html").text
