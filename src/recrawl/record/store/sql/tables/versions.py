"""Versions, screenshots, links and archive files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from recrawl.model import Outcome, State
from recrawl.record.rows import NO_NUMBER, ScreenshotRow, StoredPage, VersionRow
from recrawl.record.store.site_tables import WarcTable
from recrawl.record.store.sql.base import AMONG, UPDATES, SqlTable, enum_list, json_list
from recrawl.record.store.tables import LinkTable, ScreenshotTable, VersionTable

_COLUMNS = ", ".join(VersionRow._fields)
_NOT_VISITED_AGAIN = enum_list(State.GONE, State.MOVED, State.DROPPED)


class SqlVersions(SqlTable, VersionTable):
    """The table `versions`."""

    def get(self, version: int) -> VersionRow | None:
        return self._version(f"SELECT {_COLUMNS} FROM versions WHERE id = ?", version)

    def at(self, page: int, at: float) -> VersionRow | None:
        return self._version(f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND at = ? ORDER BY id DESC", page, at)

    def other_than(self, page: int, digest: bytes) -> VersionRow | None:
        return self._version(
            f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND digest != ? ORDER BY id DESC", page, digest
        )

    def _version(self, sql: str, *values: float | bytes) -> VersionRow | None:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else VersionRow._make(row)

    def of_page(self, page: int) -> list[VersionRow]:
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM versions WHERE page = ? ORDER BY id", (page,))
        return [VersionRow._make(row) for row in rows]

    def newest_of_page(self, page: int, limit: int, before: int = NO_NUMBER) -> list[VersionRow]:
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND id < ? ORDER BY id DESC LIMIT ?", (page, before, limit)
        )
        return [VersionRow._make(row) for row in rows]

    def pick(self, page: int, version: int | None) -> VersionRow | None:
        if version is None:
            return self._version(f"SELECT {_COLUMNS} FROM versions WHERE page = ? ORDER BY id DESC LIMIT 1", page)
        sql = f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND id = ? ORDER BY id DESC LIMIT 1"
        return self._version(sql, page, version)

    def before(self, page: int, version: int) -> VersionRow | None:
        sql = f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND id < ? ORDER BY id DESC LIMIT 1"
        return self._version(sql, page, version)

    def in_force(self, page: int, at: float) -> VersionRow | None:
        sql = f"SELECT {_COLUMNS} FROM versions WHERE page = ? AND at <= ? ORDER BY id DESC LIMIT 1"
        first = f"SELECT {_COLUMNS} FROM versions WHERE page = ? ORDER BY id LIMIT 1"
        return self._version(sql, page, at) or self._version(first, page)

    def times(self, page: int, limit: int) -> list[float]:
        sql = "SELECT at FROM versions WHERE page = ? ORDER BY id DESC LIMIT ?"
        return [row[0] for row in self._db.execute(sql, (page, limit))]

    def newest(self, below: int) -> list[StoredPage]:
        sql = f"""SELECT p.id, p.url, p.size, v.warc, v.start, v.length FROM pages p JOIN versions v ON v.id = p.version
                  WHERE p.id < ? AND p.state NOT IN {_NOT_VISITED_AGAIN} ORDER BY p.id"""
        return [StoredPage._make(row) for row in self._db.execute(sql, (below,))]

    def new_links(self, before: float, below: int) -> NDArray[np.void]:
        sql = f"""SELECT v.page, r.new_links FROM visits v JOIN versions r ON r.id = v.version
                  WHERE v.outcome IN {UPDATES} AND v.outcome = {Outcome.CHANGED:d} AND v.at < ? AND v.page < ?
                  ORDER BY v.page, v.id"""  # the first condition is that of an index
        return self._table(sql, {"page": "i8", "links": "f8"}, (before, below))


class SqlScreenshots(SqlTable, ScreenshotTable):
    """The table `screenshots`."""

    def of_page(self, page: int, limit: int) -> list[ScreenshotRow]:
        sql = "SELECT * FROM screenshots WHERE page = ? AND length > 0 ORDER BY id DESC LIMIT ?"
        return [ScreenshotRow._make(row) for row in self._db.execute(sql, (page, limit))]

    def of_version(self, page: int, version: int) -> ScreenshotRow | None:
        sql = "SELECT * FROM screenshots WHERE page = ? AND version = ? AND length > 0 ORDER BY id DESC LIMIT 1"
        return self._screenshot(sql, page, version)

    def with_payload(self, payload: bytes) -> ScreenshotRow | None:
        sql = "SELECT * FROM screenshots WHERE payload = ? AND record = id AND length > 0 ORDER BY id LIMIT 1"
        return self._screenshot(sql, payload)

    def _screenshot(self, sql: str, *values: float | bytes) -> ScreenshotRow | None:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else ScreenshotRow._make(row)


class SqlLinks(SqlTable, LinkTable):
    """The table `links`."""

    def of_pages(self, pages: Iterable[int]) -> dict[int, bytes]:
        return dict(self._db.execute(f"SELECT page, targets FROM links WHERE page {AMONG}", (json_list(pages),)))

    def below(self, page: int) -> Iterator[tuple[int, bytes]]:
        return self._db.stream("SELECT page, targets FROM links WHERE page < ? ORDER BY page", (page,))


class SqlWarcs(SqlTable, WarcTable):
    """The table `warcs`."""

    def names(self) -> dict[int, str]:
        return dict(self._db.execute("SELECT id, name FROM warcs"))

    def lengths(self) -> dict[int, int]:
        return dict(self._db.execute("SELECT id, length FROM warcs"))

    def total_bytes(self) -> int:
        return int(self._value("SELECT coalesce(sum(length), 0) FROM warcs"))

    def stored(self) -> set[int]:
        return {row[0] for row in self._db.execute("SELECT id FROM warcs WHERE stored != 0")}

    def set_stored(self, files: Iterable[int]) -> None:
        self._db.execute(f"UPDATE warcs SET stored = 1 WHERE id {AMONG}", (json_list(files),))

    def clear_stored(self) -> None:
        self._db.execute("UPDATE warcs SET stored = 0")
