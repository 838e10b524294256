"""The exceptions of recrawl. Each message says what is wrong, the value, and what to do.

    RecrawlError
    ├── UsageError            an invalid command line, setting or argument  exit code 2
    │   ├── UnknownName       an unknown name; suggests the nearest one
    │   ├── NotKnown          a page, site or version not in this repository
    │   └── BadArchive        an invalid file for the lab or for import
    ├── RepositoryError       a repository that cannot be used             exit code 1
    │   ├── NoRepository      no repository in this folder or above
    │   ├── NewerRepository   written by a newer recrawl
    │   ├── RepositoryBusy    locked by another process
    │   ├── LeaseLost         another worker owns the shard, or another writer the database
    │   ├── RefusedRows       the database refuses values; a commit leaves out the page that has them
    │   └── StorageFailure    the disk or a file fails: full, read-only, damaged
    │       ├── DiskFull      no space left; nothing that was recorded is lost
    │       ├── DamagedIndex  the full-text index; the next writing command rebuilds it
    │       └── DamagedRecord a record of the archive; affects that version only
    ├── PolicyError           a policy broke its protocol (a page twice, an unknown page)
    └── Unreadable            a document that cannot be parsed; affects that page only

A failed visit is not an exception but a value, `recrawl.model.Failure`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RecrawlError(Exception):
    """The base class of all exceptions of recrawl."""

    exit_code = 1


class UsageError(RecrawlError):
    """The command line, a setting or an argument is invalid."""

    exit_code = 2


class UnknownName(UsageError):
    """An unknown name; the message suggests the nearest known one.

    >>> str(UnknownName("policy", "round-robbin", ["random", "round-robin"]))
    "unknown policy 'round-robbin'; did you mean 'round-robin'?"
    >>> str(UnknownName("policy", "xyz", ["random", "round-robin"]))
    "unknown policy 'xyz'; expected one of: random, round-robin"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(names)}"
        super().__init__(f"unknown {kind} '{name}'; {hint}")


class NotKnown(UsageError):
    """A page, site or version is not in this repository."""


class BadArchive(UsageError):
    """A file to import or replay is invalid."""


class RepositoryError(RecrawlError):
    """The repository cannot be used."""


class NoRepository(RepositoryError):
    """No repository in this folder or above it."""


class NewerRepository(RepositoryError):
    """The repository was written by a newer version of recrawl."""


class RepositoryBusy(RepositoryError):
    """Another process holds the lock of the repository."""


class LeaseLost(RepositoryError):
    """Another worker has taken over the shard, or another writer the database: nothing of the transaction is kept."""


class RefusedRows(RepositoryError):
    """The database refuses a value of a batch: nothing of the batch is written."""


class StorageFailure(RepositoryError):
    """The disk or a file of the repository fails: full, read-only, damaged."""


class DiskFull(StorageFailure):
    """There is no space left on the disk. What was recorded before is safe; the next command continues."""


class DamagedIndex(StorageFailure):
    """The full-text index is damaged. It can be rebuilt."""


class DamagedRecord(StorageFailure):
    """A record of the archive is damaged or missing, and with it the body of a version."""


class PolicyError(RecrawlError):
    """A policy violated the policy protocol."""


class Unreadable(RecrawlError):
    """A document cannot be parsed."""
