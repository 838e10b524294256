"""What another policy or budget would have found: the repository's own history replayed, one comparison at a time.

The work is done by the command line in processes of its own (`recrawl export`, then `recrawl lab compare`), at a low
priority: it may take minutes, must not hold up answers, and can be ended at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

_LONGEST = 3600.0
"""Seconds after which a replay is given up."""
_POLITE = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be compared."""

    policies: tuple[str, ...]
    budgets: tuple[float, ...]
    cycle: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A comparison, and how far it has come."""

    question: Question
    state: Literal["running", "done", "failed"] = "running"
    told: str = "Reading the history ..."
    rows: tuple[dict[str, Any], ...] = ()
    error: str = ""


class Replays:
    """Runs comparisons; every method may be called from any thread."""

    def __init__(self, folder: Path, tell: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None) -> None:
        self._folder = folder
        self._tell = tell
        self._lock = threading.Lock()
        self._last: Replay | None = None
        self._process: subprocess.Popen[str] | None = None
        self._ending = False
        atexit.register(self.close)  # it would go on without us

    def last(self) -> Replay | None:
        """The comparison that runs, or that ran last."""
        with self._lock:
            return self._last

    def begin(self, question: Question) -> bool:
        """Begin a comparison; False when one runs already."""
        with self._lock:
            if self._ending or (self._last is not None and self._last.state == "running"):
                return False
            self._last = Replay(question)
        threading.Thread(target=self._run, args=(question,), name="replay", daemon=True).start()
        return True

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._ending = True
            process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _run(self, question: Question) -> None:
        with tempfile.TemporaryDirectory(prefix="recrawl-replay-") as scratch:
            file = Path(scratch) / "history.parquet"
            export = self._command("-C", str(self._folder), "export", str(file), "--json")
            if export is not None:
                self._update(told="Replaying it under the policies ...")
                arguments = [part for name in question.policies for part in ("--policy", name)]
                arguments += [part for budget in question.budgets for part in ("--budget", f"{budget:g}")]
                compare = ["lab", "compare", str(file), *arguments, "--cycle", question.cycle]
                out = self._command(*compare, "--seeds", "1", "--workers", "1", "--no-cache", "--json")
                if out is not None:
                    self._update(state="done", told="", rows=tuple(json.loads(out)))
        last = self.last()
        self._tell("job", {"name": "replay", "state": last.state if last else "failed"})

    def _command(self, *arguments: str) -> str | None:
        """What a command printed; None when it failed, which is noted."""
        with self._lock:
            if self._ending:
                return None
            process = self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "recrawl", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _POLITE)
        try:
            out, err = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err = "it took more than an hour"
        if process.returncode == 0:
            return out
        self._update(state="failed", told="", error=err.strip().removeprefix("recrawl: ")[-500:] or "it was ended")
        return None

    def _update(self, **changes: Any) -> None:
        with self._lock:
            if self._last is not None:
                self._last = replace(self._last, **changes)
