"""Runs a turn in a process of its own and hears what it tells."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recrawl.serve.jobs.priority import lower_priority

Message = dict[str, Any]
_POLITE = 5
"""By how much people who look at the dashboard go before the crawl, where both want the same processor."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended: with a summary, stopped before there was one, or with an error."""

    summary: Message | None = None
    error: str = ""


class Runner(Protocol):
    """Takes one turn at a time."""

    def run(self, order: Message, tell: Callable[[Message], None]) -> Ended:
        """Take a turn; returns when it has ended."""

    def stop(self) -> None:
        """End the turn that is being taken, cleanly; may be called from any thread and at any time."""


class ProcessRunner:
    """Turns in child processes."""

    def __init__(self, folder: Path, grace: float = 60.0) -> None:
        self._folder = folder
        self._grace = grace
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(self, order: Message, tell: Callable[[Message], None]) -> Ended:
        """Take a turn in a child process."""
        child = subprocess.Popen(  # noqa: S603 - our own module, with no text of anybody's
            [sys.executable, "-m", "recrawl.serve.turn_worker", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the service, which then stops us
        )
        lower_priority(child.pid, _POLITE)
        with self._lock:
            self._child = child
        last: Message = {}
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(BrokenPipeError, ValueError):  # it may have ended already
                child.stdin.write(json.dumps(order) + "\n")
                child.stdin.flush()
            for line in child.stdout:
                last = _understood(line) or last
                tell(last)
            code = child.wait()
        finally:
            with self._lock:
                self._child = None
            _close(child)
        if "error" in last:
            return Ended(error=str(last["error"]))
        if "summary" not in last:
            return Ended(error=f"the crawling process ended early (exit code {code}); its cycle will be resumed")
        return Ended(summary=last["summary"])

    def stop(self) -> None:
        """End its input, which it takes as the order to stop; if it does not within the grace, end it."""
        with self._lock:
            child = self._child
        if child is None or child.stdin is None or child.stdin.closed:
            return
        with contextlib.suppress(OSError, ValueError):
            child.stdin.close()
        threading.Thread(target=_insist, args=(child, self._grace), daemon=True).start()


def _understood(line: str) -> Message | None:
    try:
        message = json.loads(line)
    except json.JSONDecodeError:
        return None
    return message if isinstance(message, dict) else None


def _insist(child: subprocess.Popen[str], grace: float) -> None:
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        child.kill()  # what it had committed stays, the rest is done again


def _close(child: subprocess.Popen[str]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                pipe.close()
    if child.poll() is None:
        child.kill()
        child.wait()
