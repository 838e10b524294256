"""From archive files to histories: what is read of pages, what is kept in the cache, what counts as change."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book, Directories
from recrawl.compare.terms import hashed
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats import page_facts as module
from recrawl.lab.formats.archive import schema as archive_schema
from recrawl.lab.formats.page_facts import FactReader, Facts, facts_of, from_cache, to_cache
from recrawl.lab.histories import opening
from recrawl.lab.histories.history import ABSENT, History, assemble
from recrawl.lab.histories.opening import history_of, open_history
from recrawl.learn.structure.directories import directory_groups, places
from recrawl.learn.structure.page_features import page_facts

A, B = "http://a.example/", "http://a.example/b.html"
Rows = Sequence[tuple[str, int, bytes | str | None]]


def written(path: Path, rows: Rows, schema: pa.Schema = archive_schema(), group: int = 1000) -> Path:
    """A file with these rows in this order."""
    columns = [[row[n] for row in rows] for n in range(3)]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)]
    pq.write_table(pa.table(arrays, schema=schema), path, row_group_size=group)
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., History]:
    """The history of rows, without a cache."""

    def read(rows: Rows, change: str = "text", **more: Any) -> History:
        return open_history([written(tmp_path / "w.parquet", rows)], change, **more)

    return read


def versions(history: History, page: int = 0) -> list[int]:
    """The versions of a page by the order in which they come up: 0, 1, ...; -1 where it is not there."""
    own = history.version[history.first[page] : history.first[page + 1]].tolist()
    numbers = {version: n for n, version in enumerate(dict.fromkeys(v for v in own if v != ABSENT))}
    return [numbers.get(version, -1) for version in own]


def same(one: Facts, other: Facts) -> bool:
    return all(
        np.array_equal(getattr(one, item.name), getattr(other, item.name))
        and getattr(one, item.name).dtype == getattr(other, item.name).dtype
        for item in dataclasses.fields(Facts)
    )


# -- what is read ---------------------------------------------------------------------------------------------------

PAGE = b"<html><body class=x><h1>One two</h1><img src=i.png><p>three <a href='/b.html'>four</a><script>no</script>"


def test_the_facts_of_a_page(tmp_path: Path) -> None:
    rows = [(A, 10, PAGE), (A, 20, PAGE), (A, 30, PAGE.replace(b"three", b"five")), (A, 40, None)]
    (facts,) = facts_of([written(tmp_path / "w.parquet", rows)], None)
    assert facts.url.tolist() == [A] * 4
    assert facts.time.tolist() == [10, 20, 30, 40]
    assert facts.size.tolist() == [len(PAGE), len(PAGE), len(PAGE) - 1, 0]
    assert facts.words.tolist() == [4, 4, 4, 0]
    assert facts.images.tolist() == [1, 1, 1, 0]
    for column in (facts.raw, facts.text):
        assert column[0] == column[1] != column[2]
        assert column[3] == 0
        assert (column[:3] > 0).all()
    assert facts.shape[0] == facts.shape[2] != 0
    lists = [facts.link_key[facts.link_start[n] : facts.link_start[n + 1]].tolist() for n in facts.links]
    assert lists[0] == lists[1] == lists[2]
    assert len(lists[0]) == 1
    assert lists[3] == []
    counts = np.diff(facts.word_start).tolist()
    assert counts == [4, 0, 0, 0], "only the first version has its words"
    bag = hashed(["One two three four"])
    assert facts.word[:4].tolist() == bag.indices.tolist()


def test_one_row_group_or_many(tmp_path: Path) -> None:
    rows = [(f"http://a.example/{n // 3}", n % 3, b"<p>%d <a href=/%d>x" % (n, n % 4)) for n in range(30)]
    (whole,) = facts_of([written(tmp_path / "1.parquet", rows)], None)
    (parts,) = facts_of([written(tmp_path / "2.parquet", rows, group=4)], None)
    for name in ("url", "time", "raw", "text", "size", "words", "shape"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    one, other = history_of([whole]), history_of([parts])
    assert one.links is not None
    assert other.links is not None
    np.testing.assert_array_equal(one.links.at(one.links.of_row).target, other.links.at(other.links.of_row).target)
    np.testing.assert_array_equal(one.links.at(one.links.of_row).start, other.links.at(other.links.of_row).start)


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00\xff\xfe", b"<", b"<p", b"</" * 50, b"<!doctype", b"<a href='", b"\xef\xbb\xbf<p>x", b"<div>" * 30_000],
    ids=lambda body: repr(body[:9]),
)
def test_broken_html_is_a_version_like_any_other(body: bytes) -> None:
    reader = FactReader()
    raw, read = reader.read(A, body)
    assert raw > 0
    assert read.text > 0
    assert reader.read(A, body) == (raw, read)
    assert reader.read(A, PAGE)[1].text != read.text


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_can_be_read(body: bytes) -> None:
    raw, read = FactReader().read(A, body)
    assert raw > 0
    assert read.text > 0


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_text_and_bytes_are_read_alike(tmp_path: Path, kind: pa.DataType) -> None:
    schema = pa.schema([("url", pa.string()), ("time", pa.int64()), ("html", kind)])
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    rows = [(A, 1, "<p>naïve" if text else "<p>naïve".encode()), (A, 2, None)]
    (facts,) = facts_of([written(tmp_path / "w.parquet", rows, schema)], None)
    (plain,) = facts_of([written(tmp_path / "p.parquet", [(A, 1, "<p>naïve".encode()), (A, 2, None)])], None)
    assert same(facts, plain)


def test_dictionary_encoded_urls_and_narrow_times(tmp_path: Path) -> None:
    kinds = [("url", pa.dictionary(pa.int32(), pa.string())), ("time", pa.int32()), ("html", pa.binary())]
    rows = [(A, 1, b"one"), (A, 2, b"two"), (B, 1, b"x")]
    file = written(tmp_path / "w.parquet", rows, pa.schema(kinds))
    assert open_history([file]).time.tolist() == [0, 1, 0]
    assert versions(open_history([file], "divergence:0.5")) == [0, 1]


# -- rows in any order ----------------------------------------------------------------------------------------------


def test_unsorted_and_duplicate_rows(opened: Callable[..., History]) -> None:
    rows = [(B, 30, b"b2"), (A, 20, b"a2"), (B, 10, b"lost"), (A, 10, b"a1"), (B, 10, b"b1"), (A, 20, b"a1")]
    history = opened(rows)
    assert list(history.urls) == [A, B]
    assert history.time.tolist() == [0, 10, 0, 20]
    assert versions(history) == [0, 0], "of equal rows the last counts"
    assert versions(history, 1) == [0, 1]
    assert history.size.tolist() == [2, 2, 2, 2]


def test_of_duplicate_rows_only_the_last_is_compared(opened: Callable[..., History]) -> None:
    """The row that does not count is like the one after it; what was before is not."""
    old, new = b"<p>one two three four five", b"<p>six seven eight nine ten"
    assert versions(opened([(A, 1, old), (A, 2, new + b" more"), (A, 2, new)], "divergence:0.5")) == [0, 1]
    assert versions(opened([(A, 1, old), (A, 2, new), (A, 2, old + b" more")], "divergence:0.5")) == [0, 0]


def test_a_page_that_begins_with_a_removal_is_absent(opened: Callable[..., History]) -> None:
    history = opened([(A, 5, None), (A, 9, b"<p>words are here"), (B, 5, b"<p>b")], clusters=True)
    assert history.version[:2].tolist()[0] == ABSENT
    assert versions(history) == [-1, 0]
    assert history.clusters is not None


def test_an_archive_without_rows(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.parquet", [])
    with pytest.raises(BadArchive, match="no rows"):
        open_history([empty])
    full = written(tmp_path / "full.parquet", [(A, 1, b"x")])
    assert len(open_history([empty, full])) == 1


@pytest.mark.parametrize("change", ["text", "divergence:0.5"])
def test_a_page_that_continues_in_another_file(tmp_path: Path, change: str) -> None:
    early = written(tmp_path / "1.parquet", [(A, 1, b"<p>one"), (A, 2, b"<p>two")])
    late = written(tmp_path / "2.parquet", [(A, 3, b"<p>two"), (A, 4, b"<p>three"), (B, 4, b"<p>b")])
    later = written(tmp_path / "3.parquet", [(A, 5, b"<p>four")])
    for files in ([early, late, later], [later, early, late], [tmp_path]):
        history = open_history(files, change)
        assert len(history) == 2
        assert versions(history) == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("url", ["ftp://a.example/", "a.example", "http:///x", ""])
def test_an_invalid_url(opened: Callable[..., History], url: str) -> None:
    with pytest.raises(BadArchive, match="not an http"):
        opened([(url, 1, b"x")])


def test_a_url_that_cannot_be_requested_has_no_links(opened: Callable[..., History]) -> None:
    history = opened([("http://[x/", 1, b"<a href=http://a.example/>x")])
    assert history.links is not None
    assert history.links.target.tolist() == []


# -- files that are no archive --------------------------------------------------------------------------------------


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("not at all")
    short = tmp_path / "short.parquet"
    short.write_bytes(written(tmp_path / "w.parquet", [(A, 1, b"x" * 1000)]).read_bytes()[:-20])
    for file in (text, short):
        with pytest.raises(BadArchive, match=r"cannot read .* as Parquet"):
            open_history([file])
    with pytest.raises(BadArchive, match="does not exist"):
        open_history([tmp_path / "nowhere.parquet"])


def test_a_file_that_is_damaged_inside(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    file = written(tmp_path / "w.parquet", [(A, n, rng.bytes(5000)) for n in range(50)])
    content = bytearray(file.read_bytes())
    content[5000:200_000] = bytes(195_000)
    file.write_bytes(content)
    with pytest.raises(BadArchive, match=r"w\.parquet"):
        open_history([file])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"url": [A], "time": [1]}, "no column 'html'"),
        ({"url": [A], "time": [1.5], "html": [b"x"]}, "column 'time' is double"),
        ({"url": [7], "time": [1], "html": [b"x"]}, "column 'url' is int64"),
        ({"url": [A], "time": [1], "html": [3]}, "column 'html' is int64"),
        ({"url": [A, None], "time": [1, 2], "html": [b"x", b"y"]}, "without url"),
        ({"url": [A, A], "time": [1, None], "html": [b"x", b"y"]}, "without url or time"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_columns_are_refused(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "w.parquet")
    with pytest.raises(BadArchive, match=said):
        open_history([tmp_path / "w.parquet"])


# -- the cache ------------------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were really read."""
    read: list[Path] = []
    read_group = module._read_group

    def watching(file: Path, group: int) -> Facts:
        read.append(file)
        return read_group(file, group)

    monkeypatch.setattr(module, "_read_group", watching)
    return read


ROWS = [(A, 1, PAGE), (A, 2, None), (B, 1, b"<p>caf\xc3\xa9 <a href=/>home")]


def test_facts_are_read_from_the_cache_the_second_time(tmp_path: Path, counted: list[Path]) -> None:
    file, cache = written(tmp_path / "w.parquet", ROWS), tmp_path / "cache" / "facts"
    told: list[tuple[int, int]] = []
    (first,) = facts_of([file], cache)
    (second,) = facts_of([file], cache, lambda *at: told.append(at))
    assert len(counted) == 1
    assert same(first, second)
    assert told[-1] == (3, 3)
    moved = tmp_path / "moved.parquet"
    file.rename(moved)
    assert same(facts_of([moved], cache)[0], first)
    assert len(counted) == 1, "its name does not matter"


def test_a_file_that_has_changed_is_read_again(tmp_path: Path, counted: list[Path]) -> None:
    file, cache = written(tmp_path / "w.parquet", ROWS), tmp_path / "cache"
    facts_of([file], cache)
    before = file.stat()
    written(file, [(A, 1, PAGE), (A, 2, None), (B, 1, b"<p>caf\xc3\xa9 <a href=/>hame")])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (facts,) = facts_of([file], cache)
    assert len(counted) == 2
    assert same(facts, facts_of([file], None)[0])
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("harm", ["cut", "empty", "text", "pickle"])
def test_a_damaged_cache_is_read_again(tmp_path: Path, counted: list[Path], harm: str) -> None:
    file, cache = written(tmp_path / "w.parquet", ROWS), tmp_path / "cache"
    (first,) = facts_of([file], cache)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes({"cut": whole[:300], "empty": b"", "text": b"hello", "pickle": b"\x80\x04N."}[harm])
    (second,) = facts_of([file], cache)
    assert same(first, second)
    assert len(counted) == 2
    assert kept.read_bytes() == whole
    assert list(cache.iterdir()) == [kept], "nothing half-written stays"


KEPT = {"a": np.arange(40), "b": np.array(["x", "yy"]), "c": np.zeros(0, np.int32)}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_to_a_cached_file_is_detected(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever byte is another: the columns are as they were, or there are none."""
    name = tmp_path_factory.getbasetemp() / "kept.npz"
    to_cache(name, KEPT)
    content = bytearray(name.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    name.write_bytes(content)
    found = from_cache(name)
    if found is not None:
        assert found.keys() == KEPT.keys()
        assert all(np.array_equal(found[key], KEPT[key]) for key in found)


def test_steps_are_cached_beside_the_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, cache = (
        written(tmp_path / "w.parquet", [(A, 1, b"one"), (A, 2, b"two"), (A, 3, b"two x")]),
        tmp_path / "cache",
    )
    first = open_history([file], "divergence:0.6", cache)
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr("recrawl.lab.histories.history._steps_of_file", None)  # it is not asked again
    assert open_history([file], "divergence:0.6", cache).version.tolist() == first.version.tolist()
    (steps,) = (kept for kept in cache.iterdir() if "steps" in (from_cache(kept) or {}))
    steps.write_bytes(b"")
    monkeypatch.undo()
    assert open_history([file], "divergence:0.6", cache).version.tolist() == first.version.tolist()
    assert open_history([file], "divergence:0.1", cache).version.tolist() != first.version.tolist()


# -- what counts as change ------------------------------------------------------------------------------------------

MANY = b" ".join(b"alpha beta gamma delta" for _ in range(25))
STEPS = [
    b"<p>" + MANY,
    b"<p class=x>" + MANY,  # other bytes, same text
    b"<p>" + MANY + b" one",  # one word of a hundred more
    b"<p>" + b" ".join(b"omega" if n % 4 == 0 else b"sigma" for n in range(100)),  # all are others
    b"<p>" + b" ".join(b"omega" if n % 4 == 0 else b"sigma" for n in range(88)) + b" x" * 12,  # an eighth is other
]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("raw", [0, 1, 2, 3, 4]),
        ("text", [0, 0, 1, 2, 3]),
        ("divergence:0.1", [0, 0, 0, 1, 2]),
        ("divergence:0.5", [0, 0, 0, 1, 1]),
        ("words:1", [0, 0, 1, 2, 3]),
        ("words:20", [0, 0, 0, 1, 2]),
        ("words:25", [0, 0, 0, 1, 1]),
        ("significant", [0, 0, 0, 1, 2]),
    ],
)
def test_definitions_of_change(opened: Callable[..., History], change: str, wanted: list[int]) -> None:
    history = opened([(A, n, body) for n, body in enumerate(STEPS)], change)
    assert versions(history) == wanted
    assert history.change == change


@pytest.mark.parametrize("change", ["text", "raw", "significant", "divergence:0.9", "words:99"])
def test_removals_and_returns_count_under_every_definition(opened: Callable[..., History], change: str) -> None:
    history = opened([(A, 1, b"one"), (A, 2, None), (A, 3, b"one"), (B, 1, b"b")], change)
    assert [version == ABSENT for version in history.version[:3].tolist()] == [False, True, False]


@pytest.mark.parametrize(
    "change",
    [
        "",
        "texts",
        "divergence",
        "divergence:",
        "divergence:0",
        "divergence:2",
        "divergence:nan",
        "significant:1",
        "words",
        "words:0",
        "words:-1",
        "words:2.5",
    ],
)
def test_an_invalid_definition_of_change_is_refused(tmp_path: Path, counted: list[Path], change: str) -> None:
    file = written(tmp_path / "w.parquet", ROWS)
    with pytest.raises(UsageError, match=r"invalid change .*; use text, raw, content, significant, divergence:X"):
        open_history([file], change)
    assert counted == [], "it is refused before the long work"


def test_a_listing_of_digests_is_a_history(tmp_path: Path) -> None:
    file = tmp_path / "captures.cdx"
    lines = [(1, "AAA"), (2, "AAA"), (3, "BBB")]
    file.write_text(
        "".join(f"example,a)/ 2024010{day}000000 http://a.example/ text/html 200 {seal} 100\n" for day, seal in lines)
    )
    history = open_history([file])
    assert versions(history) == [0, 1]
    assert "links" not in history.carries
    with pytest.raises(UsageError, match="digests only"):
        open_history([file], "significant")
    with pytest.raises(UsageError, match="do not combine it"):
        open_history([file, written(tmp_path / "w.parquet", ROWS)])


# -- links ----------------------------------------------------------------------------------------------------------


def linked(history: History) -> dict[str, set[str]]:
    """The links of the pages' first versions, by address."""
    assert history.links is not None
    links = history.links.at(history.links.of_row[history.first[:-1]])
    return {url: {history.urls[target] for target in links.of(page)} for page, url in enumerate(history.urls)}


@pytest.mark.parametrize("kept", ["x/", "x/index.html", "x/index.htm"])
def test_a_folder_and_its_index_are_the_same_page(opened: Callable[..., History], kept: str) -> None:
    names = ["", "index.html", "index.htm", "other"]
    rows = [(f"{A}from-{name}", 1, b"<a href=/x/%s>there" % name.encode()) for name in names]
    history = opened([*rows, (A, 1, b""), (A + kept, 1, b"<a href=../>up</a><a href=http://other.example/>away</a>")])
    found = linked(history)
    assert found[A + kept] == {A}
    assert [found[f"{A}from-{name}"] for name in names] == [{A + kept}] * 3 + [set()]


def test_a_folder_and_its_index_that_both_exist_are_two_pages(opened: Callable[..., History]) -> None:
    rows = [
        (A, 1, b"<a href=x/>"),
        (A + "x/", 1, b"<a href=index.html>"),
        (A + "x/index.html", 1, b"<a href='./#top'>"),
    ]
    assert linked(opened(rows)) == {A: {A + "x/"}, A + "x/": {A + "x/index.html"}, A + "x/index.html": {A + "x/"}}


def test_links_change_with_versions_and_lead_between_files(tmp_path: Path) -> None:
    one = written(
        tmp_path / "1.parquet", [(A, 1, b"<a href=/b.html>"), (A, 2, b"<a href=http://c.example/>"), (B, 1, b"")]
    )
    other = written(tmp_path / "2.parquet", [("http://c.example/", 1, b"<a href=http://a.example/>")])
    history = open_history([one, other])
    assert history.links is not None
    rows = history.links.at(history.links.of_row)
    assert [rows.of(row).tolist() for row in range(4)] == [[1], [2], [], [0]]
    assert history.weight is not None
    assert history.weight.mean() == pytest.approx(1)


def test_clusters_are_built_on_request(opened: Callable[..., History]) -> None:
    words = [b"stock market shares price", b"football goal match team"]
    rows = [(f"http://a.example/{n:02}", 1, b"<p>" + words[n % 2] * 5) for n in range(20)]
    assert opened(rows).clusters is None
    clusters = opened(rows, clusters=True).clusters
    assert clusters is not None
    assert len(clusters.of) == 20


def test_features_come_from_the_first_version_with_words(
    opened: Callable[..., History], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a removal at the start nor rows in the wrong order leave a page without words."""
    bags: list[Any] = []

    def watching(urls: Any, words: Any, *rest: Any, **more: Any) -> Any:
        bags.append(words)
        return page_facts(urls, words, *rest, **more)

    monkeypatch.setattr(opening, "page_facts", watching)
    opened([(A, 1, None), (A, 2, b"<p>one two"), (B, 9, b"<p>three"), (B, 1, b"<p>four")], clusters=True)
    assert bags[0].sum(axis=1).tolist() == [2, 1]


# -- places and groups ----------------------------------------------------------------------------------------------

PARTS = st.lists(st.sampled_from("abc"), max_size=4)
URLS = st.lists(st.builds(lambda host, path: f"http://{host}.example/" + "/".join(path), st.sampled_from("xy"), PARTS))


@given(URLS)
def test_places_are_directories(urls: list[str]) -> None:
    sites, site, folder, folders = places(urls)
    assert [sites[number] for number in site] == [url.split("/")[2] for url in urls]
    names: dict[int, str] = {}
    for url, own in zip(urls, folder.tolist(), strict=True):
        path, number = url[: url.rindex("/") + 1], own
        while number >= 0:
            assert names.setdefault(number, path) == path
            assert folders.level[number] == path.count("/") - 3
            path, number = path[: path.rindex("/", 0, -1) + 1], int(folders.parent[number])
        assert path == "http://", "the way up ends at the site"
    assert len(set(names.values())) == len(names) == len(folders.parent)


def test_a_url_without_a_path_is_the_root_directory() -> None:
    sites, site, folder, _ = places(
        ["http://a.example", "http://a.example/", "http://a.example?q=/x/", "http://b.example/#/y/"]
    )
    assert sites == ["a.example", "b.example"]
    assert site.tolist() == [0, 0, 0, 1]
    assert folder.tolist() == [0, 0, 0, 1]


@given(URLS, st.integers(1, 4))
def test_groups_are_the_deepest_directories_with_enough_pages(urls: list[str], fewest: int) -> None:
    """The slow way: small directories are emptied into the one above, the deepest first."""
    _, site, folder, folders = places(urls)
    book = Book.blank(len(urls))
    book.site[:], book.folder[:], book.folders = site, folder, folders
    holds = [url[: url.rindex("/") + 1] for url in urls]
    for depth in range(9, 3, -1):
        for path in [path for path in set(holds) if path.count("/") == depth and holds.count(path) < fewest]:
            holds = [path[: path.rindex("/", 0, -1) + 1] if held == path else held for held in holds]
    groups = directory_groups(book, fewest).tolist()
    assert len(set(zip(groups, holds, strict=True))) == len(set(groups)) == len(set(holds))


def test_groups_without_a_tree_are_sites() -> None:
    book = Book.blank(3)
    book.site[:] = [4, 2, 4]
    assert directory_groups(book).tolist() == [1, 0, 1]
    book.folders = Directories(np.array([-1]), np.array([0], np.int32))
    assert directory_groups(book).tolist() == [0, 0, 0]


# -- assembling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "time"), [([], []), ([0, 0], [2.0, 1.0]), ([1, 0], [1.0, 1.0]), ([0, 0], [1.0, 2.0])], ids=str
)
def test_invalid_rows_are_refused(page: list[int], time: list[float]) -> None:
    with pytest.raises(BadArchive):
        assemble(
            [A, B],
            np.array(page, np.int64),
            np.array(time),
            np.ones(len(page), np.int64),
            change="text",
            carries=frozenset(),
        )


def test_each_site_has_its_own_clock() -> None:
    urls = ["http://a.example/1", "http://b.example/1", "http://a.example/2"]
    history = assemble(
        urls,
        np.array([0, 1, 1, 2]),
        np.array([50.0, 7.0, 9.0, 60.0]),
        np.ones(4, np.int64),
        change="text",
        carries=frozenset(),
    )
    assert history.time.tolist() == [0, 0, 2, 10]
    assert history.begins.tolist() == [50, 7]
    assert history.span == 10
