"""A repository as a command opens it: found from the folder we are in, locked when it is to be written."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from recrawl.cli.output import note
from recrawl.crawl.options import CrawlOptions
from recrawl.record import storage
from recrawl.record.storage import Storage
from recrawl.record.store import Store
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
    bool, typer.Option("--allow-private", help="Allow private and loopback addresses (for local tests).")
]
Delay = Annotated[
    float | None, typer.Option("--delay", metavar="SECONDS", help="Seconds between requests to one server.")
]

Bytes = Annotated[
    str,
    typer.Option(
        "--bytes", metavar="AMOUNT", help="Most bytes a cycle, as 200MB; 0 is no limit. Default: the setting."
    ),
]


def folder_of(ctx: typer.Context) -> Path:
    """The repository that the command is about; one of a newer version is refused before anything is done."""
    folder = storage.find(ctx.obj or Path())
    Store(folder / "recrawl.db").close()
    return folder


@contextmanager
def reading(ctx: typer.Context) -> Iterator[Storage]:
    """The repository, for questions; never blocks, never blocked."""
    with Storage(folder_of(ctx)) as open_repository:
        yield open_repository


@contextmanager
def writing(
    folder: Path, what: str, options: CrawlOptions, values: Settings, *, wait: bool = False
) -> Iterator[Storage]:
    """The repository, for one writer at a time; mended if the last writer crashed."""
    with held(folder, what, options, values, wait=patience(wait), tell=note) as open_repository:
        yield open_repository


def patience(wait: bool) -> Callable[[str], bool]:
    """What is done while another command holds the repository: say so once and wait, or give up."""
    told: list[str] = []

    def again(holder: str) -> bool:
        if wait and not told:
            told.append(holder)
            note(f"waiting for {holder} ...")
        if wait:
            time.sleep(0.2)
        return wait

    return again


class Stop:
    """Ctrl-C, politely: the first one ends the run cleanly, the second one at once."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._hear)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        note("\nstopping; what was downloaded is being recorded (again to stop at once)")

    def __call__(self) -> bool:
        return self.asked
