"""What becomes of the records of WARC files: all that a crawl keeps is taken, the rest is counted, nothing is believed.

Each test walks from a server, or from the bytes of a file, to what the repository answers.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recrawl
from tests.world import Reply, Repo, Site, moved, page, text

Start = Callable[..., Site]
FEED = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>News of the zoo</title>
<item><title>A gnu was born</title><link>/gnu</link></item></channel></rss>"""


def versions(repo: Repo) -> list[tuple[Any, ...]]:
    """All that is known of all versions, and the headers and bodies of their records."""
    with recrawl.open(repo.folder) as opened:
        found, store = [], opened.storage.store
        for number, url in store.pages.visited():
            for row in store.versions.of_page(number):
                facts = row._replace(at=round(row.at, 3), id=0, page=0, warc=0, start=0, length=0, new_links=0)
                found.append((url, facts, *opened.storage.body(row)))
        return sorted(found, key=lambda it: (it[0], it[1].at))


def of_many_kinds(web: Site, turn: int) -> None:
    """Pages of all types that a crawl keeps."""
    links = ("/feed", "/data.json", "/notes", "/read.md", "/zipped", "/old", "/same", "/away")
    headers = {"X-Thing": "a: b", "X-Odd": "\u00e4\u00a4", "Content-Disposition": 'inline; filename="f\u00fc.html"'}
    web["/"] = Reply(page(f"front {turn}", *links), headers=headers, modified=f"Wed, 0{turn + 1} Jan 2025 00:00:00 GMT")
    web["/feed"] = Reply(FEED.replace(b"gnu was", b"gnu %d was" % turn), kind="application/rss+xml")
    web["/data.json"] = Reply(json.dumps({"animals": ["okapi", turn]}).encode(), kind="application/json")
    web["/notes"] = text(f"notes, number {turn}")
    web["/read.md"] = Reply(f"# Heading {turn}\n\nwords".encode(), kind="text/markdown")
    web["/zipped"] = Reply(gzip.compress(page(f"zipped {turn}")), headers={"Content-Encoding": "gzip"})
    web["/old"] = page("always the same") if turn < 2 else Reply(page("no"), 404)
    web["/same"] = page("never another")
    web["/away"] = moved("/same")
    web["/gnu"] = page("the gnu")


@pytest.fixture
def zoo(repo: Repo, site: Start) -> Repo:
    """A repository with pages of many kinds that were visited five times."""
    web = site({})
    of_many_kinds(web, 0)
    repo.crawl(web.url())
    for turn in range(1, 5):
        repo.later(days=3)
        of_many_kinds(web, turn)
        repo.cycle()
    return repo


@pytest.mark.parametrize("name", ["all.wacz", "all.warc.gz"])
def test_what_is_exported_comes_back_with_all_versions_and_headers(zoo: Repo, tmp_path: Path, name: str) -> None:
    zoo.run("export", tmp_path / name)
    copy = Repo.create(tmp_path / "copy")
    told = copy.json("import", tmp_path / name)
    wanted, got = versions(zoo), versions(copy)
    assert len(wanted) > 30
    assert got == wanted
    assert told["versions"] == len(wanted)
    assert told["remarks"] == {}
    keys = ("state", "visits", "changes", "failures", "last_visit", "last_change", "size", "title")
    known, again = zoo.pages(), copy.pages()
    assert {url for url, row in known.items() if row["state"] != "moved"} == set(again)
    for url, row in again.items():
        assert [row[key] for key in keys] == [known[url][key] for key in keys], url
    assert copy.found("okapi") == zoo.found("okapi") != set()
    assert_adds_up(told)


def assert_adds_up(told: dict[str, Any]) -> None:
    """Every record is either taken or left out, and every one that was taken became something."""
    for counts in told["records"].values():
        assert counts["read"] == counts["taken"] + sum(counts["left_out"].values())
    assert sum(counts["taken"] for counts in told["records"].values()) == sum(told["became"].values())


@pytest.mark.skipif(shutil.which("wget") is None, reason="GNU wget is not installed")
def test_wget_records_all_that_a_crawl_would_keep(site: Start, tmp_path: Path) -> None:
    web = site({})
    of_many_kinds(web, 0)
    web["/style.css"] = Reply(b"p { color: red }", kind="text/css")
    web["/logo.png"] = Reply(b"\x89PNG" + bytes(50), kind="image/png")
    web["/"] = Reply(page("front", "/feed", "/data.json", "/notes", "/read.md", "/old", "/same", "/away", "/style.css",
                          "/logo.png", "/missing"))  # fmt: skip
    command = ["wget", "-q", "-r", "-l", "3", f"--warc-file={tmp_path / 'zoo'}", "--warc-cdx", web.url()]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    crawled, taken = Repo.create(tmp_path / "crawled"), Repo.create(tmp_path / "taken")
    crawled.crawl(web.url())
    told = taken.json("import", tmp_path / "zoo.warc.gz")
    live = {url for url, state in crawled.states().items() if state == "live"} - {web.url("/gnu")}
    assert {url for url, row in taken.pages().items() if row["state"] == "live"} >= live
    assert_adds_up(told)
    left = told["records"]["response"]["left_out"]
    assert left["not in content_types (image/png)"] == 1
    assert left["files that pages need"] == 1
    assert left["404 or 410, and no other answer for the page"] >= 1
    table = Repo.create(tmp_path / "again").run("import", tmp_path / "zoo.warc.gz").out
    assert "not in content_types (image/png)" in table
    assert "taken records: " in table


# -- digests ---------------------------------------------------------------------------------------------------


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def record(kind: str, url: str, at: str, block: bytes, **fields: str) -> bytes:
    lines = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{hashlib.md5((kind + url + at).encode()).hexdigest()}>",
        "WARC-Target-URI": url,
        "WARC-Date": at,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def http(body: bytes, kind: str = "text/html") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode() + body


BANK, EVIL = b"<p>our real account numbers</p>", b"<p>send all money to evil</p>"
BANK_URL, EVIL_URL = "https://bank.example/", "https://evil.example/"
DAY_1, DAY_2, DAY_3 = (f"2025-01-0{day}T00:00:00Z" for day in (1, 2, 3))


def stored(tmp_path: Path, *records: bytes) -> tuple[dict[str, list[bytes]], dict[str, Any]]:
    """Import records: the bodies of each page, and what was said."""
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    repo = Repo.create(tmp_path / "repo")
    told = repo.json("import", tmp_path / "x.warc")
    bodies: dict[str, list[bytes]] = {}
    for url, _, _, _, body in versions(repo):
        bodies.setdefault(url, []).append(body)
    assert_adds_up(told)
    return bodies, told


@pytest.mark.parametrize("evil_first", [True, False])
@pytest.mark.parametrize("algorithm", ["base32", "base16", "sha256"])
def test_a_record_that_claims_the_digest_of_another_page_replaces_nothing(
    tmp_path: Path, evil_first: bool, algorithm: str
) -> None:
    claimed = {
        "base32": sha1(BANK),
        "base16": f"sha1:{hashlib.sha1(BANK).hexdigest()}",
        "sha256": f"sha256:{hashlib.sha256(BANK).hexdigest()}",
    }[algorithm]
    evil = record("response", EVIL_URL, DAY_1, http(EVIL), WARC_Payload_Digest=claimed)
    bank = record("response", BANK_URL, DAY_1, http(BANK), WARC_Payload_Digest=claimed)
    bodies, told = stored(tmp_path, *([evil, bank] if evil_first else [bank, evil]))
    assert bodies == {BANK_URL: [BANK], EVIL_URL: [EVIL]}
    assert sum(told["remarks"].values()) == 1


@pytest.mark.parametrize("named", ["", BANK_URL, EVIL_URL])
def test_a_revisit_does_not_borrow_what_only_claims_its_digest(tmp_path: Path, named: str) -> None:
    """Its target is not held; a page of another host claims the digest."""
    evil = record("response", EVIL_URL, DAY_1, http(EVIL), WARC_Payload_Digest=sha1(BANK))
    before = record("response", BANK_URL, DAY_1, http(b"<p>before"), WARC_Payload_Digest=sha1(b"<p>before"))
    more = {"WARC_Refers_To_Target_URI": named} if named else {}
    again = record("revisit", BANK_URL, DAY_2, http(b""), WARC_Payload_Digest=sha1(BANK), **more)
    bodies, told = stored(tmp_path, evil, before, again)
    assert bodies == {BANK_URL: [b"<p>before"], EVIL_URL: [EVIL]}
    assert told["records"]["revisit"]["left_out"] == {"what it repeats is in none of the files": 1}


def test_a_revisit_takes_the_content_of_another_page_only_if_it_names_it(tmp_path: Path) -> None:
    evil = record("response", EVIL_URL, DAY_1, http(EVIL))
    before = record("response", BANK_URL, DAY_1, http(BANK))
    unnamed = record("revisit", BANK_URL, DAY_2, http(b""), WARC_Payload_Digest=sha1(EVIL))
    bodies, told = stored(tmp_path, evil, before, unnamed)
    assert bodies == {BANK_URL: [BANK], EVIL_URL: [EVIL]}
    assert told["records"]["revisit"]["taken"] == 0
    copy = record("revisit", f"{EVIL_URL}copy", DAY_3, http(b""), WARC_Payload_Digest=sha1(EVIL),
                  WARC_Refers_To_Target_URI=EVIL_URL)  # fmt: skip
    (tmp_path / "named").mkdir()
    assert stored(tmp_path / "named", evil, copy)[0] == {EVIL_URL: [EVIL], f"{EVIL_URL}copy": [EVIL]}


def test_wrong_digests_of_blocks_and_of_a_wacz_are_counted(tmp_path: Path) -> None:
    one = record("response", BANK_URL, DAY_1, http(BANK), WARC_Block_Digest=sha1(b"another block"))
    two = record("response", EVIL_URL, DAY_1, http(EVIL), WARC_Block_Digest="blake3:0011")  # nobody can compute it
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as package:
        package.writestr("archive/data.warc", one + two)
        resource = {"path": "archive/data.warc", "hash": f"sha256:{'0' * 64}"}
        package.writestr("datapackage.json", json.dumps({"resources": [resource]}))
    told = Repo.create(tmp_path / "repo").json("import", tmp_path / "x.wacz")
    assert told["versions"] == 2
    assert told["remarks"] == {
        "WARC files in a WACZ that do not have the hash which it states": 1,
        "records whose block does not have the digest that they state; taken as they are": 1,
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["", "x", "y", "z"]),
                          st.booleans()), min_size=1, max_size=12))  # fmt: skip
def test_whatever_is_claimed_a_page_has_only_what_its_own_records_hold(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, str, str, bool]]
) -> None:
    """Responses with any digest, and revisits without a target: a page only ever has bodies of its own responses."""
    from recrawl.lab.formats.version_rows import Taken, Window
    from recrawl.lab.formats.warc_files import html_only, opened

    records, own = [], {name: set[bytes]() for name in "ab"}
    for number, (name, body, claim, again) in enumerate(told):
        at, url = f"2025-01-01T00:00:{number:02d}Z", f"https://{name}.example/"
        digest = {"WARC_Payload_Digest": sha1(f"<p>{claim}".encode())} if claim else {}
        if again:
            records.append(record("revisit", url, at, http(b""), **digest))
        else:
            own[name].add(f"<p>{body}".encode())
            records.append(record("response", url, at, http(f"<p>{body}".encode()), **digest))
    file = tmp_path_factory.mktemp("w") / "x.warc"
    file.write_bytes(b"".join(records))
    with opened([file], refuses=html_only, taken=Taken()) as captures:
        for url, answers in captures.histories(Window()):
            bodies = {it.body() for it in answers if it.body is not None}
            assert bodies <= own[url.removeprefix("https://")[0]]


# -- ARC -------------------------------------------------------------------------------------------------------


def arc_file(*pages: tuple[str, str, bytes]) -> bytes:
    """An ARC file of 2005."""
    info = b"1 0 Internet Archive\nURL IP-address Archive-date Content-type Archive-length\n"
    rows = [("filedesc://x.arc", "20050101000000", info), *((url, at, http(body)) for url, at, body in pages)]
    return b"".join(
        f"{url} 192.0.2.1 {at} text/html {len(block)}\n".encode() + block + b"\n" for url, at, block in rows
    )


@pytest.mark.parametrize("name", ["x.arc", "x.arc.gz", "x"])
def test_arc_files_are_read(tmp_path: Path, name: str) -> None:
    whole = arc_file((BANK_URL, "20050101000000", BANK), (BANK_URL, "20050201000000", b"<p>later"))
    (tmp_path / name).write_bytes(gzip.compress(whole) if name.endswith("gz") else whole)
    repo = Repo.create(tmp_path / "repo")
    told = repo.json("import", tmp_path / name)
    assert [(it[1].at, it[4]) for it in versions(repo)] == [(1104537600.0, BANK), (1107216000.0, b"<p>later")]
    assert told["records"]["warcinfo"]["read"] == 1
    assert_adds_up(told)


def test_a_damaged_arc_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    whole = arc_file((BANK_URL, "20050101000000", BANK), (EVIL_URL, "20050201000000", EVIL))
    for cut in range(len(whole) - 2, 0, -31):
        (tmp_path / "x.arc").write_bytes(whole[:cut])
        repo = Repo.create(tmp_path / f"{cut}")
        told = repo.run("import", tmp_path / "x.arc", code=None)
        assert told.code in (0, 2)
        assert "Traceback" not in told.err
        assert told.code or [it[0] for it in versions(repo)] == [BANK_URL]


# -- files that are something else -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04" + bytes(100), "a ZIP file, damaged or not a WACZ"),
        (b"\x1f\x8b\x08\x00" + bytes(60), "a gzip file, damaged"),
        (gzip.compress(b"WARC/1.1\r\n" * 500, mtime=0)[:15], "a gzip file, damaged"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF file"),
        (b"<!doctype html><p>Hello", "an HTML page"),
        (b"<?xml version='1.0'?><urlset></urlset>", "XML"),
        (b'{"urls": []}', "JSON"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x00\x01\x02\x03", "binary data"),
        (b"Dear Sir,\nplease find our addresses below.\nYours\n", "of its first 3 lines are none"),
        (b"From: somebody\nhttps://a.example/ is what I mean\n", "of its first 2 lines are none"),
        (b"url,title\nhttps://a.example/,home\nhttps://a.example/b,other\n", "a table"),
        (b"name\tlink\nhome\thttps://a.example/\n", "a table"),
    ],
)
def test_a_list_of_urls_must_look_like_one(repo: Repo, tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "x").write_bytes(content)
    told = repo.run("import", tmp_path / "x", code=2)
    assert words in told.err
    assert not repo.pages()


@pytest.mark.parametrize(
    "content", [b"", b"# nothing yet\n\n", b"\xef\xbb\xbfhttps://a.example/\n", b"https://a.example/\nno\n"]
)
def test_what_looks_like_a_list_is_taken(repo: Repo, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert repo.json("import", tmp_path / "x")["pages"] == (b"a.example" in content)


def test_a_line_with_more_than_a_url_is_no_page(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("https://a.example/1\nhttps://a.example/2 two\nhttps://a.example/3?q=a,b;c\n")
    told = repo.json("import", tmp_path / "x")
    assert told["refused"] == ["https://a.example/2 two"]
    assert set(repo.pages()) == {"https://a.example/1", "https://a.example/3?q=a,b;c"}


@pytest.mark.parametrize("name", ["x.warc.gz", "x.arc", "x.wacz", "x.parquet"])
def test_an_empty_file_that_should_hold_a_history_is_an_error(repo: Repo, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "x." in repo.run("import", tmp_path / name, code=2).err


def test_what_a_damaged_wacz_or_warc_still_holds_is_taken_and_said(zoo: Repo, tmp_path: Path) -> None:
    zoo.run("export", tmp_path / "all.warc.gz")
    whole = (tmp_path / "all.warc.gz").read_bytes()
    (tmp_path / "cut.warc.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "torn.warc.gz").write_bytes(whole[: len(whole) // 2] + b"\0" * 999 + whole[len(whole) // 2 + 999 :])
    for name in ("cut", "torn"):
        copy = Repo.create(tmp_path / name)
        told = copy.json("import", tmp_path / f"{name}.warc.gz")
        assert told["versions"] > 5
        assert told["remarks"] or any("cut off" in it["left_out"] for it in told["records"].values())
        assert_adds_up(told)
    zoo.run("export", tmp_path / "all.wacz")
    whole = (tmp_path / "all.wacz").read_bytes()
    (tmp_path / "cut.wacz").write_bytes(whole[: len(whole) // 2])  # its table of contents is at its end
    told = Repo.create(tmp_path / "c").run("import", tmp_path / "cut.wacz", code=2)
    assert "a ZIP file, damaged or not a WACZ" in told.err
