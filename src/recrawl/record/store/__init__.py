"""The store: sites, pages, visits, versions, links, cycles and all other facts, behind one protocol.

All SQL of recrawl is in this package. Other packages call `store.pages.…`, `store.visits.…`; they see the protocols
and never a connection. SQLite is the only implementation.

protocol               `Store`: one attribute per table protocol, commit, transactions
tables                 protocols of pages, visits, versions and links
site_tables            protocols of sites, cycles, archive files and single values
channels               protocols of hints, pushes, alerts, subscriptions and IndexNow keys
reports                protocols of summaries and of queries for people
checks                 the protocol of checks and repairs
sqlite                 `SqliteStore`: one file in WAL mode; opening, batches
sqlite_base            what the SQLite tables share: rows, columns, transactions, constants of the enums
sqlite_connection      connections whose errors about the file are `StorageFailure`s
sqlite_pages           pages
sqlite_visits          visits
sqlite_versions        versions, links, archive files
sqlite_sites           sites, cycles, single values
sqlite_hints           hints, their sources, feeds
sqlite_pushes          pushes, their senders and how far each is trusted
sqlite_outbox          alerts to be sent
sqlite_subscriptions   WebSub subscriptions, verified IndexNow keys
sqlite_summaries       sums that are written when a cycle ends
sqlite_reports         queries for people
sqlite_listings        blocks of tables that grow
sqlite_checks          is the store consistent, and what must archive and index hold
"""

import sqlite3
from pathlib import Path

from recrawl.errors import StorageFailure
from recrawl.record.rows import Columns, PageRow
from recrawl.record.store.protocol import Store
from recrawl.record.store.sqlite import SqliteStore

__all__ = ["TEMPORARY_ERRORS", "Columns", "PageRow", "SqliteStore", "Store", "open_store"]

TEMPORARY_ERRORS = (sqlite3.OperationalError, StorageFailure)
"""Errors of a store that is busy, or whose disk is full: try again later."""


def open_store(folder: Path, *, create: bool = False, shared: bool = False) -> Store:
    """Open the store of a repository. `shared`: read only, and threads may hand it on, one at a time."""
    return SqliteStore(folder / "recrawl.db", create=create, shared=shared)
