"""A table of changes in PostgreSQL, for the sink `postgres`; it is made if it does not exist."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from recrawl.errors import UsageError
from recrawl.extras import psycopg

COLUMNS = {
    "source": "text NOT NULL",
    "id": "bigint NOT NULL",
    "url": "text NOT NULL",
    "site": "text NOT NULL",
    "time": "timestamptz NOT NULL",
    "outcome": "text NOT NULL",
    "title": "text NOT NULL",
    "text": "text NOT NULL",
    "digest": "text NOT NULL",
    "divergence": "double precision",
    "content": "boolean",
}
"""Columns of the table with their types; `source` and `id` are the key."""
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_SECONDS = 10


class ChangeTable:
    """The table that a URL names, as `postgresql://user@host/database?table=recrawl_changes`."""

    def __init__(self, target: str, password: str) -> None:
        parts = urlsplit(target)
        options = dict(parse_qsl(parts.query))
        self._table = options.pop("table", "recrawl_changes")
        if not _TABLE.fullmatch(self._table):
            raise UsageError(f"invalid table '{self._table}' in the target; use letters, digits and _")
        self._target = urlunsplit(parts._replace(query=urlencode(options)))
        self._password = password
        self._connection: Any = None

    def insert(self, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in one transaction; those whose key is there already change nothing. Raises psycopg's errors."""
        places = ", ".join(["%s"] * len(COLUMNS))
        order = f"INSERT INTO {self._table} ({', '.join(COLUMNS)}) VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
        connection = self._opened()
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(order, rows)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> Any:
        if self._connection is None:
            options: dict[str, Any] = {"password": self._password} if self._password else {}
            self._connection = psycopg.connect(self._target, autocommit=True, connect_timeout=_SECONDS, **options)
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}, PRIMARY KEY (source, id))")
        return self._connection
