"""The errors that recrawl raises on purpose. Each is a sentence that says what to do.

    RecrawlError
    ├── UsageError            the command or a setting is wrong             exit code 2
    │   ├── UnknownName       ... and here is the nearest right one
    │   ├── NotKnown          a page, site or version that is not in this repository
    │   └── BadArchive        a file given to the lab or to import cannot be used
    ├── RepositoryError       the folder cannot be used as it is            exit code 1
    │   ├── NoRepository      there is none here
    │   ├── NewerRepository   it was made by a newer recrawl
    │   └── Busy              another process holds it
    ├── PolicyError           a policy broke its contract (a page twice, a page nobody knows)
    └── Unreadable            a document that cannot or must not be parsed; costs that page only

What goes wrong with a page on the web is not an exception: it is a value, `recrawl.model.Failure`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RecrawlError(Exception):
    """The root of the tree above."""

    exit_code = 1


class UsageError(RecrawlError):
    """The command line, a setting or an argument is wrong."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not in its list; says the nearest one that is.

    >>> str(UnknownName("policy", "round-robbin", ["random", "round-robin"]))
    "there is no policy 'round-robbin'; did you mean 'round-robin'?"
    >>> str(UnknownName("policy", "xyz", ["random", "round-robin"]))
    "there is no policy 'xyz'; there are: random, round-robin"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(names)}"
        super().__init__(f"there is no {kind} '{name}'; {hint}")


class NotKnown(UsageError):
    """Something was asked for that is not in this repository."""


class BadArchive(UsageError):
    """A file that was to be imported or replayed is not what it should be."""


class RepositoryError(RecrawlError):
    """The repository cannot be used as it is."""


class NoRepository(RepositoryError):
    """There is no repository in this folder or above it."""


class NewerRepository(RepositoryError):
    """The repository was made by a newer version of recrawl."""


class RepositoryBusy(RepositoryError):
    """Another process is working on the repository."""


class PolicyError(RecrawlError):
    """A policy asked for something that the contract forbids."""


class Unreadable(RecrawlError):
    """A document that cannot or must not be parsed."""
