"""The packages of the extras `lab`, `postgres`, `ray`, `s3` and `zstd`, imported when they are first used.

The base install keeps pages fresh and searchable. Replays, prediction, clusters, charts and Parquet files need more and
heavier packages: `pip install 'recrawl[lab]'`. Modules import these packages from here. That costs nothing until a part
of one is used; if it is missing then, the error says what to install.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from recrawl.errors import UsageError

_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_LAB = ("altair", "pyarrow", "scipy", "sklearn", "threadpoolctl", "vl_convert")


class MissingExtra(UsageError):
    """A package of an extra is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}, which is not installed: pip install 'recrawl[{extra}]'")


class Package:
    """Stands for a package: its attributes and submodules are those of the package.

    >>> Package("json").dumps([1])
    '[1]'
    >>> try:
    ...     Package("no_such_package").sparse
    ... except MissingExtra as error:
    ...     print(error)
    this needs the package no_such_package, which is not installed: pip install 'recrawl[lab]'
    """

    def __init__(self, name: str, extra: str = "lab") -> None:
        self._name = name
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # inspection of this object, not use of the package
            raise AttributeError(name)
        module = _loaded(self._name, self._extra)
        value = getattr(module, name) if hasattr(module, name) else import_module(f"{self._name}.{name}")
        self.__dict__[name] = value
        return value


def require_lab() -> None:
    """Raise `MissingExtra` unless all packages of the extra `lab` are installed."""
    _require(_LAB, "lab")


def require_postgres() -> None:
    """Raise `MissingExtra` unless the package of the extra `postgres` is installed."""
    _require(("psycopg",), "postgres")


def require_ray() -> None:
    """Raise `MissingExtra` unless the package of the extra `ray` is installed."""
    _require(("ray",), "ray")


def require_s3() -> None:
    """Raise `MissingExtra` unless the package of the extra `s3` is installed."""
    _require(("obstore",), "s3")


def require_zstd() -> None:
    """Raise `MissingExtra` unless Zstandard is here: part of Python 3.14, before that a package of the extra `zstd`."""
    _require((_ZSTD,), "zstd")


def _require(names: Iterable[str], extra: str) -> None:
    for name in names:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise MissingExtra(name, extra)


def _loaded(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra((error.name or name).partition(".")[0], extra) from error


if TYPE_CHECKING:
    import altair as alt
    import psycopg
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import scipy
    import sklearn
    import threadpoolctl
    import vl_convert as vlc
    from backports import zstd
    from scipy import sparse

    ray: Any
else:
    alt = Package("altair")
    psycopg = Package("psycopg", "postgres")
    pa = Package("pyarrow")
    pc = Package("pyarrow.compute")
    pq = Package("pyarrow.parquet")
    ray = Package("ray", "ray")
    scipy = Package("scipy")
    sparse = Package("scipy.sparse")
    sklearn = Package("sklearn")
    threadpoolctl = Package("threadpoolctl")
    vlc = Package("vl_convert")
    zstd = Package(_ZSTD, "zstd")

__all__ = [
    "MissingExtra",
    "alt",
    "pa",
    "pc",
    "pq",
    "psycopg",
    "ray",
    "require_lab",
    "require_postgres",
    "require_ray",
    "require_s3",
    "require_zstd",
    "scipy",
    "sklearn",
    "sparse",
    "threadpoolctl",
    "vlc",
    "zstd",
]
