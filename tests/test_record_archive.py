"""The folder of WARC files: rolling, durability, mending."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import RepositoryError
from recrawl.record import warc
from recrawl.record.archive import Place, WarcArchive

_AT = 1_700_000_000.0


def blob(number: int, size: int = 100) -> bytes:
    """A record; not packable, so that its size is what it seems."""
    body = np.random.default_rng([number, size]).bytes(size)
    url = f"https://a.example/{number}"
    return warc.revisit(url, _AT, "", warc.Original(url, _AT, bytes(20)), 200, (("X-Pad", body.hex()),))


def opened(folder: Path, stored: dict[int, tuple[str, int]], *, roll_bytes: int = 1 << 30) -> WarcArchive:
    """An archive as a repository opens it: from what the store knows."""
    folder.mkdir(exist_ok=True)
    archive = WarcArchive(folder, {n: name for n, (name, _) in stored.items()}, roll_bytes=roll_bytes, info=())
    archive.mend({n: length for n, (_, length) in stored.items()})
    return archive


def committed(archive: WarcArchive, stored: dict[int, tuple[str, int]]) -> None:
    """What a commit of the store notes."""
    stored.update({number: (name, length) for number, name, length in archive.sync()})


def files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_records_are_read_back_from_their_places(tmp_path: Path) -> None:
    archive = opened(tmp_path, {})
    blobs = [blob(n) for n in range(5)]
    places = [archive.append(one, _AT) for one in blobs]
    archive.sync()
    assert [archive.read(place) for place in places] == blobs
    archive.close()


def test_files_are_named_by_time_and_number_and_begin_with_their_name(tmp_path: Path) -> None:
    archive = opened(tmp_path, {})
    place = archive.append(blob(1), _AT)
    archive.sync()
    archive.close()
    (name,) = files(tmp_path)
    assert name == "recrawl-20231114221320-00000.warc.gz"
    assert (tmp_path / name).read_bytes()[: place.start] == warc.warcinfo(name, _AT, ())


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=30), roll=st.integers(500, 3000))
def test_a_new_file_is_begun_when_one_is_full(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], roll: int
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    stored: dict[int, tuple[str, int]] = {}
    archive = opened(folder, stored, roll_bytes=roll)
    blobs = [blob(n, size) for n, size in enumerate(sizes)]
    places = []
    for number, one in enumerate(blobs):
        places.append(archive.append(one, _AT))
        if number % 3 == 0:
            committed(archive, stored)
    committed(archive, stored)
    archive.close()
    assert files(folder) == dict(stored.values())
    assert sorted(stored) == list(range(len(stored)))
    largest = max(map(len, blobs))
    for number, (_, length) in stored.items():
        assert length < roll + largest, "a file grew on although it was full"
        assert length >= roll or number == max(stored), "a file was left although it was not full"
    assert [archive.read(place) for place in places] == blobs


def test_it_goes_on_with_the_newest_file(tmp_path: Path) -> None:
    stored: dict[int, tuple[str, int]] = {}
    first = opened(tmp_path, stored)
    kept = first.append(blob(1), _AT)
    committed(first, stored)
    first.close()
    second = opened(tmp_path, stored)
    more = second.append(blob(2), _AT + 99)
    committed(second, stored)
    second.close()
    assert more.file == kept.file
    assert more.start == kept.start + kept.length
    assert files(tmp_path) == dict(stored.values())


# -- after a crash -----------------------------------------------------------------------------------------


def test_what_was_never_committed_is_cut_off(tmp_path: Path) -> None:
    stored: dict[int, tuple[str, int]] = {}
    archive = opened(tmp_path, stored)
    kept = blob(1)
    place = archive.append(kept, _AT)
    committed(archive, stored)
    archive.append(blob(2), _AT)
    archive.sync()  # on disk, but the store never heard of it
    archive.close()
    again = opened(tmp_path, stored)
    assert files(tmp_path) == dict(stored.values())
    assert again.read(place) == kept
    assert again.append(blob(3), _AT) == Place(0, place.start + place.length, len(blob(3)))
    again.close()


def test_files_that_no_commit_spoke_of_are_removed(tmp_path: Path) -> None:
    stored: dict[int, tuple[str, int]] = {}
    archive = opened(tmp_path, stored, roll_bytes=300)
    archive.append(blob(1, 300), _AT)
    committed(archive, stored)
    for number in range(5):
        archive.append(blob(number, 300), _AT + number)
        archive.sync()
    archive.close()
    assert len(files(tmp_path)) > len(stored)
    opened(tmp_path, stored)
    assert files(tmp_path) == dict(stored.values())


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.warc.gz").write_bytes(b"mine")
    (tmp_path / "recrawl-notes.txt").write_bytes(b"mine too")
    opened(tmp_path, {})
    assert set(files(tmp_path)) == {"mine.warc.gz", "recrawl-notes.txt"}


@pytest.mark.parametrize("left", [0, 10, None])
def test_a_file_that_lost_its_end_is_not_touched(tmp_path: Path, left: int | None) -> None:
    stored: dict[int, tuple[str, int]] = {}
    archive = opened(tmp_path, stored)
    archive.append(blob(1), _AT)
    committed(archive, stored)
    archive.close()
    path = tmp_path / stored[0][0]
    if left is None:
        path.unlink()
    else:
        os.truncate(path, left)
    with pytest.raises(RepositoryError, match=r"shorter than the database says.*restore it from a copy"):
        opened(tmp_path, stored)
    assert not path.exists() or path.stat().st_size == left
