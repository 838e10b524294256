"""The setting `disk`: the repository is thinned out before it takes more; crawling ends when nothing more may go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.crawl.options import CrawlOptions
from recrawl.record.storage import Storage
from recrawl.repository.erasing import is_possible
from recrawl.repository.opening import held
from recrawl.repository.results.words import count, size
from recrawl.repository.thinning import plan, thin
from recrawl.settings import Settings
from recrawl.settings import size as bytes_of

if TYPE_CHECKING:
    from recrawl.repository.turns import Callbacks

_THIN_AT = 0.9
"""Share of the limit from which on old versions are thinned out."""
_FULL_AT = 0.98
"""Share of the limit at which nothing more is begun: what is under way needs room, too."""
_LOOK = 2.0
"""Seconds between two looks at the files."""


def bytes_used(folder: Path) -> int:
    """What the files of a repository take; those that vanish meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def within_limit(folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks) -> Callbacks:
    """Make room by the rules if it is getting tight, and end what follows when there is none; needs the lock."""
    limit = bytes_of(values["disk"])
    if not limit:
        return calls
    with Storage(folder) as storage:
        possible = is_possible(storage)
    if possible and bytes_used(folder) >= _THIN_AT * limit:
        with held(folder, "thin", options, values, wait=calls.wait, tell=calls.notify) as storage:
            found = thin(storage, plan(storage, values), lambda _what, _done, _all: None)
        if found.versions or found.screenshots:
            what = f"{count(found.versions, 'version')} and {count(found.screenshots, 'screenshot')}"
            calls.notify(f"thinned out {what}, {size(found.bytes)}, as the repository is near its limit")
    return replace(calls, stop=_stop(folder, limit, options.timer, calls))


def _stop(folder: Path, limit: float, timer: Callable[[], float], calls: Callbacks) -> Callable[[], bool]:
    looked, full = float("-inf"), False

    def stop() -> bool:
        nonlocal looked, full
        if not full and timer() >= looked + _LOOK:
            used, looked = bytes_used(folder), timer()
            full = used >= _FULL_AT * limit
            if full:
                calls.notify(
                    f"the repository takes {size(used)} of disk = {size(int(limit))}, and no rule lets more go: "
                    "nothing more is visited; raise the setting 'disk', or let 'keep' keep less"
                )
        return full or calls.stop()

    return stop
