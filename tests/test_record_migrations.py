"""The store's shape: steps are applied once and whole, and a newer repository is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recrawl.errors import NewerRepository
from recrawl.record import storage
from recrawl.record.schema import migrations
from recrawl.record.storage import Storage
from recrawl.record.store import SqliteStore


def names(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT name FROM migrations ORDER BY name")]


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_new_store_has_every_step() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        migrations.migrate(db)
        assert migrations.check(db) == {name for name, _ in migrations.STEPS}


def test_steps_are_named_in_order_and_once() -> None:
    steps = [name for name, _ in migrations.STEPS]
    assert steps == sorted(set(steps))
    assert [int(name[:4]) for name in steps] == list(range(1, len(steps) + 1))


def test_applying_them_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recrawl.db"
    with closing(SqliteStore(path, create=True)) as store:
        store.meta.set("kept", 7)
    with closing(SqliteStore(path, create=True)) as store:
        assert store.meta.get("kept", 0) == 7


def test_a_later_step_is_applied_to_an_older_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recrawl.db"
    SqliteStore(path, create=True).close()
    later = ("9999-later", "CREATE TABLE later (x)")
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, later))
    SqliteStore(path, create=True).close()
    assert names(path)[-1] == "9999-later"
    assert "later" in tables(path)


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recrawl.db"
    SqliteStore(path, create=True).close()
    before = names(path)
    broken = ("9999-broken", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)")
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, broken))
    with closing(sqlite3.connect(path, isolation_level=None)) as db, pytest.raises(sqlite3.OperationalError):
        migrations.migrate(db)
    assert names(path) == before
    assert "half" not in tables(path)


def test_a_newer_repository_is_refused_with_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    storage.create(folder, "")
    with closing(sqlite3.connect(folder / "recrawl.db")) as db:
        db.execute("INSERT INTO migrations VALUES ('9998-x'), ('9999-y')")
        db.commit()
    before = (folder / "recrawl.db").read_bytes()
    with pytest.raises(NewerRepository, match=r"made by a newer recrawl \(it has '9999-y'\): install that version"):
        Storage(folder)
    with pytest.raises(NewerRepository):
        SqliteStore(folder / "recrawl.db", create=True)
    assert (folder / "recrawl.db").read_bytes() == before
