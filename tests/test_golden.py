"""Golden numbers: what every policy finds on one small generated archive, to the last visit.

A change of these numbers is a change of what people get. If it is meant, renew them and look at the difference:

    python -m tests.test_golden
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recrawl.book import Clusters
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.clairvoyant import upper_bound
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.trials import policy_for
from recrawl.lab.synth import SyntheticWorld, write
from tests.test_policies import TEXTS

FILE = Path(__file__).with_name("golden.json")
RENEW = "python -m tests.test_golden"
WORLD = SyntheticWorld(
    seed=1, sites=4, pages=40, days=40, size_min=1500, size_max=4000, links=10,
    change_rate=0.05, template_changes=0.5, sidebar_days=40, noise=0.01,
)  # fmt: skip
ALL = (*TEXTS, "clairvoyant")
Numbers = dict[str, int]


def made(folder: Path) -> History:
    """The archive's history. Its clusters are made here: those of the lab rest on sums whose last bits may differ."""
    write(WORLD, folder / "world.parquet")
    history = open_history([folder / "world.parquet"], words=True)
    of = (history.folder % 6).astype(np.int32)
    nearest = np.array([np.argsort(np.abs(np.arange(6) - own), kind="stable") for own in range(6)], np.int32)
    return replace(history, clusters=Clusters(of, nearest))


def setup_for(history: History) -> Setup:
    """A twentieth of the pages a day."""
    return Setup(budget=round(0.05 * len(history)), cycle=86400.0, cycles=40, seed=1, samples=1)


def numbers(history: History, text: str) -> Numbers:
    """What is measured."""
    setup = setup_for(history)
    told = replay(history, policy_for(text, history, setup), setup).summary()
    return {"visits": told["visits"], "found": told["found"]}


def of_the_history(history: History) -> Numbers:
    """What no policy has a part in."""
    bound, there = upper_bound(history, *setup_for(history).moments(len(history)))
    return {"pages": len(history), "rows": len(history.time), "bound": bound, "there": there}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return made(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def golden() -> dict[str, Numbers]:
    kept: dict[str, Numbers] = json.loads(FILE.read_text())
    return kept


def test_the_history_is_the_same(history: History, golden: dict[str, Numbers]) -> None:
    assert of_the_history(history) == golden["history"]


def test_every_policy_finds_what_it_found(history: History, golden: dict[str, Numbers]) -> None:
    now = {text: numbers(history, text) for text in ALL}
    other = {text: (golden.get(text), found) for text, found in now.items() if golden.get(text) != found}
    assert not other, f"golden and present numbers; if this is meant: {RENEW}"


def test_there_are_no_numbers_of_removed_policies(golden: dict[str, Numbers]) -> None:
    assert golden.keys() - {"history", *ALL} == set(), RENEW


def test_the_world_distinguishes_policies(golden: dict[str, Numbers]) -> None:
    """The world is neither dead nor so alive that every visit finds something, and policies differ in it."""
    bound = golden["history"]["bound"]
    assert 0 < golden["random"]["found"] < 0.7 * bound
    assert 0.95 * bound <= golden["clairvoyant"]["found"] <= bound
    assert len({golden[text]["found"] for text in ALL if text in golden}) > len(ALL) / 3


def renew() -> None:
    """Write the file; say what is another than before."""
    before = json.loads(FILE.read_text()) if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        history = made(Path(folder))
        now = {"history": of_the_history(history)} | {text: numbers(history, text) for text in ALL}
    lines = (f"{json.dumps(text)}: {json.dumps(found)}" for text, found in now.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for text in sorted(before.keys() | now.keys()):
        if before.get(text) != now.get(text):
            sys.stdout.write(f"{text}: {before.get(text)} -> {now.get(text)}\n")


if __name__ == "__main__":
    renew()
