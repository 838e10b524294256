"""The history of a web site that is kept in git, as an archive: every commit of a branch is a moment of the site.

Only the first parents are followed: that is what the branch showed, one state after the other. A commit that changes
an `.html` or `.htm` file gives a row at the committer's time; `index.html` stands for its folder. Clocks of
committers go wrong, but the order of commits is certain: a commit that claims to be no later than the one before
it is put one second after it.

The repository may be anybody's. Git is called by its program without a shell, with names ended by NUL; symbolic
links and submodules are no pages; nothing is fetched from elsewhere, whatever the repository's settings say.
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
# What a browser leaves as it is in the path of a link, so that links and addresses agree.
_SAFE = "/:@!$&'()*+,;=~[]|"
# Settings of the user or the repository must not change what is printed.
_SETTINGS = ("-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "log.diffMerges=first-parent")
_FORM = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-color", "--no-notes", "--no-decorate", "--no-relative")
_LOG = (*_SETTINGS, "log", "--first-parent", "-m", "--reverse", *_FORM, "--format=tformat:%ct")
_AT_ONCE = 32  # so many requests always fit in a pipe, so that git and we never wait for each other
_LAST = 253402300799  # the year 9999


class Change(NamedTuple):
    """A file after a commit."""

    time: int
    path: bytes
    blob: str
    """Git's name of the content; empty where there is none any more."""


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
        The address at which `root` is published.
    branch
        A branch, or anything else that names a commit; the current one by default.
    root
        The folder of the repository that holds the site; the whole of it by default.
    window
        The part that is wanted.
    max_bytes
        Larger files are left out; the page stays what it was.
    """
    base, folder = _base(base_url), _folder(root)
    git = Git(repo)
    commit = _commit(git, branch)
    where = f"{branch or 'HEAD'} of {repo}" + (f" under {root}" if folder else "")
    nothing = f"no commit on {where} has an .html or .htm file in the time that is asked for"
    taken = Taken()
    pages = _Pages(base, folder, len(commit) // 2, taken)  # names are SHA-1, or SHA-256 as the commit's is
    for done, change in enumerate(_changes(git, commit, folder, taken), 1):
        pages.note(change)
        progress("changes", done, None)
    if not pages.urls:
        raise BadArchive(f"no commit on {where} has an .html or .htm file")
    return write_versions(out, _rows(git, pages, window or Window(), max_bytes, taken, progress), taken, nothing)


def _base(url: str) -> str:
    base = canonical(url)
    if base is None or "?" in base:
        raise UsageError(f"'{url}' is no address of a site: give --base-url as in https://example.org/docs/")
    return base if base.endswith("/") else base + "/"


def _folder(root: str) -> bytes:
    parts = [part for part in root.split("/") if part not in ("", ".")]
    if ".." in parts or root.startswith("/"):
        raise UsageError(f"'{root}' is no folder inside the repository: give --root as in docs or site/public")
    return "/".join(parts).encode("utf-8", "surrogateescape")


def _commit(git: Git, branch: str) -> str:
    """The commit that a branch, a tag or any other name leads to."""
    if not branch:
        return git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or _no_commits(git)
    # A name that looks like an option never is a branch. A branch goes before a tag of the same name.
    for name in () if branch.startswith("-") else (f"refs/heads/{branch}", branch):
        found = git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.isalnum():  # a range gives more than one
            return found
    heads = git.ask("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/remotes").split("\n")
    if not any(heads):
        _no_commits(git)
    raise UnknownName("branch", branch, heads)


def _no_commits(git: Git) -> str:
    raise BadArchive(f"{git.repo} has no commits where HEAD points to; name a branch that has some")


def _changes(git: Git, commit: str, folder: bytes, taken: Taken) -> Iterator[Change]:
    """Every file that is changed by a commit, the oldest commit first."""
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
                yield Change(now or 0, path, blob.decode() if mode.startswith(b"100") else "")
            elif text:
                at = min(int(text), _LAST)
                if now is not None and at <= now:
                    taken.remark("commits moved after the one before them")
                    at = now + 1
                now = at


class _Pages:
    """The changes of all pages as columns, and their addresses."""

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

    def note(self, change: Change) -> None:
        """Take in a change, if it is one of a page."""
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
        """A new page's number; -1 when its address cannot be one, or is another file's already."""
        name = path[len(self._prefix) :]
        if name == _INDEX or name.endswith(b"/" + _INDEX):
            name = name[: -len(_INDEX)]
        url = canonical(self._base + quote_from_bytes(name, safe=_SAFE))
        if url is None or url in self._seen:
            self._taken.remark("files left out: no address of their own")
            return -1
        self._seen.add(url)
        self.urls.append(url)
        return len(self.urls) - 1


def _rows(git: Git, pages: _Pages, window: Window, max_bytes: int, taken: Taken, progress: Progress) -> Iterator[Row]:
    """All versions in the order of the archive, with their bodies."""
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
        for start in range(0, len(kept), _AT_ONCE):
            rows = kept[start : start + _AT_ONCE]
            wanted = ["" if removed[row] else names[row].tobytes().hex() for row in rows]
            process.send("".join(f"{name}\n" for name in wanted if name).encode())
            for number, (row, name) in enumerate(zip(rows.tolist(), wanted, strict=True), start):
                body = process.blob(max_bytes) if name else None
                if name and body is None:
                    taken.remark("versions left out: too large")
                    continue
                yield pages.urls[by_name[page[row]]], int(time[number]), body
            progress("versions", min(start + _AT_ONCE, len(kept)), len(kept))
