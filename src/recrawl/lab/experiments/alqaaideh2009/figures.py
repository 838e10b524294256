"""Q's example, figures and tables as experiments: `measures` with a verdict on each of Q's statements.

Q's worlds are small, so `scale` does not change them; it only lowers the number of runs. On archives, figure 2.2 is
replayed in eight-week cycles with 10 % of the pages each, and the procedure of table 4.2 is applied to days in the
middle of each site's history.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from recrawl.columns import DAY, WEEK, Flags, Ints
from recrawl.lab.experiments.alqaaideh2009 import measures
from recrawl.lab.experiments.alqaaideh2009 import published as q
from recrawl.lab.experiments.barbosa2003.measures import version_at
from recrawl.lab.experiments.intervals import above, both, interval, reaches, within
from recrawl.lab.experiments.readings import reading
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.experiments.tan2007 import ARCHIVES, archive_history
from recrawl.lab.histories.history import ABSENT, History
from recrawl.lab.replays.replay import Setup
from recrawl.lab.replays.runner import Trial, run_all

_SAMPLES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
_SHARE = 0.1
_CYCLES = 6
_TOLERANCE = 0.05
PRINTED = "Q, as printed"
VERSIONS = (2, 5, 10)
"""The readings of V, in the order of `readings`."""
WORLD_NAMES: dict[measures.PageMix, str] = {
    "alike": "made, pages of a site alike",
    "two-kinds": "made, two kinds of pages",
}


def example(options: ExperimentOptions) -> Result:  # noqa: ARG001  it is arithmetic
    """Greedy against proportional: 56 against 48 changed pages."""
    found = measures.example_2_5_4()
    rows: list[Row] = [
        {"policy": name, "found": found[name], "published": printed} for name, printed in q.EXAMPLE.items()
    ]
    return Result(
        rows,
        published=[{"policy": name, "found": number} for name, number in q.EXAMPLE.items()],
        claims=[
            Claim.of("§2.5.4", f"{name} finds {printed} changed pages.", "the example", found[name] == printed,
                     str(found[name]))
            for name, printed in q.EXAMPLE.items()
        ],
        pictures=[Picture("bar", "policy", "found", "§2.5.4: changed pages expected of 80 downloads", "", "pages")],
        worlds=["*the example*: two sites of 100 pages, 7 and 4 of 10 sampled pages changed, 80 downloads left"],
        notes=["Computed with the functions of `proportional` and `greedy`; shares are rounded as in Q."],
    )  # fmt: skip


def fig_2_2(options: ExperimentOptions) -> Result:
    """ChangeRatio by sample size."""
    rows: list[Row] = [*measures.figure_2_2(runs=_runs(options))]
    if options.archives:
        rows += _samples_on_archives(options)
    claims = [claim for world in dict.fromkeys(row["world"] for row in rows) for claim in _of_fig_2_2(rows, world)]
    picture = Picture(
        "line", "sample", "change_ratio", "Fig. 2.2: ChangeRatio by sample size", "pages sampled of each site",
        "ChangeRatio", colour="policy", facet="world", low="low", high="high",
        notes=("band: 95 % interval of the mean",),
    )  # fmt: skip
    sentences = [
        f"*{sites.name}*: {sum(sites.pages):,} pages, {sites.downloads:,} downloads" for sites in measures.WORLDS
    ]
    sentences += [f"*{ARCHIVES}*: eight-week cycles, a tenth of the pages each"] if options.archives else []
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=sentences,
        notes=["Q's figure is a sketch after Cho and Ntoulas, without values or a description of the data."],
        table={"world": "world", "policy": "policy", "sample": ">sample", "change_ratio": ">ChangeRatio"},
    )


def _samples_on_archives(options: ExperimentOptions) -> list[Row]:
    history = archive_history(options)
    budget = max(1, round(_SHARE * len(history)))
    most = budget // len(history.sites)
    sizes = [size for size in _SAMPLES if size < most] + [max(1, most)]
    texts = {f"{name}(sample={size})": (name, size) for size in sizes for name in ("greedy", "proportional")}
    trials = [
        Trial(text, Setup(budget=budget, cycle=8 * WEEK, cycles=_CYCLES, seed=seed, samples=1))
        for text in [*texts, "round-robin(order=shuffled)"]
        for seed in range(1, options.seeds + 1)
    ]
    results = run_all(history, trials, options.timer, cache=options.trials, workers=options.workers)
    found: dict[str, list[float]] = {}
    for result in results:
        found.setdefault(result["policy"], []).append(result["change_ratio"])
    rows = [(name, size, found[text]) for text, (name, size) in texts.items()]
    rows += [("round-robin", size, found["round-robin(order=shuffled)"]) for size in sizes]
    return [
        {"world": ARCHIVES, "policy": name, "sample": size, **interval(values)._asdict(),
         "change_ratio": interval(values).mean, "by_seed": values}
        for name, size, values in rows
    ]  # fmt: skip


def _of_fig_2_2(rows: Sequence[Row], world: str) -> list[Claim]:
    lines: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if row["world"] == world:
            lines.setdefault(row["policy"], {})[row["sample"]] = row["by_seed"]
    greedy, round_robin = lines["greedy"], lines["round-robin"]
    best = max(greedy, key=lambda sample: fmean(greedy[sample]))
    first, last = min(greedy), max(greedy)
    few = best not in (first, last) and best <= last / 2
    peak = both(above(greedy[best], greedy[first]), above(greedy[best], greedy[last])) if few else False
    measured = f"greedy {interval(greedy[first])} at {first}, {interval(greedy[best])} at {best}, "
    measured += f"{interval(greedy[last])} at {last}; round-robin {interval(round_robin[first])}"
    ends = {
        end: [one / other for one, other in zip(lines[name][end], round_robin[end], strict=True)]
        for end in (first, last)
        for name in ("greedy", "proportional")
    }
    same = both(*(within(values, 1 - 2 * _TOLERANCE, 1 + 2 * _TOLERANCE) for values in ends.values()))
    proportional = lines["proportional"][best]
    ordered = both(above(greedy[best], proportional), above(proportional, round_robin[best]))
    return [
        Claim.of("§2.6, fig. 2.2", "High ChangeRatio when samples are few but not near zero.", world, peak,
                 measured, "assumed: here one page per site already tells, or a sample never tells enough"),
        Claim.of("§2.6, fig. 2.2", "The three perform the same when samples are small and when they are large.", world,
                 same, measured,
                 "assumed: where sites differ much, one page per site already separates high from low rates"
                 if abs(fmean(ends[first]) - 1) > abs(fmean(ends[last]) - 1) else
                 "assumed: a large sample of each site still leaves downloads for the sites with high rates"),
        Claim.of("§2.5.4", "Greedy finds more than proportional, which finds more than round-robin.", world, ordered,
                 f"at {best}: greedy {interval(greedy[best])}, proportional {interval(proportional)}, "
                 f"round-robin {interval(round_robin[best])}",
                 "assumed: sampling costs visits, and the sites change at similar rates"),
    ]  # fmt: skip


def table_4_1(options: ExperimentOptions) -> Result:
    """The nine sites; rates are means over the runs."""
    rows: list[Row] = []
    for mix, name in WORLD_NAMES.items():
        runs = [measures.table_4_1(mix, seed) for seed in range(_runs(options))]
        means = [fmean(run[index]["rate"] for run in runs) for index in range(len(q.SITES))]
        rows += [{"world": name, **row, "rate": mean} for row, mean in zip(runs[0], means, strict=True)]
    largest = {
        name: max(abs(row["rate"] - row["published_rate"]) for row in rows
                  if row["world"] == name and row["site"] != "www.nitc.gov.jo")
        for name in WORLD_NAMES.values()
    }  # fmt: skip
    rows += [{"world": PRINTED, "site": site.name, "pages": site.pages, "rate": site.rate} for site in q.SITES]
    return Result(
        rows,
        published=[{"site": site.name, "pages": site.pages, "rate": site.rate} for site in q.SITES],
        claims=[
            Claim.of("table 4.1", "Pages and daily change rates of nine sites.", name, error <= 5.0,
                     f"{sum(site.pages for site in q.SITES):,} pages; rates at most {error:.1f} points off", given=True)
            for name, error in largest.items()
        ],
        pictures=[Picture("grouped", "site", "rate", "Table 4.1: daily change rate", "", "% of pages", colour="world")],
        worlds=_describe_worlds(options),
        notes=["The worlds are generated from this table; their error from it is random.",
               "www.nitc.gov.jo has 9.09 % in table 4.1 and 0.09 % in table 4.2; the worlds use the latter."],
    )  # fmt: skip


def table_4_2(options: ExperimentOptions) -> Result:
    """Estimated rates by policy and sample."""
    rows = _estimates(options)
    return Result(
        rows,
        published=[
            {"site": site.name, "policy": policy, "sample": sample, "estimated": sentences}
            for site in q.SITES
            for policy, printed in (("greedy", site.greedy), ("frequency-greedy", site.frequency_greedy))
            for sample, sentences in zip(q.SAMPLES, printed, strict=True)
        ],
        claims=_of_table_4_2(rows),
        pictures=[_accuracy_chart("Table 4.2: average accuracy")],
        worlds=_describe_worlds(options),
        notes=["Accuracy is 100 - |real - estimated| in percentage points (spec M7).",
               "So a site that never changes is estimated well without sampling it."],
        table={"world": "world", "policy": "policy", "sample": ">sample", "site": "site", "real": ">real",
               "estimated": ">estimated", "published_estimated": ">Q estimated", "accuracy": ">accuracy",
               "published_accuracy": ">Q accuracy"},
    )  # fmt: skip


def fig_4_2(options: ExperimentOptions) -> Result:
    """Accuracy by sample: the last row of table 4.2."""
    rows = [row for row in _estimates(options) if row["site"] == "average"]
    printed: list[Row] = [
        {"world": PRINTED, "site": "average", "policy": policy, "sample": sample, "accuracy": value}
        for policy, values in q.AVERAGE_ACCURACY.items()
        for sample, value in zip(q.SAMPLES, values, strict=True)
    ]
    return Result(
        [*printed, *rows],
        published=printed,
        claims=_of_table_4_2(rows),
        pictures=[_accuracy_chart("Fig. 4.2: accuracy by sample")],
        worlds=_describe_worlds(options),
        table={"world": "world", "policy": "policy", "sample": ">sample", "accuracy": ">accuracy",
               "low": ">from", "high": ">to"},
    )  # fmt: skip


def _estimates(options: ExperimentOptions) -> list[Row]:
    """Rows of both policies; those of frequency-greedy for each reading of V."""
    rows: list[Row] = []
    for versions in VERSIONS:
        of_v: list[Row] = [
            {"world": name, **row}
            for mix, name in WORLD_NAMES.items()
            for row in measures.tables_4(mix, runs=_runs(options), versions=versions)
        ]
        if options.archives:
            of_v += _estimates_on_archives(archive_history(options), _runs(options), versions)
        if versions == VERSIONS[0]:
            rows += of_v
        else:
            rows += [{**row, "policy": _hybrid(versions)} for row in of_v if row["policy"] != "greedy"]
    return rows


def _hybrid(versions: int) -> str:
    """The name of frequency-greedy with a reading of V."""
    return "frequency-greedy" if versions == VERSIONS[0] else f"frequency-greedy, V = {versions}"


def _estimates_on_archives(history: History, runs: int, versions: int) -> list[Row]:
    """Average accuracy on real sites, with as many sampled pages per site as in Q."""
    site, changed = changed_by_day(history)
    sites = int(site.max()) + 1
    real = 100 * np.array([changed[:, site == w].mean() for w in range(sites)])
    rows: list[Row] = []
    for policy, used in (("greedy", 1), ("frequency-greedy", versions)):
        for sample in q.SAMPLES:
            total = max(sites, round(sample * sites / len(q.SITES)))
            accuracies = [
                float(measures.accuracy(real, measures.estimate(
                    site, changed, total, used, np.random.default_rng([run, sample, used]))).mean())
                for run in range(runs)
            ]  # fmt: skip
            mean, low, high = interval(accuracies)
            row = {"world": ARCHIVES, "site": "average", "policy": policy, "sample": sample, "by_seed": accuracies}
            rows.append({**row, "real": float(real.mean()), "accuracy": mean, "low": low, "high": high})
    return rows


def changed_by_day(history: History, days: int = q.DAYS) -> tuple[Ints, Flags]:
    """Pages that exist throughout `days` days in the middle of their site's history.

    Returns their sites, renumbered, and for each day whether a page differs from the day before.
    """
    last = np.zeros(len(history.sites))
    np.maximum.at(last, history.site[history.page_of], history.time)
    start = np.maximum(0.0, (last - days * DAY) / 2)[history.site]
    pages = np.arange(len(history))
    versions = np.array([version_at(history, pages, start + day * DAY) for day in range(days + 1)])
    present = np.flatnonzero((versions != ABSENT).all(axis=0))
    site = np.unique(history.site[present], return_inverse=True)[1].astype(np.int64)
    return site, versions[1:, present] != versions[:-1, present]


def _of_table_4_2(rows: Sequence[Row]) -> list[Claim]:
    """Q's statements; the one on frequency-greedy for each reading of V."""
    claims = []
    for world in dict.fromkeys(row["world"] for row in rows):
        accuracy = {(row["policy"], row["sample"]): row["by_seed"] for row in rows
                    if row["world"] == world and row["site"] == "average"}  # fmt: skip
        greedy = [accuracy["greedy", sample] for sample in q.SAMPLES]
        at = f"at {', '.join(map(str, q.SAMPLES))} pages"
        for number, versions in enumerate(VERSIONS):
            hybrid = [accuracy[_hybrid(versions), sample] for sample in q.SAMPLES]
            gains = [
                fmean(one) - fmean(other)
                for one, other in zip(zip(*hybrid, strict=True), zip(*greedy, strict=True), strict=True)
            ]
            gain = interval(gains)
            better = True if gain.low > 0 else False if gain.high < 0 else None
            claims.append(
                Claim.of("§4.4, table 4.2", "Frequency-greedy is more accurate than greedy.", world, better,
                         f"{gain.mean:+.2f} points on average ({gain.low:+.2f} to {gain.high:+.2f}); "
                         f"greedy {_listed(greedy)}; frequency-greedy {_listed(hybrid)} {at}",
                         "assumed: where a page's history says nothing about its future, "
                         "a longer history adds nothing", reading=reading("versions", number))
            )  # fmt: skip
        falls = [min(later) - first for first, *later in zip(*greedy, strict=True)]
        high = [min(later) for _, *later in zip(*greedy, strict=True)]
        claims.append(
            Claim.of("§4.3, table 4.2", "Greedy's accuracy is high down to 25 pages and falls at 10.", world,
                     both(reaches(high, 95), reaches(falls, 5)), f"greedy {_listed(greedy)} {at}",
                     "assumed: where rates are low, a site without a sample is estimated nearly as well")
        )  # fmt: skip
    return claims


def _listed(values: Sequence[Sequence[float]]) -> str:
    return ", ".join(f"{fmean(value):.1f}" for value in values)


def _accuracy_chart(title: str) -> Picture:
    return Picture(
        "line", "sample", "accuracy", title, "pages sampled a day", "100 - |real - estimated|", colour="policy",
        facet="world", low="low", high="high", zero=False, only={"site": "average"},
    )  # fmt: skip


def _describe_worlds(options: ExperimentOptions) -> list[str]:
    sentences = [
        "*made, pages of a site alike*: the nine sites of table 4.1; a page changes daily with its site's rate",
        "*made, two kinds of pages*: the same rates, but that share of a site's pages changes daily, the rest never",
    ]
    return (
        [*sentences, f"*{ARCHIVES}*: {q.DAYS} days in the middle of each real site's history"]
        if options.archives
        else sentences
    )


def _runs(options: ExperimentOptions) -> int:
    return max(20 if options.scale >= 1 else 5, options.seeds)
