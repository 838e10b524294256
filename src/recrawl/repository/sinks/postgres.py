"""PostgreSQL: one row for each change, in a table that is made if it does not exist.

The target is `postgresql://user@host/database?table=recrawl_changes`; the secret is the password. `source` and `id` are
the key, so a change that is sent again adds no row. The current state of every page is its newest row:
`SELECT DISTINCT ON (url) * FROM recrawl_changes ORDER BY url, id DESC`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from recrawl.errors import UsageError
from recrawl.extras import psycopg
from recrawl.repository.outgoing import NotSent
from recrawl.repository.sinks.protocol import Event

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_COLUMNS = {
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
_SECONDS = 10


class Postgres:
    """Writes changes to a table, a batch in one transaction."""

    max_events = 100

    def __init__(self, target: str, secret: str) -> None:
        parts = urlsplit(target)
        options = dict(parse_qsl(parts.query))
        self._table = options.pop("table", "recrawl_changes")
        if not _TABLE.fullmatch(self._table):
            raise UsageError(f"invalid table '{self._table}' in the target; use letters, digits and _")
        self._target = urlunsplit(parts._replace(query=urlencode(options)))
        self._password = secret
        self._connection: Any = None

    def deliver(self, events: Sequence[Event]) -> None:
        """Insert the changes and commit."""
        rows = [[_value(getattr(event, name)) for name in _COLUMNS] for event in events]
        places = ", ".join(["%s"] * len(_COLUMNS))
        order = f"INSERT INTO {self._table} ({', '.join(_COLUMNS)}) VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
        try:
            connection = self._opened()
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(order, rows)
        except psycopg.Error as error:
            raise NotSent(f"PostgreSQL: {' '.join(str(error).split())}") from error

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> Any:
        if self._connection is None:
            options: dict[str, Any] = {"password": self._password} if self._password else {}
            self._connection = psycopg.connect(self._target, autocommit=True, connect_timeout=_SECONDS, **options)
            columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}, PRIMARY KEY (source, id))")
        return self._connection


def _value(value: Any) -> Any:
    """PostgreSQL's text holds no NUL and no half of a surrogate pair."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
