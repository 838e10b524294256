"""`recrawl check --truth`: what the records of the archive say decides, whatever database and index say."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from recrawl.record.index import Document, Index
from tests.world import Reply, Repo, Site, page


@pytest.fixture
def stored(repo: Repo, site: Callable[..., Site]) -> tuple[Repo, Site]:
    """Pages with several versions, one of which was gone and came back."""
    web = site({"/": page("otters swim", "/a", "/b"), "/a": page("walruses sleep"), "/b": page("seals dive")})
    repo.crawl(web.url("/"))
    web["/a"] = page("walruses wake", title="Another title")
    web["/b"] = Reply(page("no more"), 404)
    for days in (1, 2, 3):
        repo.later(days=days)
        repo.cycle()
    web["/b"] = page("seals dive")
    repo.later(days=30)
    repo.cycle()
    return repo, web


def problems(repo: Repo, code: int = 1) -> list[str]:
    """What a check against the records finds."""
    found = json.loads(repo.run("check", "--truth", "--json", code=code).out)
    return [f"{it['part']}: {it['what']}" for it in found["problems"]]


def changed(repo: Repo, query: str, *values: object) -> None:
    with closing(sqlite3.connect(repo.folder / "recrawl.db")) as db:
        assert db.execute(query, values).rowcount == 1
        db.commit()


def test_what_crawls_have_recorded_is_true(stored: tuple[Repo, Site]) -> None:
    repo, _ = stored
    assert problems(repo, 0) == []
    with (repo.folder / "recrawl.toml").open("a") as settings:
        settings.write('\n[[filter]]\nselectors = ["p"]\n')
    assert problems(repo, 0) == [], "nothing was visited since"
    repo.later(days=1)
    repo.cycle()
    assert problems(repo, 0) == [], "versions that were made without the filter are not wrong"


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("digest", bytes(16), "has another text than its record"),
        ("title", "Forged", "has another title than its record"),
        ("changed", 0, "is recorded as unchanged; it is not"),
    ],
)
def test_a_version_that_says_something_else_is_found(
    stored: tuple[Repo, Site], column: str, value: object, says: str
) -> None:
    repo, web = stored
    query = f"UPDATE versions SET {column} = ? WHERE id = (SELECT version FROM pages WHERE url = ?)"
    changed(repo, query, value, web.url("/a"))
    assert any(web.url("/a") in what and says in what for what in problems(repo)), problems(repo)


def test_an_index_that_holds_another_text_is_found_and_mended(stored: tuple[Repo, Site]) -> None:
    repo, web = stored
    ((number, at),) = repo.sql(
        "SELECT p.id, v.at FROM pages p JOIN versions v ON v.id = p.version WHERE p.url = ?", web.url("/a")
    )
    index = Index(repo.folder / "index")
    index.put(Document(number, web.url("/a"), web.url("").rstrip("/"), "Another title", "unrelated nonsense", at))
    index.close()
    assert repo.run("check", code=0).code == 0, "page and time are right"
    found = problems(repo)
    assert any("a search for 'walruses' finds 1 pages too few" in what for what in found), found
    repo.run("check", "--truth", "--repair")
    assert problems(repo, 0) == []
    assert repo.found("walruses") == {web.url("/a")}
