"""The documentation as a web site: it builds without a warning, and has search, the docstrings and the pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_site_builds_strictly_with_search_and_the_api(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "site"
    pages = {str(file.relative_to(ROOT / "docs").with_suffix("")) for file in (ROOT / "docs").rglob("*.md")}
    made = {str(file.parent.relative_to(site)) for file in site.rglob("index.html")}
    assert pages - {"README"} <= made | {name.removesuffix("/README") for name in made}
    index = json.loads((site / "search" / "search_index.json").read_text())
    assert any("webhook" in entry["text"] for entry in index["docs"])
    api = (site / "reference" / "python" / "index.html").read_text()
    assert "add_sink" in api
    assert "Deliver every change to another system" in api
    assert (site / "pictures" / "overview.png").exists()
    assert "```" not in (site / "guides" / "crash-and-backup" / "index.html").read_text(), "shell examples are code"
    assert (site / "examples" / "scrapy_titles.py").exists()
    front = (site / "index.html").read_text()
    audiences = ("archivists", "search engineers", "builders of retrieval systems", "watchers of pages", "researchers")
    assert [it for it in audiences if f"For {it}" not in front] == []
