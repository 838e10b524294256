"""WARC records: any visit can be written, read back, and read by others."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from recrawl.record import warc

_URL = "https://a.example/x?y=1"
_AT = 1_700_000_000.25
_REQUEST = b"GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\n\r\n"

names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,20}", fullmatch=True)
# What a header may hold once the transport has split lines: no control characters, no space at either end.
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"]), max_size=40).map(
    lambda text: text.strip("\xa0 ")
)
headers = st.lists(st.tuples(names, values), max_size=8).map(tuple)
times = st.floats(0, 4e9)


def sha1(body: bytes) -> bytes:
    return hashlib.sha1(body).digest()


def response(body: bytes, head: warc.Headers = (), *, url: str = _URL, at: float = _AT, status: int = 200) -> bytes:
    return warc.response(url, at, "192.0.2.1", status, head, body, sha1(body), _REQUEST)


def original(body: bytes, at: float = _AT, url: str = _URL) -> warc.Original:
    return warc.Original(url, at, sha1(body))


def records(blob: bytes) -> list[Any]:
    """As warcio reads them, digests checked; the content is put beside each."""
    found = []
    for record in ArchiveIterator(io.BytesIO(blob), check_digests="raise"):
        record.body = record.content_stream().read()
        found.append(record)
    return found


def field(record: Any, name: str) -> str | None:
    value: str | None = record.rec_headers.get_header(name)
    return value


# -- responses -------------------------------------------------------------------------------------------


@given(headers, st.binary(max_size=300), st.sampled_from([200, 203, 404, 999]), times)
@example((("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")), b"plain", 200, 0.0)
@example((("Content-Length", "7"), ("content-length", "8")), b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, 0.0)
def test_a_response_is_read_back_as_it_was(head: warc.Headers, body: bytes, status: int, at: float) -> None:
    blob = response(body, head, status=status, at=at)
    got_status, got_head, got_body = warc.read_body(blob)
    assert (got_status, got_body) == (status, body)
    renamed = {"content-length", "content-encoding", "transfer-encoding"}
    kept = [(name, value) for name, value in head if name.lower() not in renamed]
    stale = [(f"X-Archive-Orig-{name}", value) for name, value in head if name.lower() in renamed]
    assert [pair for pair in got_head if pair in kept] == kept
    assert set(stale) <= set(got_head)
    assert len(got_head) == len(head) + 1
    assert got_head[-1] == ("Content-Length", str(len(body)))


@given(headers, st.binary(max_size=300))
@example((), b"")
def test_others_read_the_same_body(head: warc.Headers, body: bytes) -> None:
    blob = response(body, head)
    target, asked = records(blob)
    assert (target.rec_type, target.body) == ("response", body)
    assert (asked.rec_type, asked.rec_headers.get_header("WARC-Target-URI")) == ("request", _URL)
    assert field(asked, "WARC-Concurrent-To") == field(target, "WARC-Record-ID")
    assert field(target, "WARC-Payload-Digest") == "sha1:" + base64.b32encode(sha1(body)).decode()
    assert [record.record_id for record in FastIterator(io.BytesIO(blob))] == [
        field(target, "WARC-Record-ID"),
        field(asked, "WARC-Record-ID"),
    ]


@given(headers, st.binary(max_size=200), times)
def test_the_same_visit_gives_the_same_bytes(head: warc.Headers, body: bytes, at: float) -> None:
    assert response(body, head, at=at) == response(body, head, at=at)


def test_ids_tell_visits_apart() -> None:
    ids = {
        warc.record_id(url, at, kind)
        for url in (_URL, _URL + "2")
        for at in (1.0, 1.000001, 2.0)
        for kind in ("response", "request", "revisit")
    }
    assert len(ids) == 18


def test_a_body_that_pretends_to_be_a_record_stays_a_body() -> None:
    body = response(b"inner")
    assert warc.read_body(response(body))[2] == body
    assert len(records(response(body))) == 2


def test_what_cannot_be_written_in_latin_1_does_not_break_the_record() -> None:
    blob = response(b"x", (("X-Name", "\u20ac"), ("Content-Type", "text/html")))
    assert dict(warc.read_body(blob)[1])["Content-Type"] == "text/html"


@given(headers, st.binary(max_size=300), times)
@example((), b"x" * 5000, 0.0)
def test_records_are_what_fastwarc_writes(head: warc.Headers, body: bytes, at: float) -> None:
    blob = response(body, head, at=at) + warc.revisit(_URL, at, "::1", original(body, at), 200, head)
    again = io.BytesIO()
    for record in FastIterator(io.BytesIO(blob), parse_http=False):
        record.write(again)
    assert again.getvalue() == gzip.decompress(blob)


@given(st.binary(min_size=20, max_size=20))
def test_digests_are_in_base_32(digest: bytes) -> None:
    (record,) = records(warc.revisit(_URL, _AT, "", warc.Original(_URL, _AT, digest), 304, ()))
    assert field(record, "WARC-Payload-Digest") == "sha1:" + base64.b32encode(digest).decode()


def test_the_page_after_its_scripts_is_shown_instead_of_the_response() -> None:
    blob = response(b"before", (("Content-Type", "text/plain"), ("Server", "x")))
    assert warc.read_shown(blob) == warc.read_body(blob)
    status, head, body = warc.read_shown(blob + warc.conversion(_URL, _AT, b"after"))
    assert (status, body, dict(head)["Content-Type"], dict(head)["Server"]) == (200, b"after", warc.RENDERED, "x")


def _by_fastwarc(blob: bytes) -> tuple[int, warc.Headers, bytes]:
    for record in FastIterator(io.BytesIO(blob), record_types=WarcRecordType.response):
        head = tuple((str(name), str(value)) for name, value in record.http_headers.astuples())
        return int(record.http_headers.status_code or 0), head, record.reader.read()
    raise ValueError


def _outcome(read: Callable[[bytes], Any], blob: bytes) -> Any:
    try:
        return read(blob)
    except Exception:  # noqa: BLE001
        return "damaged"


@pytest.mark.parametrize("packed", [True, False])
def test_records_are_read_as_fastwarc_reads_them_even_if_damaged(*, packed: bool) -> None:
    blob = response(bytes(range(256)) * 20) + response(b"second")
    blob = blob if packed else gzip.decompress(blob)
    cut = [blob[:length] for length in range(0, len(blob), 37)]
    for damaged in [*cut, blob[:90] + b"??" + blob[92:], blob + b"rest", blob]:
        assert _outcome(warc.read_body, damaged) == _outcome(_by_fastwarc, damaged)


def test_no_response_is_an_error() -> None:
    with pytest.raises(ValueError, match="no response"):
        warc.read_body(warc.warcinfo("a.warc.gz", 0.0, ()))


def test_dates_are_precise_to_the_microsecond() -> None:
    assert warc.warc_date(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"


# -- revisits --------------------------------------------------------------------------------------------


def test_a_revisit_with_the_same_bytes_names_its_original() -> None:
    first = records(response(b"body"))[0]
    head = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    (again,) = records(warc.revisit(_URL, _AT + 60, "192.0.2.1", original(b"body"), 200, head))
    assert again.rec_type == "revisit"
    assert field(again, "WARC-Profile") == warc.IDENTICAL
    assert field(again, "WARC-Refers-To") == field(first, "WARC-Record-ID")
    assert field(again, "WARC-Refers-To-Date") == field(first, "WARC-Date")
    assert field(again, "WARC-Refers-To-Target-URI") == _URL
    assert field(again, "WARC-Payload-Digest") == field(first, "WARC-Payload-Digest")
    assert again.http_headers.get_header("Content-Type") == "text/html"
    assert again.http_headers.get_header("Content-Encoding") is None


def test_a_304_has_its_headers_where_a_replay_does_not_take_them_for_those_of_the_page() -> None:
    head = (("ETag", '"one"'), ("Date", "Tue, 17 Nov 2026 06:00:00 GMT"), ("X-Odd", "a\rb"))
    (again,) = records(warc.revisit(_URL, _AT + 60, "", original(b"body"), 304, head))
    assert field(again, "WARC-Profile") == warc.NOT_MODIFIED
    assert field(again, "WARC-Refers-To-Date") == warc.warc_date(_AT)
    assert (field(again, "Content-Length"), again.body) == ("0", b"")
    assert field(again, "X-HTTP-304-ETag") == '"one"'
    assert field(again, "X-HTTP-304-Date") == "Tue, 17 Nov 2026 06:00:00 GMT"
    assert field(again, "X-HTTP-304-X-Odd") is None, "it would break the record"


def test_a_revisit_after_a_redirect_names_where_the_original_came_from() -> None:
    (again,) = records(warc.revisit(_URL, _AT + 60, "", original(b"body", url=_URL + "2"), 200, ()))
    assert field(again, "WARC-Target-URI") == _URL
    assert field(again, "WARC-Refers-To-Target-URI") == _URL + "2"
    assert field(again, "WARC-Refers-To") == f"<urn:uuid:{warc.record_id(_URL + '2', _AT, 'response')}>"


# -- whole files -------------------------------------------------------------------------------------------


def test_warcio_check_has_no_complaint(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.warc.gz"
    parts = [
        warc.warcinfo(path.name, _AT, ()),
        response(b"<p>one", (("Content-Type", "text/html"),)),
        warc.revisit(_URL, _AT + 1, "192.0.2.1", original(b"<p>one"), 200, (("Content-Type", "text/html"),)),
        warc.revisit(_URL, _AT + 2, "192.0.2.1", original(b"<p>one"), 304, (("ETag", '"one"'),)),
        response(b"", at=_AT + 3),
    ]
    path.write_bytes(b"".join(parts))
    checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=True))
    checker.process_all()
    assert checker.exit_value == 0
    said = capsys.readouterr().out
    assert "digest pass" in said
    assert "fail" not in said


def test_every_block_has_a_digest() -> None:
    blob = (
        warc.warcinfo("a.warc.gz", _AT, ()) + response(b"one") + warc.revisit(_URL, _AT, "", original(b"one"), 304, ())
    )
    found = 0
    for record in ArchiveIterator(io.BytesIO(blob), no_record_parse=True):
        block = record.raw_stream.read()
        assert field(record, "WARC-Block-Digest") == "sha1:" + base64.b32encode(sha1(block)).decode()
        found += 1
    assert found == 4


def test_an_imported_version_has_no_request() -> None:
    (only,) = records(warc.response(_URL, _AT, "", 200, (), b"body", sha1(b"body"), b""))
    assert only.rec_type == "response"


def test_warcinfo_says_how_the_file_was_made() -> None:
    info = (("software", "recrawl/1"), ("operator", "https://example.org/us"), ("robots", "classic (RFC 9309)"))
    (record,) = records(warc.warcinfo("a.warc.gz", _AT, info))
    said = dict(line.split(": ", 1) for line in record.body.decode().splitlines())
    assert said.items() >= dict(info).items()
    assert said["format"] == "WARC File Format 1.1"
    assert said["conformsTo"].endswith("/warc-1.1/")


def test_every_record_is_a_gzip_member_of_its_own() -> None:
    blob = warc.warcinfo("a.warc.gz", _AT, ()) + response(b"one")
    start = len(warc.warcinfo("a.warc.gz", _AT, ()))
    assert warc.read_body(blob[start:])[2] == b"one"
    assert [record.stream_pos for record in FastIterator(io.BytesIO(blob))][:2] == [0, start]
