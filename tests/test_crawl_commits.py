"""Commits: by size, by time and at the end of a run; how a policy divides a cycle into batches makes no difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.crawl.state.deliveries import Deliveries
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.model import Outcomes
from recrawl.record.rows import Batch
from recrawl.record.storage import Storage
from tests.crashes import Bench, judge

_DAY = 86400.0
_VISITS = 300


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    path = tmp_path_factory.mktemp("world") / "world.parquet"
    write(SyntheticWorld(seed=7, sites=2, pages=200, days=4, size_min=1000, size_max=1500, links=8), path)
    with Bench(Archive.open([path])) as made:
        yield made


@pytest.mark.parametrize("policy", ["shock", "round-robin"])
def test_a_cycle_of_300_visits_is_committed_by_size(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    bench.clock.set(bench.archive.start + _DAY)
    folder = bench.create(tmp_path / "repo")
    assert bench.crawl(folder).finished
    bench.clock.advance(2 * _DAY)
    sizes: list[int] = []
    original = Storage.commit

    def counted(self: Storage, batch: Batch, bodies: Any) -> Any:
        sizes.append(len(batch.visits))
        return original(self, batch, bodies)

    monkeypatch.setattr(Storage, "commit", counted)
    assert bench.cycle(folder, policy, _VISITS, commit_visits=100, commit_seconds=1e9).finished
    with_visits = [size for size in sizes if size]
    assert sum(with_visits) == _VISITS
    # Three by size; and before what the sitemaps of a site list is recorded, what has come by then, of two sites.
    assert len(with_visits) <= 3 + 2, f"{policy} was committed in {with_visits}"
    judge(folder)


def rows(seen: Outcomes) -> list[list[int]]:
    assert seen.received is not None
    return [seen.pages.tolist(), seen.what.tolist(), seen.received.tolist()]


def test_what_was_sent_is_sent_again(bench: Bench, tmp_path: Path) -> None:
    """Whether it was recorded or not; lines that a crash has cut, and those of other cycles, are removed."""
    folder = bench.create(tmp_path / "repo")
    with Storage(folder) as storage:
        assert Deliveries(storage, 3).read() == []
        batches = [Outcomes(np.arange(n), np.full(n, 4, np.int8), np.arange(n) * 7) for n in (2, 0, 3)]
        for batch in batches:
            Deliveries(storage, 3).add(batch)
        file = folder / "models" / "batches-of-cycle.jsonl"
        whole = file.read_text()
        for end in (
            "",
            '{"cycle": 3, "sent": [[1, 2',
            '{"cycle": 4, "sent": []}\n',
            '{"cycle": 3, "held": []}\n',
            "x\n",
        ):
            file.write_text(whole + end)
            read = Deliveries(storage, 3).read()
            assert [rows(it) for it in read] == [rows(it) for it in batches]
            assert file.read_text() == whole
        assert Deliveries(storage, 4).read() == []
