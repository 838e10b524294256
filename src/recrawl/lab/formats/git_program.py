"""The git program, asked about a repository that may be anybody's: no shell, no pager, no network, no waiting."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from recrawl.errors import BadArchive, UsageError

# Variables by which a caller of ours (a hook, say) would lead git to another repository than the one we name.
_MISLEADING = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
}
_CHUNK = 1 << 16


def is_repository(path: Path) -> bool:
    """Whether a folder is a git repository, with or without a working tree."""
    bare = (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
    return (path / ".git").exists() or bare


class Process:
    """A git command at work."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdin is not None
        assert popen.stdout is not None
        self._in: IO[bytes] = popen.stdin
        self._out: IO[bytes] = popen.stdout

    def tokens(self) -> Iterator[bytes]:
        """Its output, cut at every NUL."""
        rest = b""
        while chunk := self._out.read(_CHUNK):
            *whole, rest = (rest + chunk).split(b"\0")
            yield from whole
        if rest:
            yield rest

    def send(self, lines: bytes) -> None:
        """Ask for blobs by name, one a line; no more at once than a pipe holds."""
        try:
            os.write(self._in.fileno(), lines)  # nothing must be left in a buffer when git is gone
        except BrokenPipeError as error:
            raise BadArchive(
                "git has stopped in the middle: does `git fsck` find fault with the repository?"
            ) from error

    def blob(self, limit: int) -> bytes | None:
        """The next blob that was asked for; None when it is larger than allowed."""
        name, _, rest = self._out.readline().partition(b" ")
        kind, _, length = rest.strip().partition(b" ")
        if kind != b"blob":
            raise BadArchive(
                f"the repository lacks the content of {name.decode('ascii', 'replace').strip()[:64] or 'a file'}; "
                "is it a partial clone, or damaged? Clone it in full"
            )
        left = int(length)
        body = self._out.read(left) if left <= limit else None
        while body is None and left:
            left -= len(self._out.read(min(left, _CHUNK))) or left
        self._out.read(1)  # the line's end
        return body


class Git:
    """The git program and a repository."""

    def __init__(self, repo: Path) -> None:
        program = shutil.which("git")
        if program is None:
            raise UsageError("git is not installed; install it to import the history of a git repository")
        if not is_repository(repo):
            raise BadArchive(f"{repo} is not a git repository")
        self.repo = repo
        self._start = [program, "--no-pager", "-C", str(repo)]
        self._environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING} | {
            "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what it lacks from wherever it likes
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(repo.resolve().parent),  # this one, not one around it
            "LC_ALL": "C",
        }

    def ask(self, *words: str) -> str:
        """The answer of a short command, empty when it has none."""
        done = subprocess.run(  # noqa: S603 - a list of words, no shell
            [*self._start, *words], capture_output=True, env=self._environment, check=False
        )
        if done.returncode > 1:  # 1 means no; more means that git could not work at all
            self._complain(done.stderr)
        return done.stdout.decode("utf-8", "replace").strip()

    @contextmanager
    def running(self, words: Sequence[str | bytes]) -> Iterator[Process]:
        """A command that is read from while it works; ended when the reader has had enough."""
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(  # noqa: S603 - a list of words, no shell
                [*self._start, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
            ) as popen,
        ):
            try:
                yield Process(popen)
                popen.communicate()
            finally:
                popen.kill()
            if popen.returncode:
                errors.seek(0)
                self._complain(errors.read())

    def _complain(self, errors: bytes) -> None:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in lines if line.startswith("fatal:")), lines[0] if lines else "it failed")
        raise BadArchive(f"git cannot read {self.repo}: {said.removeprefix('fatal: ')[:300]}")
