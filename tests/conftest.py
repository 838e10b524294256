"""Fixtures that end-to-end tests share; what they are made of is in `world.py`."""

from __future__ import annotations

import functools
import re
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


_NEEDS_MORE = re.compile(
    r"^\s*(?:from|import) (?:subprocess|multiprocessing|socket|playwright|tests\.(?!complaints)\w+|tests\b)"
    r"|TimeLapseServer|GeneratedWeb|run_all|workers=",
    re.MULTILINE,
)
"""In the source of a test file: it starts servers, browsers or processes, or shares the modules that do."""


_LONG = {
    "test_choose_crawlers.py",
    "test_choose_sampling.py",
    "test_compare_change.py",
    "test_discover_known_urls.py",
    "test_discover_sitemaps.py",
    "test_golden.py",
    "test_lab_charts.py",
    "test_lab_replay.py",
    "test_lab_synth.py",
    "test_learn_clusters.py",
    "test_learn_distance.py",
    "test_learn_mixture.py",
    "test_learn_objectives.py",
    "test_learn_posteriors.py",
    "test_policies.py",
}
"""Test files that take more than 5 s of CPU."""


@functools.cache
def _needs_more(file: Path) -> bool:
    return file.name in _LONG or (
        file.name.startswith("test_") and _NEEDS_MORE.search(file.read_text(encoding="utf-8")) is not None
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the other files when only quick tests are selected."""
    return True if config.option.markexpr == "quick" and _needs_more(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as `quick`, for `make quick`: no server, browser or process of their own, and not slow."""
    for item in items:
        if not (item.get_closest_marker("slow") or _needs_more(item.path)):
            item.add_marker("quick")
