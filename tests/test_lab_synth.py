"""A generated world: the same for a seed, whole at every time, and like its parameters."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import urljoin

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from recrawl.cli.lab import app_with
from recrawl.compare.parsing.document import parse
from recrawl.errors import UnknownName, UsageError
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import KINDS, PARAMETERS, SyntheticWorld, generate, hosts, write

DAY = 86400
SMALL = SyntheticWorld(
    sites=5, pages=90, days=30, births=0.03, removals=0.01, noise=0.1, template_changes=24, size_max=9000
)
QUIET = SyntheticWorld(
    sites=1, kinds="docs", days=60, births=0, removals=0, noise=0, template_changes=0, folder_updates=0, never=0,
    rate_shape=1e6, rhythm=0, size_min=1000, size_max=1500, links=0,
)  # fmt: skip


def made(world: SyntheticWorld) -> Archive:
    return Archive.of(pa.Table.from_batches(generate(world)))


@pytest.fixture(scope="module")
def small() -> Archive:
    return made(SMALL)


def articles(archive: Archive) -> NDArray[np.int64]:
    """Pages that are neither lists nor fixed."""
    return np.array(
        [p for p, url in enumerate(archive.urls) if url.endswith(".html") and "-" in url and "/older-" not in url]
    )


def changes(archive: Archive, pages: NDArray[np.int64]) -> NDArray[np.int64]:
    rows: NDArray[np.int64] = np.diff(archive.first)
    return rows[pages] - 1


def links_at(archive: Archive, row: int, url: str) -> list[str]:
    tree = parse(archive.html(row).decode())
    return [urljoin(url, node.attr("href") or "") for node in tree.select("a[href]")]


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes():
    world = replace(SMALL, sites=3, pages=40)
    first, second = (pa.Table.from_batches(generate(world)) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(pa.Table.from_batches(generate(replace(world, seed=2))))


def test_a_site_does_not_depend_on_those_after_it():
    few, many = made(replace(SMALL, sites=2, pages=40)), made(replace(SMALL, sites=4, pages=40))
    assert set(few.sites) < set(many.sites)
    for page, url in enumerate(few.urls):
        other = many.find(url)
        assert other is not None
        mine, theirs = (a.column[int(a.first[p]) : int(a.first[p + 1])] for a, p in ((few, page), (many, other)))
        assert mine.to_pylist() == theirs.to_pylist()


def test_rows_come_in_the_order_of_an_archive():
    keys = [
        key
        for batch in generate(replace(SMALL, sites=12, pages=20))
        for key in zip(batch["url"].to_pylist(), batch["time"].to_pylist(), strict=True)
    ]
    assert keys == sorted(set(keys))
    assert {url.split("/")[2] for url, _ in keys} == {host for host, _ in hosts(replace(SMALL, sites=12))}


@pytest.mark.parametrize("share", [0.0, 0.37, 0.999])
def test_every_live_page_can_be_reached_and_no_dead_one_is_linked(small, share):
    t = SMALL.start + share * (SMALL.end - SMALL.start)
    rows = small.rows_at(t)
    live = {small.urls[p]: int(rows[p]) for p in small.pages_at(t)}
    reached = [f"https://{site}/" for site in small.sites]
    seen = set(reached)
    for url in reached:
        for link in links_at(small, live[url], url):
            assert link in live, f"{url} links to {link}, which is not there"
            if link not in seen and link.split("/")[2] == url.split("/")[2]:
                seen.add(link)
                reached.append(link)
    assert seen == set(live)


def test_births_and_removals_lie_in_the_window(small):
    assert small.start == SMALL.start
    assert SMALL.start < small.end < SMALL.end
    births = small.times[small.first[:-1]]
    assert (births > SMALL.start).sum() > 20
    assert small.removed.sum() > 20
    assert not small.removed[small.first[:-1]].any()


def test_neighbouring_versions_differ(small):
    for page in range(len(small)):
        bodies = small.column[int(small.first[page]) : int(small.first[page + 1])].to_pylist()
        assert all(a != b for a, b in pairwise(bodies)), small.urls[page]


class Balance(HTMLParser):
    """Complains about tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs)
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_pages_are_well_formed(small):
    for row in np.flatnonzero(~small.removed)[::29].tolist():
        parser = Balance()
        parser.feed(small.html(row).decode("utf-8"))
        parser.close()
        assert parser.open == []


def test_changes_have_the_given_rate():
    world = replace(QUIET, pages=500, change_rate=0.2)
    archive = made(world)
    found = changes(archive, articles(archive)).mean() / world.days
    assert found == pytest.approx(world.change_rate * KINDS["docs"].change, rel=0.06)


@pytest.mark.slow
def test_a_share_never_changes_and_rates_are_uneven():
    world = replace(QUIET, pages=600, never=0.3, change_rate=1.0, rate_shape=2.0)
    archive = made(world)
    counts = changes(archive, articles(archive))
    assert (counts == 0).mean() == pytest.approx(0.3, abs=0.07)
    active = counts[counts > 0]
    assert active.var() > 3 * active.mean()  # a Poisson process with one rate for all would give 1


def test_births_and_removals_have_the_given_rates():
    world = replace(QUIET, pages=500, kinds="shop", births=0.02, removals=0.002, change_rate=0)
    archive = made(world)
    pages = articles(archive)
    born = (archive.times[archive.first[pages]] > world.start).sum()
    kind = KINDS["shop"]
    assert born == pytest.approx(world.births * kind.birth * world.pages * world.days, rel=0.2)
    alive_days = (
        sum(
            (archive.times[archive.first[p + 1] - 1] if archive.removed[archive.first[p + 1] - 1] else world.end)
            - archive.times[archive.first[p]]
            for p in pages
        )
        / DAY
    )
    assert archive.removed.sum() == pytest.approx(world.removals * kind.removal * alive_days, rel=0.2)
    assert len(archive.pages_at(world.start)) == pytest.approx(world.pages, abs=3)


def test_a_template_change_touches_the_whole_site_at_once():
    world = replace(QUIET, pages=60, change_rate=0, template_changes=30, template_text=1)
    archive = made(world)
    times, counts = np.unique(archive.times[archive.times > world.start], return_counts=True)
    assert len(times) == pytest.approx(30 * 60 / 365, abs=8)
    assert set(counts) == {len(archive)}
    visible = [parse(archive.html(row).decode()).text for row in range(int(archive.first[1]))]
    assert len(set(visible)) == len(visible)


def test_markup_only_template_changes_leave_the_text():
    archive = made(replace(QUIET, pages=30, change_rate=0, template_changes=30, template_text=0))
    texts = {parse(archive.html(row).decode()).select("body")[0].text for row in range(int(archive.first[1]))}
    assert int(archive.first[1]) > 1
    assert len(texts) == 1


def test_noise_changes_its_share_of_pages_daily():
    world = replace(QUIET, pages=400, change_rate=0, noise=0.25)
    archive = made(world)
    counts = np.diff(archive.first) - 1
    assert set(counts) <= {0, 59, 60}
    assert (counts > 0).mean() == pytest.approx(0.25, abs=0.07)


@pytest.mark.slow
def test_changes_follow_office_hours():
    def office_hours(rhythm: float) -> float:
        archive = made(replace(QUIET, pages=200, change_rate=1.0, days=56, rhythm=rhythm))
        times = archive.times[archive.times > archive.start]
        hour, weekday = times // 3600 % 24, (times // DAY + 3) % 7
        return float(((hour >= 9) & (hour < 18) & (weekday < 5)).mean())

    assert office_hours(0.0) == pytest.approx(45 / 168, abs=0.03)
    assert office_hours(1.0) > 0.55


def test_sizes_and_links_follow_the_parameters():
    archive = made(SyntheticWorld(sites=5, pages=150, days=1, births=0, removals=0))
    pages = articles(archive)
    sizes = np.array([len(archive.html(int(archive.first[p]))) for p in pages])
    assert np.percentile(sizes, 1) > 4000
    assert np.percentile(sizes, 99) < 66_000
    assert sizes.mean() == pytest.approx(22_000, rel=0.15)  # the mean of a log-uniform draw from 5 to 60 thousand
    links = [archive.html(int(archive.first[p])).count(b"<a ") for p in pages]
    assert np.mean(links) == pytest.approx(60, rel=0.2)


def test_the_front_page_of_a_news_site_is_its_anchor():
    """An article is linked from the front page from the second of its birth (spec A1)."""
    archive = made(SyntheticWorld(sites=1, kinds="news", pages=80, days=10, removals=0, size_max=8000))
    front = archive.find("https://news1.example/")
    assert front is not None
    pages = articles(archive)
    young = [p for p in pages if archive.times[archive.first[p]] > archive.start]
    assert len(young) > 10
    for page in young:
        row = archive.row_at(front, float(archive.times[archive.first[page]]))
        assert row is not None
        assert archive.urls[page] in links_at(archive, row, archive.urls[front])
    early = [
        archive.times[archive.first[p] + 1] - archive.times[archive.first[p]]
        for p in young
        if changes(archive, np.array([p]))[0]
    ]
    assert np.median(early) < DAY


def test_depths_are_mostly_two_to_four(small):
    depth = np.array([url[8:].count("/") for url in small.urls])
    assert ((depth >= 2) & (depth <= 4)).mean() > 0.75


def test_the_kinds_follow_their_weights():
    kinds = [kind.name for _, kind in hosts(SyntheticWorld(sites=200, kinds="news=3,blog=1"))]
    assert kinds.count("news") == pytest.approx(150, abs=3)
    assert sorted(kind.name for _, kind in hosts(SyntheticWorld(sites=5))) == sorted(KINDS)


def test_the_smallest_and_a_long_world():
    assert len(made(SyntheticWorld(sites=1, pages=10, days=0.01))) == pytest.approx(10, abs=2)
    long = made(replace(QUIET, pages=30, days=40, kinds="news", births=0.3, removals=0.02, change_rate=0))
    assert any("/older-" in url for url in long.urls)


def test_the_table_names_every_parameter():
    assert [p.name for p in PARAMETERS][:3] == ["seed", "start", "days"]
    assert SyntheticWorld.of({p.name: str(p.default) for p in PARAMETERS}) == SyntheticWorld()
    assert all(p.help for p in PARAMETERS)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"brths": "1"}, UnknownName),
        ({"kinds": "nws"}, UnknownName),
        ({"kinds": ""}, UsageError),
        ({"kinds": "news=-1"}, UsageError),
        ({"pages": "many"}, UsageError),
        ({"pages": "3"}, UsageError),
        ({"noise": "nan"}, UsageError),
        ({"size_min": "5000", "size_max": "4000"}, UsageError),
    ],
)
def test_invalid_worlds_are_refused(given, error):
    with pytest.raises(error):
        SyntheticWorld.of(given)


def test_write_writes_an_archive_and_reports_progress(tmp_path):
    told = []
    rows = write(replace(SMALL, sites=2, pages=20), tmp_path / "w.parquet", lambda *what: told.append(what))
    assert told[-1] == (2, rows)
    assert len(Archive.open([tmp_path / "w.parquet"]).times) == rows


def test_the_command_writes_an_archive(tmp_path):
    out = tmp_path / "w.parquet"
    arguments = ["synth", str(out), "--sites", "2", "--pages", "20", "--days", "3", "--set", "noise=1", "--json"]
    result = CliRunner().invoke(app_with(), arguments)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["sites"] == ["news1.example", "blog1.example"]
    assert said["rows"] == len(Archive.open([out]).times)
    assert isinstance(CliRunner().invoke(app_with(), ["synth", str(out), "--set", "noise"]).exception, UsageError)
    assert "change_rate=0.15" in CliRunner().invoke(app_with(), ["synth", "--parameters"]).stdout
