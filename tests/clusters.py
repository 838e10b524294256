"""A cluster in this process: workers and a coordinator in threads, as many as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from recrawl import settings
from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.run_requests import Kind, follow_run, request_run
from recrawl.cluster.worker import ShardWorker
from recrawl.repository.results.runs import Report

LEASE = 3.0


@contextmanager
def working(*processes: ShardWorker | ClusterCoordinator) -> Iterator[None]:
    """Run workers and coordinators until the end of the block."""
    threads = [threading.Thread(target=process.run, daemon=True) for process in processes]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for process in processes:
            process.end()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


def workers(layout: Layout, folder: Path) -> list[ShardWorker]:
    """A worker for each shard."""
    return [ShardWorker(layout, shard, folder, seconds=LEASE, notify=print) for shard in range(layout.shards)]


def configure(folder: Path, *urls: str, **values: Any) -> str:
    """Write the settings of a cluster, with these seeds; returns them."""
    file = folder / "recrawl.toml"
    settings.write_values(file, {"delay": 0.0, "timeout": 600.0, "readers": 1} | values)
    seeds = tuple(settings.Seed(url, allow_private=True) for url in urls)
    settings.write_seeds(file, seeds)
    return file.read_text(encoding="utf-8")


def run(layout: Layout, folder: Path, kind: Kind, **options: Any) -> Report:
    """Ask for a run and wait for its end."""
    file = folder / "recrawl.toml"
    with closing(layout.open()) as cluster:
        asked, resumed = request_run(
            cluster, kind, settings.load(file), file.read_text(encoding="utf-8"), shards=layout.shards, **options
        )
    return follow_run(layout, asked, resumed=resumed, notify=print)
