"""Clusters of like pages (spec S4): laws of the cuts, the ranks, the features; what later pages get; odd input."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from recrawl.book import Clusters, LinkGraph
from recrawl.compare.terms import BUCKETS, hashed, hashed_addresses, stacked
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, assemble
from recrawl.lab.histories.opening import clusters_of
from recrawl.learn.structure.bisection import bisect, by_distance
from recrawl.learn.structure.clusters import PageClusters, cluster, how_many, packed, unpacked
from recrawl.learn.structure.page_features import PageFacts, learn_features, page_facts
from recrawl.learn.structure.topics import DIMENSIONS, find_topics

NEWS = "rain storm flood river warning minister vote coast wind snow"
CODE = "function compiler pointer class template loop branch merge commit build"
WORDS = 30


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def made(words: np.ndarray, seed: int = 1, *, tld: int = 3) -> PageFacts:
    """Facts with these words in text and address, everything else by chance."""
    pages, chance = len(words), rng(seed)

    def some(most: int) -> np.ndarray:
        return chance.integers(0, most, pages)

    counted = sparse.csr_array(words)
    return PageFacts(
        words=counted,
        url_words=counted,
        word_count=words.sum(axis=1).astype(np.int64),
        in_links=some(50),
        out_links=some(90),
        images=some(9),
        tld=some(tld),
        depth=some(5),
        size=some(99_999),
    )


def alike(pages: int) -> PageFacts:
    """Pages that do not differ in anything."""
    ones = np.ones(pages, np.int64)
    counted = sparse.csr_array(np.tile(np.arange(WORDS), (pages, 1)))
    return PageFacts(counted, counted, ones * 9, ones, ones, ones, ones, ones, ones)


def text_facts(
    urls: list[str], pages: list[tuple[str, int]], size: np.ndarray, links: LinkGraph | None = None
) -> PageFacts:
    """The facts of pages from their texts, each with its number of images."""
    links = links or LinkGraph(np.zeros(len(urls) + 1, np.int64), np.zeros(0, np.int32))
    return page_facts(
        urls,
        hashed(text for text, _ in pages),
        hashed_addresses(urls),
        images=np.array([images for _, images in pages]),
        in_links=np.bincount(links.target, minlength=len(urls)),
        out_links=np.diff(links.start),
        size=size,
    )


def two_kinds(pages: int) -> tuple[list[str], PageFacts, np.ndarray]:
    """News and code in turns, different in text, address and size."""
    chance, code = rng(5), np.arange(pages) % 2 == 1
    texts, urls = [], []
    for page in range(pages):
        vocabulary = (CODE if code[page] else NEWS).split()
        texts.append((" ".join(chance.choice(vocabulary, 60)) + " home about contact", 9 * int(not code[page])))
        urls.append(f"https://{'dev' if code[page] else 'paper'}.example/{'api/ref' if code[page] else 'day'}/{page}")
    size = np.where(code, 2_000, 90_000) + chance.integers(0, 500, pages)
    return urls, text_facts(urls, texts, size), code


def check(found: Clusters, pages: int) -> None:
    """Every page is in exactly one cluster; rows of `nearest` are permutations that begin with the cluster itself."""
    number = len(found.nearest)
    assert found.of.shape == (pages,)
    assert found.of.dtype == found.nearest.dtype == np.int32
    assert set(found.of.tolist()) == set(range(number))
    assert found.nearest[:, 0].tolist() == list(range(number))
    assert (np.sort(found.nearest, axis=1) == np.arange(number)).all()


bags = arrays.arrays(np.int64, st.tuples(st.integers(1, 40), st.just(WORDS)), elements=st.integers(0, 3))


@given(bags, st.integers(0, 99), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_clusters_partition_any_pages(words: np.ndarray, seed: int, per_cluster: int) -> None:
    facts = made(words, seed)
    built = cluster(facts, rng(seed), per_cluster=per_cluster)
    check(built.clusters, len(words))
    assert len(built.bisection) <= how_many(len(words), per_cluster)
    assert (built.assign(facts) == built.page).all()


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.floats(-5, 5)),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_a_bisection_has_no_empty_group_and_its_centroids_are_means(rows: np.ndarray, groups: int) -> None:
    cut = bisect(rows, groups, rng())
    check(Clusters(cut.of, cut.nearest), len(rows))
    assert 1 <= len(cut) <= min(groups, len(rows))
    for group in range(len(cut)):
        assert np.allclose(cut.centroids[group], rows[cut.of == group].mean(axis=0), atol=0.01)


@given(bags, bags, st.integers(0, 99), st.integers(1, 50))
@settings(max_examples=30, deadline=None)
def test_stored_clusters_give_the_same_results(
    words: np.ndarray, others: np.ndarray, seed: int, per_cluster: int
) -> None:
    built = cluster(made(words, seed), rng(seed), per_cluster=per_cluster)
    file, kept = io.BytesIO(), packed(built)
    np.savez(file, allow_pickle=False, **kept)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays_:
        again = unpacked(arrays_)
    later = made(others, seed + 1)
    assert np.array_equal(again.assign(later), built.assign(later))
    assert np.array_equal(again.page, built.page)
    assert np.array_equal(again.clusters.nearest, built.clusters.nearest)


def test_only_words_that_occur_are_stored() -> None:
    _, facts, _ = two_kinds(40)
    arrays_ = packed(cluster(facts, rng()))
    assert sum(array.nbytes for array in arrays_.values()) < 100_000
    assert int(arrays_["content width"]) == BUCKETS


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 4)), elements=st.floats(-5, 5)),
    st.integers(2, 10),
)
@settings(max_examples=40, deadline=None)
def test_a_row_is_assigned_the_same_alone_and_in_a_batch(rows: np.ndarray, groups: int) -> None:
    cut = bisect(rows, groups, rng())
    alone = [int(cut.assign(row[None])[0]) for row in rows]
    assert alone == cut.of.tolist() == cut.assign(rows).tolist()


def test_rows_that_differ_are_cut_as_often_as_asked() -> None:
    rows = np.repeat(np.arange(8.0) * 3, 5)[:, None]
    cut = bisect(rows, 8, rng())
    assert len(cut) == 8
    assert all(len(set(cut.of[rows[:, 0] == value])) == 1 for value in rows[:, 0])
    assert len(bisect(rows, 100, rng())) == 8


def test_the_nearest_groups_come_first() -> None:
    centroids = np.array([[0.0, 0], [10, 0], [1, 0], [0, 3]])
    assert by_distance(centroids)[0].tolist() == [0, 2, 3, 1]
    assert by_distance(np.zeros((3, 2)))[2, 0] == 2  # also where others are no further away than itself


@pytest.mark.parametrize("pages", [40, 400])
def test_different_kinds_are_separated(pages: int) -> None:
    _, facts, code = two_kinds(pages)
    built = cluster(facts, rng())
    shares = [code[built.page == group].mean() for group in range(len(built.bisection))]
    assert len(shares) > 1
    assert set(shares) == {0.0, 1.0}
    _, matrix = learn_features(facts, rng())
    side = bisect(matrix, 2, rng()).of  # the first cut is between the kinds
    assert np.array_equal(side == side[1], code)
    topic = find_topics(facts.words, rng()).bisection.of
    assert not set(topic[code]) & set(topic[~code])


def test_ranks_are_0_for_the_own_topic_and_grow_with_distance() -> None:
    _, facts, _ = two_kinds(400)
    topics = find_topics(facts.words, rng())
    topic, cut = topics.of(facts.words), topics.bisection
    ranks = topics.ranks(topic)
    largest = np.argsort(-np.bincount(topic), kind="stable")[:DIMENSIONS]
    assert ranks.shape == (400, DIMENSIONS)
    assert len(cut) > DIMENSIONS
    for dimension, label in enumerate(largest):
        assert set(ranks[topic == label, dimension]) == {0}
        assert (ranks[topic != label, dimension] > 0).all()
        apart = np.linalg.norm(cut.centroids - cut.centroids[label], axis=1)
        by_rank = apart[np.argsort([topics.rank[other, dimension] for other in range(len(cut))])]
        assert (np.diff(by_rank) >= -1e-3).all()


def test_features_are_scaled_and_bounded() -> None:
    facts = made(rng(2).poisson(0.4, (600, WORDS)), tld=40)
    features, matrix = learn_features(facts, rng())
    domains = len(features.domains)
    plain, one_hot = matrix[:, :-domains], matrix[:, -domains:]
    assert matrix.dtype == np.float32
    assert matrix.shape == (600, 2 * DIMENSIONS + 6 + domains)
    assert domains == 10
    assert np.allclose(plain.mean(axis=0), 0, atol=0.05)
    assert np.allclose(plain.std(axis=0), 1, atol=0.05)
    assert set(np.ptp(one_hot, axis=0).round(4)) == {1.0}
    assert np.abs(matrix).max() <= 5


def test_a_constant_column_has_no_effect() -> None:
    _, matrix = learn_features(alike(9), rng())
    assert not matrix.any()


def test_outliers_are_clipped() -> None:
    facts = alike(2_000)
    facts.images[7] = 10**6
    _, matrix = learn_features(facts, rng())
    assert matrix.max() == 5


def built_twice(seed: int) -> tuple[PageClusters, PageClusters]:
    facts = made(rng(3).poisson(0.3, (500, WORDS)))
    return cluster(facts, rng(seed)), cluster(facts, rng(seed))


def test_the_seed_determines_the_result() -> None:
    one, two = built_twice(4)
    assert np.array_equal(one.page, two.page)
    assert np.array_equal(one.bisection.centroids, two.bisection.centroids)
    assert not np.array_equal(one.page, built_twice(5)[0].page)


def test_the_generator_advances_equally_for_any_input() -> None:
    first, second = rng(), rng()
    bisect(np.zeros((4, 2)), 3, first)
    bisect(np.arange(8.0).reshape(4, 2), 3, second)
    assert first.random() == second.random()


def test_later_pages_join_similar_pages() -> None:
    _, facts, code = two_kinds(300)
    old, new = np.arange(200), np.arange(200, 300)
    built = cluster(facts.take(old), rng())
    found = built.assign(facts.take(new))
    kind = np.array([code[old][built.page == group].mean() for group in range(len(built.bisection))])
    assert (kind[found] == code[new]).all()
    assert len(built.page) == 200
    later = built.updated(new + 5, facts.take(new))
    assert later.page[200:205].tolist() == [-1] * 5
    assert later.page[205:].tolist() == found.tolist()
    assert np.array_equal(later.page[:200], built.page)
    assert later.clusters.nearest is built.clusters.nearest


def test_a_page_that_changes_kind_changes_cluster() -> None:
    _, facts, _ = two_kinds(200)
    built = cluster(facts, rng())
    changed = built.updated(np.array([0]), facts.take(np.array([1])))  # page 0 has become what page 1 is
    assert changed.page[0] == built.page[1] != built.page[0]
    assert np.array_equal(changed.page[1:], built.page[1:])
    assert np.array_equal(built.updated(np.zeros(0, np.int64), facts.take(np.zeros(0, np.int64))).page, built.page)


@pytest.mark.parametrize("pages", [1, 2, 3, 25])
def test_pages_that_are_all_the_same_are_one_cluster(pages: int) -> None:
    built = cluster(alike(pages), rng())
    check(built.clusters, pages)
    assert len(built.bisection) == 1
    other = made(rng().poisson(1.0, (4, WORDS)))
    assert built.assign(other).tolist() == [0] * 4


@pytest.mark.parametrize("pages", [1, 2, 5])
def test_fewer_pages_than_clusters(pages: int) -> None:
    built = cluster(made(rng().poisson(1.0, (pages, WORDS))), rng(), per_cluster=1)
    check(built.clusters, pages)
    assert len(built.bisection) <= pages


def test_no_pages_at_all() -> None:
    empty = made(np.zeros((0, WORDS), np.int64))
    built = cluster(empty, rng())
    assert len(built.page) == 0
    assert built.assign(made(np.ones((2, WORDS), np.int64))).tolist() == [0, 0]


def test_pages_without_text() -> None:
    facts = text_facts([f"http://a.example/{page}" for page in range(30)], [("", 0)] * 30, np.arange(30))
    assert facts.words.nnz == 0
    check(cluster(facts, rng()).clusters, 30)
    _, some, _ = two_kinds(60)
    words = some.words.tolil()
    words[:10] = 0
    half = replace(some, words=sparse.csr_array(words), word_count=words.toarray().sum(axis=1))
    check(cluster(half, rng()).clusters, 60)


def test_how_many_clusters() -> None:
    assert how_many(284_692) == 95  # T: about 3,000 pages each
    assert how_many(0) == how_many(1) == 1
    assert all(2 <= how_many(pages) <= pages for pages in range(2, 500))
    assert how_many(1_000, per_cluster=10) == 100
    with pytest.raises(UsageError, match="1 or more"):
        how_many(1_000, per_cluster=0)


def test_words_are_hashed_alike_in_any_number_of_batches() -> None:
    texts = [f"page {page} über the {page % 7} 日本" for page in range(4_321)] + [""]
    whole = hashed(texts)
    assert whole.shape == (4_322, BUCKETS)
    assert whole.sum() == 4_321 * 6 + 4_321  # two words of the last, one character each
    pieces = stacked([hashed(texts[:100]), hashed(texts[100:])])
    assert (whole != pieces).nnz == 0
    assert hashed([]).shape == (0, BUCKETS)
    assert hashed(["word " * 70_000]).max() == 65_535


def test_facts_of_urls_and_links() -> None:
    urls = [
        "https://www.a.co.uk/x/y_z/1.html?q=/a/b",
        "http://b.COM:8080/",
        "http://c.com",
        "http://127.0.0.1/a%2Fb",
        "http://localhost/",
    ]
    links = LinkGraph(np.array([0, 2, 3, 3, 3, 3]), np.array([1, 2, 2], np.int32))
    facts = text_facts(urls, [("a b a", 2)] + [("", 0)] * 4, np.arange(5), links)
    assert facts.depth.tolist() == [3, 1, 0, 1, 1]
    assert facts.tld[1] == facts.tld[2] != facts.tld[0]
    assert facts.tld[3] == facts.tld[4] == 0
    assert facts.in_links.tolist() == [0, 1, 2, 0, 0]
    assert facts.out_links.tolist() == [2, 1, 0, 0, 0]
    assert facts.word_count.tolist() == [3, 0, 0, 0, 0]
    assert facts.images.tolist() == [2, 0, 0, 0, 0]
    assert np.diff(facts.url_words.indptr)[0] == 11  # www a co uk x y z 1 html q b; "a" is there twice


def test_a_history_is_clustered_by_the_pages_that_are_there_at_its_start() -> None:
    urls, facts, code = two_kinds(120)
    time = np.where(np.arange(120) < 90, 0.0, 50.0)
    time[1::2] += 1_000.0  # the other site's clock begins later
    version = np.arange(120)
    version[4] = ABSENT
    history = assemble(urls, np.arange(120), time, version, change="text", carries=frozenset())
    found = clusters_of(history, facts, rng())
    present = np.setdiff1d(np.arange(90), [4])
    alone = cluster(facts.take(present), rng())
    check(found, 120)
    assert np.array_equal(found.of[present], alone.page)
    assert np.array_equal(found.of[90:], alone.assign(facts.take(np.arange(90, 120))))
    assert all(len(set(code[found.of == group])) == 1 for group in range(len(found.nearest)))
    still = assemble(urls, np.arange(120), np.zeros(120), np.arange(120), change="text", carries=frozenset())
    assert np.array_equal(clusters_of(still, facts, rng()).of, cluster(facts, rng()).page)
