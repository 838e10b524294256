"""`lab synth` and `lab serve` as commands; what they are made of has tests of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import KINDS, SyntheticWorld
from recrawl.operations import members_of
from recrawl.parameters import SITE_KINDS, Synthesis
from tests.complaints import complaint, usage
from tests.world import Repo, command

SMALL = ["--sites", "1", "--pages", "12", "--days", "3"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small archive."""
    file = tmp_path_factory.mktemp("lab") / "world.parquet"
    assert command("lab", "synth", file, *SMALL).code == 0
    return file


def test_synth_reports_what_it_wrote(tmp_path: Path) -> None:
    told = json.loads(command("lab", "synth", tmp_path / "w.parquet", *SMALL, "--json").out)
    archive = Archive.open([tmp_path / "w.parquet"])
    assert told["sites"] == archive.sites
    assert told["rows"] == len(archive.times)
    assert told["bytes"] == (tmp_path / "w.parquet").stat().st_size


def test_synth_is_deterministic(world: Path, tmp_path: Path) -> None:
    command("lab", "synth", tmp_path / "again.parquet", *SMALL)
    command("lab", "synth", tmp_path / "other.parquet", *SMALL, "--seed", 2)
    assert (tmp_path / "again.parquet").read_bytes() == world.read_bytes()
    assert (tmp_path / "other.parquet").read_bytes() != world.read_bytes()


def test_synth_lists_its_parameters() -> None:
    assert "births=" in command("lab", "synth", "--parameters").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "birth=1"], ["did you mean 'births'"]),
        (["--set", "births"], ["NAME=VALUE"]),
        (["--set", "births=many"], ["births", "many"]),
        (["--kinds", "newz"], ["did you mean 'news'"]),
        (["--days", "nan"], ["days"]),
    ],
    ids=" ".join,
)
def test_synth_errors(tmp_path: Path, words: list[str], said: list[str]) -> None:
    complaint(command("lab", "synth", tmp_path / "w.parquet", *words), *said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--days", "-1"], ["--sites", "0"], ["--seed", "-1"]], ids=" ".join)
def test_synth_out_of_range(tmp_path: Path, words: list[str]) -> None:
    usage(command("lab", "synth", tmp_path / "w.parquet", *words), words[0])
    assert list(tmp_path.iterdir()) == []


def test_the_options_of_synth_say_the_defaults_of_its_world() -> None:
    """They are declared for the command line and the API, which load no world."""
    declared = {name: one.about.default for name, one in members_of(Synthesis).items() if not one.many}
    assert declared == {name: getattr(SyntheticWorld(), name) for name in declared}
    assert tuple(KINDS) == SITE_KINDS


def test_synth_to_an_impossible_path(tmp_path: Path) -> None:
    complaint(command("lab", "synth", tmp_path / "nowhere" / "w.parquet", *SMALL), "nowhere")
    (tmp_path / "folder.parquet").mkdir()
    result = command("lab", "synth", tmp_path / "folder.parquet", *SMALL)
    complaint(result, "folder.parquet", code=result.code)
    assert result.code in (1, 2)


def started(*words: object) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A server, and what it says of itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", "lab", "serve", *map(str, words), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.communicate()
    return process, json.loads("".join(lines))


def test_serve_until_ctrl_c(world: Path, tmp_path: Path) -> None:
    process, told = started(world, "--speed", 0, "--at", "1d")
    try:
        assert told["speed"] == 0
        with urllib.request.urlopen(told["address"]) as answer:
            assert answer.status == 200
        repo = Repo.create(tmp_path / "repo")
        assert repo.crawl(told["sites"][0])["new"] > 5
    finally:
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Traceback" not in out + err
    assert "stopped" in err


def test_serve_errors(world: Path, tmp_path: Path) -> None:
    complaint(command("lab", "serve", tmp_path / "nowhere.parquet"), "nowhere.parquet")
    complaint(command("lab", "serve", world, "--at", "soon", "--port", 0), "'soon'")
    usage(command("lab", "serve", world, "--port", 99999), "--port")
    complaint(command("lab", "serve", world, "--speed", "nan", "--port", 0), "speed")
    complaint(command("lab", "serve", world, "--speed=-1", "--port", 0), "speed")


def test_serve_on_a_port_in_use(world: Path) -> None:
    process, told = started(world)
    try:
        port = told["address"].rstrip("/").rpartition(":")[2]
        result = command("lab", "serve", world, "--port", port)
        complaint(result, port, code=result.code)
        assert result.code in (1, 2)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=120)
