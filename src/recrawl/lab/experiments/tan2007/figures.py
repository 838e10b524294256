"""T's table 1 and figures 4 to 8, each a function from options to a result. `claims` judges T's statements on them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from recrawl.lab.experiments.readings import replayed
from recrawl.lab.experiments.result import ExperimentOptions, Picture, Result, Row
from recrawl.lab.experiments.tan2007 import claims
from recrawl.lab.experiments.tan2007.layout import domain_of
from recrawl.lab.experiments.tan2007.published import (
    CHOSEN_D,
    GRANULARITIES,
    PAGES,
    RESOURCES,
    SITES,
    TABLE_1,
    WEEKS,
)
from recrawl.lab.experiments.tan2007.replays import (
    ReplaySetting,
    archive_history,
    budget_text,
    describe_worlds,
    generated,
    page_count,
    run_settings,
    sampling,
)
from recrawl.lab.experiments.tan2007.world import TWorld
from recrawl.lab.histories.history import History

_D_COLUMN = {"d": "d"}
_ONE_BY_ONE = "DB, one at a time"
_RATIO = "mean ChangeRatio"
_NO_PRINTED_VALUES = "T's figure has no printed values; only T's statements about it are compared."
_DEPENDS_ON_SITES = (
    "Whether neighbours beat whole sites (GSB) depends on how much sites differ, which T does not print; compare the "
    "worlds. 'Sites alike' was added after a first run to test that reason; it is no better founded than the other "
    "world."
)
_SHAPE = "The shape is judged by the position of the peak, which means little where a curve is nearly flat."


def table_1(options: ExperimentOptions) -> Result:
    """Pages and sites by top-level domain."""
    history = generated(TWorld(pages=page_count(options.scale)))
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
        worlds=describe_worlds(ExperimentOptions(scale=options.scale), control=False),
        notes=[
            f"T gives {SITES} and 'more than {SITES}' sites; the rows of table 1 sum to 212.",
            "The world has these 212 sites and one more for the 706 miscellaneous URLs.",
            "The world is generated from this table, so agreement is not a finding; it is shown as a check.",
        ],
    )


def domains(history: History) -> list[Row]:
    """Table 1 of a history."""
    names = np.array([domain_of(host) for host in history.sites])
    pages = np.bincount(history.site, minlength=len(names))
    rows: list[Row] = []
    for name in dict.fromkeys(names.tolist()):
        in_domain = names == name
        total = int(pages[in_domain].sum())
        rows.append(
            {
                "domain": name,
                "pages": total,
                "share": round(100 * total / len(history), 1),
                "sites": int(in_domain.sum()),
                "pages_per_site": round(total / int(in_domain.sum()), 1),
            }
        )
    return rows


def fig_4(options: ExperimentOptions) -> Result:
    """Pages by depth, for each top-level domain."""
    world = TWorld(pages=page_count(options.scale))
    rows = depths(generated(world), world.label)
    if options.archives:
        rows += depths(archive_history(options), "archives")
    picture = Picture(
        "grouped", "depth", "share", "Fig. 4: depth of pages by domain", "slashes in the path",
        "% of the domain's pages", colour="domain", facet="world",
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_4(rows),
        pictures=[picture],
        worlds=describe_worlds(options, control=False),
        notes=[
            _NO_PRINTED_VALUES,
            "Depth is the number of slashes in the path. Generated depths are those of real site histories.",
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
            {"world": world, "domain": name, "depth": level, "pages": int(counts[level]),
             "share": round(100 * float(counts[level]) / max(1, int(counts.sum())), 2)}
            for level in range(1, 9)
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
    settings += [
        ReplaySetting("CB, rank=page", sampling("CB", d, reading="rank=page"), 8, 25_000, {"d": d})
        for d in GRANULARITIES
        if d >= 0
    ]
    rows = _without_cycles(run_settings(options, settings, clusters=True))
    return Result(
        rows,
        claims=claims.of_fig_5(rows),
        pictures=[_ratio_by_d("Fig. 5: neighbourhoods", budget_text(rows, 8), facet="world")],
        worlds=describe_worlds(options, clusters=True),
        notes=[
            _NO_PRINTED_VALUES,
            "CB's distance is a rank and never negative, so it is run for d ≥ 0 only.",
            "DB's reading *deeper is positive* is the same curve with the sign of d reversed.",
        ],
        table=_columns(_D_COLUMN),
    )


def fig_6(options: ExperimentOptions) -> Result:
    """T's three policies against three earlier ones."""
    settings = [
        ReplaySetting("RNS", "random", 8, 25_000, {}),
        *(ReplaySetting(name, text, 8, 25_000, {}) for name, text in replayed("round-robin").items()),
        ReplaySetting("GSB", "greedy", 8, 25_000, {}),
        *(ReplaySetting(f"{kind}({d})", sampling(kind, d), 8, 25_000, {}) for kind, d in CHOSEN_D.items()),
    ]
    rows = _without_cycles(run_settings(options, settings, clusters=True, sites_alike=True))
    picture = Picture(
        "grouped", "policy", "change_ratio", "Fig. 6: T's policies against others", "policy", _RATIO,
        colour="world", low="low", high="high", notes=(f"{budget_text(rows, 8)}; whiskers: 95 % interval of the mean",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_6(rows),
        pictures=[picture],
        worlds=[
            *describe_worlds(options, clusters=True),
            "*made, sites alike*: all sites have the same change rates, and none is rebuilt",
        ],
        notes=[_NO_PRINTED_VALUES, _DEPENDS_ON_SITES],
        table={**_columns({}), "share_of_clairvoyant": ">share of the maximum"},
    )


def fig_7(options: ExperimentOptions) -> Result:
    """DB by d, for three lengths of a cycle and three budgets."""
    settings = [
        ReplaySetting("DB", sampling("DB", d, batch=100), weeks, resources, {"d": d, "setting": f"{weeks} weeks"})
        for weeks in WEEKS
        for resources in RESOURCES
        for d in GRANULARITIES
    ]
    settings.append(ReplaySetting(_ONE_BY_ONE, sampling("DB", 1), 8, RESOURCES[0], {"d": 1, "setting": "8 weeks"}))
    all_rows = _without_cycles(run_settings(options, settings, control=False))
    rows = [row for row in all_rows if row["policy"] == "DB"]
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
        worlds=describe_worlds(options, control=False),
        notes=[_NO_PRINTED_VALUES, _batches_text(all_rows), _SHAPE],
        table=_columns({"weeks": ">weeks", "resources": ">R", "d": ">d"}),
    )


def _batches_text(rows: Iterable[Row]) -> str:
    """What batches of samples change, measured at one setting."""
    at = [row for row in rows if (row["weeks"], row["resources"], row["d"]) == (8, RESOURCES[0], 1)]
    pairs = {row["world"]: {other["policy"]: other for other in at if other["world"] == row["world"]} for row in at}
    shown = "; ".join(
        f"{both['DB']['change_ratio']:.3f} against {both[_ONE_BY_ONE]['change_ratio']:.3f} one at a time on "
        f"{both['DB']['pages']:,} pages ({world})"
        for world, both in pairs.items()
    )
    return f"Samples in batches of up to 100 to save time: at d = 1 and 8 weeks {shown}."


def fig_8(options: ExperimentOptions) -> Result:
    """Weighted ChangeRatio: download probability by PageRank against current status."""
    settings = [
        ReplaySetting(name, sampling("DB", d, phi), 2, 25_000, {"d": d})
        for name, phi in (("DB", "status"), ("PRA", "pra"), (claims.CONSTANT_PHI, "0.3"))
        for d in (1, 2, 4, 8)
    ]
    rows = _without_cycles(run_settings(options, settings))
    picture = Picture(
        "line", "d", "weighted", "Fig. 8: by popularity", "d", "weighted ChangeRatio", colour="policy", facet="world",
        low="weighted_low", high="weighted_high", notes=(f"{budget_text(rows, 2)}; weight: PageRank 0 to 10",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims.of_fig_8(rows),
        pictures=[picture],
        worlds=describe_worlds(options),
        notes=[
            _NO_PRINTED_VALUES,
            "T took PageRank from Google's API; here it is computed from the world's own links.",
        ],
        table={**_columns(_D_COLUMN), "weighted": ">weighted ChangeRatio"},
    )


def _without_cycles(rows: Iterable[Row]) -> list[Row]:
    """Rows without the values by cycle, which only figure 9 shows."""
    return [{key: value for key, value in row.items() if key != "by_cycle"} for row in rows]


def _ratio_by_d(title: str, note: str, facet: str) -> Picture:
    return Picture(
        "line", "d", "change_ratio", title, "d", _RATIO, colour="policy", facet=facet, low="low", high="high",
        notes=(note, "band: 95 % interval of the mean"),
    )  # fmt: skip


def _columns(extra: dict[str, str]) -> dict[str, str]:
    return {"world": "world", "policy": "policy", **extra, "change_ratio": f">{_RATIO}", "low": ">from",
            "high": ">to"}  # fmt: skip
