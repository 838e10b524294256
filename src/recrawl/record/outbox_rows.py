"""Rows of the store about what is to be delivered: alerts, and changes for sinks."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class OutboxState(IntEnum):
    """What became of an entry of the outbox."""

    WAITING = 0
    SENT = 1
    PARKED = 2
    """Refused, or tried too often: it waits for somebody who tries it again or drops it."""
    HELD = 3
    """Held back until later visits confirm the change."""
    REVERTED = 4
    """A later visit found the page as before."""
    DROPPED = 5
    """Parked, and dropped by somebody; or its receiver is no longer there."""


class OutboxRow(NamedTuple):
    """An entry of the outbox."""

    key: str
    """The same for each attempt, so that receivers can tell repetitions."""
    alert: str
    """The receiver: the name of an alert rule, or `sink:NAME`."""
    page: int
    state: int
    remaining: int
    """Visits for which it is still held back."""
    before: bytes | None
    """The digest of the page before the change."""
    due: float
    created: float
    body: str
    error: str = ""
    """Why it is parked."""
