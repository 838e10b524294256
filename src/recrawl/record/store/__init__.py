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
sql/                   statements that all implementations share
sqlite/                `SqliteStore`: the tables in one SQLite file
postgres/              `PostgresStore`: the tables in a schema of a PostgreSQL database
"""

import sqlite3
from pathlib import Path

from recrawl.errors import StorageFailure
from recrawl.record.rows import Columns, PageRow
from recrawl.record.store.protocol import Store
from recrawl.record.store.sqlite.store import SqliteStore

__all__ = ["TEMPORARY_ERRORS", "Columns", "PageRow", "SqliteStore", "Store", "open_store"]

TEMPORARY_ERRORS = (sqlite3.OperationalError, StorageFailure)
"""Errors of a store that is busy, or whose disk is full: try again later."""


def open_store(folder: Path, *, create: bool = False, shared: bool = False) -> Store:
    """Open the store of a repository. `shared`: read only, and threads may hand it on, one at a time."""
    return SqliteStore(folder / "recrawl.db", create=create, shared=shared)
