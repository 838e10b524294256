"""Shards: where a site is placed, what shards offer, and the threshold that follows from all offers.

That every policy which can be split keeps its choices on one shard, and its budget on several, is checked with its
other laws (`test_policies`).
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl import lab
from recrawl.book import Book, Hints
from recrawl.choose import POLICIES, make_policy
from recrawl.choose.protocol import Choice, Chooser, Policy
from recrawl.choose.shards.offers import Coordinator, Offer, RankedPages, keys_of, settle
from recrawl.choose.shards.placement import VIRTUAL_SHARDS, shard_of, virtual_shard
from recrawl.choose.shards.rounds import Sharded, by_domain, why_one_shard
from recrawl.choose.shock.plan import Objective
from recrawl.choose.shock.policy import Shock
from recrawl.discover.registrable_domains import registrable_domain
from recrawl.errors import UsageError
from recrawl.lab.histories.history import assemble
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.learn.shocks.new_pages import GRID, hits, note_hits
from recrawl.learn.shocks.pooling import evidence, with_evidence
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks
from tests.world import command

DAY = 86400.0
worths = st.lists(st.floats(-1e9, 1e9, width=32), max_size=30).map(lambda numbers: np.array(sorted(numbers)[::-1]))


# -- placement ---------------------------------------------------------------------------------------------------


def test_hosts_of_one_owner_are_in_one_shard() -> None:
    hosts = ("news.example.co.uk", "www.example.co.uk:8443", "EXAMPLE.co.uk.", "example.co.uk:80")
    assert {shard_of(registrable_domain(host), 64) for host in hosts} == {shard_of("example.co.uk", 64)}


def test_owners_below_a_public_suffix_are_told_apart() -> None:
    assert registrable_domain("a.github.io") != registrable_domain("b.github.io")
    assert registrable_domain("[::1]:80") == "[::1]"
    assert registrable_domain("localhost:8000") == "localhost"


def test_placement_never_changes() -> None:
    """Stored shards depend on it."""
    domains = ("example.org", "example.com", "bücher.example", "127.0.0.1")
    assert [virtual_shard(domain) for domain in domains] == [437, 614, 216, 652]


@given(st.text(max_size=20), st.sampled_from([1, 2, 4, 8, 256, 512]))
def test_twice_as_many_shards_split_each_in_two(domain: str, shards: int) -> None:
    assert shard_of(domain, 2 * shards) // 2 == shard_of(domain, shards)


def test_shards_get_about_as_many_sites() -> None:
    shards = np.bincount([shard_of(f"site{number}.example", 8) for number in range(8000)], minlength=8)
    assert shards.min() > 850
    assert shards.max() < 1150


@pytest.mark.parametrize("shards", [0, -1, VIRTUAL_SHARDS + 1])
def test_an_invalid_number_of_shards_is_an_error(shards: int) -> None:
    with pytest.raises(UsageError, match="number of shards"):
        shard_of("example.org", shards)


# -- offers ------------------------------------------------------------------------------------------------------


@given(worths)
def test_keys_have_the_order_of_the_worth(worth: np.ndarray) -> None:
    keys = keys_of(worth)
    assert (np.diff(keys) <= 0).all()
    assert (keys_of(worth, np.ones(len(worth), bool)) < keys.min(initial=0)).all()


@given(st.lists(worths, min_size=1, max_size=6), st.integers(0, 80))
def test_quotas_add_up_and_no_better_page_is_left_out(shards: list[np.ndarray], count: int) -> None:
    cuts = settle([Offer(worth) for worth in shards], count)
    taken = [
        RankedPages(np.arange(len(worth)), worth, "x").take_at(*cut) for worth, cut in zip(shards, cuts, strict=True)
    ]
    assert [len(picks) for picks in taken] == [cut.quota for cut in cuts]
    assert sum(map(len, taken)) == min(count, sum(map(len, shards)))
    left = np.concatenate([keys_of(worth[len(picks) :]) for worth, picks in zip(shards, taken, strict=True)])
    chosen = np.concatenate([keys_of(picks.score) for picks in taken])
    assert not len(left) or not len(chosen) or left.max() <= chosen.min()


@given(worths, st.integers(0, 40))
def test_one_shard_takes_its_first_pages(worth: np.ndarray, count: int) -> None:
    (cut,) = settle([Offer(worth)], count)
    assert RankedPages(np.arange(len(worth)), worth, "x").take_at(*cut).pages.tolist() == list(range(cut.quota))


def test_another_process_gets_the_histogram_alone() -> None:
    offer = Offer(np.random.default_rng(1).random(100_000))
    sent = pickle.dumps(offer)
    assert len(sent) < 30_000
    assert settle([pickle.loads(sent), offer], 500) == settle([offer, offer], 500)


def test_a_bin_at_the_threshold_is_divided_by_pages() -> None:
    offers = [Offer(np.full(pages, 0.5)) for pages in (100, 300, 0, 600)]
    assert [cut.quota for cut in settle(offers, 10)] == [1, 3, 0, 6]


def test_pages_that_wait_come_after_the_others_of_all_shards() -> None:
    waiting = RankedPages(np.arange(2), np.array([9.0, 8.0]), "x", later=np.array([False, True]))
    other = RankedPages(np.arange(2), np.array([0.1, 0.01]), "x")
    assert [cut.quota for cut in settle([waiting.offer(), other.offer()], 3)] == [1, 2]


def as_ranked(power: np.ndarray, later: np.ndarray, reach: int) -> RankedPages:
    """Pages in the order of `ShockPlan.best`, each in a bin of its own; the score is the power."""
    order = np.lexsort((-power, later))
    return RankedPages(power[order], 2.0 ** power[order], "x", power[order].astype(float), later[order], reach)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), st.integers(0, 45), st.integers(1, 45))
def test_pages_wait_for_others_within_the_reach_of_all_shards(pages: list[Any], count: int, more: int) -> None:
    """As on one shard: first those that do not wait of the best pages, then the others of the best pages."""
    shard, later = np.array(pages, np.int64).reshape(-1, 2).T
    power, reach = np.arange(len(pages)), count + more
    within = power[::-1][:reach]
    expected = within[np.argsort(later[within], kind="stable")][:count]
    parts = [as_ranked(power[shard == n], later[shard == n] == 1, reach) for n in range(4)]
    cuts = settle([Offer.decoded(part.offer().encoded()) for part in parts], count)
    taken = [part.take_at(*cut).pages.tolist() for part, cut in zip(parts, cuts, strict=True)]
    assert sorted(page for some in taken for page in some) == sorted(expected.tolist())
    left = [part.offer().without_best(cut) for part, cut in zip(parts, cuts, strict=True)]
    assert [len(offer) for offer in left] == [
        len(part.pages) - len(some) for part, some in zip(parts, taken, strict=True)
    ]


def test_a_batch_is_as_varied_over_shards_as_without() -> None:
    """A large group of likely pages fills a batch before far less likely pages of other groups, wherever these are."""
    book, policy = many_sites(4, 200), Shock(explore=0, probe=0, patience=0, curiosity=0, batches=1)
    book.last_visit[book.site > 0] = book.now - DAY / 2
    assert visits_by_site(policy, book, 12) == [12, 0, 0, 0]
    assert visits_by_site(Sharded(policy, range(4), 4), book, 12) == [12, 0, 0, 0]


def test_an_old_offer_takes_nothing_below_the_new_threshold() -> None:
    candidates = RankedPages(np.arange(4), np.array([8.0, 4.0, 2.0, 1.0]), "x")
    assert candidates.take_at(int(keys_of(np.array([3.0]))[0]), 4).pages.tolist() == [0, 1]


# -- policies over shards ----------------------------------------------------------------------------------------


def test_every_policy_can_be_split_or_says_why_not() -> None:
    whole = {name for name, kind in POLICIES.items() if why_one_shard(kind())}
    assert whole == {
        *("adaptive-sampling", "anchor-depth", "explore", "frequency-adaptive", "frequency-greedy", "greedy"),
        *("grouped", "lambda-crawl", "marginalia", "predicted", "proportional", "sampling"),
    }
    assert not why_one_shard(make_policy("explore(order=breadth)"))


def test_a_policy_that_cannot_be_split_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="greedy runs on one shard only, because it divides the budget"):
        Sharded(make_policy("greedy"), [0, 1], 2)


class Rebuilt:
    """A world in which all pages of one site have changed."""

    def __init__(self, book: Book, site: int) -> None:
        self.changed = book.site == site
        self.visits = np.zeros(len(book), np.int64)

    def visit(self, picks: Picks) -> Outcomes:
        self.visits[picks.pages] += 1
        what = np.where(self.changed[picks.pages], Outcome.CHANGED, Outcome.UNCHANGED)
        return Outcomes(picks.pages, what.astype(np.int8))


def many_sites(sites: int, pages: int) -> Book:
    book = Book.blank(sites * pages, now=30 * DAY)
    book.site[:] = np.arange(sites * pages) // pages
    book.form = book.site.astype(np.int64)
    book.visits[:] = book.changes[:] = 1
    book.last_visit[:] = book.last_try[:] = 29 * DAY
    book.memory |= {f"{prefix}shock.times": np.arange(30.0) for prefix in ("", *(f"shard {n}/" for n in range(sites)))}
    return book


def visits_by_site(policy: Chooser, book: Book, budget: int) -> list[int]:
    world = Rebuilt(book, -1)
    list(drive(policy, world, book, budget, seed=1))
    return [int(world.visits[book.site == site].sum()) for site in range(book.sites)]


def test_the_budget_follows_a_rebuilt_site_to_its_shard() -> None:
    book = many_sites(8, 50)
    alone, divided = Rebuilt(book, 5), Rebuilt(book, 5)
    policy = Shock(explore=0)
    list(drive(policy, alone, book, 60, seed=1))
    list(drive(Sharded(policy, np.arange(8) % 4, 4), divided, book, 60, seed=1))
    found = [int(world.visits[world.changed].sum()) for world in (alone, divided)]
    assert min(found) > 40, found  # without what visits tell of their group, a site gets 8 of 60


def test_probes_and_overdue_pages_are_counted_over_all_shards() -> None:
    """By its own pages alone, each of eight shards would take eight times the probes, and find no page overdue."""
    book = many_sites(8, 50)
    book.last_visit[:], book.last_try[:] = 1 * DAY, 1 * DAY
    book.last_try[7::50], book.last_visit[7::50] = -900 * DAY, -900 * DAY
    reasons = []
    for policy in (Shock(), Sharded(Shock(), range(8), 8)):
        picked: dict[str, int] = {}
        choice = policy.cycle(book, 40, np.random.default_rng(1))
        picks = next(choice)
        try:
            while True:
                picked[picks.reason] = picked.get(picks.reason, 0) + len(picks)
                picks = choice.send(Outcomes(picks.pages, np.zeros(len(picks), np.int8)))
        except StopIteration:
            pass
        reasons.append({reason: number for reason, number in picked.items() if "gain" not in reason})
    assert reasons[0] == reasons[1]
    assert len(reasons[0]) == 2


@pytest.mark.parametrize("column", ["weight", "cost"])
@pytest.mark.parametrize("objective", ["changes", "freshness", "age"])
def test_weights_and_costs_count_between_shards_that_are_even_within(objective: Objective, column: str) -> None:
    book, policy = many_sites(4, 20), Shock(objective=objective, explore=0, probe=0, patience=0)
    high, low = (3.0, 1 / 3) if column == "weight" else (1 / 3, 3.0)
    setattr(book, column, np.where(book.site == 2, high, low))
    divided = visits_by_site(Sharded(policy, range(4), 4), book, 8)
    assert divided == visits_by_site(policy, book, 8)
    assert divided[2] > 3


def test_hints_count_between_shards() -> None:
    """A source that proved right in one shard moves its pages before those of the other shards."""
    for split in (False, True):
        book = many_sites(4, 20)
        policy: Policy = Shock(explore=0, probe=0, patience=0)
        policy = Sharded(policy, range(4), 4) if split else policy
        signals = np.zeros((1, 80), np.int16)
        signals[0, 40:55] = 1
        book.hints = Hints(("lastmod",), signals, np.full((1, 80), 29.5 * DAY), np.full((1, 80), book.now))
        pages = np.arange(40, 60)
        note(policy, book, Outcomes(pages, (pages < 55).astype(np.int8)), np.full(20, book.now))
        book.now += DAY
        book.hints = Hints(("lastmod",), signals, np.full((1, 80), book.now), np.full((1, 80), book.now))
        assert visits_by_site(policy, book, 1) == [0, 0, 1, 0]


def test_what_shards_learn_of_all_sites_adds_up() -> None:
    """How often visits find a change is forgotten by the visits of all shards, not by those of one."""
    changed = np.random.default_rng(1).random(600) < 0.4
    whole: dict[str, Any] = {}
    shards: list[dict[str, Any]] = [{} for _ in range(4)]
    for cycle in np.split(changed, 6):
        note_hits(whole, cycle)
        for shard, memory in enumerate(shards):
            note_hits(memory, cycle[shard::4], share=1 / 4)
    total = sum(hits(memory) for memory in shards)
    np.testing.assert_allclose(total, hits(whole), rtol=0.03)


def test_a_shard_begins_from_the_evidence_of_all() -> None:
    book = many_sites(2, 4)
    learned = np.arange(6.0 * len(GRID)).reshape(2, 3, len(GRID))
    book.memory["shock.new_pages.logs"] = learned
    book.memory["shock.prior"] = np.array([[0.0, -1.0, 2.0], [0.0, 0.0, 0.0]])
    own = evidence(book)
    assert with_evidence(book, own) is book, "there are no others"
    pooled = with_evidence(book, 3 * own)
    np.testing.assert_allclose(pooled.memory["shock.new_pages.others"], 2 * learned.sum(axis=0))
    assert pooled.memory["shock.prior.others"].sum() == pytest.approx(2)
    assert book.memory.keys() < pooled.memory.keys()


def test_what_visits_find_counts_by_visits_and_not_by_pages() -> None:
    """Nine in ten visits go to a tenth of the pages, and find far more than those of the other shard."""
    books = [replace(many_sites(1, 10), share=0.1), replace(many_sites(1, 90), share=0.9)]
    for book, visits, found in zip(books, (900, 100), (0.8, 0.1), strict=True):
        book.memory["shock.by_site.tries"] = np.array([[0, visits]])
        note_hits(book.memory, np.random.default_rng(1).random(visits) < found, book.share)
    total = evidence(books[0]) + evidence(books[1])
    for book in books:
        visits, changed = with_evidence(book, total).memory["shock.hits"]
        assert changed / visits == pytest.approx(0.73, abs=0.05)


def test_a_shard_without_pages_does_no_harm() -> None:
    book = many_sites(2, 20)
    world = Rebuilt(book, 0)
    list(drive(Sharded(Shock(), [1, 3], 5), world, book, 10, seed=1))
    assert world.visits.sum() == 10


# -- late shards -------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.tuples(worths, st.booleans()), min_size=3, max_size=3), max_size=8), st.integers(1, 60))
def test_rounds_with_late_shards_keep_the_budget(steps: list[Any], budget: int) -> None:
    coordinator, taken = Coordinator(3, budget), 0
    for step in steps:
        offers = {shard: Offer(worth) for shard, (worth, late) in enumerate(step) if not late}
        cuts = coordinator.settle("batch", 10, offers)
        assert cuts.keys() == offers.keys()
        for shard, cut in cuts.items():
            worth = step[shard][0]
            used = len(RankedPages(np.arange(len(worth)), worth, "x").take_at(*cut))
            coordinator.give_back(cut.quota - used)
            taken += used
        assert taken + coordinator.left + sum(coordinator.owed().values()) == budget
        assert coordinator.left >= 0


def test_a_late_shard_takes_what_was_kept_for_it() -> None:
    coordinator = Coordinator(2, 100)
    good, poor = Offer(np.linspace(9, 5, 20)), Offer(np.linspace(2, 1, 20))
    assert coordinator.settle("batch", 4, {0: good, 1: poor})[0].quota == 4
    for _ in range(2):
        assert coordinator.settle("batch", 4, {1: poor})[1].quota == 0, "the pages of the late shard are worth more"
    assert coordinator.owed() == {0: 8}
    assert coordinator.settle("batch", 4, {0: good, 1: poor})[0].quota == 12
    assert coordinator.left == 100 - 16


def test_a_shard_that_misses_a_stage_gets_nothing_of_it() -> None:
    coordinator = Coordinator(2, 10)
    some = Offer(np.ones(5))
    coordinator.settle("new", 2, {0: some, 1: some})
    assert coordinator.settle("overdue", 4, {1: some})[1].quota == 4
    assert coordinator.owed() == {}


@pytest.mark.parametrize("policy", ["shock", "optimal-age"])
def test_late_shards_do_not_lose_the_budget(policy: str) -> None:
    book = many_sites(8, 50)
    split = Sharded(make_policy(policy), np.arange(8) % 4, 4, late=0.3)
    visited = [visits_by_site(split, book, 60) for _ in range(2)]
    assert visited[0] == visited[1]
    assert sum(visited[0]) == 60


# -- the lab -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def history_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shards") / "world.parquet"
    write(SyntheticWorld(seed=3, sites=6, pages=20, days=12, size_min=1500, size_max=2500, links=5), file)
    return file


@pytest.fixture(scope="module")
def history(history_file: Path) -> lab.History:
    return lab.History.read(history_file)


def test_the_lab_replays_over_shards(history: lab.History) -> None:
    one, four = (lab.replay(history, "shock", budget=0.05, cycles=8, shards=shards) for shards in (1, 4))
    assert four.shards == 4
    assert four.visits == one.visits
    assert four.found > 0.7 * one.found
    again = lab.replay(history, "shock", budget=0.05, cycles=8, shards=4)
    assert replace(again, seconds=four.seconds) == four


class Noted:
    """A policy that keeps the pages that it chooses, by cycle."""

    source = "test"

    def __init__(self, policy: Any) -> None:
        self.policy, self.name, self.needs = policy, policy.name, policy.needs
        self.chosen: list[set[int]] = []

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        choice = self.policy.cycle(book, budget, rng)
        self.chosen.append(set())
        picks = next(choice)
        try:
            while True:
                self.chosen[-1].update(picks.pages.tolist())
                picks = choice.send((yield picks))
        except StopIteration:
            return

    def learn(self, book: Book, seen: Outcomes, at: np.ndarray) -> None:
        self.policy.learn(book, seen, at)


def rebuilt_now_and_then(sites: int, days: int) -> lab.History:
    """Sites of 60 pages in two directories, each of which is rebuilt about every 40 days."""
    rng, pages = np.random.default_rng(1), sites * 60
    page, when = [np.arange(pages)], [np.zeros(pages)]
    for group in range(2 * sites):
        for moment in rng.random(rng.poisson(days / 40)) * days:
            members = group * 30 + np.flatnonzero(rng.random(30) < 0.8)
            page.append(members)
            when.append(np.full(len(members), moment))
    of, at = np.concatenate(page), np.concatenate(when)
    order = np.lexsort((at, of))
    urls = [f"https://s{n // 60}.example/{n // 30}/p{n}x.html" for n in range(pages)]
    return assemble(urls, of[order], at[order] * DAY, np.arange(len(of)), change="text", carries=frozenset())


def test_shards_choose_nearly_what_one_shard_chooses() -> None:
    """When each of eight shards searched its own best pages for variety, 0.47 of the choices were the same."""
    history, common = rebuilt_now_and_then(sites=40, days=12), []
    alone: Any = Noted(Shock(explore=0))
    replay(history, alone, Setup(budget=48, cycle=DAY, cycles=12, samples=1))
    for shards in (2, 8):
        divided: Any = Noted(Sharded(Shock(explore=0), np.arange(40) % shards, shards))
        replay(history, divided, Setup(budget=48, cycle=DAY, cycles=12, samples=1))
        pairs = zip(alone.chosen, divided.chosen, strict=True)
        common.append(sum(len(one & other) for one, other in pairs) / sum(map(len, alone.chosen)))
    assert min(common) > 0.8, common


def test_a_policy_that_cannot_be_split_is_replayed_on_one_shard(history: lab.History) -> None:
    result = lab.replay(history, "greedy", budget=0.05, cycles=3, shards=4)
    assert result.shards == 1
    assert result.found == lab.replay(history, "greedy", budget=0.05, cycles=3).found


def test_sites_are_placed_by_their_domains() -> None:
    split = by_domain(make_policy("shock"), ["example.org", "example.com"], 4)
    assert isinstance(split, Sharded)
    assert split.shard_of_site.tolist() == [shard_of("example.org", 4), shard_of("example.com", 4)]
    alone = make_policy("greedy")
    assert by_domain(alone, ["example.org"], 4) is alone


def test_the_command_line_replays_over_shards(history_file: Path) -> None:
    options = ("--policy", "round-robin", "--shards", 2, "--cycles", 2, "--no-cache", "--workers", 1, "--json")
    result = command("lab", "run", history_file, *options)
    assert json.loads(result.out)[0]["shards"] == 2, result.err
