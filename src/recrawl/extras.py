"""Packages that are imported when they are first used: pyarrow and warcio, and those of the extras.

The base install keeps pages fresh and searchable, imports histories and replays policies on them. Charts, prediction
from words and clusters need the extra `lab`, other things other extras. Modules import these packages from here. That
costs nothing until a part of one is used; if it is missing then, the error says what to install.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from recrawl.errors import UsageError

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""Zstandard: part of Python 3.14, before that a package of the extra `zstd`."""
CHARTS = ("altair", "vl_convert")
"""What draws charts."""
_EXTRA_OF = {
    "altair": "lab",
    "apprise": "alerts",
    "mcp": "mcp",
    "obstore": "s3",
    "PIL": "browser",
    "playwright": "browser",
    "psycopg": "postgres",
    "pypdfium2": "pdf",
    "ray": "ray",
    "scipy": "lab",
    "scrapy": "scrapy",
    "sklearn": "lab",
    "threadpoolctl": "lab",
    "vl_convert": "lab",
    ZSTD: "zstd",
}
"""Package to the extra that installs it."""


class MissingExtra(UsageError):
    """A package of an extra is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}, which is not installed: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that installs an extra for this Python, from where recrawl was installed: index or checkout."""
    return f"{sys.executable} -m pip install '{_source()}[{extra}]'"


def _source() -> str:
    """What pip calls this installation: the folder of the checkout, or the name of the package."""
    from importlib.metadata import PackageNotFoundError, distribution  # lazy: only a missing package asks

    try:
        origin = json.loads(distribution("recrawl").read_text("direct_url.json") or "{}")
        parts = urlsplit(origin.get("url", ""))
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        return "recrawl"
    folder = Path(unquote(parts.path))
    return str(folder) if parts.scheme == "file" and (folder / "pyproject.toml").is_file() else "recrawl"


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """What is missing, if this is a package of an extra."""
    names = error.name or ""
    found = next((name for name in _EXTRA_OF if names == name or names.startswith(f"{name}.")), None)
    return MissingExtra(found, _EXTRA_OF[found]) if found else None


class Package:
    """Stands for a package: its attributes and submodules are those of the package.

    >>> Package("json").dumps([1])
    '[1]'
    >>> try:
    ...     Package("no_such_package").sparse
    ... except MissingExtra as error:
    ...     print(str(error).partition(":")[0])
    this needs the package no_such_package, which is not installed
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # inspection of this object, not use of the package
            raise AttributeError(name)
        module = _loaded(self._name)
        value = getattr(module, name) if hasattr(module, name) else import_module(f"{self._name}.{name}")
        self.__dict__[name] = value
        return value


def require(*names: str) -> None:
    """Raise `MissingExtra` for the first of these packages of extras that is not installed."""
    for name in names:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise MissingExtra(name, _EXTRA_OF[name])


def _loaded(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = (error.name or name).partition(".")[0]
        raise MissingExtra(package, _EXTRA_OF.get(package) or _EXTRA_OF.get(name.partition(".")[0], "lab")) from error


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
    import warcio
    from backports import zstd
    from scipy import sparse

    ray: Any
else:
    alt = Package("altair")
    psycopg = Package("psycopg")
    pa = Package("pyarrow")
    pc = Package("pyarrow.compute")
    pq = Package("pyarrow.parquet")
    ray = Package("ray")
    scipy = Package("scipy")
    sparse = Package("scipy.sparse")
    sklearn = Package("sklearn")
    threadpoolctl = Package("threadpoolctl")
    vlc = Package("vl_convert")
    warcio = Package("warcio")
    zstd = Package(ZSTD)

__all__ = [
    "CHARTS",
    "ZSTD",
    "MissingExtra",
    "alt",
    "install_command",
    "missing_extra",
    "pa",
    "pc",
    "pq",
    "psycopg",
    "ray",
    "require",
    "scipy",
    "sklearn",
    "sparse",
    "threadpoolctl",
    "vlc",
    "warcio",
    "zstd",
]
