"""Fixtures that end-to-end tests share; what they are made of is in `world.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.world import Page, Repo, Site

# How long an example takes says more of the machine's load than of the code: times belong in benchmarks/.
# Examples are the same for everybody; to look for new ones: pytest --hypothesis-profile searching.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None, max_examples=1000)
settings.load_profile("steady")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """An empty repository that makes no pauses between requests and gives up early."""
    return Repo.create(tmp_path / "repo")


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    """Starts a server with these pages: `site({"/": b"<p>Hello"})`."""
    with ExitStack() as stack:

        def start(pages: Mapping[str, Page] | None = None) -> Site:
            return stack.enter_context(Site(pages))

        yield start
