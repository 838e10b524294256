"""Files of named arrays that can always be made again: written whole or not at all, and never believed when damaged."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What reading a file can raise that is not what it should be."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file (.npz), in place of the one that may be there; a crash leaves the one or the other."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        named: dict[str, Any] = dict(arrays)
        np.savez(file, **named)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_part(path: Path, prefix: str) -> Arrays | None:
    """What a file holds under names that begin so, without reading the rest; None when that is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name.startswith(prefix)}
    except _DAMAGED:
        return None


def read_arrays(path: Path) -> Arrays | None:
    """What a file holds; None when there is none, or when it is damaged."""
    try:
        with zipfile.ZipFile(path) as parts:
            if parts.testzip() is not None:
                return None
    except _DAMAGED:
        return None
    return read_part(path, "")
