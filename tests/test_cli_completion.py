"""Shell completion, man pages, headings in pipes, errors as JSON, times in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recrawl.cli import VERBS
from recrawl.cli.manual import pages
from tests.world import Repo, Site, page

Start = Callable[..., Site]


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers for a line, through the script that `recrawl completion bash` prints."""
    program = folder / "recrawl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m recrawl "$@"\n')
    program.chmod(0o755)
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""eval "$(recrawl completion bash)"
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _recrawl_completion recrawl
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    paths = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PATH": paths},
    )
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    assert completed("recrawl cy", tmp_path) == ["cycle"]
    assert completed("recrawl cycle --bud", tmp_path) == ["--budget"]
    assert "round-robin" in completed("recrawl cycle --policy ro", tmp_path)
    assert completed("recrawl config max_q", tmp_path) == ["max_queries"]


def test_sites_of_the_repository_are_completed(repo: Repo, site: Start) -> None:
    web = site({"/": page("x")})
    repo.crawl(web.url())
    origin = web.url().rstrip("/")
    done = subprocess.run(
        [sys.executable, "-m", "recrawl"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=repo.folder,
        env={
            **os.environ,
            "_RECRAWL_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": "recrawl pages --site 127",
        },
    )
    assert origin.removeprefix("http://") in done.stdout.replace("\\", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(repo: Repo, shell: str) -> None:
    assert "_RECRAWL_COMPLETE" in repo.run("completion", shell).out


def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    found = dict(pages())
    assert {"recrawl", *(f"recrawl-{verb}" for verb in VERBS), "recrawl-lab-synth"} <= set(found)
    for name, text in found.items():
        assert text.startswith(f".TH {name.upper()}".replace("-", "\\-")), name
        assert ".SH NAME" in text
        assert ".SH SYNOPSIS" in text
    file = tmp_path / "recrawl-add.1"
    file.write_text(found["recrawl-add"])
    assert "\\-\\-limit" in found["recrawl-add"]


def test_a_pipe_gets_headings_unless_told_otherwise(repo: Repo, site: Start) -> None:
    web = site({"/": page("x")})
    repo.crawl(web.url())
    with_heading = repo.run("pages").out.splitlines()
    assert with_heading[0].split("\t")[:2] == ["page", "state"]
    assert repo.run("pages", "--no-header").out.splitlines() == with_heading[1:]
    assert repo.run("--no-header", "pages").out.splitlines() == with_heading[1:]


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (["config", "delays", "--json"], "UnknownName", 2),
        (["cycle", "--budgt", "1", "--json"], "NoSuchOption", 2),
        (["changes", "--since", "someday", "--json"], "UsageError", 2),
        (["fly", "--json"], "UnknownName", 2),
    ],
)
def test_errors_are_json_with_json(repo: Repo, words: list[str], kind: str, code: int) -> None:
    ended = repo.run(*words, code=code)
    assert ended.out == ""
    told = json.loads(ended.err)
    assert (told["kind"], told["exit_code"]) == (kind, code)
    assert told["error"]


def test_an_unknown_option_is_answered_with_a_suggestion(repo: Repo) -> None:
    assert "--budget" in repo.run("cycle", "--budgt", "1", code=2).err


@pytest.mark.parametrize("since", ["yesterday", "today", "last week", "2 days ago", "2026-11-01", "36h"])
def test_times_as_people_say_them(repo: Repo, site: Start, since: str) -> None:
    repo.crawl(site({"/": page("x")}).url())
    assert repo.json("changes", "--since", since) is not None


def test_help_names_no_spec() -> None:
    for name, text in pages():
        assert "(spec" not in text, name
        assert "§" not in text, name
