"""Where things lie that are not part of a repository."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """What can be made again: read archives, replays. `RECRAWL_CACHE` moves it."""
    named = os.environ.get("RECRAWL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "recrawl"
