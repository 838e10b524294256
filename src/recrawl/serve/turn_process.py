"""Runs a turn in a child process (`turn_worker`) and reads its progress messages."""

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

from recrawl.repository.processes import kill_group, lines_until_exit, lower_priority

Message = dict[str, Any]
STOP_SECONDS = 30.0
"""Seconds that a turn has to stop cleanly before it is killed."""
_NICE = 5
"""Niceness of the crawl above the web server's, so that requests are answered first."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended: with a summary, without one (stopped early), or with an error."""

    summary: Message | None = None
    error: str = ""


class TurnRunner(Protocol):
    """Runs one turn at a time."""

    def run(self, order: Message, on_message: Callable[[Message], None]) -> TurnResult:
        """Run a turn; return when it has ended."""

    def stop(self) -> None:
        """Stop the running turn cleanly; may be called from any thread at any time."""


class ProcessRunner:
    """Runs turns in child processes."""

    def __init__(self, folder: Path, grace: float = STOP_SECONDS) -> None:
        self._folder = folder
        self._grace = grace
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, order: Message, on_message: Callable[[Message], None]) -> TurnResult:
        """Run a turn in a child process."""
        child = subprocess.Popen(  # noqa: S603 - our own module; no client input in the command line
            [sys.executable, "-m", "recrawl.serve.turn_worker", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches the service, which then stops this process
        )
        lower_priority(child.pid, _NICE)
        with self._lock:
            self._child = child
        last: Message = {}
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(BrokenPipeError, ValueError):  # the child may have exited already
                child.stdin.write(json.dumps(order).encode() + b"\n")
                child.stdin.flush()
            for line in lines_until_exit(child, child.stdout):
                last = _parse(line) or last
                on_message(last)
            code = child.wait()
        finally:
            with self._lock:
                self._child = None
            _close(child)
        if "error" in last:
            return TurnResult(error=str(last["error"]))
        if "summary" not in last:
            return TurnResult(error=f"the crawling process ended early (exit code {code}); its cycle will be resumed")
        return TurnResult(summary=last["summary"])

    def stop(self) -> None:
        """Close the child's stdin, which makes it stop; kill it if it still runs after the grace period."""
        with self._lock:
            child = self._child
        if child is None or child.stdin is None or child.stdin.closed:
            return
        with contextlib.suppress(OSError, ValueError):
            child.stdin.close()
        threading.Thread(target=_kill_after, args=(child, self._grace), daemon=True).start()


def _parse(line: str) -> Message | None:
    try:
        message = json.loads(line)
    except json.JSONDecodeError:
        return None
    return message if isinstance(message, dict) else None


def _kill_after(child: subprocess.Popen[bytes], grace: float) -> None:
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        kill_group(child)  # committed visits stay; the rest is repeated


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):
                pipe.close()
    kill_group(child)
    child.wait()
