"""`recrawl rates`: changes a day and what they rest on, for pages, directories and sites; all estimators of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any, NamedTuple

import numpy as np
import pytest

from recrawl.crawl.reports.rates import rates_of, trusted, watched, with_headers
from recrawl.record.storage import Storage
from tests.complaints import complaint
from tests.world import Page, Reply, Repo, Site, connection, page

DAYS = 12
HOUR = 3600.0


class Past(NamedTuple):
    """A repository with a past, only to be read, and its site."""

    repo: Repo
    url: Callable[[str], str]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """/dated/news changes daily, two hours before the visit, and says so; /fast/a every second day; others never."""
    repo = Repo.create(tmp_path_factory.mktemp("past") / "repo", change="text")
    links = ["/dated/news", "/fast/a", "/slow/b", "/slow/c"]
    pages: dict[str, Page] = {"/": page("Welcome", *links)}
    pages |= {link: page(f"{link} 0") for link in links}
    with Site(pages) as site:
        site["/dated/news"] = _dated(repo, 0)
        repo.crawl(site.url())
        for day in range(1, DAYS + 1):
            repo.later(days=1)
            site["/dated/news"] = _dated(repo, day)
            if day % 2 == 0:
                site["/fast/a"] = page(f"fast {day}")
            repo.cycle()
        (repo.folder.parent / "urls.txt").write_text(site.url("/never"))
        repo.run("import", str(repo.folder.parent / "urls.txt"))
        repo.later(days=1)
        yield Past(repo, site.url)


def _dated(repo: Repo, day: int) -> Reply:
    return Reply(page(f"news {day}"), modified=formatdate(time.time() + repo.ahead - 2 * HOUR, usegmt=True))


def by_address(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {"/" + row["url"].split("/", 3)[3]: row for row in rows}


def test_pages_are_listed_by_rate_with_their_evidence(past: Past) -> None:
    rows = past.repo.json("rates")
    assert [row["rate"] for row in rows] == sorted((row["rate"] for row in rows), reverse=True)
    told = by_address(rows)
    assert set(told) == {"/", "/dated/news", "/fast/a", "/slow/b", "/slow/c"}
    assert (told["/fast/a"]["visits"], told["/fast/a"]["changes"]) == (DAYS, DAYS // 2)
    assert told["/fast/a"]["days"] == pytest.approx(DAYS, abs=0.1)
    assert told["/dated/news"]["changes"] == DAYS
    assert told["/slow/b"]["rate"] < 0.2 < told["/fast/a"]["rate"] < 1 < told["/dated/news"]["rate"]
    for row in rows:
        assert row["low"] <= row["rate"] <= row["high"]


def test_directories_and_sites_have_the_mean_of_their_pages(past: Past) -> None:
    told = by_address(past.repo.json("rates"))
    folders = by_address(past.repo.json("rates", "--by", "directory"))
    assert set(folders) == {"/", "/dated/", "/fast/", "/slow/"}
    assert folders["/slow/"]["pages"] == 2
    assert folders["/slow/"]["rate"] == pytest.approx((told["/slow/b"]["rate"] + told["/slow/c"]["rate"]) / 2)
    assert folders["/slow/"]["together"] == pytest.approx(2 * folders["/slow/"]["rate"])
    (site,) = past.repo.json("rates", "--by", "site")
    assert site["url"] == past.url("/")
    assert site["pages"] == 5
    assert site["changes"] == DAYS + DAYS // 2
    assert site["together"] == pytest.approx(sum(row["rate"] for row in told.values()))


def test_one_page_by_all_estimators(past: Past) -> None:
    (told,) = past.repo.json("rates", past.url("/fast/a"))
    assert set(told["estimates"]) == {"naive", "regular", "irregular", "moment", "averaged", "modified", "gamma"}
    assert told["estimates"]["naive"] == pytest.approx(0.5, rel=0.02)
    assert told["estimates"]["regular"] == pytest.approx(np.log(12.5 / 6.5), rel=0.02)
    assert told["estimates"]["gamma"] == pytest.approx(told["rate"])
    assert 0 < told["chance_by_now"] < 1
    assert told["even_chance_by"] > told["last_visit"]


def test_correct_last_modified_dates_are_used(past: Past) -> None:
    """Every change was two hours before the visit that found it, and nothing is known of what came before it."""
    (told,) = past.repo.json("rates", past.url("/dated/news"))
    assert told["dated_changes"] == DAYS
    assert told["estimates"]["modified"] == pytest.approx((DAYS - 1) / (DAYS * 2 / 24), rel=0.02)
    with Storage(past.repo.folder) as repository:
        seen = watched(repository.store)
        assert trusted(repository.store).all()
        dated = seen.gaps.page[~np.isnan(seen.gaps.quiet)]
        assert len(dated) == 1, "only the last change, without reading the archive"


def test_wrong_last_modified_dates_are_not_used(past: Past) -> None:
    with Storage(past.repo.folder) as repository:
        db = connection(repository.store)
        db.execute("BEGIN")
        db.execute("UPDATE sites SET lm_bad = 100")
        seen = watched(repository.store)
        page_ = int(db.execute("SELECT id FROM pages WHERE url LIKE '%/dated/news'").fetchone()[0])
        assert np.isnan(with_headers(seen, repository, page_, 0).gaps.quiet).all()
        db.execute("ROLLBACK")


def test_impossible_dates_are_ignored(past: Past) -> None:
    with Storage(past.repo.folder) as repository:
        db = connection(repository.store)
        for date in ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 01 Jan 2999 00:00:00 GMT", "soon", "Sun, 99 Zzz 2024 xx"):
            db.execute("BEGIN")
            db.execute("UPDATE pages SET modified = ?", (date,))
            assert np.isnan(watched(repository.store).gaps.quiet).all(), date
            db.execute("ROLLBACK")


@pytest.mark.parametrize("estimator", ["naive", "regular", "irregular", "moment", "averaged", "modified"])
def test_other_estimators_have_no_interval(past: Past, estimator: str) -> None:
    rows = by_address(past.repo.json("rates", "--estimator", estimator))
    assert rows["/slow/b"]["rate"] < rows["/fast/a"]["rate"] < rows["/dated/news"]["rate"]
    assert rows["/fast/a"]["low"] is None
    assert past.repo.json("rates", "--by", "site", "--estimator", estimator)[0]["rate"] > 0


def test_sites_and_pages_can_be_named(past: Past) -> None:
    host = past.url("/").rstrip("/")
    assert len(past.repo.json("rates", host)) == 5
    both = past.repo.json("rates", past.url("/slow/b"), past.url("/fast/a"))
    assert set(by_address(both)) == {"/slow/b", "/fast/a"}
    assert len(past.repo.json("rates", "--limit", 2)) == 2
    assert past.repo.json("rates", "--limit", 0) == []


def test_text_output_has_a_table_and_sentences(past: Past) -> None:
    assert len(past.repo.run("rates", "--no-header").out.splitlines()) == 5
    assert len(past.repo.run("rates", "--by", "directory", "--no-header").out.splitlines()) == 4
    said = past.repo.run("rates", past.url("/dated/news")).out
    assert f"{DAYS} changes at {DAYS} later visits, {DAYS} of them dated by Last-Modified" in said
    assert "changes per day, 90 % interval" in said
    assert "irregular" in said


def test_unvisited_and_unknown_pages(past: Past, tmp_path: Any) -> None:
    complaint(past.repo.run("rates", past.url("/never"), code=None), "never downloaded")
    complaint(past.repo.run("rates", "unknown.example", code=None), "not in this repository")
    complaint(past.repo.run("rates", "--estimator", "gama", code=None), "did you mean 'gamma'")
    empty = Repo.create(tmp_path / "empty")
    assert empty.json("rates") == empty.json("rates", "--by", "site") == []
    assert "recrawl crawl" in empty.run("rates").err


def test_rates_of_an_empty_repository(past: Past) -> None:
    with Storage(past.repo.folder) as repository:
        seen = watched(repository.store, [])
    assert len(rates_of(seen, "gamma").rate) == len(rates_of(seen, "naive", seen.site).rate) == 0
    assert seen.row(0) == -1
