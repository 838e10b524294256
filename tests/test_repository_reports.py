"""What the dashboard asks of a repository, against a small real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.errors import UsageError
from recrawl.record.store import SqliteStore
from recrawl.repository.explain import noise
from recrawl.repository.reports import changes, overview, pages, sites
from recrawl.repository.reports.changes import ChangeCursor, Filters
from recrawl.repository.repository import Repository
from tests.world import Repo, Site

HOSTILE = "<script>alert(1)</script>"


def body(title: str, *lines: str, links: tuple[str, ...] = ()) -> bytes:
    anchors = "".join(f'<a href="{link}">link</a>' for link in links)
    return f"<title>{title}</title>{anchors}{''.join(f'<p>{line}' for line in lines)}".encode()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    """Four pages in two directories, refreshed three times; /a/one changes every day, /b/three goes."""
    folder: Path = tmp_path_factory.mktemp("reading") / "repo"
    repo = Repo.create(folder)
    with Site() as site:
        links = ("/a/one", "/a/two", "/b/three")
        site["/"] = body("Front", "hello", links=links)
        site["/a/one"] = body("One", "line", "0 words here stand still and this one counts")
        site["/a/two"] = body(f"Two {HOSTILE.replace('<', '&lt;')}", "nothing new")
        site["/b/three"] = body("Three", "soon gone")
        repo.crawl(site.url("/"))
        for day in range(1, 4):
            site["/a/one"] = body("One", "line", f"{day} words here stand still and this one counts", f"day {day}")
            if day == 2:
                del site["/b/three"]
            repo.later(days=1)
            repo.cycle()
    with Repository(folder) as opened:
        yield opened


@pytest.fixture
def store(repository: Repository) -> SqliteStore:
    assert isinstance(repository.storage.store, SqliteStore)
    return repository.storage.store


def number(repository: Repository, path: str) -> int:
    store = repository.storage.store
    assert isinstance(store, SqliteStore)
    return int(store.db.execute("SELECT id FROM pages WHERE url LIKE ?", (f"%{path}",)).fetchone()[0])


# -- changes -------------------------------------------------------------------------------------------


def test_changes_come_newest_first_with_what_they_are(repository: Repository) -> None:
    rows = changes.changes(repository, Filters()).rows
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    assert {row["outcome"] for row in rows} >= {"new", "changed"}
    assert sum(row["outcome"] == "changed" for row in rows) >= 3


def test_changes_go_on_where_they_stopped(repository: Repository) -> None:
    whole = [row["id"] for row in changes.changes(repository, Filters()).rows]
    found: list[int] = []
    after = None
    for _ in range(len(whole) + 1):
        part = changes.changes(repository, Filters(), limit=2, after=after)
        found += [row["id"] for row in part.rows]
        after = part.older
        if after is None:
            break
        after = ChangeCursor.read(str(after))
    assert found == whole


def test_changes_pass_filters(repository: Repository) -> None:
    one = changes.changes(repository, Filters(path="/a/one", outcome="changed")).rows
    assert {row["url"].rpartition("/")[2] for row in one} == {"one"}
    assert len(one) == 3
    assert changes.changes(repository, Filters(site=99)).rows == []
    assert changes.changes(repository, Filters(divergence=1.1, outcome="changed")).rows == []
    middle = one[1]["at"]
    assert len(changes.changes(repository, Filters(path="/a/one", outcome="changed", since=middle)).rows) == 2
    assert len(changes.changes(repository, Filters(path="/a/one", outcome="changed", until=middle)).rows) >= 1
    assert all(
        row["significant"] for row in changes.changes(repository, Filters(significant=True, outcome="changed")).rows
    )


def test_changes_look_through_so_many_and_no_more(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_SCANNED", 2)
    part = changes.changes(repository, Filters(path="/nowhere"))
    assert part.rows == []
    assert part.looked_through
    assert part.older is not None


@pytest.mark.parametrize("text", ["x", "1", "1_x", "_", "nan_1", "inf_1", "1e999_1", "1_-1", f"1_{10**30}"])
def test_a_bad_cursor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid cursor"):
        ChangeCursor.read(text)


def test_an_unknown_kind_of_update_is_refused(repository: Repository) -> None:
    with pytest.raises(UsageError, match="changed, new, gone"):
        changes.changes(repository, Filters(outcome="eaten"))


# -- pages ---------------------------------------------------------------------------------------------


def test_a_page_with_its_versions(repository: Repository) -> None:
    one = number(repository, "/a/one")
    told = pages.page(repository, one)
    assert (told["state"], told["title"], told["parent_url"].rpartition("/")[2]) == ("live", "One", "")
    rows = pages.versions(repository, one)
    assert len(rows) == 4
    assert pages.version(repository, one, None) == rows[0]
    assert pages.version_before(repository, rows[0]) == rows[1]
    assert pages.version_before(repository, rows[-1]) is None
    text = pages.text_of(repository, told["url"], rows[0])
    assert "day 3" in text.lines
    assert not text.cut
    source, headers = pages.source_of(repository, rows[0])
    assert "<title>One</title>" in source.lines[0]
    assert ("content-type" in {name.lower() for name, _ in headers}) is True


def test_versions_of_other_pages_are_refused(repository: Repository) -> None:
    one, two = number(repository, "/a/one"), number(repository, "/a/two")
    with pytest.raises(UsageError, match="has no version 6"):
        pages.version(repository, two, pages.versions(repository, one)[0].id)
    with pytest.raises(UsageError, match="there is no page"):
        pages.page(repository, 10**9)
    with pytest.raises(UsageError, match="there is no page"):
        pages.page(repository, 10**30)


def test_a_difference_inline_and_side_by_side(repository: Repository) -> None:
    new, old, *_ = pages.versions(repository, number(repository, "/a/one"))
    found = pages.difference(repository, "http://x.example/", old, new)
    assert found.share is not None
    assert 0 < found.share < 1
    pairs = [pair for hunk in found.hunks for pair in pages.side_by_side(hunk)]
    beside = [(pair.old.text, pair.new.text) for pair in pairs if pair.old and pair.new and pair.old.kind == "out"]
    assert ("day 2", "day 3") in beside
    assert [pair.new_number for pair in pairs if pair.new] == sorted(p.new_number or 0 for p in pairs if p.new)
    assert pages.difference(repository, "http://x.example/", new, new).hunks == []


def test_a_long_text_is_cut(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MAX_CHARACTERS", 5)
    text = pages.text_of(repository, "http://x.example/", pages.versions(repository, number(repository, "/a/one"))[0])
    assert text.cut
    assert sum(map(len, text.lines)) <= 5


# -- sites ---------------------------------------------------------------------------------------------


def test_the_tree_adds_up(repository: Repository, store: SqliteStore) -> None:
    site = pages.page(repository, number(repository, "/a/one"))["site"]
    top = sites.tree(sites.page_counts(repository, site, sites.MAX_PAGES), "site")
    assert top.pages == sum(child.pages for child in top.folders.values()) + len(top.leaves)
    assert top.folders["a"].changes == 3
    assert top.folders["a"].share == pytest.approx(3 / top.folders["a"].visits)
    assert next(leaf[0] for leaf in top.folders["a"].leaves) == "one", "the most changed comes first"


def test_the_tree_is_cut_where_it_is_too_wide() -> None:
    top = sites.tree([(k, f"http://x/{k}", 2, 2) for k in range(100)], "x")
    assert (top.pages, len(top.leaves), top.hidden) == (100, 40, 60)


def test_the_heat_map_shows_the_changes(repository: Repository, store: SqliteStore) -> None:
    site = pages.page(repository, number(repository, "/a/one"))["site"]
    found = sites.heat_map(repository, sites.page_counts(repository, site, sites.MAX_PAGES))
    assert found.rows[0].url.endswith("/a/one")
    assert sum(found.rows[0].updates) == 3
    assert all(sum(row.updates) <= sum(row.visits) for row in found.rows)
    assert len(found.edges) == len(found.rows[0].visits) + 1


def test_a_heat_map_of_nothing(repository: Repository) -> None:
    assert sites.heat_map(repository, []).rows == []


# -- sums ----------------------------------------------------------------------------------------------


def test_the_whole_is_what_the_pages_add_up_to(
    repository: Repository, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = store.db.execute("SELECT max(finished) FROM cycles").fetchone()[0]
    monkeypatch.setattr(repository, "now", lambda: end)
    now = overview.overview(repository)
    assert now is not None
    assert now.stored == store.db.execute("SELECT count(*) FROM pages WHERE state IN (1, 2)").fetchone()[0]
    assert now.pages == store.db.execute("SELECT count(*) FROM pages WHERE state != 6").fetchone()[0]
    assert now.sites == 1
    assert sum(count for _, count in now.ages) == now.stored
    assert now.low is not None
    assert now.high is not None
    assert now.fresh is not None
    assert 0 <= now.low <= now.fresh <= now.high <= 1


def test_freshness_falls_while_nobody_looks(
    repository: Repository, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = store.db.execute("SELECT max(finished) FROM cycles").fetchone()[0]
    shares = []
    for days in (0, 1, 10):
        monkeypatch.setattr(repository, "now", lambda days=days: end + days * 86400.0)
        shares.append(overview.overview(repository))
    fresh = [whole.fresh or 0.0 for whole in shares if whole is not None]
    assert fresh == sorted(fresh, reverse=True)
    assert fresh[0] > fresh[-1]


def test_cycles_come_oldest_first_with_what_they_found(repository: Repository) -> None:
    rows = overview.cycles(repository, 10)
    assert len(rows) == 3
    assert [row.started for row in rows] == sorted(row.started for row in rows)
    for row in rows:
        rest = row.visits - (row.found + row.unchanged + row.failed)
        assert rest in (0, 1), "a page that is missing for the first time is neither gone nor failed"
        assert row.changed >= 1, "one page changes every day"
    assert len(overview.cycles(repository, 2)) == 2


def test_shares_of_sites_add_up(repository: Repository, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    end = store.db.execute("SELECT max(finished) FROM cycles").fetchone()[0]
    monkeypatch.setattr(repository, "now", lambda: end)
    rows = sites.sites(repository)
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert [row["health"][1] for row in rows] == ["good"]
    assert rows[0]["rate"] > 0
    assert sites.sites(repository, only=99) == []
    assert sum(row["share"] for row in sites.busiest(repository, 5)) == pytest.approx(1.0)


def test_a_site_that_is_not_well_says_why() -> None:
    row = {"failed": 0, "visits": 10, "robots_held": 0.0, "held_until": 0.0, "last_visit": 1.0}
    assert sites.health(row, 5.0)[1] == "good"
    assert sites.health({**row, "failed": 6}, 5.0) == ("bad", "failing", "60 % of the last visits failed")
    assert sites.health({**row, "failed": 2}, 5.0)[1] == "unstable"
    assert sites.health({**row, "held_until": 9.0}, 5.0)[1] == "waiting"
    assert sites.health({**row, "robots_held": 1.0}, 5.0)[1] == "on hold"
    assert sites.health({**row, "last_visit": None}, 5.0)[1] == "new"


def test_nothing_yet(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "empty")
    with Repository(repo.folder) as opened:
        assert overview.overview(opened) is None
        assert not overview.has_pages(opened)
        assert overview.cycles(opened, 5) == []
        assert sites.sites(opened) == []
        assert changes.changes(opened, Filters()).rows == []


def test_a_noise_filter_is_tried_on_what_was_seen(repository: Repository) -> None:
    found = noise.preview(repository.storage, "", NO_NOISE, Noise(patterns=(r"day \d", r"^\d|\b\d\b")))
    assert (found.hides, found.of, found.pages) == (3, 3, 1)
    assert found.example.startswith("day")
    assert noise.preview(repository.storage, "", NO_NOISE, Noise(("#nothing",))).hides == 0
    assert noise.preview(repository.storage, "https://elsewhere.example", NO_NOISE, Noise(("p",))).pages == 0
    with pytest.raises(UsageError, match="use a CSS selector"):
        noise.preview(repository.storage, "", NO_NOISE, Noise(("p[[",)))


def test_the_overview_scans_neither_pages_nor_visits(repository: Repository, store: SqliteStore) -> None:
    """However many there are: what it asks goes by an index, and by one that ends at a limit."""
    asked: list[str] = []
    store.db.set_trace_callback(asked.append)
    try:
        overview.overview(repository)
        overview.cycles(repository, 40)
        sites.busiest(repository, 8)
        changes.changes(repository, Filters(), limit=6)
        sites.sites(repository)
    finally:
        store.db.set_trace_callback(None)
    assert len(asked) >= 6
    for sql in asked:
        for row in store.db.execute(f"EXPLAIN QUERY PLAN {sql}"):
            step = row[3]
            large = any(f"SCAN {name}" in step for name in ("v", "p", "r", "w", "pages", "visits", "versions", "links"))
            assert not large or "INDEX updates_by_time" in step, f"{step}: {sql}"
