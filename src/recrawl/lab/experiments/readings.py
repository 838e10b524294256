"""Sentences of the documents that can be read in more than one way, and how each reading is replayed.

The first reading of a sentence is the one that the other experiments use. Verdicts that depend on a reading are given
for each of its readings. `recrawl lab reproduce --readings` lists them.
"""

from __future__ import annotations

from typing import NamedTuple


class Interpretation(NamedTuple):
    """One way to read a sentence."""

    name: str
    means: str
    replay: str
    """What replays it: a policy's parameters, or the part of an experiment."""


class Sentence(NamedTuple):
    """A sentence of a document that can be read in more than one way."""

    document: str
    place: str
    says: str
    readings: tuple[Interpretation, ...]
    """The first is the one that experiments use where no reading is named."""


SENTENCES: dict[str, Sentence] = {
    "sample": Sentence(
        "T",
        "§3, Algorithm 1",
        "Based on this comparison, the process is triggered for the neighbours of a changed sample.",
        (
            Interpretation(
                "changed samples lead", "§3: a sample without a change leads nowhere", "sampling(leads=changed)"
            ),
            Interpretation("any sample leads", "Algorithm 1 as printed: only φ decides", "sampling(leads=any)"),
        ),
    ),
    "today": Sentence(
        "T",
        "§5.2, eq. 6, fig. 3",
        "λ is estimated from the change history of the sample, cycles 1 to n.",
        (
            Interpretation("with today", "the comparison just made is the n-th", "sampling(newest=true)"),
            Interpretation("without today", "the history before this cycle", "sampling(newest=false)"),
        ),
    ),
    "n": Sentence(
        "T",
        "§5.2, eqs. 6 and 8",
        "n is the total number of download cycles.",
        (
            Interpretation(
                "n counts cycles", "a cycle without a visit counts as one without a change", "sampling(n=cycles)"
            ),
            Interpretation("n counts visits", "only the page's own visits (ours)", "sampling(n=visits)"),
        ),
    ),
    "round-robin": Sentence(
        "T",
        "§6.2",
        "In RR, the webpages are downloaded in a round-robin fashion.",
        (
            Interpretation("RR by page number", "every pass in the same order", "round-robin"),
            Interpretation("RR shuffled", "a new random order in every pass", "round-robin(order=shuffled)"),
            Interpretation("RR at random", "pages drawn at random, without passes", "round-robin(order=random)"),
        ),
    ),
    "cluster-distance": Sentence(
        "T",
        "§4.3",
        "d_CB is the distance between two clusters' centroids, similar to the method of the features: by rank.",
        (
            Interpretation(
                "rank seen from the sample", "clusters in the order of the sample's cluster", "sampling(rank=sample)"
            ),
            Interpretation(
                "rank seen from the page", "the sample's cluster in the page's order", "sampling(rank=page)"
            ),
        ),
    ),
    "sign": Sentence(
        "T",
        "§4.2, eq. 2",
        "d_DB is positive for upper directories (text, results); eq. 2's sign(n - m) says the opposite.",
        (
            Interpretation(
                "upper is positive", "as in the text and the results", "sampling(neighbours=directory, d=D)"
            ),
            Interpretation("deeper is positive", "as eq. 2 is printed", "sampling(neighbours=directory, d=-D)"),
        ),
    ),
    "probability": Sentence(
        "R",
        "§5.1",
        "The baseline predicts a change with probability p, the page's change frequency.",
        (
            Interpretation(
                "coin", "a draw with probability p, as printed: its expected accuracy", "r-table1: as a coin"
            ),
            Interpretation("threshold", "change where p is at least one half (ours)", "lab predict --method frequency"),
        ),
    ),
    "versions": Sentence(
        "Q",
        "§3.3.2, table 4.2",
        "A page's change frequency is D/V over its last V versions; V of table 4.2 is not printed.",
        (
            Interpretation("V = 2", "fits the digits printed: means over 20 days", "frequency-greedy(versions=2)"),
            Interpretation("V = 5", "few versions", "frequency-greedy(versions=5)"),
            Interpretation("V = 10", "half of the three weeks", "frequency-greedy(versions=10)"),
        ),
    ),
    "tags": Sentence(
        "Q",
        "§1.3.1, fig. 1.3",
        "The tag says how often the page changes; when its author knew that is not printed.",
        (
            Interpretation("tags from before", "the rate of the three weeks before the crawl", "q-fig1.3"),
            Interpretation(
                "tags from the days crawled", "the rate of the very days: agreement is built in", "q-fig1.3"
            ),
        ),
    ),
    "slow": Sentence(
        "B",
        "§4",
        "The rest of the database (less dynamic pages) can be updated in a lower rate.",
        (
            Interpretation(
                "slow group once in two weeks", "at half the rate of uniform visits", "anchor-depth(rest=0, slow=14)"
            ),
            Interpretation(
                "no slow group", "only pages with depth ≤ n are visited, as B counted", "anchor-depth(rest=0, slow=365)"
            ),
            Interpretation("slow group with what is left", "all that the pace allows", "anchor-depth(rest=0, slow=0)"),
        ),
    ),
}
"""By short name."""


def reading(sentence: str, number: int = 0) -> str:
    """The name of a reading, the first by default.

    >>> reading("probability")
    'coin'
    """
    return SENTENCES[sentence].readings[number].name


def replayed(sentence: str) -> dict[str, str]:
    """What replays each reading of a sentence, by its name."""
    return {one.name: one.replay for one in SENTENCES[sentence].readings}
