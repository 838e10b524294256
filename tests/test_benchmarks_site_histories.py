"""The archives of the benchmark: every rule of `python -m benchmarks.site_histories`, on repositories made here."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks.site_histories import DAY, EXCLUDE, Site, clone, differences, main, make_archive, read_sites
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import UsageError
from recrawl.lab.formats.git_history import whole_directories
from tests.git_work import START, Rows, Work, rows_of, states

HOST = "https://some-body.the_site.org.example/"
DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "Some-Body" / "The_Site.org")


@pytest.fixture
def made(work: Work, tmp_path: Path) -> Callable[..., Rows]:
    """Make the archive of the repository."""

    def make(start: int = START, days: int = 730, max_pages: int = 1500) -> Rows:
        make_archive(
            Site("Some-Body/The_Site.org", "main", start, days, max_pages), work.folder, tmp_path / "x.parquet"
        )
        return rows_of(tmp_path / "x.parquet")

    return make


def test_urls_are_paths_as_they_are(work: Work, made) -> None:
    names = ["index.html", "a b/[x].html", "ä/index.html", "it's!.htm", "B.html", "p%20q.html", "x;y=1/z.html", ".html"]
    at = work.commit(dict.fromkeys(names, b"body"))
    work.commit({"upper.HTML": b"not a page", "upper.HTM": b"", "x.shtml": b"", "html": b""})
    assert made() == sorted((HOST + name, at, b"body") for name in names)


def test_a_window_begins_with_the_state_of_its_first_commit(work: Work, made) -> None:
    work.commit({"old.html": b"1", "gone.html": b"1", "late.html": b"1", "api-free.html": b"0"})
    work.commit({"old.html": b"2", "gone.html": None})
    start = work.commit({"old.html": b"3"})
    change = work.commit({"late.html": b"2", "new.html": b"1"}, after=DAY)
    removal = work.commit({"late.html": None}, after=DAY)
    rebirth = work.commit({"late.html": b"2"}, after=DAY)
    work.commit({"old.html": b"after the window"}, after=727 * DAY + 1)
    assert made(start) == [
        (HOST + "api-free.html", start, b"0"),
        (HOST + "late.html", start, b"1"),
        (HOST + "late.html", change, b"2"),
        (HOST + "late.html", removal, None),
        (HOST + "late.html", rebirth, b"2"),
        (HOST + "new.html", change, b"1"),
        (HOST + "old.html", start, b"3"),
    ]


def test_time_never_decreases_and_the_last_state_at_one_time_counts(work: Work, made) -> None:
    first = work.commit({"a.html": b"1", "b.html": b"1"})
    work.commit({"a.html": b"2", "gone.html": b"x"}, after=-DAY)
    work.commit({"a.html": b"3", "b.html": b"2", "gone.html": None}, after=0)
    work.commit({"b.html": b"1"}, after=0)
    work.commit({"style.css": b"x"}, after=10 * DAY)  # its clock is wrong, but it touches no page
    last = work.commit({"a.html": b"4"}, after=-8 * DAY)
    assert made(first) == [
        (HOST + "a.html", first, b"3"),
        (HOST + "a.html", last, b"4"),
        (HOST + "b.html", first, b"1"),
    ]


def test_merges_count_along_first_parents(work: Work, made) -> None:
    first = work.commit({"a.html": b"1"})
    work.git("checkout", "-q", "-b", "side")
    work.commit({"a.html": b"draft"})
    work.commit({"a.html": b"2", "b.html": b"side"})
    work.git("checkout", "-q", "main")
    second = work.commit({"c.html": b"main"})
    work.time += 3600
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    assert made(first) == [
        (HOST + "a.html", first, b"1"),
        (HOST + "a.html", work.time, b"2"),
        (HOST + "b.html", work.time, b"side"),
        (HOST + "c.html", second, b"main"),
    ]


def test_renames_empty_pages_equal_versions_and_links(work: Work, made) -> None:
    body = b"<p>the same words" * 30
    first = work.commit({"old.html": body, "empty.html": b"", "mode.html": b"x", "link.html": b"page"})
    (work.folder / "mode.html").chmod(0o755)
    (work.folder / "link.html").unlink()
    (work.folder / "link.html").symlink_to("old.html")
    second = work.commit({"old.html": None, "new.html": body})
    assert made(first) == [
        (HOST + "empty.html", first, b""),
        (HOST + "link.html", first, b"page"),
        (HOST + "link.html", second, None),
        (HOST + "mode.html", first, b"x"),
        (HOST + "new.html", second, body),
        (HOST + "old.html", first, body),
        (HOST + "old.html", second, None),
    ]


def test_api_reference_is_left_out(work: Work, made) -> None:
    kept = ["apis/x.html", "docs/api.html", "japi/x.html"]
    out = ["api/x.html", "docs/API/x.html", "d/apidoc2/x.html", "JavaDoc.html", "scaladoc/a.html", "my-doxygen/a.htm"]
    work.commit(dict.fromkeys([*kept, *out, "a/apidocs/x.html"], b"x"))
    assert [url for url, _, _ in made(max_pages=3)] == [HOST + name for name in kept]


def test_pages_with_a_version_over_400000_bytes_are_left_out_after_the_limit(work: Work, made) -> None:
    start = work.commit({"a.html": b"x" * 400_001, "b.html": b"x" * 400_000, "c.html": b"x", "d/1.html": b""})
    assert len(states(made(start), HOST + "a.html")) == 0
    later = work.commit({"a.html": b"small", "c.html": b"x" * 400_001})
    work.commit({"c.html": b"small"}, after=730 * DAY)
    assert [row[0] for row in made(start)] == [HOST + "b.html", HOST + "d/1.html"]
    assert [row[0] for row in made(later, days=0)] == [HOST + "a.html", HOST + "b.html", HOST + "d/1.html"]
    assert [row[0] for row in made(start, max_pages=3)] == [HOST + "b.html"]
    assert [row[0] for row in made(later + DAY)] == [HOST + name for name in ("a.html", "b.html", "d/1.html")]


def test_over_the_limit_whole_directories_are_kept(work: Work, made) -> None:
    sizes = {"a": 3, "b/c": 2, "d": 4, "e": 1, "f/g/h": 2}
    files = {f"{name}/{number}.html": b"x" for name, size in sizes.items() for number in range(size)}
    gone = work.commit({**files, "top.html": b"x", "gone/1.html": b"x"})
    start = work.commit({"gone/1.html": None}, after=1)
    assert gone < start
    left, wanted = 7 - 1, {"top.html"}
    for name in sorted(sizes, key=lambda name: hashlib.md5(name.encode()).hexdigest()):
        if sizes[name] <= left:
            left -= sizes[name]
            wanted |= {path for path in files if path.rpartition("/")[0] == name}
    assert {row[0].removeprefix(HOST) for row in made(start, max_pages=7)} == wanted
    assert len(made(start, max_pages=13)) == 13


@given(st.lists(st.sampled_from([b"", b"a/", b"b/", b"b/c/", b"d/"]), max_size=40), st.integers(1, 20))
def test_directories_are_whole_and_never_over_the_limit(folders: list[bytes], limit: int) -> None:
    paths = [b"%s%d.html" % (folder, number) for number, folder in enumerate(folders)]
    kept = {paths[number] for number in whole_directories(paths, limit)}
    assert len(kept) <= limit
    assert len(kept) == len(paths) or len(paths) > limit
    sizes = {folder: folders.count(folder) for folder in folders}
    partly = {path.rpartition(b"/")[0] for path in kept} & {path.rpartition(b"/")[0] for path in {*paths} - kept}
    assert all(sizes[name + b"/" if name else b""] > limit for name in partly)


FOLDERS = [
    "",
    "docs/",
    "docs/guide/",
    "build/en/",
    "build/de/",
    "public/",
    "a b/",
    "ä/",
    "x/api/",
    "javadoc/",
    "old/docs/",
]


def grown(work: Work, seed: int) -> list[int]:
    """A random history of a site: several output folders, drafts that are merged, renames, removals, whole rebuilds,
    commits that touch no page, dates that go back, and large pages. Returns the dates of the branch's commits."""
    rng = random.Random(seed)
    pages: dict[str, bytes | None] = {
        f"{folder}{name}.htm{rng.choice(['l', ''])}": b"0" for folder in FOLDERS for name in "ab"
    }
    dates = [work.commit(dict(pages), after=0)]
    for number in range(25):
        one, two, three = rng.sample(sorted(pages), 3)
        folder, after = rng.choice(FOLDERS), rng.choice([0, 1, DAY, 20 * DAY, 90 * DAY])
        merged: dict[str, bytes | None] = {one: b"merged %d" % number, f"docs/merged{number}.html": b"m"}
        steps: list[dict[str, bytes | None]] = [
            {name: b"%d" % rng.randint(0, 3) for name in (one, two, three)},
            {one: None, f"{folder}renamed{number}.html": pages[one]},
            {one: None, two: None},
            {f"{folder}new{number}.html": b"new"},
            dict.fromkeys(pages, b"rebuilt %d" % number),
            {"style.css": b"%d" % number, "Upper.HTML": b"%d" % number},
            {one: b"x" * (400_000 + rng.randint(0, 1))},
            merged,
        ]
        step = rng.choice(steps)
        if step is merged:
            work.git("checkout", "-q", "-b", f"draft{number}")
            work.commit({one: b"draft"}, after=DAY)
            work.commit(merged, after=DAY)
            work.git("checkout", "-q", "main")
            work.git("merge", "-q", "--no-ff", "-m", "merged", f"draft{number}")
            dates.append(work.time)
        else:
            dates.append(work.commit(step, after=after if rng.random() < 0.8 else -30 * DAY))
        pages.update({name: body for name, body in step.items() if name.endswith((".html", ".htm"))})
        pages = {name: body for name, body in pages.items() if body is not None}
    return dates


def read_by_the_rules(work: Work, site: Site) -> Rows:
    """The rows of a site by another way: the whole tree of every commit, instead of what each commit changed."""
    commits = work.git("rev-list", "--first-parent", "--reverse", site.branch).decode().split()
    now = 0
    tree: dict[str, str] = {}
    states: list[tuple[int, dict[str, str]]] = []
    for commit in commits:
        listed = work.git("ls-tree", "-r", "-z", commit).decode().split("\0")[:-1]
        files = {line.split("\t", 1)[1]: line.split()[2] for line in listed}
        html = {name: blob for name, blob in files.items() if name.endswith((".html", ".htm"))}
        if html != tree:
            now = max(now, int(work.git("show", "-s", "--format=%ct", commit)))
            tree = html
            states.append((now, {name: blob for name, blob in html.items() if not re.search(EXCLUDE, "/" + name)}))
    first = [state for at, state in states if at <= site.start][-1:]
    shown = [(site.start, state) for state in first]
    shown += [(at, state) for at, state in states if site.start < at <= site.start + site.days * DAY]
    there = {name for _, state in shown for name in state}
    rows = []
    for name in sorted(there & kept_by_the_rules(there, site.max_pages)):
        at_last = {at: state.get(name) for at, state in shown}  # of several states at one time the last
        if any(int(work.git("cat-file", "-s", blob)) > 400_000 for blob in at_last.values() if blob):
            continue
        before = None
        for at, blob in at_last.items():
            if blob != before:
                rows.append((site.base_url + name, at, work.git("cat-file", "blob", blob) if blob else None))
            before = blob
    return sorted(rows, key=lambda row: row[:2])


def kept_by_the_rules(names: set[str], limit: int) -> set[str]:
    directories: dict[str, set[str]] = {}
    for name in names:
        directories.setdefault(name.rpartition("/")[0], set()).add(name)
    top = directories.pop("", set())
    if len(names) <= limit or len(top) > limit:
        return names if len(names) <= limit else set(sorted(top)[:limit])
    kept = set(top)
    for name in sorted(directories, key=lambda name: hashlib.md5(name.encode()).hexdigest()):
        if len(kept) + len(directories[name]) <= limit:
            kept |= directories[name]
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "max_pages"), [(1, 1500), (2, 12)])
def test_random_histories_give_the_rows_of_an_independent_reading(work: Work, made, seed: int, max_pages: int) -> None:
    dates = grown(work, seed)
    for place, days in ((0, 730), (len(dates) // 3, 100)):
        start = max(dates[: place + 1])
        wanted = read_by_the_rules(work, Site("Some-Body/The_Site.org", "main", start, days, max_pages))
        assert made(start, days, max_pages) == wanted
        assert len(wanted) > max_pages / 2 or max_pages == 1500


def test_fetch_continues_and_reports_failures(work: Work, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = work.commit({"a.html": b"1", "large.html": b"x" * 400_001})
    work.git("config", "uploadpack.allowFilter", "true")
    start = datetime.fromtimestamp(at).astimezone().isoformat()
    rows = [("Some-Body/The_Site.org", "main"), ("no/where", "main"), ("Some-Body/other", "main")]
    lines = ["\t".join([*row, start, "730", "1500", "kind"]) for row in rows]
    (tmp_path / "sites.tsv").write_text("\n".join(["repository\tbranch\tstart\tdays\tmax_pages\tkind", *lines]))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "Some-Body__other.parquet").touch()
    common = [
        "fetch",
        str(tmp_path / "out"),
        "--sites",
        str(tmp_path / "sites.tsv"),
        "--clones",
        str(tmp_path / "kept"),
    ]
    common += ["--from", f"file://{tmp_path}/{{repository}}"]
    assert main(common) == 1
    said = capsys.readouterr()
    assert "1/3 Some-Body/The_Site.org: 1 pages, 1 rows" in said.out
    assert "2/3 no/where: failed: cannot clone branch main of file:" in said.out
    assert "3/3 Some-Body/other: already there" in said.out
    assert "1 of 3 sites failed" in said.err
    assert rows_of(tmp_path / "out" / "Some-Body__The_Site.org.parquet") == [(HOST + "a.html", at, b"1")]
    assert main([*common, "--only", "the_site"]) == 0
    assert capsys.readouterr().out == "1/1 Some-Body/The_Site.org: already there\n"
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["Some-Body__The_Site.org.git"]
    with pytest.raises(UsageError, match="contains 'nothing'"):
        main([*common, "--only", "nothing"])


def test_a_missing_branch_is_an_error(work: Work, tmp_path: Path) -> None:
    work.commit({"a.html": b"1"})
    site = Site("a/b", "gh-pages", START, 730, 1500)
    with pytest.raises(UsageError, match=r"cannot clone branch gh-pages of file:.*gh-pages not found"):
        clone(site, f"file://{work.folder}", tmp_path / "clone")


def test_archives_are_compared_row_by_row(work: Work, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work.commit({"a.html": b"1", "b.html": b"1", "c.html": b"1"})
    site = replace(read_sites(only=["zcash/zips"])[0], branch="main", start=START)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        make_archive(site, work.folder, tmp_path / folder / "zcash__zips.parquet")
    words = ["compare", str(tmp_path / "one"), str(tmp_path / "two"), "--only", "zcash"]
    assert main(words) == 0
    assert capsys.readouterr().out == "zcash/zips: all 3 rows equal\n"
    work.commit({"a.html": b"2", "c.html": None})
    work.git("commit", "-q", "--amend", "-m", "again")
    make_archive(replace(site, start=START), work.folder, tmp_path / "two" / "zcash__zips.parquet")
    assert main(words) == 1
    files = [tmp_path / folder / "zcash__zips.parquet" for folder in ("one", "two")]
    wanted = {"equal": 3, "only in the first": 0, "only in the second": 2, "other bodies": 0}
    assert differences(files[0], files[1]) == wanted


def test_the_list_of_sites_is_well_formed() -> None:
    sites = read_sites()
    assert len({site.name for site in sites}) == len(sites) == 97
    assert {(site.days, site.max_pages) for site in sites} == {(730, 1500)}


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_the_list_agrees_with_the_archives() -> None:
    """Hosts, first times, windows and limits of the archives are those of the list."""
    for site in read_sites():
        table = pq.read_table(DATA / "sites" / f"{site.name}.parquet", columns=["url", "time"])
        times, urls = table["time"].to_numpy(), set(table["url"].to_pylist())
        assert times.min() == site.start
        assert times.max() <= site.start + site.days * DAY
        assert len(urls) <= site.max_pages
        assert all(url.startswith(site.base_url) for url in urls)
