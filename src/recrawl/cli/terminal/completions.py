"""Shell completion: the words that a shell asks about, and the values of options and arguments."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

import typer

from recrawl.errors import RecrawlError

COMPLETE_VARIABLE = "_RECRAWL_COMPLETE"
"""Set by the script of a shell that wants completions."""


def words_to_complete() -> list[str] | None:
    """The words after `recrawl` on the command line that a shell wants completed; None if no shell asks."""
    if COMPLETE_VARIABLE not in os.environ:
        return None
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        return shlex.split(line)[1:]
    except ValueError:  # an open quote
        return line.split()[1:]


def policies(incomplete: str) -> list[str]:
    """Names of policies, those of plug-ins too."""
    from recrawl import plugins  # lazy: only a shell asks
    from recrawl.choose import POLICIES  # lazy: loads numpy

    return _beginning((*POLICIES, *plugins.names("policies")), incomplete)


def settings(incomplete: str) -> list[str]:
    """Names of settings."""
    from recrawl.settings import SETTINGS  # lazy: only a shell asks

    return _beginning((setting.name for setting in SETTINGS), incomplete)


def states(incomplete: str) -> list[str]:
    """States of pages."""
    from recrawl.model import State  # lazy: only a shell asks

    return _beginning((state.name.lower() for state in State), incomplete)


def sites(ctx: typer.Context, incomplete: str) -> list[str]:
    """Sites of the repository; none if there is no repository."""
    from recrawl.repository.reports.sites import names  # lazy: only a shell asks
    from recrawl.repository.repository import Repository  # lazy: only a shell asks

    folder = ctx.find_root().params.get("folder")
    try:
        with Repository(folder or Path()) as repo:
            return _beginning((origin for _, origin in names(repo)), incomplete)
    except RecrawlError:
        return []


def seeds(ctx: typer.Context, incomplete: str) -> list[str]:
    """URLs that were added."""
    from recrawl.repository.repository import Repository  # lazy: only a shell asks

    folder = ctx.find_root().params.get("folder")
    try:
        with Repository(folder or Path()) as repo:
            return _beginning((seed.url for seed in repo.settings.seeds), incomplete)
    except RecrawlError:
        return []


def _beginning(names: Iterable[str], start: str) -> list[str]:
    """Names that begin as typed; URLs without their scheme if it was not typed.

    >>> _beginning(["https://a.example", "https://b.example"], "a"), _beginning(["https://a.example"], "htt")
    (['a.example'], ['https://a.example'])
    """
    forms = (form for name in names for form in ({name, name.partition("://")[2]} if start else {name}))
    return sorted(form for form in forms if form and form.startswith(start))
