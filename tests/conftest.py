"""Fixtures that end-to-end tests share; what they are made of is in `world.py`."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from recrawl.crawl.visits import reader_pool
from tests.receivers import find_postgres, postgres
from tests.warm_readers import WarmReaders
from tests.world import Page, Repo, Site

if TYPE_CHECKING:
    from recrawl.cluster.layout import Layout
    from tests.object_store import ObjectStore

# How long an example takes says more of the machine's load than of the code: times belong in benchmarks/.
# Examples are the same for everybody; to look for new ones: pytest --hypothesis-profile searching.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=5, stateful_step_count=20)
settings.register_profile("searching", deadline=None, max_examples=1000)

MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 4 << 30
START_READER = reader_pool.start_reader


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples in the inner loop (the option --hypothesis-profile wins); keep files of tests in memory.

    Small crawls on a disk wait for `fsync` longer than they compute.
    """
    config.pluginmanager.register(OnlyModulesWithExamples())
    os.environ.setdefault("RECRAWL_CHECK", "1")  # all invariants of visits, after every event
    settings.load_profile("quick" if config.option.markexpr == "quick" else "steady")
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED and os.access(MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for `-n auto`: as many as cores for quick tests, twice as many else.

    The other tests wait half of their time: for time limits of servers and clients, for processes, for browsers.
    """
    cores = len(os.sched_getaffinity(0))
    return cores if config.option.markexpr == "quick" else 2 * cores


@pytest.fixture(scope="session", autouse=True)
def warm_readers() -> Iterator[None]:
    """Crawls in this process fork their readers from a process that has imported everything."""
    with closing(WarmReaders()) as warm, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_pool, "start_reader", warm.start_reader)
        yield


@pytest.fixture
def cold_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of this test start as they do for users: as processes of their own, and as children of this one."""
    monkeypatch.setattr(reader_pool, "start_reader", START_READER)


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
    r"^\s*(?:from|import) (?:subprocess|multiprocessing|socket|playwright)\b"
    r"|^\s*(?:from tests\.|from tests import )(?:crashes|living|misbehaving|old_repository|serving|world|test_cli)"
    r"|TimeLapseServer|GeneratedWeb|run_all|workers=",
    re.MULTILINE,
)
"""In the source of a test file: it starts servers, browsers or processes, or shares the modules that do."""


class OnlyModulesWithExamples:
    """Do not import modules without `>>>` to search them for doctests: most have none.

    A plug-in, because the hooks of this file do not see `src`.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        collectors = yield
        if any(isinstance(it, DoctestModule) for it in collectors) and ">>>" not in file_path.read_text("utf-8"):
            return [it for it in collectors if not isinstance(it, DoctestModule)]
        return collectors


@functools.cache
def _needs_more(file: Path) -> bool:
    return file.name.startswith("test_") and _NEEDS_MORE.search(file.read_text(encoding="utf-8")) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the other files when only quick tests are selected."""
    return True if config.option.markexpr == "quick" and _needs_more(collection_path) else None


_SHARED = re.compile(r"""@pytest\.fixture\(scope="module".*\)\ndef (\w+)""")


@functools.cache
def _shared_fixtures(file: Path) -> frozenset[str]:
    """The fixtures that tests of a file share."""
    return frozenset(_SHARED.findall(file.read_text(encoding="utf-8")) if file.name.startswith("test_") else ())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as `quick`, for `make quick`: no server, browser or process of their own, and not slow.

    Tests that share a fixture go to one worker process (`--dist loadgroup`), so that it is made once.
    """
    for item in items:
        fixtures = set(item.fixturenames) if isinstance(item, pytest.Function) else set()
        if _shared_fixtures(item.path) & fixtures:
            item.add_marker(pytest.mark.xdist_group(item.path.name))
        if not (item.get_closest_marker("slow") or _needs_more(item.path) or "postgres_url" in fixtures):
            item.add_marker("quick")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for all tests of a session: the URL of a database, with the password by reference."""
    if find_postgres() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with postgres("walrus") as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECRAWL_TEST_PASSWORD", "walrus")
        yield url.replace("@", ":${RECRAWL_TEST_PASSWORD}@")


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """An S3 server for all tests of a session; its keys are in the environment."""
    from tests.object_store import KEYS, ObjectStore  # loads moto

    with ObjectStore().running() as made, pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        made.create_bucket()
        yield made


_CLUSTERS = itertools.count()


@pytest.fixture
def new_cluster(
    tmp_path: Path, postgres_url: str, object_store: ObjectStore, request: pytest.FixtureRequest
) -> Callable[[int], Layout]:
    """Makes the cluster of a test, with so many shards, in `tmp_path / "cluster"`."""
    from recrawl.cluster.layout import create_cluster  # loads psycopg

    name = re.sub(r"\W+", "_", request.node.name.lower())[:40] + f"_{next(_CLUSTERS)}"

    def create(shards: int) -> Layout:
        store, archive = f"{postgres_url}?schema={name}", object_store.url(name)
        return create_cluster(tmp_path / "cluster", store=store, archive=archive, shards=shards)

    return create
