"""What the crawler sends to the render process, and what it gets back."""

from __future__ import annotations

from typing import NamedTuple

from recrawl.characters import storable


class RenderConfig(NamedTuple):
    """The configuration of the render process."""

    chromium: str
    agent: str
    seconds: float
    """Longest time for a page."""
    requests: int
    """Most requests of a page."""
    max_bytes: int
    """Longest rendered page."""
    screenshot_bytes: int
    """Largest screenshot."""


class RenderTask(NamedTuple):
    """A page to be rendered."""

    ticket: int
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    screenshot: bool
    """Whether a screenshot is taken."""


class Wanted(NamedTuple):
    """A request of the page that is being rendered."""

    request: int
    url: str


class Supplied(NamedTuple):
    """The answer to a request of the page; status 0 if there is none."""

    request: int
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Rendered(NamedTuple):
    """A page after its scripts have run."""

    ticket: int
    html: str = ""
    problem: str = ""
    """Why it could not be rendered, or has no screenshot; without `html` the plain page counts."""
    requests: int = 0
    refused: int = 0
    """Requests beyond the limit, and those that are never made: other methods than GET, frames, navigations."""
    picture: bytes = b""
    """The screenshot, as PNG."""
    width: int = 0
    height: int = 0


_LONGEST_PROBLEM = 300
_WIDEST = 1 << 16


def bounded_rendering(shown: Rendered, most: int) -> Rendered:
    """What the render process has sent, within bounds: HTML that can be stored, at most `most` characters."""
    html, problem = storable(shown.html, most), storable(shown.problem, _LONGEST_PROBLEM)
    width, height = (min(max(size, 0), _WIDEST) for size in (shown.width, shown.height))
    return shown._replace(html=html, problem=problem, width=width, height=height)
