"""A bad page harms only itself: from the server through reader, commit and index to every output."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from msgspec.msgpack import encode

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits import live, reader_pool
from recrawl.crawl.visits.messages import BrokenMessage, ReaderConfig, Reading, Task, bounded, pack, received
from recrawl.crawl.visits.reader_pool import Readers
from recrawl.discover.scope import Scopes
from recrawl.discover.urls import UrlRules, key_bytes
from recrawl.errors import DamagedIndex
from recrawl.extras import pa
from recrawl.lab.formats.archive import COLUMNS, write_batches
from recrawl.record import index, warc
from recrawl.record.index import Document, Index
from recrawl.record.rows import Batch
from recrawl.record.search_words import terms
from recrawl.record.storage import Storage
from recrawl.repository.reader import Reader
from recrawl.repository.reports import overview
from tests.world import Reply, Repo, Site, page, text

HALF = rb'{"title": "A \ud83d title", "text": "Our new shop \ud83d and a \u0000 walrus", "\udc00": "\ud83d\ude00"}'
JSON_LD = (
    rb'<!doctype html><title></title><script type="application/ld+json">{"headline": "Half \ud83d",'
    rb' "description": "a \udfff and \u0000", "image": "/\ud83d.png", "inLanguage": "d\ud83de"}</script><p>heron'
)
BAD: dict[str, Reply] = {
    "/json": Reply(HALF, kind="application/json"),
    "/ld": Reply(JSON_LD),
    "/nul": Reply(b"<title>a\0b</title><p>otter\0s &#0; &#xD83D; &#xDC00;"),
    "/long": Reply(b"<title>" + b"t" * 3_000_000 + b"</title><p>badger"),
    "/numbers": Reply(b'{"n": 1e999, "m": -1e999, "i": ' + b"9" * 4000 + b', "x": NaN}', kind="application/json"),
    "/deep": Reply(b"[" * 100_000 + b"]" * 100_000, kind="application/json"),
    "/headers": Reply(
        page("weasel"),
        headers={"ETag": '"\xfc\xff"', "Content-Language": "\xff\xfe", "X-A": "\x01\x1b[31m", "Link": "<\xe9>; rel=x"},
    ),
    "/kind": Reply(page("stoat"), kind="text/html; charset=\xff\xfe"),
    "/feed.json": Reply(
        b'{"version": "https://jsonfeed.org/version/1.1", "title": "\\ud83d", "items": [{"id": "\\ud83d",'
        b' "url": "/from-\\ud83d-feed"}]}',
        kind="application/json",
    ),
}
WORDS = {"/json": "walrus", "/ld": "heron", "/nul": "otters", "/long": "badger", "/headers": "weasel", "/kind": "stoat"}

Start = Callable[..., Site]


def test_pages_that_hurt_are_recorded_and_found_and_so_are_those_beside_them(repo: Repo, site: Start) -> None:
    bad, good = site(BAD), site({f"/{n}": page(f"innocent{n}") for n in range(40)})
    good["/"] = page("home", *good.pages)
    bad["/"] = page("home", *bad.pages)
    repo.crawl(bad.url(), good.url())
    for path, word in WORDS.items():
        assert repo.outcomes(bad.url(path)) == ["new"], path
        assert repo.found(word) == {bad.url(path)}, path
    assert all(repo.found(f"innocent{n}") == {good.url(f"/{n}")} for n in range(40))
    assert repo.outcomes(bad.url("/feed.json")) == ["new"]
    repo.later(hours=30)
    bad["/json"] = Reply(HALF.replace(b"shop", b"pub \\udc00"), kind="application/json")
    assert repo.cycle()["failures"] == {}
    assert repo.outcomes(bad.url("/json")) == ["new", "changed"]
    for command in ("show", "diff", "log"):
        repo.run(command, bad.url("/json"))
    assert repo.run("check").out.splitlines()[-1].startswith("no problem in")


LONG_HEADS = {
    "/line": {"X-A": "a" * 60_000, "Content-Language": "de"},
    "/lines": {f"X-{number}": "a" * 30 for number in range(1_200)},
    "/letters": {f"X-{number}": "\xe9" * 300 for number in range(60)},
}


@pytest.mark.parametrize("bounded_before", [True, False], ids=["now", "recorded-without-bounds"])
def test_headers_longer_than_readers_of_warc_files_take_harm_no_output(
    repo: Repo, site: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounded_before: bool
) -> None:
    bad = site({path: Reply(page(f"heron{path[1:]}"), headers=head) for path, head in LONG_HEADS.items()})
    bad["/away"] = Reply(b"", 301, {"Location": "/line", "X-A": "a" * 60_000})
    bad["/"] = page("home", *bad.pages)
    with monkeypatch.context() as patch:
        if not bounded_before:
            patch.setattr(live, "bounded_answer", lambda answer, _now: answer)
        repo.crawl(bad.url())
        repo.later(hours=30)
        bad["/lines"] = Reply(page("badger"), headers=LONG_HEADS["/lines"])
        repo.cycle()
    assert repo.outcomes(bad.url("/lines")) == ["new", "changed"]
    assert repo.found("heronline") == {bad.url("/line")}
    for command in ("show", "log", "diff", "why"):
        repo.run(command, bad.url("/lines"))
    for name in ("all.warc.gz", "all.wacz", "all.cdxj", "all.parquet"):
        repo.run("export", tmp_path / name)
    for arguments in ([], ["--truth"], ["--repair"]):
        assert "no problem in" in repo.run("check", *arguments).out
    if bounded_before:
        with (tmp_path / "all.warc.gz").open("rb") as file:
            heads = [record.http_headers for record in ArchiveIterator(file, WarcRecordType.response, parse_http=True)]
        assert len(heads) == 8  # robots.txt, the home page, four of its links, and two pages that changed
        other = Repo.create(tmp_path / "other")
        other.run("import", tmp_path / "all.warc.gz")
        assert other.found("heronline") == {bad.url("/line")}
        assert ["Content-Language", "de"] in [list(line) for head in heads for line in head.astuples()]


def test_a_repository_that_holds_half_a_character_recovers_at_the_next_command(repo: Repo, site: Start) -> None:
    bad = site({"/": page("home", "/json", "/a"), "/json": BAD["/json"], "/a": page("heron")})
    repo.config(index=False)  # so its text is not read: the version is recorded, as versions before this one did
    repo.crawl(bad.url())
    repo.config(index=True)
    repo.crawl()
    assert repo.found("walrus") == {bad.url("/json")}
    assert repo.found("heron") == {bad.url("/a")}
    repo.run("check")


def test_a_robots_txt_that_names_what_is_no_url_stops_nothing(repo: Repo, site: Start) -> None:
    bad = site({"/": page("heron"), "/robots.txt": text("Sitemap: http://[\nSitemap: //[::1\nCrawl-delay: nan\n")})
    repo.crawl(bad.url())
    assert repo.found("heron") == {bad.url()}


@pytest.mark.parametrize("half", ["&#xD83D;", "&#55357;", "&#x00dFfF;", "\ud83d"])
def test_half_a_character_in_a_sitemap_or_a_feed_stops_nothing(repo: Repo, site: Start, half: str) -> None:
    listed = f"<urlset><url><loc>/from-{half}-map</loc></url><url><loc>/good</loc></url></urlset>"
    news = f"<rss><channel><item><title>{half}</title><link>/{half}</link></item></channel></rss>"
    maps = {
        "/map.xml": Reply(listed.encode("utf-8", "surrogatepass"), kind="application/xml"),
        "/news.xml": Reply(news.encode("utf-8", "surrogatepass"), kind="application/rss+xml"),
    }
    bad = site({"/": page("heron", "/news.xml"), "/good": page("badger"), **maps})
    bad["/robots.txt"] = text(f"Sitemap: {bad.url('/map.xml')}\n")
    assert set(repo.crawl(bad.url())["failures"]) <= {"not-found"}
    assert repo.found("heron") == {bad.url()}
    assert repo.found("badger") == {bad.url("/good")}
    assert repo.outcomes(bad.url("/news.xml")) == ["new"]


# -- the boundary between reader and crawler -----------------------------------------------------------------


ODD = Reading(
    7,
    title="a\0b\ud83d" + "t" * 10_000_000,
    text="\udfff words",
    published=math.nan,
    updated=1e300,
    updates=-math.inf,
    divergence=2.0,
)


def test_what_a_reader_sends_is_within_the_bounds_of_its_types() -> None:
    reading = bounded(ODD)
    assert (reading.title[:4], len(reading.title), reading.text) == ("a\ufffdb\ufffd", 500, "\ufffd words")
    assert (reading.published, reading.updated, reading.updates, reading.divergence) == (None, None, 0.0, None)
    assert received(pack([reading]), [7]) == [reading]


@pytest.mark.parametrize(
    "broken",
    [
        {"title": "a\0b"},
        {"title": "t" * 501},
        {"published": math.nan},
        {"updates": math.inf},
        {"published": 1e300},
        {"words": -1},
        {"ticket": 8},
        {"failure": "no such failure"},
        {"keys": b"1234567"},
        {"urls": "http://a.example/"},
        {"lines": b"123"},
        {"digest": b"1" * 33},
        {"changed": "yes"},
        {"changes": [[1, 2]]},
    ],
    ids=str,
)
def test_a_message_that_no_reader_sends_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(BrokenMessage):
        received(encode([Reading(7)._replace(**broken)]), [7])


@pytest.mark.parametrize(
    "message", [b"", b"\xc1", b"\x91\x90", encode(["no reading"]), encode([]), b"\xdd\xff\xff\xff\xff"]
)
def test_bytes_that_are_no_message_are_refused(message: bytes) -> None:
    with pytest.raises(BrokenMessage):
        received(message, [7])


def test_a_message_with_half_a_character_in_its_bytes_is_refused() -> None:
    sound = pack([Reading(7, title="abc")])
    assert received(sound, [7])
    with pytest.raises(BrokenMessage):
        received(sound.replace(b"abc", b"\xed\xa0\xbd"), [7])


def test_links_are_cut_with_their_keys() -> None:
    urls = [f"http://a.example/{'x' * 2000}{n}" for n in range(25_000)]
    reading = bounded(Reading(7, urls="\n".join(urls), keys=b"".join(map(key_bytes, urls))))
    kept = reading.urls.split("\n")
    assert 0 < len(kept) < len(urls)
    assert kept == urls[: len(kept)]
    assert received(pack([reading]), [7])[0].keys == b"".join(map(key_bytes, kept))


# -- memory ----------------------------------------------------------------------------------------------


def task(ticket: int, body: bytes, kind: str = "text/html") -> Task:
    url = f"http://a.example/{ticket}"
    return Task(ticket, url, 0.0, "", 200, (("Content-Type", kind),), b"", body, b"", 0, None, None, True)


GREEDY = b'{"' + b"k" * 100_000 + b'": [' + b"1," * 20_000 + b"1]}"
"""A small page with a large text: each of its values is shown with its key."""


@contextmanager
def limited(memory: int) -> Iterator[Readers]:
    readers = Readers(ReaderConfig(UrlRules(), memory=memory), processes=1, seconds=300.0)
    try:
        yield readers
    finally:
        readers.close()


def test_a_page_that_needs_too_much_memory_fails_alone_and_its_reader_is_replaced() -> None:
    with limited(300 << 20) as readers:
        for ticket in range(9):
            readers.submit(task(ticket, GREEDY, "application/json") if ticket == 4 else task(ticket, b"<p>heron"))
        found: dict[int, Reading] = {}
        while readers.pending:
            readers.pump(0.0)
            for connection in readers.connections:
                connection.poll(60)
            found |= {reading.ticket: reading for reading in readers.collect(0.0)}
        assert {ticket: reading.failure for ticket, reading in found.items()} == {
            ticket: "parse-memory" if ticket == 4 else "" for ticket in range(9)
        }
        assert found[4].detail == "parsing this page needs more than 300 MiB of memory"
        assert all(found[ticket].text == "heron" for ticket in range(9) if ticket != 4)
        assert readers.pending_bytes == 0


def test_a_crawl_goes_on_beside_a_page_that_needs_too_much_memory(
    repo: Repo, site: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_pool, "_MEMORY", 300 << 20)
    monkeypatch.setattr(reader_pool, "_MEMORY_OF_BYTE", 0)
    bad = site({f"/{n}": page(f"innocent{n}") for n in range(20)})
    bad["/greedy"] = Reply(GREEDY, kind="application/json")
    bad["/"] = page("home", *bad.pages)
    summary = repo.crawl(bad.url())
    assert summary["failures"] == {"parse-memory": 1}
    (visit,) = repo.visits(bad.url("/greedy"))
    assert "300 MiB" in visit["detail"]
    assert all(repo.found(f"innocent{n}") == {bad.url(f"/{n}")} for n in range(20))


def test_readers_of_a_run_have_a_limit_that_grows_with_the_largest_page() -> None:
    options = CrawlOptions(clock=lambda: 0.0, timer=lambda: 0.0, agent="a", scopes=Scopes([]))
    assert reader_pool.readers_of(options)._config.memory == (512 << 20) + 600_000_000
    larger = replace(options, limits=replace(options.limits, max_bytes=100_000_000))
    assert reader_pool.readers_of(larger)._config.memory == (512 << 20) + 6_000_000_000


# -- what no boundary has stopped --------------------------------------------------------------------------


@pytest.fixture
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles with the word `walrus` arrive with half a character, as if there were no boundary."""

    def broken(message: bytes, tickets: Sequence[int]) -> list[Reading]:
        return [it._replace(title=it.title.replace("walrus", "\ud83d")) for it in received(message, tickets)]

    monkeypatch.setattr(reader_pool, "received", broken)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.usefixtures("unbounded")
def test_a_page_that_the_database_refuses_fails_alone(
    store: str, repo: Repo, site: Start, request: pytest.FixtureRequest
) -> None:
    if store == "postgres":
        repo.run("move", "--to", f"{request.getfixturevalue('postgres_url')}?schema=bad_pages")
    good = site({f"/{n}": page(f"innocent{n}") for n in range(40)})
    good["/"] = page("home", *good.pages)
    good["/bad"] = good["/worse"] = page("heron", "/17", "/only-here", title="a walrus")
    good["/only-here"] = page("badger")
    good["/7"] = page("innocent7", "/bad", "/worse")
    summary = repo.crawl(good.url())
    assert summary["failures"] == {"unstorable": 2}
    assert (summary["new"], summary["failed"]) == (42, 2), summary
    (visit,) = repo.visits(good.url("/bad"))
    assert visit["failure"] == "unstorable"
    assert "surrogates not allowed" in visit["detail"]
    assert repo.states()[good.url("/bad")] == "found"
    assert all(repo.found(f"innocent{n}") == {good.url(f"/{n}")} for n in range(40))
    assert repo.found("badger") == {good.url("/only-here")}
    assert repo.found("heron") == set()
    good["/bad"] = page("heron", title="cured")
    repo.later(hours=30)
    repo.crawl()
    assert repo.outcomes(good.url("/bad")) == ["unstorable", "new"]
    good["/bad"] = page("otter", title="a walrus")
    repo.later(hours=30)
    assert repo.cycle()["failures"] == {"unstorable": 2}  # the other one is tried again, too
    assert repo.outcomes(good.url("/bad")) == ["unstorable", "new", "unstorable"]
    assert repo.found("heron") == {good.url("/bad")}
    assert repo.run("check").out.splitlines()[-1].startswith("no problem in")


@pytest.mark.parametrize("first", [("crawl",), ("cycle",), ("check", "--repair"), ("rm",), ("import",)], ids=" ".join)
def test_a_repository_whose_indexing_died_is_written_again_by_any_command(
    first: tuple[str, ...], repo: Repo, site: Start, tmp_path: Path
) -> None:
    """A version is committed, its text has half a character, and the index has raised: as before the boundary."""
    bad = site({"/": page("home", "/json", "/a"), "/json": BAD["/json"], "/a": page("heron")})

    def die(self: Storage, batch: Batch) -> None:
        if batch.documents:
            raise UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "_index_batch", die)
        repo.run("add", bad.url())
        with pytest.raises(UnicodeEncodeError):
            repo.run("crawl", "--allow-private", "--delay", "0")
    assert repo.sql("SELECT count(*) FROM versions")[0][0] > 0
    (tmp_path / "urls.txt").write_text(bad.url("/b"))
    more: dict[str, list[object]] = {"rm": [bad.url()], "import": [tmp_path / "urls.txt"], "check": ["--repair"]}
    repo.run(first[0], *more.get(first[0], []), *(["--allow-private"] if first[0] in ("crawl", "cycle") else []))
    if first[0] != "rm":
        repo.crawl()
        assert repo.found("walrus") == {bad.url("/json")}
        assert repo.found("heron") == {bad.url("/a")}
    assert repo.run("check").out.splitlines()[-1].startswith("no problem in")


def test_a_page_that_the_index_cannot_have_is_listed_and_the_others_are_found(
    repo: Repo, site: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(text: str) -> str:
        if "walrus" in text:
            raise ValueError("no animals")
        return terms(text)

    bad = site({f"/{n}": page(f"innocent{n}") for n in range(9)} | {"/bad": page("a walrus")})
    bad["/"] = page("home", *bad.pages)
    with monkeypatch.context() as patch:
        patch.setattr(index, "terms", refusing)
        repo.crawl(bad.url())
        shutil.rmtree(repo.folder / "index")  # so that all of it is indexed again
        repo.cycle()
    assert repo.outcomes(bad.url("/bad"))[0] == "new"
    assert repo.found("innocent3") == {bad.url("/3")}
    assert repo.found("walrus") == set()
    (problem,) = repo.json("status")["problems"]
    assert "cannot find 1 of the pages" in problem
    assert bad.url("/bad") in problem
    with Reader(repo.folder) as opened:
        assert overview.problems(opened) == [problem]
    assert "1 pages are left out" in repo.run("check").err
    bad["/bad"] = page("cured")
    repo.later(hours=300)
    repo.cycle()
    assert repo.found("cured") == {bad.url("/bad")}
    assert repo.json("status")["problems"] == []


def test_a_stored_page_that_needs_too_much_memory_is_left_out_of_a_new_index(
    repo: Repo, site: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = site({f"/{n}": page(f"innocent{n}") for n in range(9)})
    bad["/greedy"] = Reply(b'{"' + b"k" * 5_000 + b'": [' + b"1," * 8_000 + b"1]}", kind="application/json")
    bad["/"] = page("home", *bad.pages)
    repo.config(index=False)
    repo.crawl(bad.url())
    repo.config(index=True)
    monkeypatch.setattr(reader_pool, "_MEMORY", 120 << 20)
    monkeypatch.setattr(reader_pool, "_MEMORY_OF_BYTE", 0)
    repo.run("check", "--repair")
    assert "120 MiB" in repo.json("status")["problems"][0]
    assert repo.found("innocent3") == {bad.url("/3")}


def test_documents_at_which_the_index_fails_as_a_whole_are_found(
    repo: Repo, site: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, commit = Index.put, Index.commit

    def remember(self: Index, document: Document) -> str:
        self.poisoned = getattr(self, "poisoned", False) or "walrus" in document.text  # type: ignore[attr-defined]
        return put(self, document)

    def fail(self: Index) -> None:
        if getattr(self, "poisoned", False):
            raise DamagedIndex("the index is damaged") from ValueError("a thread has died")
        commit(self)

    bad = site({f"/{n}": page(f"innocent{n}") for n in range(30)} | {"/bad": page("a walrus")})
    bad["/"] = page("home", *bad.pages)
    repo.config(index=False)
    repo.crawl(bad.url())
    repo.config(index=True)
    with monkeypatch.context() as patch:
        patch.setattr(Index, "put", remember)
        patch.setattr(Index, "commit", fail)
        repo.run("check", "--repair")
        assert "a thread has died" in repo.json("status")["problems"][0]
        assert repo.found("innocent3") == {bad.url("/3")}


# -- imports -------------------------------------------------------------------------------------------------

OF_THE_PAST = "https://a.example"


def _parquet(folder: Path, bodies: dict[str, bytes]) -> Path:
    write_batches(
        folder / "past.parquet",
        [
            pa.RecordBatch.from_arrays(
                [
                    pa.array([f"{OF_THE_PAST}{path}" for path in sorted(bodies)], pa.string()),
                    pa.array([1_700_000_000] * len(bodies), pa.int64()),
                    pa.array([bodies[path] for path in sorted(bodies)], pa.large_binary()),
                ],
                names=COLUMNS,
            )
        ],
    )
    return folder / "past.parquet"


def _warc(folder: Path, bodies: dict[str, bytes]) -> Path:
    head = (("Content-Type", "text/html"),)
    (folder / "past.warc.gz").write_bytes(
        b"".join(
            warc.response(f"{OF_THE_PAST}{path}", 1.7e9, "", 200, head, body, hashlib.sha1(body).digest(), b"GET /")
            for path, body in bodies.items()
        )
    )
    return folder / "past.warc.gz"


@pytest.mark.parametrize("written", [_parquet, _warc])
def test_an_import_obeys_the_size_of_the_largest_page(
    written: Callable[[Path, dict[str, bytes]], Path], repo: Repo, tmp_path: Path
) -> None:
    sizes = {"/small": 900, "/limit": 2_000, "/large": 2_001}
    repo.config(max_bytes=2_000)
    repo.run("import", written(tmp_path, {path: b"<p>heron" + b" " * (size - 8) for path, size in sizes.items()}))
    assert {path: repo.outcomes(OF_THE_PAST + path) for path in sizes} == {
        "/small": ["new"],
        "/limit": ["new"],
        "/large": ["too-large"],
    }
    assert repo.found("heron") == {f"{OF_THE_PAST}/small", f"{OF_THE_PAST}/limit"}


@pytest.mark.parametrize("written", [_parquet, _warc])
def test_a_page_that_needs_too_much_memory_harms_no_import(
    written: Callable[[Path, dict[str, bytes]], Path], repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_pool, "_MEMORY", 300 << 20)
    monkeypatch.setattr(reader_pool, "_MEMORY_OF_BYTE", 0)
    greedy = b"".join(b"<font size=%d><p>" % n for n in range(20_000))
    repo.run("import", written(tmp_path, {"/a": b"<p>heron", "/greedy": greedy, "/z": b"<p>heron"}))
    assert repo.outcomes(f"{OF_THE_PAST}/greedy") == ["parse-memory"]
    assert repo.found("heron") == {f"{OF_THE_PAST}/a", f"{OF_THE_PAST}/z"}
