"""Calls of the git program on an untrusted repository: no shell, no pager, no network, no prompts."""

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

# Variables by which a caller (a hook, for example) would direct git to another repository.
_REDIRECTING = {
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
    """A running git command."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdin is not None
        assert popen.stdout is not None
        self._in: IO[bytes] = popen.stdin
        self._out: IO[bytes] = popen.stdout

    def tokens(self) -> Iterator[bytes]:
        """Yield the output, split at every NUL."""
        rest = b""
        while chunk := self._out.read(_CHUNK):
            *whole, rest = (rest + chunk).split(b"\0")
            yield from whole
        if rest:
            yield rest

    def send(self, lines: bytes) -> None:
        """Request blobs by name, one per line; no more at once than fit in a pipe."""
        try:
            os.write(self._in.fileno(), lines)  # unbuffered, so that nothing is left over if git exits
        except BrokenPipeError as error:
            raise BadArchive("git stopped unexpectedly; check the repository with `git fsck`") from error

    def is_blob_within(self, limit: int) -> bool:
        """Whether the next object asked of `cat-file --batch-check` is there and no larger than the limit."""
        _, kind, *rest = self._out.readline().split()
        return kind == b"blob" and int(rest[0]) <= limit

    def blob(self, limit: int) -> bytes | None:
        """Return the next requested blob; None if it is larger than the limit."""
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
        self._environment = {name: value for name, value in os.environ.items() if name not in _REDIRECTING} | {
            "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch missing objects
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(repo.resolve().parent),  # not a repository around this one
            "LC_ALL": "C",
        }

    def output(self, *words: str) -> str:
        """Return the output of a short command, empty if it finds nothing."""
        done = subprocess.run(  # noqa: S603 - a list of words, no shell
            [*self._start, *words], capture_output=True, env=self._environment, check=False
        )
        if done.returncode > 1:  # 1 means "not found"; more is an error
            self._fail(done.stderr)
        return done.stdout.decode("utf-8", "replace").strip()

    @contextmanager
    def running(self, words: Sequence[str | bytes]) -> Iterator[Process]:
        """Run a command whose output is read meanwhile; end it when the block ends."""
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
                self._fail(errors.read())

    def _fail(self, errors: bytes) -> None:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        message = next((line for line in lines if line.startswith("fatal:")), lines[0] if lines else "it failed")
        raise BadArchive(f"git cannot read {self.repo}: {message.removeprefix('fatal: ')[:300]}")
