"""Commands that only read load what they need, and no more: counted by modules, not by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.cli import VERBS
from tests.world import Repo, Site, page

HEAVY = (
    "scipy",
    "sklearn",
    "pyarrow",
    "PIL",
    "lxml",
    "jmespath",
    "tantivy",
    "tomlkit",
    "protego",
    "webencodings",
    "numpy.ma",
    "pycurl",
    "turbohtml",
    "fastwarc",
    "rich",
    "email.utils",
)
_LOADED = """
import json, runpy, sys
try:
    runpy.run_module("recrawl", run_name="__main__")
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["status", "sites", "pages", "changes"])
def test_a_command_that_only_reads_loads_no_heavy_package(tmp_path: Path, command: str) -> None:
    repo = Repo.create(tmp_path / "repo")
    words = [sys.executable, "-c", _LOADED, "-C", str(repo.folder), command]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr[-500:]
    loaded = _loaded(ended)
    assert "recrawl.repository.reader" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []


@pytest.mark.parametrize("verb", [*(verb for verb in VERBS if verb != "lab"), "lab run", "lab compare", "lab serve"])
def test_the_help_of_a_command_loads_declarations_only(verb: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LOADED, *verb.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr[-500:]
    heavy = {*HEAVY, "numpy", "msgspec", "sqlite3", "recrawl.settings", "recrawl.repository.repository"}
    assert sorted(_loaded(ended) & heavy) == []


@pytest.mark.parametrize("command", ["why", "predict", "rates"])
def test_a_command_that_explains_loads_one_policy_and_nothing_that_downloads(tmp_path: Path, command: str) -> None:
    """What it plans and estimates with is needed; what visits pages, and all other policies, is not."""
    with Site({"/": page("home")}) as site:
        repo = Repo.create(tmp_path / "repo")
        repo.crawl(site.url("/"))
        repo.later(days=1)
        repo.cycle()  # now cycles have a length
        words = [sys.executable, "-c", _LOADED, "-C", str(repo.folder), command, site.url("/")]
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr[-500:]
    loaded = _loaded(ended)
    assert "recrawl.choose.shock.policy" in loaded
    others = {"recrawl.crawl.cycles", "recrawl.fetch.http", "recrawl.choose.papers.by_site.greedy"}
    others |= {"recrawl.learn.pooled.learner", "recrawl.learn.structure.anchor", "recrawl.repository.results.runs"}
    assert sorted(loaded & (set(HEAVY) - {"protego"} | others)) == []


def test_a_cycle_without_changes_loads_nothing_that_parses_pages(tmp_path: Path) -> None:
    """A crawl too: its readers do."""
    parsing = {"turbohtml", "lxml", "tinycss2", "webencodings", "markdown_it", "recrawl.crawl.visits.reader_process"}
    unneeded = {"scipy", "sklearn", "pyarrow", "PIL", "rich", "concurrent.futures", "email.utils", "statistics"}
    with Site({"/": page("home")}) as site:
        repo = Repo.create(tmp_path / "repo")
        repo.add(site.url("/"))
        for words, seen in (["crawl"], "recrawl.crawl.cycles"), (["cycle", "--budget", "1"], "recrawl.loop"):
            command = [sys.executable, "-c", _LOADED, "-C", str(repo.folder), *words]
            ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            assert ended.returncode == 0, ended.stderr[-500:]
            loaded = _loaded(ended)
            assert seen in loaded
            assert sorted(loaded & (parsing | unneeded)) == []
            assert ("multiprocessing" in loaded) == (words == ["crawl"])  # the cycle starts no reader


def _loaded(ended: subprocess.CompletedProcess[str]) -> set[str]:
    return set(json.loads(ended.stderr.splitlines()[-1]))
