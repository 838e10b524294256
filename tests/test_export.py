"""Exports of the archive (WARC, WACZ, CDXJ) and of tables, judged by readers of other programs and by a way back."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

import recrawl
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.formats.source_kinds import kind_of
from recrawl.repository.export import cdxj
from tests.environments import python_of
from tests.world import Site, command, page

DAY = 86400
START = 1_700_000_000
LATER = START + 15 * DAY


def body(words: str) -> bytes:
    return f"<!doctype html><title>{words}</title><p>{words}</p>".encode()


ROWS = [
    ("https://a.example/", START, body("one")),
    ("https://a.example/", START + 10 * DAY, body("two")),
    ("https://a.example/b?x=2&y=1", START, body("three")),
    ("https://www.b.example/", START + 20 * DAY, body("four")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with four versions of three pages."""
    where = tmp_path_factory.mktemp("export")
    urls, times, bodies = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"url": urls, "time": times, "html": bodies}), where / "history.parquet")
    with recrawl.init(where / "repo") as repo:
        repo.import_history(where / "history.parquet")
    return where / "repo"


def captured(package: zipfile.ZipFile) -> list[tuple[str, bytes]]:
    """What a replay tool finds: each line of the index leads to a record, which must be the one that it names."""
    found = []
    records = package.read("archive/data.warc.gz")
    for text in gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines():
        fields = json.loads(text.split(" ", 2)[2])
        start = int(fields["offset"])
        record = next(iter(ArchiveIterator(io.BytesIO(records[start : start + int(fields["length"])]))))
        assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]
        assert record.rec_headers.get_header("WARC-Payload-Digest") == fields["digest"]
        found.append((fields["url"], record.content_stream().read()))
    return found


def test_a_wacz_holds_every_version_with_an_index_that_leads_to_it(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.wacz"
    with recrawl.open(folder) as repo:
        assert repo.export(file) == 4
    with zipfile.ZipFile(file) as package:
        assert sorted(captured(package)) == sorted((url, text) for url, _, text in ROWS)
        assert {item.compress_type for item in package.infolist()} == {zipfile.ZIP_STORED}
        described = json.loads(package.read("datapackage.json"))
        for resource in described["resources"]:
            content = package.read(resource["path"])
            assert resource["bytes"] == len(content)
            assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        digest = json.loads(package.read("datapackage-digest.json"))["hash"]
        assert digest == f"sha256:{hashlib.sha256(package.read('datapackage.json')).hexdigest()}"
        head, *pages = map(json.loads, package.read("pages/pages.jsonl").decode().splitlines())
        assert head["format"] == "json-pages-1.0"
        assert sorted((page["url"], page["title"]) for page in pages) == [
            ("https://a.example/", "one"),
            ("https://a.example/", "two"),
            ("https://a.example/b?x=2&y=1", "three"),
            ("https://www.b.example/", "four"),
        ]
    assert [path.name for path in tmp_path.iterdir()] == ["all.wacz"]


def test_a_wacz_is_imported_again_as_it_was(folder: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "history.zip", tmp_path / "again.parquet"
    with recrawl.open(folder) as repo:
        repo.export(tmp_path / "x.wacz")
    (tmp_path / "x.wacz").rename(file)  # recognised by its content
    assert kind_of(file) == "warc"
    with recrawl.init(tmp_path / "copy") as repo:
        assert repo.import_history(file).versions == 4
        repo.export(copy)
    archive = Archive.open([copy])
    assert [(archive.urls[archive.page_of[row]], archive.times[row], archive.html(row)) for row in range(4)] == ROWS


def test_an_increment_holds_what_came_since(folder: Path, tmp_path: Path) -> None:
    with recrawl.open(folder) as repo:
        assert repo.export(tmp_path / "new.wacz", since=LATER) == 1
        assert repo.export(tmp_path / "new.warc.gz", since=LATER) == 1
        assert repo.export(tmp_path / "new.parquet", since=LATER) == 1
        assert repo.export(tmp_path / "new.txt", since=LATER) == 1
        assert repo.export(tmp_path / "all.txt") == 3
    with zipfile.ZipFile(tmp_path / "new.wacz") as package:
        assert captured(package) == [("https://www.b.example/", body("four"))]
    assert (tmp_path / "new.txt").read_text() == "https://www.b.example/\n"
    with (tmp_path / "new.warc.gz").open("rb") as stream:
        assert [record.rec_type for record in ArchiveIterator(stream)] == ["response"]


def test_cdxj_is_sorted_and_leads_to_the_files_of_the_archive(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdxj, "_RUN", 3)  # so that runs are merged
    with recrawl.open(folder) as repo:
        assert repo.export(tmp_path / "index.cdxj") == 4
    lines = (tmp_path / "index.cdxj").read_text().splitlines()
    assert lines == sorted(lines)
    keys = [text.split(" ", 1)[0] for text in lines]
    assert keys == ["example,a)/", "example,a)/", "example,a)/b?x=2&y=1", "example,b)/"]
    for text in lines:
        fields = json.loads(text.split(" ", 2)[2])
        with (folder / "archive" / fields["filename"]).open("rb") as stream:
            stream.seek(int(fields["offset"]))
            record = next(iter(ArchiveIterator(io.BytesIO(stream.read(int(fields["length"]))))))
            assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]


@pytest.mark.parametrize(
    ("table", "rows", "column"), [("pages", 3, "url"), ("visits", 4, "outcome"), ("versions", 4, "title")]
)
def test_tables_are_parquet_with_a_column_per_field(
    folder: Path, tmp_path: Path, table: str, rows: int, column: str
) -> None:
    result = command("-C", folder, "export", tmp_path / "t.parquet", "--table", table, "--json")
    assert json.loads(result.out) == {"file": str(tmp_path / "t.parquet"), "rows": rows}
    read = pq.read_table(tmp_path / "t.parquet")
    assert read.num_rows == rows
    assert column in read.column_names


def test_a_table_needs_parquet(folder: Path, tmp_path: Path) -> None:
    with recrawl.open(folder) as repo, pytest.raises(UsageError, match=r"ends in \.parquet"):
        repo.export(tmp_path / "t.wacz", table="pages")


def test_a_failed_export_leaves_the_old_file_and_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.cdxj").write_text("old")

    def broken(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cdxj, "line", broken)
    with recrawl.open(folder) as repo, pytest.raises(OSError, match="No space"):
        repo.export(tmp_path / "a.cdxj")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.cdxj", "old")]


@pytest.mark.parametrize("content", [b"PK\x03\x04 but no ZIP file", b""])
def test_what_only_looks_like_a_wacz_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.wacz").write_bytes(content)
    with pytest.raises(BadArchive, match="neither"):
        kind_of(tmp_path / "x.wacz")


def test_a_wacz_with_a_damaged_member_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.wacz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as package:
        package.writestr("datapackage.json", "{}")
        package.writestr("archive/data.warc.gz", b"no record at all")
    with (
        recrawl.init(tmp_path / "r") as repo,
        pytest.raises(BadArchive, match=r"archive/data\.warc\.gz in .* is not a WARC file"),
    ):
        repo.import_history(file)


# -- other programs --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peers() -> Path:
    """The folder of py-wacz and cdxj-indexer."""
    return python_of("wacz").parent


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_py_wacz_finds_the_file_valid(peers: Path, folder: Path, tmp_path: Path) -> None:
    with recrawl.open(folder) as repo:
        repo.export(tmp_path / "all.wacz")
    assert "is valid" in run(peers / "wacz", "validate", "-f", tmp_path / "all.wacz")


def test_cdxj_indexer_writes_the_same_index(peers: Path, folder: Path, tmp_path: Path) -> None:
    with recrawl.open(folder) as repo:
        repo.export(tmp_path / "index.cdxj")
    theirs = run(peers / "cdxj-indexer", "--sort", *(folder / "archive").iterdir())
    assert (tmp_path / "index.cdxj").read_text() == theirs


URLS = [
    "https://example.org/",
    "https://www.example.org/A/B/",
    "http://www2.example.org:80/",
    "https://example.org:8443/x//",
    "https://example.org/a//b///c",
    "https://example.org/?b=2&a=1&a=0&c",
    "https://example.org/p?X=%C3%84&x",
    "http://127.0.0.1:8000/%C3%A4",
    "https://xn--mnchen-3ya.example/a;b=1?c=d=e&c=",
    "https://www.www.example/",
]


def test_keys_are_those_of_the_internet_archive(peers: Path) -> None:
    code = "import json, sys, surt; print(json.dumps([surt.surt(url) for url in json.loads(sys.argv[1])]))"
    assert [cdxj._key(url) for url in URLS] == json.loads(run(peers / "python", "-c", code, json.dumps(URLS)))


@pytest.mark.skipif(shutil.which("wget") is None, reason="GNU wget is not installed")
def test_a_warc_of_wget_is_imported(tmp_path: Path) -> None:
    """wget encloses URLs in angle brackets, repeats records in its log and keeps chunked bodies as they came."""
    with Site({"/": page("the front page", "/a.html"), "/a.html": page("an article")}) as site:
        words = ["--recursive", "--no-verbose", "--warc-file", tmp_path / "made", "--warc-cdx", site.url("/")]
        run("wget", "-P", tmp_path / "files", *words)
        urls = [site.url("/"), site.url("/a.html")]
    with recrawl.init(tmp_path / "repo") as repo:
        assert repo.import_history(tmp_path / "made.warc.gz").versions == 2
        assert [one.url for one in repo.pages()] == urls
        assert "an article" in repo.page(urls[1]).text


BROWSERTRIX = """WARC/1.1
WARC-Type: response
WARC-Target-URI: https://a.example/
WARC-Date: 2025-01-02T03:04:05.678Z
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>
Content-Type: application/http; msgtype=response
Content-Length: {length}

{block}

WARC/1.1
WARC-Type: resource
WARC-Target-URI: urn:text:https://a.example/
WARC-Date: 2025-01-02T03:04:06.678Z
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000002>
Content-Type: text/plain
Content-Length: 5

hello

"""
HERITRIX = """WARC/1.0
WARC-Type: response
WARC-Target-URI: dns:a.example
WARC-Date: 2025-01-02T03:04:04Z
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000003>
Content-Type: text/dns
Content-Length: 14

20250102030404

WARC/1.0
WARC-Type: response
WARC-Target-URI: https://a.example/
WARC-Date: 2025-01-02T03:04:05Z
WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000004>
Content-Type: application/http; msgtype=response
Content-Length: {length}

{block}

"""
COMMON_CRAWL = """WARC/1.0
WARC-Type: response
WARC-Date: 2025-01-02T03:04:05Z
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000005>
Content-Length: {length}
Content-Type: application/http; msgtype=response
WARC-Target-URI: https://a.example/
WARC-Truncated: length
WARC-Identified-Payload-Type: text/html

{block}

"""


@pytest.mark.parametrize("made", [BROWSERTRIX, HERITRIX, COMMON_CRAWL], ids=["browsertrix", "heritrix", "common-crawl"])
def test_warcs_in_the_manner_of_other_crawlers_are_imported(tmp_path: Path, made: str) -> None:
    """HTTP/2 responses written as HTTP/1.1, DNS records, and headers of an encoding that the body no longer has."""
    block = "HTTP/1.1 200 OK\nContent-Type: text/html\nX-Crawler-Content-Encoding: gzip\n\n<p>hello</p>"
    block = block.replace("\n", "\r\n")
    text = made.replace("\n", "\r\n").format(length=len(block), block=block)
    (tmp_path / "x.warc").write_bytes(text.encode())
    with recrawl.init(tmp_path / "repo") as repo:
        assert repo.import_history(tmp_path / "x.warc").versions == 1
        assert repo.page("https://a.example/").text == "hello"
