"""GeneratedWeb: generated sites that change over time, served over HTTP on this machine."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from recrawl.columns import DAY
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer, app


class GeneratedWeb:
    """A web of generated sites on loopback, whose clock stands still until it is advanced.

    The parameters are those of `recrawl lab synth`: `sites`, `pages` (of a site), `days`, `seed` and so on. Without
    other parameters it is one site of 30 pages over 30 days, on its second day.
    """

    urls: list[str]
    """The front page of each site."""
    file: Path
    """The history of all sites, as an Archive Parquet file."""

    def __init__(self, **parameters: Any) -> None:
        self._world = SyntheticWorld(**{"sites": 1, "pages": 30, "days": 30.0, **parameters})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="recrawl-")))
        self.file = folder / "web.parquet"
        write(self._world, self.file)
        archive = Archive.open([self.file])
        self._clock = Clock(archive.start + DAY, 0.0, time.monotonic)
        server = self._stack.enter_context(TimeLapseServer(app(archive, self._clock)))
        self.urls = [server.url_of(f"https://{host}/") for host in archive.sites]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def now(self) -> float:
        """The time of this web in seconds since 1970: the clock for `recrawl.init` and `recrawl.open`."""
        return self._clock.now()

    def advance(self, *, days: float = 0.0, hours: float = 0.0) -> None:
        """Let time pass: pages change, appear and vanish."""
        self._clock.advance(days * DAY + hours * 3600)
