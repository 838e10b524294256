"""Options that the lab's commands share, and the folder of the lab's cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Archives = Annotated[
    list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files, folders of Parquet files, or CDX listings.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ignore the cache: read and replay again.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes. Default: as many as pay, at most one per core.")
]


def cache_folder() -> Path:
    """The folder of cached archives and replays, which can be deleted at any time; `RECRAWL_CACHE` moves it."""
    named = os.environ.get("RECRAWL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "recrawl"
