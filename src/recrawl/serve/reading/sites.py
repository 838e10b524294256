"""Sites: their names for lists to choose from."""

from __future__ import annotations

import sqlite3

_MOST = 500


def names(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Number and origin of the sites, by name; of very many the first."""
    return [tuple(row) for row in db.execute("SELECT id, origin FROM sites ORDER BY origin LIMIT ?", (_MOST,))]
