"""Q's example of §2.5.4, figure 2.2, and tables 4.1 and 4.2 on worlds generated from what Q prints.

Each function returns plain rows. Worlds use only what the thesis prints; what it leaves open is a parameter, and no
value was chosen by its effect on the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recrawl.choose import make_policy
from recrawl.choose.papers.by_site.frequency_greedy import first_sample, sample_sizes
from recrawl.choose.papers.by_site.sample_size import root_sample
from recrawl.choose.papers.by_site.site_sampling import expected_finds, fill_in_order, quotas
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.experiments.intervals import interval
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.replays.replay import Setup, replay

Row = dict[str, Any]
PageMix = Literal["alike", "two-kinds"]
"""How the pages of one site differ: all at one rate, or some changing daily and the others never."""


def example_2_5_4() -> dict[str, int]:
    """Changed pages that either policy expects from its 80 downloads, computed with the policies' own functions.

    >>> example_2_5_4()
    {'proportional': 48, 'greedy': 56}
    """
    changed, sampled = np.array(q.EXAMPLE_CHANGED), np.array(q.EXAMPLE_SAMPLED)
    room = np.array(q.EXAMPLE_PAGES) - sampled
    left = q.EXAMPLE_DOWNLOADS - int(sampled.sum())
    shares = {
        "proportional": quotas(changed, sampled, left, room),
        "greedy": fill_in_order(np.argsort(-changed / sampled), left, room),
    }
    return {policy: int(expected_finds(share, changed, sampled).sum()) for policy, share in shares.items()}


# -- figure 2.2 ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sites:
    """A set of sites, their change rates, and the number of downloads."""

    name: str
    pages: tuple[int, ...]
    rates: tuple[float, ...]
    downloads: int


WORLDS = (
    Sites("the two sites of §2.5.4", (100, 100), (0.7, 0.4), 100),
    Sites("the nine sites of table 4.1", tuple(s.pages for s in q.SITES), tuple(s.rate / 100 for s in q.SITES), 285),
    Sites("100 sites, rates spread evenly", (100,) * 100, tuple(((np.arange(100) + 0.5) / 100).tolist()), 2500),
)
"""Q prints no data for its figure. A quarter of the last two can be downloaded; the last has the pages of §2.8."""


def figure_2_2(runs: int = 20, worlds: Sequence[Sites] = WORLDS) -> list[Row]:
    """ChangeRatio of one cycle by the sample taken from each site: mean over the runs with its interval.

    A run redraws the changed pages and the policies' seed. Samples grow until they use all downloads. Round-robin takes
    no samples; it has a row for each sample size so that charts can show it beside the others.
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
                mean, low, high = interval(values.tolist())
                row = {"world": sites.name, "sample": sample, "policy": policy, "change_ratio": mean, "low": low}
                rows.append({**row, "high": high, "by_seed": values.tolist(), "root_sample": root})
    return rows


def one_cycle(sites: Sites, seed: int) -> History:
    """A history in which each page changes once before the first cycle, with its site's probability."""
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
    """From one page per site to as many as use all downloads."""
    most = sites.downloads // len(sites.pages)
    steps = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
    return sorted({step for step in steps if step < most} | {most})


# -- tables 4.1 and 4.2 -----------------------------------------------------------------------------------------


def table_4_1(mix: PageMix = "alike", seed: int = 1, nitc: float = 0.09) -> list[Row]:
    """The nine sites: pages and change rate as printed, and the rate of the generated world."""
    site, changed = nine_sites(mix, seed, nitc)
    return [
        {"site": s.name, "pages": s.pages, "published_rate": s.rate, "rate": 100 * float(changed[:, site == w].mean())}
        for w, s in enumerate(q.SITES)
    ]


def tables_4(
    mix: PageMix = "alike", runs: int = 20, versions: int = 2, samples: Sequence[int] = q.SAMPLES, nitc: float = 0.09
) -> list[Row]:
    """Estimated change rates of the nine sites by policy and sample, as in table 4.2, beside the printed ones.

    The procedure is that of Q's tool (§4.3, §4.4, appendix A): all pages exist on every day, each day's samples are
    compared with the day before, and their sizes follow from the rates of the day before. Nothing is downloaded beyond
    the samples. `estimated` and `accuracy` (spec M7) are means over the runs, `low` and `high` the interval of the mean
    accuracy, `by_seed` the accuracy of each run. The site "average" is the mean over the sites.
    """
    estimators = {"greedy": 1, "frequency-greedy": versions}
    measured: dict[tuple[str, int], list[tuple[Floats, Floats]]] = {}
    for run in range(runs):
        site, changed = nine_sites(mix, run, nitc)
        real = 100 * np.array([changed[:, site == w].mean() for w in range(len(q.SITES))])
        for policy, versions_used in estimators.items():
            for sample in samples:
                rng = np.random.default_rng([run, sample, versions_used])
                estimated = estimate(site, changed, sample, versions_used, rng)
                measured.setdefault((policy, sample), []).append((real, estimated))
    rows: list[Row] = []
    for (policy, sample), results in measured.items():
        rows += _rows(policy, sample, *(np.array(column) for column in zip(*results, strict=True)))
    return rows


def nine_sites(mix: PageMix, seed: int, nitc: float = 0.09, days: int = q.DAYS) -> tuple[Ints, Flags]:
    """Each page's site, and for every day and page whether it changed since the day before.

    Q prints only each site's rate. `alike`: each page of a site changes with that probability every day. `two-kinds`:
    that share of a site's pages changes every day and the others never, so a page's history determines its future.
    `nitc` is the rate of www.nitc.gov.jo, for which Q prints two values.
    """
    rng = np.random.default_rng([seed, 41])
    site = np.repeat(np.arange(len(q.SITES)), [s.pages for s in q.SITES])
    rate = np.array([nitc if s.name == "www.nitc.gov.jo" else s.rate for s in q.SITES])[site] / 100
    if mix == "two-kinds":
        return site, np.tile(rng.random(len(site)) < rate, (days, 1))
    return site, rng.random((days, len(site))) < rate


def estimate(site: Ints, changed: Flags, total: int, versions: int, rng: np.random.Generator) -> Floats:
    """The estimated rate of every site in per cent: the mean over days of the rates in its samples.

    The first day is the first on which a page has `versions` comparisons. One is Q's greedy policy, more its
    frequency-greedy. A site without a sample shows no change. When no site shows a change, the sample sizes stay: Q's
    program divides by zero there and leaves them.
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
    accuracies = accuracy(real, estimated)
    column = q.SAMPLES.index(sample) if sample in q.SAMPLES else None
    for w, site in enumerate(q.SITES):
        printed = site.greedy if policy == "greedy" else site.frequency_greedy
        printed_estimate = None if column is None else printed[column]
        yield {
            "site": site.name,
            "policy": policy,
            "sample": sample,
            "real": float(real[:, w].mean()),
            "estimated": float(estimated[:, w].mean()),
            **_spread(accuracies[:, w]),
            "published_estimated": printed_estimate,
            "published_accuracy": None
            if printed_estimate is None
            else round(100 - abs(site.rate_in_4_2 - printed_estimate), 2),
        }
    average = None if column is None else q.AVERAGE_ACCURACY[policy][column]
    yield {
        "site": "average",
        "policy": policy,
        "sample": sample,
        **_spread(accuracies.mean(axis=1)),
        "published_accuracy": average,
    }


def _spread(values: Floats) -> Row:
    """The mean accuracy over the runs with its interval."""
    mean, low, high = interval(values.tolist())
    return {"accuracy": mean, "low": low, "high": high, "by_seed": values.tolist()}
