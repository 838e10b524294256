"""PostgreSQL: one row for each change.

The target is `postgresql://user@host/database?table=recrawl_changes`; the secret is the password. `source` and `id` are
the key, so a change that is sent again adds no row. The current state of a page is its row with the highest `id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recrawl.extras import psycopg
from recrawl.record.change_table import COLUMNS, ChangeTable
from recrawl.repository.outgoing import NotSent
from recrawl.repository.sinks.protocol import Event

_LIMIT_EXCEEDED = "54"
"""The class of errors about what is too large."""


class Postgres:
    """Writes changes to a table, a batch in one transaction."""

    max_events = 100

    def __init__(self, target: str, secret: str) -> None:
        self._table = ChangeTable(target, secret)

    def deliver(self, events: Sequence[Event]) -> None:
        """Insert the changes and commit."""
        rows = [[_value(getattr(event, name)) for name in COLUMNS] for event in events]
        try:
            self._table.insert(rows)
        except psycopg.Error as error:
            of_row = isinstance(error, (psycopg.DataError, psycopg.IntegrityError))
            too_large = (error.sqlstate or "").startswith(_LIMIT_EXCEEDED)
            message = f"PostgreSQL: {' '.join(str(error).split())}"
            raise NotSent(message, permanent=of_row or too_large, too_large=too_large) from error

    def close(self) -> None:
        """Close the connection."""
        self._table.close()


def _value(value: Any) -> Any:
    """PostgreSQL's text holds no NUL and no half of a surrogate pair."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
