"""Other programs in environments of their own: each has a lock file in `requirements/`, and is made once per version.

They depend on packages that nobody maintains any more, or that would hold back ours. The first run makes them in the
user's cache folder; without a network the tests that need them are skipped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

_REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"


def python_of(name: str) -> Path:
    """The Python of an environment, which is made once for each lock file and version of Python."""
    required = _REQUIREMENTS / f"{name}.lock"
    of = hashlib.sha256(required.read_bytes() + sys.version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recrawl"
    folder = cache / f"{name}-{of}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}-{of}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait until it is complete
        if not (folder / "complete").exists():
            venv.create(folder, clear=True, symlinks=True)
            into = ["--python", str(folder / "bin" / "python"), "install", "--quiet", "--requirement", str(required)]
            words = [sys.executable, "-m", "pip", "--disable-pip-version-check", *into]
            ended = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
            if ended.returncode:
                pytest.skip(f"{name} cannot be installed: {ended.stderr.strip().splitlines()[-1:]}")
            (folder / "complete").touch()
    return folder / "bin" / "python"
