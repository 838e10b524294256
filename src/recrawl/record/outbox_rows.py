"""Rows of the store about alerts that are to be sent."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class OutboxState(IntEnum):
    """What became of an alert."""

    WAITING = 0
    SENT = 1
    GIVEN_UP = 2
    HELD = 3
    """Held back until later visits confirm the change."""
    DROPPED = 4
    """A later visit found the page as before."""


class OutboxRow(NamedTuple):
    """An alert that is to be sent."""

    key: str
    """The same for each attempt, so that receivers can tell repetitions."""
    alert: str
    page: int
    state: int
    remaining: int
    """Visits for which it is still held back."""
    before: bytes | None
    """The digest of the page before the change."""
    due: float
    created: float
    body: str
