"""What the site does to the pages of docs/, which are written for readers of the repository.

It holds the files outside of docs/ to which they link: examples, and lists of the benchmarks. The mark `test` of shell
examples that the tests run is removed: MkDocs would not take them for code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
_LINK = re.compile(r"\]\((?:\.\./)+((?:examples|benchmarks)/[^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the files."""
    linked = {name for page in Path(config["docs_dir"]).rglob("*.md") for name in _LINK.findall(page.read_text())}
    for name in sorted(linked):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point the links to where they are on the site; unmark the shell examples."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"^```sh test$", "```sh", markdown, flags=re.MULTILINE)
    return _LINK.sub(lambda found: f"]({up}{found[1]}", markdown)
