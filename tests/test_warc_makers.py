"""WARC files of other programs: wget (run here), and the shapes of Heritrix, Browsertrix and Common Crawl."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.world import Repo, Site, page

SITE = "http://zoo.example"
pytestmark = pytest.mark.filterwarnings(
    "ignore:Unclosed file:ResourceWarning",  # warcio leaves the closing of its spools to the collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


class Made:
    """A WARC file in the making: each record a gzip member of its own."""

    def __init__(self, file: Path, version: str) -> None:
        self._stream = file.open("wb")
        self._writer = WARCWriter(self._stream, gzip=True, warc_version=version)

    def __enter__(self) -> Made:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def info(self, **fields: str) -> None:
        self._writer.write_record(self._writer.create_warcinfo_record("made.warc.gz", fields))

    def record(
        self, url: str, kind: str, at: str, body: bytes, *, mime: str = "", http: Any = None, **more: str
    ) -> Any:
        headers = {"WARC-Date": at, **{name.replace("_", "-"): value for name, value in more.items()}}
        made = self._writer.create_warc_record(
            url, kind, payload=io.BytesIO(body), warc_content_type=mime, http_headers=http, warc_headers_dict=headers
        )
        self._writer.write_record(made)
        return made

    def response(
        self, url: str, at: str, body: bytes, *headers: tuple[str, str], status: str = "200 OK", **more: str
    ) -> Any:
        lines = [("Content-Type", "text/html; charset=utf-8"), *headers]
        return self.record(url, "response", at, body, http=StatusAndHeaders(status, lines, protocol="HTTP/1.1"), **more)

    def request(self, url: str, at: str) -> None:
        self.record(url, "request", at, b"GET / HTTP/1.1\r\n\r\n", mime="application/http; msgtype=request")

    def revisit(self, url: str, at: str, first: Any) -> None:
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        digest = first.rec_headers.get_header("WARC-Payload-Digest")
        date = first.rec_headers.get_header("WARC-Date")
        target = first.rec_headers.get_header("WARC-Target-URI")
        made = self._writer.create_revisit_record(
            url, digest, target, date, http_headers=head, warc_headers_dict={"WARC-Date": at}
        )
        self._writer.write_record(made)


def imported(repo: Repo, file: Path) -> dict[str, list[str]]:
    """Import a file; the outcomes of every page."""
    repo.run("import", file)
    return {url: repo.outcomes(url) for url in repo.pages()}


def test_wget_as_it_is(repo: Repo, site: Callable[..., Site], tmp_path: Path) -> None:
    if shutil.which("wget") is None:
        pytest.skip("wget is not installed")
    web = site({"/": page("start", "/a"), "/a": page("walrus")})
    command = ["wget", "-q", "-r", "-l", "2", "--warc-file=zoo", "--warc-cdx", web.url()]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    found = imported(repo, tmp_path / "zoo.warc.gz")
    assert found[web.url()] == found[web.url("/a")] == ["new"]
    assert repo.found("walrus") == {web.url("/a")}


def test_heritrix(repo: Repo, tmp_path: Path) -> None:
    """WARC 1.0 with DNS lookups, requests, metadata of the crawl, and revisits."""
    with Made(file := tmp_path / "WEB-2024.warc.gz", "WARC/1.0") as made:
        made.info(software="Heritrix/3.4.0", format="WARC File Format 1.0", robots="obey")
        lookup = b"20240101000000\nzoo.example. 60 IN A 192.0.2.1\n"
        made.record("dns:zoo.example", "response", "2024-01-01T00:00:00Z", lookup, mime="text/dns")
        first = made.response(f"{SITE}/", "2024-01-01T00:00:01Z", page("the zoo", "/a"), WARC_IP_Address="192.0.2.1")
        made.request(f"{SITE}/", "2024-01-01T00:00:01Z")
        fields = b"seed: \r\nfetchTimeMs: 12\r\nhopsFromSeed: L\r\nvia: http://zoo.example/\r\n"
        made.record(f"{SITE}/", "metadata", "2024-01-01T00:00:01Z", fields, mime="application/warc-fields")
        made.revisit(f"{SITE}/", "2024-01-05T00:00:01Z", first)
        made.response(f"{SITE}/", "2024-01-09T00:00:01Z", page("the zoo has closed for the winter, sadly"))
        made.response(f"{SITE}/old", "2024-01-09T00:00:02Z", b"gone", status="404 Not Found")
    assert imported(repo, file)[f"{SITE}/"] == ["new", "unchanged", "changed"]


@pytest.mark.parametrize("packed", [False, True])
def test_browsertrix(repo: Repo, tmp_path: Path, packed: bool) -> None:
    """WARC 1.1 with rendered text, screenshots and page information as resources under `urn:`; alone and in a WACZ."""
    with Made(file := tmp_path / "rec-0.warc.gz", "WARC/1.1") as made:
        made.info(software="Browsertrix-Crawler 1.5.0 (with warcio.js 2.4.0)", format="WARC File Format 1.1")
        first = made.response(f"{SITE}/", "2024-01-01T00:00:01.123Z", page("okapi house"), WARC_Page_ID="p1")
        made.request(f"{SITE}/", "2024-01-01T00:00:01.123Z")
        made.record(f"urn:text:{SITE}/", "resource", "2024-01-01T00:00:02.5Z", b"okapi house text", mime="text/plain")
        made.record(f"urn:view:{SITE}/", "resource", "2024-01-01T00:00:02.5Z", b"\x89PNG", mime="image/png")
        facts = json.dumps({"pageid": "p1", "urls": {f"{SITE}/": {"status": 200}}}).encode()
        made.record(f"urn:pageinfo:{SITE}/", "resource", "2024-01-01T00:00:02.5Z", facts, mime="application/json")
        made.revisit(f"{SITE}/copy", "2024-01-01T00:00:03.5Z", first)
    if packed:
        wacz = tmp_path / "crawl.wacz"
        with zipfile.ZipFile(wacz, "w") as package:
            package.write(file, "archive/rec-0.warc.gz")
            package.writestr("datapackage.json", json.dumps({"profile": "data-package", "resources": []}))
        file = wacz
    assert imported(repo, file) == {f"{SITE}/": ["new"], f"{SITE}/copy": ["new"]}
    assert repo.found("okapi") == {f"{SITE}/", f"{SITE}/copy"}


def test_common_crawl(repo: Repo, tmp_path: Path) -> None:
    """WARC 1.0: decoded bodies whose headers of the transfer are renamed, and bodies that were cut at a limit."""
    with Made(file := tmp_path / "CC-MAIN-20240101-00000.warc.gz", "WARC/1.0") as made:
        made.info(isPartOf="CC-MAIN-2024-10", software="Apache Nutch 1.19", format="WARC File Format 1.0")
        body = page("zebra stripes")
        renamed = (
            ("X-Crawler-Content-Encoding", "gzip"),
            ("X-Crawler-Content-Length", "99"),
            ("Content-Length", str(len(body))),
        )
        made.request(f"{SITE}/", "2024-01-01T00:00:01Z")
        made.response(f"{SITE}/", "2024-01-01T00:00:01Z", body, *renamed, WARC_Identified_Payload_Type="text/html")
        made.response(f"{SITE}/long", "2024-01-01T00:00:02Z", page("long zebra"), WARC_Truncated="length")
        made.record(
            f"{SITE}/", "metadata", "2024-01-01T00:00:01Z", b"fetchTimeMs: 7\r\n", mime="application/warc-fields"
        )
    assert imported(repo, file) == {f"{SITE}/": ["new"], f"{SITE}/long": ["new"]}
    assert repo.found("zebra") == {f"{SITE}/", f"{SITE}/long"}


@pytest.mark.parametrize(
    ("kind", "record", "mime", "body"),
    [
        ("wet", "conversion", "text/plain", b"zebra stripes as plain text"),
        ("wat", "metadata", "application/json", b'{"Envelope": {"Format": "WARC"}}'),
    ],
)
def test_files_that_common_crawl_derives_are_refused(
    repo: Repo, tmp_path: Path, kind: str, record: str, mime: str, body: bytes
) -> None:
    with Made(file := tmp_path / f"CC-MAIN-00000.warc.{kind}.gz", "WARC/1.0") as made:
        made.info(software="ia-web-commons", format="WARC File Format 1.0")
        made.record(f"{SITE}/", record, "2024-01-01T00:00:01Z", body, mime=mime)
    error = repo.run("import", file, code=None).err
    assert f"is a {kind.upper()} file" in error
    assert "import the WARC file that it was made from" in error
    assert repo.pages() == {}
