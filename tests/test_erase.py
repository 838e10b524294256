"""`recrawl erase`: nothing is left of what was erased, all else stays, whenever it is killed."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.discover.urls import origin
from recrawl.record.store.sqlite.store import SqliteStore
from recrawl.record.tombstones import Tombstones
from tests.erasing import PICTURE, TOKEN, calls_of, killed_at, recorded, traces
from tests.receivers import EventServer
from tests.test_crawl_render import CHROMIUM
from tests.world import Reply, Repo, Site, page

MOMENTS = 3
"""Kills in these tests; `python -m benchmarks.kills_erase` makes 200."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Repo, str]]:
    with Site() as site:
        repo, url = recorded(tmp_path_factory.mktemp("erase") / "repo", site)
        yield site, repo, url


@pytest.fixture
def full(web: tuple[Site, Repo, str], tmp_path: Path) -> tuple[Site, Repo, str]:
    """A copy of the repository; its site still answers."""
    site, repo, url = web
    shutil.copytree(repo.folder, tmp_path / "copy")
    return site, Repo(tmp_path / "copy", repo.ahead), url


def records(repo: Repo) -> list[tuple[str, str, str, bytes]]:
    """Type, address, date and decompressed bytes of all records, as warcio reads them; every digest is right."""
    found = []
    for path in sorted((repo.folder / "archive").iterdir()):
        bodies = re.split(rb"(?=WARC/1\.1\r\n)", gzip.decompress(path.read_bytes()))[1:]
        with path.open("rb") as file:
            for body, record in zip(bodies, ArchiveIterator(file, check_digests="raise"), strict=True):
                record.content_stream().read()
                head = record.rec_headers
                url, date = head.get_header("WARC-Target-URI") or "", head.get_header("WARC-Date")
                found.append((record.rec_type, url, date, body))
    return found


def chunks_in(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def sound(repo: Repo, *texts: str) -> dict[str, object]:
    """Check everything: nothing is wrong, and nothing is left."""
    words = [word for text in texts for word in ("--text", text)]
    report: dict[str, object] = repo.json("check", "--truth", "--erased", *words)
    return report


def test_nothing_is_left_of_a_page_and_all_else_stays(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    assert traces(repo.folder)
    before, pages = records(repo), repo.pages()
    paper = site.url(f"/{TOKEN}.pdf")
    done = repo.json("erase", url, paper, "--yes", "--reason", "asked on 3 May")
    assert done["finished"]
    assert traces(repo.folder) == {}
    assert sound(repo, TOKEN)["problems"] == []
    gone = {url, paper, site.url(f"/{TOKEN}-link"), site.url("/moved")}
    assert repo.pages().keys() == pages.keys() - gone
    for other in repo.pages():
        assert repo.pages()[other] == pages[other]
        assert repo.json("log", other)
    after = records(repo)
    kept = {row[3] for row in before if TOKEN.encode() not in row[3]} - {b""}
    own = {row[3] for row in after}
    lost = {row[:3] for row in before if row[3] in kept - own}
    files = {site.url("/only.png"), site.url("/moved"), site.url("/person"), site.url("/same.png")}
    assert {address for kind, address, _ in lost if kind != "warcinfo"} <= files
    assert repo.found("alpha") == {site.url("/a")}
    assert repo.found(TOKEN) == set()
    (line,) = repo.json("erase", "--log")
    assert line["reason"] == "asked on 3 May"
    assert url not in json.dumps(line)


def test_bytes_that_others_share_are_theirs_from_then_on(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    repo.run("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")
    own = [row for row in records(repo) if row[1] == site.url("/same.png")]
    assert [row[0] for row in own].count("response") == 1
    assert PICTURE in next(row[3] for row in own if row[0] == "response")
    holder = next(row for row in own if row[0] == "response")
    for row in own:
        if row[0] == "revisit":
            fields = dict(line.split(": ", 1) for line in row[3].decode().split("\r\n\r\n")[0].split("\r\n")[1:])
            assert (fields["WARC-Refers-To-Target-URI"], fields["WARC-Refers-To-Date"]) == (holder[1], holder[2])
            assert fields["WARC-Refers-To"] in holder[3].decode("latin-1")
    repo.later(hours=5)
    repo.cycle()
    assert sound(repo, TOKEN)["problems"] == []


def test_it_does_not_come_back(full: tuple[Site, Repo, str], tmp_path: Path) -> None:
    site, repo, url = full
    repo.run("erase", url, "--yes")
    site["/sitemap.xml"] = Reply(f"<urlset><url><loc>{url}</loc></url></urlset>".encode(), kind="application/xml")
    listed = tmp_path / "urls.txt"
    listed.write_text(f"{url}\n{site.url('/new')}\n")
    site["/new"] = page("new", "/person")
    repo.run("import", listed)
    repo.later(days=3)
    repo.crawl()
    repo.run("add", site.url("/"), "--exclude", "/b", "--allow-private")
    repo.later(days=3)
    repo.cycle()
    repo.run("add", site.url("/"), "--clear", "exclude", "--allow-private")
    assert "was erased" in repo.run("add", url, "--allow-private", code=2).err
    repo.crawl()
    site.pages.pop("/sitemap.xml")
    assert url not in repo.pages()
    assert repo.states()[site.url("/new")] == "live"
    assert not any(row[1] == url for row in records(repo))
    assert sound(repo)["problems"] == []


def test_forgotten_it_may_come_back(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    repo.run("erase", url, "--yes")
    lifted = repo.json("erase", url, "--yes", "--forget")
    assert (lifted["pages"], lifted["lifted"]) == (0, 1)
    repo.later(days=3)
    site["/a"] = page("alpha again", "/b", "/person")
    repo.cycle()
    repo.crawl()
    assert repo.states()[url] == "live"
    repo.run("erase", url, "--yes", "--forget")
    assert traces(repo.folder, "about " + TOKEN) == {}
    with closing(SqliteStore(repo.folder / "recrawl.db")) as store:
        assert not Tombstones(store.meta).covers(url, origin)


def test_a_site(full: tuple[Site, Repo, str]) -> None:
    site, repo, _ = full
    with Site() as other:
        other["/"] = page("other", "/x")
        other["/x"] = page("x")
        repo.crawl(other.url("/"))
        name = site.url("").removeprefix("http://").rstrip("/")
        done = repo.json("erase", "--site", site.url("/"), "--yes")
        assert (done["sites"], done["seeds"]) == (1, [site.url("/")])
        assert traces(repo.folder, name) == {}
        assert repo.pages().keys() == {other.url("/"), other.url("/x")}
        assert sound(repo)["problems"] == []
        assert "was erased" in repo.run("add", site.url("/new"), "--allow-private", code=2).err
        repo.later(days=1)
        repo.crawl()
        repo.cycle()
        assert repo.pages().keys() == {other.url("/"), other.url("/x")}
        assert repo.json("erase", "--site", site.url("/"), "--forget", "--yes")["lifted"] == 1
        repo.crawl(site.url("/"))
        assert site.url("/a") in repo.pages()


def test_old_versions_alone(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    versions = [row["at"] for row in repo.json("log", site.url("/a"))]
    assert len(versions) > 2
    done = repo.json("erase", "--before", max(versions), "--yes")
    assert done["pages"] == 0
    assert [row["at"] for row in repo.json("log", site.url("/a"))] == [max(versions)]
    assert traces(repo.folder, TOKEN.title()) == {}
    assert sound(repo)["problems"] == []
    repo.later(days=1)
    repo.crawl()
    repo.cycle()
    assert repo.states()[url] == "live"
    assert repo.json("log", url)
    assert sound(repo)["problems"] == []


def test_matching_and_looking_first(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    before = repo.pages()
    planned = repo.json("erase", "--matching", f"{TOKEN}|person", "--dry-run")
    assert {url, site.url(f"/{TOKEN}.pdf")} <= set(planned["urls"])
    assert repo.pages() == before
    assert "--yes" in repo.run("erase", url, code=2).err
    assert "not known" in repo.run("erase", site.url("/never"), "--yes", code=2).err
    assert "say what" in repo.run("erase", "--yes", code=2).err
    done = repo.json("erase", "--matching", f"{TOKEN}|person", "--yes")
    assert done["pages"] == planned["pages"]
    assert traces(repo.folder) == {}


def test_sinks_are_told_and_alerts_forget(full: tuple[Site, Repo, str], tmp_path: Path) -> None:
    site, repo, url = full
    with EventServer() as events:
        repo.config(private_targets=[events.url])
        repo.run("sink", "add", "hook", "webhook", events.url)
        repo.run("sink", "add", "notes", "markdown", tmp_path / "notes")
        repo.run("sink", "add", "corpus", "chunks", tmp_path / "corpus.jsonl")
        for name in ("hook", "notes", "corpus"):
            repo.run("sink", "run", name)
        told = {line["id"] for line in chunks_in(tmp_path / "corpus.jsonl") if line["url"] == url}
        assert traces(tmp_path / "notes")
        assert told
        done = repo.json("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")
        assert done["finished"]
        assert done["waiting"] == {}
        removed = [event for event in events.events if event["subject"] == url and "gone" in json.dumps(event)]
        assert len(removed) == 1
    assert traces(tmp_path / "notes") == {}
    assert traces(tmp_path, TOKEN).keys() == {"corpus.jsonl"}  # a log: it has what was told before
    deleted = {line["id"] for line in chunks_in(tmp_path / "corpus.jsonl") if line["op"] == "delete"}
    assert told <= deleted
    assert traces(repo.folder) == {}


def test_a_sink_that_is_away_is_told_later(full: tuple[Site, Repo, str]) -> None:
    site, repo, url = full
    with EventServer() as events:
        repo.config(private_targets=[events.url])
        repo.run("sink", "add", "hook", "webhook", events.url)
        repo.run("sink", "run", "hook")
        address = events.url
    done = repo.json("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")
    assert done["waiting"] == {"hook": 2}
    assert not done["finished"]
    assert traces(repo.folder).keys() <= {"recrawl.db"}
    assert any("hook" in note for note in sound(repo)["notes"])  # type: ignore[attr-defined]
    repo.run("sink", "remove", "hook")
    assert address
    repo.crawl()
    assert traces(repo.folder) == {}


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_screenshots(tmp_path: Path) -> None:
    with Site() as site:
        repo, url = recorded(tmp_path / "repo", site, screenshots="changed")
        assert repo.sql("SELECT count(*) FROM screenshots")[0][0] > 1
        done = repo.json("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")
        assert done["screenshots"] >= 1
        assert traces(repo.folder) == {}
        assert not any(url in row[1] for row in records(repo))
        assert sound(repo, TOKEN)["problems"] == []


@pytest.mark.slow
def test_killed_at_any_moment_it_has_not_begun_or_is_finished(web: tuple[Site, Repo, str], tmp_path: Path) -> None:
    site, repo, url = web
    words = ("erase", url, site.url(f"/{TOKEN}.pdf"), "--yes")

    def copy(name: str) -> Repo:
        shutil.copytree(repo.folder, tmp_path / name)
        return Repo(tmp_path / name, repo.ahead)

    counted = copy("counted")
    calls = calls_of(lambda: counted.run(*words))
    assert calls > 1000
    chance = random.Random(7)
    for number in range(MOMENTS):
        one = copy(f"killed-{number}")
        killed_at(lambda one=one: one.run(*words), chance.randrange(1, calls))  # type: ignore[misc]
        one.crawl()
        if url in one.pages():
            assert one.pages() == repo.pages()
        else:
            assert traces(one.folder) == {}
        assert sound(one)["problems"] == []
        one.run(*words, code=None)
        assert traces(one.folder) == {}


def test_the_proof_finds_what_was_put_back(full: tuple[Site, Repo, str]) -> None:
    _, repo, url = full
    saved = {path.name: path.read_bytes() for path in (repo.folder / "archive").iterdir()}
    repo.run("erase", url, "--yes")
    assert sound(repo)["problems"] == []
    (repo.folder / "notes.txt").write_text(f"look at {url}.")
    for name, content in saved.items():
        (repo.folder / "archive" / name).write_bytes(content)
    found = json.loads(repo.run("check", "--erased", "--text", TOKEN, "--json", code=1).out)["problems"]
    wanted = {"notes.txt", "an erased address has a record", f"'{TOKEN}' is in archive"}
    assert all(any(part in problem["what"] for problem in found) for part in wanted)
