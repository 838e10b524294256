"""Long commands run as jobs: child processes at low priority, one job at a time.

A job reports progress and can be cancelled at any time. Its output file appears among the uploads when it is complete.
Jobs are forgotten when the service stops; their files stay.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from recrawl.errors import NotKnown, RecrawlError
from recrawl.repository.processes import kill_group, lines_until_exit, lower_priority
from recrawl.repository.results.words import PROGRESS
from recrawl.serve.jobs.uploads import Uploads

JOB_RUNNING = "Another job is running: wait for it, or cancel it."
_TIME_LIMIT = 3600.0
"""Seconds after which a job is killed."""
_NICE = 10
_HISTORY = 50
"""Jobs kept in memory."""
_MAX_RESULT = 50_000_000
"""Most bytes of a job's JSON result."""


@dataclass(frozen=True, slots=True)
class JobStep:
    """One command of a job."""

    message: str
    """Progress message while it runs."""
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job runs."""

    name: str
    request: dict[str, Any]
    """The client's request."""
    steps: Callable[[Path], Sequence[JobStep]]
    """Returns the commands, given a temporary folder; the last one prints the result as JSON."""
    output: str = ""
    """Output file in that folder, moved to the uploads at the end."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job and its progress."""

    number: int
    name: str
    request: dict[str, Any]
    began: float
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    message: str = ""
    """Progress message."""
    finished: float | None = None
    result: Any = None
    file: str = ""
    """Name of its output file among the uploads."""
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the job under the API's keys: `asked` is the request, `told` the progress message."""
        fields = asdict(self)
        return {"asked": fields.pop("request"), "told": fields.pop("message"), **fields}


class Jobs:
    """Runs jobs; every method may be called from any thread."""

    def __init__(
        self,
        uploads: Uploads,
        publish: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._uploads = uploads
        self._publish = publish
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = False
        self.changes = 0
        """Incremented at every change of a job."""
        atexit.register(self.close)  # a child process would outlive this one

    def start(self, spec: JobSpec) -> Job | None:
        """Start a job; return None if one is running."""
        with self._lock:
            if self._closing or (self._jobs and self._jobs[-1].state == "running"):
                return None
            number = self._jobs[-1].number + 1 if self._jobs else 1
            job = Job(number, spec.name, spec.request, self._clock())
            self._jobs = [*self._jobs[1 - _HISTORY :], job]
            self.changes += 1
        threading.Thread(target=self._run, args=(spec, number), name="job", daemon=True).start()
        return job

    def newest_first(self) -> list[Job]:
        """Return the known jobs, newest first."""
        with self._lock:
            return self._jobs[::-1]

    def find(self, number: int) -> Job:
        """Return a job; raise NotKnown if it is unknown or forgotten."""
        found = next((job for job in self.newest_first() if job.number == number), None)
        if found is None:
            raise NotKnown(f"there is no job {number}")
        return found

    def last(self, name: str) -> Job | None:
        """Return the newest job of a name."""
        return next((job for job in self.newest_first() if job.name == name), None)

    def cancel(self, number: int) -> Job:
        """Cancel a job; one that has ended stays as it is."""
        if self.find(number).state == "running":
            self._update(number, state="cancelled", message="", finished=self._clock())
            self._kill()
        return self.find(number)

    def close(self) -> None:
        """Kill the running job and start no more."""
        with self._lock:
            self._closing = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            process = self._process
        if process is not None:
            kill_group(process)

    def _run(self, spec: JobSpec, number: int) -> None:
        with tempfile.TemporaryDirectory(prefix="recrawl-job-") as scratch:
            try:
                out = "null"
                for step in spec.steps(Path(scratch)):
                    self._update(number, message=step.message)
                    out = self._command(number, step.words, Path(scratch))
                if spec.output:
                    self._keep_output(Path(scratch) / spec.output, spec.output)
                result = json.loads(out)
                self._update(number, state="done", message="", result=result, file=spec.output, finished=self._clock())
            except (RecrawlError, OSError, ValueError) as error:
                self._update(number, state="failed", message="", error=str(error), finished=self._clock())
        self._publish("job", {"name": spec.name, "number": number, "state": self.find(number).state})

    def _keep_output(self, made: Path, name: str) -> None:
        partial = self._uploads.partial(name)
        shutil.copyfile(made, partial)
        self._uploads.commit(partial, name)

    def _command(self, number: int, words: Sequence[str], scratch: Path) -> str:
        """Run a command and return its standard output; raise RecrawlError with its error message if it fails."""
        printed = scratch / "printed"
        temporary = scratch / "temporary"
        temporary.mkdir(exist_ok=True)
        variables = {"RECRAWL_PROGRESS": "lines", "TMPDIR": str(temporary), "RECRAWL_CACHE": str(scratch / "cache")}
        with printed.open("wb") as out, self._lock:
            if self._closing or next(job.state for job in self._jobs if job.number == number) != "running":
                raise RecrawlError("the job was cancelled")
            process = self._process = subprocess.Popen(  # noqa: S603 - our own program; values never become options
                [sys.executable, "-m", "recrawl", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        lower_priority(process.pid, _NICE)
        timer = threading.Timer(_TIME_LIMIT, self._kill)
        timer.start()
        try:
            error = self._read_progress(number, process)
        finally:
            timer.cancel()
            with self._lock:
                if self._process is process:  # the next job may have started
                    self._process = None
        if process.returncode:
            raise RecrawlError(_told(error)[-500:] or "the job was killed, or took over an hour")
        if printed.stat().st_size > _MAX_RESULT:
            raise RecrawlError(f"the result is larger than {_MAX_RESULT:,} bytes; use the command line")
        return printed.read_text(encoding="utf-8", errors="replace")

    def _read_progress(self, number: int, process: subprocess.Popen[bytes]) -> str:
        """Read a command's stderr until the command ends; return its last line that is not progress."""
        last = ""
        assert process.stderr is not None
        with process.stderr:
            for line in lines_until_exit(process, process.stderr):
                if line.startswith(PROGRESS):
                    self._update(number, message=line.removeprefix(PROGRESS).strip()[:300])
                else:
                    last = line.strip() or last
        process.wait()
        return last

    def _update(self, number: int, **changes: Any) -> None:
        """Change a running job; one that has ended stays as it is."""
        with self._lock:
            self.changes += 1
            self._jobs = [
                replace(job, **changes) if job.number == number and job.state == "running" else job
                for job in self._jobs
            ]


def _told(line: str) -> str:
    """What a command said was wrong: with --json it is an object with the message."""
    try:
        return str(json.loads(line)["error"])
    except (ValueError, TypeError, KeyError):
        return line.removeprefix("recrawl: ")
