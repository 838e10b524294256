"""The few methods of tables that PostgreSQL needs in its own way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from recrawl.record.rows import Columns
from recrawl.record.store.sql.base import AMONG, json_list
from recrawl.record.store.sql.checks import SqlChecks
from recrawl.record.store.sql.tables.outbox import SqlOutbox
from recrawl.record.store.sql.tables.pages import SqlPages
from recrawl.record.store.sql.tables.sites import SqlMeta
from recrawl.record.store.sql.tables.visits import HELD, SqlVisits

# An HTTP date in its preferred form, in seconds: 'Sun, 06 Nov 1994 08:49:37 GMT'. Any other form gives NULL. The day is
# added to the first of the month, because to_date refuses a date such as 31 Feb.
_MODIFIED_SECONDS = r"""CASE WHEN modified ~ ('^.{5}(0[1-9]|[12]\d|3[01]) '
        '(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} ([01]\d|2[0-3]):[0-5]\d:[0-5]\d')
    THEN extract(epoch FROM to_date(substr(modified, 9, 8), 'Mon YYYY') + (substr(modified, 6, 2)::int - 1))
         + extract(epoch FROM substr(modified, 18, 8)::interval) END"""
_RECEIVER = "hashtext('recrawl delivery'), hashtext(current_schema() || ' ' || ?)"


class PostgresMeta(SqlMeta):
    """The table `meta`: a column has one type, so that values are stored as JSON."""

    def get(self, name: str, default: Any) -> Any:
        found = super().get(name, None)
        return default if found is None else json.loads(found)

    def set(self, name: str, value: float | str) -> None:
        super().set(name, json.dumps(value))


class PostgresPages(SqlPages):
    """The table `pages`."""

    _modified_seconds = _MODIFIED_SECONDS


class PostgresVisits(SqlVisits):
    """The tables `visits` and `reasons`."""

    def history(self, pages: Iterable[int], before_visit: int) -> Columns:
        return self._columns(  # no temporary table: a reader may not make one
            f"SELECT page, at, outcome, {HELD} FROM visits WHERE page {AMONG} AND id < ? ORDER BY id",
            {"page": "i8", "at": "f8", "outcome": "i1", "held": "i1"},
            (json_list(pages), before_visit),
        )


class PostgresOutbox(SqlOutbox):
    """The table `outbox`; who delivers to a receiver has an advisory lock of the connection."""

    def claim(self, receiver: str) -> bool:
        return bool(self._value(f"SELECT pg_try_advisory_lock({_RECEIVER})", (receiver,)))

    def unclaim(self, receiver: str) -> None:
        self._db.execute(f"SELECT pg_advisory_unlock({_RECEIVER})", (receiver,))


class PostgresChecks(SqlChecks):
    """Checks of all tables. The server guards its own files; reading every row shows what it cannot read."""

    def integrity(self) -> list[str]:
        self.counts()
        return []

    def rebuild_indexes(self) -> None:
        self._db.execute(f"REINDEX SCHEMA {self._value('SELECT current_schema()')}")
