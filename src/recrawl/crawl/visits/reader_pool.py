"""A pool of reader processes. A page that blocks or kills its process costs only itself.

Tasks are sent in batches, since a message costs more than parsing most pages. A process gets a batch only when it is
idle and then reads it from the pipe at once, so sending never blocks. When a batch misses its deadline the process is
killed and replaced, and its pages are tried again one by one: the page at fault is found and recorded as a failure. So
it is when the process dies, when it needs more memory than it may have, and when it sends what is no reading.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from recrawl.child_processes import ChildProcess, can_fork, fork, start_module
from recrawl.compare.parsing.media_types import PDF, has_pdf
from recrawl.crawl.options import CrawlOptions, StartReader
from recrawl.crawl.visits.messages import BrokenMessage, ReaderConfig, Reading, Scan, Task, received
from recrawl.crawl.visits.servers import Server, noise_table
from recrawl.model import Answer, Failure

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from recrawl.crawl.visits.machine import AbsentRead, PageVisit

BATCH = 32
"""Maximum number of pages per message."""
BATCH_BYTES = 2_000_000
START_SECONDS = 30.0
"""Extra time for the first batch of a process, which has to start."""
_MAX_MESSAGE = 1 << 30
_MEMORY = 512 << 20
_MEMORY_OF_BYTE = 60
"""Bytes of memory that a reader may take, and for each byte of the largest page that is downloaded."""

_DETAIL = {
    Failure.PARSE_TIMEOUT: "parsing this page took too long",
    Failure.PARSE_CRASH: "the reader process crashed on this page",
}


def start_reader() -> tuple[ChildProcess, Connection]:
    """Start a reader process, and return it with our end of its pipe; it ends when that closes."""
    return fork(_read_tasks) if can_fork() else start_module("recrawl.crawl.visits.reader_process", errors=None)


def _read_tasks(connection: Connection) -> None:
    from recrawl.crawl.visits.reader_process import read_tasks  # lazy: only a reader loads the parser

    read_tasks(connection)


class _Process:
    """One reader process and its current batch."""

    def __init__(self, config: ReaderConfig, start: StartReader | None) -> None:
        self._child, self.connection = (start or start_reader)()
        self._try_send(config)
        self.batch: list[Task | Scan] = []
        self._deadline = 0.0
        self.fresh = True
        """Whether it has read no batch yet."""

    def send(self, batch: list[Task | Scan], now: float, seconds: float) -> None:
        self.batch = batch
        self._deadline = now + seconds + (START_SECONDS if self.fresh else 0.0)
        self._try_send(batch)

    def receive(self) -> list[Reading]:
        readings = received(self.connection.recv_bytes(_MAX_MESSAGE), [task.ticket for task in self.batch])
        self.batch, self.fresh = [], False
        return readings

    @property
    def ended(self) -> bool:
        return self._child.poll() is not None

    def _try_send(self, message: ReaderConfig | list[Task | Scan]) -> None:
        """Send a message; that the process has ended shows when its answer is collected."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def seconds_left(self, now: float) -> float:
        return self._deadline - now

    def stop(self) -> None:
        self.connection.close()
        self._child.kill()
        self._child.wait()


class Readers:
    """The pool; processes start with the first page."""

    def __init__(
        self, config: ReaderConfig, *, processes: int, seconds: float, start: StartReader | None = None
    ) -> None:
        self._config = replace(config, deadline=seconds + 2 * START_SECONDS)  # later than ours, which names the page
        self._count = max(1, processes)
        self._seconds = seconds
        self._start = start
        self._processes: list[_Process] = []
        self._waiting: deque[Task | Scan] = deque()
        self._suspects: deque[Task | Scan] = deque()
        self.pending = 0
        self.pending_bytes = 0

    @property
    def connections(self) -> list[Connection]:
        """Become readable when a batch is back."""
        return [process.connection for process in self._processes]

    def submit(self, task: Task | Scan) -> None:
        """Add a page to the queue."""
        self._waiting.append(task)
        self.pending += 1
        self.pending_bytes += len(task.body)

    def pump(self, now: float) -> None:
        """Send queued pages to idle processes."""
        if self.pending and not self._processes:
            self._processes = [_Process(self._config, self._start) for _ in range(self._count)]
        for place, process in enumerate(self._processes):
            if process.batch:
                continue
            if process.ended:  # somebody killed it; no page is at fault
                process.stop()
                process = self._processes[place] = _Process(self._config, self._start)  # noqa: PLW2901
            if self._suspects:
                process.send([self._suspects.popleft()], now, self._seconds)
            elif self._waiting:
                process.send(self._next_batch(), now, self._seconds)

    def collect(self, now: float) -> list[Reading]:
        """The readings that are back, and failures for pages that missed their deadline."""
        readings: list[Reading] = []
        for place, process in enumerate(self._processes):
            if not process.batch:
                continue
            try:
                if process.connection.poll():
                    batch, alone = process.batch, process.fresh and len(process.batch) == 1
                    found = process.receive()
                    if any(reading.failure == Failure.PARSE_MEMORY for reading in found):
                        process.stop()  # what it has left of its memory is not known
                        self._processes[place] = _Process(self._config, self._start)
                    readings += self._believed(batch, found, alone=alone)
                elif process.seconds_left(now) <= 0:
                    self._processes[place] = self._replace(process, Failure.PARSE_TIMEOUT, readings)
            except (EOFError, OSError, BrokenMessage):
                self._processes[place] = self._replace(process, Failure.PARSE_CRASH, readings)
        self.pending -= len(readings)
        return readings

    def deadline(self, now: float) -> float | None:
        """Seconds until the next deadline, None if all processes are idle."""
        left = [process.seconds_left(now) for process in self._processes if process.batch]
        return max(0.0, min(left)) if left else None

    def close(self) -> None:
        """Stop all processes and drop their pages."""
        for process in self._processes:
            process.stop()
        self._processes = []

    def _next_batch(self) -> list[Task | Scan]:
        batch: list[Task | Scan] = []
        size = 0
        while self._waiting and len(batch) < BATCH and size < BATCH_BYTES:
            batch.append(self._waiting.popleft())
            size += len(batch[-1].body)
        return batch

    def _believed(self, batch: list[Task | Scan], readings: list[Reading], *, alone: bool) -> list[Reading]:
        """Readings of a batch; a page that lacked memory is tried again, `alone` in a process that has read nothing."""
        kept = []
        for task, reading in zip(batch, readings, strict=True):
            if reading.failure == Failure.PARSE_MEMORY and not alone:
                self._suspects.append(task)
            else:
                self.pending_bytes -= len(task.body)
                kept.append(reading)
        return kept

    def _replace(self, process: _Process, failure: Failure, readings: list[Reading]) -> _Process:
        """Kill a process: a page alone in its batch has failed, several are tried again one by one."""
        process.stop()
        if len(process.batch) == 1:
            task = process.batch[0]
            self.pending_bytes -= len(task.body)
            readings.append(Reading(task.ticket, failure=failure.value, detail=_DETAIL[failure]))
        else:
            self._suspects.extend(process.batch)
        return _Process(self._config, self._start)


def readers_of(options: CrawlOptions) -> Readers:
    """The reader processes of a run."""
    noises, levels = tuple(noise_table(options)), tuple(options.levels)
    pdf = options.accepts(PDF) and has_pdf()
    memory = _MEMORY + _MEMORY_OF_BYTE * options.limits.max_bytes
    config = ReaderConfig(options.rules, noises, levels, want_text=options.index, pdf=pdf, memory=memory)
    return Readers(config, processes=options.readers, seconds=options.parse_seconds, start=options.start_reader)


def task_of(
    visit: PageVisit,
    server: Server,
    request: bytes,
    stored: tuple[str, int, int] | None,
    *,
    ticket: int,
    counted: bool,
) -> Task:
    """The work of the reader process on a page that was answered; see `Task` for the arguments."""
    answer = visit.answer
    assert answer is not None
    return Task(
        ticket=ticket,
        url=visit.url,
        at=answer.at,
        ip=answer.ip,
        status=answer.status,
        headers=answer.headers,
        request=request,
        body=answer.body,
        payload=visit.payload,
        noise=server.noise,
        digest=visit.state.digest,
        before=stored,
        same_noise=visit.same_noise,
        level=server.level,
        counted=counted,
        answered_url=visit.request_url if visit.redirects else "",
        requisites=server.requisites,
        prior=visit.state.prior is None,
        rendered=visit.html,
    )


def absent_task(thing: AbsentRead, answer: Answer, server: Server, *, ticket: int) -> Task:
    """The work of the reader process on what a server answers for an address that cannot exist: its text, no record."""
    return Task(
        ticket=ticket,
        url=thing.url,
        at=answer.at,
        ip=answer.ip,
        status=answer.status,
        headers=answer.headers,
        request=b"",
        body=answer.body,
        payload=b"",
        noise=server.noise,
        digest=None,
        before=None,
        same_noise=True,
        stored=True,
    )
