"""Import the history of a web site from its git repository: every commit of a branch is a state of the site.

Only first parents are followed: the states that the branch had, in order. A commit that changes an `.html` or `.htm`
file gives a row at the committer's time; `index.html` is its folder's URL. Committers' clocks can be wrong, but the
order of commits is certain: a commit dated no later than the one before is moved one second after it.

The repository is untrusted. The git program runs without a shell and with NUL-terminated names; symbolic links and
submodules are not pages; nothing is fetched from elsewhere, whatever the repository's settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive, UnknownName, UsageError
from recrawl.lab.formats.git_pages import FileChange, GitRules, PageFiles, PageRows, window_rows
from recrawl.lab.formats.git_program import Git
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, Row, Taken, Window, write_versions

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
