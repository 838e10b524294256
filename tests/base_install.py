"""A base install without an environment of its own: packages that only extras install cannot be imported.

A finder in a `sitecustomize` module refuses every module whose distribution the requirements of the base do not reach,
in all processes that Python starts, so what was forgotten in `dependencies` is missed as it would be in a fresh
environment.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from benchmarks.install_size import PROJECT, packages_of
from packaging.utils import canonicalize_name

_BLOCKER = """
import sys

class _Blocker:
    names = frozenset({names!r})

    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if any(".".join(parts[:size]) in self.names for size in (1, 2)):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, _Blocker())
"""


@cache
def blocked() -> frozenset[str]:
    """The modules that a base install does not have."""
    base = {canonicalize_name(name) for name in packages_of(PROJECT["dependencies"])} | {"recrawl", "pip", "setuptools"}
    found = {
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not base.intersection(map(canonicalize_name, owners))
    }
    return frozenset(found - {"tests", "benchmarks"} | {"backports.zstd"} - {"backports"})


def base_environment(folder: Path) -> dict[str, str]:
    """The environment variables of a base install; its `sitecustomize` is written to this folder."""
    (folder / "sitecustomize.py").write_text(_BLOCKER.format(names=sorted(blocked())))
    root = Path(__file__).parents[1]
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), str(root / "src"), str(root)))}
