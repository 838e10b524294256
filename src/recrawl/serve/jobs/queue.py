"""Work that takes long, done by the command line in processes of its own, one job at a time.

A job runs at a low priority, must not hold up answers, tells how far it is and can be ended at any time. What it writes
is put on the shelf when it is whole. Jobs are forgotten when the service ends; the files stay.
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
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from recrawl.errors import NotKnown, RecrawlError
from recrawl.repository.words import PROGRESS
from recrawl.serve.jobs.priority import lower_priority
from recrawl.serve.jobs.uploads import Uploads

_LONGEST = 3600.0
"""Seconds after which a job is given up."""
_POLITE = 10
_KEPT = 50
"""Jobs that are remembered."""
_LARGEST = 50_000_000
"""Bytes of an answer; what is larger belongs in a file."""


@dataclass(frozen=True, slots=True)
class JobStep:
    """One command of a job."""

    told: str
    """What is said while it runs."""
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What a job does."""

    name: str
    asked: dict[str, Any]
    """What a client wanted, as it said it."""
    steps: Callable[[Path], Sequence[JobStep]]
    """The commands, given a folder for what is needed in between; the last one prints the answer as JSON."""
    makes: str = ""
    """The file in that folder which is put on the shelf at the end, under the same name."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job, and how far it has come."""

    number: int
    name: str
    asked: dict[str, Any]
    began: float
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    told: str = ""
    finished: float | None = None
    result: Any = None
    file: str = ""
    """What it has put on the shelf."""
    error: str = ""


class Jobs:
    """Runs jobs; every method may be called from any thread."""

    def __init__(
        self,
        shelf: Uploads,
        tell: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._shelf = shelf
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._process: subprocess.Popen[str] | None = None
        self._ending = False
        self.changes = 0
        """Grows whenever a job does."""
        atexit.register(self.close)  # it would go on without us

    def begin(self, work: Work) -> Job | None:
        """Begin a job; None when one runs already."""
        with self._lock:
            if self._ending or (self._jobs and self._jobs[-1].state == "running"):
                return None
            number = self._jobs[-1].number + 1 if self._jobs else 1
            job = Job(number, work.name, work.asked, self._clock())
            self._jobs = [*self._jobs[1 - _KEPT :], job]
            self.changes += 1
        threading.Thread(target=self._run, args=(work, number), name="job", daemon=True).start()
        return job

    def listed(self) -> list[Job]:
        """The jobs that are remembered, newest first."""
        with self._lock:
            return self._jobs[::-1]

    def find(self, number: int) -> Job:
        """One job; NotKnown when it is not remembered."""
        found = next((job for job in self.listed() if job.number == number), None)
        if found is None:
            raise NotKnown("there is no such job")
        return found

    def last(self, name: str) -> Job | None:
        """The newest job of a name."""
        return next((job for job in self.listed() if job.name == name), None)

    def cancel(self, number: int) -> Job:
        """End a job; one that has ended stays as it is."""
        if self.find(number).state == "running":
            self._update(number, state="cancelled", told="", finished=self._clock())
            self._kill()
        return self.find(number)

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._ending = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _run(self, work: Work, number: int) -> None:
        with tempfile.TemporaryDirectory(prefix="recrawl-job-") as scratch:
            try:
                out = "null"
                for step in work.steps(Path(scratch)):
                    self._update(number, told=step.told)
                    out = self._command(number, step.words, Path(scratch))
                if work.makes:
                    self._shelve(Path(scratch) / work.makes, work.makes)
                result = json.loads(out)
                self._update(number, state="done", told="", result=result, file=work.makes, finished=self._clock())
            except (RecrawlError, OSError, ValueError) as error:
                self._update(number, state="failed", told="", error=str(error), finished=self._clock())
        self._tell("job", {"name": work.name, "number": number, "state": self.find(number).state})

    def _shelve(self, made: Path, name: str) -> None:
        part = self._shelf.part(name)
        with made.open("rb") as source, part.open("wb") as target:
            while piece := source.read(1 << 20):
                target.write(piece)
        self._shelf.keep(part, name)

    def _command(self, number: int, words: Sequence[str], scratch: Path) -> str:
        """What a command printed; RecrawlError with what it complained of when it failed."""
        printed = scratch / "printed"
        temporary = scratch / "temporary"
        temporary.mkdir(exist_ok=True)
        kept = {"RECRAWL_PROGRESS": "lines", "TMPDIR": str(temporary), "RECRAWL_CACHE": str(scratch / "cache")}
        with printed.open("wb") as out, self._lock:
            if self._ending or next(job.state for job in self._jobs if job.number == number) != "running":
                raise RecrawlError("it was ended")
            process = self._process = subprocess.Popen(  # noqa: S603 - our own program; values never become options
                [sys.executable, "-m", "recrawl", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, **kept},
                start_new_session=True,
            )
        lower_priority(process.pid, _POLITE)
        timer = threading.Timer(_LONGEST, self._kill)
        timer.start()
        try:
            complaint = self._hear(number, process)
        finally:
            timer.cancel()
            with self._lock:
                if self._process is process:  # the next job may have begun
                    self._process = None
        if process.returncode:
            raise RecrawlError(complaint.removeprefix("recrawl: ")[-500:] or "it was ended, or took over an hour")
        if printed.stat().st_size > _LARGEST:
            raise RecrawlError("its answer is too large to be told here: use the command line")
        return printed.read_text(encoding="utf-8", errors="replace")

    def _hear(self, number: int, process: subprocess.Popen[str]) -> str:
        """Hear what a command tells until it ends; what it said last beside how far it was."""
        last = ""
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                if line.startswith(PROGRESS):
                    self._update(number, told=line.removeprefix(PROGRESS).strip()[:300])
                else:
                    last = line.strip() or last
        process.wait()
        return last

    def _update(self, number: int, **changes: Any) -> None:
        """Change a job that runs; one that was ended stays so."""
        with self._lock:
            self.changes += 1
            self._jobs = [
                replace(job, **changes) if job.number == number and job.state == "running" else job
                for job in self._jobs
            ]
