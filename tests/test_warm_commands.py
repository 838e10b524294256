"""Commands that are forked for the examples of the docs behave as processes of their own."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_commands import WarmCommands
from tests.world import command


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    with WarmCommands(tmp_path_factory.mktemp("warm")) as warm:
        yield warm


@pytest.mark.parametrize("words", [["init", "here", "--json"], ["ad"], ["-C", "nowhere", "status"], ["import", "-"]])
def test_a_forked_command_does_what_one_of_its_own_does(warm: WarmCommands, tmp_path: Path, words: list[str]) -> None:
    ends = []
    for name, start in (("forked", [str(warm.client)]), ("own", [sys.executable, "-m", "recrawl"])):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run([*start, *words], cwd=folder, input="x", capture_output=True, text=True, check=False)
        printed = [text.replace(str(folder), "FOLDER") for text in (done.stdout, done.stderr)]
        ends.append((done.returncode, *printed, sorted(str(it.relative_to(folder)) for it in folder.rglob("*"))))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_forked_command_ends_with_its_client(
    warm: WarmCommands, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    assert command("lab", "synth", tmp_path / "world.parquet", "--sites", 1, "--pages", 10, "--days", 2).code == 0
    words = [str(warm.client), "lab", "serve", str(tmp_path / "world.parquet"), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told: list[bytes] = []
        while not told or told[-1] != b"}\n":
            told.append(process.stdout.readline())
            assert told[-1]
        with urllib.request.urlopen(json.loads(b"".join(told))["address"]) as answer:
            assert answer.status == 200, "it serves, so it handles signals"
        process.send_signal(number)
        assert process.wait(60) == code
        assert select.select([process.stdout], [], [], 60)[0], "the end of its output, which the command held open"
        assert process.stdout.read() == b""
