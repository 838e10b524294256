"""Rows of the store about screenshots."""

from __future__ import annotations

from typing import NamedTuple


class ScreenshotRow(NamedTuple):
    """A screenshot of a page and its place in the archive."""

    id: int
    page: int
    version: int
    """The version that was current when it was taken."""
    at: float
    record: int
    """The screenshot whose record holds the bytes: this one, or an earlier one of any page with the same bytes."""
    width: int
    height: int
    size: int
    """Bytes of the PNG."""
    warc: int
    start: int
    length: int
    payload: bytes
    """SHA-1 of the PNG."""
