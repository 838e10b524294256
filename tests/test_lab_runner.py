"""Many replays in one go (`replays.runner`), and `recrawl lab run` and `recrawl lab compare` around them."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl import cli
from recrawl.book import Directories
from recrawl.errors import UsageError
from recrawl.lab.charts import compared
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays import runner as module
from recrawl.lab.replays.clairvoyant import upper_bound
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.runner import Trial, name_of, needs_of, over_seeds, policy_for, run_all, run_one
from recrawl.lab.synth import SyntheticWorld, write
from tests.complaints import complaint, usage
from tests.test_lab_replay import LIVELY
from tests.world import Result

DAY = 86400.0
CACHE = Path("cache")
SETUP = Setup(budget=4, cycle=DAY, cycles=5)
FIELDS = [
    "policy", "pages", "sites", "cycles", "visits", "found", "change_ratio", "change_ratio_by_cycle",
    "weighted_change_ratio", "recall", "freshness", "age_days", "share_of_clairvoyant", "seconds",
]  # fmt: skip
"""What design §5 promises of every object."""


class Timer:
    """Counts how often it was asked; a second passes each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return float(self.asked)


def some(*texts: str, seeds: int = 1) -> list[Trial]:
    return [Trial(text, replace(SETUP, seed=seed)) for text in texts for seed in range(1, seeds + 1)]


# -- results and their cache ----------------------------------------------------------------------------------------


def test_the_figures_of_a_trial() -> None:
    result = run_one(LIVELY, Trial("round-robin", SETUP), Timer())
    record = replay(LIVELY, policy_for("round-robin", LIVELY, SETUP), SETUP)
    bound, there = upper_bound(LIVELY, *SETUP.moments(len(LIVELY)))
    found = int(record.found.sum())
    assert set(FIELDS) <= result.keys()
    assert (result["found"], result["visits"]) == (found, 20)
    assert result["recall"] == found / there
    assert result["share_of_clairvoyant"] == found / bound
    assert result["weighted_change_ratio"] is None, "this history has no weights"
    assert result["seconds"] == 1.0
    assert (result["budget"], result["cycle_days"], result["seed"]) == (4, 1.0, 1)
    json.dumps(result, allow_nan=False)


def test_cached_results_are_not_measured_again(tmp_path: Path) -> None:
    timer = Timer()
    done: list[Trial] = []
    trials = some("random", "clairvoyant", seeds=2)
    first = run_all(LIVELY, trials, timer, cache=tmp_path / "trials", workers=1)
    assert timer.asked == 8
    second = run_all(LIVELY, trials, timer, cache=tmp_path / "trials", workers=1, progress=done.append)
    assert timer.asked == 8
    assert first == second
    assert done == trials
    run_all(LIVELY, [*trials, *some("round-robin")], timer, cache=tmp_path / "trials", workers=1)
    assert timer.asked == 10, "only what is new"
    run_all(LIVELY, trials, timer, workers=1)
    assert timer.asked == 18, "without a cache all"


@pytest.mark.parametrize("harm", ["", "{", "null", '{"policy": "ran'])
def test_a_result_that_is_damaged_is_measured_again(tmp_path: Path, harm: str) -> None:
    timer = Timer()
    (first,) = run_all(LIVELY, some("random"), timer, cache=tmp_path, workers=1)
    (kept,) = tmp_path.iterdir()
    kept.write_text(harm)
    (second,) = run_all(LIVELY, some("random"), timer, cache=tmp_path, workers=1)
    assert first == second
    assert timer.asked == 4
    assert json.loads(kept.read_text()) == first
    assert list(tmp_path.iterdir()) == [kept]


def other(history: History, **columns: Any) -> History:
    return replace(history, **columns)


@pytest.mark.parametrize(
    "change",
    [
        lambda history: other(history, change="raw"),
        lambda history: other(history, version=np.where(history.version == 4, 5, history.version)),
        lambda history: other(history, time=history.time + 1.0),
        lambda history: other(history, size=history.size + 1),
        lambda history: other(history, weight=np.ones(len(history))),
        lambda history: other(history, clusters=None),
        lambda history: other(history, links=None),
        lambda history: other(history, folders=Directories(history.folders.parent * 0 - 1, history.folders.level)),
    ],
    ids=["change", "version", "time", "size", "weight", "clusters", "links", "folders"],
)
def test_another_history_has_other_results(change: Callable[[History], History]) -> None:
    assert module._history_digest(change(LIVELY)) != module._history_digest(LIVELY)


@pytest.mark.parametrize(
    "trial",
    [
        Trial("round-robin", SETUP),
        *(
            Trial("random", replace(SETUP, **change))
            for change in (
                {"budget": 5},
                {"cycle": 3600.0},
                {"cycles": 6},
                {"seed": 2},
                {"at_start": 0.5},
                {"failures": 0.1},
                {"late": 0.1},
                {"discover": "links"},
                {"samples": 2},
            )
        ),
    ],
    ids=lambda trial: str(trial)[-150:],
)
def test_another_trial_has_another_result(trial: Trial) -> None:
    assert module._cache_path(CACHE, "history", trial) != module._cache_path(CACHE, "history", Trial("random", SETUP))


def test_other_spellings_of_a_policy_are_the_same() -> None:
    one, again = (Trial(text, SETUP) for text in ("fixed-interval(days=3)", " fixed-interval( days = 3 )"))
    assert module._cache_path(CACHE, "history", one) == module._cache_path(CACHE, "history", again)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that stands in for ours, to be changed."""
    for part in module._SOURCES:
        path = tmp_path / part if part.endswith(".py") else tmp_path / part / "one.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    monkeypatch.setattr(module, "files", lambda _: tmp_path)
    module._source_digest.cache_clear()
    yield tmp_path
    module._source_digest.cache_clear()


@pytest.mark.parametrize("part", module._SOURCES)
def test_other_code_has_other_results(code: Path, part: str) -> None:
    before = module._cache_path(CACHE, "history", Trial("random", SETUP))
    path = code / part if part.endswith(".py") else code / part / "deep" / "two.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text("x = 2\n")
    module._source_digest.cache_clear()
    assert module._cache_path(CACHE, "history", Trial("random", SETUP)) != before


def test_the_digest_covers_all_code_of_a_result() -> None:
    """Every part is there, under the name that it is asked for."""
    home = Path(module.__file__).parents[2]
    assert all((home / part).exists() for part in module._SOURCES)


def test_several_workers_give_the_same_results(tmp_path: Path) -> None:
    trials = some("random", "round-robin", "greedy", seeds=2)
    alone = run_all(LIVELY, trials, Timer(), workers=1)
    together = run_all(LIVELY, trials, Timer(), workers=2, cache=tmp_path)
    for one, another in zip(alone, together, strict=True):
        assert {**one, "seconds": 0} == {**another, "seconds": 0}
    assert len(list(tmp_path.iterdir())) == len(trials)


def test_invalid_trials_are_refused_before_any_replay() -> None:
    timer = Timer()
    bare = replace(LIVELY, links=None, carries=frozenset({"folders"}))
    with pytest.raises(UsageError, match="sampling needs links"):
        run_all(bare, some("random", "sampling(neighbours=links)"), timer, workers=1)
    with pytest.raises(UsageError, match="did you mean 'round-robin'"):
        run_all(bare, some("random", "round-robbin"), timer, workers=1)
    assert timer.asked == 0


def test_names_and_needs() -> None:
    assert name_of(" clairvoyant ") == "clairvoyant"
    assert name_of("round-robin( order = fixed )") == "round-robin"
    assert needs_of(["random", "clairvoyant"]) == frozenset()
    assert {"links"} <= needs_of(["random", "sampling(neighbours=links)"])
    assert policy_for("clairvoyant", LIVELY, SETUP).name == "clairvoyant"


# -- over seeds -----------------------------------------------------------------------------------------------------


def result(seed: int, **figures: Any) -> dict[str, Any]:
    plain = dict.fromkeys(module._AVERAGED, 1.0) | {"change_ratio_by_cycle": [0.0, None], "load": []}
    place = {"policy": "random", "budget": 4, "cycle_days": 1.0, "cycles": 2, "change": "text", "pages": 9, "sites": 1}
    return {**place, **plain, "seed": seed, **figures}


def test_means_and_spread_over_seeds() -> None:
    figures = [(10, 0.2, [0.1, 0.3]), (20, 0.4, [0.3, None]), (60, None, [0.2, 0.1])]
    (one,) = over_seeds(
        result(seed, found=found, change_ratio=ratio, change_ratio_by_cycle=by_cycle)
        for seed, (found, ratio, by_cycle) in enumerate(figures, 1)
    )
    assert one["found"] == pytest.approx(30)
    assert one["spread"]["found"] == pytest.approx(math.sqrt((400 + 100 + 900) / 2))
    assert one["change_ratio"] == pytest.approx(0.3), "of those that have one"
    assert one["spread"]["change_ratio"] == pytest.approx(math.sqrt(0.02))
    assert one["spread"]["visits"] == 0
    assert one["change_ratio_by_cycle"] == [pytest.approx(0.2), None]
    assert one["seeds"] == [1, 2, 3]
    assert one["pages"] == 9
    assert "seed" not in one


def test_the_load_of_a_site_is_its_mean_over_the_seeds() -> None:
    loads = [[{"site": "a", "visits": 4, "bytes": 10}, {"site": "b", "visits": 6, "bytes": 2}], []]
    (one,) = over_seeds(result(seed, load=load) for seed, load in enumerate(loads, 1))
    assert one["load"] == [{"site": "b", "visits": 3, "bytes": 1}, {"site": "a", "visits": 2, "bytes": 5}]


def test_only_results_that_differ_in_seed_are_merged() -> None:
    rows = [
        result(1), result(1, budget=8), result(1, cycle_days=2.0), result(1, cycles=3), result(1, policy="x"), result(2)
    ]  # fmt: skip
    groups = over_seeds(rows)
    assert len(groups) == 5
    assert groups[0]["seeds"] == [1, 2]
    assert groups[1] == rows[1], "one seed alone is as it was"


def test_undefined_figures() -> None:
    (one,) = over_seeds(result(seed, change_ratio=None) for seed in (1, 2))
    assert one["change_ratio"] is None
    assert one["spread"]["change_ratio"] is None


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small sites for a week."""
    file = tmp_path_factory.mktemp("trials") / "world.parquet"
    write(
        SyntheticWorld(sites=2, pages=15, days=7, size_min=1500, size_max=3000, links=5, births=0.05, change_rate=0.5),
        file,
    )
    return file


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


Lab = Callable[..., Result]


@pytest.fixture
def lab(cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Lab:
    """`recrawl lab ...` in this process."""
    monkeypatch.setenv("RECRAWL_CACHE", str(cache))
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: object) -> Result:
        capfd.readouterr()
        code = cli.invoke(["lab", *map(str, words), "--no-header"])
        said = capfd.readouterr()
        return Result(code, said.out, said.err)

    return run


def told(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    rows: list[dict[str, Any]] = json.loads(result.out)
    return rows


def test_run_gives_an_object_for_each_policy(lab: Lab, archive: Path) -> None:
    rows = told(lab("run", archive, "--policy", "random", "--policy", "clairvoyant", "--budget", 3, "--json"))
    assert [row["policy"] for row in rows] == ["random", "clairvoyant"]
    for row in rows:
        assert set(FIELDS) <= row.keys()
        assert row["cycles"] == len(row["change_ratio_by_cycle"]) == 7
        assert row["visits"] == 21
        assert (row["sites"], row["change"]) == (2, "text")
        assert 0 <= row["freshness"] <= 1
    assert rows[0]["found"] < rows[1]["found"]
    assert 0.9 < rows[1]["share_of_clairvoyant"] <= 1


def test_run_as_a_table(lab: Lab, archive: Path) -> None:
    result = lab("run", archive, "--policy", "round-robin", "--budget", 3)
    assert result.code == 0
    (line,) = result.out.splitlines()
    cells = line.split("\t")
    assert cells[:4] == ["round-robin", "3", "1", "21"]
    assert len(cells) == 15


def test_the_second_run_is_read_from_the_cache(lab: Lab, archive: Path, cache: Path) -> None:
    words = ["run", archive, "--policy", "greedy", "--budget", 4, "--json"]
    first = told(lab(*words))
    kept = sorted(cache.rglob("*.json"))
    assert told(lab(*words)) == first, "the seconds too"
    assert sorted(cache.rglob("*.json")) == kept
    assert list((cache / "facts").glob("*.npz"))


def test_without_a_cache_nothing_is_written(
    lab: Lab, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECRAWL_CACHE", str(tmp_path / "none"))
    assert lab("run", archive, "--policy", "random", "--no-cache").code == 0
    assert not (tmp_path / "none").exists()


def test_the_cache_is_in_the_usual_folder(
    lab: Lab, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECRAWL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert lab("run", archive, "--policy", "random").code == 0
    assert {path.name for path in (tmp_path / "recrawl").iterdir()} == {"facts", "trials"}


def test_budgets(lab: Lab, archive: Path) -> None:
    """A share of the pages, none at all, more than there are."""
    pages = len(open_history([archive]))
    (share,) = told(lab("run", archive, "--policy", "random", "--budget", 0.1, "--json"))
    assert share["budget"] == round(0.1 * pages)
    (tiny,) = told(lab("run", archive, "--policy", "random", "--budget", 0.0001, "--json"))
    assert tiny["budget"] == 1
    (none,) = told(lab("run", archive, "--policy", "random", "--budget", 0, "--json"))
    assert none["visits"] == none["found"] == 0
    assert none["change_ratio"] is none["share_of_clairvoyant"] is none["success_rate"] is None
    assert none["change_ratio_by_cycle"] == [None] * 7
    assert none["recall"] == 0
    assert lab("run", archive, "--policy", "random", "--budget", 0).out.split("\t")[6] == "-"


@pytest.mark.parametrize("policy", ["round-robin", "random", "clairvoyant", "greedy", "sampling"])
def test_with_room_for_all_every_page_is_visited_in_every_cycle(lab: Lab, tmp_path: Path, policy: str) -> None:
    file = tmp_path / "still.parquet"
    write(SyntheticWorld(sites=1, pages=12, days=4, births=0, removals=0, size_min=1500, size_max=3000, links=5), file)
    pages = len(open_history([file]))
    (row,) = told(lab("run", file, "--policy", policy, "--budget", 1000, "--json"))
    assert row["visits"] == pages * row["cycles"] > pages
    assert row["share_of_clairvoyant"] == row["recall"] == 1


def test_seeds_become_means(lab: Lab, archive: Path) -> None:
    words = ["run", archive, "--policy", "random", "--budget", 3, "--json"]
    apart = [told(lab(*words, "--seed", seed))[0] for seed in (1, 2)]
    (both,) = told(lab(*words, "--seed", 1, "--seed", 2))
    assert both["found"] == pytest.approx((apart[0]["found"] + apart[1]["found"]) / 2)
    assert both["seeds"] == [1, 2]
    assert both["spread"]["found"] == pytest.approx(abs(apart[0]["found"] - apart[1]["found"]) / math.sqrt(2))


def test_duplicate_trials_run_once(lab: Lab, archive: Path) -> None:
    words = ["--policy", "random", "--policy", "random()", "--budget", 1, "--budget", 0.001, "--seeds", 2, "--json"]
    (row,) = told(lab("compare", archive, *words))
    assert row["seeds"] == [1, 2]


def test_other_settings_of_a_run(lab: Lab, archive: Path) -> None:
    plain = ["run", archive, "--policy", "round-robin", "--budget", 5, "--json"]
    usual = told(lab(*plain))[0]
    for words in (
        ["--change", "raw"],
        ["--discover", "links"],
        ["--at-start", 0],
        ["--failures", 0.5],
        ["--cycle", "12h"],
    ):
        (row,) = told(lab(*plain, *words))
        assert {**row, "seconds": 0} != {**usual, "seconds": 0}, words
    assert told(lab(*plain, "--failures", 1))[0]["failed"] == usual["visits"]
    assert told(lab(*plain, "--cycles", 2))[0]["visits"] == 10
    assert told(lab(*plain, "--late", 1))[0]["visits"] == usual["visits"]


def test_compare_over_budgets_cycles_and_seeds(lab: Lab, archive: Path, tmp_path: Path) -> None:
    charts = [tmp_path / f"c.{kind}" for kind in ("png", "svg", "html")]
    words = [
        "--policy",
        "random",
        "--policy",
        "round-robin",
        "--budget",
        2,
        "--budget",
        0.2,
        "--cycle",
        "1d",
        "--cycle",
        "2d",
    ]
    result = lab(
        "compare", archive, *words, "--seeds", 2, "--json", *(word for chart in charts for word in ("--chart", chart))
    )
    rows = told(result)
    assert len(rows) == 8
    assert all(row["seeds"] == [1, 2] and set(FIELDS) <= row.keys() for row in rows)
    assert {row["cycle_days"] for row in rows} == {1, 2}
    assert [line for line in result.err.splitlines() if line.startswith("wrote")] == [
        f"wrote {chart}" for chart in charts
    ]
    assert charts[0].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    drawn = "".join(ET.parse(charts[1]).getroot().itertext())
    for word in ("random", "round-robin", "change ratio", "cycles of 2 days"):
        assert word in drawn
    html = charts[2].read_text()
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert "round-robin" in html


def test_compare_as_a_table_with_its_own_defaults(lab: Lab, archive: Path) -> None:
    result = lab("compare", archive, "--policy", "random", "--workers", 2)
    assert result.code == 0
    budgets = [line.split("\t")[1] for line in result.out.splitlines()]
    assert budgets == ["1", "2"], "a quarter of a per cent and one per cent of so few pages are one visit"


def test_a_chart_of_undefined_figures(tmp_path: Path) -> None:
    row = {**result(1, change_ratio=None), "budget": 0}
    compared([row], "change_ratio", tmp_path / "c.svg")
    assert ET.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


# -- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "round-robbin"], ["did you mean 'round-robin'"]),
        (["--policy", "random(x=1)"], ["random"]),
        (["--policy", ""], ["invalid policy"]),
        (["--policy", "clairvoyant(x=1)"], ["clairvoyant"]),
        (["--policy", "random", "--cycle", "soon"], ["'soon'"]),
        (["--policy", "random", "--cycle", "0d"], ["longer than 0 s"]),
        (["--policy", "random", "--budget", "-1"], ["budget", "-1"]),
        (["--policy", "random", "--budget", "nan"], ["budget"]),
        (["--policy", "random", "--budget", "inf"], ["budget"]),
        (["--policy", "random", "--seed", "-1"], ["seed", "-1"]),
        (["--policy", "random", "--change", "much"], ["'much'"]),
        (["--policy", "random", "--change", "divergence:7"], ["divergence:7"]),
        (["--policy", "random", "--discover", "luck"], ["'luck'"]),
        (["--policy", "random", "--skip", "1000d"], ["cannot skip"]),
        (["--policy", "random", "--skip", "-1d"], ["'-1d'"]),
    ],
    ids=" ".join,
)
def test_run_errors(lab: Lab, archive: Path, words: list[str], said: list[str]) -> None:
    complaint(lab("run", archive, *words), *said)


def test_missing_files_and_other_formats(lab: Lab, tmp_path: Path) -> None:
    complaint(lab("run", tmp_path / "nowhere.parquet", "--policy", "random"), "nowhere.parquet", "does not exist")
    (tmp_path / "notes.txt").write_text("nothing like it")
    complaint(lab("run", tmp_path / "notes.txt", "--policy", "random"), "notes.txt")
    (tmp_path / "text.parquet").write_text("nothing like it")
    complaint(lab("run", tmp_path / "text.parquet", "--policy", "random"), "text.parquet")
    (tmp_path / "empty").mkdir()
    complaint(lab("run", tmp_path / "empty", "--policy", "random"), "empty")


def test_invalid_options_are_refused_before_reading(lab: Lab, archive: Path) -> None:
    usage(lab("run", archive), "--policy")
    usage(lab("run", "--policy", "random"), "ARCHIVE")
    usage(lab("run", archive, "--policy", "random", "--cycles", 0), "--cycles")
    usage(lab("run", archive, "--policy", "random", "--at-start", 2), "--at-start")
    usage(lab("compare", archive, "--policy", "random", "--seeds", 0), "--seeds")
    usage(lab("compare", archive, "--policy", "random", "--workers", 0), "--workers")


def test_compare_errors(lab: Lab, archive: Path, tmp_path: Path) -> None:
    words = ["compare", archive, "--policy", "random"]
    complaint(lab(*words, "--metric", "beauty"), "'beauty'", "change_ratio")
    complaint(lab(*words, "--chart", tmp_path / "c.gif"), "c.gif", ".svg")
    complaint(lab(*words, "--chart", tmp_path / "nowhere" / "c.svg"), "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_needs_columns_a_listing_lacks(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "captures.cdx"
    lines = [(1, "AAA"), (3, "BBB"), (5, "CCC")]
    file.write_text(
        "".join(f"example,a)/ 2024010{day}000000 http://a.example/ text/html 200 {seal} 100\n" for day, seal in lines)
    )
    complaint(lab("run", file, "--policy", "sampling(neighbours=links)"), "sampling needs links", "carries")
    complaint(lab("run", file, "--policy", "random", "--discover", "links"), "needs links")
    complaint(lab("run", file, "--policy", "random", "--change", "significant"), "digests only")
    (row,) = told(lab("run", file, "--policy", "random", "--budget", 1, "--json"))
    assert (row["visits"], row["found"]) == (4, 2)
    assert row["weighted_change_ratio"] is None
