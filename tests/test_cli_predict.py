"""`recrawl predict`: how likely, and why; and "not enough history yet" where that is the truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from recrawl.crawl.reports.relatives import relatives_of
from tests.complaints import complaint
from tests.world import Page, Repo, Site, page

DAYS = 14


class Past(NamedTuple):
    """A repository with a past, only to be read, and its site."""

    repo: Repo
    url: Callable[[str], str]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """/news/front and /news/list change together on every third day, /busy at every visit, /still never."""
    repo = Repo.create(tmp_path_factory.mktemp("past") / "repo", change="text")
    links = ["/news/front", "/news/list", "/busy", "/still"]
    pages: dict[str, Page] = {
        "/": page("Welcome", *links),
        "/news/front": page("front 0", "/news/list"),
        "/news/list": page("list 0"),
        "/busy": page("busy 0"),
        "/still": page("nothing ever happens here"),
    }
    with Site(pages) as site:
        repo.crawl(site.url())
        for day in range(1, DAYS + 1):
            repo.later(days=1)
            site["/busy"] = page(f"busy {day}")
            if day % 3 == 0:
                site["/news/front"] = page(f"front {day}", "/news/list")
                site["/news/list"] = page(f"list {day}")
            repo.cycle()
        site["/late"] = page("found late")
        site["/"] = page("Welcome all", *links, "/late")
        repo.later(days=1)
        repo.cycle()
        (repo.folder.parent / "urls.txt").write_text(site.url("/never"))
        repo.run("crawl")
        repo.run("import", str(repo.folder.parent / "urls.txt"))
        repo.later(days=1)
        yield Past(repo, site.url)


def test_a_page_that_always_changes_has_most_likely_changed(past: Past) -> None:
    told = past.repo.json("predict", past.url("/busy"))
    assert told["probability"] > 0.6
    assert told["enough_history"] is True
    assert told["history"]["changes"] == DAYS
    assert told["history"]["compared"] == DAYS + 1
    assert 0 <= told["history"]["low"] <= told["history"]["high"] <= 1


def test_a_page_that_never_changes_has_most_likely_not(past: Past) -> None:
    told = past.repo.json("predict", past.url("/still"))
    assert told["probability"] < 0.15
    assert told["history"]["changes"] == 0
    assert told["history"]["last_change"] is None
    assert told["relatives"] == []


def test_relatives_are_named_with_weight_and_lag(past: Past) -> None:
    told = past.repo.json("predict", past.url("/news/front"))
    assert 0.05 < told["probability"] < 0.95
    best = told["relatives"][0]
    assert best["url"] == past.url("/news/list")
    assert best["weight"] > 0.9
    assert best["lag"] == 0
    assert "same directory" in best["relation"]
    assert "linked from it" in best["relation"]
    assert best["together"] == 4


def test_content_is_reported(past: Past) -> None:
    content = past.repo.json("predict", past.url("/news/front"))["content"]
    assert content["versions"] == 5
    assert 0 < content["mean_divergence"] <= 1


def test_text_output_has_sentences(past: Past) -> None:
    shown = past.repo.run("predict", past.url("/news/front")).out
    assert "likely to have changed since its last visit" in shown
    assert "History: 4 changes at 15 later visits" in shown
    assert f"{past.url('/news/list')} (same directory, linked from it) changes together with it: weight" in shown
    assert "Content:" in shown


def test_a_page_visited_once_has_not_enough_history(past: Past) -> None:
    told = past.repo.json("predict", past.url("/late"))
    assert told["enough_history"] is False
    assert 0 < told["probability"] < 1
    assert told["basis"] == "shock"
    assert told["site_rate"] > 0
    shown = past.repo.run("predict", past.url("/late")).out
    assert "Not enough history" in shown
    assert "visited once" in shown
    assert "other pages of the site" in shown


def test_a_page_never_downloaded_has_no_probability(past: Past) -> None:
    told = past.repo.json("predict", past.url("/never"))
    assert told["probability"] is None
    assert told["history"]["visits"] == 0
    assert "never downloaded" in past.repo.run("predict", past.url("/never")).out


def test_an_unknown_page_is_refused(past: Past) -> None:
    assert "not known here" in complaint(past.repo.run("predict", past.url("/nowhere"), code=None))


def test_nothing_is_written(past: Past) -> None:
    before = {path: path.stat().st_mtime_ns for path in past.repo.folder.rglob("*.npz")}
    past.repo.run("predict", past.url("/busy"))
    assert {path: path.stat().st_mtime_ns for path in past.repo.folder.rglob("*.npz")} == before


def test_a_leading_relative_is_found_with_its_lag() -> None:
    rng = np.random.default_rng(2)
    lead = rng.random(60) < 0.4
    rows = []
    for day in range(60):
        at = 1.7e9 + day * 86400.0
        rows += [(0, day, at, day >= 2 and lead[day - 2]), (1, day, at + 5, lead[day]), (2, day, at + 9, day % 5 == 0)]
    visits = np.array(rows, [("page", "i8"), ("cycle", "i8"), ("at", "f8"), ("changed", "?")])
    best, *others = relatives_of(visits, 0)
    assert (best.page, round(best.lag / 86400)) == (1, 2)
    assert best.weight > 0.9
    assert all(other.weight < best.weight for other in others)


def test_the_policy_runs_live_and_keeps_its_model_in_the_repository(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    pages: dict[str, Page] = {"/": page("Welcome", "/a", "/b"), "/a": page("a 0"), "/b": page("b 0")}
    with Site(pages) as site:
        repo.crawl(site.url())
        for day in range(1, 5):
            repo.later(days=1)
            site["/a"] = page(f"a {day}")
            repo.cycle(2, "--policy", "predicted(retrain=2)")
        outcomes = repo.outcomes(site.url("/a"))
    assert outcomes.count("changed") >= 3, "it found out which page changes"
    [file] = (repo.folder / "models").glob("predicted-*.npz")
    with np.load(file, allow_pickle=False) as kept:
        assert "kept predicted.model.mix" in kept.files


def test_why_gives_the_predicted_probability(repo: Repo) -> None:
    with Site({"/": page("0")}) as site:
        repo.crawl(site.url())
        repo.config(policy="predicted(explore=0)")
        repo.later(days=2)
        repo.cycle()
        told = repo.run("why", site.url()).out
    assert re.search(
        r"because it has most likely changed, as its own history says \(policy predicted.*bility then [\d.]+ %", told
    )
