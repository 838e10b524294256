"""Archive Parquet: what is written is what is read, in order, whatever order it came in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import BadArchive
from recrawl.lab.formats import archive as module
from recrawl.lab.formats.archive import Archive, write, write_batches

DATA = Path(__file__).parents[1].parent / "shared" / "data"

URLS = ["https://a.example/", "https://a.example/b.html", "http://b.example/x", "https://a.example/é"]
ROWS = st.lists(st.tuples(st.sampled_from(URLS), st.integers(0, 20), st.none() | st.binary(max_size=8)), min_size=1)


def table(rows) -> pa.Table:
    url, time, html = zip(*rows, strict=True)
    return pa.table({"url": list(url), "time": list(time), "html": pa.array(html, pa.binary())})


@given(ROWS)
def test_rows_in_any_order_become_histories(rows):
    wanted = {(url, time): html for url, time, html in rows}  # of equal rows the last one counts
    found = Archive.of(table(rows))
    assert found.urls == sorted({url for url, _, _ in rows}, key=str.encode)
    seen = {
        (found.urls[page], int(found.times[row])): None if found.removed[row] else found.html(row)
        for page in range(len(found))
        for row in range(found.first[page], found.first[page + 1])
    }
    assert seen == wanted
    assert all(np.all(np.diff(found.times[a:b]) > 0) for a, b in zip(found.first, found.first[1:], strict=False))
    assert (found.start, found.end) == (min(found.times), max(found.times))


@given(ROWS, st.integers(-1, 21))
def test_the_current_row_is_the_last_one_before_the_time(rows, t):
    found = Archive.of(table(rows))
    live = []
    for page, url in enumerate(found.urls):
        begun = [(time, n) for n, (u, time, _) in enumerate(rows) if u == url and time <= t]
        row = found.row_at(page, t)
        assert found.find(url) == page
        assert int(found.rows_at(t)[page]) == (-1 if row is None else row)
        if not begun:
            assert row is None
            continue
        html = rows[max(begun)[1]][2]
        assert row is not None
        assert found.removed[row] == (html is None)
        assert found.html(row) == (html or b"")
        if html is not None:
            live.append(page)
    assert found.pages_at(t).tolist() == live


@settings(max_examples=20)
@given(ROWS)
def test_written_rows_are_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("archive") / "a.parquet"
    url, time, html = zip(*rows, strict=True)
    count = write(path, list(url), list(time), pa.array(html, pa.binary()))
    stored = pq.read_table(path)
    assert stored.schema.equals(module.schema())
    assert count == stored.num_rows == len({(u, t) for u, t, _ in rows})
    keys = list(zip((u.encode() for u in stored["url"].to_pylist()), stored["time"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    again = Archive.open([path])
    direct = Archive.of(table(rows))
    assert again.urls == direct.urls
    assert again.times.tolist() == direct.times.tolist()
    assert again.column.to_pylist() == direct.column.to_pylist()


def test_sites_and_unknown_urls():
    found = Archive.of(table([(url, 1, b"x") for url in URLS]))
    assert found.sites == ["a.example", "b.example"]
    assert [found.sites[site] for site in found.site_of] == [url.split("/")[2] for url in found.urls]
    assert found.find("https://a.example/none") is None
    assert found.page_of.tolist() == [0, 1, 2, 3]


def test_a_folder_and_several_paths_are_one_archive(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    write(tmp_path / "in" / "1.parquet", URLS[:1], [1], [b"one"])
    write(tmp_path / "in" / "deep" / "2.parquet", URLS[1:2], [2], [b"two"])
    write(tmp_path / "3.parquet", [URLS[0], URLS[0]], [0, 3], pa.array([b"zero", None], pa.binary()))
    found = Archive.open([tmp_path / "in", tmp_path / "3.parquet"])
    assert found.urls == URLS[:2]
    assert found.times.tolist() == [0, 1, 3, 2]
    assert [found.html(row) for row in range(4)] == [b"zero", b"one", b"", b"two"]
    assert b"".join(b"".join(chunk.drop_null().to_pylist()) for _, chunk in found.bodies()) == b"zeroonetwo"


def test_large_batches_are_cut_into_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_GROUP_BYTES", 1000)
    path = tmp_path / "a.parquet"
    write(path, [f"https://a.example/{i:03}" for i in range(50)], range(50), [b"x" * 100] * 50)
    assert pq.ParquetFile(path).num_row_groups > 4
    assert len(Archive.open([path])) == 50


def test_a_failed_write_leaves_nothing(tmp_path):
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[URLS[0]], [1], [b"x"]], schema=module.schema())
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_batches(tmp_path / "a.parquet", broken())
    assert list(tmp_path.iterdir()) == []


GOOD = {"url": [URLS[0]], "time": [1], "html": [b"x"]}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"url": [URLS[0]], "time": [1]}, "no column 'html'"),
        (GOOD | {"time": ["yesterday"]}, "column 'time' is string"),
        (GOOD | {"url": [7]}, "column 'url' is int64"),
        (GOOD | {"html": [1.5]}, "column 'html' is double"),
        (GOOD | {"url": pa.array([None], pa.string())}, "1 empty rows"),
        (GOOD | {"url": ["ftp://a.example/"]}, "not an http"),
        (GOOD | {"url": ["/relative"]}, "not an http"),
        (
            {key: pa.array([], kind) for key, kind in zip(module.schema().names, module.schema().types, strict=True)},
            "no rows",
        ),
    ],
)
def test_invalid_archives_are_refused_with_a_reason(tmp_path, columns, said):
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(BadArchive, match=said):
        Archive.open([tmp_path / "bad.parquet"])


def test_files_that_are_not_archives(tmp_path):
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "empty").mkdir()
    for path, said in (
        (tmp_path / "text.parquet", "cannot read .* as Parquet"),
        (tmp_path / "empty", "contains no .parquet file"),
        (tmp_path / "none", "does not exist"),
    ):
        with pytest.raises(BadArchive, match=said):
            Archive.open([path])
    with pytest.raises(BadArchive, match="no archive given"):
        Archive.open([])


def test_other_widths_of_the_same_types_are_accepted():
    wide = pa.table(
        {
            "url": pa.array([URLS[0]]).dictionary_encode(),
            "time": pa.array([1], pa.int32()),
            "html": pa.array(["text"], pa.large_string()),
        }
    )
    assert Archive.of(wide).html(0) == b"text"


@pytest.mark.skipif(not DATA.is_dir(), reason="shared/data is not beside the checkout")
def test_a_real_history():
    path = DATA / "sites" / "ACL-Group__ACL-Group.github.io.parquet"
    found = Archive.open([path])
    raw = pq.read_table(path)
    assert len(found.times) == raw.num_rows
    assert int(found.removed.sum()) == raw["html"].null_count
    assert found.html(100) == (raw["html"][100].as_py() or b"")
    assert 0 < len(found.pages_at(found.end)) <= len(found)
