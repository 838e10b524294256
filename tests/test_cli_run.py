"""`run`: cycle after cycle by the clock, until it is told to stop."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.complaints import complaint
from tests.test_cli_crawl import NOWHERE, in_own_session, many
from tests.world import Reply, Repo, Result, Site, page

Start = Callable[..., Site]


def documents(text: str) -> list[dict[str, Any]]:
    """JSON values that follow one another."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def run(repo: Repo, *words: object) -> Result:
    return repo.wait(repo.start("run", *words))


def test_two_cycles(repo: Repo, site: Start) -> None:
    web = site(many(3))
    repo.add(web.url())
    result = run(repo, "--every", "1s", "--count", 2, "--budget", 2)
    assert result.code == 0, result
    assert result.out.count("2 visits") == 2
    assert "next cycle at" in result.err
    kinds = [row["kind"] for row in repo.json("status")["cycles"]]
    assert kinds == ["cycle", "crawl", "cycle", "crawl"]


def test_each_cycle_is_one_line_of_json(repo: Repo, site: Start) -> None:
    """A program that watches a run reads it line by line; so each cycle is a line, written at once."""
    web = site(many(3))
    repo.add(web.url())
    result = run(repo, "--every", "1s", "--count", 2, "--budget", 2, "--json")
    assert [row["visits"] for row in documents(result.out)] == [2, 2]
    assert [json.loads(line)["visits"] for line in result.out.splitlines()] == [2, 2]


@pytest.mark.parametrize("sync", ["start", "most-at-start", "even"])
def test_synchronisation_points(repo: Repo, site: Start, sync: str) -> None:
    web = site(many(3))
    repo.crawl(web.url())
    web.forget()
    result = run(repo, "--every", "4s" if sync == "even" else "60s", "--count", 1, "--budget", 4, "--sync", sync)
    assert result.code == 0, result
    times = [one.at for one in web.log if one.path.startswith("/p") or one.path == "/"]
    assert len(times) == 4
    took = max(times) - min(times)
    if sync == "even":
        assert took > 2.4
    else:
        assert took < 30


def test_pages_discovered_during_a_cycle_are_visited(repo: Repo, site: Start) -> None:
    web = site({"/": page("front")})
    repo.crawl(web.url())
    web["/"] = page("front, with news", "/news")
    web["/news"] = page("news")
    assert run(repo, "--every", "1s", "--count", 2, "--budget", 10).code == 0
    assert repo.states()[web.url("/news")] == "live"


def test_nothing_added(repo: Repo) -> None:
    complaint(run(repo, "--count", 1), "recrawl add")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "0s"], "second"),
        (["--every", "often"], "'often'"),
        (["--sync", "evn"], "even"),
        (["--policy", "rand"], "random"),
        (["--count", "-1"], "count"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(repo: Repo, words: list[str], said: str) -> None:
    repo.run("add", NOWHERE)
    result = run(repo, "--every", "1s", "--count", "1", *words)
    assert result.code == 2, result
    assert "Traceback" not in result.err
    assert said in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_between_cycles(repo: Repo, site: Start, number: int) -> None:
    web = site(many(2))
    repo.add(web.url())
    process = in_own_session(repo, "run", "--every", "1h", "--budget", "3")
    assert process.stderr is not None
    assert "next cycle at" in process.stderr.readline()
    os.killpg(process.pid, number)
    result = repo.wait(process)
    assert result.code == 0, result
    assert "Traceback" not in result.err
    assert repo.json("cycle")["resumed"] is False


def test_ctrl_c_in_a_cycle(repo: Repo, site: Start) -> None:
    web = site(many(11))
    repo.crawl(web.url())
    for path in list(web.pages):
        web[path] = Reply(page(f"new {path[1:]}"), wait=0.1)
    web.forget()
    process = in_own_session(repo, "run", "--every", "1h", "--budget", "12")
    while len(web.asked()) < 4:
        assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    result = repo.wait(process)
    assert result.code == 0, result
    assert "Traceback" not in result.err, result.err
    assert repo.run("cycle").err.startswith("resuming cycle")
    assert all(repo.outcomes(url) == ["new", "changed"] for url in repo.pages())


def test_ctrl_c_while_waiting_for_the_next_visit(repo: Repo, site: Start) -> None:
    """Visits spread over an hour do not make Ctrl-C wait for an hour."""
    web = site(many(2))
    repo.crawl(web.url())
    web.forget()
    process = in_own_session(repo, "run", "--every", "1h", "--budget", "3", "--sync", "even")
    while not web.asked():
        assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    assert repo.wait(process).code == 0
