"""Attacks on the way in: names that change their address, hostile files to import, text that would steer a terminal."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pycurl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recrawl
from recrawl.cli.terminal import output
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive, UsageError
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.http import Client, Transfer, fetch_one
from recrawl.lab.formats import capture_listings, warc_files
from recrawl.model import Failure
from recrawl.repository.outgoing import NotSent, post
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Settings
from tests.serving import Asker
from tests.world import Reply, Repo, Site, page

LIMITS = FetchLimits(max_bytes=10_000, connect_seconds=2, total_seconds=3, stall_seconds=2)
AGENT = "recrawl/test"


# -- a name that answers with another address -----------------------------------------------------------------


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, str]]:
    """A server on the loopback interface, and a public name for it, as a rebinding name server answers."""
    with Site({"/": page("inside"), "/away": Reply(b"", 302, {"Location": "/"})}) as site:
        port = site.url().rpartition(":")[2].strip("/")
        made = Transfer.__init__

        def resolved(self: Transfer, *arguments: Any) -> None:
            made(self, *arguments)
            self.handle.setopt(pycurl.RESOLVE, [f"rebind.example:{port}:127.0.0.1,::1"])

        monkeypatch.setattr(Transfer, "__init__", resolved)
        yield site, f"http://rebind.example:{port}/"


def test_a_name_that_leads_inside_at_connect_time_is_refused(rebound: tuple[Site, str]) -> None:
    site, url = rebound
    answer = fetch_one(Request(url), agent=AGENT, limits=LIMITS)
    assert answer.failure is Failure.ADDRESS
    assert fetch_one(Request(url, private=True), agent=AGENT, limits=LIMITS).status == 200, "the name works"
    assert len(site.asked()) == 1


def test_webhooks_and_hubs_do_not_follow_a_name_inside(rebound: tuple[Site, str]) -> None:
    site, url = rebound
    with pytest.raises(NotSent, match="loopback"):
        post(url, b"{}", {}, Settings({}))
    assert site.asked() == []


def test_a_connection_of_a_permitted_request_is_not_lent_to_another(rebound: tuple[Site, str]) -> None:
    """The address is checked when a connection opens; a kept one must not serve requests without permission."""
    site, url = rebound
    client = Client(agent=AGENT, limits=LIMITS, room=2)
    try:
        statuses = []
        for ticket, allowed in enumerate((True, False)):
            client.start(ticket, Request(url, private=allowed))
            answers: list[object] = []
            while not answers:
                answers = [answer for _, answer in client.wait(1.0)]
            statuses += [(answer.status, answer.failure) for answer in answers]  # type: ignore[attr-defined]
    finally:
        client.close()
    assert statuses == [(200, None), (0, Failure.ADDRESS)]
    assert len(site.asked()) == 1


# -- header injection ---------------------------------------------------------------------------------------


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=30))
def test_no_url_carries_a_line_break_or_a_space(text: str) -> None:
    url = canonical(f"http://a.example/{text}\r\nX-Evil: 1\r\n\r\nGET /x")
    assert url is None or not set("\r\n\t \x00") & set(url)


@pytest.mark.parametrize("path", ["\r\nX-Evil: 1", " HTTP/1.1\r\nX-Evil: 1", "\n"], ids=repr)
def test_a_request_for_an_uncleaned_url_carries_no_second_header(path: str) -> None:
    with Site({"/": page("a page")}) as site:
        answer = fetch_one(Request(site.url() + path, private=True), agent=AGENT, limits=LIMITS)
        assert answer.failure is Failure.BAD_URL
        assert site.log == []


# -- hostile files to import ---------------------------------------------------------------------------------


BODY = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>x"


def record(length: str = str(len(BODY)), body: bytes = BODY) -> bytes:
    """A WARC record, with a content length of the attacker's choice."""
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1b6e9a6a-0000-4000-8000-000000000000>\r\n"
        "WARC-Target-URI: http://a.example/\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n"
    )
    return head.encode() + body + b"\r\n\r\n"


LENGTHS = ["-1", "-9223372036854775808", "9223372036854775807", "18446744073709551616", "1e9", "0x10", "", "9" * 5000]


@pytest.mark.parametrize("length", LENGTHS, ids=lambda length: length[:22])
def test_a_warc_record_with_a_false_length_costs_only_itself(tmp_path: Path, length: str) -> None:
    (tmp_path / "a.warc").write_bytes(record() + record(length))
    taken = warc_files.convert([tmp_path / "a.warc"], tmp_path / "out.parquet")
    assert taken.rows == 1


def wacz(path: Path, members: dict[str, bytes], *, links: dict[str, str] | None = None) -> Path:
    """A WACZ file with these members and symbolic links."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("datapackage.json", "{}")
        for name, content in members.items():
            package.writestr(name, content)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            package.writestr(entry, target)
    return path


def test_a_wacz_writes_no_file_and_follows_no_link(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    secret = inside / "secret.warc"
    secret.write_bytes(record())
    file = wacz(
        inside / "a.wacz",
        {"archive/a.warc": record(), "archive/../../evil.warc": record(), "/archive/evil.warc": record()},
        links={"archive/link.warc": str(secret)},
    )
    before = {*tmp_path.rglob("*")}
    with pytest.raises(BadArchive, match=r"link\.warc"):  # the link is read as the text that it is
        warc_files.convert([file], inside / "out.parquet")
    assert {*tmp_path.rglob("*")} - before <= {inside / "out.parquet"}


def test_a_bomb_in_a_wacz_takes_no_memory(tmp_path: Path) -> None:
    """A record of 64 MB of zeros in 64 KB is skipped while it inflates."""
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + bytes(64 << 20)
    file = wacz(tmp_path / "a.wacz", {"archive/a.warc": record() + record(str(len(body)), body) + record()})
    assert file.stat().st_size < 200_000
    taken = warc_files.convert([file], tmp_path / "out.parquet", max_bytes=1_000_000)
    left_out = {"too large": 1, "the same time twice": 1}
    assert taken.as_dict()["response"] == {"read": 3, "taken": 1, "left_out": left_out}


def test_a_damaged_wacz_is_read_up_to_the_damage_or_refused(tmp_path: Path) -> None:
    rng = random.Random(2)
    body = BODY + rng.randbytes(1500).hex().encode()
    whole = wacz(tmp_path / "a.wacz", {"archive/a.warc": record(str(len(body)), body) * 20}).read_bytes()
    ends: set[str] = set()
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        (tmp_path / "a.wacz").write_bytes(damaged[: rng.choice([len(whole), rng.randrange(len(whole))])])
        try:
            ends.update(warc_files.convert([tmp_path / "a.wacz"], tmp_path / "out.parquet").remarks)
        except BadArchive as error:
            ends.add(type(error).__name__)
    assert ends >= {"BadArchive", "files read only up to a damaged place"}


def test_a_listing_of_garbage_is_refused_or_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.cdxj"
    good = 'org,example)/ 20240101000000 {"url": "http://example.org/", "status": "200", "digest": "A"}'
    bad = [
        'org,example)/b 99999999999999 {"url": "http://example.org/b", "status": "200", "digest": "B"}',
        "org,example)/c 20240101000000 " + '{"a":' * 5000,
        'org,example)/d 20240101000000 {"url": ["x"], "status": {}, "digest": 5, "length": "9' + "9" * 5000 + '"}',
        'org,example)/e 20240101000000 {"url": "http://example.org/\\u0000\\ud800", "status": "200", "digest": "E"}',
        "\x00" * 100,
        "org,example)/f " + "9" * 5000 + " {}",
    ]
    file.write_text("\n".join([good, *bad]), encoding="utf-8")
    listing = capture_listings.read([file])
    assert "http://example.org/" in listing.history.urls
    assert listing.captures + listing.broken == 1 + len(bad)


# -- text that would steer a terminal ------------------------------------------------------------------------

STEERING = "\x1b[2J\x9b31m\u202e\x7f"


def test_names_in_hostile_files_do_not_steer_the_terminal(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    file = wacz(tmp_path / "a.wacz", {f"archive/{STEERING}.warc": b"garbage"})
    said = repo.run("import", "warc", str(file), code=2).err
    assert ".warc" in said
    assert not {"\x1b", "\x9b", "\u202e", "\x7f"} & set(said)


@given(st.text(max_size=20))
def test_json_keeps_its_meaning_and_steers_nothing(text: str) -> None:
    value = {"title": text + STEERING}
    shown = output.json_text(value)
    assert json.loads(shown) == value
    assert not {"\x1b", "\x9b", "\u202e", "\x7f"} & set(shown)


# -- markup in what people name ------------------------------------------------------------------------------


def test_saved_filters_show_as_text(tmp_path: Path) -> None:
    folder = Repo.create(tmp_path / "repo").folder
    with recrawl.open(folder) as opened:
        opened.save_filter("mine", path='"><script>alert(1)</script>')
        with pytest.raises(UsageError):
            opened.save_filter("<img src=x>", path="a")
        with pytest.raises(UsageError):
            opened.save_filter("other", site="javascript:alert(1)")
    with Service(folder, ServiceConfig(schedule=False)) as service:
        shown = Asker(service).get("/changes", Accept="text/html").text
    assert "mine</a>" in shown
    assert "<script>alert" not in shown
    assert 'href="javascript:' not in shown


@pytest.mark.parametrize("name", ["<b>", "a\x1b[2J", "=1+1", "a" * 65, "\u202egnp"])
def test_tags_have_no_markup_and_no_control_characters(repo: Repo, name: str) -> None:
    repo.run("tag", name, "https://a.example/", code=2)


# -- asked to stop -------------------------------------------------------------------------------------------


READS_FOR_EVER = """
import signal, sys, time
from recrawl import cli
from recrawl.lab.formats import warc_files

def read(*_):
    print("reading", flush=True)
    while True:  # a signal just before a sleep is handled after it
        time.sleep(0.05)
    yield

warc_files._read = read
sys.argv[0] = "recrawl"
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, shells have it ignored
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_import_that_is_stopped_leaves_no_files(tmp_path: Path, number: int) -> None:
    repo = Repo.create(tmp_path / "repo")
    (tmp_path / "a.warc").write_bytes(record())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = {*repo.folder.rglob("*")}
    with subprocess.Popen(
        [sys.executable, "-c", READS_FOR_EVER, "-C", str(repo.folder), "import", "warc", str(tmp_path / "a.warc")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert list(scratch.iterdir()) == []
    assert {*repo.folder.rglob("*")} == before


def test_a_pipe_is_not_imported_as_a_warc_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.warc")
    with pytest.raises(BadArchive, match="not a regular file"):
        warc_files.convert([tmp_path / "a.warc"], tmp_path / "out.parquet")
