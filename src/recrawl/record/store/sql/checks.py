"""Checks of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recrawl.model import Outcome, State
from recrawl.record.store.checks import Checks, Inconsistency, IndexedPage, StoredVersion
from recrawl.record.store.sql.base import UPDATES, SqlTable, Transaction, enum_list
from recrawl.record.store.sql.tables.page_states import TOUCHED

_UNSEARCHED = enum_list(State.GONE, State.MOVED, State.DROPPED)
_SEARCHED = enum_list(State.LIVE, State.MISSING)
_COUNTED = f"""SELECT p.id, coalesce(v.visits, 0) AS visits, coalesce(v.changes, 0) AS changes FROM pages p LEFT JOIN
    (SELECT page, count(*) AS visits, count(*) FILTER (WHERE outcome IN {UPDATES}) AS changes FROM visits
     WHERE outcome != {Outcome.FAILED:d} GROUP BY page) v ON v.page = p.id"""
_NEWEST = """SELECT p.id, coalesce(v.newest, -1) AS newest FROM pages p
    LEFT JOIN (SELECT page, max(id) AS newest FROM versions GROUP BY page) v ON v.page = p.id"""

_CONTRADICTIONS: tuple[tuple[str, str, bool], ...] = (
    (
        "visits of pages or cycles that do not exist",
        "SELECT count(*) FROM visits WHERE page NOT IN (SELECT id FROM pages) OR cycle NOT IN (SELECT id FROM cycles)",
        False,
    ),
    (
        "versions of pages that do not exist",
        "SELECT count(*) FROM versions WHERE page NOT IN (SELECT id FROM pages)",
        False,
    ),
    ("versions without a visit", "SELECT count(*) FROM versions WHERE id NOT IN (SELECT version FROM visits)", False),
    (
        "versions in archive files that do not exist",
        "SELECT count(*) FROM versions WHERE warc NOT IN (SELECT id FROM warcs)",
        False,
    ),
    (
        "versions of page requisites that do not exist, or in archive files that do not exist",
        """SELECT count(*) FROM requisite_versions WHERE requisite NOT IN (SELECT id FROM requisites)
           OR warc NOT IN (SELECT id FROM warcs)""",
        False,
    ),
    (
        "screenshots of pages or versions that do not exist, or in archive files that do not exist",
        """SELECT count(*) FROM screenshots WHERE page NOT IN (SELECT id FROM pages)
           OR version NOT IN (SELECT id FROM versions) OR warc NOT IN (SELECT id FROM warcs)""",
        False,
    ),
    ("pages of sites that do not exist", "SELECT count(*) FROM pages WHERE site NOT IN (SELECT id FROM sites)", False),
    ("gaps in the numbers of pages", "SELECT coalesce(max(id) + 1 - count(*), 0) FROM pages", False),
    (
        "pages whose newest version is another one",
        f"SELECT count(*) FROM pages p JOIN ({_NEWEST}) n USING (id) WHERE p.version != n.newest",
        True,
    ),
    (
        "pages with wrong counts of visits or changes",
        f"""SELECT count(*) FROM pages p JOIN ({_COUNTED}) c USING (id)
            WHERE (p.visits, p.changes) != (c.visits, c.changes)""",
        True,
    ),
)
"""What it is, how to count it, and whether it can be repaired."""


class SqlChecks(SqlTable, Checks):
    """Checks of all tables."""

    def inconsistencies(self) -> list[Inconsistency]:
        counted = ((what, int(self._value(sql)), repairable) for what, sql, repairable in _CONTRADICTIONS)
        return [Inconsistency(what, rows, repairable) for what, rows, repairable in counted if rows]

    def repair(self) -> None:
        with Transaction(self._db):
            self._db.execute(
                f"""UPDATE pages SET visits = c.visits, changes = c.changes FROM ({_COUNTED}) c
                    WHERE pages.id = c.id AND (pages.visits, pages.changes) != (c.visits, c.changes)"""
            )
            self._db.execute(
                f"UPDATE pages SET version = n.newest FROM ({_NEWEST}) n WHERE pages.id = n.id AND version != n.newest"
            )
            self._db.execute("DELETE FROM meta WHERE name = ?", (TOUCHED,))  # makes kept columns of pages useless

    def counts(self) -> tuple[int, int, int]:
        pages, visits, versions = (self._value(f"SELECT count(*) FROM {it}") for it in ("pages", "visits", "versions"))
        return int(pages), int(visits), int(versions)

    def versions_of(self, warc: int) -> Iterator[StoredVersion]:
        sql = """SELECT v.id, 'page', coalesce(p.url, ''), v.at, v.start, v.length, v.payload FROM versions v
                 LEFT JOIN pages p ON p.id = v.page WHERE v.warc = ? AND v.length > 0
                 UNION ALL SELECT v.id, 'requisite', coalesce(r.url, ''), v.at, v.start, v.length, v.payload
                 FROM requisite_versions v LEFT JOIN requisites r ON r.id = v.requisite
                 WHERE v.warc = ? AND v.length > 0 AND v.record = v.id
                 UNION ALL SELECT v.id, 'screenshot', coalesce(p.url, ''), v.at, v.start, v.length, v.payload
                 FROM screenshots v LEFT JOIN pages p ON p.id = v.page
                 WHERE v.warc = ? AND v.length > 0 AND v.record = v.id ORDER BY 5"""
        return map(StoredVersion._make, self._db.stream(sql, (warc, warc, warc)))

    def lost(self) -> int:
        sql = """SELECT (SELECT count(*) FROM versions WHERE length = 0 AND start >= 0)
                      + (SELECT count(*) FROM requisite_versions WHERE length = 0 AND record = id)
                      + (SELECT count(*) FROM screenshots WHERE length = 0 AND record = id)"""
        return int(self._value(sql))

    def mark_lost(self, versions: Iterable[int]) -> None:
        with Transaction(self._db):
            for version in versions:
                self._db.execute("UPDATE versions SET length = 0 WHERE id = ?", (version,))
                self._db.execute(
                    """UPDATE pages SET payload = ?, etag = '', modified = ''
                       WHERE version = ? AND payload IS NOT NULL""",
                    (b"", version),
                )

    def mark_requisites_lost(self, versions: Iterable[int]) -> None:
        with Transaction(self._db):
            for version in versions:
                self._db.execute("UPDATE requisite_versions SET length = 0 WHERE record = ?", (version,))
                self._db.execute(
                    """UPDATE requisites SET checked = NULL, etag = '', modified = ''
                       WHERE version IN (SELECT id FROM requisite_versions WHERE record = ?)""",
                    (version,),
                )

    def mark_screenshots_lost(self, screenshots: Iterable[int]) -> None:
        with Transaction(self._db):
            self._db.executemany("UPDATE screenshots SET length = 0 WHERE record = ?", ((it,) for it in screenshots))

    def set_length(self, warc: int, length: int) -> None:
        self._db.execute("UPDATE warcs SET length = ? WHERE id = ?", (length, warc))

    def indexed_pages(self) -> Iterator[IndexedPage]:
        sql = f"""SELECT p.id, p.url, p.state IN {_SEARCHED} AND p.payload IS NOT NULL AND v.searchable != 0
                      AND v.length > 0 AND c.searchable != 0, c.at, p.site, c.digest
                  FROM pages p JOIN versions v ON v.id = p.version JOIN versions c ON c.id =
                      (SELECT max(id) FROM versions WHERE page = p.id AND changed != 0)
                  WHERE p.state NOT IN {_UNSEARCHED} AND (v.searchable != 0 OR c.searchable != 0)"""
        return (IndexedPage(page, url, bool(must), *rest) for page, url, must, *rest in self._db.stream(sql))
