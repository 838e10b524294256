"""A clock that the benchmark sets, for every Python process that has this folder in PYTHONPATH.

`time.time` is ahead of the machine's clock by the seconds in the file that RECRAWL_BENCH_CLOCK names; the file is read
again as it changes. The monotonic clock is left alone, as when somebody sets the clock of a machine.
"""

import os
import time
from pathlib import Path

_real, _monotonic = time.time, time.monotonic
_file = os.environ.get("RECRAWL_BENCH_CLOCK", "")
_known = [0.0, 0.0]
"""The offset, and until when it need not be read again."""


def _shifted() -> float:
    now = _monotonic()
    if now >= _known[1]:
        _known[:] = [float(Path(_file).read_text()), now + 0.2]
    return _real() + _known[0]


if _file:
    time.time = _shifted
