"""What a retrieval corpus has been told: the chunks of each page, in a SQLite file beside the corpus.

A chunk's id follows from its site and its text, so pages of a site that say the same share a chunk. The file knows
which pages have it, and what was told of it last; the difference is what is to be told next. One transaction holds all
that an export does, and ends when its receiver has stored it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from recrawl.errors import RepositoryBusy, UsageError

_FORMAT = 1
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE page (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE);
CREATE TABLE chunk (id TEXT, page INTEGER, facts TEXT NOT NULL, PRIMARY KEY (id, page)) WITHOUT ROWID;
CREATE INDEX chunk_page ON chunk (page);
CREATE TABLE told (id TEXT PRIMARY KEY, url TEXT NOT NULL, seal BLOB NOT NULL) WITHOUT ROWID;
"""
_BETWEEN = """
CREATE TEMP TABLE IF NOT EXISTS touched (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS fresh (id TEXT PRIMARY KEY, text TEXT NOT NULL, time TEXT NOT NULL);
"""


class KnownChunk(NamedTuple):
    """A chunk of a page."""

    id: str
    facts: dict[str, Any]
    """What is told beside its text."""
    text: str


class Told(NamedTuple):
    """What is to be told of a chunk."""

    op: str
    """put, update or delete."""
    id: str
    url: str
    """The first page that has it; of a deletion, the page it was told with."""
    urls: tuple[str, ...] = ()
    """Other pages of the site that have it."""
    facts: dict[str, Any] | None = None
    text: str = ""
    time: str = ""


class ChunkState:
    """The chunks that were told. Use it in a `with` statement; without `commit`, nothing of it is kept."""

    def __init__(self, file: Path | None) -> None:
        """Open the file, or make it; None is a state in memory, which is lost."""
        self._file = file
        try:
            self._db = sqlite3.connect(file or ":memory:", isolation_level=None, timeout=5.0)
            self._db.execute("PRAGMA secure_delete = ON")  # pages may be erased
            self._db.execute("BEGIN IMMEDIATE")
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self.write("format", _FORMAT)
            found = self.read("format")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise RepositoryBusy(f"another process exports chunks with {file}: wait for it to end") from error
            raise UsageError(
                f"{file} is not a file that 'recrawl chunks --state' of this version wrote ({error}): "
                "name another one, and begin with an empty corpus"
            ) from error
        if found != _FORMAT:
            raise UsageError(f"{file} was written by a newer version of recrawl: name another one")
        for statement in filter(str.strip, _BETWEEN.split(";")):
            self._db.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def commit(self) -> None:
        """Keep what was told."""
        self._db.execute("DELETE FROM temp.touched")
        self._db.execute("DELETE FROM temp.fresh")
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    def read(self, name: str) -> Any:
        """A value that `write` has stored; None if there is none."""
        row = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def write(self, name: str, value: Any) -> None:
        """Store a value under a name."""
        self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, json.dumps(value)))

    def urls(self) -> Iterator[str]:
        """The pages that have chunks."""
        for (url,) in self._db.execute("SELECT url FROM page ORDER BY id"):
            yield url

    def replace(self, url: str, chunks: Iterable[KnownChunk], time: str = "") -> None:
        """The page has these chunks instead of those that it had; `time` is that of its version."""
        db = self._db
        row = db.execute("SELECT id FROM page WHERE url = ?", (url,)).fetchone()
        page = row[0] if row else db.execute("INSERT INTO page (url) VALUES (?)", (url,)).lastrowid
        db.execute("INSERT OR IGNORE INTO temp.touched SELECT id FROM chunk WHERE page = ?", (page,))
        db.execute("DELETE FROM chunk WHERE page = ?", (page,))
        empty = True
        for chunk in chunks:
            empty = False
            facts = json.dumps(chunk.facts, ensure_ascii=False)
            db.execute("INSERT OR IGNORE INTO chunk VALUES (?, ?, ?)", (chunk.id, page, facts))
            db.execute("INSERT OR IGNORE INTO temp.touched VALUES (?)", (chunk.id,))
            db.execute("INSERT OR IGNORE INTO temp.fresh VALUES (?, ?, ?)", (chunk.id, chunk.text, time))
        if empty:
            db.execute("DELETE FROM page WHERE id = ?", (page,))

    def suppose(self, url: str, chunks: Iterable[KnownChunk]) -> None:
        """The receiver has these chunks of a page already."""
        self.replace(url, chunks)
        for _ in self.untold():
            pass

    def untold(self) -> Iterator[Told]:
        """What is to be told since `replace`: deletions first. It counts as told when it is yielded."""
        db = self._db
        ids = [row[0] for row in db.execute("SELECT id FROM temp.touched ORDER BY id")]
        kept = []
        for one in ids:
            if db.execute("SELECT 1 FROM chunk WHERE id = ? LIMIT 1", (one,)).fetchone():
                kept.append(one)
            elif row := db.execute("SELECT url FROM told WHERE id = ?", (one,)).fetchone():
                db.execute("DELETE FROM told WHERE id = ?", (one,))
                yield Told("delete", one, row[0])
        for one in kept:
            if (told := self._changed(one)) is not None:
                yield told
        db.execute("DELETE FROM temp.touched")
        db.execute("DELETE FROM temp.fresh")

    def _changed(self, identity: str) -> Told | None:
        db = self._db
        rows = db.execute(
            "SELECT page.url, chunk.facts FROM chunk JOIN page ON page.id = chunk.page "
            "WHERE chunk.id = ? ORDER BY page.id",
            (identity,),
        ).fetchall()
        seal = hashlib.blake2b(json.dumps(rows).encode("utf-8", "replace"), digest_size=8).digest()
        told = db.execute("SELECT seal FROM told WHERE id = ?", (identity,)).fetchone()
        if told and told[0] == seal:
            return None
        url, facts = rows[0]
        db.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (identity, url, seal))
        fresh = db.execute("SELECT text, time FROM temp.fresh WHERE id = ?", (identity,)).fetchone() or ("", "")
        others = tuple(other for other, _ in rows[1:])
        return Told("update" if told else "put", identity, url, others, json.loads(facts), *fresh)
