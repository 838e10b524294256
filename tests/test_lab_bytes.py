"""A replay whose cycles may receive only so many bytes."""

from __future__ import annotations

import pytest

from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.runner import policy_for
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.settings import size


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    file = tmp_path_factory.mktemp("web") / "world.parquet"
    write(SyntheticWorld(seed=2, sites=2, pages=30, days=10, size_min=1000, size_max=9000, links=5), file)
    return open_history([file])


@pytest.mark.parametrize("text", ["round-robin", "shock", "greedy", "fixed-interval(days=2)"])
def test_no_cycle_receives_more_than_its_byte_limit(history: History, text: str) -> None:
    setup = Setup(budget=20, bytes=30_000.0, cycle=86400.0, cycles=9)
    record = replay(history, policy_for(text, history, setup), setup)
    assert record.visits.max() < 20, "it is the bytes that bound"
    # A page may have grown since it was last seen, so the last batch can be a little more than was expected.
    assert record.bytes.max() <= 40_000
    assert record.bytes.mean() > 20_000


def test_enough_bytes_change_nothing(history: History) -> None:
    plain, ample = (Setup(budget=20, bytes=amount, cycle=86400.0, cycles=9) for amount in (0.0, 1e12))
    one, other = (replay(history, policy_for("shock", history, plain), setup).summary() for setup in (plain, ample))
    assert one == other


def test_amounts() -> None:
    assert [size(text) for text in ("0", "5", "3 kB", "2M", "1.5gb", "1TB")] == [0, 5, 3000, 2e6, 1.5e9, 1e12]
    for text in ("", "-1", "5 apples", "1e9", "MB", "1.2.3MB", "9" * 40):
        with pytest.raises(UsageError, match="invalid number of bytes"):
            size(text)
    with pytest.raises(UsageError, match="bytes"):
        Setup(budget=1, bytes=-1.0, cycle=1.0, cycles=1)
