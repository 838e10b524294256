"""T's table 1 and figures 4 to 9, each a function from options to a result. What they say is judged in `t_claims`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from recrawl.lab.experiments.result import ExperimentOptions, Picture, Result, Row
from recrawl.lab.experiments.tan2007 import claims
from recrawl.lab.experiments.tan2007.layout import domain_of
from recrawl.lab.experiments.tan2007.published import (
    CHOSEN_D,
    CYCLES,
    GRANULARITIES,
    PAGES,
    RESOURCES,
    SITES,
    TABLE_1,
    WEEKS,
)
from recrawl.lab.experiments.tan2007.replays import ReplaySetting, archives, made, measure, pages_at, worlds_of
from recrawl.lab.experiments.tan2007.world import TWorld
from recrawl.lab.histories.history import History

NEIGHBOURS = {"DB": "directory", "LB": "links", "CB": "clusters"}
_D = {"d": "d"}
_RATIO = "mean ChangeRatio"
_NO_VALUES = "T's figure is a drawing without values; what it says in words is compared."
_SENSITIVE = (
    "Whether neighbours beat whole sites (GSB) depends on how much sites differ, which T does not print: compare the "
    "worlds. 'Sites alike' was added after a first run, to test that reason; it is no better founded than the other."
)
_BATCHED = (
    "One seed, and samples in batches of up to 100 to save time: on 60,000 pages DB's ratio was within 0.01 of that of "
    "one sample at a time. The shape is judged by where the peak lies, which means little where a curve is nearly flat."
)


def sampling(kind: str, d: int, phi: str = "status", batch: int = 1) -> str:
    """The policy's text. One sample at a time, as T prints the algorithm: in batches, large neighbourhoods of many
    seeds use up the budget at distance 0, and a larger d makes no difference.

    >>> sampling("LB", 3)
    'sampling(neighbours=links, d=3, phi=status, batch=1)'
    """
    return f"sampling(neighbours={NEIGHBOURS[kind]}, d={d}, phi={phi}, batch={batch})"


def table_1(options: ExperimentOptions) -> Result:
    """Pages and sites by top-level domain."""
    history = made(TWorld(pages=pages_at(options.scale)))
    rows = domains(history)
    published: list[Row] = [
        {"domain": name, "pages": pages, "share": share, "sites": sites, "pages_per_site": mean}
        for name, pages, share, sites, mean in TABLE_1
    ]
    by_name = {row["domain"]: row for row in published}
    rows = [
        {**row, **{f"T: {key}": by_name[row["domain"]][key] for key in ("pages", "share", "sites", "pages_per_site")}}
        for row in rows
    ]
    return Result(
        rows,
        published,
        claims=claims.of_table_1(rows, exact=len(history) == PAGES),
        pictures=[Picture("bar", "domain", "pages", "Pages by top-level domain", "domain", "pages")],
        worlds=worlds_of(ExperimentOptions(scale=options.scale), control=False),
        notes=[
            f"T speaks of {SITES} and of 'more than {SITES}' sites; the lines of table 1 add up to 212.",
            "The world has these 212 and one site for the 706 miscellaneous addresses.",
            "This table is what the world is made from, so that it agrees is no finding; it is shown as a check.",
        ],
    )


def domains(history: History) -> list[Row]:
    """Table 1 of a history."""
    names = np.array([domain_of(host) for host in history.sites])
    pages = np.bincount(history.site, minlength=len(names))
    rows: list[Row] = []
    for name in dict.fromkeys(names.tolist()):
        mine = names == name
        total = int(pages[mine].sum())
        rows.append(
            {
                "domain": name,
                "pages": total,
                "share": round(100 * total / len(history), 1),
                "sites": int(mine.sum()),
                "pages_per_site": round(total / int(mine.sum()), 1),
            }
        )
    return rows


def fig_4(options: ExperimentOptions) -> Result:
    """Pages by depth, for each top-level domain."""
    world = TWorld(pages=pages_at(options.scale))
    rows = depths(made(world), world.label)
    if options.archives:
        rows += depths(archives(options), "archives")
    return Result(
        rows,
        claims=claims.of_fig_4(rows),
        pictures=[
            Picture(
                "grouped",
                "depth",
                "share",
                "Fig. 4: depth of pages by domain",
                "slashes in the path",
                "% of the domain's pages",
                colour="domain",
                facet="world",
            )
        ],
        worlds=worlds_of(options, control=False),
        notes=[
            _NO_VALUES,
            "Depth is the number of slashes in the path. The made world takes its depths from real site histories.",
        ],
        table={"world": "world", "domain": "domain", "depth": ">depth", "pages": ">pages", "share": ">% of domain"},
    )


def depths(history: History, world: str) -> list[Row]:
    """Figure 4 of a history; depths over 8 count as 8."""
    names = np.array([domain_of(host) for host in history.sites])[history.site]
    depth = np.minimum(history.folders.level[history.folder] + 1, 8)
    rows: list[Row] = []
    for name in dict.fromkeys(names.tolist()):
        counts = np.bincount(depth[names == name], minlength=9)
        rows += [
            {"world": world, "domain": name, "depth": at, "pages": int(counts[at]),
             "share": round(100 * float(counts[at]) / max(1, int(counts.sum())), 2)}
            for at in range(1, 9)
        ]  # fmt: skip
    return rows


def fig_5(options: ExperimentOptions) -> Result:
    """Mean ChangeRatio by d for the three kinds of neighbourhood."""
    settings = [
        ReplaySetting(kind, sampling(kind, d), 8, 25_000, {"d": d})
        for kind in ("DB", "LB", "CB")
        for d in GRANULARITIES
        if kind != "CB" or d >= 0
    ]
    rows = _short(measure(options, settings, clusters=True))
    return Result(
        rows,
        claims=claims.of_fig_5(rows),
        pictures=[_curves("Fig. 5: neighbourhoods", "8-week cycles, R = 25,000 of 284,692 pages", facet="world")],
        worlds=worlds_of(options),
        notes=[_NO_VALUES, "CB's distance is a rank and never negative, so it is run for d ≥ 0 only."],
        table=_columns(_D),
    )


def fig_6(options: ExperimentOptions) -> Result:
    """Three policies that existed against T's three."""
    settings = [
        ReplaySetting("RNS", "random", 8, 25_000, {}),
        ReplaySetting("RR", "round-robin", 8, 25_000, {}),
        ReplaySetting("GSB", "greedy", 8, 25_000, {}),
        *(ReplaySetting(f"{kind}({d})", sampling(kind, d), 8, 25_000, {}) for kind, d in CHOSEN_D.items()),
    ]
    rows = _short(measure(options, settings, clusters=True, sites_alike=True))
    picture = Picture(
        "grouped", "policy", "change_ratio", "Fig. 6: T's policies against others", "policy", _RATIO,
        colour="world", low="low", high="high", notes=("8-week cycles, R = 25,000; whiskers: least and greatest seed",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_6(rows),
        pictures=[picture],
        worlds=[*worlds_of(options), "*made, sites alike*: no site changes more than another, none is rebuilt"],
        notes=[_NO_VALUES, _SENSITIVE],
        table={**_columns({}), "share_of_clairvoyant": ">of the most possible"},
    )


def fig_7(options: ExperimentOptions) -> Result:
    """DB by d, for three lengths of a cycle and three budgets."""
    settings = [
        ReplaySetting("DB", sampling("DB", d, batch=100), weeks, resources, {"d": d, "setting": f"{weeks} weeks"})
        for weeks in WEEKS
        for resources in RESOURCES
        for d in GRANULARITIES
    ]
    # 135 settings: one seed is enough to see what they have in common.
    rows = _short(measure(replace(options, seeds=1), settings, control=False))
    pictures = [
        Picture(
            "line", "d", "change_ratio", f"Fig. 7: DB by d, cycle and R ({world})", "d", _RATIO, colour="resources",
            colour_title="R", facet="setting", low="low", high="high", columns=3, only={"world": world},
        )
        for world in dict.fromkeys(row["world"] for row in rows)
    ]  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_7(rows),
        pictures=pictures,
        worlds=worlds_of(options, control=False),
        notes=[_NO_VALUES, _BATCHED],
        table=_columns({"weeks": ">weeks", "resources": ">R", "d": ">d"}),
    )


def fig_8(options: ExperimentOptions) -> Result:
    """Weighted ChangeRatio: download probability by PageRank against current status."""
    settings = [
        ReplaySetting(name, sampling("DB", d, phi), 2, 25_000, {"d": d})
        for name, phi in (("DB", "status"), ("PRA", "pra"))
        for d in (1, 2, 4, 8)
    ]
    rows = _short(measure(options, settings))
    picture = Picture(
        "line", "d", "weighted", "Fig. 8: by popularity", "d", "weighted ChangeRatio", colour="policy", facet="world",
        low="weighted_low", high="weighted_high", notes=("2-week cycles, R = 25,000; weight: PageRank 0 to 10",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_8(rows),
        pictures=[picture],
        worlds=worlds_of(options),
        notes=[_NO_VALUES, "T took PageRank from Google's API; here it is computed from the world's own links."],
        table={**_columns(_D), "weighted": ">weighted ChangeRatio"},
    )


def fig_9(options: ExperimentOptions) -> Result:
    """ChangeRatio in each of 24 cycles: status, history, weighted history, chance."""
    settings = [
        ReplaySetting("DB", sampling("DB", 1), 2, 25_000, {}),
        ReplaySetting("HA", sampling("DB", 1, "ha"), 2, 25_000, {}),
        ReplaySetting("WHA", sampling("DB", 1, "wha"), 2, 25_000, {}),
        ReplaySetting("RNS", "random", 2, 25_000, {}),
    ]
    rows = list(by_cycle(measure(options, settings)))
    picture = Picture(
        "line", "cycle", "change_ratio", "Fig. 9: the long run", "cycle", "ChangeRatio", colour="policy",
        facet="world", low="low", high="high", notes=("2-week cycles, R = 25,000, d = 1",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_9(rows),
        pictures=[picture],
        worlds=worlds_of(options),
        notes=[_NO_VALUES, f"T plots {CYCLES} cycles of two weeks."],
        table={"world": "world", "policy": "policy", "cycle": ">cycle", "change_ratio": ">ChangeRatio"},
    )


def by_cycle(rows: Iterable[Row]) -> Iterable[Row]:
    """One row for each cycle of a row."""
    for row in rows:
        for cycle, values in enumerate(row["by_cycle"], 1):
            if values is not None:
                mean, low, high = values
                keys = ("world", "policy", "weeks", "resources", "budget", "pages", "seeds")
                yield {
                    **{key: row[key] for key in keys},
                    "cycle": cycle,
                    "change_ratio": mean,
                    "low": low,
                    "high": high,
                }


def _short(rows: Iterable[Row]) -> list[Row]:
    """Rows without what only figure 9 shows."""
    return [{key: value for key, value in row.items() if key != "by_cycle"} for row in rows]


def _curves(title: str, note: str, facet: str) -> Picture:
    return Picture(
        "line", "d", "change_ratio", title, "d", _RATIO, colour="policy", facet=facet, low="low", high="high",
        notes=(note, "band: least and greatest seed"),
    )  # fmt: skip


def _columns(further: dict[str, str]) -> dict[str, str]:
    return {"world": "world", "policy": "policy", **further, "change_ratio": f">{_RATIO}", "low": ">least",
            "high": ">greatest"}  # fmt: skip
