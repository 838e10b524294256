"""Q's experiments: the example of §2.5.4, figure 2.2, and tables 4.1 and 4.2 on worlds set to what Q prints.

Each function returns plain rows. Worlds are generated from what the thesis prints and from nothing else; where it
leaves something open there is a parameter, and no value of it was chosen by what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recrawl.choose import make_policy
from recrawl.choose.papers.frequency_greedy import first_sample, sample_sizes
from recrawl.choose.papers.sample_size import root_sample
from recrawl.choose.papers.site_sampling import expected_finds, in_order, quotas
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.replays.replay import Setup, replay

Row = dict[str, Any]
Nature = Literal["alike", "two-kinds"]


def example_2_5_4() -> dict[str, int]:
    """Changed pages that either policy expects of its 80 downloads, by the functions that the policies use.

    >>> example_2_5_4()
    {'proportional': 48, 'greedy': 56}
    """
    changed, sampled = np.array(q.EXAMPLE_CHANGED), np.array(q.EXAMPLE_SAMPLED)
    room = np.array(q.EXAMPLE_PAGES) - sampled
    left = q.EXAMPLE_DOWNLOADS - int(sampled.sum())
    shares = {
        "proportional": quotas(changed, sampled, left, room),
        "greedy": in_order(np.argsort(-changed / sampled), left, room),
    }
    return {policy: int(expected_finds(share, changed, sampled).sum()) for policy, share in shares.items()}


# -- figure 2.2 ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sites:
    """A set of sites, how many of their pages have changed, and how many can be downloaded."""

    name: str
    pages: tuple[int, ...]
    rates: tuple[float, ...]
    downloads: int


WORLDS = (
    Sites("the two sites of §2.5.4", (100, 100), (0.7, 0.4), 100),
    Sites("the nine sites of table 4.1", tuple(s.pages for s in q.SITES), tuple(s.rate / 100 for s in q.SITES), 285),
    Sites("100 sites, rates spread evenly", (100,) * 100, tuple(((np.arange(100) + 0.5) / 100).tolist()), 2500),
)
"""Q prints no world for its figure. A quarter of the last two can be downloaded; the last has the pages of §2.8."""


def figure_2_2(runs: int = 20, worlds: Sequence[Sites] = WORLDS) -> list[Row]:
    """ChangeRatio of one cycle by the sample taken of each site; mean, least and greatest of the runs.

    A run is another draw of the changed pages and another seed for the policies. Samples grow until they use all the
    downloads. Round-robin takes none; it has a row for each sample size so that it can be drawn beside the others.
    """
    rows: list[Row] = []
    for sites in worlds:
        histories = [one_cycle(sites, seed) for seed in range(runs)]
        root = root_sample(sum(sites.pages) / len(sites.pages), sites.downloads / sum(sites.pages))
        uniform = _ratios(histories, "round-robin(order=shuffled)", sites.downloads)
        for sample in _sample_sizes(sites):
            ratios = {
                "greedy": _ratios(histories, f"greedy(sample={sample})", sites.downloads),
                "proportional": _ratios(histories, f"proportional(sample={sample})", sites.downloads),
                "round-robin": uniform,
            }
            for policy, values in ratios.items():
                row = {"world": sites.name, "sample": sample, "policy": policy, "change_ratio": float(values.mean())}
                rows.append({**row, "low": float(values.min()), "high": float(values.max()), "root_sample": root})
    return rows


def one_cycle(sites: Sites, seed: int) -> History:
    """A history in which each page has changed by the first cycle with its site's chance, and not again."""
    rng = np.random.default_rng([seed, 22])
    urls = [f"http://site{site}.example/{page}" for site, pages in enumerate(sites.pages) for page in range(pages)]
    changed = rng.random(len(urls)) < np.repeat(sites.rates, sites.pages)
    rows = 1 + changed
    page = np.repeat(np.arange(len(urls)), rows)
    second = np.diff(page, prepend=-1) == 0
    return assemble(urls, page, second * DAY / 2, second.astype(np.int64), change="generated", carries=frozenset())


def _ratios(histories: list[History], policy: str, downloads: int) -> Floats:
    """The ChangeRatio of one cycle on each history."""
    setups = (Setup(budget=downloads, cycle=DAY, cycles=1, seed=seed + 1, samples=1) for seed in range(len(histories)))
    return np.array(
        [
            replay(history, make_policy(policy), setup).change_ratio
            for history, setup in zip(histories, setups, strict=True)
        ]
    )


def _sample_sizes(sites: Sites) -> list[int]:
    """From one page a site to as many as use up the downloads."""
    most = sites.downloads // len(sites.pages)
    steps = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
    return sorted({step for step in steps if step < most} | {most})


# -- tables 4.1 and 4.2 -----------------------------------------------------------------------------------------


def table_4_1(nature: Nature = "alike", seed: int = 1, nitc: float = 0.09) -> list[Row]:
    """The nine sites: pages and change rate as printed, and the rate of the world that is made of them."""
    site, changed = nine_sites(nature, seed, nitc)
    return [
        {"site": s.name, "pages": s.pages, "published_rate": s.rate, "rate": 100 * float(changed[:, site == w].mean())}
        for w, s in enumerate(q.SITES)
    ]


def tables_4(
    nature: Nature = "alike", runs: int = 20, versions: int = 2, samples: Sequence[int] = q.SAMPLES, nitc: float = 0.09
) -> list[Row]:
    """Estimated change rates of the nine sites by policy and sample, as in table 4.2, with the printed ones beside.

    The procedure is that of Q's tool (§4.3, §4.4, appendix A): all pages are there for every day, each day's samples
    are compared with the day before, and their sizes follow from the rates of the day before. Nothing is downloaded
    beyond samples. `estimated` and `accuracy` (spec M7) are means over the runs, `low` and `high` the least and the
    greatest accuracy. The line "average" is the mean over the sites.
    """
    estimators = {"greedy": 1, "frequency-greedy": versions}
    measured: dict[tuple[str, int], list[tuple[Floats, Floats]]] = {}
    for run in range(runs):
        site, changed = nine_sites(nature, run, nitc)
        real = 100 * np.array([changed[:, site == w].mean() for w in range(len(q.SITES))])
        for policy, looks_back in estimators.items():
            for sample in samples:
                rng = np.random.default_rng([run, sample, looks_back])
                estimated = estimate(site, changed, sample, looks_back, rng)
                measured.setdefault((policy, sample), []).append((real, estimated))
    rows: list[Row] = []
    for (policy, sample), results in measured.items():
        rows += _rows(policy, sample, *(np.array(column) for column in zip(*results, strict=True)))
    return rows


def nine_sites(nature: Nature, seed: int, nitc: float = 0.09) -> tuple[Ints, Flags]:
    """Each page's site, and for every day and page whether it had changed since the day before.

    Q prints only each site's rate. `alike`: each page of a site changes with that chance every day. `two-kinds`: that
    share of a site's pages changes every day and the others never, so that a page's history tells all. `nitc` is the
    rate of www.nitc.gov.jo, for which Q prints two.
    """
    rng = np.random.default_rng([seed, 41])
    site = np.repeat(np.arange(len(q.SITES)), [s.pages for s in q.SITES])
    rate = np.array([nitc if s.name == "www.nitc.gov.jo" else s.rate for s in q.SITES])[site] / 100
    if nature == "two-kinds":
        return site, np.tile(rng.random(len(site)) < rate, (q.DAYS, 1))
    return site, rng.random((q.DAYS, len(site))) < rate


def estimate(site: Ints, changed: Flags, total: int, versions: int, rng: np.random.Generator) -> Floats:
    """The rate of every site in per cent: the mean over days of what its samples showed.

    Days begin when a page has the versions to look back on. With one it is Q's greedy policy, with more its
    frequency-greedy. A site without a sample shows no change. When no site shows any, sizes stay as they are: there
    Q's program divides by zero and leaves them.
    """
    sites = int(site.max()) + 1
    members = [np.flatnonzero(site == w) for w in range(sites)]
    size = np.full(sites, first_sample(total, sites))
    days = []
    for day in range(versions - 1, len(changed)):
        share = changed[day + 1 - versions : day + 1].mean(axis=0)
        samples = [rng.permutation(pages)[:n] for pages, n in zip(members, size.tolist(), strict=True)]
        rate = np.array([share[pages].mean() if len(pages) else 0.0 for pages in samples])
        days.append(rate)
        size = sample_sizes(rate, total) if rate.any() else size
    mean: Floats = 100 * np.mean(days, axis=0)
    return mean


def accuracy(real: Floats, estimated: Floats) -> Floats:
    """100 - |real - estimated|, in percentage points (spec M7).

    >>> accuracy(np.array([25.77]), np.array([7.52])).tolist()
    [81.75]
    """
    return np.asarray(100 - np.abs(real - estimated))


def _rows(policy: str, sample: int, real: Floats, estimated: Floats) -> Iterator[Row]:
    """A row per site and one for their mean; the arrays are runs by sites."""
    right = accuracy(real, estimated)
    column = q.SAMPLES.index(sample) if sample in q.SAMPLES else None
    for w, site in enumerate(q.SITES):
        printed = site.greedy if policy == "greedy" else site.frequency_greedy
        told = None if column is None else printed[column]
        yield {
            "site": site.name,
            "policy": policy,
            "sample": sample,
            "real": float(real[:, w].mean()),
            "estimated": float(estimated[:, w].mean()),
            **_spread(right[:, w]),
            "published_estimated": told,
            "published_accuracy": None if told is None else round(100 - abs(site.rate_in_4_2 - told), 2),
        }
    average = None if column is None else q.AVERAGE_ACCURACY[policy][column]
    yield {
        "site": "average",
        "policy": policy,
        "sample": sample,
        **_spread(right.mean(axis=1)),
        "published_accuracy": average,
    }


def _spread(exact: Floats) -> Row:
    """Mean, least and greatest accuracy of the runs."""
    return {"accuracy": float(exact.mean()), "low": float(exact.min()), "high": float(exact.max())}
