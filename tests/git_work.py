"""Git repositories that tests make, and the rows of the archives imported from them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from recrawl.lab.formats import git_history
from recrawl.lab.formats.archive import Archive
from recrawl.lab.formats.version_rows import Taken

BASE = "https://example.org/"
START = 1_600_000_000
HOUR, DAY = 3600, 86400

Rows = list[tuple[str, int, bytes | None]]


def rows_of(file: Path) -> Rows:
    """All rows of an archive."""
    archive = Archive.open([file])
    bodies = [None if archive.removed[row] else archive.html(row) for row in range(len(archive.times))]
    urls = [archive.urls[number] for number in archive.page_of]
    return list(zip(urls, archive.times.tolist(), bodies, strict=True))


def states(rows: Rows, url: str) -> list[bytes | None]:
    return [body for name, _, body in rows if name == url]


class Work:
    """A git repository in the making. The clock is ours, and so is all that git would ask the user about."""

    def __init__(self, folder: Path, *init: str) -> None:
        self.folder = folder
        self.time = START
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *init)

    def git(self, *words: str, text: bytes | None = None) -> bytes:
        who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": "@1 +0000", "GIT_COMMITTER_DATE": f"@{self.time} +0200"}
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.folder)}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env={**os.environ, **who, **when, **alone},
            input=text,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, files: dict[str, bytes | None], *, after: int = HOUR) -> int:
        """Write or remove files and commit; the time of the commit."""
        for name, body in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if body is None else path.write_bytes(body)
        self.time += after
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.time

    def rows(self, **options: Any) -> Rows:
        """What is imported of it."""
        self.taken = self.convert(**options)
        return rows_of(self.out)

    def convert(self, **options: Any) -> Taken:
        self.out = self.folder.with_name("out.parquet")
        return git_history.convert(self.folder, self.out, **{"base_url": BASE, **options})
