"""What most commands begin with: common options, finding, opening and locking the repository, Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from recrawl.cli.terminal.output import note
from recrawl.crawl.options import CrawlOptions
from recrawl.record import storage
from recrawl.record.storage import Storage
from recrawl.record.store import open_store
from recrawl.repository.opening import held, load, options_of, seed_url, with_bytes
from recrawl.settings import Settings

__all__ = [
    "AllowPrivate",
    "Bytes",
    "Delay",
    "Stop",
    "folder_of",
    "load",
    "options_of",
    "patience",
    "reading",
    "seed_url",
    "with_bytes",
    "writing",
]

AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow private and loopback IP addresses (for local tests).")
]
Delay = Annotated[
    float | None, typer.Option("--delay", metavar="SECONDS", help="Seconds between requests to one server.")
]

Bytes = Annotated[
    str,
    typer.Option(
        "--bytes", metavar="AMOUNT", help="Limit the bytes per cycle, e.g. 200MB; 0 is no limit. Default: the setting."
    ),
]


def folder_of(ctx: typer.Context) -> Path:
    """The folder of the repository; refuses one that a newer recrawl wrote."""
    folder = storage.find(ctx.obj or Path())
    open_store(folder).close()
    return folder


@contextmanager
def reading(ctx: typer.Context) -> Iterator[Storage]:
    """Open the repository for queries; never waits for a writer, never blocks one."""
    with Storage(folder_of(ctx)) as open_repository:
        yield open_repository


@contextmanager
def writing(
    folder: Path, what: str, options: CrawlOptions, values: Settings, *, wait: bool = False
) -> Iterator[Storage]:
    """Open and lock the repository for writing; repairs the index if the last writer crashed."""
    with held(folder, what, options, values, wait=patience(wait), tell=note) as open_repository:
        yield open_repository


def patience(wait: bool) -> Callable[[str], bool]:
    """What to do while another command holds the lock: print who does once and wait, or give up."""
    noted: list[str] = []

    def again(holder: str) -> bool:
        if wait and not noted:
            noted.append(holder)
            note(f"waiting for {holder} ...")
        if wait:
            time.sleep(0.2)
        return wait

    return again


class Stop:
    """Ctrl-C: the first one ends the run cleanly, the second one at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        note("\nstopping after recording what was downloaded (Ctrl-C again to stop at once)")

    def __call__(self) -> bool:
        return self.requested
