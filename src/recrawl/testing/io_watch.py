"""Notes the input and output of a policy: it must have none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FORBIDDEN = ("open", "socket.", "sqlite3.connect", "subprocess.Popen", "os.system", "os.posix_spawn", "urllib.Request")
_CODE = (".py", ".pyc", ".so", ".pyd", ".dll")


class _Auditor:
    """Collects forbidden events while it has a list; Python cannot remove an audit hook, so one is installed once."""

    installed = False
    events: list[str] | None = None

    @classmethod
    def hear(cls, event: str, arguments: tuple[Any, ...]) -> None:
        if cls.events is None or not event.startswith(_FORBIDDEN):
            return
        if event == "open" and str(arguments[0]).endswith(_CODE):
            return  # an import
        cls.events.append(f"{event} {arguments[0] if arguments else ''}".strip())


@contextmanager
def watching_io() -> Iterator[list[str]]:
    """Collect what happens within the block: files and sockets opened, processes started."""
    if not _Auditor.installed:
        sys.addaudithook(_Auditor.hear)
        _Auditor.installed = True
    events: list[str] = []
    _Auditor.events = events
    try:
        yield events
    finally:
        _Auditor.events = None
