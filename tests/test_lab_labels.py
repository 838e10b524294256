"""`recrawl lab label` and `--change content`: verdicts on the changes of an archive."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.errors import UsageError
from recrawl.lab import History
from recrawl.lab.labels import judge_pairs, read_pairs
from tests.world import command

_SITE = "https://a.example"


def _html(menu: str, body: str) -> bytes:
    return f"<html><body><div><p>{menu}</div><main>{body}</main>".encode()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Twelve pages; at time 200 all get another menu, at 300 page 3 gets news, at 400 page 4 another markup."""
    rows: list[tuple[str, int, bytes | None]] = []
    for n in range(12):
        url = f"{_SITE}/{n}.html"
        rows.append((url, 100, _html("Home and Shop", f"<p>Text of page {n}")))
        rows.append((url, 200, _html("Home and Garden", f"<p>Text of page {n}")))
    rows.append((f"{_SITE}/3.html", 300, _html("Home and Garden", "<p>Text of page 3<p>We have moved to Berlin")))
    rows.append((f"{_SITE}/4.html", 400, _html("Home and Garden", "<p class=x>Text of page 4")))
    rows.append((f"{_SITE}/5.html", 500, None))
    rows.sort(key=lambda row: row[:2])
    file = tmp_path / "a.parquet"
    columns = list(zip(*rows, strict=True))
    pq.write_table(pa.table([*columns[:2], pa.array(columns[2], pa.binary())], names=["url", "time", "html"]), file)
    return file


def _pair(page: int, before: int, after: int) -> dict[str, object]:
    return {"id": str(page), "url": f"{_SITE}/{page}.html", "before": before, "after": after}


def test_each_pair_is_judged_at_every_level(archive: Path):
    pairs = [_pair(3, 200, 300), _pair(3, 100, 200), _pair(4, 200, 400), _pair(4, 400, 450), _pair(5, 200, 500)]
    levels = [(row["bytes"], row["text"], row["content"]) for row in judge_pairs([archive], pairs)]
    assert levels == [
        (True, True, True),
        (True, True, False),
        (True, False, False),
        (False, False, False),
        (True, True, True),
    ]


def test_other_columns_pass_through_and_the_order_is_kept(archive: Path):
    rows = judge_pairs([archive], [_pair(4, 100, 200), _pair(3, 200, 300)])
    assert [row["id"] for row in rows] == ["4", "3"]
    assert all(0 <= row["content_share"] <= 1 and 0 <= row["significance"] <= 1 for row in rows)


def test_a_verdict_does_not_depend_on_later_rows(archive: Path, tmp_path: Path):
    table = pq.read_table(archive)
    early = tmp_path / "early.parquet"
    pq.write_table(table.filter(pa.compute.less_equal(table["time"], 300)), early)
    pairs = [_pair(3, 200, 300), _pair(7, 100, 200)]
    assert judge_pairs([early], pairs) == judge_pairs([archive], pairs)


def test_a_site_may_be_spread_over_several_files(archive: Path, tmp_path: Path):
    table = pq.read_table(archive)
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(table.slice(0, 9), folder / "1.parquet")
    pq.write_table(table.slice(9), folder / "2.parquet")
    pairs = [_pair(3, 200, 300), _pair(7, 100, 200)]
    assert judge_pairs([folder], pairs) == judge_pairs([archive], pairs)


def test_an_unknown_page_is_named(archive: Path):
    with pytest.raises(UsageError, match=r"no archive has the page https://a\.example/77\.html"):
        judge_pairs([archive], [_pair(77, 100, 200)])


def test_the_command_prints_json(archive: Path, tmp_path: Path):
    file = tmp_path / "pairs.tsv"
    file.write_text(f"id\turl\tbefore\tafter\n9\t{_SITE}/3.html\t200\t300\n", encoding="utf-8")
    (row,) = json.loads(command("lab", "label", archive, "--pairs", file, "--workers", 1, "--json").out)
    assert (row["id"], row["before"], row["after"], row["content"]) == ("9", 200, 300, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [("url\tbefore\nx\t1\n", "no column 'after'"), ("url\tbefore\tafter\nx\t1\tsoon\n", "'soon' is not a time")],
)
def test_a_bad_file_of_pairs_is_explained(tmp_path: Path, text: str, message: str):
    file = tmp_path / "pairs.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_pairs(file)


def test_a_history_of_content_has_only_changes_of_content(archive: Path):
    by_text, by_content = (History.read(archive, change) for change in ("text", "content"))

    def changes(history: History) -> int:
        same_page = history.page_of[1:] == history.page_of[:-1]
        return int((same_page & (history.version[1:] != history.version[:-1])).sum())

    assert changes(by_text) == 14  # twelve menus, the news, the removal
    assert changes(by_content) == 2
