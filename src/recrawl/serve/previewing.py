"""What a noise filter would have hidden, as a process: a question on standard input, the answer on standard output.

A process of its own because a regular expression can take for ever and cannot be interrupted.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from recrawl.compare.filters import Noise
from recrawl.record.repository import Repository
from recrawl.verbs.noise import preview
from recrawl.verbs.opening import load, options_of


def main(folder: Path, question: str) -> str:
    """Answer one question."""
    asked = json.loads(question)
    extra = Noise(tuple(asked["selectors"]), tuple(asked["patterns"]))
    with Repository(folder) as repository:
        before = options_of(load(folder)).noise(asked["site"])
        return json.dumps(asdict(preview(repository, asked["site"], before, extra)))


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]), sys.stdin.read()))
