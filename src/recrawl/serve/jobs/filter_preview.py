"""What a noise filter would have hidden, computed in a child process.

Some pages take long to parse, which cannot be interrupted within a process.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from recrawl.cluster.opening import open_repository
from recrawl.errors import UsageError
from recrawl.repository.explain.noise import Preview
from recrawl.repository.processes import run_module
from recrawl.settings import Filter

_TIME_LIMIT = 20.0
"""Seconds."""


def preview_filter(folder: Path, added: Filter) -> Preview:
    """Return what a filter would have hidden; raise UsageError after 20 s."""
    try:
        out = run_module(__name__, str(folder), stdin=json.dumps(asdict(added)), seconds=_TIME_LIMIT)
    except TimeoutError:
        raise UsageError(f"the preview took more than {_TIME_LIMIT:g} s; use a simpler filter") from None
    return Preview(**json.loads(out))


def main(folder: Path, question: str) -> str:
    """Compute the preview of one filter, in the child process."""
    added = json.loads(question)
    with open_repository(folder) as repository:
        found = repository.noise_preview(added["selectors"], added["patterns"], site=added["site"])
    return json.dumps(asdict(found))


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), sys.stdin.read()))
