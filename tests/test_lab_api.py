"""The lab for programs: `recrawl.lab.replay`, `recrawl.lab.compare` and `History.read`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from recrawl import cli, lab
from recrawl.book import Book
from recrawl.choose import Choice, make_policy
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.replays.runner import Trial, run_all, setup_for
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.model import Picks
from tests.world import Result

Recrawl = Callable[..., Result]


class OldestFirst:
    """A policy from outside recrawl that counts its cycles."""

    name: ClassVar[str] = "oldest-first"
    source: ClassVar[str] = "this test"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.cycles = 0

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        self.cycles += 1
        known = np.flatnonzero(book.known)
        pages = known[np.argsort(book.last_try[known], kind="stable")][:budget]
        yield Picks(pages, np.ones(len(pages)), "is oldest")


@pytest.fixture
def recrawl(capfd: pytest.CaptureFixture[str]) -> Recrawl:
    def run(*words: Any) -> Result:
        capfd.readouterr()
        code = cli.invoke([*map(str, words)])
        return Result(code, *capfd.readouterr())

    return run


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("api") / "world.parquet"
    write(SyntheticWorld(sites=2, pages=20, days=6, size_min=1500, size_max=3000, links=6), file)
    return file


@pytest.fixture(scope="module")
def history(archive: Path) -> lab.History:
    return lab.History.read(archive)


def _cli(recrawl: Recrawl, *words: Any) -> list[dict[str, Any]]:
    result = recrawl("lab", *words, "--no-cache", "--workers", 1, "--json")
    assert result.code == 0, result.err
    return [_untimed(row) for row in json.loads(result.out)]


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "seconds"}


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("shock", {}, []),
        ("sampling(d=1)", {"budget": 3, "seed": 4}, ["--budget", 3, "--seed", 4]),
        ("clairvoyant", {"cycle": "12h", "cycles": 5}, ["--cycle", "12h", "--cycles", 5]),
        ("ncis", {"hints": "sitemap:honest", "failures": 0.1}, ["--hints", "sitemap:honest", "--failures", 0.1]),
        ("optimal-age", {"importance": "pagerank", "cost": "bytes"}, ["--importance", "pagerank", "--cost", "bytes"]),
        (
            "random",
            {"bytes": 20e3, "at_start": 0.5, "late": 0.2},
            ["--bytes", "20kB", "--at-start", 0.5, "--late", 0.2],
        ),
        ("greedy", {"discover": "links", "cycle": 43200}, ["--discover", "links", "--cycle", "12h"]),
    ],
)
def test_replay_gives_the_figures_of_lab_run(
    recrawl: Recrawl, archive: Path, history: lab.History, policy: str, options: dict[str, Any], words: list[Any]
) -> None:
    (row,) = _cli(recrawl, "run", archive, "--policy", policy, *words)
    result = lab.replay(history, policy, **options)
    figures = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert _untimed(figures) == row
    assert next(iter(figures)) == "policy"
    assert (result.found, result.change_ratio, result.freshness) == (
        row["found"],
        row["change_ratio"],
        row["freshness"],
    )


def test_compare_gives_the_rows_of_lab_compare(recrawl: Recrawl, archive: Path, history: lab.History) -> None:
    words = ["--policy", "random", "--policy", "greedy", "--budget", 2, "--budget", 0.2, "--seeds", 2]
    rows = lab.compare(history, ["random", "greedy"], budgets=[2, 0.2], seeds=2)
    for row in rows:
        row["spread"].pop("seconds")
    expected = _cli(recrawl, "compare", archive, *words)
    for row in expected:
        row["spread"].pop("seconds")
    assert [_untimed(row) for row in rows] == expected
    assert len(rows) == 4


def test_a_policy_object_gives_the_same_figures_as_its_text(history: lab.History) -> None:
    by_text = lab.replay(history, "sampling(d=1)", budget=3)
    by_object = lab.replay(history, make_policy("sampling(d=1)"), budget=3)
    assert _untimed(by_object.as_dict()) == _untimed(by_text.as_dict())


def test_a_replay_works_on_a_copy_of_a_policy_object(history: lab.History) -> None:
    policy = OldestFirst()
    first, second = (lab.replay(history, policy, budget=2, cycles=3) for _ in range(2))
    assert policy.cycles == 0
    assert first.policy == "tests.test_lab_api:OldestFirst"
    assert _untimed(first.as_dict()) == _untimed(second.as_dict())


def test_policies_that_cannot_be_pickled_run_in_this_process(history: lab.History) -> None:
    class Local(OldestFirst):
        name: ClassVar[str] = "local"

    setup = setup_for(history, 2, 86400.0, 3)
    trials = [Trial(policy, setup) for policy in ("random", Local(), OldestFirst())]
    results = run_all(history, trials, Clock(), workers=2)
    assert [result["policy"] for result in results] == ["random", "local", "tests.test_lab_api:OldestFirst"]
    assert results[1]["found"] == results[2]["found"]


def test_a_class_text_gives_the_same_figures_as_its_object(history: lab.History) -> None:
    by_text = lab.replay(history, "tests.test_lab_api:OldestFirst", budget=2)
    assert _untimed(by_text.as_dict()) == _untimed(lab.replay(history, OldestFirst(), budget=2).as_dict())


def test_objects_from_outside_are_not_cached(history: lab.History, tmp_path: Path) -> None:
    for _ in range(2):
        lab.compare(history, ["random", OldestFirst()], budgets=[2], seeds=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


class Clock:
    """A clock that a worker process can get."""

    def __call__(self) -> float:
        return 0.0


@pytest.mark.parametrize("wrong", [{"budget": -1}, {"budget": float("nan")}, {"cycle": 0}, {"cycle": "5x"}])
def test_invalid_numbers_are_refused(history: lab.History, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        lab.replay(history, "random", **wrong)


def test_an_unknown_option_is_refused(history: lab.History) -> None:
    with pytest.raises(UsageError, match="unknown option weighted; use hints, bytes"):
        lab.replay(history, "random", weighted=True)  # type: ignore[call-arg]


def test_clusters_must_be_read_for_policies_that_need_them(archive: Path, history: lab.History) -> None:
    with pytest.raises(UsageError, match="read the history with clusters=True"):
        lab.replay(history, "sampling(neighbours=clusters)")
    with_clusters = lab.History.read(archive, clusters=True)
    assert lab.replay(with_clusters, "sampling(neighbours=clusters)").visits > 0


def test_read_takes_one_path_or_several(archive: Path, tmp_path: Path, history: lab.History) -> None:
    assert lab.History.read(str(archive.parent)).version.tolist() == history.version.tolist()
    cache = tmp_path / "facts"
    assert len(lab.History.read([archive, str(archive)], "raw", cache=cache)) == len(history)
    assert list(cache.iterdir())
    with pytest.raises(BadArchive):
        lab.History.read(tmp_path / "nowhere")


def test_a_script_needs_no_guard(archive: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from recrawl import lab\n"
        f"history = lab.History.read({str(archive)!r}, change='divergence:0.2')\n"
        "print(lab.replay(history, 'random', budget=2).visits > 0)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
