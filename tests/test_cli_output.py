"""What people see: text from the web never steers the terminal, and times are read as they are written."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.cli.terminal.output import clean
from recrawl.errors import UsageError
from recrawl.times import duration, iso, moment, span, stamp
from tests.world import Reply, Repo, Site, page

HOSTILE = "[red]bad[/red] [/] \x1b[2J\x1b]0;owned\x07 \x9b31m \u202etxet \x00 :warning: [link=x]y"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repo, str]:
    """A page whose title and text are out to do harm, in two versions."""
    repo = Repo.create(tmp_path_factory.mktemp("hostile") / "repo")
    with Site({"/": page(f"word {HOSTILE}", title=f"title {HOSTILE}")}) as site:
        repo.crawl(site.url())
        site["/"] = page(f"other words {HOSTILE} now", title=f"title {HOSTILE}")
        repo.later(hours=2)
        repo.cycle()
        return repo, site.url()


def on_terminal(repo: Repo, *words: str, width: int = 250) -> str:
    """The output of a command that believes it writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(width)}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "recrawl", "-C", str(repo.folder), *words], stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    assert process.returncode == 0, b"".join(parts)
    return b"".join(parts).decode()


VIEWS = [["pages"], ["changes"], ["log", "URL"], ["show", "URL"], ["diff", "URL"], ["search", "words"], ["why", "URL"]]


@pytest.mark.parametrize("words", VIEWS, ids=lambda words: words[0])
def test_terminals_get_no_control_characters_of_pages(hostile: tuple[Repo, str], words: list[str]) -> None:
    repo, url = hostile
    shown = on_terminal(repo, *(url if word == "URL" else word for word in words))
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
    assert not set("\x07\x9b\u202e\x00") & set(shown)
    if words[0] != "why":
        seen = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert "[red]bad[/red]" in seen  # as text: neither markup nor colour
        assert ":warning:" in seen


@pytest.mark.parametrize("words", VIEWS, ids=lambda words: words[0])
def test_pipes_get_no_control_characters(hostile: tuple[Repo, str], words: list[str]) -> None:
    repo, url = hostile
    shown = repo.run(*(url if word == "URL" else word for word in words)).out
    assert not set("\x1b\x07\x9b\u202e\x00") & set(shown)


def test_source_is_printed_unchanged(hostile: tuple[Repo, str]) -> None:
    repo, url = hostile
    process = repo.start("show", url, "--source")
    assert "\x1b[2J" in repo.wait(process).out


def test_tabs_and_line_breaks_stay_in_their_cell(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site({"/": page("a\tb\nc", title="one\ttwo\nthree\r\u2028four")}) as site:
        repo.crawl(site.url())
        for words in (["pages"], ["changes"], ["log", site.url()], ["search", "a"]):
            rows = repo.run(*words, "--no-header").out.splitlines()
            assert len(rows) == 1, rows
            counts = {"pages": 7, "changes": 7, "log": 6, "search": 4}
            assert len(rows[0].split("\t")) == counts[words[0]]


def test_numbers_in_pipes_are_numbers(tmp_path: Path) -> None:
    """What a program reads out of a column has no thousands separators in it."""
    repo = Repo.create(tmp_path / "repo")
    with Site({"/": page("word " * 1000)}) as site:
        repo.crawl(site.url())
        size = repo.run("log", site.url(), "--no-header").out.split("\t")[4]
        assert int(size) > 5000


def test_hostile_url_in_an_error(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    shown = repo.run("add", "http://\x1b[31m[red]", code=2).err
    assert "\x1b" not in shown


def test_hostile_server_in_why(tmp_path: Path) -> None:
    """The reason for a failure can hold what the server said."""
    repo = Repo.create(tmp_path / "repo")
    away = Reply(b"", 302, {"Location": "http://a.example/\x1b[31m"})
    with Site({"/": away}) as site:
        repo.crawl(site.url())
        assert "\x1b" not in repo.run("why", site.url()).out


@given(st.text())
def test_clean_removes_all_control_characters(text: str) -> None:
    shown = clean(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert len(shown) == len(text)
    assert clean(shown) == shown


# -- times -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from("smhdwSMHDW"))
def test_duration(number: int, unit: str) -> None:
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit.lower()]
    assert duration(f"{number}{unit}") == number * seconds
    assert moment(f"{number}{unit}", 1e12) == 1e12 - number * seconds


@pytest.mark.parametrize("text", ["", " ", "h", "10", "-5s", "5 x", "5s!", "1e3s", "nan", "5ss", "s5"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(UsageError, match="30s, 10m"):
        duration(text)


def test_compound_durations_are_moments_too() -> None:
    assert moment("1h30m", 10_000.0) == 10_000.0 - 5400


@given(st.datetimes())
def test_moment_reads_iso(when: object) -> None:
    assert iso(moment(f"{when}", 0.0)) == iso(moment(f"{when}Z", 0.0))


@pytest.mark.parametrize("text", ["", "2026-13-01", "99999999999", "12:00"])
def test_invalid_moments(text: str) -> None:
    with pytest.raises(UsageError, match="2026-03-01"):
        moment(text, 0.0)


@given(st.floats(0, 4e9))
def test_stamp_is_read_back(at: float) -> None:
    assert moment(stamp(at), 0.0) == int(at)


@given(st.floats(0, 1e9))
def test_span_is_short(seconds: float) -> None:
    assert len(span(seconds)) < 12


@pytest.fixture(scope="module")
def long_named(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repo, str]:
    """A repository with a page whose URL is longer than a terminal is wide."""
    repo = Repo.create(tmp_path_factory.mktemp("long") / "repo")
    path = f"/{'/'.join(f'section-{number}' for number in 'abcdefgh')}/the-end-of-it.html"
    with Site({"/": page("start", path), path: page("a title of several words")}) as site:
        repo.crawl(site.url())
        return repo, site.url(path)


@pytest.mark.parametrize("verb", ["sites", "pages", "changes", "status", "why --rate"])
def test_a_table_fits_80_columns(long_named: tuple[Repo, str], verb: str) -> None:
    """Its first column stays, no heading is cut, and a URL takes one line, shortened in the middle."""
    repo, url = long_named
    shown = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(repo, *verb.split(), width=80)).splitlines()
    assert max(map(len, shown)) <= 80
    if verb in ("pages", "changes", "why --rate"):
        assert [line for line in shown if re.search(r"https?://\S+…\S*it.html", line)], shown
    if verb == "sites":
        assert [line for line in shown if url.partition("/section")[0] in line], shown
    headings = set(" ".join(shown).split())
    for heading in {"sites": "changes", "pages": "page state visits", "changes": "seen outcome page"}.get(
        verb, ""
    ).split():
        assert heading in headings, shown


def test_wide_tables_show_urls_whole(long_named: tuple[Repo, str]) -> None:
    repo, url = long_named
    assert url in on_terminal(repo, "pages", "--wide", width=80)
    assert url in repo.run("pages").out, "and so does a pipe"
