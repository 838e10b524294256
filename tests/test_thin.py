"""`recrawl thin`: records that no rule keeps go, what is known of them stays, and what follows from it is as before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import UsageError
from recrawl.retention import KeepRule, keep_rule, kept
from tests.erasing import calls_of, killed_at
from tests.world import Repo, Site, page

DAYS = 12


def story(name: str, day: int) -> bytes:
    """A page with other words every day."""
    chance = random.Random(f"{name} {day}")
    words = ("".join(chance.choices("bcdfglmnprst", k=1) + chance.choices("aeiou", k=1)) * 2 for _ in range(40))
    return page(f"{name} {' '.join(words)}")


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Repo]]:
    """Two pages that change every day for twelve days, one that does not."""
    repo = Repo.create(tmp_path_factory.mktemp("thin") / "repo", index=True, change="text")
    with Site() as site:
        site["/"] = page("home", "/a", "/b", "/still")
        site["/still"] = page("still")
        for day in range(DAYS):
            site["/a"], site["/b"] = story("alpha", day), story("beta", day)
            if day:
                repo.cycle(100, "--policy", "round-robin")
            else:
                repo.crawl(site.url("/"))
            repo.later(days=1)
        yield site, repo


@pytest.fixture
def history(year: tuple[Site, Repo], tmp_path: Path) -> tuple[Site, Repo]:
    site, repo = year
    shutil.copytree(repo.folder, tmp_path / "copy")
    return site, Repo(tmp_path / "copy", repo.ahead)


def shown(repo: Repo, url: str) -> list[bool]:
    """Which versions of a page can be shown, oldest first."""
    number = len(repo.json("log", url))
    return [repo.run("show", url, "--at", it, code=None).code == 0 for it in range(1, number + 1)]


def archived(repo: Repo) -> int:
    return sum(it.stat().st_size for it in (repo.folder / "archive").iterdir())


def sound(repo: Repo) -> None:
    assert repo.json("check", "--truth")["problems"] == []


def test_all_stays_by_default(history: tuple[Site, Repo]) -> None:
    _, repo = history
    assert repo.json("thin")["versions"] == 0
    assert "keep all" in repo.run("thin").err


def test_rules_by_page_and_what_is_protected(history: tuple[Site, Repo]) -> None:
    site, repo = history
    before = archived(repo)
    changes, log = repo.json("changes", "--limit", -1), repo.json("log", site.url("/a"))
    repo.config(keep="last=3")
    repo.run("tag", "hold", site.url("/b"))
    planned = repo.json("thin", "--dry-run")
    assert (planned["versions"], planned["pages"]) == (DAYS - 3, 1)
    assert all(shown(repo, site.url("/a")))
    done = repo.json("thin")
    assert done["versions"] == planned["versions"]
    assert done["records"] > planned["versions"]
    assert archived(repo) < before
    assert shown(repo, site.url("/a")) == [False] * (DAYS - 3) + [True] * 3
    assert all(shown(repo, site.url("/b")))
    assert "thinned out" in repo.run("show", site.url("/a"), "--at", 1, code=None).err
    assert repo.json("log", site.url("/a")) == log
    assert repo.json("changes", "--limit", -1) == changes
    sound(repo)
    assert repo.json("thin")["versions"] == 0
    assert "is held" in repo.run("erase", site.url("/b"), "--yes", code=2).err


def test_policies_choose_as_before(history: tuple[Site, Repo], tmp_path: Path) -> None:
    site, repo = history
    shutil.copytree(repo.folder, tmp_path / "other")
    other = Repo(tmp_path / "other", repo.ahead)
    repo.config(keep="last=1")
    assert repo.json("thin")["versions"] > DAYS
    for policy in ("shock", "optimal-freshness", "change-frequency", "proportional"):
        plans = [one.json("cycle", "--dry-run", "--budget", 2, "--policy", policy) for one in (repo, other)]
        first, second = ({it["url"]: it["score"] for it in plan["pages"]} for plan in plans)
        assert list(first) == list(second)
        assert first == pytest.approx(second, rel=1e-3)  # the second plan is made a little later
    site["/a"], site["/b"] = story("alpha", DAYS), story("beta", DAYS)
    for one in (repo, other):
        one.cycle(2, "--policy", "shock")
    assert repo.outcomes(site.url("/a")) == other.outcomes(site.url("/a"))
    assert repo.outcomes(site.url("/b")) == other.outcomes(site.url("/b"))


@pytest.mark.slow
def test_killed_at_any_moment_nothing_else_is_lost(history: tuple[Site, Repo], tmp_path: Path) -> None:
    site, repo = history
    repo.config(keep="last=2")

    def copy(name: str) -> Repo:
        shutil.copytree(repo.folder, tmp_path / name)
        return Repo(tmp_path / name, repo.ahead)

    counted = copy("counted")
    calls, chance = calls_of(lambda: counted.run("thin")), random.Random(3)
    for number in range(3):
        one = copy(f"killed-{number}")
        killed_at(lambda one=one: one.run("thin"), chance.randrange(1, calls))  # type: ignore[misc]
        one.crawl()
        sound(one)
        seen = shown(one, site.url("/a"))
        assert seen == sorted(seen)
        one.run("thin")
        assert shown(one, site.url("/a")) == [False] * (DAYS - 2) + [True] * 2
        sound(one)


TIMES = st.lists(st.floats(0, 4e8), min_size=1, max_size=60).map(sorted)


@given(TIMES, st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_what_rules_keep(times: list[float], last: int, daily: int, monthly: int) -> None:
    """The newest always stays; each part keeps the newest of its periods; parts add up."""
    rule = KeepRule(last=last, daily=daily, monthly=monthly)
    keep = kept(times, rule)
    if rule.everything:
        assert all(keep)
        return
    assert keep[-1]
    days = [datetime.fromtimestamp(at, UTC).date() for at in times]
    months = [(day.year, day.month) for day in days]
    wanted = set(range(len(times))[-last:] if last else [])
    for periods, number in ((days, daily), (months, monthly)):
        ends = [place for place, (one, after) in enumerate(pairwise([*periods, None])) if one != after]
        wanted |= set(ends[-number:] if number else [])
    assert {place for place, stays in enumerate(keep) if stays} == wanted


@pytest.mark.parametrize("text", ["last", "last=0", "last=1,last=2", "often=3", "last=-1", "last=3;daily=2", "daily=x"])
def test_wrong_rules(text: str) -> None:
    with pytest.raises(UsageError, match="invalid rule"):
        keep_rule(text)


def test_a_limit_thins_out_and_then_ends(history: tuple[Site, Repo]) -> None:
    site, repo = history
    used = sum(it.stat().st_size for it in repo.folder.rglob("*") if it.is_file())
    before = archived(repo)
    repo.config(disk=str(int(used * 1.05)), keep="last=2")
    site["/a"] = story("alpha", 100)
    said = repo.run("cycle", "--budget", 10).err
    assert "thinned out" in said
    assert archived(repo) < before
    assert repo.outcomes(site.url("/a"))[-1] == "changed"
    repo.config(disk=str(used // 4))
    visits = len(repo.visits(site.url("/a")))
    repo.later(days=1)
    assert "nothing more is visited" in repo.run("cycle", "--budget", 10, code=None).err
    assert len(repo.visits(site.url("/a"))) == visits
    repo.config(disk="0")
    repo.cycle()
    assert len(repo.visits(site.url("/a"))) > visits
    sound(repo)
