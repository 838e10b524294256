"""kill -9 in the middle of an import: importing again completes it, and no version of a page is lost or doubled."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.record import warc
from tests.crashes import ask
from tests.world import Repo

_BASE = "https://history.example"
_START = 1_600_000_000
_DAY = 86400
_PAGES, _VERSIONS = 30, 9

# The command as it is, but the process kills itself when it is about to have the n-th version read.
_KILLED_AT = """
import os, signal, sys
from recrawl.cli import invoke
from recrawl.crawl import importer
left, read = [int(sys.argv[1])], importer.read_one
def counted(*given):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(*given)
importer.read_one = counted
sys.exit(invoke(sys.argv[2:]))
"""


def body(page: int, version: int) -> bytes:
    links = "".join(f"<a href='/p{number:02d}'>{number}</a>" for number in range(_PAGES))
    return f"<title>Page {page}</title><p>version {version} of page {page}</p>{links}".encode()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WARC file with all versions of all pages, day by day."""
    file = tmp_path_factory.mktemp("history") / "history.warc.gz"
    parts = []
    for version in range(_VERSIONS):
        for page in range(_PAGES):
            content, at = body(page, version), float(_START + version * _DAY + page)
            head = (("Content-Type", "text/html"),)
            digest = hashlib.sha1(content).digest()
            parts.append(warc.response(f"{_BASE}/p{page:02d}", at, "", 200, head, content, digest, b"GET / HTTP/1.1"))
    file.write_bytes(b"".join(parts))
    return file


def killed(repo: Repo, history: Path, at: int) -> None:
    words = [sys.executable, "-c", _KILLED_AT, str(at), "-C", str(repo.folder), "import", "warc", str(history)]
    ended = subprocess.run(words, capture_output=True, timeout=300, check=False, env={**os.environ, "NO_COLOR": "1"})
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


@pytest.mark.parametrize("site_is_kept", [False, True])
@pytest.mark.parametrize("moments", [(40,), (5, 40, 200)])
def test_an_import_that_is_killed_loses_no_version(
    tmp_path: Path, history: Path, moments: tuple[int, ...], site_is_kept: bool
) -> None:
    repo = Repo.create(tmp_path / "repo")
    if site_is_kept:  # then the links of imported pages make other pages known
        repo.add(_BASE)
    for at in moments:
        killed(repo, history, at)
        counts = ask(repo.folder, "SELECT count(*) FROM versions GROUP BY page")
        assert {count for (count,) in counts} <= {_VERSIONS}, "a page has a part of its history"
    repo.run("import", "warc", history)
    assert len(ask(repo.folder, "SELECT id FROM versions")) == _PAGES * _VERSIONS
    for page in (0, 3, 4, 5, _PAGES - 1):
        log = repo.json("log", f"{_BASE}/p{page:02d}")
        assert [row["number"] for row in log] == list(range(_VERSIONS, 0, -1))
        assert f"version {_VERSIONS - 1} of page {page}" in repo.run("show", f"{_BASE}/p{page:02d}").out
    assert len(repo.found("version")) == _PAGES
    assert ask(repo.folder, "SELECT count(*), count(finished) FROM cycles") == [(1, 1)]
    repo.run("import", "warc", history)
    assert len(ask(repo.folder, "SELECT id FROM versions")) == _PAGES * _VERSIONS, "imported twice"


def test_a_page_that_is_only_known_by_links_gets_its_history(tmp_path: Path, history: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    repo.add(_BASE)
    (tmp_path / "urls.txt").write_text(f"{_BASE}/p07\n")
    repo.run("import", tmp_path / "urls.txt")
    assert repo.json("import", "warc", history)["versions"] == _PAGES * _VERSIONS


def test_a_version_that_cannot_be_parsed_is_a_failed_visit(tmp_path: Path) -> None:
    deep = b"<p>a" + b"".join(b"<i a%d>" % i for i in range(100)) + b"<p>x</p>" * 2_000
    good = b"<p>good"
    head = (("Content-Type", "text/html"),)
    parts = [
        warc.response(f"{_BASE}/", float(at), "", 200, head, content, hashlib.sha1(content).digest(), b"GET /")
        for at, content in ((_START, deep), (_START + 100, good))
    ]
    (tmp_path / "deep.warc.gz").write_bytes(b"".join(parts))
    repo = Repo.create(tmp_path / "repo")
    assert repo.json("import", tmp_path / "deep.warc.gz")["versions"] == 1
    assert repo.outcomes(f"{_BASE}/") == ["too-deep", "new"]
    assert "good" in repo.run("show", f"{_BASE}/").out
