"""Clusters of like pages, live: built from what is stored, kept up, the same for a cycle that is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recrawl.book import Clusters
from recrawl.choose import make_policy
from recrawl.crawl import cycles
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.policy_memory import ready_book
from recrawl.crawl.tally import RunCounts
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from tests.crashes import SMALL, Bench, ask, choices, image, judge
from tests.world import Repo

_DAY = 86400.0
_POLICY = "sampling(neighbours=clusters, d=0, phi=1, leads=any)"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    path = tmp_path_factory.mktemp("world") / "world.parquet"
    world = SyntheticWorld(
        seed=6, sites=2, pages=25, days=8, size_min=1000, size_max=1500, links=6, change_rate=0.6, births=0.3
    )
    write(world, path)
    with Bench(Archive.open([path])) as made:
        yield made


@pytest.fixture(scope="module")
def cycled(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After a crawl, a cycle that asked for clusters, and a crawl that has found new pages."""
    folder = bench.create(tmp_path_factory.mktemp("crawled") / "repo")
    bench.clock.set(bench.archive.start + _DAY)
    assert bench.crawl(folder).finished
    bench.clock.set(bench.archive.start + 2 * _DAY)
    assert bench.cycle(folder, _POLICY, 30).finished
    bench.clock.set(bench.archive.start + 3 * _DAY)
    assert bench.crawl(folder).finished
    return folder


def asked(folder: Path, now: float = 1e10) -> Clusters:
    """The clusters of a cycle that would begin now."""
    with Storage(folder) as open_one:
        store = open_one.store
        numbers = [store.next_id(table) for table in ("cycles", "visits", "pages")]
        row = CycleRow(numbers[0], "cycle", "", 0, 7, now, None, numbers[1], numbers[2])
        book, _ = ready_book(open_one, make_policy(_POLICY), row, {}, begin=False)
    assert book.clusters is not None
    assert len(book.clusters.of) == len(book)
    return book.clusters


def file_of(folder: Path) -> Path:
    return folder / "models" / "clusters.npz"


def arrays_of(folder: Path) -> dict[str, np.ndarray]:
    found = read_arrays(file_of(folder))
    assert found is not None
    return found


def test_the_clusters_are_those_that_the_cycle_chose_by(cycled: Path) -> None:
    kept = arrays_of(cycled)
    first = int(ask(cycled, "SELECT first_visit FROM cycles WHERE kind = 'cycle'")[0][0])
    had = [row[0] for row in ask(cycled, "SELECT DISTINCT page FROM visits WHERE version >= 0 AND id < ?", first)]
    assert int(kept["upto"]) == first
    assert int(kept["from"]) == len(had) > 30
    page = kept["page"]
    assert (np.delete(page, had) == -1).all()
    assert len(set(page[had].tolist())) > 2
    # The neighbours of a sample are of its cluster.
    chosen = choices(cycled, 1)
    near = [number for number, (_, reason) in chosen.items() if "drawn" not in reason]
    seeds = [number for number, (_, reason) in chosen.items() if "drawn" in reason]
    assert near
    assert {int(page[number]) for number in near} <= {int(page[number]) for number in seeds}


def test_new_pages_get_clusters_and_the_others_keep_theirs(cycled: Path) -> None:
    before = arrays_of(cycled)["page"]
    now = asked(cycled)
    new = {row[0] for row in ask(cycled, "SELECT page FROM visits WHERE outcome = 2 AND cycle = 2")}
    changed = {row[0] for row in ask(cycled, "SELECT page FROM visits WHERE outcome = 1")}
    assert new
    assert (now.of[sorted(new)] >= 0).all()
    same = np.array([page not in new | changed for page in range(len(before))])
    np.testing.assert_array_equal(now.of[: len(before)][same], before[same])
    assert arrays_of(cycled)["page"].tolist() == before.tolist(), "a question must not write"


def test_a_page_never_downloaded_is_in_no_cluster(cycled: Path) -> None:
    unread = [row[0] for row in ask(cycled, "SELECT id FROM pages WHERE version < 0")]
    assert (asked(cycled).of[unread] == -1).all()


def test_like_pages_share_a_cluster(cycled: Path) -> None:
    """Two sites of different kinds: what they say and how they look is not the same, so few clusters are mixed."""
    of, site = asked(cycled).of, np.array([row[0] for row in ask(cycled, "SELECT site FROM pages ORDER BY id")])
    shares = [site[of == cluster].mean() for cluster in range(of.max() + 1) if (of == cluster).any()]
    assert np.mean([share in (0.0, 1.0) for share in shares]) > 0.5


def test_a_cycle_that_crashed_finds_the_clusters_it_began_with(bench: Bench, cycled: Path, tmp_path: Path) -> None:
    folder = image(cycled, tmp_path / "repo")
    bench.clock.set(bench.archive.start + 4 * _DAY)
    images: dict[int, Path] = {}

    def snapshot(tally: RunCounts) -> None:
        if tally.visits // 10 not in images and tally.visits < 30:
            images[tally.visits // 10] = image(folder, tmp_path / f"image-{len(images)}")

    number = bench.cycle(folder, _POLICY, 30, cycles.Controls(progress=snapshot), **SMALL).cycle.id
    assert len(images) >= 2
    for crashed in images.values():
        bench.clock.advance(60)
        assert bench.cycle(crashed, "round-robin", 3).cycle.id == number
        judge(crashed)
        assert choices(crashed, number) == choices(folder, number)
        assert arrays_of(crashed).keys() == arrays_of(folder).keys()
        assert arrays_of(crashed)["page"].tolist() == arrays_of(folder)["page"].tolist()


def test_a_file_that_cannot_be_believed_is_made_again(cycled: Path, tmp_path: Path) -> None:
    folder = image(cycled, tmp_path / "repo")
    path, kept = file_of(folder), arrays_of(folder)
    file_of(folder).unlink()
    anew = asked(folder).of
    whole = (cycled / "models" / "clusters.npz").read_bytes()
    for wrong in (b"", b"nonsense", whole[:-30], whole.replace(b"\x00", b"\x01")):
        path.write_bytes(wrong)
        np.testing.assert_array_equal(asked(folder).of, anew)
    wrongs: list[dict[str, np.ndarray]] = [
        {"version": np.array("0.0.0")},
        {"upto": np.array(10**6)},
        {"last": np.zeros((3, 1))},
        {"page": np.zeros(10**4, np.int32)},
    ]
    for head in wrongs:
        write_arrays(path, {**kept, "page": kept["page"] * 0, **head})
        np.testing.assert_array_equal(asked(folder).of, anew)
    write_arrays(path, {**kept, "page": kept["page"] * 0})
    assert (asked(folder).of == 0).sum() > (anew == 0).sum(), "else the above says nothing"


def test_built_anew_when_the_pages_have_doubled(cycled: Path, tmp_path: Path) -> None:
    folder = image(cycled, tmp_path / "repo")
    kept, path = arrays_of(folder), file_of(folder)
    pages = ask(folder, "SELECT count(*) FROM pages WHERE version >= 0 AND state IN (0, 1, 2)")[0][0]
    nonsense = {**kept, "page": np.zeros(len(kept["page"]), np.int32)}
    write_arrays(path, {**nonsense, "from": np.array(pages // 2 + 1)})
    kept_up = asked(folder).of
    write_arrays(path, {**nonsense, "from": np.array(pages // 2)})
    built = asked(folder).of
    path.unlink()
    np.testing.assert_array_equal(built, asked(folder).of)
    assert (kept_up == 0).sum() > (built == 0).sum()


def test_a_body_that_is_lost_says_nothing(cycled: Path, tmp_path: Path) -> None:
    folder = image(cycled, tmp_path / "repo")
    file_of(folder).unlink()
    for warc in (folder / "archive").iterdir():
        warc.write_bytes(b"")
    of = asked(folder).of
    assert (of >= 0).sum() > 30


def test_a_repository_without_pages(bench: Bench, tmp_path: Path) -> None:
    folder = bench.create(tmp_path / "repo")
    assert asked(folder).of.tolist() == []
    assert bench.cycle(folder, _POLICY, 5).finished


def test_why_builds_clusters_for_itself_and_writes_nothing(bench: Bench, cycled: Path, tmp_path: Path) -> None:
    folder = image(cycled, tmp_path / "repo")
    file_of(folder).unlink()
    repo = Repo(folder)
    repo.config(policy=_POLICY)
    told = repo.json("why", bench.seeds[0])
    assert told["plan"]["policy"] == _POLICY
    assert told["plan"]["visitable"] is True
    assert not file_of(folder).exists()
