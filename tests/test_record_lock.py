"""One writer at a time, and the lock names its holder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recrawl.errors import RepositoryBusy
from recrawl.record.lock import Lock

_HOLDER = """
import sys
from pathlib import Path
from recrawl.record.lock import Lock
with Lock(Path(sys.argv[1]), "crawl", lambda holder: False):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def never(_holder: str) -> bool:
    return False


def test_a_lock_that_another_process_holds_names_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process, pytest.raises(RepositoryBusy) as caught:
        Lock(path, "cycle", never)
    sentence = str(caught.value)
    assert f"recrawl crawl (process {process.pid}) is working on this repository" in sentence
    assert "wait for it to end, or stop it" in sentence


def test_a_holder_that_is_killed_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.kill()
        process.wait()
        with Lock(path, "cycle", never):
            assert "recrawl cycle" in path.read_text()


def test_whoever_waits_is_told_who_holds_it_and_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    told = []
    with holder(path) as process:

        def wait(who: str) -> bool:
            told.append(who)
            if len(told) == 2:
                process.communicate()  # its input ends, so it does
            return True

        Lock(path, "cycle", wait).release()
    assert told == [f"recrawl crawl (process {process.pid})"] * 2


def test_waiting_can_be_given_up(tmp_path: Path) -> None:
    answers = iter([True, True, False])
    with Lock(tmp_path / "lock", "crawl", never), pytest.raises(RepositoryBusy):
        Lock(tmp_path / "lock", "cycle", lambda _: next(answers))
    assert list(answers) == []


def test_after_release_the_next_one_gets_in(tmp_path: Path) -> None:
    for what in ("crawl", "cycle"):
        with Lock(tmp_path / "lock", what, never):
            pass
