"""Ctrl-C and SIGTERM: a command ends with 130 after the one and 143 after the other, unless all was done."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

import typer

from recrawl.cli.terminal.output import note

_received: list[int] = []


def stop_at_once(number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal."""
    _received.append(number)
    raise KeyboardInterrupt


def exit_code() -> int:
    """The exit code of a command that a signal has ended."""
    return 128 + (_received[-1] if _received else int(signal.SIGINT))


class Stop:
    """Ctrl-C and SIGTERM: the first one ends the run cleanly, the second one at once."""

    def __init__(self) -> None:
        self._requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            stop_at_once(number, frame)
        self._requested = True
        _received.append(number)
        note("\nstopping after recording what was downloaded (Ctrl-C again to stop at once)")

    def __call__(self) -> bool:
        return self._requested

    def end(self, *, finished: bool) -> None:
        """End the command as one that was stopped, if it was and something is left to do."""
        if self._requested and not finished:
            raise typer.Exit(exit_code())
