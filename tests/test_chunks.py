"""Chunks for retrieval corpora: cut where edits do not move them, and exported as increments that add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

import recrawl
from recrawl.compare.chunks import cut, page_chunks
from recrawl.errors import UsageError
from recrawl.repository.export.chunks import Cursor, ExportPlace
from tests.crashes import Bench, archive_of
from tests.world import command

DAY = 86400
START = 1_700_000_000
LINES = st.lists(st.text("ab ", min_size=1, max_size=40).map(lambda text: " ".join(text.split()) or "x"), max_size=60)


@given(LINES, st.integers(2, 20))
def test_chunks_hold_all_words_in_order_and_are_not_too_long(lines: list[str], words: int) -> None:
    chunks = list(cut(lines, set(), words))
    assert " ".join(chunk.text for chunk in chunks).split() == " ".join(lines).split()
    assert all(len(chunk.text.split()) <= 2 * words for chunk in chunks)


def test_an_edit_changes_the_chunks_around_it_and_no_others() -> None:
    lines = [f"line {number} with some words of its own, and {number * 7919} more" for number in range(2000)]
    before = {chunk.text for chunk in cut(lines, set(), 100)}
    for place in (0, 777, 1999):
        after = {chunk.text for chunk in cut([*lines[:place], "a new line", *lines[place:]], set(), 100)}
        assert len(before) > 100
        assert len(after - before) <= 4


def test_navigation_and_footers_are_left_out_and_headings_kept() -> None:
    page = "<nav>Home</nav><h1>Title</h1><p>One two three.<h2>Part</h2><p>Four five six.<footer>(c)</footer>"
    assert [tuple(chunk) for chunk in page_chunks(LexborHTMLParser(page), words=5)] == [
        ("Title", "Title\nOne two three."),
        ("Part", "Part\nFour five six."),
    ]


def body(*words: str) -> bytes:
    text = "".join(f"<p>{word} " + "and so on " * 10 for word in words)
    return f'<!doctype html><title>T</title>{text}<a href="/a">a</a><a href="/b">b</a>'.encode()


ROWS = [
    ("https://x.example/", START, body("root")),
    ("https://x.example/a", START, body("one", "two", "three")),
    ("https://x.example/a", START + 10 * DAY, body("one", "other", "three")),
    ("https://x.example/b", START, body("four")),
    ("https://x.example/b", START + 20 * DAY, None),
    ("https://x.example/b", START + 40 * DAY, body("four")),
]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[dict[str, str]], set[str]]]:
    """After each visit of the site: the increment, and the ids of a whole export."""
    found = []
    with Bench(archive_of(ROWS)) as bench:
        folder = bench.create(tmp_path_factory.mktemp("chunks") / "repo", sitemaps=False)
        cursor = Cursor()
        for day in (0, 1, 11, 21, 22, 28, 36, 50, 60):
            bench.clock.set(START + day * DAY + 1)
            bench.crawl(folder)
            bench.cycle(folder)
            with recrawl.open(folder) as repo:
                end = Cursor.now(repo)
                increment = [change.as_dict() for change in repo.chunks(after=cursor, words=20)]
                found.append((increment, {change.id for change in repo.chunks(words=20) if change.op == "put"}))
                cursor = end
    return found


def test_increments_add_up_to_the_whole(exports: list[tuple[list[dict[str, str]], set[str]]]) -> None:
    corpus: set[str] = set()
    for increment, whole in exports:
        for change in increment:
            (corpus.add if change["op"] == "put" else corpus.discard)(change["id"])
        assert corpus == whole


def test_only_what_changed_is_told(exports: list[tuple[list[dict[str, str]], set[str]]]) -> None:
    unchanged, edited = exports[1][0], exports[2][0]
    assert unchanged == []
    assert [change["op"] for change in edited] == ["delete", "put"]
    assert "other" in edited[1]["text"]
    assert any(
        change["op"] == "delete" and change["url"].endswith("/b") for found, _ in exports[3:7] for change in found
    )
    assert any(change["op"] == "put" and change["url"].endswith("/b") for found, _ in exports[7:] for change in found)


def test_the_command_continues_where_it_stopped(tmp_path: Path) -> None:
    with Bench(archive_of(ROWS)) as bench:
        folder = bench.create(tmp_path / "repo", sitemaps=False)
        bench.crawl(folder)
    state = tmp_path / "state.json"
    first = command("-C", folder, "chunks", "--state", state)
    assert {json.loads(line)["op"] for line in first.out.splitlines()} == {"put"}
    assert command("-C", folder, "chunks", "--state", state).out == ""
    state.write_text("[1]")
    refused = command("-C", folder, "chunks", "--state", state)
    assert refused.code == 2
    assert "name another one" in refused.err


def test_since_and_state_exclude_each_other(tmp_path: Path) -> None:
    recrawl.init(tmp_path / "r").close()
    assert command("-C", tmp_path / "r", "chunks", "--since", "1d", "--state", tmp_path / "s").code == 2


def test_a_cursor_survives_its_file(tmp_path: Path) -> None:
    cursor = Cursor((ExportPlace(3, 4),))
    cursor.write(tmp_path / "c")
    assert json.loads((tmp_path / "c").read_text()) == {"version": 3, "visit": 4}
    assert Cursor.read(tmp_path / "c") == cursor
    assert Cursor.read(tmp_path / "missing") == Cursor()
    (tmp_path / "c").write_text("{}}")
    with pytest.raises(UsageError, match="chunks --state"):
        Cursor.read(tmp_path / "c")
