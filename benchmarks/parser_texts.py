"""Compare the texts of turbohtml and lexbor: `python -m benchmarks.parser_texts ARCHIVES --seconds 540`.

Each distinct body of the histories is parsed by both, and the digests of the visible texts are compared; a body that
differs is listed. The package selectolax, which recrawl does not need, must be installed. Files are taken in the order
of their sizes; `--first N` leaves out the N smallest, so that a run can be continued. Exit code 1: a text differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from recrawl.compare import digest
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode

_HIDDEN = ("script", "style", "noscript")


def lexbor_text(parser: Any, page: str) -> str:
    """The visible text as recrawl read it with lexbor."""
    tree = parser(page)
    root = tree.body or tree.css_first("frameset")
    if root is None:
        return ""
    for name in _HIDDEN:
        for node in tree.tags(name):
            node.decompose()
    return " ".join(root.text(separator=" ", skip_empty=True).split())


def differing(file: Path, parser: Any) -> tuple[int, list[str]]:
    """How many distinct bodies a history has, and the pages whose texts differ."""
    seen, wrong = set[bytes](), list[str]()
    for batch in pq.ParquetFile(file).iter_batches(256, columns=["url", "html"]):
        for url, body in zip(batch["url"].to_pylist(), batch["html"].to_pylist(), strict=True):
            if body is None or (key := digest.of_payload(body)) in seen:
                continue
            seen.add(key)
            page = decode(body).text
            if digest.of_text(text.visible(parse(page))) != digest.of_text(lexbor_text(parser, page)):
                wrong.append(url)
    return len(seen), wrong


def main(words: list[str] | None = None, tell: Callable[[str], None] = lambda line: print(line, flush=True)) -> int:
    """Compare file by file until the time is over."""
    about = argparse.ArgumentParser(prog="python -m benchmarks.parser_texts", description=__doc__)
    about.add_argument("archives", type=Path)
    about.add_argument("--seconds", type=float, default=540.0, help="begin no file after so many seconds (540)")
    about.add_argument("--first", type=int, default=0, help="files, of the smallest, that are left out (0)")
    chosen = about.parse_args(words)
    from selectolax.lexbor import LexborHTMLParser  # lazy: not among recrawl's packages

    files = sorted(chosen.archives.glob("*.parquet"), key=lambda path: (path.stat().st_size, path.name))
    begun, bodies, wrong, done = time.monotonic(), 0, 0, chosen.first
    for file in files[chosen.first :]:
        if time.monotonic() - begun > chosen.seconds:
            break
        count, pages = differing(file, LexborHTMLParser)
        bodies, wrong, done = bodies + count, wrong + len(pages), done + 1
        for url in pages:
            tell(f"    {file.name}: {url}")
        tell(f"{done} of {len(files)} files, {bodies:,} distinct bodies, {wrong} with another text")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
