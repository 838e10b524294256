"""Threads that send to other servers, so that a slow one holds up nothing but what is sent to it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from recrawl.repository.opening import steady_timer

Result = TypeVar("Result")
_MOST = 64
"""Threads at a time."""


class Senders(Generic[Result]):
    """Runs calls in threads, one at a time for each target; their owner collects the results, None of one that raised.

    A call that runs when the service stops is abandoned: its thread does not keep the process alive.
    """

    def __init__(self, on_result: Callable[[], None] = lambda: None) -> None:
        self._on_result = on_result
        self._timer = steady_timer()
        self._results: queue.SimpleQueue[tuple[str, Result | None]] = queue.SimpleQueue()
        self.busy: set[str] = set()
        """Targets of the calls that run, or whose results were not collected."""

    def free(self, target: str) -> bool:
        """Return whether a call for this target can start now."""
        return target not in self.busy and len(self.busy) < _MOST

    def start(self, target: str, call: Callable[[], Result]) -> None:
        """Start a call; its target must be free."""
        self.busy.add(target)
        threading.Thread(target=self._run, args=(target, call), name="sender", daemon=True).start()

    def collect(self, seconds: float = 0.0) -> Iterator[tuple[str, Result | None]]:
        """Yield targets and results that are there; wait up to `seconds` for those of the running calls."""
        end = self._timer() + seconds
        while self.busy:
            try:
                target, result = self._results.get(timeout=max(0.0, end - self._timer()))
            except queue.Empty:
                return
            self.busy.discard(target)
            yield target, result

    def _run(self, target: str, call: Callable[[], Result]) -> None:
        result: Result | None = None
        try:
            result = call()
        finally:
            self._results.put((target, result))
            self._on_result()
