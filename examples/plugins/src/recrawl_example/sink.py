"""A sink: a line in a file for each change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recrawl import Repository
from recrawl.repository.sinks.protocol import Event


class LogFile:
    """Appends changes to a file."""

    max_events = 10

    def __init__(self, target: str, secret: str, repository: Repository) -> None:
        del secret
        self._file: Path = repository.folder / target

    def deliver(self, events: Sequence[Event]) -> None:
        """Append a batch."""
        with self._file.open("a", encoding="utf-8") as log:
            log.writelines(f"{event.id} {event.outcome} {event.url}\n" for event in events)

    def close(self) -> None:
        """The file is closed after each batch."""
