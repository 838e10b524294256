"""The base install: it crawls and searches without the packages of the extras; commands name what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email import message_from_string
from pathlib import Path

import numpy as np
import pytest
from benchmarks.install_size import MEGABYTE, PROJECT, packages_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from recrawl import gamma
from tests.world import Reply, Site, page

ROOT = Path(__file__).parents[1]
BLOCKED = """
import sys

class Blocker:
    names = {"altair", "joblib", "narwhals", "pandas", "pyarrow", "scipy", "sklearn", "threadpoolctl", "vl_convert"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
LAB = "pip install 'recrawl[lab]'"


@pytest.fixture
def base(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python where the packages of the extras cannot be imported, its child processes included."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(BLOCKED)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'hook'}:{ROOT / 'src'}"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_every_module_imports_without_the_extras(base: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = base(
        "-c",
        "import importlib, pkgutil, recrawl\n"
        "names = [m.name for m in pkgutil.walk_packages(recrawl.__path__, 'recrawl.')]\n"
        "optional = ('recrawl.__main__', 'recrawl.crawl.render.process', 'recrawl.serve.alerts.apprise_process')\n"
        "for name in names:\n"
        "    if name not in optional: importlib.import_module(name)\n"
        "print(len(names))",
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


def test_a_site_is_crawled_refreshed_and_searched_without_the_extras(
    base: Callable[..., subprocess.CompletedProcess[str]], site: Callable[..., Site]
) -> None:
    web = site({"/": Reply(page("front words", "/a")), "/a": Reply(page("alpha words"))})
    lines = [
        "init news",
        f"-C news add {web.url('/')} --allow-private --delay 0 --change significant",
        "-C news crawl",
        "-C news cycle --budget 2",
        "-C news rates",
        "-C news status",
        "-C news chunks",
        "-C news search alpha",
        "-C news cycle --policy predicted(method=2d)",
    ]
    done = base("-c", f"from recrawl.cli import invoke\nprint([invoke(line.split()) for line in {lines}])")
    assert done.stdout.endswith(f"{[0] * 8 + [2]}\n"), done.stderr
    assert web.url("/a") in done.stdout
    assert done.stderr.splitlines()[-1].endswith(LAB)


def test_the_commands_of_the_lab_say_what_to_install(base: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    commands = ["run x", "compare x", "predict x", "reproduce q-example", "label x --pairs y", "synth x", "serve x"]
    lines = [*(f"lab {words}" for words in commands), "demo"]
    done = base("-c", f"from recrawl.cli import invoke\nprint([invoke(line.split()) for line in {lines}])")
    assert done.stdout == f"{[2] * len(lines)}\n", done.stderr
    said = done.stderr.splitlines()
    assert len(said) == len(lines)
    assert all(line.startswith("recrawl: ") and line.endswith(LAB) for line in said)


def test_the_base_install_weighs_at_most_300_megabytes() -> None:
    sizes = packages_of(PROJECT["dependencies"])
    assert sum(sizes.values()) < 300 * MEGABYTE
    assert "numpy" in sizes
    assert not {"scipy", "pyarrow", "scikit-learn", "altair"} & set(sizes)


def test_the_wheel_asks_for_the_lab_only_as_an_extra(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as parts:
        (name,) = (name for name in parts.namelist() if name.endswith("/METADATA"))
        metadata = message_from_string(parts.read(name).decode())
    asked = [text for text in metadata.get_all("Requires-Dist", []) if text.startswith(("scipy", "pyarrow", "altair"))]
    assert {text.partition("extra == ")[2] for text in asked} == {"'lab'", "'dev'"}
    assert "lab" in metadata.get_all("Provides-Extra", [])


@given(st.floats(0.01, 1e4), st.floats(0.01, 20))
def test_shares_of_the_gamma_distribution_are_those_of_scipy(shape: float, factor: float) -> None:
    x = shape * factor
    np.testing.assert_allclose(gamma.lower_share(shape, x), special.gammainc(shape, x), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(gamma.upper_share(shape, x), special.gammaincc(shape, x), rtol=1e-9, atol=1e-14)


@given(st.floats(0.01, 1e4), st.floats(0.001, 0.999))
def test_quantiles_of_the_gamma_distribution_are_those_of_scipy(shape: float, share: float) -> None:
    np.testing.assert_allclose(gamma.quantile(shape, share), special.gammaincinv(shape, share), rtol=1e-9)
