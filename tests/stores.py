"""What tests of all stores need: the tables that SQLite has, with their columns and keys."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from recrawl.record.schema.migrations import migrate


def table_columns() -> dict[str, list[str]]:
    """The columns of each table, without the list of migrations."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")] for name in names if name != "migrations"
        }


def table_names() -> list[str]:
    """The tables of a store."""
    return list(table_columns())
