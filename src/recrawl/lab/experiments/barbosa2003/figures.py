"""B's figure 2, table 1 and case study as experiments: `measures` with a verdict on each of B's statements."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from statistics import fmean

from recrawl.lab.experiments.barbosa2003 import measures
from recrawl.lab.experiments.barbosa2003 import published as b
from recrawl.lab.experiments.barbosa2003.measures import SiteScope, scope_at
from recrawl.lab.experiments.barbosa2003.world import BWorld, RateMix
from recrawl.lab.experiments.intervals import above, interval
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row, by_world
from recrawl.lab.experiments.tan2007 import ARCHIVES, archive_history

PRINTED = "B, as printed"
_FITTED = {"depth", "waste", "more", "success", "time", "requests"}
"""Statements that follow from the numbers the generated world is fitted to; time and requests follow from B's page
counts and pace alone."""
WORLDS: dict[RateMix, str] = {"alike": "made, pages of a depth alike", "two-kinds": "made, two kinds of pages"}


def fig_2(options: ExperimentOptions) -> Result:
    """The share of pages changed daily, by depth from the anchor."""
    rows: list[Row] = [{"world": world, **row} for world, scope in _scopes(options) for row in measures.figure_2(scope)]
    claims = []
    for world, world_rows in by_world(rows).items():
        shares = {row["depth"]: row["changed"] for row in world_rows if row["changed"] is not None and row["pages"]}
        falling = all(shares[one] >= shares[two] for one, two in zip(list(shares), list(shares)[1:], strict=False))
        measured = ", ".join(f"depth {depth}: {100 * share:.1f} %" for depth, share in shares.items())
        claims.append(_claim("depth", world, falling if len(shares) > 1 else None, measured,
                             "assumed: most of these sites are no news sites"))  # fmt: skip
    picture = Picture(
        "grouped", "depth", "changed", "Fig. 2: changed since the day before, by depth", "depth from the anchor",
        "share of pages", colour="world", low="low", high="high", notes=("whiskers: least and greatest day",),
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=_describe_worlds(options),
        notes=["B does not print the values of figure 2. The generated worlds' rates come from table 1."],
        table={"world": "world", "depth": ">depth", "pages": ">pages", "changed": ">changed", "low": ">least day",
               "high": ">greatest day"},
    )  # fmt: skip


def table_1(options: ExperimentOptions) -> Result:
    """Success rate and pages for n = 1, 2, 3."""
    rows: list[Row] = []
    recommended: list[str] = []
    for world, scope in _scopes(options):
        rows += [{"world": world, **row} for row in measures.table_1(scope)]
        choice = measures.recommended(scope)
        recommended.append(f"On *{world}*, `recrawl anchor` would recommend n = {choice['n']}; B chose {b.CHOSEN_N}.")
    claims = []
    for world, world_rows in by_world(rows).items():
        rate = {row["n"]: row["success"] or 0.0 for row in world_rows}
        changed_pages = {row["n"]: (row["success"] or 0.0) * row["pages"] for row in world_rows}
        rate_text = ", ".join(f"n ≤ {n}: {100 * share:.1f} %" for n, share in rate.items())
        count = ", ".join(f"n ≤ {n}: {pages:,.0f}" for n, pages in changed_pages.items())
        claims += [
            _claim(
                "waste",
                world,
                rate[2] > rate[3],
                rate_text,
                "assumed: on these sites depth 3 changes as often as the depths before it",
            ),
            _claim(
                "more", world, changed_pages[2] > changed_pages[1], count, "assumed: depth 2 has few pages that change"
            ),
        ]
    rows += [{"world": PRINTED, "n": group.n, "pages": group.pages, "success": group.success} for group in b.TABLE_1]
    return Result(
        rows,
        published=[group._asdict() for group in b.TABLE_1],
        claims=claims,
        pictures=[Picture("grouped", "n", "success", "Table 1: success rate by n", "n", "changed / visited",
                          colour="world", low="low", high="high")],
        worlds=_describe_worlds(options),
        notes=["The generated worlds are fitted to this table, so agreement there is not a finding.", *recommended],
        table={"world": "world", "n": ">n", "pages": ">pages", "published_pages": ">B pages", "success": ">success",
               "published_success": ">B success"},
    )  # fmt: skip


def case_study(options: ExperimentOptions) -> Result:
    """Uniform visits against the dynamic group, with each reading of what becomes of the other pages."""
    rows: list[Row] = []
    for world, scopes in _scopes_by_seed(options):
        runs: dict[tuple[str, str], list[Row]] = {}
        for seed, scope in enumerate(scopes, 1):
            for how, found in (("counted", measures.case_study), ("replayed", measures.replayed)):
                for row in found(scope, seed=seed):
                    runs.setdefault((how, row["policy"]), []).append(row)
        rows += [{"world": world, "how": how, **_mean_row(found)} for (how, _), found in runs.items()]
    claims = [claim for world, world_rows in by_world(rows).items() for claim in _case_claims(world, world_rows)]
    printed: list[Row] = [
        {"policy": "uniform", "success": b.UNIFORM_SUCCESS, "hours": b.UNIFORM_HOURS["from its figures"]},
        {"policy": "non-uniform", "success": b.GROUP_SUCCESS["text"], "hours": b.GROUP_HOURS["printed"]},
    ]
    return Result(
        [*rows, *({"world": PRINTED, "how": "counted", **row} for row in printed)],
        published=printed,
        claims=claims,
        pictures=[Picture("grouped", "policy", "success", "Case study: success rate", "", "changed / visited",
                          colour="world", low="low", high="high", only={"how": "counted"})],
        worlds=_describe_worlds(options),
        notes=["*counted*: as in B, visits to the dynamic group only.",
               "*replayed*: by the policies, with one budget; what becomes of the other pages is a reading of B.",
               "B prints 42 % in the text and 41 % in table 1, and three durations (see `barbosa2003/published.py`)."],
        table={"world": "world", "how": "how", "policy": "policy", "reading": "reading", "pages": ">pages",
               "success": ">success", "published_success": ">B success", "hours": ">hours",
               "published_hours": ">B hours", "requests_a_day": ">requests a day",
               "delay_hours_of_group": ">delay of group, h", "delay_hours": ">delay, h", "freshness": ">freshness",
               "age_days": ">age, days"},
    )  # fmt: skip


def _mean_row(rows: Sequence[Row]) -> Row:
    """The means of the numbers of a row over the seeds; those that claims compare also by seed."""
    known = {key: [row[key] for row in rows if row[key] is not None] for key in rows[0]}
    means = {
        key: values[0] if isinstance(values[0], str) else fmean(values) if values else None
        for key, values in known.items()
        if values
    }
    by_seed = {f"{key}_by_seed": known[key] for key in ("success", "requests_a_day")}
    _, low, high = interval(known["success"])
    return {**means, **by_seed, "low": low, "high": high}


def _case_claims(world: str, rows: Sequence[Row]) -> list[Claim]:
    counted = {row["policy"]: row for row in rows if row["how"] == "counted"}
    uniform, dynamic = counted["uniform"], counted["non-uniform"]
    hours = f"{dynamic['hours']:.1f} hours for the dynamic group, {uniform['hours']:.0f} for all pages"
    group_share = (
        f"measured: the dynamic group has {100 * dynamic['pages'] / uniform['pages']:.0f} % of the pages here, 1 % in B"
    )
    fast_only = "assumed: few of these pages change within hours, more within a whole pass"
    claims = [
        _claim("success", world, *_compared(dynamic, uniform, "success"), fast_only, reading="counted, as in B"),
        _claim("time", world, dynamic["hours"] < uniform["hours"] / 10, hours, group_share),
        _claim(
            "requests",
            world,
            *_compared(uniform, dynamic, "requests_a_day"),
            group_share,
            reading="counted, as in B",
        ),
    ]
    replays = {row.get("reading", ""): row for row in rows if row["how"] == "replayed"}
    for reading in SENTENCES["slow"].readings:
        row, other = replays[reading.name], replays[""]
        claims += [
            _claim("success", world, *_compared(row, other, "success"), fast_only, reading=reading.name),
            _claim("requests", world, *_compared(other, row, "requests_a_day"), group_share, reading=reading.name),
        ]
    return claims


def _compared(first: Row, second: Row, key: str) -> tuple[bool | None, str]:
    """Whether the first is greater, and the numbers."""
    values = [row[f"{key}_by_seed"] for row in (first, second)]
    shown = (
        f"{row['policy']}: {100 * fmean(of):.1f} %" if key == "success" else f"{row['policy']}: {fmean(of):,.0f} a day"
        for row, of in zip((first, second), values, strict=True)
    )
    return above(*values), "; ".join(shown)


def _claim(name: str, world: str, holds: bool | None, measured: str, why: str, reading: str = "") -> Claim:
    place, says = b.STATEMENTS[name]
    # Of the replays, only the success rate of the dynamic group alone is what the world was fitted to.
    given = name in _FITTED and world != ARCHIVES and reading in ("", "counted, as in B")
    return Claim.of(place, says, world, holds, measured, why, given=given, reading=reading)


def _scopes(options: ExperimentOptions) -> Iterator[tuple[str, SiteScope]]:
    for mix, name in WORLDS.items():
        yield name, _generated(mix, _sites(options))
    if options.archives:
        yield ARCHIVES, scope_at(archive_history(options))


def _scopes_by_seed(options: ExperimentOptions) -> Iterator[tuple[str, Iterator[SiteScope]]]:
    seeds = range(1, options.seeds + 1)
    for mix, name in WORLDS.items():
        yield name, (_generated(mix, _sites(options), seed) for seed in seeds)
    if options.archives:
        scope = scope_at(archive_history(options))
        yield ARCHIVES, (scope for _ in seeds)


@functools.lru_cache(maxsize=2)
def _generated(mix: RateMix, sites: int, seed: int = 1) -> SiteScope:
    return scope_at(BWorld(sites=sites, mix=mix, seed=seed).build())


def _sites(options: ExperimentOptions) -> int:
    return max(1, round(b.SITES * options.scale))


def _describe_worlds(options: ExperimentOptions) -> list[str]:
    sites = _sites(options)
    sentences = [
        f"*made, pages of a depth alike*: {sites} news sites with B's pages by depth; one change rate per depth",
        "*made, two kinds of pages*: the same, but some pages of a depth change every three hours, the others rarely",
    ]
    if options.archives:
        sentences.append(
            f"*{ARCHIVES}*: real sites, few of them news, from mid-history on; anchors found automatically"
        )
    return sentences
