"""What erasing reads and writes: rows of pages, versions, screenshots and requisites go; a page's own row stays, blank.

Page numbers have no gaps, so a row without contents stays for an erased page. Its address is a placeholder that no
server has. Its visits stay as numbers: when, with which outcome, at what cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recrawl.columns import Ints
from recrawl.model import Outcome, State
from recrawl.record.rows import CycleRow, OutboxRow, VisitRow
from recrawl.record.store.sql.base import AMONG, SqlTable, Transaction, insert, json_list
from recrawl.record.store.sql.tables.page_states import TOUCHED

PLACED = {"versions": "page", "screenshots": "page", "requisite_versions": "requisite"}
"""Tables whose rows have a place in the archive, with the column that says whose they are."""
_OF_PAGES = ("links", "hints", "pushed", "requests", "page_requisites", "outbox")
_OF_SITES = ("frames", "sources", "feeds", "site_summaries")
_ERASED_HOST = "erased.invalid"
THINNED = -1
"""The start of a version's record after it was thinned out; its length is 0, as that of a lost one."""


def erased_url(page: int) -> str:
    """The address in the row of an erased page; no server can have it.

    >>> erased_url(7)
    'https://erased.invalid/7'
    """
    return f"https://{_ERASED_HOST}/{page}"


def erased_origin(site: int) -> str:
    """The origin in the row of an erased site."""
    return f"https://{site}.{_ERASED_HOST}"


def is_erased(url: str) -> bool:
    """Whether this is the address of an erased page."""
    return url.startswith(f"https://{_ERASED_HOST}/")


class Holder(NamedTuple):
    """A row whose bytes a record holds."""

    id: int
    owner: int
    at: float
    payload: bytes


class RowsToErase(NamedTuple):
    """All that one transaction changes."""

    pages: list[int]
    """Erased altogether."""
    keys: list[tuple[int, int, str, int]]
    """For each of these: key and directory of its placeholder, the placeholder, its number."""
    removals: list[VisitRow]
    """Visits that say that these pages are gone."""
    run: CycleRow | None
    """The run of these visits."""
    sites: list[int]
    """Erased altogether."""
    touched_sites: list[int]
    """Sites with an erased page."""
    versions: list[int]
    """Of other pages."""
    bodies: list[int]
    """Versions whose records went; what is known of them stays."""
    screenshots: list[int]
    requisites: list[int]
    requisite_versions: list[int]
    heirs: dict[str, list[tuple[int, int]]]
    """By table: rows whose bytes were recorded by an erased one, each with the row that holds them now."""
    places: dict[str, list[tuple[int, int, int]]]
    """By table: rows with the new start and length of their records."""
    files: list[tuple[str, int, int]]
    """New name and length of archive files, by number."""
    outbox: list[OutboxRow]
    """Deletions that sinks are to be told."""


def no_rows() -> RowsToErase:
    """Rows to erase, none yet."""
    return RowsToErase([], [], [], None, [], [], [], [], [], [], [], {}, {}, [], [])


class SqlErasing(SqlTable):
    """Reads what erasing needs, and writes it in one transaction."""

    # -- what goes ---------------------------------------------------------------------------------------------

    def shown_elsewhere(self, wanted: Callable[[str], bool]) -> list[int]:
        """Pages whose stored version came from one of these addresses, by a redirect."""
        rows = self._db.stream("SELECT id, archived_url FROM pages WHERE archived_url != ''")
        return [page for page, url in rows if wanted(url)]

    def led_to(self, pages: Iterable[int]) -> list[int]:
        """Pages that were never more than a redirect to one of these."""
        sql = f"SELECT id FROM pages WHERE state = {State.MOVED:d} AND version < 0 AND target {AMONG}"
        return [row[0] for row in self._db.execute(sql, (json_list(pages),))]

    def found_on(self, pages: Iterable[int]) -> list[int]:
        """Pages that were found on these and never stored; others may link to them too."""
        sql = f"""SELECT id FROM pages WHERE version < 0 AND listed != 1 AND parent {AMONG}
                  AND state != {State.DROPPED:d}"""
        return [row[0] for row in self._db.execute(sql, (json_list(pages),))]

    def addresses(self, pages: Iterable[int]) -> list[tuple[int, str, str]]:
        """Number, URL and the URL of the stored version's record of pages."""
        sql = f"SELECT id, url, archived_url FROM pages WHERE id {AMONG} ORDER BY id"
        return self._db.execute(sql, (json_list(pages),)).fetchall()

    def other_addresses(self, pages: Iterable[int]) -> Iterator[str]:
        """The URLs of all other pages."""
        sql = f"SELECT url FROM pages WHERE id NOT {AMONG}"
        return (row[0] for row in self._db.stream(sql, (json_list(pages),)))

    def stored(self, pages: Iterable[int]) -> list[tuple[int, int]]:
        """Those of the pages with a copy that counts, each with its site: receivers may have it."""
        sql = f"""SELECT id, site FROM pages WHERE id {AMONG} AND version >= 0
                  AND state IN ({State.LIVE:d}, {State.MISSING:d}) ORDER BY id"""
        return self._db.execute(sql, (json_list(pages),)).fetchall()

    def bodies(self) -> Iterator[tuple[int, int, float, int]]:
        """Page, number and time of every version with a record, and whether its content differs from the one before;
        by page, oldest first."""
        sql = """SELECT page, id, at, CASE WHEN changed = 0 OR content = 0 THEN 0 ELSE 1 END FROM versions
                 WHERE length > 0 ORDER BY page, id"""
        return self._db.stream(sql)

    def thinned_records(self, identity: Callable[[str, float, str], str]) -> list[str]:
        """The ids of the records of versions that were thinned out before."""
        sql = f"SELECT p.url, v.at FROM versions v JOIN pages p ON p.id = v.page WHERE v.start = {THINNED}"
        return [identity(url, at, "response") for url, at in self._db.stream(sql)]

    def pictures(self) -> Iterator[tuple[int, int, float, int]]:
        """Page, number, time and version of every screenshot with a record; by page, oldest first."""
        sql = "SELECT page, id, at, version FROM screenshots WHERE length > 0 ORDER BY page, id"
        return self._db.stream(sql)

    def shown(self) -> set[int]:
        """Versions that are the newest of their page, or the newest with another text."""
        sql = """SELECT max(id), max(CASE WHEN changed != 0 THEN id ELSE -1 END) FROM versions WHERE length > 0
                 GROUP BY page"""
        return {number for row in self._db.execute(sql) for number in row}

    def tagged(self, tag: str) -> tuple[set[int], set[int]]:
        """The pages with a tag, and the sites with it."""
        rows = self._db.execute("SELECT site, page FROM tags WHERE name = ?", (tag,)).fetchall()
        return {page for _, page in rows if page >= 0}, {site for site, page in rows if page < 0}

    def versions_before(self, pages: Iterable[int], before: float) -> list[int]:
        """The versions of pages from before a time."""
        sql = f"SELECT id FROM versions WHERE page {AMONG} AND at < ? ORDER BY id"
        return [row[0] for row in self._db.execute(sql, (json_list(pages), before))]

    def requisites(self) -> Iterator[tuple[int, int, str]]:
        """Number, target of a redirect (-1 without one) and URL of all requisites."""
        return self._db.stream("SELECT id, target, url FROM requisites ORDER BY id")

    def needed_by_pages(self) -> Iterator[tuple[int, bytes]]:
        """Each page with its requisites, packed."""
        return self._db.stream("SELECT page, requisites FROM page_requisites")

    def needed_by_stylesheets(self) -> Iterator[tuple[int, str, str]]:
        """Each version of a stylesheet: its number as a requisite, and the URLs that it names."""
        sql = "SELECT requisite, styles, files FROM requisite_versions WHERE styles != '' OR files != ''"
        return self._db.stream(sql)

    def places(self, table: str) -> dict[str, Ints]:
        """`id`, `owner`, `record`, `warc`, `start`, `length` of all rows of a table with places in the archive."""
        record = "id" if table == "versions" else "record"
        sql = f"SELECT id, {PLACED[table]}, {record}, warc, start, length FROM {table} ORDER BY id"
        names = ("id", "owner", "record", "warc", "start", "length")
        return self._columns(sql, dict.fromkeys(names, "i8"))

    def holders(self, table: str, rows: Iterable[int]) -> list[Holder]:
        """Rows of a table, as holders of bytes."""
        sql = f"SELECT id, {PLACED[table]}, at, payload FROM {table} WHERE id {AMONG} ORDER BY id"
        return [Holder._make(row) for row in self._db.execute(sql, (json_list(rows),))]

    # -- the transaction ---------------------------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """What is deleted in it is overwritten; it holds all changes or none."""
        return Transaction(self._db)

    def erase(self, rows: RowsToErase) -> None:
        """Delete and blank rows, in a transaction that has begun."""
        db, pages, sites = self._db, json_list(rows.pages), json_list(rows.sites)
        for table in ("versions", "screenshots", *_OF_PAGES):
            db.execute(f"DELETE FROM {table} WHERE page {AMONG}", (pages,))
        db.execute(f"DELETE FROM tags WHERE page {AMONG} OR site {AMONG}", (pages, sites))
        db.execute(f"DELETE FROM versions WHERE id {AMONG}", (json_list(rows.versions),))
        db.execute(f"DELETE FROM screenshots WHERE id {AMONG}", (json_list(rows.screenshots),))
        db.execute(f"DELETE FROM requisite_versions WHERE id {AMONG}", (json_list(rows.requisite_versions),))
        db.execute(f"DELETE FROM requisites WHERE id {AMONG}", (json_list(rows.requisites),))
        db.execute(
            f"UPDATE requisites SET target = -1, checked = NULL WHERE target {AMONG}", (json_list(rows.requisites),)
        )
        self._blank_pages(rows)
        self._blank_sites(rows)
        if rows.versions:
            self._without_versions(rows.versions)
        sql = f"UPDATE versions SET start = {THINNED}, length = 0 WHERE id {AMONG}"
        db.execute(sql, (json_list(rows.bodies),))
        for table, heirs in rows.heirs.items():
            db.executemany(f"UPDATE {table} SET record = ? WHERE id = ?", ((heir, row) for row, heir in heirs))
        for table, places in rows.places.items():
            sql = f"UPDATE {table} SET start = ?, length = ? WHERE id = ?"
            db.executemany(sql, ((start, length, row) for row, start, length in places))
        db.executemany("UPDATE warcs SET name = ?, length = ? WHERE id = ?", rows.files)
        db.executemany(insert("outbox", OutboxRow._fields), rows.outbox)

    def _blank_pages(self, rows: RowsToErase) -> None:
        db, pages = self._db, json_list(rows.pages)
        keys = f"(SELECT key FROM pages WHERE id {AMONG})"
        if rows.run is not None:
            db.execute(insert("cycles", CycleRow._fields), rows.run)
            db.executemany(insert("visits", VisitRow._fields), rows.removals)
            sql = """UPDATE pages SET visits = visits + 1, changes = changes + 1, last_try = ?, last_visit = ?,
                         last_change = ? WHERE id = ?"""
            db.executemany(sql, ((row.at, row.at, row.at, row.page) for row in rows.removals))
        db.execute(f"UPDATE visits SET version = -1, detail = NULL, copy = 1 WHERE page {AMONG}", (pages,))
        db.execute(f"UPDATE pages SET claim = 0 WHERE claim IN {keys}", (pages,))
        db.execute(f"UPDATE pages SET same_as = 0 WHERE same_as IN {keys}", (pages,))
        db.execute(f"UPDATE pages SET target = -1 WHERE target {AMONG}", (pages,))
        db.execute(
            f"""UPDATE pages SET state = {State.DROPPED:d}, listed = 0, size = 0, version = -1, version_at = 0,
                    target = -1, missing_since = 0, misses = 0, failures = 0, payload = NULL, digest = NULL,
                    noise = NULL, etag = '', modified = '', counters = NULL, archived_url = '', prior = NULL,
                    sketch = NULL, claim = 0, same_as = NULL WHERE id {AMONG}""",
            (pages,),
        )
        db.executemany("UPDATE pages SET key = ?, folder = ?, url = ? WHERE id = ?", rows.keys)
        db.execute("DELETE FROM meta WHERE name = ?", (TOUCHED,))  # makes kept columns of pages useless

    def _blank_sites(self, rows: RowsToErase) -> None:
        db, sites = self._db, json_list(rows.sites)
        origins = [row[0] for row in db.execute(f"SELECT origin FROM sites WHERE id {AMONG}", (sites,))]
        for table in _OF_SITES:
            db.execute(f"DELETE FROM {table} WHERE site {AMONG}", (sites,))
        db.execute(f"DELETE FROM frames WHERE site {AMONG}", (json_list(rows.touched_sites),))
        for origin in origins:
            db.execute("DELETE FROM requisite_hosts WHERE origin = ?", (origin,))
            db.execute("DELETE FROM proofs WHERE host = ?", (origin.partition("://")[2],))
        db.execute(
            f"""UPDATE sites SET robots_status = -1, robots_body = ?, robots_at = 0, robots_held = 0, sitemap_at = 0,
                    held_until = 0, habits = '' WHERE id {AMONG}""",
            (b"", sites),
        )
        sql = "UPDATE sites SET origin = ? WHERE id = ?"
        db.executemany(sql, ((erased_origin(site), site) for site in rows.sites))

    def _without_versions(self, versions: Sequence[int]) -> None:
        """Pages without their stored version are downloaded in full at the next visit."""
        db, among = self._db, json_list(versions)
        db.execute(f"UPDATE visits SET version = -1 WHERE version {AMONG}", (among,))
        lost = f"SELECT id FROM pages WHERE version {AMONG}"
        for table in ("links", "page_requisites"):
            db.execute(f"DELETE FROM {table} WHERE page IN ({lost})", (among,))
        db.execute(
            f"""UPDATE pages SET version = -1, version_at = 0, payload = NULL, digest = NULL, noise = NULL, etag = '',
                    modified = '', counters = NULL, archived_url = '', sketch = NULL, claim = 0, size = 0,
                    state = CASE WHEN state = {State.LIVE:d} THEN {State.FOUND:d} ELSE state END
                WHERE version {AMONG}""",
            (among,),
        )

    # -- texts that may name an address ------------------------------------------------------------------------

    def forget_texts(self, erased: Callable[[str], bool], named: Callable[[str], bool]) -> None:
        """Clear other rows that have an address: `erased` says of a URL whether it is one, `named` of any text whether
        one stands in it."""
        db = self._db
        for table, column in (("feeds", "url"), ("pushes", "url"), ("subscriptions", "topic")):
            found = [row for row in db.execute(f"SELECT {column} FROM {table}").fetchall() if erased(row[0])]
            db.executemany(f"DELETE FROM {table} WHERE {column} = ?", found)
        for table, column, empty in (
            ("visits", "detail", "NULL"),
            ("sources", "problem", "''"),
            ("requisites", "failure", "NULL"),
            ("outbox", "error", "''"),
            ("reasons", "text", "'erased ' || id"),
        ):
            sql = f"SELECT DISTINCT {column} FROM {table} WHERE {column} LIKE ?"
            texts = [row[0] for row in db.execute(sql, ("%://%",)).fetchall() if named(row[0])]
            db.executemany(f"UPDATE {table} SET {column} = {empty} WHERE {column} = ?", ((it,) for it in texts))
        for column in ("styles", "files"):
            sql = f"SELECT id, {column} FROM requisite_versions WHERE {column} != ''"
            for row, text in db.execute(sql).fetchall():
                kept = "\n".join(url for url in text.split("\n") if not erased(url))
                if kept != text:
                    db.execute(f"UPDATE requisite_versions SET {column} = ? WHERE id = ?", (kept, row))
        versions = db.execute("SELECT id, image FROM versions WHERE image != ''").fetchall()
        db.executemany("UPDATE versions SET image = '' WHERE id = ?", ((row,) for row, url in versions if erased(url)))

    def forget_robots(self, paths: Mapping[str, Sequence[bytes]]) -> None:
        """Clear the stored robots.txt of origins in which one of these paths stands; it is read again."""
        for table in ("sites", "requisite_hosts"):
            for origin, body in self._db.execute(f"SELECT origin, robots_body FROM {table}").fetchall():
                if any(path in bytes(body) for path in paths.get(origin, ())):
                    sql = f"UPDATE {table} SET robots_status = -1, robots_body = ?, robots_at = 0 WHERE origin = ?"
                    self._db.execute(sql, (b"", origin))

    def values(self) -> list[tuple[str, Any]]:
        """All single values, as they are stored."""
        return [(row[0], row[1]) for row in self._db.execute("SELECT name, value FROM meta").fetchall()]

    def drop_value(self, name: str) -> None:
        """Delete a single value."""
        self._db.execute("DELETE FROM meta WHERE name = ?", (name,))

    def waiting_deletions(self) -> list[tuple[str, int]]:
        """Receivers that were not told of all deletions yet, with their number."""
        sql = "SELECT alert, count(*) FROM outbox WHERE key LIKE ? GROUP BY alert ORDER BY alert"
        return self._db.execute(sql, ("sink:%:erased-%",)).fetchall()

    def texts(self) -> Iterator[tuple[str, str | bytes]]:
        """Every text and every run of bytes in the tables, with the name of its table."""
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in self._db.stream(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, (str, bytes)) and value:
                        yield table, value


def removal(page: int, number: int, run: int, at: float) -> VisitRow:
    """The visit that says that a page is gone; it is told to nobody."""
    return VisitRow(number, page, run, at, int(Outcome.GONE), 0, 0, 0.0, -1, None, None, None, None, 0, 1)
