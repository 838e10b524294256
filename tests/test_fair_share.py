"""No site takes what belongs to the others: rights, claims, and what honest sites keep beside an adversary."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.choose.budget.fair import Division, claims, site_share
from recrawl.choose.papers.round_robin import RoundRobin
from recrawl.cluster.commands.planning import MemoryJournal
from recrawl.cluster.cycle_coordinator import CycleCoordinator
from recrawl.cluster.shard_rounds import part_of_shard
from recrawl.columns import DAY
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.replays.metrics import Record
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.synth.adversaries import with_adversary
from recrawl.loop import drive
from recrawl.model import Outcome, Outcomes, Picks
from recrawl.record.store.postgres.cluster.runs import RunRow
from recrawl.testing.books import random_book
from tests.world import Asked, Reply, Repo, Site, page, sitemap

PAGES, BUDGET = 150, 30


def honest(days: int, *, every: tuple[float, float] = (2, 11), sites: int = 1, seed: int = 0) -> History:
    """Sites whose pages change every so many days."""
    rng = np.random.default_rng(seed)
    urls = [f"https://honest{site}.example/{number}" for site in range(sites) for number in range(PAGES)]
    times = []
    for _ in urls:
        pause = rng.uniform(*every)
        times.append(np.concatenate(([0.0], np.arange(rng.uniform(0, pause), days + 1, pause) * DAY)))
    pages = np.repeat(np.arange(len(urls)), list(map(len, times)))
    return assemble(urls, pages, np.concatenate(times), np.arange(len(pages)), change="text", carries=frozenset())


def ran(history: History, share: str, *, budget: int = BUDGET, days: int = 60, policy: str = "shock") -> Record:
    setup = Setup(budget=budget, cycle=DAY, cycles=days, samples=1, site_share=share)
    return replay(history, make_policy(policy), setup)


# -- what an honest site keeps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "kept"), [((2, 11), 0.95), ((20, 60), 0.65)])
def test_an_honest_site_keeps_its_finds_beside_one_that_rewrites_everything(
    every: tuple[float, float], kept: float
) -> None:
    alone = honest(60, every=every)
    beside = with_adversary(alone, "rewriting")
    own = ran(alone, "auto", budget=BUDGET // 2).site_found[0]
    assert ran(beside, "auto").site_found[0] >= kept * own
    assert ran(beside, "1").site_found[0] < 0.2 * own


@pytest.mark.parametrize("seed", [0, 1])
def test_two_sites_of_the_same_size_share_the_visits(seed: int) -> None:
    beside = with_adversary(honest(60, seed=seed), "rewriting")
    visits = ran(beside, "auto").site_visits
    assert visits[0] >= 0.45 * visits.sum()
    assert visits.sum() == 60 * BUDGET


@pytest.mark.parametrize(
    "policy", ["greedy", "change-frequency", "frequency-greedy", "optimal-age", "round-robin", "adaptive-sampling"]
)
def test_under_every_policy_an_honest_site_keeps_its_part(policy: str) -> None:
    alone = honest(60)
    beside = with_adversary(alone, "rewriting")
    record = ran(beside, "auto", policy=policy)
    own = ran(alone, "auto", budget=BUDGET // 2, policy=policy).site_found[0]
    assert record.site_found[0] >= 0.95 * own
    assert record.site_visits[0] >= 0.45 * record.site_visits.sum()
    assert record.visits.sum() == 60 * BUDGET


@pytest.mark.parametrize("kind", ["rewriting", "many", "farm"])
def test_honest_sites_keep_their_finds_however_many_hosts_rewrite(kind: str) -> None:
    alone = honest(40, sites=2)
    own = int(ran(alone, "auto", budget=20, days=40).found.sum())
    beside = ran(with_adversary(alone, kind, PAGES), "auto", days=40)
    assert beside.site_found[:2].sum() >= 0.95 * own


# -- where the share does not bind ------------------------------------------------------------------------------


def test_a_single_site_is_not_limited() -> None:
    history = honest(20)
    for policy in ("shock", "greedy"):
        free, fair = (ran(history, share, days=20, policy=policy) for share in ("1", "auto"))
        assert fair.found.tolist() == free.found.tolist()


def test_nothing_is_claimed_while_no_site_would_exceed_its_right() -> None:
    book = Book.blank(60, now=100 * DAY)
    book.site[20:] = 1
    book.visits[:], book.changes[:] = 4, 2
    book.last_change[:] = book.last_visit[:] = book.last_try[:] = 90 * DAY
    found = claims(book, 12, RoundRobin())
    assert found.wished.round(6).tolist() == found.right.round(6).tolist() == [4.0, 8.0]
    assert not found.reserved.any()


def test_nothing_is_claimed_where_the_budget_reaches_for_all() -> None:
    book = random_book(np.random.default_rng(1))
    assert not claims(book, len(book), RoundRobin()).reserved.any()


def test_claims_are_the_same_when_a_cycle_is_resumed() -> None:
    book = random_book(np.random.default_rng(2))
    first, again = (claims(book, 5, RoundRobin()) for _ in range(2))
    assert first.reserved.tolist() == again.reserved.tolist()
    assert first.reserved.sum() <= 6


def test_urls_without_end_have_no_end_of_rights() -> None:
    book = Book.blank(1000, now=100 * DAY)
    book.site[20:] = 1
    book.visits[:40] = 3
    assert claims(book, 60, RoundRobin()).right.tolist() == [20.0, 40.0]


def test_hosts_of_a_page_each_do_not_take_what_belongs_to_other_small_sites() -> None:
    """All have a right to less than a visit; those of a farm have had one in every cycle."""
    book = Book.blank(400, now=100 * DAY)
    book.site[:] = np.arange(400)
    farm = np.arange(400) < 100
    book.visits[:], book.changes[:] = np.where(farm, 90, 12), np.where(farm, 90, 6)
    book.last_visit[:] = book.last_try[:] = 97 * DAY
    book.last_change[:] = np.where(farm, 99, 50) * DAY
    found = claims(book, 80, RoundRobin())
    assert found.wished[farm].sum() > 60
    assert found.right[farm].sum() == pytest.approx(20)
    assert found.reserved[~farm].sum() >= 55


@pytest.mark.parametrize("text", ["0", "2", "-1", "most", "nan"])
def test_a_share_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="use auto, equal, or a share"):
        site_share(text)


# -- in a cluster -------------------------------------------------------------------------------------------------


def of_sites(*hostile: bool, pages: int = 60, seed: int = 1) -> Book:
    """A book of sites, some of which were rewritten between any two visits; of the others, some pages have changed."""
    rng = np.random.default_rng(seed)
    book = Book.blank(pages * len(hostile), now=100 * DAY)
    book.site[:] = np.repeat(np.arange(len(hostile)), pages)
    wild = np.array(hostile)[book.site]
    book.visits[:] = 12
    book.changes[:] = np.where(wild, 12, rng.integers(2, 9, len(book)))
    book.last_visit[:] = book.last_try[:] = rng.uniform(93, 99, len(book)) * DAY
    book.last_change[:] = np.where(wild, book.last_visit, rng.uniform(10, 60, len(book)) * DAY)
    return book


def visited(policy: str, books: list[Book], budget: int, *, division: Division | None = "auto") -> list[list[int]]:
    """The pages that each shard of a cluster visits, as it plans them: in memory, a thread for each."""
    journal, shards = MemoryJournal(), len(books)
    run = RunRow(1, "cycle", policy, budget, 3, "", "{}", 0.0, 0.0, None, False, budget, False)
    coordinator = CycleCoordinator(journal, run, shards, late=math.inf)
    pages = {shard: len(book) for shard, book in enumerate(books)}

    def make(shard: int) -> list[int]:
        part = part_of_shard(journal, 1, shard, shards, pages, journal.wait)
        inner, commons = part.chooser(make_policy(policy), 0, lambda: None, division)
        chooser, seen = Budgeted(inner, Allowance(), commons=commons), list[int]()
        wild = books[shard].changes == books[shard].visits
        world = Answers(lambda page: bool(wild[page]) or page % 3 == 0)
        for some in drive(chooser, world, books[shard], budget, seed=3):
            seen += some.pages.tolist()
        return seen

    with ThreadPoolExecutor(shards) as pool:
        making = [pool.submit(make, shard) for shard in range(shards)]
        while not all(one.done() for one in making):
            done = {shard for shard, one in enumerate(making) if one.done()}
            if not coordinator.step(set(range(shards)), done):
                journal.wait()
        return [one.result() for one in making]


class Answers:
    """A world in which some pages have changed."""

    def __init__(self, changed: Callable[[int], bool]) -> None:
        self._changed = changed

    def visit(self, picks: Picks) -> Outcomes:
        what = [Outcome.CHANGED if self._changed(page) else Outcome.UNCHANGED for page in picks.pages.tolist()]
        return Outcomes(picks.pages, np.array(what, np.int8))


@pytest.mark.parametrize("policy", ["shock", "round-robin"])
def test_a_cluster_of_one_shard_chooses_as_a_repository(policy: str) -> None:
    book, budget = of_sites(True, False, False), 24
    found = claims(book, budget, make_policy(policy))
    chooser = Budgeted(make_policy(policy), Allowance(), reserved=found.reserved, hope=found.hope)
    wild = book.changes == book.visits
    world = Answers(lambda page: bool(wild[page]) or page % 3 == 0)
    alone = [
        page for some in drive(chooser, world, of_sites(True, False, False), budget, seed=3) for page in some.pages
    ]
    assert visited(policy, [of_sites(True, False, False)], budget) == [alone]
    assert policy != "shock" or found.reserved.any()


@pytest.mark.parametrize("hostile", [((True, False), (False, False)), ((True, False), (True, False), (True, False))])
def test_sites_of_all_shards_keep_their_share(hostile: tuple[tuple[bool, ...], ...]) -> None:
    """However the hostile sites lie in shards, the others get what they get in one repository."""
    budget = 24 * len(hostile)
    books = [of_sites(*sites, seed=shard) for shard, sites in enumerate(hostile)]
    made = visited("shock", books, budget)
    free = visited(
        "shock", [of_sites(*sites, seed=shard) for shard, sites in enumerate(hostile)], budget, division=None
    )
    assert sum(map(len, made)) == sum(map(len, free)) == budget

    def honest(visits: list[list[int]]) -> int:
        return sum(not sites[page // 60] for sites, pages in zip(hostile, visits, strict=True) for page in pages)

    part = sum(not one for sites in hostile for one in sites) / sum(map(len, hostile))
    assert honest(free) < 0.5 * part * budget
    assert honest(made) >= 0.9 * part * budget


def test_claims_of_shards_add_up_to_those_of_all_sites() -> None:
    hostile = (True, False, False, True, False, False)
    whole = of_sites(*hostile)
    parts = [whole.part(np.flatnonzero(whole.site % 2 == rest)) for rest in (0, 1)]
    columns: list[list[np.ndarray]] = [[], [], []]
    for known in range(4):  # each pass knows one exchange more
        found = []
        for part in parts:

            def total(exchange: int, own: np.ndarray, known: int = known) -> np.ndarray:
                if exchange == known:
                    columns[exchange].append(own)
                return np.sum(columns[exchange], axis=0) if exchange < known else own

            found.append(claims(part, 36, RoundRobin(), total=total))
    together = claims(whole, 36, RoundRobin())
    assert np.array([one.right for one in found]).T.ravel().round(6).tolist() == together.right.round(6).tolist()
    assert np.array([one.wished for one in found]).T.ravel().round(6).tolist() == together.wished.round(6).tolist()
    assert abs(sum(int(one.reserved.sum()) for one in found) - together.reserved.sum()) <= 2
    assert all(abs(one.common - together.common) <= 2 for one in found)


# -- live ---------------------------------------------------------------------------------------------------------


def test_thirty_days_beside_a_site_that_is_rewritten_for_every_visit(repo: Repo, site: Callable[..., Site]) -> None:
    """The whole way: visits, commits, the next plan, and what `status` and `why` say."""
    paths = ["/", *(f"/{number}" for number in range(1, 30))]
    visits = count()

    def calm(asked: Asked) -> bytes:
        number = paths.index(asked.path)
        edition = int((repo.ahead / DAY + number) / (2 + 9 * number / len(paths)))
        return page(f"Report {number}. " + " ".join(f"word{number}x{edition}x{part}" for part in range(40)), *paths)

    def wild(asked: Asked) -> bytes:
        return page(" ".join(f"w{next(visits)}" for _ in range(40)) + asked.path, *paths)

    both = site(dict.fromkeys(paths, calm)), site(dict.fromkeys(paths, wild))
    for one in both:
        repo.crawl(one.url())
        one.forget()
    for _ in range(30):
        repo.later(days=1)
        repo.cycle(6)
    quiet, loud = (len(one.asked()) for one in both)
    assert quiet + loud == 180
    assert quiet >= 0.33 * (quiet + loud)  # its share, but for the days in which nothing has changed yet
    held = repo.json("status")["spending"]["held"]
    assert [row["site"] for row in held] == [both[1].url().rstrip("/")]
    assert "is held to its share (3 visits a cycle, 3 by right)" in repo.run("status").out
    told = [repo.json("why", both[1].url(path))["why"] for path in paths]
    assert any("its site is held to its share" in sentence for sentences in told for sentence in sentences)


def test_the_setting_takes_words_and_numbers(repo: Repo) -> None:
    for value in ("0.5", "equal", "auto"):
        repo.run("config", "site_share", value)
        assert value in repo.run("config", "site_share").out
    (repo.folder / "recrawl.toml").write_text("[settings]\nsite_share = 0.25\n")  # as it was written before
    assert "0.25" in repo.run("config", "site_share").out
    assert "use auto, equal" in repo.run("config", "site_share", "7", code=None).err


# -- discovery ----------------------------------------------------------------------------------------------------


def endless(host: str, sitemaps: int) -> Callable[[Asked], Reply | None]:
    """A site with so many nested sitemaps, of a calendar without end."""

    def answer(asked: Asked) -> Reply:
        number = int("".join(filter(str.isdigit, asked.path)) or 0)
        if asked.path == "/sitemap.xml":
            nested = "".join(f"<sitemap><loc>{host}/part{part}.xml</loc></sitemap>" for part in range(sitemaps))
            return Reply(f"<sitemapindex>{nested}</sitemapindex>".encode(), kind="application/xml")
        if asked.path.startswith("/part"):
            return sitemap(f"{host}/day{number * 7}")
        words = " ".join(f"w{number}x{part}" for part in range(30))
        return Reply(page(f"Day {number}: {words}", f"/day{number + 1}"))

    return answer


def test_nested_sitemaps_and_calendars_delay_others_by_their_turn_only(repo: Repo) -> None:
    """Requests are counted, not seconds: until the honest site has got all of its own, the other gets about as many."""
    paths = ["/", *(f"/{number}" for number in range(12))]
    with Site({path: page(f"Report {path}", *paths) for path in paths}) as honest, Site() as wild:
        wild.every = endless(wild.url().rstrip("/"), 10_000)
        repo.config(delay=0.01)
        repo.add(wild.url(), "--limit", 40)
        repo.crawl(wild.url(), honest.url())
        own = [asked.at for asked in honest.log if asked.path in paths]
        assert {asked.path for asked in honest.log} >= set(paths)
        assert sum(asked.at <= own[-1] for asked in wild.log) <= 4 * len(honest.log)
        for site in (honest, wild):
            site.forget()
        repo.later(days=2)
        repo.cycle(20)
        first = min(asked.at for asked in honest.log if asked.path in paths)
        before = [asked.path for asked in wild.log if asked.at < first]
        assert len([path for path in before if path.startswith("/part")]) <= 50
        parts = {asked.path for asked in wild.log if asked.path.startswith("/part")}
        wild.forget()
        repo.later(days=2)
        repo.cycle(5)
        assert not parts & {asked.path for asked in wild.log}, "sitemaps without dates take turns"


# -- frames ---------------------------------------------------------------------------------------------------------


def test_a_site_that_copies_the_lines_of_another_does_not_make_them_noise(repo: Repo) -> None:
    """Lines that stand on every page of one site are its frame; on another site, they are content."""
    paths = ["/", *(f"/{number}" for number in range(14))]
    own = {
        path: f"Report {path} " + " ".join(f"own{index}x{part}" for part in range(12))
        for index, path in enumerate(paths)
    }
    links = "".join(f"<a href='{path}'>{path}</a>" for path in paths)

    def html(*lines: str) -> bytes:
        return f"<html><body>{''.join(f'<p>{line}</p>' for line in lines)}{links}</body></html>".encode()

    news = "The bridge is closed for repair from Monday on, says the harbour office"
    with Site({path: html(own[path]) for path in paths}) as honest, Site() as copy:
        copy.pages |= {path: html(f"Copy of {path}", *own.values(), news) for path in paths}
        repo.crawl(honest.url(), copy.url())
        for _ in range(2):  # what the copy repeats on all of its pages changes again and again, as noise does
            repo.later(days=1)
            copy.pages |= {path: html(f"Copy of {path}", *own.values(), news, f"{repo.ahead}") for path in paths}
            repo.cycle(100, "--policy", "round-robin")
        repo.later(days=1)
        honest["/3"] = html(own["/3"], news)
        repo.cycle(100, "--policy", "round-robin")
        assert repo.outcomes(honest.url("/3"))[-1] == "changed"
        diff = repo.run("diff", honest.url("/3")).out
        assert "bridge" in diff
