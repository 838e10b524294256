"""`crawl` and `cycle`: budgets, policies, time limits, and going on where it stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.complaints import complaint
from tests.world import Reply, Repo, Result, Site, page

Start = Callable[..., Site]
NOWHERE = "http://127.0.0.1:9/"
"""Refused before anything is sent: private addresses need leave."""


def many(count: int, wait: float = 0.0) -> dict[str, Reply]:
    """A front page, and so many pages that it links to."""
    names = [f"/p{number:03}" for number in range(count)]
    return {
        "/": Reply(page("front", *names)),
        **{name: Reply(page(f"words of {name[1:]}"), wait=wait) for name in names},
    }


def in_own_session(repo: Repo, *words: str) -> subprocess.Popen[str]:
    """A command whose whole process group can be sent Ctrl-C, as a terminal does it."""
    return subprocess.Popen(
        [sys.executable, "-m", "recrawl", "-C", str(repo.folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupt(repo: Repo, web: Site, *words: str, after: int = 3, times: int = 1) -> Result:
    """Run a command and press Ctrl-C when the server has been asked for so many pages."""
    web.forget()
    process = in_own_session(repo, *words)
    while len(web.asked()) < after:
        assert process.poll() is None, process.communicate()
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
    return repo.wait(process)


# -- crawl -------------------------------------------------------------------------------------------------


def test_nothing_added(repo: Repo) -> None:
    complaint(repo.run("crawl", code=None), "recrawl add")


def test_summary(repo: Repo, site: Start) -> None:
    web = site(many(3))
    repo.add(web.url())
    told = repo.run("crawl")
    assert "4 visits" in told.out
    assert "4 new" in told.out
    assert told.err == ""
    again = repo.json("crawl")
    assert again["visits"] == 0
    assert again["finished"] is True


def test_summary_as_json(repo: Repo, site: Start) -> None:
    web = site({**many(3), "/p001": Reply(b"", 500)})
    summary = repo.crawl(web.url())
    assert summary["kind"] == "crawl"
    assert (summary["visits"], summary["new"], summary["failed"]) == (4, 3, 1)
    assert summary["failures"] == {"http-5xx": 1}
    assert summary["received"] > 0
    assert summary["resumed"] is False


def test_crawl_with_a_time_limit_continues_later(repo: Repo, site: Start) -> None:
    web = site(many(12, wait=0.5))
    repo.add(web.url())
    first = repo.json("crawl", "--for", "3s")
    assert 0 < first["new"] < 13
    second = repo.json("crawl")
    assert first["new"] + second["new"] == 13
    assert len(set(web.asked())) == 13
    assert len(web.asked()) <= 14  # the one that was under way may be asked for again


@pytest.mark.parametrize("verb", ["crawl", "cycle"])
@pytest.mark.parametrize("text", ["soon", "10", "-5s", "5x", "s"])
def test_invalid_durations(repo: Repo, verb: str, text: str) -> None:
    repo.run("add", NOWHERE)
    complaint(repo.run(verb, f"--for={text}", code=None), f"'{text}'", "10m")


def test_ctrl_c_ends_a_crawl_and_the_next_continues(repo: Repo, site: Start) -> None:
    web = site(many(12, wait=0.1))
    repo.add(web.url())
    result = interrupt(repo, web, "crawl", after=5)
    assert "Traceback" not in result.err, result.err
    assert "the next one resumes it" in result.out
    kept = len(repo.json("pages", "--state", "live"))
    assert 3 <= kept < 13
    second = repo.json("crawl")
    assert second["resumed"] is True
    assert second["new"] == 13 - kept
    assert all(repo.outcomes(url) == ["new"] for url in repo.pages())


def test_two_ctrl_c_end_it_at_once(repo: Repo, site: Start) -> None:
    web = site(many(12, wait=0.2))
    repo.add(web.url())
    result = interrupt(repo, web, "crawl", times=2)
    assert "Traceback" not in result.err, result.err
    assert repo.json("crawl")["finished"] is True
    assert all(repo.outcomes(url) == ["new"] for url in repo.pages())


def test_a_finished_run_has_nothing_to_reindex(repo: Repo, site: Start) -> None:
    """Pages that failed were seen too; the next command need not look at them again."""
    web = site({**many(3), "/p001": Reply(b"", 500)})
    repo.crawl(web.url())
    assert "index" not in repo.run("crawl", code=1).err
    repo.later(days=2)
    assert repo.run("cycle", "--budget", 10).err == ""
    assert repo.run("cycle", "--budget", 10).err == ""


# -- the budget --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "visits"),
    [("1", 1), ("3", 3), ("0.5", 4), ("0.999", 8), ("0.0001", 1), ("8", 8), ("1000", 8), ("1e9", 8)],
)
def test_budget(repo: Repo, site: Start, budget: str, visits: int) -> None:
    web = site(many(7))
    repo.crawl(web.url())
    web.forget()
    summary = repo.json("cycle", "--budget", budget)
    assert summary["visits"] == visits
    assert len(web.asked()) == visits


@pytest.mark.parametrize("budget", ["0", "-1", "-0.5", "nan", "inf", "-inf", "1e300"])
@pytest.mark.parametrize("verb", ["cycle", "run"])
def test_invalid_budgets(repo: Repo, verb: str, budget: str) -> None:
    repo.run("add", NOWHERE)
    words = ["--for", "0s"] if verb == "cycle" else ["--count", "1"]
    complaint(repo.wait(repo.start(verb, f"--budget={budget}", *words)), "budget")


def test_budget_of_the_settings(repo: Repo, site: Start) -> None:
    web = site(many(7))
    repo.crawl(web.url())
    repo.config(budget=2)
    assert repo.json("cycle")["visits"] == 2
    repo.config(budget=0.5)
    assert repo.json("cycle")["visits"] == 4


def test_cycle_without_pages(repo: Repo) -> None:
    assert repo.json("cycle")["visits"] == 0


def test_every_page_once_in_a_pass(repo: Repo, site: Start) -> None:
    web = site(many(5))
    repo.crawl(web.url())
    web.forget()
    for _ in range(3):
        repo.cycle(2, "--policy", "round-robin")
    assert sorted(web.asked()) == sorted(web.pages)


def test_cycle_with_a_time_limit_ends(repo: Repo, site: Start) -> None:
    web = site(many(12))
    repo.crawl(web.url())
    for path in list(web.pages):
        web[path] = Reply(page("slow"), wait=0.5)
    first = repo.json("cycle", "--budget", 100, "--for", "3s")
    assert 0 < first["visits"] < 13
    assert first["finished"] is True
    assert repo.json("cycle", "--budget", 1)["resumed"] is False


# -- the policy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        "round-robin",
        "random",
        "fixed-interval",
        "round-robin(order=shuffled)",
        "fixed-interval( days = 0 )",
        "random()",
    ],
)
def test_policy(repo: Repo, site: Start, policy: str) -> None:
    web = site(many(3))
    repo.crawl(web.url())
    repo.later(days=8)
    assert repo.json("cycle", "--budget", 3, "--policy", policy)["visits"] == 3


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("round-robbin", ["did you mean 'round-robin'"]),
        ("nonsense", ["fixed-interval", "round-robin", "random"]),
        ("round-robin(ordr=fixed)", ["did you mean 'order'"]),
        ("round-robin(order=backwards)", ["fixed, shuffled, random, accesses"]),
        ("round-robin(shuffled)", ["name=value"]),
        ("random(x=1)", ["no parameters"]),
        ("fixed-interval(days=soon)", ["days"]),
        ("fixed-interval(days=-1)", ["days"]),
        ("fixed-interval(days=1e999)", ["days"]),
        ("fixed-interval(days=[1])", ["days"]),
        ("fixed-interval(days=)", ["days"]),
        ("fixed-interval(days=1, days=2)", ["days"]),
        ("fixed-interval(" + "(" * 3000 + ")" * 3000 + ")", ["fixed-interval"]),
        ("fixed-interval(days=" + "(" * 3000 + "1" + ")" * 3000 + ")", ["days"]),
        ("round-robin(", ["round-robin"]),
        ("(((", ["invalid policy"]),
        ("ROUND-ROBIN", ["round-robin"]),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_wrong_policy(repo: Repo, policy: str, words: list[str]) -> None:
    complaint(repo.run("cycle", "--policy", policy, code=None), *words)
    assert repo.json("status")["cycles"] == []


def test_wrong_policy_in_the_settings(repo: Repo) -> None:
    complaint(repo.run("config", "policy", "round-robbin", code=None), "did you mean 'round-robin'")


# -- going on ------------------------------------------------------------------------------------------------


@pytest.fixture
def interrupted(repo: Repo, site: Start) -> tuple[Repo, Site]:
    """A repository whose cycle was stopped in the middle."""
    web = site(many(11))
    repo.crawl(web.url())
    for path in list(web.pages):
        web[path] = Reply(page(f"new words of {path[1:]}"), wait=0.1)
    result = interrupt(repo, web, "cycle", "--budget", "12", "--policy", "random", after=4)
    assert "Traceback" not in result.err, result.err
    assert "the next one resumes it" in result.out
    return repo, web


def test_cycle_continues(interrupted: tuple[Repo, Site]) -> None:
    repo, _ = interrupted
    number = repo.json("status")["cycles"][0]["cycle"]
    told = repo.run("cycle", "--budget", 3)
    assert f"resuming cycle {number} (random, budget 12)" in told.err
    assert "(resumed)" in told.out
    assert all(repo.outcomes(url) == ["new", "changed"] for url in repo.pages())
    assert repo.json("status")["cycles"][0]["finished"] is not None
    assert repo.json("cycle", "--budget", 3)["resumed"] is False


def test_resumed_cycle_keeps_its_policy_and_reports_it(interrupted: tuple[Repo, Site]) -> None:
    repo, _ = interrupted
    told = repo.run("cycle", "--budget", 12, "--policy", "round-robin")
    assert "it keeps its policy" in told.err
    assert repo.json("status")["cycles"][0]["policy"] == "random"


def test_status_shows_what_is_unfinished(interrupted: tuple[Repo, Site]) -> None:
    repo, _ = interrupted
    assert "unfinished" in repo.run("status").out
