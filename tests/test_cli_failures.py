"""Skipped is not failed, a page that may be gone is not failed; when nothing answers, the exit code says so."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

import recrawl
from tests.world import Reply, Repo, Site, page

Start = Callable[..., Site]


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_files_that_are_not_kept_are_skipped(repo: Repo, site: Start) -> None:
    files = [f"/download{number}" for number in range(5)]
    web = site({"/": page("Start", *files), **{name: Reply(b"PK", kind="application/zip") for name in files}})
    summary = repo.crawl(web.url())
    assert (summary["new"], summary["skipped"], summary["failed"]) == (1, 5, 0)
    assert summary["visits"] == 6
    status = repo.json("status")["cycles"][0]
    assert (status["skipped"], status["failed"]) == (5, 0)
    assert repo.sql("SELECT skipped, failed, missing FROM cycle_summaries") == [(5, 0, 0)]
    assert repo.sql("SELECT failed FROM site_cycles") == [(0,)]


def test_robots_and_limits_skip(repo: Repo, site: Start) -> None:
    robots = Reply(b"User-agent: *\nDisallow: /private/\n", kind="text/plain")
    web = site({"/": page("Start", "/private/a"), "/private/a": page("x"), "/robots.txt": robots})
    summary = repo.crawl(web.url())
    assert (summary["new"], summary["skipped"], summary["failed"]) == (1, 1, 0)


def test_a_page_that_may_be_gone_has_not_failed(repo: Repo, site: Start) -> None:
    web = site({"/": page("Start", "/a"), "/a": page("a")})
    repo.crawl(web.url())
    del web["/a"]
    repo.later(days=1)
    ended = repo.run("cycle", "--budget", 10)
    assert "1 missing" in ended.out
    assert "failed" not in ended.out
    row = repo.json("status")["cycles"][0]
    assert (row["missing"], row["failed"], row["unchanged"]) == (1, 0, 1)


def test_private_addresses_are_named_with_the_option_that_allows_them(repo: Repo, site: Start) -> None:
    repo.run("add", site({"/": page("x")}).url())
    ended = repo.run("crawl", code=1)
    assert "no page could be downloaded" in ended.err
    assert "--allow-private" in ended.err


@pytest.mark.parametrize("words", [["crawl"], ["crawl", "--json"]])
def test_a_refused_connection_is_named(repo: Repo, words: list[str]) -> None:
    repo.add(f"http://127.0.0.1:{closed_port()}/")
    ended = repo.run(*words, code=1)
    assert "did not accept a connection" in ended.err


def test_a_name_that_does_not_resolve_is_named(repo: Repo) -> None:
    repo.run("add", "http://nowhere.invalid/")
    assert "could not be resolved" in repo.run("crawl", code=1).err


def test_one_answer_is_enough(repo: Repo, site: Start) -> None:
    web = site({"/": page("Start", "/a"), "/a": Reply(b"", status=500)})
    repo.add(web.url())
    assert "1 failed, http-5xx: The server answered with a 5xx status." in repo.run("crawl").out


def test_status_names_settings_with_which_a_cycle_would_fail(repo: Repo, site: Start) -> None:
    repo.crawl(site({"/": page("x")}).url())
    assert repo.json("status")["problems"] == []
    file = repo.folder / "recrawl.toml"
    file.write_text(file.read_text().replace("[settings]", '[settings]\npolicy = "nonsense"'))
    refused = repo.run("cycle", code=2).err.removeprefix("recrawl: ").strip()
    assert f"a cycle would fail: {refused}" in repo.run("status").err


def test_a_run_keeps_to_the_clock(repo: Repo, site: Start) -> None:
    repo.crawl(site({"/": page("x")}).url())
    now = [1000.0]
    with recrawl.open(repo.folder, timer=lambda: now[0]) as opened:
        begun = []
        for _ in opened.run(every="1h", count=3, sleep=lambda seconds: now.__setitem__(0, now[0] + max(seconds, 60))):
            begun.append(now[0])
            now[0] += 100  # what a cycle takes
    assert begun[0] == 1000.0
    assert [time // 60 * 60 for time in begun[1:]] == [3600.0, 7200.0]
