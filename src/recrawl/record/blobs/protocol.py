"""The protocol of an object store. Objects never change: a name always stands for the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Blobs(Protocol):
    """A set of named objects. Each method raises `StorageFailure` if the object store cannot be used."""

    @property
    def name(self) -> str:
        """The object store, for messages."""

    def put(self, name: str, path: Path) -> None:
        """Store a file under a name that is free, or that has the same bytes already."""

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """A part of an object; `FileNotFoundError` if there is no such object."""

    def fetch(self, name: str, path: Path) -> None:
        """Copy an object into a file, whole or not at all; `FileNotFoundError` if there is no such object."""

    def size(self, name: str) -> int:
        """Bytes of an object, -1 if there is none."""

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
