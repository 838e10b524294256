"""B's figure 2, table 1 and case study as experiments: what `b_tables` measures, judged by what B says about it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from recrawl.lab.experiments.barbosa2003 import measures
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.experiments.barbosa2003.measures import SiteScope, scope
from recrawl.lab.experiments.barbosa2003.world import BWorld, Nature
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.experiments.tan2007.replays import ARCHIVES, archives

PRINTED = "B, as printed"
_PUT_IN = {"depth", "waste", "more", "success"}
"""What follows from the numbers that the made world is set to."""
NATURES: dict[Nature, str] = {"alike": "made, pages of a depth alike", "two-kinds": "made, two kinds of pages"}


def fig_2(options: ExperimentOptions) -> Result:
    """The share changed daily, by depth from the anchor."""
    rows: list[Row] = [{"world": world, **row} for world, where in _scopes(options) for row in measures.figure_2(where)]
    claims = []
    for world, mine in _by_world(rows).items():
        shares = {row["depth"]: row["changed"] for row in mine if row["changed"] is not None and row["pages"]}
        falling = all(shares[one] >= shares[two] for one, two in zip(list(shares), list(shares)[1:], strict=False))
        measured = ", ".join(f"depth {depth}: {100 * share:.1f} %" for depth, share in shares.items())
        claims.append(_claim("depth", world, falling if len(shares) > 1 else None, measured,
                             "change does not fall with every step from the anchor"))  # fmt: skip
    picture = Picture(
        "grouped", "depth", "changed", "Fig. 2: changed since the day before, by depth", "depth from the anchor",
        "share of pages", colour="world", low="low", high="high", notes=("whiskers: least and greatest day",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=_told(options),
        notes=["Figure 2 is a chart whose values B prints nowhere. The made world's rates come from table 1."],
        table={"world": "world", "depth": ">depth", "pages": ">pages", "changed": ">changed", "low": ">least day",
               "high": ">greatest day"},
    )  # fmt: skip


def table_1(options: ExperimentOptions) -> Result:
    """Success rate and pages for n = 1, 2, 3."""
    rows: list[Row] = []
    recommended: list[str] = []
    for world, where in _scopes(options):
        rows += [{"world": world, **row} for row in measures.table_1(where)]
        choice = measures.recommended(where)
        recommended.append(f"On *{world}*, `recrawl anchor` would recommend n = {choice['n']}; B chose {b.CHOSEN_N}.")
    claims = []
    for world, mine in _by_world(rows).items():
        rate = {row["n"]: row["success"] or 0.0 for row in mine}
        found = {row["n"]: (row["success"] or 0.0) * row["pages"] for row in mine}
        said = ", ".join(f"n ≤ {n}: {100 * share:.1f} %" for n, share in rate.items())
        count = ", ".join(f"n ≤ {n}: {pages:,.0f}" for n, pages in found.items())
        claims += [
            _claim("waste", world, rate[2] > rate[3], said, "depth 3 changes as much as what lies before it"),
            _claim("more", world, found[2] > found[1], count, ""),
        ]
    rows += [{"world": PRINTED, "n": group.n, "pages": group.pages, "success": group.success} for group in b.TABLE_1]
    return Result(
        rows,
        published=[group._asdict() for group in b.TABLE_1],
        claims=claims,
        pictures=[Picture("grouped", "n", "success", "Table 1: success rate by n", "n", "changed / visited",
                          colour="world", low="low", high="high")],
        worlds=_told(options),
        notes=["The made world is set to this table, so that it agrees there is no finding.", *recommended],
        table={"world": "world", "n": ">n", "pages": ">pages", "published_pages": ">B pages", "success": ">success",
               "published_success": ">B success"},
    )  # fmt: skip


def case_study(options: ExperimentOptions) -> Result:
    """Uniform visits against the dynamic group."""
    rows: list[Row] = []
    for world, where in _scopes(options):
        rows += [{"world": world, "how": "counted", **row} for row in measures.case_study(where)]
        rows += [{"world": world, "how": "replayed", **row} for row in measures.replayed(where)]
    claims = [claim for world, mine in _by_world(rows).items() for claim in _of_case(world, mine)]
    printed: list[Row] = [
        {"policy": "uniform", "success": b.UNIFORM_SUCCESS, "hours": b.UNIFORM_HOURS["from its figures"]},
        {"policy": "non-uniform", "success": b.GROUP_SUCCESS["text"], "hours": b.GROUP_HOURS["printed"]},
    ]
    return Result(
        [*rows, *({"world": PRINTED, "how": "counted", **row} for row in printed)],
        published=printed,
        claims=claims,
        pictures=[Picture("grouped", "policy", "success", "Case study: success rate", "", "changed / visited",
                          colour="world", only={"how": "counted"})],
        worlds=_told(options),
        notes=["*counted*: as B did, the dynamic group alone.",
               "*replayed*: by the policies, with one budget; what the dynamic group leaves goes to the rest.",
               "B prints 42 % in the text and 41 % in table 1, and three durations (`published_b.py`)."],
        table={"world": "world", "how": "how", "policy": "policy", "pages": ">pages", "success": ">success",
               "published_success": ">B success", "hours": ">hours", "published_hours": ">B hours",
               "delay_hours_of_group": ">delay of group, h", "delay_hours": ">delay, h", "freshness": ">freshness"},
    )  # fmt: skip


def _of_case(world: str, rows: Sequence[Row]) -> list[Claim]:
    uniform, often = (next(row for row in rows if row["policy"] == name) for name in ("uniform", "non-uniform"))
    success = f"non-uniform {100 * often['success']:.1f} %, uniform {100 * uniform['success']:.1f} %"
    hours = f"{often['hours']:.1f} hours for the dynamic group, {uniform['hours']:.0f} for all pages"
    asked = f"{often['requests_a_day']:,.0f} requests a day against {uniform['requests_a_day']:,.0f}"
    part = f"the dynamic group has {100 * often['pages'] / uniform['pages']:.0f} % of the pages here, 1 % in B"
    few = "supposed: within hours few of these pages change, within a whole pass more do"
    return [
        _claim("success", world, often["success"] > uniform["success"], success,
               few),
        _claim("time", world, often["hours"] < uniform["hours"] / 10, hours, part),
        _claim("requests", world, often["requests_a_day"] < uniform["requests_a_day"], asked, part),
    ]  # fmt: skip


def _claim(name: str, world: str, holds: bool | None, measured: str, why: str) -> Claim:
    place, says = b.SAYS[name]
    return Claim.of(place, says, world, holds, measured, why, given=name in _PUT_IN and world != ARCHIVES)


def _scopes(options: ExperimentOptions) -> Iterator[tuple[str, SiteScope]]:
    for nature, name in NATURES.items():
        yield name, _made(nature, _sites(options))
    if options.archives:
        yield ARCHIVES, scope(archives(options))


@functools.lru_cache(maxsize=2)
def _made(nature: Nature, sites: int) -> SiteScope:
    return scope(BWorld(sites=sites, nature=nature).build())


def _sites(options: ExperimentOptions) -> int:
    return max(1, round(b.SITES * options.scale))


def _by_world(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["world"], []).append(row)
    return found


def _told(options: ExperimentOptions) -> list[str]:
    sites = _sites(options)
    told = [
        f"*made, pages of a depth alike*: {sites} news sites, B's pages by depth; one rate for a depth",
        "*made, two kinds of pages*: the same, but some pages of a depth change every three hours, the others seldom",
    ]
    if options.archives:
        told.append(f"*{ARCHIVES}*: real sites, few of them news, from mid-history on; anchors found automatically")
    return told
