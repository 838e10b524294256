"""`import` and `export`: lists of addresses, and whole histories as Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.lab.formats.archive import Archive
from tests.complaints import complaint
from tests.world import Reply, Repo, Site, command, page, text

Start = Callable[..., Site]
DAY = 86400


# -- lists of addresses --------------------------------------------------------------------------------------


LIST = """\
# a comment
https://a.example/one

  https://a.example/two\t
https://a.example/one#again
https://A.example:443/two?utm_source=x
not an address
ftp://a.example/
"""


@pytest.mark.parametrize("by", ["file", "stdin"])
def test_list(repo: Repo, tmp_path: Path, by: str) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    words = ["-"] if by == "stdin" else [tmp_path / "urls.txt"]
    result = command("-C", repo.folder, "import", *words, "--json", text=LIST)
    assert json.loads(result.out) == {"pages": 2, "versions": 0, "refused": ["not an address", "ftp://a.example/"]}
    assert repo.states() == {"https://a.example/one": "found", "https://a.example/two": "found"}


def test_list_reports_refused_lines(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    told = repo.run("import", tmp_path / "urls.txt")
    assert "2 new pages" in told.out
    assert "refused 2" in told.out
    assert "not an address" in told.err


def test_list_twice(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    repo.run("import", tmp_path / "urls.txt")
    assert repo.json("import", tmp_path / "urls.txt")["pages"] == 0
    assert repo.json("import", tmp_path / "urls.txt", tmp_path / "urls.txt")["pages"] == 0


def test_listed_pages_are_downloaded(repo: Repo, tmp_path: Path, site: Start) -> None:
    """The next crawl downloads them, also when nothing was ever added."""
    web = site({"/one": page("one"), "/two": page("two")})
    (tmp_path / "urls.txt").write_text(f"{web.url('/one')}\n{web.url('/two')}\n")
    repo.run("import", tmp_path / "urls.txt")
    assert repo.json("crawl", "--allow-private")["new"] == 2


def test_listed_pages_of_a_site_that_was_added(repo: Repo, tmp_path: Path, site: Start) -> None:
    web = site({"/": page("front"), "/hidden": page("hidden")})
    (tmp_path / "urls.txt").write_text(web.url("/hidden"))
    repo.run("import", tmp_path / "urls.txt")
    repo.crawl(web.url())
    assert set(repo.states().values()) == {"live"}


def test_list_of_invalid_lines(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_bytes(bytes(range(256)) * 100)
    assert "it has binary data" in repo.run("import", tmp_path / "rubbish", code=2).err
    (tmp_path / "words.txt").write_text("an ordinary text\nof two lines\n")
    assert (
        "2 of its first 2 lines are none, such as 'an ordinary text'"
        in repo.run("import", tmp_path / "words.txt", code=2).err
    )
    assert not repo.pages()


def test_export_list(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    repo.run("import", tmp_path / "urls.txt")
    wanted = "https://a.example/one\nhttps://a.example/two\n"
    repo.run("export", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == wanted
    assert repo.run("export", "-").out == wanted
    assert repo.json("export", tmp_path / "out.txt") == {"file": str(tmp_path / "out.txt"), "rows": 2}


def test_export_to_stdout_with_json_is_json(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    repo.run("import", tmp_path / "urls.txt")
    json.loads(repo.run("export", "-", "--json").out)


# -- histories -----------------------------------------------------------------------------------------------


def history(repo: Repo, url: str) -> list[dict[str, Any]]:
    """Every version of a page: when, and its text."""
    rows = repo.json("log", url)[::-1]
    return [
        {"at": row["at"][:19], "what": row["what"], "text": repo.json("show", url, "--at", row["number"])["text"]}
        for row in rows
    ]


@pytest.fixture
def past(repo: Repo, site: Start) -> tuple[Repo, Site]:
    """A repository with some past: changes, a removal, other encodings and kinds."""
    web = site(
        {
            "/": page("front", "/a", "/gone", "/latin", "/greek", "/plain"),
            "/a": page("alpha one"),
            "/gone": page("soon gone"),
            "/latin": Reply("<p>Grüße, façade, 5 €".encode("cp1252"), kind="text/html; charset=windows-1252"),
            "/greek": Reply("<p>Καλημέρα κόσμε".encode("iso-8859-7"), kind="text/html; charset=iso-8859-7"),
            "/plain": text("if a <b> c\n  then & d"),
        }
    )
    repo.crawl(web.url())
    for number in range(2, 5):
        repo.later(days=3)
        web["/a"] = page(f"alpha {number}")
        web["/gone"] = Reply(page("no"), 404)
        repo.cycle()
    assert repo.states()[web.url("/gone")] == "gone"
    return repo, web


def test_export_and_import_round_trip(past: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = past
    file = tmp_path / "past.parquet"
    rows = repo.json("export", file)["rows"]
    other = Repo.create(tmp_path / "other")
    told = other.json("import", file)
    assert told == {"pages": 6, "versions": rows - 1, "refused": []}
    assert other.states() == repo.states()
    for path in ("/", "/a", "/gone"):
        assert history(other, web.url(path)) == history(repo, web.url(path))
    other.run("export", tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(file))


@pytest.mark.parametrize("path", ["/latin", "/greek", "/plain"])
def test_texts_survive_without_their_headers(past: tuple[Repo, Site], tmp_path: Path, path: str) -> None:
    """An archive has no headers; what only they said must not be lost."""
    repo, web = past
    repo.run("export", tmp_path / "past.parquet")
    other = Repo.create(tmp_path / "other")
    other.run("import", tmp_path / "past.parquet")
    assert history(other, web.url(path)) == history(repo, web.url(path))


def test_export_is_an_archive(past: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = past
    repo.run("export", tmp_path / "past.parquet")
    archive = Archive.open([tmp_path / "past.parquet"])
    found = archive.find(web.url("/gone"))
    assert found is not None
    rows = range(archive.first[found], archive.first[found + 1])
    assert [bool(archive.removed[row]) for row in rows] == [False, True]
    schema = pq.read_schema(tmp_path / "past.parquet")
    assert schema.names == ["url", "time", "html"]


def test_imported_pages_can_be_used(past: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = past
    repo.run("export", tmp_path / "past.parquet")
    other = Repo.create(tmp_path / "other")
    other.ahead = repo.ahead
    other.run("import", tmp_path / "past.parquet")
    assert other.found("alpha") == {web.url("/a")}
    assert other.found("soon") == set()
    assert "alpha" in other.run("diff", web.url("/a")).out
    other.add(web.url())
    web["/a"] = page("alpha five")
    summary = other.cycle()
    assert (summary["changed"], summary["new"]) == (1, 0)


def test_changes_of_an_import_are_newest_first(past: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, _ = past
    repo.run("export", tmp_path / "past.parquet")
    other = Repo.create(tmp_path / "other")
    other.run("import", tmp_path / "past.parquet")
    times = [row["at"] for row in other.json("changes")]
    assert times == sorted(times, reverse=True)


def test_known_pages_are_left_alone(past: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, web = past
    repo.run("export", tmp_path / "past.parquet")
    before = history(repo, web.url("/a"))
    assert repo.json("import", tmp_path / "past.parquet") == {"pages": 0, "versions": 0, "refused": []}
    assert history(repo, web.url("/a")) == before


def test_hostile_archive(repo: Repo, tmp_path: Path) -> None:
    """Times before time and after it, empty and huge pages: each costs itself only."""
    rows: list[tuple[str, int, bytes | None]] = [
        ("https://a.example/born-gone", 5, None),
        ("https://a.example/early", -10 * DAY, b"<p>early"),
        ("https://a.example/empty", 5, b""),
        ("https://a.example/good", 5, b"<p>good words"),
        ("https://a.example/late", 253402300799, b"<p>late"),
        ("https://a.example/nested", 5, b"<div>" * 100_000),
    ]
    urls, times, bodies = zip(*rows, strict=True)
    table = pa.table({"url": urls, "time": pa.array(times, pa.int64()), "html": pa.array(bodies, pa.binary())})
    pq.write_table(table, tmp_path / "bad.parquet")
    assert repo.json("import", tmp_path / "bad.parquet")["pages"] == len(rows)
    assert repo.found("good") == {"https://a.example/good"}
    for verb in (["pages"], ["changes"], ["status"], ["sites"], ["log", "https://a.example/late"]):
        repo.run(*verb)
        repo.json(*verb)


def test_archive_with_an_invalid_url(repo: Repo, tmp_path: Path) -> None:
    table = pa.table({"url": ["https://a.example/", "no address"], "time": [1, 1], "html": [b"good", b"bad"]})
    pq.write_table(table, tmp_path / "bad.parquet")
    complaint(repo.run("import", tmp_path / "bad.parquet", code=None), "'no address'")
    assert repo.json("status")["pages"] == 0


# -- files ---------------------------------------------------------------------------------------------------


def test_import_of_a_missing_file(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_text("this is no Parquet")
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    for name in ("nowhere.txt", "nowhere.parquet", "no.parquet", "empty", "other.parquet"):
        complaint(repo.run("import", tmp_path / name, code=None), name)
    assert repo.json("status")["pages"] == 0


def test_nothing_is_imported_if_one_file_is_invalid(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(LIST)
    complaint(repo.run("import", tmp_path / "urls.txt", tmp_path / "nowhere.parquet", code=None), "nowhere")
    assert repo.json("status")["pages"] == 0
    assert repo.json("status")["cycles"] == []


def test_export_to_an_impossible_path(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.parquet").mkdir()
    for name in ("nowhere/x.txt", "nowhere/x.parquet", "file/x.txt", ".", "folder.parquet"):
        result = repo.run("export", tmp_path / name, code=None)
        complaint(result, str(tmp_path), code=result.code)
        assert result.code in (1, 2)


def test_export_of_an_empty_repository(repo: Repo, tmp_path: Path) -> None:
    assert repo.json("export", tmp_path / "none.parquet")["rows"] == 0
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
