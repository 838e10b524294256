"""What the crawler sends to the login process, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.fetch.access import Profile
from recrawl.fetch.fetcher import FetchLimits


@dataclass(frozen=True, slots=True)
class LoginTask:
    """A login to be made; printed, it shows no secret."""

    profile: Profile
    agent: str
    limits: FetchLimits
    private: bool
    chromium: str = ""
    """Path of the browser; empty for a login by plain requests."""
    seconds: float = 60.0
    """Longest time for the browser."""


@dataclass(frozen=True, slots=True)
class LoginResult:
    """The end of a login."""

    cookies: list[str] = field(default_factory=list, repr=False)
    """All cookies of the site, one line each."""
    problem: str = ""
    """Why there is no session; never holds a secret."""


class BrowserTask(NamedTuple):
    """A form for the browser process."""

    chromium: str
    agent: str
    url: str
    form: str
    fields: tuple[tuple[str, str], ...]
    seconds: float

    def __repr__(self) -> str:
        return f"BrowserTask({self.url!r})"


class BrowserRequest(NamedTuple):
    """A request of the browser."""

    number: int
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    navigates: bool


class BrowserAnswer(NamedTuple):
    """Its answer; status 0 if there is none."""

    number: int
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
