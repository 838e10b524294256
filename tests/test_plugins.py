"""Plug-ins: the example package is built, installed and used; a broken plug-in costs only itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from recrawl import plugins
from recrawl.choose.papers.round_robin import RoundRobin
from recrawl.cli.terminal import completions
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Reply, Repo, Site, page

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugins"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package, as pip installs it."""
    target = tmp_path_factory.mktemp("plugins")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(EXAMPLE)], check=True, capture_output=True)
    return target


@pytest.fixture
def recrawl(installed: Path, tmp_path: Path) -> Run:
    """Runs several command lines in one process that has the plug-ins; prints the exit codes as the last line."""
    environment = os.environ | {"PYTHONPATH": str(installed), "RECRAWL_EXAMPLE_LOG": str(tmp_path / "requests")}

    def run(*lines: str) -> subprocess.CompletedProcess[str]:
        code = f"from recrawl.cli import invoke\nprint([invoke(line.split()) for line in {lines!r}])"
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_plugins_are_listed_with_what_is_wrong(recrawl: Run) -> None:
    done = recrawl("plugins --json", "policies")
    rows, ended = done.stdout.split("]\n", 1)
    found = {(row["group"], row["name"]): row for row in json.loads(rows + "]")}
    assert set(found) == {
        ("policies", "largest-first"),
        ("policies", "broken"),
        ("fetchers", "broken"),
        ("fetchers", "counting"),
        ("parsers", "application/x-recipe"),
        ("levels", "broken"),
        ("levels", "longer-than"),
        ("sinks", "log"),
    }
    assert {name for name, row in found.items() if row["problem"]} == {
        (it, "broken") for it in ("policies", "fetchers", "levels")
    }
    assert "recrawl_example.missing" in found["policies", "broken"]["problem"]
    assert "largest-first" in ended
    assert ended.endswith("[0, 0]\n")


def test_plugins_of_every_kind_are_used(recrawl: Run, site: Callable[..., Site], tmp_path: Path) -> None:
    recipe = {"content-type": "application/x-recipe"}
    web = site({
        "/": Reply(page("front", "/soup", "/large")),
        "/soup": Reply("name: onion soup".encode("utf-16"), headers=recipe),
        "/large": Reply(page("many words " * 200)),
    })  # fmt: skip
    done = recrawl(
        "init news",
        "-C news config content_types text/*,application/x-recipe",
        "-C news config fetcher counting",
        "-C news config policy largest-first(least=1)",
        f"-C news add {web.url('/')} --allow-private --delay 0 --change longer-than:2",
        "-C news crawl",
        "-C news sink add log log changes.log",
        "-C news sink run",
        "-C news search onion",
        "-C news show " + web.url("/soup"),
        "-C news cycle --budget 1",
    )
    assert done.stdout.endswith(f"{[0] * 11}\n"), done.stderr
    assert web.url("/soup") in done.stdout
    assert "name: onion soup" in done.stdout
    assert f"new {web.url('/soup')}" in (tmp_path / "news" / "changes.log").read_text()
    assert web.url("/soup") in (tmp_path / "requests").read_text().split()
    assert web.asked()[-1] == "/large", "the policy chose the largest page"
    web["/large"] = Reply(page("many words " * 200 + "and two"))
    web["/"] = Reply(page("front with quite a few more words than before", "/soup", "/large"))
    done = recrawl("-C news cycle --budget 3 --policy round-robin --json")
    assert json.loads(done.stdout.removesuffix("[0]\n"))["changed"] == 1, "two words are not more than two"


def test_a_broken_plugin_does_not_stop_who_only_reads(recrawl: Run, site: Callable[..., Site], tmp_path: Path) -> None:
    web = site({"/": Reply(page("front words"))})
    url = web.url("/")
    assert recrawl("init news", f"-C news add {url} --allow-private --delay 0", "-C news crawl").returncode == 0
    settings = tmp_path / "news" / "recrawl.toml"
    before = settings.read_text()
    reading = [
        f"-C news {line}" for line in ("status", "search words", f"show {url}", f"log {url}", "changes", "pages")
    ]
    for line, problem in {
        'change = "broken:3"': "the plug-in 'broken' (recrawl_example.missing:Nothing) cannot be loaded",
        'change = "removed:3"': "invalid change 'removed:3'",
        'fetcher = "broken"': "the plug-in 'broken' (recrawl_example.missing:Nothing) cannot be loaded",
    }.items():
        settings.write_text(before.replace("[settings]\n", f"[settings]\n{line}\n"))
        done = recrawl(*reading)
        assert done.stdout.endswith(f"{[0] * len(reading)}\n"), done.stderr
        assert f"a cycle would fail: {problem}" in " ".join((done.stdout + done.stderr).split())
        done = recrawl("-C news cycle", "-C news crawl")
        assert done.stdout.endswith("[2, 2]\n")
        assert all(problem in text for text in done.stderr.splitlines())
        assert len(done.stderr.splitlines()) == 2


def test_policies_of_plugins_are_completed_and_offered(
    monkeypatch: pytest.MonkeyPatch, repo: Repo, site: Callable[..., Site]
) -> None:
    class Largest(RoundRobin):
        """The largest pages first."""

    entry = EntryPoint("largest-first", "largest:Largest", "recrawl.policies")
    monkeypatch.setattr(plugins, "_entries", lambda group: {"largest-first": entry} if group == "policies" else {})
    monkeypatch.setattr(EntryPoint, "load", lambda _: Largest)
    assert completions.policies("larg") == ["largest-first"]
    repo.crawl(site({"/": page("front")}).url("/"))
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        asker = Asker(service, accept="text/html")
        assert 'value="largest-first"' in asker.get("/settings/policy").text
        assert "The largest pages first." in asker.get("/settings/policy?policy=largest-first").text


def test_an_unknown_or_broken_plugin_is_one_clear_line(recrawl: Run) -> None:
    said = {
        "cycle --policy broken": "the plug-in 'broken' (recrawl_example.missing:Nothing) cannot be loaded",
        "cycle --policy largest-frst": "did you mean 'largest-first'?",
        "config change longer-then:2": "invalid change 'longer-then:2'",
        "config fetcher countin": "did you mean 'counting'?",
        "sink add x logg y": "did you mean 'log'?",
    }
    done = recrawl("init news", "-C news add https://a.example/", *(f"-C news {line}" for line in said))
    assert done.stdout.endswith(f"{[0, 0] + [2] * len(said)}\n")
    lines = [text for text in done.stderr.splitlines() if text.startswith("recrawl: ")]
    assert len(lines) == len(said)
    assert all(expected in line for expected, line in zip(said.values(), lines, strict=True))
