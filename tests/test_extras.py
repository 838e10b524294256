"""The base install: it crawls and searches without the packages of the extras; commands name what is missing."""

from __future__ import annotations

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
from recrawl.extras import install_command
from tests.base_install import base_environment
from tests.world import Reply, Site, page

ROOT = Path(__file__).parents[1]
LAB = "[lab]'"
HERE = f"{sys.executable} -m pip install '{ROOT}[lab]'"
Base = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """Runs Python where the packages of the extras cannot be imported, its child processes included."""
    (tmp_path / "hook").mkdir()
    environment = base_environment(tmp_path / "hook")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def invoked(base: Base, lines: list[str]) -> tuple[list[int], subprocess.CompletedProcess[str]]:
    """The exit codes of commands in one process of a base install, and what it printed."""
    done = base("-c", f"from recrawl.cli import invoke\nprint([invoke(line.split()) for line in {lines}])")
    assert done.stdout, done.stderr
    codes = done.stdout.splitlines()[-1]
    return [int(code) for code in codes.strip("[]").split(",")], done


def test_every_module_imports_without_the_extras_or_needs_one_of_them(base: Base) -> None:
    done = base(
        "-c",
        "import importlib, pkgutil, recrawl\n"
        "from recrawl.extras import missing_extra\n"
        "names = [m.name for m in pkgutil.walk_packages(recrawl.__path__, 'recrawl.', onerror=lambda _: None)]\n"
        "names.remove('recrawl.__main__')\n"
        "without = []\n"
        "for name in names:\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        if not missing_extra(error): raise\n"
        "        without.append(name)\n"
        "print(len(names))\n"
        "print(*without)",
    )
    assert done.returncode == 0, done.stderr
    number, without = done.stdout.splitlines()
    assert int(number) > 500
    parts = (
        *(
            "scrapy_bridge",
            "record.store.postgres",
            "record.store.division",
            "record.blobs.s3",
            "mcp_server",
            "cluster",
        ),
        *("crawl.render", "crawl.login.browser", "repository.alerts.apprise_process", "repository.sinks.postgres"),
    )
    needs = [name for name in without.split() if not name.removeprefix("recrawl.").startswith(parts)]
    assert needs == []


def test_a_site_is_crawled_refreshed_and_searched_without_the_extras(base: Base, site: Callable[..., Site]) -> None:
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
    codes, done = invoked(base, lines)
    assert codes == [0] * 8 + [2], done.stderr
    assert web.url("/a") in done.stdout
    assert done.stderr.splitlines()[-1].endswith(LAB)


def test_histories_are_generated_replayed_judged_and_imported_without_the_extras(
    base: Base, site: Callable[..., Site], tmp_path: Path
) -> None:
    """From a crawl to a WARC file, to a second repository and its search; from a generated web to a table."""
    web = site({"/": Reply(page("front words", "/a")), "/a": Reply(page("alpha words"))})
    lines = [
        "init first",
        f"-C first add {web.url('/')} --allow-private --delay 0",
        "-C first crawl",
        "-C first export first.warc.gz",
        "-C first export first.parquet",
        "-C first export history.parquet",
        "init second",
        "-C second import first.warc.gz",
        "-C second import history.parquet",
        "-C second search alpha",
        "import first.warc.gz --out made.parquet",
        "lab synth world.parquet --sites 1 --pages 10 --days 6",
        "lab run world.parquet --policy shock --budget 0.2 --cycle 1d",
        "lab run world.parquet --policy round-robin --change content --budget 0.2 --cycle 1d --json",
        "lab compare world.parquet --policy random --budget 2",
        "lab label world.parquet --pairs pairs.tsv",
        "demo --cycles 1",
        "cluster --help",
        "lab --help",
    ]
    (tmp_path / "pairs.tsv").write_text("url\tbefore\tafter\n")
    codes, done = invoked(base, lines)
    assert codes == [0] * len(lines), f"{dict(zip(lines, codes, strict=True))}\n{done.stderr}"
    assert web.url("/a") in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("lab compare world.parquet --policy random --budget 2 --chart c.svg", "lab"),
        ("lab reproduce q-example --out report", "lab"),
        ("lab predict world.parquet --method 2d --days 1 --train 2", "lab"),
        ("lab run world.parquet --policy predicted(method=2d) --budget 2", "lab"),
        ("cluster status", "postgres"),
        ("cluster start", "postgres"),
        ("-C here move --to postgresql:///other", "postgres"),
        ("init store --store postgresql:///crawl", "postgres"),
        ("init bucket --archive s3://bucket/prefix", "s3"),
        ("-C here mcp", "mcp"),
    ],
)
def test_what_needs_an_extra_says_which(base: Base, command: str, extra: str) -> None:
    lines = ["init here", "lab synth world.parquet --sites 1 --pages 10 --days 6", command]
    codes, done = invoked(base, lines)
    assert codes == [0, 0, 2], done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("recrawl: this needs the package ")
    assert said.endswith(f"{sys.executable} -m pip install '{ROOT}[{extra}]'"), "this checkout"


def test_an_installation_from_an_index_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def __init__(self, origin: str | None) -> None:
            self.read_text = lambda _: origin

    for origin in (None, "{}", '{"url": "https://files.example/recrawl.whl"}', '{"url": "file:///gone"}', "broken"):
        monkeypatch.setattr("importlib.metadata.distribution", lambda _, origin=origin: Installed(origin))
        assert install_command("lab") == f"{sys.executable} -m pip install 'recrawl[lab]'"
    monkeypatch.undo()
    assert install_command("lab") == HERE


def test_the_base_install_weighs_at_most_350_megabytes() -> None:
    sizes = packages_of(PROJECT["dependencies"])
    assert sum(sizes.values()) < 350 * MEGABYTE
    assert {"numpy", "pyarrow"} <= set(sizes)
    assert not {"scipy", "scikit-learn", "altair", "vl-convert-python", "psycopg"} & set(sizes)


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
    asked = [
        text for text in metadata.get_all("Requires-Dist", []) if text.startswith(("scipy", "scikit-learn", "altair"))
    ]
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
