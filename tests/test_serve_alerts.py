"""Alerts: rules find what they are about; webhooks get it signed, once by key, after failures and crashes too."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from recrawl.errors import UsageError
from recrawl.record.rows import OutboxRow, OutboxState
from recrawl.repository import outgoing
from recrawl.repository.alerts.matching import match_visits, skip_old_visits
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.alerts.receiver import AlertReceiver
from recrawl.repository.alerts.rules import check_rule
from recrawl.repository.delivery.engine import CallReport, Engine, OutboxEntry
from recrawl.repository.outgoing import NotSent, server_of, signature
from recrawl.repository.repository import Repository
from recrawl.serve.dispatcher import Dispatcher
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Alert, Settings, load, write_alerts, write_value
from tests.serving import Asker, Dripping, in_time
from tests.world import Repo, Site, connection, page

SECRET = "between you and me"


class Receiver:
    """A webhook that fails as often as it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.fails: list[int] = []
        self.came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                outer.came.set()
                self.send_response(outer.fails.pop(0) if outer.fails else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?a=1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def items(self) -> list[list[str]]:
        """For each request the pages it told of."""
        return [[item["url"] for item in json.loads(body)["items"]] for _, body in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


class Bench:
    """A repository over a site, and its alerts, worked round by round under a clock of its own."""

    def __init__(self, repo: Repo, web: Site) -> None:
        self.repo, self.web, self.now = repo, web, 1_000_000.0
        repo.crawl(web.url())
        self.restart()

    def restart(self) -> None:
        """As after a crash: nothing is remembered but what the store has."""
        self.dispatcher = Dispatcher(self.repo.folder, lambda: self.now)
        with Repository(self.repo.folder) as repository:
            skip_old_visits(repository)

    def rules(self, *rules: Alert, private: bool = True) -> None:
        named = [server_of(rule.target) for rule in rules] if private else []
        write_value(self.repo.folder / "recrawl.toml", "private_targets", named)
        write_alerts(self.repo.folder / "recrawl.toml", rules)

    def visit(self, **changed: bytes) -> None:
        for name, body in changed.items():
            self.web[f"/{name}"] = body
        self.repo.later(days=1)
        self.repo.cycle()

    def round(self) -> None:
        with Repository(self.repo.folder) as repository:
            while self.dispatcher.round(repository):
                self.dispatcher.engine.settle(repository, 60.0)
        assert self.dispatcher.error == ""

    def states(self) -> list[str]:
        with Repository(self.repo.folder) as repository:
            return [row["state"] for row in reversed(Outbox(repository).newest(100))]


@pytest.fixture
def bench(repo: Repo, site: Callable[..., Site]) -> Bench:
    pages = {"/": page("Start", "/a", "/b"), "/a": b"<p id=x>one</p><i>1</i>", "/b": b"<p>two"}
    return Bench(repo, site(pages))


def test_a_change_is_told_once_and_signed(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("all", receiver.url, secret=SECRET))
    bench.visit(a=b"<p id=x>quite another text")
    for _ in range(3):
        bench.round()
    assert receiver.items() == [[bench.web.url("/a")]]
    headers, body = receiver.got[0]
    assert headers["x-recrawl-signature"] == signature(SECRET, headers["x-recrawl-timestamp"], body)
    (item,) = json.loads(body)["items"]
    assert (item["outcome"], item["alert"]) == ("changed", "all")
    assert "another text" in item["quote"]
    assert bench.states() == ["sent"]


def test_old_news_are_not_told(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("all", receiver.url))
    bench.round()
    assert receiver.got == []


def test_a_receiver_that_fails_gets_it_later_under_the_same_key(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("all", receiver.url))
    bench.visit(a=b"<p>changed")
    receiver.fails = [500, 302, 429]
    waits = []
    for _ in range(3):
        bench.round()
        bench.round()  # not before its time
        with Repository(bench.repo.folder) as repository:
            due = Outbox(repository).next_due()
        assert due is not None
        waits.append(due - bench.now)
        bench.restart()
        bench.now = due
    bench.round()
    assert waits == [30, 60, 120]
    assert len(receiver.got) == 4
    assert len({headers["idempotency-key"] for headers, _ in receiver.got}) == 1
    assert bench.states() == ["sent"]


def test_it_is_given_up_in_the_end(bench: Bench) -> None:
    bench.rules(Alert("all", "http://127.0.0.1:1/"))
    bench.visit(a=b"<p>changed")
    for _ in range(20):
        bench.round()
        bench.now += 7 * 3600
    assert bench.states() == ["parked"]


def test_a_crash_between_finding_and_sending_loses_nothing(
    bench: Bench, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.rules(Alert("all", receiver.url))
    bench.visit(a=b"<p>changed")

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    for where, name in ((Outbox, "put"), (Engine, "_record")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, crash)
            with pytest.raises(KeyboardInterrupt):
                bench.round()
        bench.restart()
    bench.round()
    keys = {headers["idempotency-key"] for headers, _ in receiver.got}
    assert len(keys) == 1  # sent twice, since nobody knew that it had arrived; the receiver can tell by the key
    assert bench.states() == ["sent"]


RULES: dict[str, tuple[dict[str, Any], str]] = {
    "everything": ({}, "ab"),
    "path": ({"path": "/a*"}, "a"),
    "expression": ({"path": "re:/b$"}, "b"),
    "site": ({"site": "https://other.example"}, ""),
    "words": ({"text": "Fire"}, "a"),
    "pattern": ({"text": "re:ala[r]m"}, "b"),
    "removed-words": ({"text": "two"}, ""),
    "selector": ({"selector": "#x"}, "a"),
    "quiet-selector": ({"selector": "i"}, ""),
    "much": ({"divergence": 0.9}, "b"),
    "gone": ({"outcomes": ("gone",)}, ""),
    "changed": ({"outcomes": ("changed",)}, "ab"),
}


def test_rules(bench: Bench, receiver: Receiver) -> None:
    bench.rules(*(Alert(name, receiver.url, **rule) for name, (rule, _) in RULES.items()))
    bench.visit(a=b"<p id=x>one fire</p><i>1</i>", b=b"<p>alarm of the whole town")
    bench.round()
    told: dict[str, str] = dict.fromkeys(RULES, "")
    for _, body in receiver.got:
        for item in json.loads(body)["items"]:
            told[item["alert"]] += item["url"][-1]
    assert {name: "".join(sorted(pages)) for name, pages in told.items()} == {
        name: to for name, (_, to) in RULES.items()
    }


def test_a_digest_is_sent_when_its_time_is_full(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("daily", receiver.url, digest="1d"))
    bench.visit(a=b"<p>changed")
    bench.round()
    bench.visit(b=b"<p>changed too")
    bench.round()
    assert receiver.got == []
    bench.now = (bench.now // 86400 + 1) * 86400
    receiver.fails = [503]
    bench.round()
    bench.now += 30
    bench.round()
    assert receiver.items() == [[bench.web.url("/a"), bench.web.url("/b")]] * 2
    assert len({headers["idempotency-key"] for headers, _ in receiver.got}) == 1


def test_what_reverts_is_held_back_and_what_stays_is_told(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("lasting", receiver.url, hold=True))
    bench.visit(a=b"<p id=x>defaced</p><i>1</i>", b=b"<p>new text")
    bench.round()
    bench.visit(a=b"<p id=x>one</p><i>1</i>")  # as it was
    bench.round()
    assert receiver.got == []
    bench.visit()
    bench.round()
    bench.round()
    assert receiver.items() == [[bench.web.url("/b")]]
    assert sorted(bench.states()[:2]) == ["reverted", "sent"]


def test_what_the_user_removes_is_a_change_and_no_alert(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("front")})
    repo.crawl(web.url("/"))
    with Repository(repo.folder) as opened:
        skip_old_visits(opened)
        repo.run("rm", web.url("/"))
        assert [change.outcome for change in opened.changes()] == ["gone", "new"]
        assert match_visits(opened, (Alert("all", "feed"),), opened.now()) == ([], False)


def test_a_rule_that_is_gone_sends_nothing(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("all", receiver.url, digest="1h"))
    bench.visit(a=b"<p>changed")
    bench.round()
    bench.rules()
    bench.now += 7200
    bench.round()
    assert receiver.got == []


@pytest.mark.parametrize(
    "rule",
    [
        Alert("", "feed"),
        Alert("a b", "feed"),
        Alert("../x", "feed"),
        Alert("x", "nowhere"),
        Alert("x", "feed", text="re:("),
        Alert("x", "feed", path="re:("),
        Alert("x", "feed", selector="##"),
        Alert("x", "feed", divergence=2.0),
        Alert("x", "feed", outcomes=("odd",)),
        Alert("x", "feed", digest="1s"),
        Alert("x", "feed", digest="soon"),
    ],
)
def test_rules_that_cannot_work_are_refused(rule: Alert) -> None:
    with pytest.raises(UsageError):
        check_rule(rule)


def test_apprise_addresses_need_apprise(bench: Bench) -> None:
    bench.rules(Alert("all", "nonsense://nobody"))
    bench.visit(a=b"<p>changed")
    bench.round()
    with Repository(bench.repo.folder) as repository:
        (row,) = Outbox(repository).newest(1)
    assert "pprise" in row["error"]
    report = CallReport()
    entry = OutboxEntry(1, "k", 0, "", 0, row["body"])
    AlertReceiver(Alert("x", "nonsense://nobody"), Settings(), lambda: 0.0).call([entry], report, lambda: False)
    ((_, error),) = report.results
    assert isinstance(error, NotSent)


def test_a_hostile_page_does_not_hold_up_alerts(bench: Bench) -> None:
    bench.rules(Alert("slow", "feed", text="re:(a+)+$"), Alert("quick", "feed", text="re:aaaa!"))
    bench.visit(a=b"<p>" + b"a" * 100_000 + b"!")
    bench.round()
    with Repository(bench.repo.folder) as repository:
        assert [row["alert"] for row in Outbox(repository).newest(5)] == ["quick"]


def test_apprise_delivers(bench: Bench, receiver: Receiver) -> None:
    """Through Apprise itself, to a receiver on this machine."""
    bench.rules(Alert("all", receiver.url.replace("http://", "json://").partition("?")[0]))
    bench.visit(a=b"<title>News</title><p>something new")
    bench.round()
    told = json.loads(receiver.got[0][1])
    assert told["title"] == "News: one 1 → something new"
    assert bench.web.url("/a") in told["message"]
    assert "something new" in told["message"]
    assert bench.states() == ["sent"]
    receiver.fails = [500]
    bench.visit(a=b"<title>News</title><p>something else")
    bench.round()
    assert bench.states() == ["sent", "waiting"]
    with Repository(bench.repo.folder) as repository:
        assert Outbox(repository).newest(1)[0]["error"] == "Apprise could not deliver the message"
    bench.now += 60
    bench.round()
    assert bench.states() == ["sent", "sent"]


def test_settings_are_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text("[settings]\n")
    rules = (Alert("a", "feed", text="x", divergence=0.5, hold=True, outcomes=("new",)), Alert("b", "mailto://x"))
    write_alerts(file, rules)
    assert load(file).alerts == rules
    file.write_text("[[alert]]\nname = 'x'\n")
    with pytest.raises(UsageError, match="lacks 'target'"):
        load(file)


# -- slow receivers and private addresses --------------------------------------------------------------------


def test_a_slow_receiver_holds_up_its_own_alerts_only(bench: Bench, receiver: Receiver) -> None:
    with Dripping() as slow, Repository(bench.repo.folder) as repository:
        bench.rules(Alert("slow", slow.url), Alert("quick", receiver.url))
        for text in (b"<p>changed", b"<p>changed again"):
            bench.visit(a=text)
            receiver.came.clear()
            bench.dispatcher.round(repository)
            assert receiver.came.wait(60)
            bench.dispatcher.engine.settle(repository, 1.0)
        assert len(receiver.got) == 2
        assert bench.dispatcher.engine._senders.busy == {slow.url}


def test_a_flood_for_a_slow_receiver_does_not_hide_what_others_get(bench: Bench, receiver: Receiver) -> None:
    with Dripping() as slow, Repository(bench.repo.folder) as repository:
        bench.rules(Alert("slow", slow.url), Alert("quick", receiver.url))
        bench.visit(a=b"<p>changed")
        bench.dispatcher.round(repository)
        assert receiver.came.wait(60)
        old = OutboxRow("", "slow", 0, OutboxState.WAITING, 0, None, 0.0, 0.0, "{}")
        for number in range(600):
            repository.storage.store.outbox.add(old._replace(key=f"old{number}"))
        receiver.came.clear()
        bench.visit(a=b"<p>changed again")
        bench.dispatcher.engine.settle(repository, 1.0)
        bench.dispatcher.round(repository)
        assert receiver.came.wait(60)


def test_a_slow_receiver_does_not_hold_up_the_end(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("Start", "/a"), "/a": b"<p>one"})
    repo.crawl(web.url())
    with Dripping() as slow:
        write_alerts(repo.folder / "recrawl.toml", (Alert("slow", slow.url),))
        repo.config(private_targets=[slow.url])
        service = Service(repo.folder, ServiceConfig(schedule=False))
        service.__enter__()
        web["/a"] = b"<p>two"
        repo.later(days=1)
        repo.cycle()
        assert slow.reached.wait(60)
        in_time(lambda: service.__exit__(None, None, None))


def test_a_request_has_a_total_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "_LIMITS", replace(outgoing._LIMITS, total_seconds=0.5))
    with Dripping() as slow, pytest.raises(NotSent, match="timed out"):
        in_time(lambda: outgoing.post(slow.url, b"", {}, Settings({"private_targets": [slow.url]})), 60.0)


@pytest.mark.parametrize("scheme", ["http", "json"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_private_addresses_need_permission(bench: Bench, receiver: Receiver, scheme: str, host: str) -> None:
    target = receiver.url.replace("http://127.0.0.1", f"{scheme}://{host}").partition("?")[0]
    bench.rules(Alert("all", target), private=False)
    bench.visit(a=b"<p>changed")
    bench.round()
    assert receiver.got == []
    with Repository(bench.repo.folder) as repository:
        (row,) = Outbox(repository).newest(1)
    assert f"is loopback; to allow it, add {scheme}://{host}:" in row["error"]


# -- over HTTP -----------------------------------------------------------------------------------------------


def test_rules_through_the_api_and_the_feed(repo: Repo, site: Callable[..., Site]) -> None:
    hostile = "<script>alert(1)</script>"
    web = site({"/": page("Start", "/a"), "/a": b"<p>one"})
    repo.crawl(web.url())
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        made = ask.ask("PUT", "/api/v1/alerts/mine", {"target": "feed", "secret": "s", "outcomes": ["changed"]})
        assert (made.status, made.json["secret"]) == (200, True)
        assert ask.ask("PUT", "/api/v1/alerts/mine", {"target": "feed"}).json["secret"] is True
        assert load(repo.folder / "recrawl.toml").alerts[0].secret == "s"
        assert "s" not in json.dumps([row["secret"] for row in ask.get("/api/v1/alerts").json["items"]])
        assert ask.ask("PUT", "/api/v1/alerts/mine", {"target": "feed", "text": "re:("}).status == 400
        assert ask.ask("PUT", "/api/v1/alerts/b%20d", {"target": "feed"}).status == 400
        web["/a"] = f"<title>{hostile.replace('<', '&lt;')}\x0b</title><p>two]]&gt;".encode()
        repo.later(days=1)
        repo.cycle()
        for _ in range(500):
            if ask.get("/api/v1/outbox").json["items"]:
                break
            threading.Event().wait(0.02)
        feed = ask.get("/feed.atom")
        assert ask.ask("DELETE", "/api/v1/alerts/mine").status == 200
        assert ask.ask("DELETE", "/api/v1/alerts/mine").status == 404
    assert feed.headers["content-type"].startswith("application/atom+xml")
    assert "<script" not in feed.text
    tree = ET.fromstring(feed.body)
    titles = [node.text for node in tree.iter("{http://www.w3.org/2005/Atom}title")]
    assert any(hostile in (title or "") for title in titles)


def test_the_outbox_survives_a_store_that_is_busy(bench: Bench, receiver: Receiver) -> None:
    bench.rules(Alert("all", receiver.url))
    bench.visit(a=b"<p>changed")
    with contextlib.closing(sqlite3.connect(bench.repo.folder / "recrawl.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Repository(bench.repo.folder) as repository:
            connection(repository.storage.store).execute("PRAGMA busy_timeout = 10")
            with pytest.raises(sqlite3.OperationalError):
                bench.dispatcher.round(repository)
        other.execute("ROLLBACK")
    bench.round()
    assert len(receiver.got) == 1
