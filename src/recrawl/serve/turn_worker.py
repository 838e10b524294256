"""Child process for one turn of the scheduler: `python -m recrawl.serve.turn_worker FOLDER`.

A separate process keeps the crawl from slowing the web server, and its memory is freed at the end. It exchanges lines
of JSON:

    {"budget": null, "policy": "", "period": 86400}        on stdin, once
    {"doing": "visiting", "total": 500, "visits": 12, ...}  on stdout, about once per second
    {"summary": {...}} or {"error": "..."}                 on stdout, at the end

It stops cleanly when stdin closes, so it also stops when the service dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recrawl.cluster.opening import is_cluster, open_repository
from recrawl.errors import RecrawlError
from recrawl.repository.results.runs import Progress, counts
from recrawl.repository.turns import CountsCallback, Tally, Turn, summary_of, take, tally_of

_INTERVAL = 1.0
"""Seconds between progress messages."""


def main(arguments: list[str]) -> int:
    """Run the turn described by the first line of stdin."""
    order = json.loads(_first_line())
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=_stop_at_eof, args=(stop,), daemon=True).start()
    turn = Turn(
        period=order["period"],
        budget=order.get("budget"),
        policy=order.get("policy", ""),
        bytes=order.get("bytes", ""),
        requests_only=bool(order.get("requests")),
        crawl_only=bool(order.get("crawl")),
    )
    try:
        summary = _turn(arguments[0], turn, stop)
    except RecrawlError as error:
        _send({"error": str(error)})
        return error.exit_code
    _send({"summary": summary})
    return 0


def _turn(folder: str, turn: Turn, stop: threading.Event) -> dict[str, Any] | None:
    """Make a turn; in a cluster its workers make it."""
    with open_repository(folder, notify=_tell) as repo:
        if is_cluster(folder):
            report = repo.turn(turn, progress=_progress(), stop=stop.is_set)
            return None if report is None else report.as_dict()
        summary = take(Path(folder), turn, stop.is_set, wait=_wait_for_lock(stop), watch=_watch)
        return None if summary is None else summary_of(summary)


def _progress() -> Callable[[Progress], None]:
    """Sends the progress of a cluster, about once per second."""
    last = [0.0]

    def report(progress: Progress) -> None:
        now = time.monotonic()
        if now - last[0] >= _INTERVAL:
            last[0] = now
            counted = counts(progress.outcomes, progress.failures)
            more = {"doing": progress.kind, "total": progress.total, "waiting": progress.waiting}
            _send({**more, **counted, "found": progress.found})

    return report


def _tell(text: str) -> None:
    """A sentence for the log of the service."""
    sys.stderr.write(f"{text}\n")


def _first_line() -> bytes:
    """Read the order unbuffered: forked processes would inherit the locked buffer of sys.stdin."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return line


def _stop_at_eof(stop: threading.Event) -> None:
    """Wait until stdin closes, then request a stop."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    stop.set()


def _wait_for_lock(stop: threading.Event) -> Callable[[str], bool]:
    def again(holder: str) -> bool:
        _send({"doing": f"waiting for {holder}"})
        return not stop.wait(_INTERVAL)

    return again


@contextlib.contextmanager
def _watch(title: str, total: int | None) -> Iterator[CountsCallback]:
    last = [0.0]

    def report(tally: Tally) -> None:
        now = time.monotonic()
        if now - last[0] >= _INTERVAL:
            last[0] = now
            _send({"doing": title, "total": total, **tally_of(tally), "waiting": tally.waiting, "found": tally.found})

    _send({"doing": title, "total": total})
    yield report


def _send(message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
