"""Checks of the SQLite file itself."""

from __future__ import annotations

from recrawl.record.store.sql.checks import SqlChecks

_MOST = 20
"""Complaints of SQLite that are listed."""


class SqliteChecks(SqlChecks):
    """Checks of all tables, and of the file."""

    def integrity(self) -> list[str]:
        found = [row[0] for row in self._db.execute(f"PRAGMA integrity_check({_MOST})")]
        return [] if found == ["ok"] else found

    def rebuild_indexes(self) -> None:
        self._db.execute("REINDEX")
