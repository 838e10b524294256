"""`recrawl demo` ends by itself, and what it tells is sane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.complaints import complaint
from tests.world import command


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A short demo that is kept."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    result = command("demo", "--cycles", 2, "--keep", folder, "--json")
    assert result.code == 0, result.err
    assert result.err == ""
    return folder, json.loads(result.out)


def test_figures(played: tuple[Path, dict[str, object]]) -> None:
    _, told = played
    days = told["days"]
    assert isinstance(days, list)
    assert [day["kind"] for day in days] == ["crawl", "cycle", "cycle"]
    assert days[0]["new"] > 300
    for day in days:
        assert 0.5 < day["freshness"] <= 1
        assert day["finished"] is True
        assert day["failed"] <= 0.02 * day["visits"]
        names = ("new", "changed", "unchanged", "gone", "failed", "skipped", "missing")
        assert day["visits"] == sum(day[name] for name in names)
    for day in days[1:]:
        assert day["visits"] <= day["budget"]
        assert day["changed"] > 0
    assert days == sorted(days, key=lambda day: day["at"])


def test_totals(played: tuple[Path, dict[str, object]]) -> None:
    folder, told = played
    status = json.loads(command("-C", folder, "status", "--json").out)
    for name in ("pages", "versions", "visits"):
        assert told[name] == status[name]
    assert told["versions"] >= told["days"][0]["new"]  # type: ignore[index]
    assert status["sites"] == 5
    assert told["found"]


def test_the_kept_repository_can_be_queried(played: tuple[Path, dict[str, object]]) -> None:
    folder, _ = played
    assert json.loads(command("-C", folder, "changes", "--json").out)
    assert command("-C", folder, "search", "the").code == 0


def test_demo_as_text() -> None:
    result = command("demo", "--cycles", 1, "--budget", 0.1)
    assert result.code == 0, result.err
    for word in ("a web of 5 sites", "crawl:", "cycle:", "fresh", "versions of"):
        assert word in result.out


def test_mistakes(tmp_path: Path) -> None:
    complaint(command("demo", "--policy", "round-robbin"), "did you mean 'round-robin'")
    complaint(command("demo", "--budget", 0, "--cycles", 1), "budget")
    (tmp_path / "file").write_text("x")
    complaint(command("demo", "--keep", tmp_path / "file", "--cycles", 1), "file", code=1)
    assert command("init", tmp_path / "there").code == 0
    complaint(command("demo", "--keep", tmp_path / "there", "--cycles", 1), "already", code=1)
