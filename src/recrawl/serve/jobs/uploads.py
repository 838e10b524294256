"""The repository's shelf: the folder `files`, the one place where clients may put, read and name files.

A name is a name and never a path; what is there as a link to somewhere else is treated as if it were not there.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from pathlib import Path
from typing import Any

from recrawl.errors import NotKnown, UsageError

FOLDER = "files"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_PART = ".part"


class Uploads:
    """The files of one repository; the folder is made when something is first put there."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / FOLDER

    def place(self, name: str) -> Path:
        """Where a file of this name is put; UsageError when it is no name."""
        if not _NAME.fullmatch(name):
            raise UsageError("a file's name is of letters, digits, dots and dashes, at most 100; it is no path")
        path = self._folder / name
        if path.is_symlink() or path.is_dir():
            raise UsageError(f"'{name}' cannot be written: what is there is no plain file")
        self._folder.mkdir(exist_ok=True)
        return path

    def find(self, name: str) -> Path:
        """A file, or a folder that somebody put there by hand; NotKnown when there is none."""
        path = self._folder / name
        if not _NAME.fullmatch(name) or path.is_symlink() or not path.exists():
            raise NotKnown(f"there is no file '{name}' on the shelf")
        return path

    def listed(self) -> list[dict[str, Any]]:
        """What is there, by name."""
        return [
            {"name": path.name, "bytes": path.stat().st_size if path.is_file() else None, "at": path.stat().st_mtime}
            for path in sorted(self._folder.glob("*"))
            if _NAME.fullmatch(path.name) and not path.is_symlink()
        ]

    def used(self) -> int:
        """Bytes of the files, those on their way in too; folders are the owner's own affair."""
        return sum(path.stat().st_size for path in self._folder.glob("*") if path.is_file() and not path.is_symlink())

    def remove(self, name: str) -> None:
        """Take a file away."""
        path = self.find(name)
        if path.is_dir():
            raise UsageError(f"'{name}' is a folder: who put it there can take it away")
        path.unlink()

    def part(self, name: str) -> Path:
        """Where what will be the file `name` is written until it is whole."""
        return self.place(name).with_name(f".{secrets.token_hex(8)}{_PART}")

    def keep(self, part: Path, name: str) -> None:
        """What was written is the file now, in place of one that was there."""
        part.replace(self.place(name))

    def tidy(self) -> None:
        """Remove what never became whole."""
        for path in self._folder.glob(f".*{_PART}"):
            with contextlib.suppress(OSError):
                path.unlink()
