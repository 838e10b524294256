"""One turn of the service's scheduler, in a process of its own: `python -m recrawl.serve.turn_worker FOLDER`.

A process, because a crawl must not slow the web server and gives all its memory back at its end. It gets its order as
one line of JSON and tells what it does in such lines:

    {"budget": null, "policy": "", "period": 86400}        in
    {"doing": "visiting", "total": 500, "visits": 12, ...}  out, about once a second
    {"summary": {...}} or {"error": "..."}                 out, at the end

When its input ends it stops cleanly. So it also stops when the service dies, however that dies.
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

from recrawl.crawl.tally import RunCounts
from recrawl.errors import RecrawlError
from recrawl.repository.turns import Turn, summary_of, take, tally_of

_OFTEN = 1.0
"""Seconds between two reports."""


def main(arguments: list[str]) -> int:
    """Take the turn that the first line of input orders."""
    order = json.loads(_first_line())
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    turn = Turn(
        period=order["period"],
        budget=order.get("budget"),
        policy=order.get("policy", ""),
        bytes=order.get("bytes", ""),
    )
    try:
        summary = take(Path(arguments[0]), turn, stop.is_set, wait=_patience(stop), watch=_watch)
    except RecrawlError as error:
        _say({"error": str(error)})
        return error.exit_code
    _say({"summary": None if summary is None else summary_of(summary)})
    return 0


def _first_line() -> bytes:
    """The order. Input is read without Python's buffers: their lock would be held for ever in forked processes."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return line


def _listen(stop: threading.Event) -> None:
    """Wait for the end of input."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    stop.set()


def _patience(stop: threading.Event) -> Callable[[str], bool]:
    def again(holder: str) -> bool:
        _say({"doing": f"waiting for {holder}"})
        return not stop.wait(_OFTEN)

    return again


@contextlib.contextmanager
def _watch(title: str, total: int | None) -> Iterator[Callable[[RunCounts], None]]:
    last = [0.0]

    def report(tally: RunCounts) -> None:
        now = time.monotonic()
        if now - last[0] >= _OFTEN:
            last[0] = now
            _say({"doing": title, "total": total, **tally_of(tally), "waiting": tally.waiting, "found": tally.found})

    _say({"doing": title, "total": total})
    yield report


def _say(message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
