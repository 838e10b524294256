"""Uploaded files: the folder `files` of the repository, the only place where clients may write, read and name files.

A file name is never a path, and symbolic links in the folder are ignored.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from pathlib import Path
from typing import Any

from recrawl.durable_files import move_file
from recrawl.errors import NotKnown, UsageError

FOLDER = "files"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_PART = ".part"


class Uploads:
    """The uploaded files of one repository; the folder is created on the first upload."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / FOLDER

    def path_for(self, name: str) -> Path:
        """Return the path to write a file to; raise UsageError for an invalid name."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"invalid file name '{name}'; use at most 100 letters, digits, dots, dashes, underscores")
        path = self._folder / name
        if path.is_symlink() or path.is_dir():
            raise UsageError(f"cannot write '{name}': it exists and is not a regular file")
        self._folder.mkdir(exist_ok=True)
        return path

    def find(self, name: str) -> Path:
        """Return a file, or a folder that the owner put there by hand; raise NotKnown if missing."""
        path = self._folder / name
        if not _NAME.fullmatch(name) or path.is_symlink() or not path.exists():
            raise NotKnown(f"there is no uploaded file '{name}'")
        return path

    def entries(self) -> list[dict[str, Any]]:
        """Return name, size and time of the files, by name."""
        return [
            {"name": path.name, "bytes": path.stat().st_size if path.is_file() else None, "at": path.stat().st_mtime}
            for path in sorted(self._folder.glob("*"))
            if _NAME.fullmatch(path.name) and not path.is_symlink()
        ]

    def used_bytes(self) -> int:
        """Return the total size of the files, including partial uploads, without folders."""
        return sum(path.stat().st_size for path in self._folder.glob("*") if path.is_file() and not path.is_symlink())

    def remove(self, name: str) -> None:
        """Delete a file."""
        path = self.find(name)
        if path.is_dir():
            raise UsageError(f"'{name}' is a folder; delete it in the file system")
        path.unlink()

    def partial(self, name: str) -> Path:
        """Return a temporary path for an incomplete upload of the file `name`."""
        return self.path_for(name).with_name(f".{secrets.token_hex(8)}{_PART}")

    def commit(self, partial: Path, name: str) -> None:
        """Turn a complete upload into the file `name`, replacing an existing one."""
        move_file(partial, self.path_for(name))

    def remove_partial(self) -> None:
        """Delete incomplete uploads."""
        for path in self._folder.glob(f".*{_PART}"):
            with contextlib.suppress(OSError):
                path.unlink()
