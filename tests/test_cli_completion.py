"""Shell completion, man pages, headings in pipes, errors as JSON, times in words."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import runpy
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recrawl.cli import VERBS
from recrawl.cli.manual import pages
from tests.world import Repo, Site, page

Start = Callable[..., Site]


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers for a line, through the script that `recrawl completion bash` prints."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""eval "$(recrawl completion bash)"
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _recrawl_completion recrawl
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=paths(folder),
    )
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    assert completed("recrawl cy", tmp_path) == ["cycle"]
    assert completed("recrawl cycle --bud", tmp_path) == ["--budget"]
    assert "round-robin" in completed("recrawl cycle --policy ro", tmp_path)
    assert completed("recrawl config max_q", tmp_path) == ["max_queries"]


def shell(name: str) -> str:
    """The path of a shell; installed if that is possible here."""
    if shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-qq", name]
        subprocess.run(command, check=False, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: install the package {name} to test its completion")
    return found


def paths(folder: Path) -> dict[str, str]:
    """An environment in which `recrawl` is the program under test."""
    program = folder / "recrawl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m recrawl "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb"}


def test_fish_completes_commands_options_and_values(tmp_path: Path) -> None:
    lines = ("recrawl cy", "recrawl cycle --bud", "recrawl config max_q")
    script = "recrawl completion fish | source\n" + "".join(f"complete -C '{line}'\n" for line in lines)
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=paths(tmp_path),
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["cycle", "--budget", "max_queries"]


def test_zsh_completes_at_a_terminal(tmp_path: Path) -> None:
    """A real zsh with a terminal: the tabulator completes the command."""
    number, terminal = pty.openpty()
    child = subprocess.Popen(
        [shell("zsh"), "-f", "-i"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=paths(tmp_path),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    os.close(terminal)
    try:
        begin = "PS1=; autoload -U compinit; compinit -u -D; recrawl completion zsh > c; source ./c; echo rea''dy\n"
        os.write(number, f"cd {tmp_path}; {begin}".encode())
        seen = read_until(number, "ready\r\n")
        os.write(number, b"recrawl recr\x15echo; recrawl cy\t")
        seen = read_until(number, "cycle")
        assert "recrawl cycle" in seen
    finally:
        child.kill()
        child.wait()
        os.close(number)


def read_until(number: int, text: str) -> str:
    """What a terminal shows until this text is there, for a minute at most."""
    seen, deadline = "", time.monotonic() + 60
    while text not in seen and time.monotonic() < deadline:
        if select.select([number], [], [], 1.0)[0]:
            seen += os.read(number, 65536).decode("utf-8", "replace")
    return seen


def test_the_wheel_has_the_man_pages(tmp_path: Path) -> None:
    """The hook of the build adds what `make man` has written; without it, the wheel has none."""
    root = Path(__file__).parent.parent
    hook = runpy.run_path(str(root / "hatch_build.py"))["man_pages"]
    (tmp_path / "man" / "man1").mkdir(parents=True)
    assert hook(tmp_path) == {}
    (tmp_path / "man" / "man1" / "recrawl.1").write_text(dict(pages())["recrawl"])
    assert list(hook(tmp_path).values()) == ["share/man/man1/recrawl.1"]


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
