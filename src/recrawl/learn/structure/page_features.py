"""The features of pages that clusters are built from (spec S4, T §4.3).

Ten columns for the words of the text, ten for the words of the URL (see `topics`), then the numbers of words, in-links,
out-links and images, the bytes, the depth, and the top-level domain. T does not say how to weight them. Here every
feature has variance 1 over the pages it was learned from, with counts as logarithms, since 10 and 20 links differ as
much as 1,000 and 2,000. Values beyond 5 standard deviations are clipped, so that one page with images among thousands
without does not decide the clusters.

Each of the most common top-level domains has a column, 1 for its pages. These columns are not scaled to variance 1,
which would put rare domains far from everything: any two pages of different common domains are 1.4 standard deviations
of another feature apart. All other domains have no column and count as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.extras import scipy
from recrawl.learn.structure.topics import Topics, find_topics

_DOMAINS = 10
_FURTHEST = 5.0
_SAME = 1e-6
"""A standard deviation below this is rounding: the column is constant, and 0 for later pages too."""

Matrix = NDArray[np.float32]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class PageFacts:
    """The facts from which features are computed, one row or entry per page."""

    words: scipy.sparse.csr_array
    """Page by word: occurrences of the word in the text. A column is a word, by number or hash, once per row."""
    url_words: scipy.sparse.csr_array
    """The same for the words of the URL."""
    word_count: Counts
    in_links: Counts
    out_links: Counts
    images: Counts
    tld: Counts
    """The top-level domain: any number that is the same for the same domain."""
    depth: Counts
    """Slashes in the URL's path."""
    size: Counts
    """Bytes."""

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.size)

    def take(self, pages: NDArray[np.int64]) -> PageFacts:
        """Return the facts of selected pages."""
        return PageFacts(
            words=self.words[pages],
            url_words=self.url_words[pages],
            word_count=self.word_count[pages],
            in_links=self.in_links[pages],
            out_links=self.out_links[pages],
            images=self.images[pages],
            tld=self.tld[pages],
            depth=self.depth[pages],
            size=self.size[pages],
        )


def page_facts(
    urls: Sequence[str],
    words: scipy.sparse.csr_array,
    url_words: scipy.sparse.csr_array,
    *,
    images: Counts,
    in_links: Counts,
    out_links: Counts,
    size: Counts,
) -> PageFacts:
    """Build the facts of pages from their word counts, in any columns.

    >>> words = scipy.sparse.csr_array([[2, 1]])
    >>> one = np.array([1])
    >>> facts = page_facts(
    ...     ["https://a.example/news/7.html"], words, words, images=one, in_links=one, out_links=one, size=one
    ... )
    >>> facts.word_count.tolist(), facts.depth.tolist()
    ([3], [2])
    """
    return PageFacts(
        words=words,
        url_words=url_words,
        word_count=_sums(words),
        in_links=in_links,
        out_links=out_links,
        images=images,
        tld=np.fromiter(map(_domain, urls), np.int64, len(urls)),
        depth=np.fromiter(map(_depth, urls), np.int64, len(urls)),
        size=size,
    )


def _sums(words: scipy.sparse.csr_array) -> Counts:
    """Return the words per page; the matrix's own `sum` would make a copy with 64 bits per count."""
    sums: Counts = np.zeros(words.shape[0], np.int64)
    some = np.diff(words.indptr) > 0
    sums[some] = np.add.reduceat(words.data, words.indptr[:-1][some], dtype=np.int64) if some.any() else 0
    return sums


def _depth(url: str) -> int:
    """Return the number of slashes in the path: T's depth of a URL."""
    return url.partition("?")[0].partition("#")[0].partition("://")[2].count("/")


def _domain(url: str) -> int:
    """Return a number for the top-level domain; all hosts without one, such as IP addresses, share one number."""
    host = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2].partition(":")[0]
    name = host.rstrip(".").rpartition(".")[2]
    return crc32(name.lower().encode("utf-8", "replace")) if name and not name.isdigit() and "." in host else 0


@dataclass(frozen=True, eq=False, slots=True)
class Features:
    """The conversion of facts to features: learned once by `learn_features`, then applied to later pages."""

    content: Topics
    address: Topics
    domains: Counts
    """The top-level domains that have a column."""
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    def of(self, facts: PageFacts) -> Matrix:
        """Return pages by features."""
        return self._scaled(facts, self.content.of(facts.words), self.address.of(facts.url_words))

    def _scaled(self, facts: PageFacts, content: NDArray[np.int32], address: NDArray[np.int32]) -> Matrix:
        """Return pages by features, given the pages' topics."""
        matrix: Matrix = np.empty((len(facts), len(self.mean)), np.float32)
        for place, column in enumerate(_columns(facts, self, content, address)):
            matrix[:, place] = np.clip((column - self.mean[place]) * self.scale[place], -_FURTHEST, _FURTHEST)
        return matrix


def learn_features(facts: PageFacts, rng: np.random.Generator) -> tuple[Features, Matrix]:
    """Learn the conversion from pages, and return it with the features of these pages.

    >>> words = scipy.sparse.csr_array([[2, 1], [0, 3]])
    >>> count = np.array([3, 3])
    >>> facts = PageFacts(words, words, count, count, count, count, np.array([7, 8]), count, count)
    >>> features, matrix = learn_features(facts, np.random.default_rng(1))
    >>> matrix.shape, bool(np.array_equal(features.of(facts), matrix))
    ((2, 28), True)
    """
    topics = find_topics(facts.words, rng), find_topics(facts.url_words, rng)
    content, address = (found.bisection.of for found in topics)
    domains, pages = np.unique(facts.tld, return_counts=True)
    common = domains[np.argsort(-pages, kind="stable")[:_DOMAINS]]
    raw = Features(*topics, common, np.zeros(0), np.zeros(0))
    moments = [_moments(column) for column in _columns(facts, raw, content, address)]
    mean, deviation = np.array(moments).T
    scale = np.where(deviation > _SAME, 1 / np.maximum(deviation, _SAME), 0.0)
    scale[len(scale) - len(common) :] = 1.0
    features = Features(*topics, common, mean, scale)
    return features, features._scaled(facts, content, address)


def _moments(column: NDArray[np.float64]) -> tuple[float, float]:
    return (float(column.mean()), float(column.std())) if len(column) else (0.0, 0.0)


def _columns(
    facts: PageFacts, features: Features, content: NDArray[np.int32], address: NDArray[np.int32]
) -> Iterator[NDArray[np.float64]]:
    """Yield all features, unscaled, the domains last; one at a time to save memory."""
    for ranks in (features.content.ranks(content), features.address.ranks(address)):
        yield from (rank.astype(np.float64) for rank in ranks.T)
    for counts in (facts.word_count, facts.in_links, facts.out_links, facts.images, facts.size):
        yield np.log1p(counts.astype(np.float64))
    yield facts.depth.astype(np.float64)
    yield from ((facts.tld == domain).astype(np.float64) for domain in features.domains)
