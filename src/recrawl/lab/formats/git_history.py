"""Import the history of a web site from its git repository: every commit of a branch is a state of the site.

Only first parents are followed: the states that the branch had, in order. A commit that changes an `.html` or `.htm`
file gives a row at the committer's time; `index.html` is its folder's URL. Committers' clocks can be wrong, but the
order of commits is certain: a commit dated no later than the one before is moved one second after it.

The repository is untrusted. The git program runs without a shell and with NUL-terminated names; symbolic links and
submodules are not pages; nothing is fetched from elsewhere, whatever the repository's settings.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote_from_bytes

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive, UnknownName, UsageError
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, Row, Taken, Window, write_versions

# --------------------------------------------------------------------------------------------------------------------
# The pages of a git history: which files are pages, their URLs, and which rows of their history an archive keeps.


_SUFFIXES = (b".html", b".htm")
_INDEX = b"index.html"
# Characters that browsers do not escape in the path of a link, so that links and URLs agree.
_SAFE = "/:@!$&'()*+,;=~[]|"


@dataclass(frozen=True, slots=True)
class GitRules:
    """How files and commits become pages and versions. The defaults are those of `recrawl import git`."""

    exact_paths: bool = False
    """Whether a URL is the base and the file's path as it is in git, `index.html` included, without canonicalisation;
    only names in `.html` and `.htm`, not `.HTML`, are pages then."""
    exclude: str = ""
    """A regular expression: files whose path, with a slash before it, contains a match are left out."""
    one_second_apart: bool = True
    """Whether a commit dated no later than the one before moves to one second after it. Otherwise it moves to the same
    time, and of several states of a page at one time the last counts."""
    max_pages: int | None = None
    """Over this number of pages, only some directories are kept (see `whole_directories`)."""
    max_page_bytes: int | None = None
    """Pages with a larger version inside the window are left out; they count for `max_pages`."""

    def is_page_name(self, path: bytes) -> bool:
        """Whether a file is a page by its name."""
        return (path if self.exact_paths else path.lower()).endswith(_SUFFIXES)


class FileChange(NamedTuple):
    """A file after a commit."""

    time: int
    path: bytes
    blob: str
    """Git's object name of the content; empty if the file was removed."""


class PageFiles:
    """The changes of all pages as columns, and their URLs."""

    def __init__(self, base: str, folder: bytes, width: int, rules: GitRules, taken: Taken) -> None:
        self.urls: list[str] = []
        self.paths: list[bytes] = []
        """Per page, without the folder."""
        self.page = array("q")
        self.time = array("q")
        self.blobs = bytearray()
        self.width = width
        self.rules = rules
        self._base = base
        self._prefix = folder + b"/" if folder else b""
        self._taken = taken
        self._exclude = re.compile(rules.exclude.encode()) if rules.exclude else None
        self._numbers: dict[bytes, int] = {}
        self._seen: set[str] = set()

    def note(self, change: FileChange) -> None:
        """Add a change if it is one of a page."""
        if not (self.rules.is_page_name(change.path) and change.path.startswith(self._prefix)):
            return
        page = self._numbers.get(change.path)
        if page is None:
            page = self._numbers[change.path] = self._admit(change.path)
        if page < 0:
            return
        self.page.append(page)
        self.time.append(change.time)
        self.blobs += bytes.fromhex(change.blob) or bytes(self.width)

    def _admit(self, path: bytes) -> int:
        """Return a new page's number; -1 if it is excluded, or its URL is invalid or belongs to another file."""
        name = path[len(self._prefix) :]
        if self._exclude is not None and self._exclude.search(b"/" + name):
            self._taken.remark("files excluded")
            return -1
        url = self._base + name.decode("utf-8", "replace") if self.rules.exact_paths else self._canonical_url(name)
        if url is None or url in self._seen:
            self._taken.remark("files left out: no URL of their own")
            return -1
        self._seen.add(url)
        self.urls.append(url)
        self.paths.append(name)
        return len(self.urls) - 1

    def _canonical_url(self, name: bytes) -> str | None:
        if name == _INDEX or name.endswith(b"/" + _INDEX):
            name = name[: -len(_INDEX)]
        return canonical(self._base + quote_from_bytes(name, safe=_SAFE))


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a history in the order of the archive: by URL, then time."""

    page: Ints
    """Numbers of pages in `PageFiles`."""
    time: Ints
    names: NDArray[np.uint8]
    """Git's object names, a row of bytes each; zeros where the file was removed."""
    removed: Flags

    def take(self, rows: Ints | Flags) -> PageRows:
        """Return some of the rows, in order."""
        return PageRows(self.page[rows], self.time[rows], self.names[rows], self.removed[rows])


def window_rows(files: PageFiles, window: Window) -> PageRows:
    """Return the rows inside a window, of no more pages than the rules allow."""
    by_url = np.array(sorted(range(len(files.urls)), key=files.urls.__getitem__), np.int64)
    rank = np.empty_like(by_url)
    rank[by_url] = np.arange(len(by_url))
    page, time = rank[np.array(files.page, np.int64)], np.array(files.time, np.int64)
    names: NDArray[np.uint8] = np.frombuffer(bytes(files.blobs), np.uint8).reshape(-1, files.width)
    order = np.lexsort((time, page))  # stable: changes at one time stay in the order of the commits
    page, time = page[order], time[order]
    last = np.append((page[1:] != page[:-1]) | (time[1:] != time[:-1]), True)
    order, page, time = order[last], page[last], time[last]
    removed: Flags = (names[order] == 0).all(axis=1)
    kept, time = window.of(page, time, removed)
    rows = PageRows(by_url[page[kept]], time, names[order[kept]], removed[kept])
    if files.rules.max_pages is None:
        return rows
    present = np.unique(rows.page[~rows.removed])
    chosen = whole_directories([files.paths[number] for number in present], files.rules.max_pages)
    return rows.take(np.isin(rows.page, present[chosen]))


def whole_directories(paths: Sequence[bytes], limit: int) -> list[int]:
    """Return which files to keep so that they are no more than the limit: whole directories, in the order of the MD5 of
    their names, the top directory first. A directory that is too large for the room left is skipped; if it is the
    first, its files are kept in the order of their names as far as they go.

    >>> whole_directories([b"index.html", b"a/1.html", b"a/2.html", b"b/1.html"], 3)
    [0, 1, 2]
    >>> whole_directories([b"c.html", b"b.html", b"d.html", b"a/1.html"], 2)
    [1, 0]
    """
    directories: dict[bytes, list[int]] = {}
    for number in sorted(range(len(paths)), key=paths.__getitem__):
        directories.setdefault(paths[number].rpartition(b"/")[0], []).append(number)
    kept: list[int] = []
    for name in sorted(directories, key=lambda name: (name != b"", hashlib.md5(name, usedforsecurity=False).digest())):
        if not kept or len(kept) + len(directories[name]) <= limit:
            kept += directories[name][:limit]
    return kept


# --------------------------------------------------------------------------------------------------------------------
# Calls of the git program on an untrusted repository: no shell, no pager, no network, no prompts.


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


# --------------------------------------------------------------------------------------------------------------------


# Override settings of the user or the repository that would change the output.
_SETTINGS = ("-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "log.diffMerges=first-parent")
_FORM = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-color", "--no-notes", "--no-decorate", "--no-relative")
_LOG = (*_SETTINGS, "log", "--first-parent", "-m", "--reverse", *_FORM, "--format=tformat:%ct")
_BATCH = 32  # requests that always fit in a pipe, so that git and this process never wait for each other
_LAST = 253402300799  # the year 9999


def convert(
    repo: Path,
    out: Path,
    *,
    base_url: str,
    branch: str = "",
    root: str = "",
    window: Window | None = None,
    max_bytes: int = MAX_BYTES,
    rules: GitRules | None = None,
    progress: Progress = lambda *_: None,
) -> Taken:
    """Write the history of a branch as an archive.

    Parameters
    ----------
    repo
        A repository, bare or not.
    out
        The Parquet file to write.
    base_url
        The URL at which `root` is published.
    branch
        A branch, or any other name of a commit; by default the current branch.
    root
        The folder of the repository that contains the site; by default the whole repository.
    window
        The part of the history to import.
    max_bytes
        Larger files are skipped; the page keeps its previous version.
    rules
        How files and commits become pages and versions.
    """
    rules = rules or GitRules()
    base, folder = _base(base_url), _folder(root)
    git = Git(repo)
    commit = _commit(git, branch)
    where = f"{branch or 'HEAD'} of {repo}" + (f" under {root}" if folder else "")
    nothing = f"no commit on {where} has an .html or .htm file in this period"
    taken = Taken()
    files = PageFiles(
        base, folder, len(commit) // 2, rules, taken
    )  # object names are SHA-1 or SHA-256, as the commit's
    for done, change in enumerate(_changes(git, commit, folder, rules, taken), 1):
        files.note(change)
        progress("changes", done, None)
    if not files.urls:
        raise BadArchive(f"no commit on {where} has an .html or .htm file")
    return write_versions(out, _rows(git, files, window or Window(), max_bytes, taken, progress), taken, nothing)


def _base(url: str) -> str:
    base = canonical(url)
    if base is None or "?" in base:
        raise UsageError(f"invalid base URL '{url}'; use --base-url https://example.org/docs/")
    return base if base.endswith("/") else base + "/"


def _folder(root: str) -> bytes:
    parts = [part for part in root.split("/") if part not in ("", ".")]
    if ".." in parts or root.startswith("/"):
        raise UsageError(f"invalid folder '{root}'; use a folder inside the repository, such as --root docs")
    return "/".join(parts).encode("utf-8", "surrogateescape")


def _commit(git: Git, branch: str) -> str:
    """Return the commit of a branch, a tag or any other name."""
    if not branch:
        return git.output("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or _no_commits(git)
    # A name that looks like an option is never a branch. A branch precedes a tag of the same name.
    for name in () if branch.startswith("-") else (f"refs/heads/{branch}", branch):
        found = git.output("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.isalnum():  # a range gives several
            return found
    heads = git.output("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/remotes").split("\n")
    if not any(heads):
        _no_commits(git)
    raise UnknownName("branch", branch, heads)


def _no_commits(git: Git) -> str:
    raise BadArchive(f"{git.repo} has no commits at HEAD; use a branch that has some")


def _changes(git: Git, commit: str, folder: bytes, rules: GitRules, taken: Taken) -> Iterator[FileChange]:
    """Yield every page changed by a commit, oldest commit first. Only commits that change a page set the clock."""
    paths = [b":(top,literal)" + folder] if folder else []
    with git.running([*_LOG, commit, "--", *paths]) as process:
        tokens = process.tokens()
        now: int | None = None
        dated: int | None = None  # the date of a commit none of whose pages was seen yet
        for token in tokens:
            text = token.lstrip(b"\n")
            if not text.startswith(b":"):
                dated = min(int(text), _LAST) if text else dated
                continue
            _, mode, _, blob, _ = text.split(b" ")
            path = next(tokens)
            if not rules.is_page_name(path):
                continue
            if dated is not None:
                now, dated = _later(now, dated, rules, taken), None
            if mode in (b"120000", b"160000"):
                taken.remark("symbolic links and submodules left out")
            yield FileChange(now or 0, path, blob.decode() if mode.startswith(b"100") else "")


def _later(now: int | None, dated: int, rules: GitRules, taken: Taken) -> int:
    """Return the time of a commit, given its date and the time of the one before."""
    earliest = dated if now is None else now + rules.one_second_apart
    if dated < earliest:
        taken.remark("commits moved after the one before them")
    return max(dated, earliest)


def _rows(
    git: Git, files: PageFiles, window: Window, max_bytes: int, taken: Taken, progress: Progress
) -> Iterator[Row]:
    """Yield all versions in the order of the archive, with their bodies."""
    rows = window_rows(files, window)
    if files.rules.max_page_bytes is not None:
        rows = _without_large_pages(git, rows, files.rules.max_page_bytes, taken)
    with git.running(["cat-file", "--batch"]) as process:
        for start in range(0, len(rows.page), _BATCH):
            part = range(start, min(start + _BATCH, len(rows.page)))
            process.send(_requests(rows, part))
            for row in part:
                body = None if rows.removed[row] else process.blob(max_bytes)
                if body is None and not rows.removed[row]:
                    taken.remark("versions left out: too large")
                    continue
                yield files.urls[rows.page[row]], int(rows.time[row]), body
            progress("versions", part.stop, len(rows.page))


def _without_large_pages(git: Git, rows: PageRows, max_bytes: int, taken: Taken) -> PageRows:
    """Leave out the pages that have a version over the limit; a clone may lack such versions."""
    large = np.zeros(len(rows.page), bool)
    with git.running(["cat-file", "--batch-check"]) as process:
        for start in range(0, len(rows.page), _BATCH):
            part = range(start, min(start + _BATCH, len(rows.page)))
            process.send(_requests(rows, part))
            for row in part:
                large[row] = not rows.removed[row] and not process.is_blob_within(max_bytes)
    pages = np.unique(rows.page[large])
    taken.remark("pages left out: too large", len(pages))
    return rows.take(~np.isin(rows.page, pages))


def _requests(rows: PageRows, part: range) -> bytes:
    """Return what git reads to find the versions among some rows."""
    return b"".join(rows.names[row].tobytes().hex().encode() + b"\n" for row in part if not rows.removed[row])
