"""The archives of the benchmark, made from the public git repositories of 97 web sites.

    python -m benchmarks.site_histories fetch DIR [--only NAME] [--clones DIR] [--from URL]   one archive a site
    python -m benchmarks.site_histories compare DIR OTHER [--only NAME]                       row by row
    python -m benchmarks.site_histories list                                                 repositories, windows

`sites.tsv` names the repositories, their branches and windows. A site whose archive is already in DIR is skipped, so a
run that was stopped continues. The rules, so that everybody gets the same rows:

- All commits along the first parents of the branch that touch a `*.html` or `*.htm` file, at the time of the commit; a
  commit dated before the one before it takes that one's time. Of several states of a page at one time the last counts.
- The window starts at a commit, at `start`, and takes `days` days. A page's first row is its state at the start, or
  its birth. A removed page has a row without a body. A version equal to the one before has no row.
- The URL is the path in the repository, as it is, on the host OWNER.NAME.example.
- API reference (`EXCLUDE`) is left out. Of a site over `max_pages`, whole directories are kept: the top one, then
  others in the order of the MD5 of their names, each if it fits. Then pages with a version over 400,000 bytes are
  left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from recrawl.errors import RecrawlError, UsageError
from recrawl.lab.formats import git_history
from recrawl.lab.formats.git_history import GitRules
from recrawl.lab.formats.version_rows import Taken, Window

SITES = Path(__file__).with_name("sites.tsv")
EXCLUDE = r"(?i)(javadoc|apidocs|scaladoc|doxygen|/api/|/apidoc)"
MAX_BYTES = 400_000
DAY = 86400
QUIET = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
"""git never asks for a password."""
GITHUB = "https://github.com/{repository}.git"


@dataclass(frozen=True, slots=True)
class Site:
    """A repository, and the part of its history that the benchmark uses."""

    repository: str
    branch: str
    start: int
    """Seconds since 1970: the time of the first commit of the window."""
    days: int
    max_pages: int

    @property
    def name(self) -> str:
        return self.repository.replace("/", "__")

    @property
    def base_url(self) -> str:
        return f"https://{self.repository.replace('/', '.').lower()}.example/"


def read_sites(file: Path = SITES, only: Sequence[str] = ()) -> list[Site]:
    """The sites of a list; with `only`, those whose repository contains one of these texts."""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    sites = []
    for row in rows:
        start = int(datetime.fromisoformat(row["start"]).timestamp())
        sites.append(Site(row["repository"], row["branch"], start, int(row["days"]), int(row["max_pages"])))
    unknown = [text for text in only if not any(text.lower() in site.repository.lower() for site in sites)]
    if unknown:
        raise UsageError(f"no repository of {file.name} contains '{unknown[0]}'; see `list`")
    return [site for site in sites if not only or any(text.lower() in site.repository.lower() for text in only)]


def make_archive(site: Site, repo: Path, out: Path) -> Taken:
    """Write the archive of a site from a clone of its repository."""
    return git_history.convert(
        repo,
        out,
        base_url=site.base_url,
        branch=site.branch,
        window=Window(since=site.start, until=site.start + site.days * DAY),
        rules=GitRules(
            exact_paths=True,
            exclude=EXCLUDE,
            one_second_apart=False,
            max_pages=site.max_pages,
            max_page_bytes=MAX_BYTES,
        ),
    )


def clone(site: Site, url: str, folder: Path) -> None:
    """Clone the branch of a site without files over 400,000 bytes, which the rules leave out in any case."""
    words = ["git", "clone", "--bare", "--quiet", "--single-branch", "--branch", site.branch]
    words += [f"--filter=blob:limit={MAX_BYTES + 1}", "--", url, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **QUIET})
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        lines = done.stderr.strip().splitlines() or ["git clone failed"]
        raise UsageError(f"cannot clone branch {site.branch} of {url}: {lines[-1]}")
    # Without the promise of a remote, git reports a file that was not cloned as missing instead of fetching it.
    for setting in (["--remove-section", "remote.origin"], ["--unset", "extensions.partialclone"]):
        subprocess.run(["git", "-C", str(folder), "config", *setting], capture_output=True, check=False)


def fetch(sites: Sequence[Site], out: Path, source: str = GITHUB, clones: Path | None = None) -> int:
    """Clone and convert every site that has no archive yet; returns how many failed."""
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for number, site in enumerate(sites, 1):
        print(f"{number}/{len(sites)} {site.repository}: ", end="", flush=True)
        archive = out / f"{site.name}.parquet"
        if archive.exists():
            print("already there")
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="recrawl-", dir=clones or out) as scratch:
                repo = (clones or Path(scratch)) / f"{site.name}.git"
                if not repo.exists():
                    new = Path(scratch) / "new"
                    clone(site, source.format(repository=site.repository), new)
                    new.rename(repo)  # a clone that was stopped is not taken for a whole one
                taken = make_archive(site, repo, archive)
        except RecrawlError as error:
            failed += 1
            print(f"failed: {error}")
        else:
            print(f"{taken.pages} pages, {taken.rows} rows")
    return failed


Rows = Iterator[tuple[str, int, bytes | None]]


def rows_of(file: Path) -> Rows:
    for batch in pq.ParquetFile(file).iter_batches(1024, columns=["url", "time", "html"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def differences(file: Path, other: Path) -> dict[str, int]:
    """Count the rows that only one of two archives has, and those with other bodies."""
    counts = {"equal": 0, "only in the first": 0, "only in the second": 0, "other bodies": 0}
    left, right = rows_of(file), rows_of(other)
    one, two = next(left, None), next(right, None)
    while one or two:
        if two is None or (one is not None and one[:2] < two[:2]):
            counts["only in the first"] += 1
            one = next(left, None)
        elif one is None or two[:2] < one[:2]:
            counts["only in the second"] += 1
            two = next(right, None)
        else:
            counts["equal" if one[2] == two[2] else "other bodies"] += 1
            one, two = next(left, None), next(right, None)
    return counts


def compare(sites: Sequence[Site], folder: Path, other: Path) -> int:
    """Print the differences of two folders of archives; returns how many sites differ."""
    different = 0
    for site in sites:
        files = [place / f"{site.name}.parquet" for place in (folder, other)]
        missing = [file for file in files if not file.exists()]
        if missing:
            print(f"{site.repository}: there is no {missing[0]}")
        else:
            counts = differences(*files)
            same = list(counts.values())[1:] == [0, 0, 0]
            print(f"{site.repository}: " + (f"all {counts['equal']} rows equal" if same else f"{counts}"))
        different += bool(missing) or not same
    return different


def main(words: Sequence[str] | None = None) -> int:
    ask = argparse.ArgumentParser(
        prog="python -m benchmarks.site_histories",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = ask.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the repositories and their windows")
    fetching = verbs.add_parser("fetch", help="clone and convert the sites that have no archive yet")
    fetching.add_argument("folder", type=Path)
    fetching.add_argument("--clones", type=Path, help="keep the clones in this folder, and use those that are there")
    fetching.add_argument("--from", dest="source", default=GITHUB, help=f"URL of a repository ({GITHUB})")
    comparing = verbs.add_parser("compare", help="compare two folders of archives row by row")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("other", type=Path)
    for verb in (fetching, comparing):
        verb.add_argument("--only", action="append", default=[], help="sites whose repository contains this text")
    for verb in verbs.choices.values():
        verb.add_argument("--sites", type=Path, default=SITES, help="another list of repositories")
    asked = ask.parse_args(words)
    if asked.verb == "list":
        print(asked.sites.read_text(), end="")
        return 0
    sites = read_sites(asked.sites, asked.only)
    if asked.verb == "compare":
        return compare(sites, asked.folder, asked.other) and 1
    if asked.clones is not None:
        asked.clones.mkdir(parents=True, exist_ok=True)
    failed = fetch(sites, asked.folder, asked.source, asked.clones)
    if failed:
        print(f"{failed} of {len(sites)} sites failed; run the command again to try these", file=sys.stderr)
    return failed and 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RecrawlError as error:
        sys.exit(str(error))
