"""A repository whose store is in PostgreSQL: made by `init`, crawled, refreshed and read as one with a file."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.errors import RepositoryError, StorageFailure, UsageError
from recrawl.record.rows import Batch, unvisited
from recrawl.record.store import SqliteStore, moves, open_store
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.sql import copying
from tests.test_record_postgres import contents, fill, page_row
from tests.world import Repo, Site, page

TIMES = {"found", "last_visit", "last_change"}


def new_repo(folder: Path, url: str) -> Repo:
    """A repository of the command line with its store in PostgreSQL, and with the settings of other tests."""
    repo = Repo(folder)
    repo.run("init", "--store", url)
    repo.config(delay=0, timeout=600)
    return repo


@pytest.fixture
def schema(postgres_url: str, request: pytest.FixtureRequest) -> str:
    """The URL of a schema for one test."""
    return f"{postgres_url}?schema={request.node.name[:50].lower()}"


def known(repo: Repo) -> dict[str, Any]:
    """What a repository holds, without times."""
    pages = {url: {name: it for name, it in row.items() if name not in TIMES} for url, row in repo.pages().items()}
    status = repo.json("status")
    return {
        "pages": pages,
        "outcomes": {url: repo.outcomes(url) for url in pages},
        "found": {word: repo.found(word) for word in ("walrus", "otter", "nothing")},
        "changes": [(row["url"], row["outcome"], row["title"]) for row in repo.json("changes", "--since", "30d")],
        "sites": [(row["url"], row["pages"], row["visits"]) for row in repo.json("sites")],
        "status": {name: it for name, it in status.items() if isinstance(it, int) and "bytes" not in name},
    }


def test_a_crawl_and_a_cycle_come_to_the_same_as_with_sqlite(tmp_path: Path, schema: str) -> None:
    stores = [Repo.create(tmp_path / "file"), new_repo(tmp_path / "server", schema)]
    links = [f"/{n}" for n in range(8)]
    with Site({"/": page("root", *links)} | {link: page(f"walrus {link}") for link in links}) as site:
        crawled = [repo.crawl(site.url("/")) for repo in stores]
        site.pages["/1"] = page("otter")
        del site.pages["/2"]
        for repo in stores:
            repo.later(days=2)
        cycles = [repo.cycle(20, "--policy", "round-robin") for repo in stores]
    for reports in (crawled, cycles):
        assert reports[0]["visits"] == reports[1]["visits"] > 0
    first, second = (known(repo) for repo in stores)
    assert second == first
    assert second["found"]["otter"] == {site.url("/1")}
    assert {it.name for it in (tmp_path / "server").iterdir()} >= {"archive", "index", "recrawl.toml", "store.toml"}
    assert not (tmp_path / "server" / "recrawl.db").exists()
    assert stores[1].json("check")["problems"] == []


def test_the_password_is_nowhere_but_in_the_environment(tmp_path: Path, schema: str) -> None:
    repo = new_repo(tmp_path / "repo", schema)
    shown = [repo.run(*words) for words in (["status"], ["config"], ["status", "--json"])]
    texts = [it.out + it.err for it in shown] + [it.read_text() for it in repo.folder.glob("*.toml")]
    assert "${RECRAWL_TEST_PASSWORD}" in (repo.folder / "store.toml").read_text()
    assert not any("walrus" in text for text in texts)
    assert (repo.folder / "store.toml").stat().st_mode & 0o777 == 0o600


def test_a_schema_holds_one_repository(tmp_path: Path, schema: str) -> None:
    recrawl.init(tmp_path / "one", store=schema).close()
    with pytest.raises(RepositoryError, match="choose another schema"):
        recrawl.init(tmp_path / "two", store=schema)
    with pytest.raises(UsageError, match="invalid URL of a store"):
        recrawl.init(tmp_path / "two", store="mysql://host/x")
    assert not (tmp_path / "two").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from recrawl.record.store import open_store
from recrawl.record.rows import Batch
from tests.test_record_postgres import page_row
store = open_store(Path(sys.argv[1]), create=True)
store.commit(Batch(pages=[page_row(0)]), [])
store.db.commit = lambda: os.kill(os.getpid(), signal.SIGKILL)
store.commit(Batch(pages=[page_row(1)]), [(0, "a.warc.gz", 9)])
"""


def test_a_writer_that_is_killed_in_a_batch_leaves_nothing_of_it(tmp_path: Path, schema: str) -> None:
    recrawl.init(tmp_path, store=schema).close()
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, check=False, cwd=Path(__file__).parent.parent, env={**os.environ}
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with closing(open_store(tmp_path, create=True)) as store:
        assert isinstance(store, PostgresStore)
        assert store.next_id("pages") == 1
        assert store.warcs.names() == {}
        store.commit(Batch(pages=[page_row(1)]), [])
        assert store.next_id("pages") == 2


def test_a_write_is_noticed_by_whoever_watches_the_folder(tmp_path: Path, schema: str) -> None:
    recrawl.init(tmp_path, store=schema).close()
    place = tmp_path / "store.toml"
    with closing(open_store(tmp_path, create=True)) as store:
        os.utime(place, (1.0, 1.0))
        store.meta.set("x", 1)
        assert place.stat().st_mtime > 1.0
        os.utime(place, (1.0, 1.0))
        store.commit(Batch(pages=[page_row(0)]), [])
        assert place.stat().st_mtime > 1.0


def test_a_repository_moves_to_postgresql_and_back(
    tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path / "repo")
    with closing(SqliteStore(repo.folder / "recrawl.db", create=True)) as store:
        fill(store)
        before = contents(store)
    monkeypatch.setattr(copying, "_BLOCK", 5)
    moved = repo.json("move", "--to", schema)
    assert moved["rows"] == sum(len(rows) for name, rows in before.items() if name != "meta")
    assert not (repo.folder / "recrawl.db").exists()
    with closing(open_store(repo.folder, create=True)) as copy:
        assert isinstance(copy, PostgresStore)
        assert without_token(contents(copy)) == before
        assert copy.visits.reason("a new one") > copy.visits.reason("was due")
        grown = contents(copy)
    complaint = repo.run("move", "--to", schema, code=2).err
    assert "already" in complaint
    repo.run("move", "--to", "sqlite")
    assert not (repo.folder / "store.toml").exists()
    with closing(SqliteStore(repo.folder / "recrawl.db")) as back:
        assert without_token(contents(back)) == without_token(grown)


def without_token(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """The contents of a store without the mark of a move."""
    return {**found, "meta": [row for row in found["meta"] if copying.TOKEN not in row]}


def small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Repo, dict[str, list[str]]]:
    """A repository with rows in every table, and its contents; moves copy five rows at a time."""
    monkeypatch.setattr(copying, "_BLOCK", 5)
    repo = Repo.create(tmp_path / "repo")
    with closing(SqliteStore(repo.folder / "recrawl.db", create=True)) as store:
        fill(store)
        return repo, contents(store)


def test_a_move_that_was_interrupted_goes_on_and_copies_what_has_changed(
    tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, _ = small_blocks(tmp_path, monkeypatch)

    def interrupt(table: str, rows: int) -> None:
        if table == "pages" and rows > 5:
            raise KeyboardInterrupt

    with recrawl.open(repo.folder) as opened, pytest.raises(KeyboardInterrupt):
        opened.move(schema, progress=interrupt)
    assert not (repo.folder / "store.toml").exists()
    with closing(SqliteStore(repo.folder / "recrawl.db", create=True)) as store:
        store.commit(Batch(states=[unvisited(1)._replace(visits=77)]), [])
        store.marks.untag("news", 1, 1)
        changed = without_token(contents(store))
    repo.run("move", "--to", schema)
    with closing(open_store(repo.folder)) as copy:
        assert isinstance(copy, PostgresStore)
        assert without_token(contents(copy)) == changed


def test_a_move_never_writes_into_another_repository(tmp_path: Path, schema: str) -> None:
    recrawl.init(tmp_path / "other", store=schema).close()
    with closing(open_store(tmp_path / "other", create=True)) as store:
        store.commit(Batch(pages=[page_row(0)]), [])
    repo = Repo.create(tmp_path / "repo")
    assert "holds another repository" in repo.run("move", "--to", schema, code=1).err
    assert (repo.folder / "recrawl.db").exists()


def test_a_copy_that_differs_is_not_used(tmp_path: Path, schema: str) -> None:
    repo = Repo.create(tmp_path / "repo")
    with closing(SqliteStore(repo.folder / "recrawl.db", create=True)) as store:
        fill(store)

        def write(table: str, rows: int) -> None:
            if table == "visits":  # tags come before
                store.marks.tag("late", 1, 1)

        with recrawl.open(repo.folder) as opened, pytest.raises(StorageFailure, match="table tags differs"):
            opened.move(schema, progress=write)
    assert not (repo.folder / "store.toml").exists()


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(point: str) -> None:
    """Let a move in this process end at a point: in the transaction of a block, or at a step after the blocks."""
    if point.isdecimal():
        blocks, copied = itertools.count(), copying.copy_stretches

        def copy_block(target: Any, *rest: Any) -> None:
            if next(blocks) == int(point):
                target.connection.commit = die
            copied(target, *rest)

        setattr(copying, "copy_stretches", copy_block)  # noqa: B010
    elif point == "after switch":
        rename = Path.replace

        def rename_and_die(self: Path, target: Path) -> None:
            rename(self, target)
            if self.name != "store.toml.new":
                die()

        Path.replace = rename_and_die  # type: ignore[method-assign, assignment]
    elif point == "before switch":
        setattr(moves, "write_store_url", die)  # noqa: B010
        Path.replace = die  # type: ignore[method-assign, assignment]
    else:
        setattr(copying, point, die)


def killed_move(repo: Repo, point: str, to: str) -> None:
    """Move a store in a process that kills itself at this point."""
    child = os.fork()
    if not child:
        try:
            die_at(point)
            with recrawl.open(repo.folder) as opened:
                opened.move(to)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, (point, to)


def test_a_move_that_is_killed_at_any_point_loses_and_doubles_nothing(
    tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, before = small_blocks(tmp_path, monkeypatch)
    points = ("0", "9", "20", "_copy_values", "_verify", "before switch", "after switch")
    for to, last in ((schema, "store.toml"), ("sqlite", "recrawl.db")):
        for point in points:
            killed_move(repo, point, to)
            with closing(open_store(repo.folder)) as used:
                assert without_token(contents(used)) == without_token(before), (to, point)  # type: ignore[arg-type]
        if to == schema:
            assert "already" in repo.run("move", "--to", to, code=2).err
        else:
            repo.run("move", "--to", to)
        assert (repo.folder / last).exists()
        with closing(open_store(repo.folder)) as used:
            assert isinstance(used, PostgresStore if to == schema else SqliteStore)
            assert without_token(contents(used)) == without_token(before)
