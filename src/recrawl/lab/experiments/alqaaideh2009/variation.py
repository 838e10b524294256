"""Q's figure 4.1: how the change rate of each site varies over time, and the number of versions V that fits it.

Q §3.3.2.1: where the rate varies much, few versions avoid a wrong rate; where it varies little, more are better. Rates
of the last week are estimated from samples with few versions, with many, and with V that adapts to the variation
(`versions=auto`). In the world *rates shift*, every site takes the rate of another one for the last week.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

import numpy as np

from recrawl.choose.papers.by_site.version_history import ComparisonHistory, steady_versions
from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.experiments.alqaaideh2009 import measures
from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.experiments.alqaaideh2009.figures import WORLD_NAMES, changed_by_day
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.experiments.tan2007 import ARCHIVES, archive_history

FEW, MANY, WEEK_DAYS = 5, 20, 7
SHIFT = "made, rates shift"
_SAMPLE = 10
"""Pages sampled of each site, as in Q §4.3."""
_RUNS = 20


def fig_4_1(options: ExperimentOptions) -> Result:
    """Daily change rate by site, its variation, and the accuracy of the last week's rate by V."""
    rows: list[Row] = []
    claims: list[Claim] = []
    for world, site, changed in _worlds(options):
        daily = _daily(site, changed)
        spread = daily.std(axis=0)
        names = [it.name for it in q.SITES] if world != ARCHIVES else [f"site {w + 1}" for w in range(daily.shape[1])]
        rows += [
            {"world": world, "site": name, "day": day, "rate": 100 * float(daily[day - 1, w])}
            for w, name in enumerate(names[:20])
            for day in range(1, len(daily) + 1)
        ]
        claims += _claims(world, 100 * spread, accuracy_by_versions(site, changed))
    return Result(
        rows,
        claims=claims,
        pictures=[Picture("line", "day", "rate", "Fig. 4.1: change rate over time", "day", "% of the site's pages",
                          colour="site", facet="world")],
        worlds=[
            "*made*: the nine sites of table 4.1; their rates are steady by construction",
            f"*{SHIFT}*: the same, but in the last week each site has the rate of the site before it",
            *([f"*{ARCHIVES}*: the middle of each real site's history; the first 20 sites are shown"]
              * bool(options.archives)),
        ],
        notes=["Q's figure has no printed values.",
               f"Samples of {_SAMPLE} pages per site; means over {_RUNS} draws; accuracy is that of M7."],
        table={"world": "world", "site": "site", "day": ">day", "rate": ">rate"},
    )  # fmt: skip


def _worlds(options: ExperimentOptions) -> Iterator[tuple[str, Ints, Flags]]:
    for mix, name in WORLD_NAMES.items():
        yield name, *measures.nine_sites(mix, seed=1)
    site, changed = measures.nine_sites("alike", seed=1)
    rates = np.roll(np.array([it.rate for it in q.SITES]), 1)[site] / 100
    late = np.random.default_rng(41).random((WEEK_DAYS, len(site))) < rates
    yield SHIFT, site, np.concatenate((changed[:-WEEK_DAYS], late))
    if options.archives:
        yield ARCHIVES, *changed_by_day(archive_history(options))


def _daily(site: Ints, changed: Flags) -> Floats:
    """The share of each site's pages that changed, by day and site."""
    return np.array([[day[site == w].mean() for w in range(int(site.max()) + 1)] for day in changed])


def accuracy_by_versions(site: Ints, changed: Flags, runs: int = _RUNS) -> dict[str, float]:
    """Mean accuracy of the sites' rates in the last week, estimated from samples with few, many and adapting V."""
    real = 100 * _daily(site, changed)[-WEEK_DAYS:].mean(axis=0)
    flags = np.array([sum(int(flag) << place for place, flag in enumerate(page[::-1][:60])) for page in changed.T])
    compared = np.full(len(site), min(60, len(changed)), np.int64)
    found: dict[str, list[float]] = {f"V = {FEW}": [], f"V = {MANY}": [], "auto": []}
    for run in range(runs):
        rng = np.random.default_rng([run, 41])
        order = rng.permutation(len(site))
        picked = np.concatenate([order[site[order] == w][:_SAMPLE] for w in range(int(site.max()) + 1)])
        history, group = ComparisonHistory(flags[picked].astype(np.int64), compared[picked]), site[picked]
        versions: dict[str, int | Ints] = {
            f"V = {FEW}": FEW, f"V = {MANY}": MANY, "auto": steady_versions(history, group),
        }  # fmt: skip
        for name, used in versions.items():
            estimated = 100 * np.bincount(group, history.rates(used)) / np.bincount(group)
            found[name].append(float(measures.accuracy(real, estimated).mean()))
    return {name: fmean(values) for name, values in found.items()}


def _claims(world: str, spread: Floats, accuracy: dict[str, float]) -> Iterator[Claim]:
    few, many, auto = (accuracy[name] for name in (f"V = {FEW}", f"V = {MANY}", "auto"))
    shown = ", ".join(f"{name} {value:.1f}" for name, value in accuracy.items())
    measured = f"standard deviation over days: median {np.median(spread):.1f} points, greatest {spread.max():.1f}"
    made = world != ARCHIVES
    if world != SHIFT:
        yield Claim.of(
            "§4.2, fig. 4.1",
            "The change rates of web sites vary little over time.",
            world,
            bool(np.median(spread) < 5),
            measured,
            "assumed: these sites publish in bursts",
            given=made,
        )
    gain = (few - many) if world == SHIFT else (many - few)
    says = "high variation requires few versions." if world == SHIFT else "low variation prefers many versions."
    yield Claim.of("§3.3.2.1", f"A {says}", world, None if abs(gain) < 0.2 else gain > 0, f"accuracy: {shown}",
                   "assumed: changes come in bursts, so the last days tell more than the weeks before")  # fmt: skip
    best = max(few, many)
    yield Claim.of("§3.3.2.1, our rule", "V that adapts to the variation is as good as the better fixed V.", world,
                   auto >= best - 0.5, f"accuracy: {shown}",
                   "assumed: in ten pages, a small shift within the last week cannot be told from chance")  # fmt: skip
