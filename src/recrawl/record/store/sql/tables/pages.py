"""Pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Int32s, Ints
from recrawl.model import State
from recrawl.record.rows import Columns, NewPage, PageRow, PageState, Row, ScopeRow
from recrawl.record.store.sql.base import AMONG, NEVER, STATE_NAMES, VISITABLE, Transaction, json_list
from recrawl.record.store.sql.tables.page_states import ABSENT, OF_SITES, SqlPageStates
from recrawl.record.store.tables import PageTable

_STATE_COLUMNS = ", ".join(PageState._fields)
PAGE_COLUMNS = ", ".join(f"p.{name}" for name in dict.fromkeys((*NewPage._fields, *PageState._fields)))
"""All columns of page `p`."""
_BOOK = {
    "site": "i4",
    "folder": "i8",
    "depth": "i4",
    "found": "f8",
    "cycle": "i4",
    "state": "i1",
    "visits": "i4",
    "changes": "i4",
    "failures": "i4",
    "size": "i8",
    "last_try": "f8",
    "last_visit": "f8",
    "last_change": "f8",
}
_SUMMARY = {
    "site": "i4",
    "state": "i1",
    "visits": "i4",
    "changes": "i4",
    "failures": "i4",
    "size": "i8",
    "found": "f8",
    "last_visit": "f8",
    "last_change": "f8",
}
_COPIES = {
    "key": "i8",
    "site": "i4",
    "stored": "?",
    "digest": "S16",
    "sketch": "S16",
    "claim": "i8",
    "same_as": "i8",
    "listed": "?",
    "secure": "?",
    "length": "i4",
    "last_visit": "f8",
    "last_change": "f8",
}
_GROUP = "CASE WHEN same_as != 0 THEN same_as ELSE key END"
_STORED = f"state = {State.LIVE:d} AND version >= 0"
_TIMES = {"last_try", "last_visit", "last_change"}
_MONTHS = "".join(
    f" WHEN '{name}' THEN '{number:02d}'"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
)
# An HTTP date in its preferred form, in seconds: 'Sun, 06 Nov 1994 08:49:37 GMT'. Any other form gives NULL.
_MODIFIED_SECONDS = f"""strftime('%s', substr(modified, 13, 4) || '-' || CASE substr(modified, 9, 3){_MONTHS} END || '-'
    || substr(modified, 6, 2) || 'T' || substr(modified, 18, 8))"""


class SqlPages(SqlPageStates, PageTable):
    """The table `pages`."""

    _modified_seconds = _MODIFIED_SECONDS

    def get(self, page: int) -> PageRow:
        return self.get_many([page])[page]

    def get_many(self, pages: Iterable[int]) -> dict[int, PageRow]:
        sql = f"SELECT url, site, depth, listed, {_STATE_COLUMNS} FROM pages WHERE id {AMONG}"
        rows = self._db.execute(sql, (json_list(pages),))
        return {row[-1]: PageRow(row[0], row[1], row[2], row[3], PageState._make(row[4:])) for row in rows}

    def number(self, key: int) -> int | None:
        page = self._value("SELECT id FROM pages WHERE key = ?", (key,))
        return None if page is None else int(page)

    def find(self, key: int) -> Row | None:
        rows = self._rows(f"SELECT {PAGE_COLUMNS} FROM pages p WHERE key = ?", (key,))
        return {**rows[0], "state": STATE_NAMES[rows[0]["state"]]} if rows else None

    def details(self, page: int) -> Row | None:
        rows = self._rows(
            f"""SELECT {PAGE_COLUMNS}, s.origin, q.url AS parent_url, t.url AS target_url, v.title
               FROM pages p JOIN sites s ON s.id = p.site LEFT JOIN pages q ON q.id = p.parent
               LEFT JOIN pages t ON t.id = p.target LEFT JOIN versions v ON v.id = p.version WHERE p.id = ?""",
            (page,),
        )
        if not rows:
            return None
        return {**rows[0], "state": STATE_NAMES[rows[0]["state"]], "title": rows[0]["title"] or ""}

    def any(self) -> bool:
        return self._value("SELECT 1 FROM pages LIMIT 1") is not None

    def keys(self, first: int = 0) -> tuple[Ints, Int32s]:
        where = "WHERE id >= ?" if first else ""
        sql, expected = f"SELECT key, id FROM pages {where} ORDER BY key", max(0, self._count() - first)
        rows = self._columns(sql, {"key": "i8", "id": "i4"}, (first,) if first else (), expected)
        return rows["key"], rows["id"]

    def keys_of(self, pages: Iterable[int]) -> dict[int, int]:
        return dict(self._db.execute(f"SELECT id, key FROM pages WHERE id {AMONG}", (json_list(pages),)))

    def urls(self, every: int = 1, first: int = 0) -> Iterator[str]:
        rows = self._db.stream("SELECT url FROM pages WHERE id >= ? AND id % ? = 0 ORDER BY id", (first, every))
        return (row[0] for row in rows)

    def urls_of(self, pages: Iterable[int]) -> dict[int, str]:
        return dict(self._db.execute(f"SELECT id, url FROM pages WHERE id {AMONG} ORDER BY id", (json_list(pages),)))

    def visitable_urls(self) -> Iterator[str]:
        rows = self._db.stream(f"SELECT url FROM pages WHERE state IN {VISITABLE} ORDER BY url")
        return iter([row[0] for row in rows])

    def visited(self) -> list[tuple[int, str]]:
        return self._db.execute("SELECT id, url FROM pages WHERE visits > 0 ORDER BY url").fetchall()

    def last_visits(self) -> dict[int, float]:
        return dict(self._db.stream("SELECT key, last_visit FROM pages WHERE last_visit IS NOT NULL"))

    def of_site(self, site: int, limit: int) -> list[tuple[int, str, int, int]]:
        sql = f"""SELECT id, url, visits, changes FROM pages WHERE site = ? AND state IN {VISITABLE}
                  ORDER BY id LIMIT ?"""
        return self._db.execute(sql, (site, limit)).fetchall()

    def locations(self, pages: Iterable[int]) -> dict[int, tuple[str, int]]:
        rows = self._db.execute(f"SELECT id, url, folder FROM pages WHERE id {AMONG}", (json_list(pages),))
        return {page: (url, folder) for page, url, folder in rows}

    def often_changed(self, limit: int) -> list[int]:
        sql = "SELECT id FROM pages WHERE visits >= 3 AND changes >= 0.9 * visits ORDER BY visits DESC LIMIT ?"
        return [row[0] for row in self._db.execute(sql, (limit,))]

    def sites_of(self, pages: Iterable[int]) -> dict[int, int]:
        return dict(self._db.execute(f"SELECT id, site FROM pages WHERE id {AMONG}", (json_list(pages),)))

    def lanes_of(self, pages: Iterable[int]) -> dict[int, tuple[int, int]]:
        rows = self._db.execute(f"SELECT id, site, failures FROM pages WHERE id {AMONG}", (json_list(pages),))
        return {page: (site, failures) for page, site, failures in rows}

    def book_columns(self) -> Columns:
        return self._page_columns(_BOOK)

    def priors(self) -> Float32s:
        sql = f"SELECT coalesce(prior, {NEVER}) FROM pages ORDER BY id"
        prior: Float32s = self._columns(sql, {"prior": "f4"}, expected=self._count())["prior"]
        prior[np.isinf(prior)] = np.nan
        return prior

    def copy_columns(self) -> Columns:
        sql = f"""SELECT key, site, state = {State.LIVE:d} AND version >= 0 AND digest IS NOT NULL,
                         coalesce(digest, ''), coalesce(sketch, ''),
                         claim, coalesce(same_as, 0), listed = 1, substr(url, 1, 6) = 'https:', length(url),
                         coalesce(last_visit, {NEVER}), coalesce(last_change, {NEVER}) FROM pages ORDER BY id"""
        return self._columns(sql, _COPIES, expected=self._count())

    def has_copies(self) -> bool:
        return self._value("SELECT 1 FROM pages WHERE same_as != 0 LIMIT 1") is not None

    def representatives(self) -> tuple[Ints, Ints]:
        sql = "SELECT id, same_as FROM pages WHERE same_as != 0 ORDER BY id"
        rows = self._columns(sql, {"id": "i8", "same_as": "i8"})
        return rows["id"], rows["same_as"]

    def representative_of(self, pages: Iterable[int]) -> dict[int, int]:
        sql = f"SELECT p.id, q.id FROM pages p JOIN pages q ON q.key = p.same_as WHERE p.same_as != 0 AND p.id {AMONG}"
        return dict(self._db.execute(sql, (json_list(pages),)))

    def copies_of(self, pages: Iterable[int]) -> dict[int, list[str]]:
        sql = f"""SELECT q.id, p.url FROM pages q JOIN pages p ON p.same_as = q.key
                  WHERE p.same_as != 0 AND q.id {AMONG} ORDER BY length(p.url), p.url"""
        found: dict[int, list[str]] = {}
        for page, url in self._db.execute(sql, (json_list(pages),)):
            found.setdefault(page, []).append(url)
        return found

    def with_query(self) -> Iterator[tuple[str, int]]:
        sql = f"SELECT url, {_GROUP} FROM pages WHERE {_STORED} AND instr(url, ?) > 0 ORDER BY id"
        return self._db.stream(sql, ("?",))

    def groups_of(self, keys: Iterable[int]) -> dict[int, int]:
        sql = f"SELECT key, {_GROUP} FROM pages WHERE {_STORED} AND key {AMONG}"
        return dict(self._db.execute(sql, (json_list(keys),)))

    def groups(self, site: str, limit: int) -> list[Row]:
        only = "AND q.site IN (SELECT id FROM sites WHERE origin = ?)" if site else ""
        return self._rows(
            f"""SELECT q.id, q.url, count(*) AS copies FROM pages p JOIN pages q ON q.key = p.same_as
                WHERE p.same_as != 0 {only} GROUP BY q.id, q.url ORDER BY copies DESC, q.id LIMIT ?""",
            (*([site] if site else []), limit),
        )

    def set_copies(self, same_as: Iterable[tuple[int, int]]) -> None:
        with Transaction(self._db):
            self._db.executemany("UPDATE pages SET same_as = ? WHERE id = ?", ((key, page) for page, key in same_as))

    def unsketched(self, limit: int) -> list[tuple[int, int]]:
        sql = f"""SELECT id, version FROM pages WHERE {OF_SITES} AND state = {State.LIVE:d} AND version >= 0
                  AND sketch IS NULL ORDER BY id LIMIT ?"""
        return self._db.execute(sql, (limit,)).fetchall()

    def set_sketches(self, rows: Iterable[tuple[bytes, int, int]]) -> None:
        with Transaction(self._db):
            self._db.executemany("UPDATE pages SET sketch = ?, claim = ? WHERE id = ?", rows)

    def summary_columns(self, pages: Iterable[int] | None = None) -> Columns:
        return self._page_columns(_SUMMARY, pages)

    def _page_columns(self, types: dict[str, str], pages: Iterable[int] | None = None) -> Columns:
        names = ", ".join(f"coalesce({name}, {NEVER})" if name in _TIMES else name for name in types)
        if pages is None:
            return self._columns(f"SELECT {names} FROM pages ORDER BY id", types, expected=self._count())
        return self._columns(f"SELECT {names} FROM pages WHERE id {AMONG} ORDER BY id", types, (json_list(pages),))

    def _count(self) -> int:
        return int(self._value("SELECT coalesce(max(id), -1) + 1 FROM pages"))

    def last_modified(self, sites: Iterable[int] | None) -> NDArray[np.void]:
        where = "" if sites is None else f"WHERE site {AMONG}"
        sql = f"""SELECT id, site, folder, CASE WHEN modified = '' THEN 0 ELSE coalesce({self._modified_seconds}, 0) END
                  FROM pages {where} ORDER BY id"""
        types = {"id": "i8", "site": "i8", "folder": "i8", "modified": "f8"}
        return self._table(sql, types, () if sites is None else (json_list(sites),))

    def never_downloaded(self) -> Columns:
        return self._columns(
            f"""SELECT id, site, failures, coalesce(last_try, {NEVER}) FROM pages
                WHERE state = {State.FOUND:d} ORDER BY id""",
            {"id": "i8", "site": "i4", "failures": "i4", "last_try": "f8"},
        )

    def absent(self) -> Columns:
        return self._columns(
            f"""SELECT id, site, depth = 0 AND parent < 0, failures, coalesce(last_try, {NEVER}) FROM pages
                WHERE {OF_SITES} AND state IN {ABSENT} ORDER BY id""",
            {"id": "i8", "site": "i4", "given": "?", "failures": "i4", "last_try": "f8"},
        )

    def barred(self) -> dict[int, list[tuple[int, str, bool]]]:
        found: dict[int, list[tuple[int, str, bool]]] = {}
        sql = f"SELECT id, site, url, version FROM pages WHERE {OF_SITES} AND state = {State.BARRED:d} ORDER BY id"
        for page, site, url, version in self._db.stream(sql):
            found.setdefault(site, []).append((page, url, version >= 0))
        return found

    def listed(self, site: int) -> set[int]:
        sql = "SELECT id FROM pages WHERE site = ? AND listed = 1"
        return {row[0] for row in self._db.execute(sql, (site,))}

    def moved_to(self, page: int) -> int:
        target = self._value(f"SELECT target FROM pages WHERE id = ? AND state = {State.MOVED:d}", (page,))
        return -1 if target is None else int(target)

    def moved_from(self, page: int) -> int:
        source = self._value(
            f"""SELECT q.id FROM pages p JOIN pages q ON q.id = p.parent
                WHERE p.id = ? AND q.state = {State.MOVED:d} AND q.target = p.id""",
            (page,),
        )
        return -1 if source is None else int(source)

    def moves(self, below: int) -> Iterator[tuple[int, int]]:
        sql = f"SELECT id, target FROM pages WHERE state = {State.MOVED:d} AND target >= 0 AND id < ? AND target < ?"
        return self._db.stream(sql, (below, below))

    def conditional(self) -> Flags:
        sql = "SELECT payload IS NOT NULL AND (etag != '' OR modified != '') FROM pages ORDER BY id"
        return self._columns(sql, {"possible": "?"})["possible"]

    def count_by_state(self) -> Iterator[tuple[int, int, int]]:
        sql = "SELECT site, state, count(*) FROM pages GROUP BY site, state ORDER BY site, state"
        return iter(self._db.execute(sql))

    def scope_rows(self, sites: Iterable[int] | None = None) -> Iterator[ScopeRow]:
        where = "" if sites is None else f"WHERE site {AMONG}"
        sql = f"""SELECT id, url, depth, parent, state, CASE WHEN payload IS NULL THEN 0 ELSE 1 END FROM pages {where}
                  ORDER BY id"""
        return map(ScopeRow._make, self._db.stream(sql, () if sites is None else (json_list(sites),)))

    def stored(self) -> list[tuple[int, str, int, int]]:
        sql = f"SELECT id, url, depth, version FROM pages WHERE state = {State.LIVE:d} AND version >= 0 ORDER BY id"
        return self._db.execute(sql).fetchall()

    def not_dropped(self) -> Iterator[tuple[int, str, int]]:
        sql = f"SELECT id, url, depth FROM pages WHERE state != {State.DROPPED:d} ORDER BY id"
        return self._db.stream(sql)
