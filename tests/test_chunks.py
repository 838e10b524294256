"""Chunks for retrieval corpora: cut where edits do not move them, and exported as increments that add up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recrawl
from recrawl.repository.export.chunks import Cursor
from tests.crashes import Bench, archive_of
from tests.world import Reply, Repo, Site, command

DAY = 86400
START = 1_700_000_000


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
            if change["op"] == "put":
                corpus.add(change["id"])
            elif change["op"] == "delete":
                corpus.discard(change["id"])
            assert change["op"] == "delete" or change["id"] in corpus
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


# -- what a corpus is told -------------------------------------------------------------------------------------


def prose(word: str) -> str:
    return f"The {word} is described here in a sentence that is long enough, and then in another one. " * 4


def article(title: str, own: str, shared: str = "terms") -> Reply:
    menu = '<nav><ul><li><a href="/">Home</a><li><a href="/a">First</a><li><a href="/b">Second</a></ul></nav>'
    text = f"<h1>{title}</h1><p>{prose(own)}</p><h2>Terms</h2><p>{prose(shared)}</p>"
    return Reply(f"<html lang=en><title>{title}</title>{menu}<main>{text}</main>".encode())


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Repo, Site]]:
    """A site of three pages, two of which have the same terms."""
    repo = Repo.create(tmp_path / "repo", change="text")
    pages = {
        "/": article("Where it starts", "start", "beginning"),
        "/a": article("All about alpha", "alpha"),
        "/b": article("All about beta", "beta"),
    }
    with Site(pages) as web:
        repo.crawl(web.url("/"))
        yield repo, web


def told(repo: Repo, *options: object) -> list[dict[str, Any]]:
    """What `recrawl chunks` says since the last call."""
    found = repo.run("chunks", "--state", repo.folder / "corpus.state", *options).out
    return [json.loads(line) for line in found.splitlines()]


def after_cycle(repo: Repo) -> list[dict[str, Any]]:
    repo.later(days=40)
    repo.cycle()
    return told(repo)


def test_what_pages_share_is_told_once_with_their_urls(watched: tuple[Repo, Site]) -> None:
    repo, web = watched
    first = told(repo)
    assert {line["op"] for line in first} == {"put"}
    assert not any("Home" in line["text"] for line in first)
    (terms,) = [line for line in first if "The terms" in line["text"]]
    assert {terms["url"], *terms["urls"]} == {web.url("/a"), web.url("/b")}
    assert [terms["headings"], terms["position"], terms["kind"]] == [[terms["title"], "Terms"], 1, "text"]
    assert terms["language"] == "en"
    assert told(repo) == []

    web["/a"] = article("All about alpha", "alpha", "other")
    changes = after_cycle(repo)
    assert sorted(line["op"] for line in changes) == ["put", "update"]
    (update,) = [line for line in changes if line["op"] == "update"]
    assert [update["id"], update["url"], update["urls"]] == [terms["id"], web.url("/b"), []]
    assert "text" not in update

    web["/b"] = article("All about beta", "beta", "other")
    assert {line["op"]: line["id"] for line in after_cycle(repo)}["delete"] == terms["id"]


def test_a_new_title_is_an_update(watched: tuple[Repo, Site]) -> None:
    repo, web = watched
    before = {line["id"]: line for line in told(repo)}
    web["/"] = article("Welcome", "start", "beginning")
    changes = after_cycle(repo)
    kept = [line for line in changes if line["op"] == "update"]
    assert [line["title"] for line in kept] == ["Welcome"]
    assert before[kept[0]["id"]]["title"] == "Where it starts"
    assert sorted(line["op"] for line in changes) == ["delete", "put", "update"]  # the title stands in the first chunk


def test_another_size_or_filter_changes_what_it_must(watched: tuple[Repo, Site]) -> None:
    repo, _ = watched
    corpus = {line["id"]: line for line in told(repo)}
    smaller = told(repo, "--words", "40", "--overlap", "5")
    assert {line["op"] for line in smaller} == {"put", "delete"}
    follow(corpus, smaller)
    assert all(len(line["text"].split()) <= 40 for line in corpus.values())
    follow(corpus, told(repo))
    assert set(corpus) == {line["id"] for line in map(json.loads, repo.run("chunks").out.splitlines())}
    with (repo.folder / "recrawl.toml").open("a") as settings:
        settings.write('\n[[filter]]\nselectors = ["h2"]\n')
    filtered = told(repo)
    follow(corpus, filtered)
    assert filtered
    assert not any("Terms" in line["text"] for line in corpus.values())


def follow(corpus: dict[str, dict[str, Any]], changes: list[dict[str, Any]]) -> None:
    """Do to a corpus what lines say."""
    for line in changes:
        if line["op"] == "put":
            corpus[line["id"]] = line
        elif line["op"] == "update":
            corpus[line["id"]] |= line
        else:
            del corpus[line["id"]]


def test_removed_pages_leave_the_corpus(watched: tuple[Repo, Site]) -> None:
    repo, web = watched
    corpus = {line["id"]: line for line in told(repo)}
    repo.run("rm", web.url("/"))
    follow(corpus, told(repo))
    assert corpus == {}


def test_nothing_is_told_as_stored_before_it_is(watched: tuple[Repo, Site]) -> None:
    repo, _ = watched
    state = repo.folder / "corpus.state"
    with recrawl.open(repo.folder) as opened:
        with opened.chunk_export(state) as export:
            first = [change.id for change in export]
        with opened.chunk_export(state) as export:
            assert [change.id for change in export] == first
            with pytest.raises(recrawl.RecrawlError, match="another process exports"):
                opened.chunk_export(state)
            export.commit()
        with opened.chunk_export(state) as export:
            assert list(export) == []
    state.write_text('{"version": 3, "visit": 4}')
    refused = repo.run("chunks", "--state", state, code=2)
    assert "name another one" in refused.err


def test_a_file_of_an_earlier_version_goes_on(watched: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = watched
    file = tmp_path / "chunks.jsonl"
    old = [
        {"op": "put", "id": "0" * 31 + str(n), "url": web.url(path), "text": "x"} for n, path in enumerate(("/a", "/b"))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in old))
    repo.run("sink", "add", "corpus", "chunks", file, "--from-now")
    web["/a"] = article("All about alpha", "gamma")
    repo.later(days=40)
    repo.cycle()
    repo.run("sink", "run")
    corpus: dict[str, dict[str, Any]] = {}
    follow(corpus, list(map(json.loads, file.read_text().splitlines())))
    assert old[0]["id"] not in corpus
    assert old[1]["id"] in corpus
    assert any("gamma" in line["text"] for line in corpus.values())
