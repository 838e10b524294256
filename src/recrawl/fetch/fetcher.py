"""What the crawler gives a fetcher and needs of it: `recrawl.fetch.http.Client`, a plug-in, or a program outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from recrawl.model import Answer, Validators


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one download."""

    max_bytes: int = 10_000_000
    connect_seconds: float = 10.0
    total_seconds: float = 60.0
    stall_seconds: float = 20.0
    """Maximum time at less than 1 byte per second."""


@dataclass(slots=True)
class Request:
    """A download to be made. Treat it as immutable: it is not frozen for the same reason as `Answer`."""

    url: str
    validators: Validators | None = None
    private: bool = False
    max_bytes: int = 0
    """Overrides the client's limit; 0 keeps it."""
    cut: bool = False
    """Truncate the body at the limit instead of failing."""
    identity: bool = False
    """Ask for a body without compression and take it as it comes, for a server that labels bodies wrongly."""
    accepts: Callable[[str], bool] | None = None
    """Whether to download a body of this content type; None accepts all."""
    post: bytes | None = None
    """Body of a POST request; None makes it a GET."""
    headers: tuple[str, ...] = ()
    """Further header lines, as `Name: value`."""


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


def libcurl(**options: Any) -> Fetcher:
    """The fetcher that most runs use."""
    from recrawl.fetch.http import Client  # lazy: commands that only read have options but no fetcher

    return Client(**options)
