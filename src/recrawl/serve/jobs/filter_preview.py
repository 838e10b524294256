"""What a noise filter would have hidden, as a process: a question on standard input, the answer on standard output.

A process of its own because some pages take long to read, which cannot be interrupted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recrawl.compare.noise.filters import Noise
from recrawl.errors import UsageError
from recrawl.record.storage import Storage
from recrawl.repository.noise import preview
from recrawl.repository.opening import load, options_of
from recrawl.settings import Filter

_PATIENCE = 20.0
"""Seconds that a preview may take."""


def tried(folder: Path, added: Filter) -> dict[str, Any]:
    """What a filter would have hidden, asked in a process of its own; UsageError when it takes too long."""
    question = json.dumps({"site": added.site, "selectors": added.selectors, "patterns": added.patterns})
    command = [sys.executable, "-m", "recrawl.serve.jobs.filter_preview", str(folder)]
    try:
        ended = subprocess.run(  # noqa: S603
            command, input=question, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError("this takes too long to try: make it simpler") from None
    if ended.returncode:
        raise UsageError("this could not be tried")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def main(folder: Path, question: str) -> str:
    """Answer one question."""
    asked = json.loads(question)
    extra = Noise(tuple(asked["selectors"]), tuple(asked["patterns"]))
    with Storage(folder) as repository:
        before = options_of(load(folder)).noise(asked["site"])
        return json.dumps(asdict(preview(repository, asked["site"], before, extra)))


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), sys.stdin.read()))
