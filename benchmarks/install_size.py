"""The size of the base install and of each extra: `python -m benchmarks.install_size [--fresh]`.

Follows the requirements of `pyproject.toml` through the packages that are installed here and adds up their files. An
extra counts what it adds to the base. pip itself and compiled `.pyc` files do not count. With `--fresh`, it makes a
new environment instead, installs this checkout there, and measures what the folder takes on the disk, all included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
MEGABYTE = 1_000_000
_LARGEST = 5


def packages_of(texts: list[str]) -> dict[str, int]:
    """The packages that these requirements install, with the bytes of their files."""
    sizes: dict[str, int] = {}
    waiting = [(Requirement(text), "") for text in texts]
    seen = set()
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        seen.add((name, extra))
        if name == "recrawl":
            waiting += [(Requirement(text), "") for wanted in requirement.extras for text in extras()[wanted]]
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed; install everything with: pip install -e '.[dev]'") from None
        files = (file.locate() for file in found.files or () if file.suffix != ".pyc")
        sizes[name] = sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file())
        needs = [Requirement(text) for text in found.requires or ()]
        waiting += [(need, wanted) for need in needs for wanted in ("", *requirement.extras)]
    return sizes


def extras() -> dict[str, list[str]]:
    """The requirements of each extra."""
    return dict(PROJECT["optional-dependencies"])


def fresh_install() -> int:
    """Bytes on the disk of a new environment in which `pip install .` was run."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [str(Path(folder) / "bin" / "python"), "-m", "pip", "install", "--quiet", str(Path(__file__).parents[1])]
        subprocess.run(pip, check=True)
        return sum(file.lstat().st_blocks for file in Path(folder).rglob("*")) * 512


def main() -> None:
    """Print a table in Markdown."""
    if "--fresh" in sys.argv[1:]:
        print(f"{fresh_install() / MEGABYTE:.0f} MB")
        return
    base = packages_of(PROJECT["dependencies"])
    rows = {"base": base}
    for extra, texts in extras().items():
        rows[extra] = {name: size for name, size in packages_of(texts).items() if name not in base}
    print("| install | packages | MB | largest |\n|---|---|---|---|")
    for name, sizes in rows.items():
        largest = sorted(sizes, key=lambda one: -sizes[one])[:_LARGEST]
        named = ", ".join(f"{one} {sizes[one] / MEGABYTE:.0f}" for one in largest)
        print(f"| {name} | {len(sizes)} | {sum(sizes.values()) / MEGABYTE:.0f} | {named} |")


if __name__ == "__main__":
    main()
