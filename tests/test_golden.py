"""Golden numbers: what every policy visits and finds on one small generated archive, with two budgets.

A change of these numbers is a change of what people get. If it is meant, renew them and look at the difference:

    python -m tests.test_golden
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.book import Clusters
from recrawl.columns import Floats
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.clairvoyant import upper_bound
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.runner import policy_for
from recrawl.lab.synth import SyntheticWorld, write
from tests.test_policies import TEXTS

FILE = Path(__file__).with_name("golden.json")
RENEW = "python -m tests.test_golden"
WORLD = SyntheticWorld(
    seed=3, sites=5, pages=30, days=44, size_min=1500, size_max=4000, links=10, change_rate=0.12, births=0.02,
    publications=0.1, removals=0.001, sidebar_days=20, noise=0.03,
)  # fmt: skip
SETUPS = {
    "scarce": {"share": 0.08, "cycle": 86400.0, "cycles": 44, "at_start": 0.3, "late": 0.2},
    "ample": {"share": 0.7, "cycle": 4 * 86400.0, "cycles": 11, "late": 0.2},
}
"""A budget that most policies want to spend better, with visits spread over the day; and one that some do not spend.
Visits fail, a sitemap tells part of the truth, answers come late, and pages have weights."""
LIMITED = ("anchor-depth(per_site=2)",)
"""Policies with a limit of the user's, which leave part of the budget unspent."""
ALL = (*TEXTS, *LIMITED, "clairvoyant")
SAME = (
    {"random", "round-robin(order=random)"},  # one algorithm, known by two names
    {"fixed-interval(days=0)", "fixed-interval(days=400, fill=true)"},  # in both, the longest wait comes first
)
"""Policies with the same results by design; all others differ."""
Numbers = dict[str, list[int]]


def made(folder: Path) -> History:
    """The archive's history. Its clusters are made here: those of the lab rest on sums whose last bits may differ."""
    write(WORLD, folder / "world.parquet")
    history = open_history([folder / "world.parquet"], words=True)
    of = (history.folder % 6).astype(np.int32)
    nearest = np.array([np.argsort(np.abs(np.arange(6) - own), kind="stable") for own in range(6)], np.int32)
    weight: Floats = np.arange(len(history), dtype=np.float64) % 5 + 1
    return replace(history, clusters=Clusters(of, nearest), weight=weight)


def setup_for(history: History, name: str) -> Setup:
    """One of the setups; all have hints, failures and weights."""
    options: dict[str, Any] = dict(SETUPS[name])
    budget = round(options.pop("share") * len(history))
    hints = "sitemap:noisy:0.8,0.6"
    return Setup(budget=budget, seed=1, samples=1, failures=0.04, hints=hints, weighted=True, **options)


def numbers(history: History, text: str) -> Numbers:
    """Per setup: visits, updates found, and a checksum of what was visited, with what result, in every cycle."""
    found = {}
    for name in SETUPS:
        setup = setup_for(history, name)
        record = replay(history, policy_for(text, history, setup), setup)
        of_cycles = (record.visits, record.found, record.failed, record.bytes)  # which fail depends on the order
        checksum = 0
        for column in (*of_cycles, record.site_visits, record.site_found):
            checksum = zlib.crc32(column.astype("<i8").tobytes(), checksum)
        found[name] = [int(record.visits.sum()), int(record.found.sum()), checksum]
    return found


def of_the_history(history: History) -> Numbers:
    """What no policy has a part in: the size of the history; per setup the most that can be found, and all there is."""
    setups = {name: setup_for(history, name) for name in SETUPS}
    bounds = {name: [*upper_bound(history, *setup.moments(len(history)))] for name, setup in setups.items()}
    return {"rows": [len(history), len(history.time)], **bounds}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return made(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def golden() -> dict[str, Numbers]:
    kept: dict[str, Numbers] = json.loads(FILE.read_text())
    return kept


def test_the_history_is_the_same(history: History, golden: dict[str, Numbers]) -> None:
    assert of_the_history(history) == golden["history"]


@pytest.mark.slow
def test_every_policy_finds_what_it_found(history: History, golden: dict[str, Numbers]) -> None:
    now = {text: numbers(history, text) for text in ALL}
    other = {text: (golden.get(text), found) for text, found in now.items() if golden.get(text) != found}
    assert not other, f"golden and present numbers; if this is meant: {RENEW}"


def test_there_are_no_numbers_of_removed_policies(golden: dict[str, Numbers]) -> None:
    assert golden.keys() - {"history", *ALL} == set(), RENEW


def test_policies_that_differ_have_different_results(golden: dict[str, Numbers]) -> None:
    """The world is neither dead nor so alive that every visit finds something, and no two policies agree by chance."""
    for setup in SETUPS:
        bound = golden["history"][setup][0]
        assert 0 < golden["random"][setup][1] < bound
        assert 0.9 * bound <= golden["clairvoyant"][setup][1] <= bound
    texts: dict[str, set[str]] = {}
    for text in ALL:
        texts.setdefault(json.dumps(golden[text]), set()).add(text)
    assert sorted(map(sorted, (group for group in texts.values() if len(group) > 1))) == sorted(map(sorted, SAME))


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
