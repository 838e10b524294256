"""The pure parts of `python -m benchmarks.content`: intervals, the crude rule, folds by site, fitted weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.content import evaluate, significance_table, verdict_row, wilson
from benchmarks.content_fit import cross_validated, fit_changes, fit_lines, folds, is_content, significance
from benchmarks.content_labels import PageLines, Sample, collect, crude_differs
from benchmarks.content_live import LiveCrawl
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.content.judge import CHANGE_WEIGHTS, FEATURES, LINE_WEIGHTS, LineChange
from recrawl.errors import UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.labels import judge_pairs, read_pairs


@pytest.mark.parametrize(
    ("share", "count", "low", "high"), [(0.0, 10, 0.0, 0.278), (0.5, 100, 0.404, 0.596), (0.9, 50, 0.786, 0.957)]
)
def test_intervals_are_those_of_wilson(share: float, count: int, low: float, high: float):
    assert wilson(share, count) == pytest.approx((low, high), abs=1e-3)


@given(st.integers(0, 500), st.integers(1, 500))
def test_an_interval_holds_its_share(part: int, count: int):
    share = min(part, count) / count
    low, high = wilson(share, count)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_noise_hidden_and_news_lost_are_counted_apart():
    noise, news = np.array([True, True, False, False, False]), np.array([False, False, True, True, False])
    row = verdict_row("x", np.array([0.0, 1.0, 1.0, 1.0, 0.0]), noise, news)
    assert (row[1], row[3]) == ("50.0%", "0.0%")
    assert verdict_row("x", None, noise, news)[1] == "not installed"


def test_a_brier_score_leaves_border_changes_out():
    news, noise = np.array([True, False, False]), np.array([False, True, False])
    table = significance_table("x", np.array([1.0, 0.0, 0.5]), news, noise)
    assert "Brier score 0.000" in table.title
    assert [row[1] for row in table.rows] == ["1", "1"]


def _pages(count: int, *lines: str) -> list[PageLines]:
    return [PageLines.of(lines)] * count + [PageLines.of(["other"])] * (40 - count)


@pytest.mark.parametrize(
    ("line", "pages", "differs"),
    [
        ("Menu", _pages(1, "Menu"), True),
        ("Menu", _pages(2, "Menu"), False),
        ("Page 7", _pages(2, "Page 1"), True),
        ("Page 7", _pages(3, "Page 1"), False),
    ],
)
def test_the_crude_rule_counts_other_pages(line: str, pages: list[PageLines], differs: bool):
    assert crude_differs(["Own"], ["Own", line], [], pages) is differs
    assert crude_differs(["Own", line], ["Own"], pages, []) is differs
    assert not crude_differs(["Own", line], [line, "Own"], [], [])


@given(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=60), st.integers(0, 9))
def test_a_site_is_in_one_fold(sites: list[str], seed: int):
    fold = folds(sites, seed)
    assert all(len(set(fold[np.array(sites) == site])) == 1 for site in set(sites))
    sizes = np.bincount([fold[sites.index(site)] for site in set(sites)], minlength=1)
    assert sizes.max() <= -(-len(set(sites)) // 8)


def _sample(rng: np.random.Generator, number: int) -> Sample:
    """A change with frame lines, which many pages have; news has one more line, which no other page has."""
    label = ("news", "noise", "noise", "border")[number % 4]
    own = int(label == "news")
    shares = np.append(rng.uniform(0.5, 1, 3), np.zeros(own))
    features = np.column_stack([np.ones(len(shares)), np.log1p(20 * shares), shares, 0 * shares, shares])
    change = LineChange(
        key=1, added=True, framed=False, own=False, mechanical=False, fact=True, words=5, near=(), instead=0, slot=0
    )
    return Sample(label, f"site{number % 12}", [change] * len(shares), features, {"plain text": True})


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    rng = np.random.default_rng(1)
    return [_sample(rng, number) for number in range(96)]


def test_weights_are_learned_from_labels_of_whole_changes(samples: list[Sample]):
    by_line = fit_lines(samples)
    by_change = fit_changes(samples, by_line)
    assert len(by_line) == len(FEATURES)
    assert all(is_content(sample, by_line) == (sample.label == "news") for sample in samples)
    values = {label: significance(next(s for s in samples if s.label == label), by_line, by_change) for label in
              ("news", "noise")}  # fmt: skip
    assert values["news"] > 0.5 > values["noise"]


def test_a_change_of_mechanical_lines_alone_is_not_content(samples: list[Sample]):
    news = next(sample for sample in samples if sample.label == "news")
    stamps = [change._replace(mechanical=True) for change in news.changes]
    assert not is_content(Sample("noise", "a", stamps, news.features, {}), fit_lines(samples))
    assert not is_content(Sample("noise", "a", [], np.zeros((0, len(FEATURES))), {}), fit_lines(samples))


@pytest.mark.slow
def test_other_sites_judge_a_site(samples: list[Sample]):
    content, meaning = cross_validated(samples, 1)
    news = np.array([sample.label == "news" for sample in samples])
    assert content[news].mean() == 1
    assert meaning[news].min() > meaning[~news].max()


@pytest.mark.slow
def test_labels_of_an_archive_are_evaluated(tmp_path: Path):
    rows: list[tuple[str, int, bytes]] = []
    for site in range(10):
        for page in range(6):
            for time, menu in ((100, "Home"), (200, "Home and shop")):
                news = "<p>We have moved" if time == 200 and page == 0 else ""
                html = f"<body><div><p>{menu}</div><p>Text {'abcdef'[page]}{news}".encode()
                rows.append((f"https://s{site}.example/{page}", time, html))
    columns = list(zip(*rows, strict=True))
    pq.write_table(pa.table([*columns[:2], pa.array(columns[2], pa.binary())], ["url", "time", "html"]),
                   tmp_path / "a.parquet")  # fmt: skip
    labels = tmp_path / "labels.tsv"
    lines = ["id\tlabel\tkind\tarchive\turl\tbefore\tafter"]
    lines += [f"1\t{label}\tx\ta.parquet\thttps://s{site}.example/{page}\t100\t200" for site in range(10)
              for page, label in enumerate(("news", "noise"))]  # fmt: skip
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = collect([tmp_path], labels)
    assert [sample.differs["crude rule"] for sample in found] == [sample.label == "news" for sample in found]
    verdicts = {row[0]: (row[1], row[3]) for row in evaluate(found)[0].rows}
    assert verdicts["content, weights fitted on other sites"] == ("100.0%", "0.0%")
    assert verdicts["plain text"] == ("0.0%", "0.0%")
    for sample, row in zip(found, judge_pairs([tmp_path], read_pairs(labels)), strict=True):
        assert is_content(sample, LINE_WEIGHTS) == row["content"], "as lab label judges"
        assert significance(sample, LINE_WEIGHTS, CHANGE_WEIGHTS) == pytest.approx(row["significance"], abs=1e-6)
    labels.write_text(lines[0] + "\n1\tnews\tx\tb.parquet\thttps://a.example/\t1\t2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"no archive b\.parquet"):
        collect([tmp_path], labels)


def test_a_live_crawl_judges_by_the_pages_that_it_has_visited(tmp_path: Path):
    day, pages = 86400, 30
    rows = []
    for page in range(pages):
        for at, menu in ((0, "Old menu of the site"), (50 * day, "New menu of the site")):
            text = f"The story of the {'x' * (page + 1)}" + (" goes on" if page == 0 and at else "")
            rows.append((f"https://a.example/{page}.html", at, f"<p>{menu}<p>{text}".encode()))
    urls, times, bodies = (list(column) for column in zip(*rows, strict=True))
    pq.write_table(pa.table({"url": urls, "time": times, "html": bodies}), tmp_path / "a.parquet")
    archive = Archive.open([tmp_path / "a.parquet"])
    daily = LiveCrawl(archive, 1)
    for number, news in (("0", True), ("1", False)):
        found = archive.find(f"https://a.example/{number}.html")
        assert found is not None
        changes, features = daily.features(found, int(archive.first[found]), int(archive.first[found]) + 1)
        verdicts = dict(zip([change.words for change in changes], features @ LINE_WEIGHTS > 0, strict=True))
        assert verdicts.get(7, False) == news, "the story is content"
        assert not verdicts[5], "the menu stood on the other pages at their last visits"
