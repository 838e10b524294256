"""What most commands begin with: opening the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import recrawl
from recrawl.cli.terminal.output import note

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository


def repository(ctx: typer.Context) -> Repository:
    """The repository in or above the current folder, or the one that `-C` names."""
    return recrawl.open(ctx.obj or Path(), notify=note)
