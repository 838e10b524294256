"""The store: one SQLite file in WAL mode. Writes come in batches, reads as rows or as columns.

Nothing here decides anything. `commit` is the only way in for what visits bring; it is one transaction that is on
disk when it returns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import RepositoryError
from recrawl.model import HOLDING, NOT_TRIED, PUSHES, Failure, Outcome, Unvisited
from recrawl.record.migrations import STEPS, check, migrate
from recrawl.record.rows import (
    Batch,
    CycleRow,
    FeedRow,
    HintRow,
    NewPage,
    PageState,
    SiteRow,
    SourceRow,
    VersionRow,
    VisitRow,
)

Columns = dict[str, NDArray[Any]]
PageRow = tuple[str, int, int, int, PageState]
"""URL, site, depth, whether the sitemap names it, and state."""
_AMONG = "IN (SELECT value FROM json_each(?))"

_BOOK: dict[str, str] = {
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
"""The columns that the book is made of; a missing time is -inf."""


def _insert(table: str, row: Any) -> str:
    names = row._fields
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608


_NEW_PAGE = _insert("pages", NewPage)
_VISIT = _insert("visits", VisitRow)
_VERSION = _insert("versions", VersionRow)
_CYCLE = _insert("cycles", CycleRow)
_SITE = _insert("sites", SiteRow).replace("INSERT", "INSERT OR REPLACE", 1)
_FEED = _insert("feeds", FeedRow).replace("INSERT", "INSERT OR REPLACE", 1)
_HINT = f"""{_insert("hints", HintRow)} ON CONFLICT DO UPDATE SET seen = excluded.seen, value = excluded.value,
    signals = min(1000, signals + excluded.signals)"""
_SOURCE = f"""{_insert("sources", SourceRow)} ON CONFLICT DO UPDATE SET seen = max(seen, excluded.seen),
    signals = signals + excluded.signals, ignored = excluded.ignored, problem = excluded.problem"""
_STATE_COLUMNS = ", ".join(PageState._fields)
_STATE = f"UPDATE pages SET {', '.join(f'{name} = ?' for name in PageState._fields[:-1])} WHERE id = ?"  # noqa: S608


class Store:
    """The file `recrawl.db`."""

    def __init__(self, path: Path, *, create: bool = False, shared: bool = False) -> None:
        """`shared`: to read only, handed from thread to thread, one at a time."""
        self.path = path
        self.db = sqlite3.connect(
            path, isolation_level=None, timeout=30.0, cached_statements=256, check_same_thread=not shared
        )
        try:
            self.db.executescript("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY")
            if create:
                self.db.execute("PRAGMA journal_mode = WAL")
                migrate(self.db)
            elif len(check(self.db)) < len(STEPS):  # of an earlier version; whoever writes to it has done this first
                migrate(self.db)
            if shared:
                self.db.executescript("PRAGMA cache_size = -16384; PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            raise RepositoryError(f"{path} cannot be used as a recrawl database: {error}") from error

    def close(self) -> None:
        """Close the file; everything committed stays."""
        self.db.close()

    # -- writing ---------------------------------------------------------------------------------

    def commit(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        """Record a batch: all of it or nothing, durable on return."""
        run = self.db.executemany
        with Transaction(self.db):
            run("INSERT OR REPLACE INTO warcs (id, name, length) VALUES (?, ?, ?)", warcs)
            run(_SITE, batch.sites)
            run(_NEW_PAGE, batch.pages)
            run(_VISIT, batch.visits)
            run(_VERSION, batch.versions)
            run(_STATE, batch.states)
            run("INSERT OR REPLACE INTO links (page, targets) VALUES (?, ?)", batch.links)
            told = ((row.page,) for row in batch.visits if row.hints and row.outcome != Outcome.FAILED)
            run("UPDATE hints SET signals = 0 WHERE page = ? AND signals > 0", told)
            run(_HINT, batch.hints)
            run(_SOURCE, batch.sources)
            run(_FEED, batch.feeds)
            run("UPDATE pages SET listed = ? WHERE id = ?", batch.listed)
            dropped = ((page,) for state, page in batch.listed if state == 2)
            run("DELETE FROM hints WHERE page = ? AND kind IN ('lastmod', 'changefreq')", dropped)

    def open_cycle(self, row: CycleRow) -> None:
        """Note that a cycle has begun."""
        self.db.execute(_CYCLE, row)

    def limit_cycle(self, number: int, limits: str) -> None:
        """Note what a cycle may spend."""
        self.db.execute("UPDATE cycles SET limits = ? WHERE id = ?", (limits, number))

    def close_cycle(self, number: int, finished: float) -> None:
        """Note that a cycle has ended."""
        self.db.execute("UPDATE cycles SET finished = ? WHERE id = ?", (finished, number))

    def reason(self, text: str) -> int:
        """The number of a reason, which is stored once."""
        self.db.execute("INSERT OR IGNORE INTO reasons (text) VALUES (?)", (text,))
        return int(self.db.execute("SELECT id FROM reasons WHERE text = ?", (text,)).fetchone()[0])

    def set_states(self, state: int, pages: Iterable[int]) -> None:
        """Change what is believed of some pages, without a visit."""
        with Transaction(self.db):
            self.db.executemany("UPDATE pages SET state = ? WHERE id = ?", ((state, page) for page in pages))

    def revive(self, moved_before: float) -> None:
        """Pages that deserve another look: gone but named by a sitemap again, or moved long ago."""
        with Transaction(self.db):
            self.db.execute("UPDATE pages SET state = 2, misses = 0, missing_since = 0 WHERE state = 3 AND listed = 1")
            self.db.execute(
                "UPDATE pages SET state = iif(version < 0, 0, 2), misses = 0 WHERE state = 4 AND last_try < ?",
                (moved_before,),
            )

    def set_meta(self, name: str, value: float | str) -> None:
        """Keep a single value."""
        self.db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, value))

    # -- reading ---------------------------------------------------------------------------------

    def meta(self, name: str, default: Any) -> Any:
        """A single value that was kept."""
        row = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def next_id(self, table: str) -> int:
        """The first number that is free in a table."""
        row = self.db.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
        return 0 if row[0] is None else int(row[0]) + 1

    def page(self, number: int) -> PageRow:
        """URL, site, depth, whether the sitemap names it, and state of a page."""
        return self.pages([number])[number]

    def pages(self, numbers: Iterable[int]) -> dict[int, PageRow]:
        """The same of several pages, by number; at once, since most of what one costs is the question."""
        sql = f"SELECT url, site, depth, listed, {_STATE_COLUMNS} FROM pages WHERE id {_AMONG}"  # noqa: S608
        rows = self.db.execute(sql, (_listed(numbers),))
        return {row[-1]: (row[0], row[1], row[2], row[3], PageState._make(row[4:])) for row in rows}

    def sites_of(self, pages: Iterable[int]) -> dict[int, int]:
        """The sites of some pages."""
        return dict(self.db.execute(f"SELECT id, site FROM pages WHERE id {_AMONG}", (_listed(pages),)))  # noqa: S608

    def barred(self) -> dict[int, list[tuple[int, str, bool]]]:
        """Pages that robots.txt keeps us from, by site: number, URL, whether there is a version of it."""
        found: dict[int, list[tuple[int, str, bool]]] = {}
        for page, site, url, version in self.db.execute("SELECT id, site, url, version FROM pages WHERE state = 5"):
            found.setdefault(site, []).append((page, url, version >= 0))
        return found

    def listed_pages(self, site: int) -> set[int]:
        """Pages of a site that its sitemap named when it was last read."""
        sql = "SELECT id FROM pages WHERE site = ? AND listed = 1"
        return {row[0] for row in self.db.execute(sql, (site,))}

    def moved_to(self, page: int) -> int:
        """Where a page has moved to, -1 when it has not."""
        row = self.db.execute("SELECT target FROM pages WHERE id = ? AND state = 4", (page,)).fetchone()
        return int(row[0]) if row else -1

    def moved_from(self, page: int) -> int:
        """The page whose move made this one known, -1 when there is none."""
        row = self.db.execute(
            """SELECT q.id FROM pages p JOIN pages q ON q.id = p.parent
               WHERE p.id = ? AND q.state = 4 AND q.target = p.id""",
            (page,),
        ).fetchone()
        return int(row[0]) if row else -1

    def version(self, number: int) -> VersionRow | None:
        """A version by its number."""
        row = self.db.execute("SELECT * FROM versions WHERE id = ?", (number,)).fetchone()
        return None if row is None else VersionRow._make(row)

    def version_at(self, page: int, at: float) -> VersionRow | None:
        """The version of a page that was downloaded at that very time."""
        sql = "SELECT * FROM versions WHERE page = ? AND at = ? ORDER BY id DESC"
        row = self.db.execute(sql, (page, at)).fetchone()
        return None if row is None else VersionRow._make(row)

    def sites(self) -> list[SiteRow]:
        """All servers, by number."""
        return [SiteRow._make(row) for row in self.db.execute("SELECT * FROM sites ORDER BY id")]

    def cycles(self, limit: int = -1) -> list[CycleRow]:
        """Cycles, newest first."""
        sql = "SELECT * FROM cycles ORDER BY id DESC LIMIT ?"
        return [CycleRow(*row) for row in self.db.execute(sql, (limit,))]

    def keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Key and number of every page."""
        rows = self.columns("SELECT key, id FROM pages", {"key": "i8", "id": "i8"})
        return rows["key"], rows["id"]

    def book_columns(self) -> Columns:
        """What the book is made of, one array a column, in the order of page numbers."""
        times = {"last_try", "last_visit", "last_change"}
        names = ", ".join(f"ifnull({name}, -9e999)" if name in times else name for name in _BOOK)
        return self.columns(f"SELECT {names} FROM pages ORDER BY id", _BOOK)  # noqa: S608

    def waiting(self) -> Columns:
        """Pages that were found and never downloaded, in the order in which they were found."""
        return self.columns(
            "SELECT id, site, failures, ifnull(last_try, -9e999) FROM pages WHERE state = 0 ORDER BY id",
            {"id": "i8", "site": "i4", "failures": "i4", "last_try": "f8"},
        )

    def visits_of_cycle(self, cycle: CycleRow) -> Columns:
        """Page, outcome and bytes of the visits of a cycle, in the order in which they were recorded.

        The outcome is as it was told to the policy: what was never asked for was skipped, or held by its server.
        """
        return self.columns(
            """SELECT page, CASE WHEN failure IN (?, ?) THEN ? WHEN failure = ? THEN ? ELSE outcome END, received
               FROM visits WHERE id >= ? AND cycle = ? ORDER BY id""",
            {"page": "i8", "outcome": "i1", "received": "i8"},
            (
                *sorted(HOLDING),
                int(Unvisited.HELD),
                Failure.ROBOTS,
                int(Unvisited.SKIPPED),
                cycle.first_visit,
                cycle.id,
            ),
        )

    def received_of_cycle(self, cycle: CycleRow) -> list[tuple[int, int]]:
        """Bytes that a cycle's visits have brought so far, by site."""
        sql = """SELECT p.site, sum(v.received) FROM visits v JOIN pages p ON p.id = v.page
                 WHERE v.id >= ? AND v.cycle = ? GROUP BY p.site"""
        return self.db.execute(sql, (cycle.first_visit, cycle.id)).fetchall()

    def latest_by_site(self, visits: int = 20_000) -> list[tuple[int, int, float, int, int]]:
        """Of the latest visits that brought a page, by site: how many, seconds, bytes received, bytes of the pages."""
        sql = """SELECT p.site, count(*), sum(v.seconds), sum(v.received), sum(p.size)
                 FROM (SELECT page, seconds, received, status FROM visits ORDER BY id DESC LIMIT ?) v
                 JOIN pages p ON p.id = v.page WHERE v.status = 200 AND v.received > 0 GROUP BY p.site"""
        return self.db.execute(sql, (visits,)).fetchall()

    def conditional(self) -> NDArray[np.bool_]:
        """One per page: whether it can be asked for "if it has changed"."""
        sql = "SELECT payload IS NOT NULL AND (etag != '' OR modified != '') FROM pages ORDER BY id"
        return self.columns(sql, {"yes": "?"})["yes"]

    def pushed(self) -> NDArray[np.int64]:
        """Pages that somebody told us about, unasked, since their last visit."""
        sql = f"""SELECT DISTINCT h.page FROM hints h JOIN pages p ON p.id = h.page
                  WHERE h.kind IN ({", ".join("?" * len(PUSHES))}) AND h.seen > ifnull(p.last_visit, -9e999)"""  # noqa: S608
        return self.columns(sql, {"page": "i8"}, PUSHES)["page"]

    def visits_between(self, first: int, end: int) -> Columns:
        """Visits from one number up to another, in the order in which they were recorded; `held` as in `history`."""
        return self.columns(
            """SELECT page, cycle, at, outcome, ifnull(failure IN (?, ?, ?), 0), hints FROM visits
               WHERE id >= ? AND id < ? ORDER BY id""",
            {"page": "i8", "cycle": "i8", "at": "f8", "outcome": "i1", "held": "i1", "hints": "i8"},
            (*sorted(NOT_TRIED), first, end),
        )

    def pages_visited_since(self, visit: int) -> NDArray[np.int64]:
        """Pages with a visit of that number or a later one."""
        rows = self.columns("SELECT DISTINCT page FROM visits WHERE id >= ?", {"page": "i8"}, (visit,))
        return rows["page"]

    def history(self, pages: Iterable[int], before_visit: int) -> Columns:
        """Visits of some pages up to a visit's number, oldest first; `held` where the page was never asked for."""
        with Transaction(self.db):
            self.db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (page INTEGER PRIMARY KEY)")
            self.db.execute("DELETE FROM wanted")
            self.db.executemany("INSERT INTO wanted VALUES (?)", ((int(page),) for page in pages))
        return self.columns(
            """SELECT page, at, outcome, ifnull(failure IN (?, ?, ?), 0) FROM visits JOIN wanted USING (page)
               WHERE id < ? ORDER BY id""",
            {"page": "i8", "at": "f8", "outcome": "i1", "held": "i1"},
            (*sorted(NOT_TRIED), before_visit),
        )

    def urls(self, every: int = 1) -> Iterator[str]:
        """All URLs, or every so manieth, in the order of page numbers."""
        rows = self.db.execute("SELECT url FROM pages WHERE id % ? = 0 ORDER BY id", (every,))
        return (row[0] for row in rows)

    def columns(self, sql: str, types: dict[str, str], values: tuple[Any, ...] = ()) -> Columns:
        """What a question gives, one array a column."""
        kind = np.dtype(list(types.items()))
        rows = np.fromiter(self.db.execute(sql, values), dtype=kind)
        return {name: np.ascontiguousarray(rows[name]) for name in types}


def _listed(numbers: Iterable[int]) -> str:
    """Numbers as one value of an SQL statement, for `_AMONG`; so there may be any number of them."""
    return f"[{','.join(map(str, numbers))}]"


class Transaction:
    """`with Transaction(db):` commits at the end, or leaves everything as it was."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._db.execute("ROLLBACK" if kind else "COMMIT")
