"""The service as a whole: it starts, answers, refuses strangers, and is alone on its repository."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import RepositoryBusy, UsageError
from recrawl.repository.processes import lower_priority
from recrawl.serve import dashboard
from recrawl.serve.dashboard import page_cache
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import TOKEN, Asker, Got
from tests.world import Repo, Site, page


def test_it_answers_and_ends(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        assert Asker(service).get("/healthz").text == "ok\n"
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", service.port, timeout=1).request("GET", "/")


def test_one_to_a_repository(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)), pytest.raises(RepositoryBusy, match="recrawl serve"):
        Service(repo.folder, ServiceConfig(schedule=False))
    with Service(repo.folder, ServiceConfig(schedule=False)):
        pass


def test_a_port_that_is_taken_lets_the_repository_go(repo: Repo, tmp_path: Path) -> None:
    other = Repo.create(tmp_path / "other")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        with pytest.raises(UsageError, match="cannot listen"):
            Service(other.folder, ServiceConfig(port=service.port))
        with Service(other.folder, ServiceConfig(schedule=False)):
            pass


def test_beyond_loopback_needs_a_token(repo: Repo) -> None:
    with pytest.raises(UsageError, match="requires an access token"):
        Service(repo.folder, ServiceConfig(host="0.0.0.0"))
    with pytest.raises(UsageError, match="at least 16"):
        Service(repo.folder, ServiceConfig(host="0.0.0.0", token="short"))


def test_what_is_not_there_is_a_problem_document(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        found = Asker(service).get("/api/v1/<script>")
    assert found.status == 404
    assert found.headers["content-type"] == "application/problem+json"
    assert json.loads(found.text)["status"] == 404


def test_what_is_not_there_looks_like_the_rest_to_people(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        for path in ("/nowhere", "/nowhere/<script>", "/sites/x"):
            found = ask.get(path, Accept="text/html")
            assert (found.status, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
            assert '<link rel="stylesheet" href="/static/recrawl.css' in found.text
            assert 'aria-label="Main">' in found.text
            assert "Not found: no such path." in found.text
            assert "<script>" not in found.text
        wrong = ask.ask("POST", "/changes", b"", headers={"Accept": "text/html"})
        assert (wrong.status, sorted(wrong.headers["allow"].split(", "))) == (405, ["GET", "HEAD"])
        elsewhere = ask.get("/", Accept="text/html", Host="elsewhere.example")  # refused before the app is asked
        assert (elsewhere.status, "/static/recrawl.css" in elsewhere.text) == (421, True)


def test_the_verb_serves_until_it_is_told_to_stop(repo: Repo) -> None:
    process = repo.start("serve", "--port", 0, "--no-schedule", "--json")
    assert process.stdout is not None
    told = ""
    while not told.endswith("}\n"):
        told += process.stdout.readline()
    port = int(json.loads(told)["address"].rstrip("/").rpartition(":")[2])
    assert Asker(port).get("/healthz").status == 200
    process.send_signal(signal.SIGTERM)
    ended = repo.wait(process)
    assert (ended.code, ended.err) == (0, "stopped\n")


def test_a_token_is_made_once_and_kept_for_the_owner_only(repo: Repo) -> None:
    tokens = []
    for _ in range(2):
        process = repo.start("serve", "--port", 0, "--host", "0.0.0.0", "--no-schedule", "--json")
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
        tokens.append(json.loads(told).get("token"))
        process.send_signal(signal.SIGINT)
        assert repo.wait(process).code == 0
    page_cache = repo.folder / "serve.token"
    assert tokens == [page_cache.read_text().strip(), None]
    assert page_cache.stat().st_mode & 0o077 == 0
    assert (repo.folder / "serve.key").stat().st_mode & 0o077 == 0


def test_a_short_token_file_is_refused(repo: Repo, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short\n")
    assert "at least 16" in repo.run("serve", "--port", 0, "--token-file", file, code=2).err
    file.write_text("\n")
    assert "is empty" in repo.run("serve", "--token-file", file, code=2).err
    assert len(TOKEN) >= 16


def test_where_there_are_many_pages_another_process_is_asked(
    repo: Repo, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says the same."""
    web = site({"/": page("Start", "/a"), "/a": b"<p>a"})
    repo.crawl(web.url())
    told = []
    for large in (50_000, 0):
        monkeypatch.setattr(subprocess_queries, "LARGE", large)
        with Service(repo.folder, ServiceConfig(schedule=False)) as service:
            ask = Asker(service)
            why, predicted = ask.get("/api/v1/pages/0/why").json, ask.get("/api/v1/pages/0/predict").json
            outlook = ask.get("/pages/0/outlook", Accept="text/html")
            asked = ask.get(f"/why?url={web.url('/a')}", Accept="text/html")
            assert outlook.status == 200
            assert asked.headers["location"] == "/pages/1/outlook"
            told.append((why["state"], why["why"][0], why["plan"]["policy"], predicted["url"], sorted(predicted)))
            assert why["why"][0] in outlook.text
    assert told[0] == told[1]


def test_a_page_that_many_ask_for_is_made_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    made, enough, go = [], threading.Event(), threading.Event()

    def slow(desk: Views, request: Request) -> Response:
        made.append(request.url.path)
        enough.set()
        assert go.wait(120)
        return desk.show(request, "problem.html", head="Slow", text="made")

    monkeypatch.setattr(dashboard, "_VIEWS", (("/", slow),))
    monkeypatch.setattr(page_cache, "_MAX_AGE", 3600.0)  # however busy the machine is
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        answers: list[Got] = []
        threads = [threading.Thread(target=lambda: answers.append(Asker(service).get("/"))) for _ in range(6)]
        threads[0].start()
        assert enough.wait(120)
        for thread in threads[1:]:
            thread.start()
        go.set()
        for thread in threads:
            thread.join()
    assert [answer.status for answer in answers] == [200] * 6
    assert len(made) == 1


def test_work_in_the_background_steps_back() -> None:
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as process:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        lower_priority(process.pid, 3)
        after = os.getpriority(os.PRIO_PROCESS, process.pid), os.getpriority(os.PRIO_PROCESS, 0)
        assert after == (min(19, before + 3), before)
        ours, its = (Path(f"/proc/{name}/autogroup") for name in ("self", process.pid))
        if its.exists() and its.read_text():  # empty for a process that is in no group
            numbers = [int(group.read_text().rpartition(" ")[2] or 0) for group in (ours, its)]
            assert numbers[1] == min(19, numbers[0] + 3)
    lower_priority(process.pid, 3)  # one that has ended is no problem
