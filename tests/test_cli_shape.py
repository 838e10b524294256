"""What all verbs share: help with an example, JSON, exit codes, `-C`, complaints, locks, pipes."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from recrawl.cli import DAILY, MORE, VERBS
from tests.complaints import complaint, usage
from tests.world import Reply, Repo, Result, Site, command, page

PLAIN = [verb for verb in VERBS if verb not in ("cluster", "lab")]
LAB = [["lab", "synth"], ["lab", "serve"]]
CLUSTER = [["cluster", verb] for verb in ("start", "join", "status", "stop", "move", "drain")]
EVERY = [*([verb] for verb in PLAIN), *LAB, *CLUSTER]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with a few pages, only to be read."""
    repo = Repo.create(tmp_path_factory.mktemp("shape") / "repo")
    with Site({"/": page("Hello", "/a"), "/a": page("word")}) as site:
        repo.crawl(site.url())
    return repo


# -- help ----------------------------------------------------------------------------------------------


def test_the_specified_commands_exist() -> None:
    named = """init add rm crawl cycle run status sites pages changes log show diff why search policies import export
        lab demo"""
    assert set(named.split()) <= set(VERBS)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_has_an_example_and_json(repo: Repo, words: list[str]) -> None:
    shown = repo.run(*words, "--help").out
    assert f"Example: recrawl {' '.join(words)}" in " ".join(shown.split())
    assert "--json" in shown


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_the_example_is_valid(repo: Repo, words: list[str]) -> None:
    """Nothing in the example is refused by the parser of options: it gets as far as the repository."""
    shown = " ".join(repo.run(*words, "--help").out.split())
    example = shlex.split(shown.partition("Example: recrawl ")[2])
    if words[0] in ("demo", "init", "policies", "watch"):
        return  # these need no repository, and would really do it
    result = command(*example, cwd=repo.folder.parent)
    assert "Usage:" not in result.err, result
    assert "Traceback" not in result.err, result


def test_help_of_all(repo: Repo) -> None:
    """What is used daily comes first, one line each; every other command is in one group."""
    shown = repo.run("--help").out
    assert not {"predict", "rates"} & set(re.findall(r"[a-z]+", shown))
    lines = shown[shown.index("Daily commands") :].splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(DAILY)]] == list(DAILY)
    assert sorted([*DAILY, *(verb for verbs in MORE.values() for verb in verbs)]) == sorted(VERBS)
    for verb, text in VERBS.items():
        assert verb in re.findall(r"[a-z]+", shown)
        assert re.search(rf"^  {verb} +{re.escape(text)}$", repo.run("--all").out, re.MULTILINE)


@pytest.mark.parametrize(("old", "new"), [("predict", "why --chance"), ("rates", "why --rate")])
def test_old_spellings_go_on_working_and_say_the_new_one(full: Repo, old: str, new: str) -> None:
    (url, *_) = full.pages()
    for words in ([url], [url, "--json"]):
        one, other = full.run(old, *words), full.run(*new.split(), *words)
        told = f"recrawl: 'recrawl {old}' is 'recrawl {new}' now; the old spelling goes on working\n"
        assert (one.code, one.err) == (0, other.err + told)
        assert set(re.findall(r"[a-z_]{4,}", one.out)) == set(re.findall(r"[a-z_]{4,}", other.out))
    assert f"recrawl {new}" not in full.run(old, "nowhere.example", code=None).err
    assert "why [OPTIONS]" in full.run(old, "--help").out


def test_help_keeps_the_lines_of_a_filter(repo: Repo) -> None:
    """What is to be copied into recrawl.toml has to be valid TOML as it is shown."""
    lines = [line.strip() for line in repo.run("noise", "--help").out.splitlines()]
    assert "[[filter]]" in lines
    assert 'selectors = ["#visitors"]' in lines


def test_help_describes_arguments(repo: Repo) -> None:
    assert "Default: list all of them" in " ".join(repo.run("config", "--help").out.split())


def test_version(repo: Repo) -> None:
    assert repo.run("--version").out.startswith("recrawl ")


def test_no_command(repo: Repo) -> None:
    """The list of verbs is what helps then."""
    result = repo.run(code=2)
    assert "crawl" in result.out + result.err
    assert "Refresh" in result.out + result.err


def test_entry_point_survives_the_imports_of_commands() -> None:
    """A verb's module must not take the place of the function that runs the command line."""
    code = (
        "import importlib, pkgutil, recrawl.cli as cli\n"
        "for module in pkgutil.walk_packages(cli.__path__, 'recrawl.cli.'):\n"
        "    importlib.import_module(module.name)\n"
        "assert cli.invoke(['--version']) == 0"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb", ["status", "sites", "pages", "changes", "noise", "policies", "config", "crawl", "cycle"]
)
def test_json(full: Repo, verb: str) -> None:
    full.json(verb)


@pytest.mark.parametrize(
    "words", [["pages"], ["changes"], ["log", "URL"], ["log", "URL", "--visits"], ["search", "word"]]
)
def test_json_is_a_list_of_objects_with_a_url(full: Repo, words: list[str]) -> None:
    url = next(iter(full.pages()))
    rows = full.json(*(url if word == "URL" else word for word in words))
    assert isinstance(rows, list)
    assert rows
    assert all(row["url"].startswith("http://127.0.0.1") for row in rows)


@pytest.mark.parametrize("verb", ["sites", "pages", "changes", "noise"])
def test_json_of_an_empty_repository_is_an_empty_list(repo: Repo, verb: str) -> None:
    assert repo.json(verb) == []
    assert repo.run(verb).out == ""


def test_json_of_an_empty_search(repo: Repo) -> None:
    assert repo.json("search", "word") == []


def test_init_and_add_print_json(tmp_path: Path) -> None:
    made = command("init", tmp_path / "r", "--json")
    assert json.loads(made.out) == {"folder": str(tmp_path / "r")}
    added = command("-C", tmp_path / "r", "add", "example.org", "--depth", 2, "--json")
    assert json.loads(added.out)[0]["url"] == "https://example.org/"
    removed = command("-C", tmp_path / "r", "rm", "example.org", "--json")
    assert json.loads(removed.out) == {"removed": ["https://example.org/"], "pages": 0}


# -- which repository ------------------------------------------------------------------------------------


def test_folder_above(full: Repo) -> None:
    here = command("status", "--json", cwd=full.folder / "archive")
    there = command("-C", full.folder / "archive", "status", "--json")
    assert json.loads(here.out)["pages"] == json.loads(there.out)["pages"] == 2


def test_option_may_touch_its_folder(full: Repo) -> None:
    assert json.loads(command(f"-C{full.folder}", "pages", "--json").out)


def test_no_repository(tmp_path: Path) -> None:
    complaint(command("-C", tmp_path, "status"), "recrawl init", str(tmp_path), code=1)
    complaint(command("-C", tmp_path / "nowhere", "crawl"), "recrawl init", code=1)


def test_no_repository_here_names_the_folder(tmp_path: Path) -> None:
    complaint(command("status", cwd=tmp_path), str(tmp_path), code=1)


def test_init_twice(full: Repo) -> None:
    complaint(command("init", full.folder), "already", code=1)


def test_init_here_and_with_option(tmp_path: Path) -> None:
    assert command("init", cwd=tmp_path).code == 0
    assert (tmp_path / "recrawl.toml").is_file()
    assert command("-C", tmp_path / "a" / "b", "init").code == 0
    assert (tmp_path / "a" / "b" / "recrawl.db").is_file()


def test_init_at_an_impossible_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    complaint(command("init", tmp_path / "file"), "file", code=1)
    complaint(command("init", tmp_path / "file" / "below"), "file", code=1)


def test_init_leaves_a_settings_file_alone(tmp_path: Path) -> None:
    """Somebody wrote it first, or took it along from elsewhere."""
    (tmp_path / "recrawl.toml").write_text("[settings]\ndelay = 7.0\n")
    command("init", tmp_path)
    assert "7.0" in (tmp_path / "recrawl.toml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["crawl"],
        ["cycle"],
        ["pages"],
        ["add", "https://example.org"],
        ["rm", "https://a.example"],
        ["config"],
    ],
    ids=lambda words: words[0],
)
def test_newer_repository_is_refused(repo: Repo, words: list[str]) -> None:
    repo.run("add", "https://a.example")
    with sqlite3.connect(repo.folder / "recrawl.db") as db:
        db.execute("INSERT INTO migrations VALUES ('9999-from-the-future')")
    db.close()
    before = (repo.folder / "recrawl.toml").read_text()
    complaint(repo.run(*words, code=None), "newer", "9999-from-the-future", code=1)
    assert (repo.folder / "recrawl.toml").read_text() == before


@pytest.mark.parametrize("content", [b"no database at all " * 100, b""], ids=["garbage", "empty"])
@pytest.mark.parametrize("verb", ["status", "cycle"])
def test_damaged_database(repo: Repo, content: bytes, verb: str) -> None:
    for file in repo.folder.glob("recrawl.db*"):
        file.unlink()
    (repo.folder / "recrawl.db").write_bytes(content)
    complaint(Result(*command("-C", repo.folder, verb)), "recrawl.db", code=1)


# -- mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("craw", "crawl"), ("serach", "search"), ("stauts", "status"), ("ad", "add"), ("Pages", "pages")],
)
def test_misspelt_command(repo: Repo, wrong: str, right: str) -> None:
    complaint(repo.run(wrong, code=None), f"'{wrong}'", f"did you mean '{right}'")


def test_unknown_command_without_a_suggestion(repo: Repo) -> None:
    complaint(repo.run("xyzzy", code=None), "crawl", "status")


def test_misspelt_command_of_the_lab(repo: Repo) -> None:
    result = repo.run("lab", "synt", code=None)
    usage(result, "synth")
    assert result.err.count("synth") == 1


@pytest.mark.parametrize(
    "words",
    [["cycle", "--budgte", "3"], ["crawl", "--nonsense"], ["add"], ["log"], ["init", "a", "b"]],
    ids=" ".join,
)
def test_unknown_option(repo: Repo, words: list[str]) -> None:
    usage(repo.run(*words, code=None))


def test_misspelt_option_names_the_nearest(repo: Repo) -> None:
    usage(repo.run("cycle", "--budgte", "3", code=None), "--budget")


@pytest.mark.parametrize(
    "words", [["cycle", "--budget", "many"], ["add", "a.example", "--depth", "deep"]], ids=" ".join
)
def test_value_of_the_wrong_type(repo: Repo, words: list[str]) -> None:
    usage(repo.run(*words, code=None), words[-1])


def test_huge_numbers(full: Repo) -> None:
    for verb in ("pages", "changes"):
        result = full.run(verb, "--limit", 10**30, code=None)
        assert result.code in (0, 2)
        assert "Traceback" not in result.err


# -- two at once -----------------------------------------------------------------------------------------


class Held(NamedTuple):
    """A repository on which a crawl is at work, until it is let go."""

    repo: Repo
    process: subprocess.Popen[str]
    web: Site
    let_go: threading.Event


@pytest.fixture
def held(repo: Repo, site: Callable[..., Site]) -> Held:
    let_go = threading.Event()
    web = site({"/": page("Hello", "/a"), "/a": Reply(page("word"), until=let_go)})
    repo.config(timeout=300, stall=300)
    repo.add(web.url())
    process = repo.start("crawl")
    while not web.requests("/a"):
        assert process.poll() is None
    return Held(repo, process, web, let_go)


def test_second_writer_gets_the_name_of_the_lock_holder(held: Held) -> None:
    repo, process, web, let_go = held
    for words in (["cycle"], ["crawl"], ["rm", web.url()]):
        complaint(repo.run(*words, code=None), "recrawl crawl", str(process.pid), code=1)
    assert repo.run("status").code == 0  # questions are never blocked
    let_go.set()
    assert repo.wait(process).code == 0
    assert set(repo.states().values()) == {"live"}
    assert web.url() in repo.states()


def test_second_writer_waits_on_request(held: Held) -> None:
    second = held.repo.start("cycle", "--wait", "--budget", "10")
    assert second.stderr
    assert f"waiting for recrawl crawl (process {held.process.pid})" in second.stderr.readline()
    held.let_go.set()
    assert held.repo.wait(held.process).code == 0
    result = held.repo.wait(second)
    assert result.code == 0, result
    assert "2 visits" in result.out


# -- pipes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with more pages than a pipe holds, only to be read."""
    repo = Repo.create(tmp_path_factory.mktemp("pipes") / "repo")
    listed = "".join(f"https://a.example/page/{number}/{'x' * 100}\n" for number in range(3000))
    assert command("-C", repo.folder, "import", "-", text=listed).code == 0
    return repo


@pytest.mark.parametrize("words", ["pages", "pages --json", "config", "export -", "--help", "search a", "policies"])
def test_closed_pipe_is_quiet(long: Repo, words: str) -> None:
    process = f"{shlex.quote(sys.executable)} -m recrawl -C {shlex.quote(str(long.folder))} {words}"
    done = subprocess.run(["bash", "-c", f"{process} | head -n 1"], capture_output=True, text=True, check=False)
    assert done.stderr in ("", "nothing found\n"), done.stderr
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_full_disk(full: Repo) -> None:
    with Path("/dev/full").open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "recrawl", "-C", str(full.folder), "pages"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert "space" in done.stderr


def test_tabs_in_pipes(full: Repo) -> None:
    rows = full.run("pages", "--no-header").out.splitlines()
    assert len(rows) == 2
    assert [len(row.split("\t")) for row in rows] == [7, 7]
    assert rows[0].split("\t")[1] == "live"
