"""Virtual time: it starts at a given time, runs at a speed, and can be set, advanced and paused."""

from __future__ import annotations

from collections.abc import Callable

LAST = 253402300799.0
"""The end of the year 9999, the last HTTP date."""


class Clock:
    """A virtual clock; it reads the real one only through the function `real`.

    >>> ticks = iter([0.0, 1.0, 2.0, 2.0, 2.0])
    >>> clock = Clock(1000.0, speed=60.0, real=lambda: next(ticks))
    >>> clock.now()
    1060.0
    >>> clock.advance(5); clock.now()
    1125.0
    """

    def __init__(self, start: float, speed: float, real: Callable[[], float]) -> None:
        self._real = real
        # One tuple, replaced at once, so that a server's thread never sees a partial change.
        self._state = (float(start), real(), float(speed))

    @property
    def speed(self) -> float:
        """Virtual seconds per real second."""
        return self._state[2]

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        base, mark, speed = self._state
        return min(max(base + (self._real() - mark) * speed, 0.0), LAST)

    def set(self, t: float, speed: float | None = None) -> None:
        """Set the time, and optionally the speed."""
        self._state = (float(t), self._real(), self.speed if speed is None else float(speed))

    def advance(self, seconds: float) -> None:
        """Advance by some seconds."""
        base, mark, speed = self._state
        self._state = (base + seconds, mark, speed)

    def run(self, speed: float) -> None:
        """Set the speed from now on."""
        self.set(self.now(), speed)

    def pause(self) -> None:
        """Stop until `run`; `set` and `advance` still work."""
        self.run(0.0)
