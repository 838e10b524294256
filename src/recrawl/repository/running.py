"""What is running now: a file that a crawl or cycle keeps up to date, so that other processes see how far it is.

`progress.json` lies in the repository's folder while a run works, whoever started it. It is rewritten about once a
second and removed at the end. A run that was killed leaves it behind; it counts only while its process lives, or, for a
process of another machine or container, while it is fresh.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from recrawl.crawl.tally import RunCounts
from recrawl.durable_files import replace_file
from recrawl.repository.opening import system_clock
from recrawl.repository.results.runs import counts
from recrawl.repository.results.values import Row
from recrawl.times import span

_NAME = "progress.json"
_INTERVAL = 0.5
"""Seconds between two writes."""
_WINDOW = 30.0
"""Seconds over which the rate is measured."""
_FRESH = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A crawl or cycle under way."""

    kind: str
    """crawl or cycle."""
    pid: int
    began: float
    at: float
    """When this was written."""
    total: int | None
    """Visits that a cycle may make; in a crawl, the most pages that were visited or waiting at any time."""
    outcomes: dict[str, int]
    """`visits`, and visits by outcome."""
    received: int
    """Bytes over the wire."""
    found: int
    """Pages discovered."""
    rate: float
    """Visits per second, of the last half minute."""
    url: str
    """The URL requested last; empty before the first request."""

    @property
    def visits(self) -> int:
        """Visits so far."""
        return self.outcomes["visits"]

    @property
    def share(self) -> float | None:
        """The part that is done, from 0 to 1; None if it is not known."""
        return min(1.0, self.visits / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at the present rate; None if it is not known."""
        return max(0, self.total - self.visits) / self.rate if self.total and self.rate else None

    def as_dict(self) -> Row:
        """As `recrawl status --json` and the API give it."""
        plain = {name: value for name, value in asdict(self).items() if name != "outcomes"}
        return {**plain, **self.outcomes, "share": self.share, "seconds_left": self.seconds_left}


def running(folder: Path) -> Running | None:
    """The crawl or cycle that works on a repository now; None if there is none."""
    path = folder / _NAME
    try:
        written = path.stat().st_mtime
        found = Running(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if _alive(found.pid) or abs(system_clock() - written) < _FRESH else None


def describe_running(run: Row) -> str:
    """A sentence about a run, given as `Running.as_dict`: what it has done, its rate, the time left."""
    of = "" if run["total"] is None else f" of {run['total']:,}"
    left = "" if run["seconds_left"] is None else f", about {span(run['seconds_left'])} left"
    return f"running: {run['kind']}, {run['visits']:,}{of} visits, {run['rate']:.1f} per second{left}"


@contextlib.contextmanager
def shown(
    folder: Path, kind: str, total: int | None, inner: Callable[[RunCounts], None]
) -> Iterator[Callable[[RunCounts], None]]:
    """Give the callback of a run that keeps the file up to date and then calls `inner`."""
    writer = _Writer(folder / _NAME, kind, total)

    def report(tally: RunCounts) -> None:
        writer.report(tally)
        inner(tally)

    writer.write(RunCounts(), 0.0)
    try:
        yield report
    finally:
        with contextlib.suppress(OSError):
            writer.path.unlink()


class _Writer:
    """Writes the file, at most every half second."""

    def __init__(self, path: Path, kind: str, total: int | None) -> None:
        self.path = path
        self._kind, self._total = kind, total
        self._began = system_clock()
        self._last = 0.0
        self._most = 0
        self._seen: deque[tuple[float, int]] = deque([(system_clock(), 0)])

    def report(self, tally: RunCounts) -> None:
        now = system_clock()
        if now - self._last < _INTERVAL:
            return
        self._last = now
        visits = tally.visits
        while len(self._seen) > 1 and self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()
        then, before = self._seen[0]
        self._seen.append((now, visits))
        self.write(tally, (visits - before) / (now - then) if now > then else 0.0)

    def write(self, tally: RunCounts, rate: float) -> None:
        self._most = max(self._most, tally.visits + tally.waiting)
        total = self._most if self._total is None else self._total
        row = Running(
            kind=self._kind,
            pid=os.getpid(),
            began=self._began,
            at=system_clock(),
            total=total or None,
            outcomes=counts(tally.outcomes, tally.failures),
            received=tally.received,
            found=tally.found,
            rate=rate,
            url=tally.url,
        )
        with contextlib.suppress(OSError):  # a full disk: the run itself will say so
            replace_file(self.path, json.dumps(asdict(row)), synced=False)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True
