"""Sinks: every change arrives, in order, at least once, whatever is killed; secrets stay secret."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.record.lock import Lock
from recrawl.repository.outgoing import signature
from recrawl.repository.sinks.markdown_files import file_name
from recrawl.repository.sinks.opensearch import document_id
from tests.complaints import complaint
from tests.receivers import BulkServer, EventServer, find_postgres, postgres
from tests.world import Repo, Site, page

SECRET = "hush-6Zk2"
needs_postgres = pytest.mark.skipif(find_postgres() is None, reason="PostgreSQL is not installed (Debian: postgresql)")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """Three pages that are new; then one changes and one is removed; then that one returns."""
    repo = Repo.create(tmp_path_factory.mktemp("sinks") / "repo", change="text")
    with Site({"/": page("front", "/a", "/b"), "/a": page("alpha one"), "/b": page("beta")}) as web:
        repo.crawl(web.url("/"))
        web["/a"] = page("alpha two has other words")
        beta = web.pages.pop("/b")
        for _ in range(4):
            repo.later(days=3)
            repo.cycle()
        assert repo.states()[web.url("/b")] == "gone"
        web["/b"] = beta
        repo.later(days=30)
        repo.run("recheck", web.url("/b"))
        yield repo


@pytest.fixture
def history(recorded: Repo, tmp_path: Path) -> Repo:
    """A copy of that repository; its site still answers."""
    shutil.copytree(recorded.folder, tmp_path / "copy")
    return Repo(tmp_path / "copy", recorded.ahead)


@pytest.fixture
def events(history: Repo) -> Iterator[EventServer]:
    with EventServer() as server:
        history.config(private_targets=[server.url])
        yield server


def changes(repo: Repo) -> list[tuple[str, str]]:
    """URL and outcome of every change, oldest first."""
    with recrawl.open(repo.folder) as opened:
        return [(change.url, change.outcome) for change in opened.changes(after=-1)]


def assert_each_page_in_order(repo: Repo, events: EventServer) -> None:
    """Every change has arrived, those of a page in the order in which they were recorded."""
    arrived: dict[str, list[int]] = {}
    for event in events.events:
        arrived.setdefault(event["subject"], []).append(int(event["id"]))
    firsts = {url: list(dict.fromkeys(numbers)) for url, numbers in arrived.items()}
    assert all(numbers == sorted(numbers) for numbers in firsts.values())
    assert sum(map(len, firsts.values())) == len(changes(repo))


def current(repo: Repo) -> dict[str, str]:
    """The text of every page that is there."""
    with recrawl.open(repo.folder) as opened:
        return {page.url: page.version().text for page in opened.pages(state="live")}


def test_the_history_has_all_kinds_of_changes(history: Repo) -> None:
    assert {outcome for _, outcome in changes(history)} == {"new", "changed", "gone"}
    assert len(current(history)) == 3


def test_a_webhook_gets_every_change_in_order_as_a_signed_cloud_event(
    history: Repo, events: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    history.run("sink", "add", "hook", "webhook", f"{events.url}/in", "--secret", "${HOOK_SECRET}")
    assert history.json("sink", "run")[0]["sent"] == len(changes(history))
    kinds = {"new": "created", "changed": "changed", "gone": "removed"}
    found = sorted((int(event["id"]), event["subject"], event["type"]) for event in events.events)
    assert [one[1:] for one in found] == [(url, f"recrawl.page.{kinds[outcome]}") for url, outcome in changes(history)]
    assert_each_page_in_order(history, events)
    first, headers = events.events[0], events.headers[0]
    assert {"specversion", "id", "source", "type", "time", "datacontenttype", "data"} <= set(first)
    assert len({(event["source"], event["id"]) for event in events.events}) == len(events.events)
    assert headers["x-recrawl-signature"] == signature(SECRET, headers["x-recrawl-timestamp"], events.bodies[0])
    assert history.json("sink", "run")[0]["sent"] == 0


def test_an_index_holds_the_newest_version_of_every_page(history: Repo) -> None:
    with BulkServer("ApiKey " + SECRET) as index:
        history.config(private_targets=[index.url])
        secret = history.folder / "key"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        history.run(
            "sink", "add", "search", "opensearch", f"{index.url}/pages", "--secret", f"${{file:{history.folder}/key}}"
        )
        history.run("sink", "run", "search")
        assert {url: index.documents[document_id(url)]["text"] for url in current(history)} == current(history)
        assert len(index.documents) == 3
        assert len(index.writes) == len(changes(history))
        index.reject = lambda order: 429 if len(index.writes) > len(changes(history)) else 0
        history.run("sink", "remove", "search")
        history.run(
            "sink", "add", "again", "opensearch", f"{index.url}/pages", "--secret", f"${{file:{history.folder}/key}}"
        )
        refused = history.run("sink", "run", code=1)
        assert "429" in refused.err
        assert history.json("sink")[0]["waiting"] == len(changes(history)) - 1, (
            "one document was taken before the others were not"
        )
        index.reject = lambda _: 0
        history.run("sink", "run")
        assert {url: index.documents[document_id(url)]["text"] for url in current(history)} == current(history)


@needs_postgres
def test_a_table_of_postgresql_holds_every_change_once(history: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setenv("PG_PASSWORD", SECRET)
    with postgres(SECRET) as url:
        history.run("sink", "add", "table", "postgres", f"{url}?table=changes", "--secret", "${PG_PASSWORD}")
        history.run("sink", "run")
        with psycopg.connect(url, password=SECRET) as connection:
            rows = connection.execute("SELECT url, outcome FROM changes ORDER BY id").fetchall()
            assert rows == changes(history)
            killed(history, "table", after=0)
            history.run("sink", "remove", "table")
            history.run("sink", "add", "table", "postgres", f"{url}?table=changes", "--secret", "${PG_PASSWORD}")
            history.run("sink", "run")
            assert connection.execute("SELECT count(*) FROM changes").fetchone() == (len(rows),)
            newest = "SELECT DISTINCT ON (url) url, text, outcome FROM changes ORDER BY url, id DESC"
            there = {url: text for url, text, outcome in connection.execute(newest) if outcome != "gone"}
            assert there == current(history)
        monkeypatch.setenv("PG_PASSWORD", "wrong")
        history.later(days=3)
        history.run("sink", "remove", "table")
        history.run("sink", "add", "table", "postgres", url, "--secret", "${PG_PASSWORD}")
        assert "password authentication failed" in history.run("sink", "run", code=1).err


def test_a_folder_of_markdown_files_follows_the_pages(history: Repo, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    history.run("sink", "add", "notes", "markdown", folder)
    history.run("sink", "run")
    assert {str(file.relative_to(folder)) for file in folder.rglob("*.md")} == set(map(file_name, current(history)))
    for url, text in current(history).items():
        _, head, body = (folder / file_name(url)).read_text().split("---\n")
        front = dict(line.split(": ", 1) for line in head.splitlines())
        assert json.loads(front["url"]) == url
        assert body.split() == text.split()[: len(body.split())] != []


def test_lines_of_chunks_add_up_to_the_chunks_of_the_pages(history: Repo, tmp_path: Path) -> None:
    file = tmp_path / "chunks.jsonl"
    history.run("sink", "add", "corpus", "chunks", file)
    history.run("sink", "run")
    with file.open("a") as out:
        out.write('{"op": "put", "id"')  # as a crash would leave it
    history.run("sink", "remove", "corpus")
    history.run("sink", "add", "corpus", "chunks", file)
    history.run("sink", "run")
    expected = map(json.loads, history.run("chunks").out.splitlines())
    assert corpus_of(file) == {change["id"]: change["text"] for change in expected}


def corpus_of(file: Path) -> dict[str, str]:
    """What the lines of chunks add up to."""
    corpus: dict[str, str] = {}
    for change in map(json.loads, file.read_text().splitlines()):
        if change["op"] == "put":
            corpus[change["id"]] = change["text"]
        elif change["op"] == "delete":
            corpus.pop(change["id"], None)
    return corpus


def test_what_the_user_removes_is_removed_from_every_sink(history: Repo, events: EventServer, tmp_path: Path) -> None:
    notes, file = tmp_path / "notes", tmp_path / "chunks.jsonl"
    with BulkServer("") as index:
        history.config(private_targets=[index.url, events.url])
        history.run("sink", "add", "search", "opensearch", f"{index.url}/pages")
        history.run("sink", "add", "hook", "webhook", events.url)
        history.run("sink", "add", "notes", "markdown", notes)
        history.run("sink", "add", "corpus", "chunks", file)
        history.run("sink", "run")
        urls = set(current(history))
        assert index.documents
        assert corpus_of(file)
        with recrawl.open(history.folder) as repo:
            seeds = [seed.url for seed in repo.settings.seeds]
        history.run("rm", *seeds)
        history.run("sink", "run")
        assert index.documents == {}
    assert [*notes.rglob("*.md")] == []
    assert corpus_of(file) == {}
    assert {event["data"]["url"] for event in events.events[-3:]} == urls
    assert {event["data"]["outcome"] for event in events.events[-3:]} == {"gone"}
    with recrawl.open(history.folder) as repo:
        assert repo.check().problems == ()


def killed(repo: Repo, name: str, after: int) -> None:
    """Deliver, and be killed when so many calls to the receiver are recorded and the next one is to be."""
    script = (
        "import os, signal, sys, recrawl\n"
        "from recrawl.repository.delivery.engine import Engine\n"
        "record, left = Engine._record, [int(sys.argv[3])]\n"
        "def kill(self, *given):\n"
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    left[0] -= 1\n"
        "    record(self, *given)\n"
        "Engine._record = kill\n"
        "with recrawl.open(sys.argv[1]) as repo: repo.deliver(sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(repo.folder), name, str(after)], check=False)
    assert done.returncode in (0, -signal.SIGKILL)


def test_a_kill_after_any_delivery_doubles_changes_and_loses_none(history: Repo, events: EventServer) -> None:
    history.run("sink", "add", "hook", "webhook", events.url)
    for after in (0, 0, 1, 0):
        killed(history, "hook", after=after)
    history.run("sink", "run")
    assert_each_page_in_order(history, events)
    assert len(events.events) > len(changes(history)), "what was under way is sent again"
    assert history.json("sink")[0]["waiting"] == 0


def test_a_kill_before_the_acknowledgement_loses_nothing(history: Repo, events: EventServer) -> None:
    history.run("sink", "add", "hook", "webhook", events.url)
    started: Future[int] = Future()
    events.after = lambda: os.kill(started.result(), signal.SIGKILL) if len(events.events) == 2 else None
    process = history.start("sink", "run")
    started.set_result(process.pid)
    assert history.wait(process).code == -signal.SIGKILL
    events.after = lambda: None
    history.run("sink", "run")
    assert [int(event["id"]) for event in events.events].count(int(events.events[1]["id"])) == 2
    assert len({event["id"] for event in events.events}) == len(changes(history))


def test_a_receiver_that_fails_gets_the_same_changes_next_time(history: Repo, events: EventServer) -> None:
    history.run("sink", "add", "hook", "webhook", events.url)
    events.before = lambda: (503, b"") if events.requests == 3 else None
    assert "HTTP 503" in history.run("sink", "run", code=1).err
    (state,) = history.json("sink")
    held = changes(history)[2][0]
    behind = [outcome for url, outcome in changes(history) if url == held]
    assert (state["waiting"], "503" in state["problem"]) == (len(behind), True), "other pages are delivered"
    assert held not in {event["subject"] for event in events.events}
    history.run("sink", "run")
    assert_each_page_in_order(history, events)
    assert history.json("sink")[0]["problem"] == ""


def test_a_run_delivers_after_its_cycle_and_a_failing_sink_stops_nothing(
    history: Repo, events: EventServer, tmp_path: Path
) -> None:
    history.run("sink", "add", "dead", "webhook", "http://127.0.0.1:9/")
    history.run("sink", "add", "hook", "webhook", events.url, "--from-now")
    history.run("sink", "add", "notes", "markdown", tmp_path / "notes")
    result = history.run("run", "--count", 1)
    assert "sink dead" in result.err
    assert list((tmp_path / "notes").rglob("*.md"))
    assert len(events.events) == 0, "nothing changed since the sink was added"


def test_private_addresses_are_refused_unless_the_setting_names_them(history: Repo) -> None:
    with EventServer() as server:
        history.run("sink", "add", "hook", "webhook", server.url)
        assert "private_targets" in history.run("sink", "run", code=1).err
        assert server.events == []


def test_secrets_are_neither_stored_nor_shown(history: Repo, events: EventServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    history.run("sink", "add", "hook", "webhook", events.url, "--secret", "${HOOK_SECRET}")
    shown = [history.run("sink", *words) for words in (("list",), ("list", "--json"), ("run",), ("run", "--json"))]
    assert all(SECRET not in result.out + result.err for result in shown)
    stored = [file for file in history.folder.rglob("*") if file.is_file()]
    assert len(stored) > 3
    assert all(SECRET.encode() not in file.read_bytes() for file in stored)
    assert all(SECRET.encode() not in body for body in events.bodies)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "x", "opensearch", "https://user:pass@host/index"), "--secret"),
        (("add", "x", "webhook", "https://host/", "--secret", "plain"), "${NAME}"),
        (("add", "x", "kafka", "https://host/"), "kafka"),
        (("add", "Big Name", "webhook", "https://host/"), "Big Name"),
        (("add", "x", "webhook", "ftp://host/"), "ftp://host/"),
        (("add", "x"), "recrawl sink add NAME KIND TARGET"),
        (("remove", "x"), "no sink 'x'"),
        (("run", "x"), "no sink 'x'"),
        (("stop",), "stop"),
    ],
)
def test_a_wrong_sink_is_refused_with_a_reason(repo: Repo, words: tuple[str, ...], said: str) -> None:
    complaint(repo.run("sink", *words, code=None), said)


def test_a_missing_variable_and_a_readable_secret_file_are_refused(history: Repo) -> None:
    history.run("sink", "add", "a", "webhook", "https://host.example/", "--secret", "${NOT_SET_ANYWHERE}")
    assert "NOT_SET_ANYWHERE" in history.run("sink", "run", "a", code=2).err
    (history.folder / "key").write_text(SECRET)
    (history.folder / "key").chmod(0o644)
    history.run("sink", "add", "b", "webhook", "https://host.example/", "--secret", f"${{file:{history.folder}/key}}")
    refused = history.run("sink", "run", "b", code=2).err
    assert "chmod 600" in refused
    assert SECRET not in refused


def test_two_processes_do_not_deliver_to_one_sink_at_a_time(history: Repo, events: EventServer) -> None:
    history.run("sink", "add", "hook", "webhook", events.url)
    with Lock(history.folder / "sink-hook.lock", "sink run hook", lambda _: False):
        assert "is working" in history.run("sink", "run", code=1).err
    assert events.events == []
