"""Commands that only read load what they need, and no more: counted by modules, not by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world import Repo

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
    loaded = set(json.loads(ended.stderr.splitlines()[-1]))
    assert "recrawl.repository.reader" in loaded
    assert sorted(loaded.intersection(HEAVY)) == []
