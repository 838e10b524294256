"""Archives in the format `.warc.zst`: written, read, checked, exported, resumed after a crash, as those in gzip."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.extras import zstd
from recrawl.record import packing, warc
from recrawl.record.archive import WarcArchive
from recrawl.record.packing import ZstdPacker, dictionary, read_records
from tests.complaints import complaint
from tests.world import Repo, Site, page

_AT = 1_700_000_000.0
_WORDS = ("home", "news", "wiki", "about", "contact", "search", "imprint")
_FRAME = f"<nav>{''.join(f'<a href=/{word}>{word}</a>' for word in _WORDS)}</nav>"


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make dictionaries from few records."""
    monkeypatch.setattr(packing, "_ENOUGH", 20_000)
    monkeypatch.setattr(packing, "_DICTIONARY_BYTES", 2048)


def _response(number: int, words: int = 40) -> bytes:
    body = f"<html><body>{_FRAME}<p>{' '.join(str(number * n) for n in range(words))}</body></html>".encode()
    url = f"https://a.example/{number}"
    return warc.response(
        url, _AT + number, "", 200, (("Content-Type", "text/html"),), body, bytes(20), b"GET / \r\n\r\n"
    )


def _opened(folder: Path, stored: dict[int, tuple[str, int]], archive_format: str = "warc.zst") -> WarcArchive:
    names = {number: name for number, (name, _) in stored.items()}
    archive = WarcArchive(folder, names, roll_bytes=1 << 30, info=(), archive_format=archive_format)
    archive.mend({number: length for number, (_, length) in stored.items()})
    return archive


def _urls(path: Path) -> list[str]:
    """The pages that another reader finds in a file."""
    with path.open("rb") as file:
        found = [record.headers.get("WARC-Target-URI") or "" for record in ArchiveIterator(file)]
    return list(dict.fromkeys(filter(None, found)))


@pytest.mark.usefixtures("early")
def test_a_dictionary_is_at_the_head_of_the_second_file_and_makes_records_smaller(tmp_path: Path) -> None:
    archive = _opened(tmp_path, {})
    places = [archive.append(_response(number), _AT) for number in range(120)]
    archive.sync()
    assert [read for place in places for read in [warc.read_body(archive.read(place))[0]]] == [200] * 120
    first, second = sorted(tmp_path.iterdir())
    assert dictionary(first) == (b"", 0)
    held, begin = dictionary(second)
    assert held
    assert struct.unpack("<I", second.read_bytes()[:4]) == (0x184D2A5D,)
    assert begin < min(place.start for place in places if place.file == 1)
    assert places[-1].length < 0.7 * places[0].length
    assert _urls(first) + _urls(second) == [f"https://a.example/{number}" for number in range(120)]


@pytest.mark.usefixtures("early")
def test_an_archive_goes_on_with_its_dictionary_and_loses_what_was_not_committed(tmp_path: Path) -> None:
    stored: dict[int, tuple[str, int]] = {}
    archive = _opened(tmp_path, stored)
    kept = [archive.append(_response(number), _AT) for number in range(120)]
    stored.update({number: (name, length) for number, name, length in archive.sync()})
    archive.append(_response(900), _AT)
    archive.sync()  # and then the process is killed
    archive.close()
    archive = _opened(tmp_path, stored)
    more = archive.append(_response(901), _AT)
    archive.sync()
    assert len(list(tmp_path.iterdir())) == 2, "it goes on with the last file"
    for place, number in [*zip(kept, range(120), strict=True), (more, 901)]:
        assert f"/{number}\r\n".encode() in archive.read(place)
    assert not any(b"/900" in archive.read(place) for place in (*kept, more))


def test_files_of_both_formats_are_read_side_by_side(tmp_path: Path) -> None:
    stored: dict[int, tuple[str, int]] = {}
    places = []
    for number, archive_format in enumerate(["warc.gz", "warc.zst", "warc.gz"]):
        archive = _opened(tmp_path, stored, archive_format)
        places.append(archive.append(_response(number), _AT))
        stored.update({file: (name, length) for file, name, length in archive.sync()})
        archive.close()
    assert [name.partition(".")[2] for name, _ in stored.values()] == ["warc.gz", "warc.zst", "warc.gz"]
    assert [f"/{number}\r\n".encode() in _plain(archive.read(place)) for number, place in enumerate(places)] == [
        True
    ] * 3


def _plain(blob: bytes) -> bytes:
    return b"".join(packing._members(blob)) if blob.startswith(b"\x1f\x8b") else blob


@settings(max_examples=25)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.booleans())
def test_frames_hold_what_the_gzip_members_hold(records: list[bytes], trained: bool) -> None:
    packer = ZstdPacker()
    held = zstd.train_dict([b"%d of a page with words " % n * 9 for n in range(200)], 1024).dict_content
    packer.begin(held if trained else b"")
    frames = packer.pack(b"".join(map(warc.gzip_member, records)))
    found = zstd.decompress(frames, zstd_dict=zstd.ZstdDict(held) if trained else None)
    assert found == b"".join(records)


@pytest.fixture
def packed(repo: Repo, site: Callable[..., Site]) -> tuple[Repo, Site]:
    """A crawled site whose archive is in the format."""
    paths = [f"/{number}.html" for number in range(12)]
    server = site({"/": page("Front", *paths), **{path: page(f"All about {path}") for path in paths}})
    repo.run("config", "archive_format", "warc.zst")
    repo.crawl(server.url("/"))
    return repo, server


def test_a_repository_is_crawled_refreshed_shown_and_checked(packed: tuple[Repo, Site]) -> None:
    repo, server = packed
    (file,) = (repo.folder / "archive").iterdir()
    assert file.name.endswith(".warc.zst")
    server.pages["/3.html"] = page("Nothing is as it was")
    repo.later(days=1)
    assert repo.cycle(100, "--policy", "round-robin")["changed"] == 1, "compared with the stored version"
    assert "as it was" in repo.run("show", server.url("/3.html")).out
    assert "All about" in repo.run("diff", server.url("/3.html")).out
    assert repo.run("check").code == 0
    assert server.url("/3.html") in _urls(file)


def test_a_damaged_frame_is_found_and_the_others_are_sound(packed: tuple[Repo, Site]) -> None:
    repo, server = packed
    (file,) = (repo.folder / "archive").iterdir()
    ((start, length),) = repo.sql("SELECT start, length FROM versions WHERE page = 5")
    data = bytearray(file.read_bytes())
    data[start + length // 2] ^= 0xFF
    file.write_bytes(data)
    found = repo.run("check", code=None)
    assert found.code == 1
    assert f"the record at byte {start:,}" in found.out
    assert found.out.count("the record at byte") == 1
    del server


def test_exports_are_gzip_whatever_the_archive_is(packed: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, server = packed
    out, index = tmp_path / "all.warc.gz", tmp_path / "all.wacz"
    repo.run("export", out)
    assert set(_urls(out)) >= {server.url(f"/{number}.html") for number in range(12)}
    with out.open("rb") as file:
        bodies = [record.reader.read() for record in ArchiveIterator(io.BytesIO(file.read()), parse_http=True)]
    assert any(b"All about /7.html" in body for body in bodies)
    repo.run("export", index)
    assert index.stat().st_size > 0
    repo.run("export", lines := tmp_path / "all.cdxj")
    (line,) = [line for line in lines.read_text().splitlines() if "/7.html" in line and '"200"' in line]
    place = json.loads(line.split(" ", 2)[2])
    record = read_records(repo.folder / "archive" / place["filename"], int(place["offset"]), int(place["length"]))
    assert b"All about /7.html" in record


def test_an_unknown_format_is_refused(repo: Repo) -> None:
    complaint(repo.run("config", "archive_format", "warc.xz", code=None))
