"""The thread that holds the repository for writing while a spider runs: first the cycle, then what it downloads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import recrawl
from recrawl import Answer, Request
from recrawl.errors import RecrawlError
from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.results.runs import Report

Chain = Sequence[Answer]
"""One visit: its redirects in order, then its last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiderRun:
    """What a spider's run does with the repository."""

    folder: Path
    policy: str
    """Empty for the policy of the repository."""
    budget: float | None
    """None for the budget of the repository, 0 for no cycle."""
    clock: Callable[[], float] | None


class StopRecording(Exception):
    """Raised by `fetch` when the spider is being stopped; the next run resumes the cycle."""


class Recording:
    """Runs in a thread of its own, since a cycle waits for downloads. The thread ends with the process."""

    def __init__(
        self,
        plan: SpiderRun,
        *,
        fetch: Callable[[Sequence[Request]], Iterable[Answer]],
        stop: Callable[[], bool],
        refreshed: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """`refreshed` is called when the cycle is over, `ended` when everything is recorded."""
        self._plan = plan
        self._fetch = fetch
        self._stop = stop
        self._refreshed = refreshed
        self._ended = ended
        self._visits: queue.SimpleQueue[Chain | None] = queue.SimpleQueue()
        self.cycle: Report | None = None
        """What the cycle did; None before its end and if there was none."""
        self.record: Report | None = None
        """What the spider's own downloads came to; None before its end."""
        self.error = ""
        """What ended it before its time; then nothing more is recorded."""
        self._thread = threading.Thread(target=self._run, name="recrawl", daemon=True)

    def start(self) -> None:
        """Start with the cycle."""
        self._thread.start()

    def add(self, visit: Chain) -> None:
        """Record a visit."""
        if not self.error:
            self._visits.put(visit)

    def finish(self) -> None:
        """Record what was added, and end."""
        self._visits.put(None)

    def _run(self) -> None:
        try:
            with recrawl.open(self._plan.folder, clock=self._plan.clock) as repository:
                self._refresh(repository)
                self._refreshed()
                self.record = repository.record(iter(self._visits.get, None))
                repository.deliver_all()
        except (RecrawlError, OSError, *TEMPORARY_ERRORS) as error:
            self.error = str(error)
        finally:
            if self.record is None:
                self.error = self.error or "the record ended with an error of the program; see above"
            self._refreshed()
            self._ended()

    def _refresh(self, repository: recrawl.Repository) -> None:
        """The cycle; a new repository has nothing to refresh."""
        plan = self._plan
        if plan.budget == 0 or not repository.page_count:
            return
        try:
            self.cycle = repository.cycle(
                policy=plan.policy or None, budget=plan.budget, fetch=self._fetch, stop=self._stop
            )
        except StopRecording:
            return
