"""The time-lapse server, asked over real HTTP on loopback at several times."""

from __future__ import annotations

import http.client
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pyarrow as pa
import pycurl
import pytest

from recrawl.errors import UsageError
from recrawl.lab import timelapse
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, generate, write
from recrawl.lab.timelapse import Bodies, Clock, ServedRequest, ServerOptions, TimeLapseServer, app

DATA = Path(__file__).parents[1].parent / "shared" / "data"
MAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
ATOM = "{http://www.w3.org/2005/Atom}"


class Got(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Asker:
    """A client that names the host itself, since not every resolver knows *.localhost."""

    def __init__(self, server: TimeLapseServer, clock: Clock) -> None:
        self.server, self.clock = server, clock
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def get(self, url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Got:
        host, _, path = url.removeprefix("http://").partition("/")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, "/" + path, body, {"Host": host, **named})
        answer = self._connection.getresponse()
        return Got(answer.status, answer.headers, answer.read())

    def page(self, url: str, **headers: str) -> Got:
        return self.get(self.server.url_of(url), "GET", None, **headers)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def asking(archive: Archive, options: ServerOptions | None = None) -> Iterator[Asker]:
    clock = Clock(archive.start, 0.0, lambda: 0.0)
    with TimeLapseServer(app(archive, clock, options)) as server:
        asker = Asker(server, clock)
        try:
            yield asker
        finally:
            asker.close()


def small(rows) -> Archive:
    url, time, html = zip(*rows, strict=True)
    return Archive.of(pa.table({"url": list(url), "time": list(time), "html": pa.array(html, pa.binary())}))


A = "https://a.example"
ONE = small(
    [
        (f"{A}/index.html", 1000, b'<title>A &amp; B</title><a href="https://a.example/x.html">x</a>'),
        (f"{A}/index.html", 2000, b"<title>front</title>second"),
        (f"{A}/x.html", 1500, b"x one"),
        (f"{A}/x.html", 2500, None),
        (f"{A}/dir/index.htm", 1000, b"in the folder"),
        (f"{A}/Terms of #1.html", 1000, b"odd name"),
        (f"{A}/q?b=1&a=2", 1000, b"with a query"),
        (f"{A}/latin.html", 1000, b'<meta charset="iso-8859-1">f\xfcr'),
    ]
)
TWO = small(
    [
        (
            f"{A}/",
            1000,
            b'<a href="https://b.example/p.html">b</a> <a href="//B.example/">b</a> https://b.example.org/',
        ),
        (f"{A}/dir/", 1000, b"the folder itself"),
        (f"{A}/dir/index.html", 1000, b"its index"),
        ("http://b.example/p.html", 1000, b'<a href="http://a.example/">a</a><a href="https://elsewhere.example/">'),
    ]
)


def test_the_clock_runs_stops_and_is_set():
    real = [0.0]
    clock = Clock(100.0, 10.0, lambda: real[0])
    real[0] = 2.0
    assert clock.now() == 120.0
    clock.pause()
    real[0] = 50.0
    assert (clock.now(), clock.speed) == (120.0, 0.0)
    clock.advance(30.0)
    assert clock.now() == 150.0
    clock.run(2.0)
    real[0] = 51.0
    assert clock.now() == 152.0
    clock.set(10.0)
    assert (clock.now(), clock.speed) == (10.0, 2.0)
    clock.set(-5.0)
    assert clock.now() == 0.0
    clock.set(1e15)
    assert clock.now() < 1e12


def test_every_page_is_as_in_the_archive_at_every_time():
    archive = Archive.of(
        pa.Table.from_batches(
            generate(SyntheticWorld(sites=3, pages=25, days=20, removals=0.02, births=0.02, size_max=6000))
        )
    )
    with asking(archive) as asker:
        served = {site: asker.server.url_of(f"https://{site}/").rstrip("/").encode() for site in archive.sites}
        for share in (0.0, 0.3, 0.6, 1.0):
            t = archive.start + share * (archive.end - archive.start)
            asker.clock.set(t)
            rows = archive.rows_at(t)
            for page, url in enumerate(archive.urls):
                got = asker.page(url)
                row = int(rows[page])
                if row < 0 or archive.removed[row]:
                    assert got.status == 404
                    continue
                wanted = archive.html(row)
                for site, base in served.items():
                    wanted = wanted.replace(b"https://" + site.encode(), base)
                assert (got.status, got.body) == (200, wanted)
                assert got.headers["Last-Modified"] == formatdate(archive.times[row], usegmt=True)
                assert got.headers["Date"] == formatdate(int(t), usegmt=True)
                assert got.headers["Content-Type"] == "text/html; charset=utf-8"


def test_conditional_requests():
    with asking(ONE) as asker:
        first = asker.page(f"{A}/index.html")
        tag, date = first.headers["ETag"], first.headers["Last-Modified"]
        for headers in (
            {"If_None_Match": tag},
            {"If_None_Match": f'"other", W/{tag}'},
            {"If_None_Match": "*"},
            {"If_Modified_Since": date},
            {"If_None_Match": tag, "If_Modified_Since": formatdate(0, usegmt=True)},
        ):
            got = asker.page(f"{A}/index.html", **headers)
            assert (got.status, got.body, got.headers["ETag"]) == (304, b"", tag)
        for headers in (
            {"If_None_Match": '"other"', "If_Modified_Since": date},
            {"If_Modified_Since": formatdate(999, usegmt=True)},
            {"If_Modified_Since": "yesterday"},
        ):
            assert asker.page(f"{A}/index.html", **headers).status == 200
        asker.clock.set(2000)
        changed = asker.page(f"{A}/index.html", If_None_Match=tag, If_Modified_Since=date)
        assert (changed.status, changed.body) == (200, b"<title>front</title>second")
        assert changed.headers["ETag"] != tag


def test_head_equals_get_without_the_body():
    with asking(ONE) as asker:
        url = asker.server.url_of(f"{A}/index.html")
        head, get = asker.get(url, "HEAD"), asker.get(url)
        assert (head.status, head.body) == (200, b"")
        assert head.headers.items() == get.headers.items()
        assert int(head.headers["Content-Length"]) == len(get.body)
        assert asker.get(url, "DELETE").status == 405


def test_before_birth_and_after_removal():
    with asking(ONE) as asker:
        for t, status in ((1499.9, 404), (1500, 200), (2499, 200), (2500, 404)):
            asker.clock.set(t)
            assert asker.page(f"{A}/x.html").status == status


def test_one_site_is_served_at_the_address_that_was_used():
    with asking(ONE) as asker:
        for host in (f"127.0.0.1:{asker.server.port}", f"localhost:{asker.server.port}"):
            got = asker.get(f"http://{host}/index.html")
            assert got.body == f'<title>A &amp; B</title><a href="http://{host}/x.html">x</a>'.encode()
            assert f"Sitemap: http://{host}/sitemap.xml" in asker.get(f"http://{host}/robots.txt").body.decode()
        assert asker.get("http://nobody.example.localhost/").status == 404


def test_several_sites_are_listed_and_their_links_rewritten():
    with asking(TWO) as asker:
        port = asker.server.port
        index = asker.get(f"http://127.0.0.1:{port}/")
        assert f'<a href="http://b.example.localhost:{port}/">b.example</a>'.encode() in index.body
        assert asker.get(f"http://127.0.0.1:{port}/p.html").status == 404
        assert asker.get(f"http://127.0.0.1:{port}/robots.txt").status == 200
        b = f"http://b.example.localhost:{port}"
        assert (
            asker.page(f"{A}/").body
            == f'<a href="{b}/p.html">b</a> <a href="{b}/">b</a> https://b.example.org/'.encode()
        )
        got = asker.page("https://b.example/p.html").body.decode()
        assert got == f'<a href="http://a.example.localhost:{port}/">a</a><a href="https://elsewhere.example/">'
        with pytest.raises(UsageError):
            asker.server.url_of("https://nobody.example/")


def test_other_names_of_a_page():
    with asking(ONE) as asker:
        base = asker.server.url_of(f"{A}/").rstrip("/")
        got = asker.get(f"{base}/")
        assert got.body.startswith(b"<title>A &amp; B")
        assert got.headers["Link"] == f'<{base}/index.html>; rel="canonical"'
        assert asker.get(f"{base}/dir/").body == b"in the folder"
        moved = asker.get(f"{base}/dir")
        assert (moved.status, moved.headers["Location"]) == (301, f"{base}/dir/")
        assert asker.page(f"{A}/Terms of #1.html").body == b"odd name"
        assert asker.get(f"{base}/Terms%20of%20%231.html").body == b"odd name"
        assert asker.page(f"{A}/q?b=1&a=2").body == b"with a query"
        assert asker.get(f"{base}/q").status == 404
        assert asker.get(f"{base}/%ff%fe").status == 404
        assert asker.page(f"{A}/latin.html").headers["Content-Type"] == "text/html; charset=iso-8859-1"
        asker.clock.set(1500)
        assert asker.get(f"{base}/x").body == b"x one"
    with asking(TWO) as asker:
        assert asker.page(f"{A}/dir/").body == b"the folder itself"


def locations(body: bytes) -> dict[str, str]:
    tree = ET.fromstring(body)
    return {entry.findtext(f"{MAP}loc") or "": entry.findtext(f"{MAP}lastmod") or "" for entry in tree}


def test_the_sitemap_names_what_is_alive():
    with asking(ONE) as asker:
        url = asker.server.url_of(f"{A}/sitemap.xml")
        asker.clock.set(2000)
        listed = locations(asker.get(url).body)
        assert listed[asker.server.url_of(f"{A}/index.html")] == "1970-01-01T00:33:20Z"
        assert asker.server.url_of(f"{A}/x.html") in listed
        assert asker.server.url_of(f"{A}/q?b=1&a=2") in listed
        assert all(asker.get(address).status == 200 for address in listed)
        tag = asker.get(url).headers["ETag"]
        assert asker.get(url, If_None_Match=tag).status == 304
        asker.clock.set(2500)
        gone = asker.get(url, If_None_Match=tag)
        assert gone.status == 200
        assert set(listed) - set(locations(gone.body)) == {asker.server.url_of(f"{A}/x.html")}


def test_a_large_sitemap_comes_in_parts(monkeypatch):
    monkeypatch.setattr(timelapse, "SITEMAP_URLS", 4)
    with asking(ONE) as asker:
        base = asker.server.url_of(f"{A}/").rstrip("/")
        asker.clock.set(2000)
        parts = locations(asker.get(f"{base}/sitemap.xml").body)
        assert list(parts) == [f"{base}/sitemap-1.xml", f"{base}/sitemap-2.xml"]
        listed = [address for part in parts for address in locations(asker.get(part).body)]
        assert sorted(listed) == sorted(asker.server.url_of(url) for url in ONE.urls)
        assert asker.get(f"{base}/sitemap-3.xml").status == 404


def test_the_feed_lists_the_newest_changes():
    with asking(ONE) as asker:
        asker.clock.set(2000)
        got = asker.page(f"{A}/feed.xml")
        assert got.headers["Content-Type"].startswith("application/atom+xml")
        entries = ET.fromstring(got.body).findall(f"{ATOM}entry")
        first = entries[0]
        assert first.findtext(f"{ATOM}title") == "front"
        assert first.findtext(f"{ATOM}updated") == "1970-01-01T00:33:20Z"
        assert [entry.find(f"{ATOM}link").attrib["href"] for entry in entries[:2]] == [  # type: ignore[union-attr]
            asker.server.url_of(f"{A}/index.html"),
            asker.server.url_of(f"{A}/x.html"),
        ]


def test_a_site_without_a_front_page_gets_one_that_links_all_pages(monkeypatch):
    monkeypatch.setattr(timelapse, "START_LINKS", 3)
    archive = small([(f"{A}/{name}.html", 10 + n, b"x") for n, name in enumerate("abcdefgh")])
    with asking(archive) as asker:
        asker.clock.set(16)
        base = asker.server.url_of(f"{A}/").rstrip("/")
        bodies = [asker.get(f"{base}{path}").body.decode() for path in ("/", "/-/pages/2", "/-/pages/3")]
        assert all(f'href="/-/pages/{part}"' in bodies[0] for part in (2, 3))
        found = {url for url in archive.urls if any(asker.server.url_of(url) + '"' in body for body in bodies)}
        assert found == set(archive.urls[:7])
        assert asker.get(f"{base}/-/pages/4").status == 404


def test_the_clock_over_http():
    with asking(ONE) as asker:
        url = f"http://127.0.0.1:{asker.server.port}/-/clock"
        shown = json.loads(asker.get(url).body)
        assert shown == {"now": 1000.0, "time": "1970-01-01T00:16:40+00:00", "speed": 0.0, "start": 1000, "end": 2500}
        asker.get(url, "POST", b'{"now": "1970-01-01T00:25:00", "advance": 5, "speed": 60}')
        assert (asker.clock.now(), asker.clock.speed) == (1505.0, 60.0)
        for bad in (
            b"",
            b"[]",
            b"{}",
            b'{"now": NaN}',
            b'{"now": true}',
            b'{"when": 1}',
            b'{"advance": 1e300}',
            b"{" * 9000,
        ):
            assert asker.get(url, "POST", bad).status == 400
        assert asker.get(url, "PUT").status == 405
        assert asker.clock.now() == 1505.0


def test_only_loopback_sets_the_clock():
    served = app(ONE, Clock(1000.0, 0.0, lambda: 0.0))
    request = ServedRequest("POST", "localhost", 80, "/-/clock", "", {})
    assert served._control(request, b'{"now": 5}', allowed=False).status == 403
    assert served.clock.now() == 1000.0


def test_wrong_dates_and_missing_validators():
    with asking(ONE, ServerOptions(lying_lastmod=True)) as asker:
        asker.clock.set(1700)
        got = asker.page(f"{A}/index.html", If_Modified_Since=formatdate(1700, usegmt=True))
        assert (got.status, got.headers["ETag"]) == (200, None)
        assert got.headers["Last-Modified"] == formatdate(1700, usegmt=True)
    with asking(ONE, ServerOptions(no_validators=True)) as asker:
        got = asker.page(f"{A}/index.html", If_None_Match="*")
        assert (got.status, got.headers["ETag"], got.headers["Last-Modified"]) == (200, None, None)


def test_cached_bodies_stay_within_the_limit():
    served = app(ONE, Clock(1000.0, 0.0, lambda: 0.0))
    bodies = Bodies(ONE, served.addresses, limit=40)
    host = served.addresses.host("localhost:80", 80)
    assert host is not None
    for row in (0, 1, 2, 4, 0, 1):
        assert bodies.of(row, host, 80).body
        assert sum(len(made.body) for made in bodies._cache.values()) <= 40 or len(bodies._cache) == 1


def test_libcurl_resolves_every_site():
    with asking(TWO) as asker:
        body = io.BytesIO()
        curl = pycurl.Curl()
        curl.setopt(pycurl.URL, asker.server.url_of("http://b.example/p.html"))
        curl.setopt(pycurl.WRITEFUNCTION, body.write)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.perform()
        assert curl.getinfo(pycurl.RESPONSE_CODE) == 200
        curl.close()
        assert b"elsewhere" in body.getvalue()


def test_a_port_in_use_is_reported():
    with asking(ONE) as asker, pytest.raises(UsageError, match="cannot listen"):
        TimeLapseServer(app(ONE, asker.clock), asker.server.port)


def test_the_command_serves_until_interrupted(tmp_path):
    write(SyntheticWorld(sites=1, pages=12, days=1), tmp_path / "w.parquet")
    code = "from recrawl.cli.lab import app_with; app_with()()"
    arguments = [
        "serve",
        str(tmp_path / "w.parquet"),
        "--port",
        "0",
        "--at",
        "2024-01-01T12:00",
        "--speed",
        "0",
        "--json",
    ]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ
    ) as process:
        assert process.stdout is not None
        said = b""
        while not said.rstrip().endswith(b"\n}"):
            line = process.stdout.readline()
            assert line, "the server said nothing"
            said += line
        address = json.loads(said)["address"]
        connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["Date"] == "Mon, 01 Jan 2024 12:00:00 GMT"
        answer.read()
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0


@pytest.mark.skipif(not DATA.is_dir(), reason="shared/data is not beside the checkout")
@pytest.mark.parametrize("name", ["sites/ACL-Group__ACL-Group.github.io", "daily/news-fronts-2024"])
def test_a_real_history_is_served(name):
    archive = Archive.open([DATA / f"{name}.parquet"])
    with asking(archive) as asker:
        for share in (0.0, 0.5, 1.0):
            t = archive.start + share * (archive.end - archive.start)
            asker.clock.set(t)
            rows = archive.rows_at(t)
            for page in range(0, len(archive), max(1, len(archive) // 40)):
                row = int(rows[page])
                got = asker.page(archive.urls[page])
                if row < 0 or archive.removed[row]:
                    assert got.status == 404
                else:
                    assert got.status == 200
                    assert int(got.headers["Content-Length"]) == len(got.body) > 0
        site = archive.urls[0].split("/")[2]
        live = [archive.urls[p] for p in archive.pages_at(archive.end) if archive.urls[p].split("/")[2] == site]
        listed = locations(asker.page(f"https://{site}/sitemap.xml").body)
        assert sorted(listed) == sorted(asker.server.url_of(url) for url in live)
