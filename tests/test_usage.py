"""`recrawl usage`: what takes space, from the crawl to the command, the API and the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recrawl.repository.reports.usage import usage
from recrawl.repository.repository import Repository
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Repo, Site, page

DAYS = 86400.0


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, str, str]]:
    """Two sites: one changed once 50 days ago, the other ten days ago too; the last cycle is of now."""
    repo = Repo.create(tmp_path_factory.mktemp("usage") / "repo")
    repo.config(index=True)
    with Site() as small, Site() as large:
        small["/"], large["/"] = page("small"), page("large " + "many words " * 3000)
        repo.crawl(small.url("/"))
        repo.crawl(large.url("/"))
        repo.later(days=50)
        large["/"] = page("other " + " ".join(map(str, range(5000))))
        repo.cycle()
        repo.later(days=10)
        repo.cycle()
        yield repo, small.url(""), large.url("")


def _parts(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


def test_the_parts_are_the_files_on_the_disk(watched: tuple[Repo, str, str]) -> None:
    repo, *_ = watched
    used = repo.json("usage")
    kinds = _parts(used["kinds"])
    archive = sum(path.stat().st_size for path in (repo.folder / "archive").iterdir())
    archived = ("versions", "screenshots", "requisites", "other visits")
    assert sum(kinds[name]["bytes"] for name in archived) == archive
    assert kinds["index"]["bytes"] == sum(p.stat().st_size for p in (repo.folder / "index").rglob("*") if p.is_file())
    assert used["bytes"] == sum(row["bytes"] for row in used["kinds"])
    assert kinds["versions"]["records"] == 3
    assert kinds["other visits"]["bytes"] > 0


def test_sites_and_ages(watched: tuple[Repo, str, str]) -> None:
    repo, small, large = watched
    used = repo.json("usage")
    sites = _parts(used["sites"])
    assert [row["name"] for row in used["sites"]] == [large.rstrip("/"), small.rstrip("/")]
    assert sites[large.rstrip("/")]["records"] == 2
    assert sites[small.rstrip("/")]["month"] == 0
    assert used["ages"]["month"] == sites[large.rstrip("/")]["month"] > 0
    assert used["ages"]["year"] > 0 == used["ages"]["older"]
    assert sum(used["ages"].values()) == sum(row["bytes"] for row in used["sites"])


def test_the_disk_is_full_when_the_growth_has_filled_it(watched: tuple[Repo, str, str]) -> None:
    repo, *_ = watched
    with Repository(repo.folder) as opened:
        month = usage(opened.storage, repo.now()).month or 0
        used = usage(opened.storage, repo.now(), free=lambda _: 3 * month)
    assert used.full is not None
    assert used.full.timestamp() == pytest.approx(repo.now() + 90 * DAYS, abs=DAYS)


def test_all_surfaces_say_the_same(watched: tuple[Repo, str, str]) -> None:
    repo, _, large = watched
    used = repo.json("usage")
    with Service(repo.folder, ServiceConfig(schedule=False, clock=repo.now)) as service:
        ask = Asker(service)
        answer = ask.get("/api/v1/usage").json
        assert answer["ages"] == used["ages"]
        assert _parts(answer["kinds"])["versions"] == _parts(used["kinds"])["versions"]
        shown = ask.get("/usage", Accept="text/html").text
        assert large.rstrip("/") in shown
    out = repo.run("usage", "--sites", "1").out
    assert large.rstrip("/") in out


def test_an_empty_repository_has_no_growth(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    repo.config(index=True)
    used = repo.json("usage")
    assert used["month"] is None
    assert used["full"] is None
    assert used["ages"] == {"month": 0, "year": 0, "older": 0}
