"""Import the history of a web site from its git repository: every commit of a branch is a state of the site.

Only first parents are followed: the states that the branch had, in order. A commit that changes an `.html` or `.htm`
file gives a row at the committer's time; `index.html` is its folder's URL. Committers' clocks can be wrong, but the
order of commits is certain: a commit dated no later than the one before is moved one second after it.

The repository is untrusted. The git program runs without a shell and with NUL-terminated names; symbolic links and
submodules are not pages; nothing is fetched from elsewhere, whatever the repository's settings.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive, UnknownName, UsageError
from recrawl.lab.formats.git_program import Git
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, Row, Taken, Window, write_versions

_HTML = (b".html", b".htm")
_INDEX = b"index.html"
# Characters that browsers do not escape in the path of a link, so that links and URLs agree.
_SAFE = "/:@!$&'()*+,;=~[]|"
# Override settings of the user or the repository that would change the output.
_SETTINGS = ("-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "log.diffMerges=first-parent")
_FORM = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-color", "--no-notes", "--no-decorate", "--no-relative")
_LOG = (*_SETTINGS, "log", "--first-parent", "-m", "--reverse", *_FORM, "--format=tformat:%ct")
_BATCH = 32  # requests that always fit in a pipe, so that git and this process never wait for each other
_LAST = 253402300799  # the year 9999


class FileChange(NamedTuple):
    """A file after a commit."""

    time: int
    path: bytes
    blob: str
    """Git's object name of the content; empty if the file was removed."""


def convert(
    repo: Path,
    out: Path,
    *,
    base_url: str,
    branch: str = "",
    root: str = "",
    window: Window | None = None,
    max_bytes: int = MAX_BYTES,
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
    """
    base, folder = _base(base_url), _folder(root)
    git = Git(repo)
    commit = _commit(git, branch)
    where = f"{branch or 'HEAD'} of {repo}" + (f" under {root}" if folder else "")
    nothing = f"no commit on {where} has an .html or .htm file in this period"
    taken = Taken()
    pages = _Pages(base, folder, len(commit) // 2, taken)  # object names are SHA-1 or SHA-256, as the commit's
    for done, change in enumerate(_changes(git, commit, folder, taken), 1):
        pages.note(change)
        progress("changes", done, None)
    if not pages.urls:
        raise BadArchive(f"no commit on {where} has an .html or .htm file")
    return write_versions(out, _rows(git, pages, window or Window(), max_bytes, taken, progress), taken, nothing)


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


def _changes(git: Git, commit: str, folder: bytes, taken: Taken) -> Iterator[FileChange]:
    """Yield every file changed by a commit, oldest commit first."""
    paths = [b":(top,literal)" + folder] if folder else []
    with git.running([*_LOG, commit, "--", *paths]) as process:
        tokens = process.tokens()
        now: int | None = None
        for token in tokens:
            text = token.lstrip(b"\n")
            if text.startswith(b":"):
                _, mode, _, blob, _ = text.split(b" ")
                path = next(tokens)
                if mode in (b"120000", b"160000") and path.lower().endswith(_HTML):
                    taken.remark("symbolic links and submodules left out")
                yield FileChange(now or 0, path, blob.decode() if mode.startswith(b"100") else "")
            elif text:
                at = min(int(text), _LAST)
                if now is not None and at <= now:
                    taken.remark("commits moved after the one before them")
                    at = now + 1
                now = at


class _Pages:
    """The changes of all pages as columns, and their URLs."""

    def __init__(self, base: str, folder: bytes, width: int, taken: Taken) -> None:
        self.urls: list[str] = []
        self.page = array("q")
        self.time = array("q")
        self.blobs = bytearray()
        self.width = width
        self._base = base
        self._prefix = folder + b"/" if folder else b""
        self._taken = taken
        self._numbers: dict[bytes, int] = {}
        self._seen: set[str] = set()

    def note(self, change: FileChange) -> None:
        """Add a change if it is one of a page."""
        if not (change.path.lower().endswith(_HTML) and change.path.startswith(self._prefix)):
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
        """Return a new page's number; -1 if its URL is invalid or belongs to another file."""
        name = path[len(self._prefix) :]
        if name == _INDEX or name.endswith(b"/" + _INDEX):
            name = name[: -len(_INDEX)]
        url = canonical(self._base + quote_from_bytes(name, safe=_SAFE))
        if url is None or url in self._seen:
            self._taken.remark("files left out: no URL of their own")
            return -1
        self._seen.add(url)
        self.urls.append(url)
        return len(self.urls) - 1


def _rows(git: Git, pages: _Pages, window: Window, max_bytes: int, taken: Taken, progress: Progress) -> Iterator[Row]:
    """Yield all versions in the order of the archive, with their bodies."""
    by_name = np.array(sorted(range(len(pages.urls)), key=pages.urls.__getitem__), np.int64)
    rank = np.empty_like(by_name)
    rank[by_name] = np.arange(len(by_name))
    page, time = rank[np.array(pages.page, np.int64)], np.array(pages.time, np.int64)
    names: NDArray[np.uint8] = np.frombuffer(bytes(pages.blobs), np.uint8).reshape(-1, pages.width)
    order = np.lexsort((time, page))
    page, time, names = page[order], time[order], names[order]
    removed: Flags = (names == 0).all(axis=1)
    kept, time = window.of(page, time, removed)
    with git.running(["cat-file", "--batch"]) as process:
        for start in range(0, len(kept), _BATCH):
            rows = kept[start : start + _BATCH]
            blobs = ["" if removed[row] else names[row].tobytes().hex() for row in rows]
            process.send("".join(f"{name}\n" for name in blobs if name).encode())
            for number, (row, name) in enumerate(zip(rows.tolist(), blobs, strict=True), start):
                body = process.blob(max_bytes) if name else None
                if name and body is None:
                    taken.remark("versions left out: too large")
                    continue
                yield pages.urls[by_name[page[row]]], int(time[number]), body
            progress("versions", min(start + _BATCH, len(kept)), len(kept))
