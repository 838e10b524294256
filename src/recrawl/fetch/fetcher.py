"""What the crawler needs of a fetcher: `recrawl.fetch.http.Client`, a plug-in, or a program outside."""

from __future__ import annotations

from typing import Protocol

from recrawl.fetch.transfer import Request
from recrawl.model import Answer, Validators


class Fetcher(Protocol):
    """Runs downloads concurrently; used by one thread."""

    @property
    def room(self) -> int:
        """Number of downloads that may still be started now."""

    @property
    def busy(self) -> int:
        """Number of downloads under way."""

    def start(self, ticket: int, request: Request) -> None:
        """Start a download; `wait` returns its answer with the same ticket."""

    def wait(self, seconds: float) -> list[tuple[int, Answer]]:
        """Run the downloads for up to this time; returns as soon as something happens."""

    def watch(self, fd: int) -> None:
        """Make `wait` return early when this descriptor becomes readable."""

    def unwatch(self, fd: int) -> None:
        """Undo `watch`."""

    def request_head(self, url: str, validators: Validators | None, *, identity: bool = False) -> bytes:
        """The head of the request for this URL, for the archive; empty if it is not known."""

    def close(self) -> None:
        """Abort all downloads."""
