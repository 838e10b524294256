"""Files of named arrays that can be recomputed: written atomically, ignored when damaged."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.durable_files import make_folder, replacing

Arrays = dict[str, NDArray[Any]]

_DAMAGED = (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What reading a damaged file can raise."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file (.npz) atomically: after a crash, the old or the new one is there."""
    make_folder(path.parent)
    with replacing(path) as draft, draft.open("wb") as file:
        named: dict[str, Any] = dict(arrays)
        np.savez(file, **named)


def read_part(path: Path, prefix: str) -> Arrays | None:
    """The arrays whose names begin with `prefix`, without reading the others; None if they are damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name.startswith(prefix)}
    except _DAMAGED:
        return None


def read_arrays(path: Path) -> Arrays | None:
    """The arrays of a file; None if it is missing or damaged."""
    try:
        with zipfile.ZipFile(path) as parts:
            return {name.removesuffix(".npy"): _array(parts.read(name)) for name in parts.namelist()}
    except _DAMAGED:
        return None


def _array(part: bytes) -> NDArray[Any]:
    """An array from its whole entry, whose check sum was compared: np.load stops where the array seems to end."""
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(part), allow_pickle=False)
    return array
