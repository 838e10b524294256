"""The store: sites, pages, visits, versions, links, cycles and all other facts, behind one protocol.

All SQL of recrawl is in this package. Other packages call `store.pages.…`, `store.visits.…`; they see the protocols
and never a connection. SQLite is the default; PostgreSQL is the other implementation.

protocol               `Store`: one attribute per table protocol, commit, transactions
tables                 protocols of pages, visits, versions and links
site_tables            protocols of sites, cycles, archive files and single values
requisites             the protocol of requisites
marks                  the protocol of tags, read marks, saved filters and requested visits
channels               protocols of hints, pushes, alerts, subscriptions and IndexNow keys
reports                protocols of summaries and of queries for people
checks                 the protocol of checks and repairs
leases                 `Lease`: which worker owns which shard, and the protocol of its table
location               where the store of a repository is
moves                  move the store to PostgreSQL, or back into the folder
division/              a store divided into those of shards, or shards joined in one store
sql/                   statements that all implementations share
sqlite/                `SqliteStore`: the tables in one SQLite file
postgres/              `PostgresStore`: the tables in a schema of a PostgreSQL database
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.errors import RepositoryError, StorageFailure, UsageError
from recrawl.extras import require
from recrawl.record.rows import Columns, PageRow
from recrawl.record.store.location import DATABASE, LOCATION, has_store, shards_of, store_url, write_store_url
from recrawl.record.store.protocol import Store
from recrawl.record.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from recrawl.record.store.postgres.target import PostgresTarget

__all__ = [
    "TEMPORARY_ERRORS",
    "Columns",
    "PageRow",
    "SqliteStore",
    "Store",
    "create_store",
    "has_store",
    "open_store",
    "postgres_target",
]

TEMPORARY_ERRORS = (sqlite3.OperationalError, StorageFailure)
"""Errors of a store that is busy, whose disk is full, or whose server is away: try again later."""


def open_store(folder: Path, *, create: bool = False, shared: bool = False) -> Store:
    """Open the store of a repository. `shared`: read only, and threads may hand it on, one at a time."""
    url = store_url(folder)
    if not url:
        return SqliteStore(folder / DATABASE, create=create, shared=shared)
    target = postgres_target(url)
    from recrawl.record.store.postgres.gathered.store import GatheredStore  # lazy: needs the extra `postgres`
    from recrawl.record.store.postgres.store import PostgresStore  # lazy: needs the extra `postgres`

    def changed() -> None:
        with contextlib.suppress(OSError):  # a reader's folder may be read-only
            os.utime(folder / LOCATION)

    if shards := shards_of(folder):
        return GatheredStore(target, shards, shared=shared, changed=changed)
    return PostgresStore(target, create=create, shared=shared, changed=changed)


def create_store(folder: Path, url: str = "") -> None:
    """Make the store of a new repository: a file in the folder, or a schema in the PostgreSQL database of a URL."""
    if not url:
        folder.mkdir(parents=True, exist_ok=True)
        open_store(folder, create=True).close()
        return
    target = postgres_target(url)
    from recrawl.record.store.postgres.store import PostgresStore, is_taken  # lazy: needs the extra `postgres`

    if is_taken(target):
        raise RepositoryError(f"{target.name} holds a repository: choose another schema with ?schema=NAME")
    PostgresStore(target, create=True).close()
    folder.mkdir(parents=True, exist_ok=True)
    write_store_url(folder, target.reference)


def postgres_target(url: str) -> "PostgresTarget":
    """The PostgreSQL schema of a URL; `MissingExtra` without psycopg."""
    require("psycopg")
    from recrawl.record.store.postgres import target  # lazy: needs the extra `postgres`

    if not target.is_postgres(url):
        raise UsageError("invalid URL of a store; use postgresql://user@host/database?schema=NAME")
    return target.parse(url)
