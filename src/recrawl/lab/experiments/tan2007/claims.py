"""T's statements about its figures, judged against measured rows, world by world.

Each function takes the rows of one experiment and returns one verdict per statement, world and reading. "About" means
within 20 %, "similar" within 10 %, "largely" by 10 % or more, and differences under 2 % decide nothing, nor do those
whose 95 % interval over seeds contains 0 (`intervals`). Two rules were set after a first small run: the 2 %,
and that the best of T's three policies must reach at least 80 % of "three times" and "twice". Before, any difference
decided, and any of the three within 20 % was enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import correlation, fmean

from recrawl.lab.experiments.intervals import above, both, interval, reaches, within
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.experiments.result import Claim, Row, by_world
from recrawl.lab.experiments.tan2007.published import BEST_D, CHOSEN_D, PAGES, RESOURCES, STATEMENTS, TABLE_1, WEEKS
from recrawl.lab.experiments.tan2007.replays import ARCHIVES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TEXT_TELLS, TWorld

ABOUT = 0.2
SIMILAR = 0.1
LARGELY = 0.1
ALIKE = 0.8
"""Curves with a correlation above this have roughly the same shape."""
CONSTANT_PHI = "φ = 0.3"

Judgement = tuple[bool | None, str, str]
"""Whether the statement holds (None: cannot be said), the measured numbers, and the reason where it does not hold."""


def claim(name: str, world: str, judgement: Judgement, *, given: bool = False, reading: str = "") -> Claim:
    """The claim on a world, with the reason that applies there."""
    place, says = STATEMENTS[name]
    holds, measured, why = judgement
    if world == TWorld(together=False).label:
        why = "this is the control world: pages are independent of their neighbours"
    why = why or _WHY.get(name, "")
    if world == TWorld(process=SITES_ALIKE).label and why.startswith(_SITES_DIFFER):
        why = "assumed: samples without a change cost visits"  # this world is the test of the other reason
    elif world != TWorld().label and why.startswith(_SITES_DIFFER):
        why = f"assumed here; on the generated world: {why}"  # a test on one world proves nothing for another
    return Claim.of(place, says, world, holds, measured, why, given=given, reading=reading)


_SITES_DIFFER = "tested: differences between sites raise GSB"
_FOLLOWS_UNCHANGED = "assumed: φ of a page with few changes is low, so that fewer changed samples lead"
_WHY = {
    "db-over-lb": "assumed: links and directories lead to nearly the same pages here",
    "cb-over-db": "assumed: clusters are larger than directories, and content predicts change less well than location",
    "peak-DB": "assumed: directories are larger or deeper than on T's sites",
    "peak-LB": "assumed: one hop already reaches most of the pages that change together",
    "peak-CB": "assumed: neighbouring clusters change about as often",
    "falls-CB": "assumed: neighbouring clusters change about as often",
    "positive-DB": "assumed: lower directories are smaller here, so they cost fewer visits",
    "positive-LB": "assumed: menus link every page to the same pages, so in-links tell more than out-links",
    "rr-like-rns": "assumed: round-robin's pages have all waited long, randomly drawn pages not always",
    "gsb-over-rns": "assumed: samples cost visits, and most sites change at similar rates",
    "ours-over-all": "assumed: sites differ more than directories",
    "twice": "assumed: sites differ more than on T's web, which raises GSB",
    "longer": "assumed: most pages that change at all do so within the shorter cycle",
    "smaller-r": "assumed: a larger R reaches further groups that change as often",
    "slow-start": "assumed: one change on one visit gives λ = 1",
    "wha-over-ha": "assumed: rates are steady, so recent visits tell no more than older ones",
    "wha-passes": _FOLLOWS_UNCHANGED,
    "ha-passes": _FOLLOWS_UNCHANGED,
    "long-run": _FOLLOWS_UNCHANGED,
    "overtakes": _FOLLOWS_UNCHANGED,
    "begins-below": "assumed: one change on one visit gives λ = 1",
}
"""Reasons that the run itself does not show; where a run tested a reason, the reason says which figures."""


def of_table_1(rows: Sequence[Row], *, exact: bool) -> list[Claim]:
    """The world has the pages of table 1."""
    pages = {row["domain"]: row["pages"] for row in rows}
    same = all(pages.get(domain.name) == domain.pages for domain in TABLE_1)
    total = sum(pages.values())
    holds = same if exact else None
    why = "the world is smaller than T's" if not exact else "the world was not generated from the table"
    says = f"{PAGES:,} pages, .edu and .com together more than 70 %."
    measured = f"{total:,} pages, {100 * (pages.get('edu', 0) + pages.get('com', 0)) / total:.1f} % .edu and .com"
    return [Claim.of("table 1", says, TWorld().label, holds, measured, why, given=True)]


def of_fig_4(rows: Sequence[Row]) -> list[Claim]:
    """The distribution of depths."""
    claims = []
    for world, world_rows in by_world(rows).items():
        total = sum(row["pages"] for row in world_rows)
        middle = sum(row["pages"] for row in world_rows if row["depth"] in (2, 3, 4)) / total
        deep = sum(row["pages"] for row in world_rows if row["depth"] >= 7) / total
        measured = f"{100 * middle:.0f} % at 2 to 4, {100 * deep:.2f} % at 7 and more"
        judgement = (middle > 0.5 and deep < 0.1, measured, "assumed: these sites are structured differently")
        claims.append(claim("depth", world, judgement, given=world != ARCHIVES))
    return claims


Curve = dict[int, list[float]]
"""By d or cycle: the values of the seeds."""


def curves_of(rows: Iterable[Row], at: str = "d", value: str = "by_seed") -> dict[str, Curve]:
    """By policy: its values at each d (or another column)."""
    curves: dict[str, Curve] = {}
    for row in rows:
        curves.setdefault(row["policy"], {})[row[at]] = row[value]
    return curves


def mean_at(curve: Curve, at: Iterable[int]) -> list[float]:
    """The means of a curve over some of its points, by seed."""
    return [fmean(values) for values in zip(*(curve[point] for point in at), strict=True)]


def of_fig_5(rows: Sequence[Row]) -> list[Claim]:
    """The kinds of neighbourhood."""
    claims = []
    text, printed = (one.name for one in SENTENCES["sign"].readings)
    sample, page = (one.name for one in SENTENCES["cluster-distance"].readings)
    for world, world_rows in by_world(rows).items():
        curves = curves_of(world_rows)
        db = curves.get("DB", {})
        claims.append(claim("db-over-lb", world, _compare_means(curves, "DB", "LB", range(-6, 9))))
        for name, reading in (("CB", sample), ("CB, rank=page", page)):
            if name in curves or name == "CB":
                by_content = _compare_means(curves, name, "DB", range(4))
                claims.append(claim("cb-over-db", world, _if_text_tells(world, by_content), reading=reading))
                peak = _if_text_tells(world, _peak(curves.get(name), "CB"))
                claims.append(claim("peak-CB", world, peak, reading=reading))
                falls = _if_text_tells(world, _falls(curves.get(name)))
                claims.append(claim("falls-CB", world, falls, reading=reading))
        for reading, curve in ((text, db), (printed, {-d: values for d, values in db.items()})):
            both_ends = {d: values for d, values in curve.items() if -d in curve}
            claims.append(claim("peak-DB", world, _peak(both_ends, "DB"), reading=reading))
            claims.append(claim("positive-DB", world, _positive(both_ends), reading=reading))
        claims.append(claim("peak-LB", world, _peak(curves.get("LB"), "LB")))
        claims.append(claim("positive-LB", world, _positive(curves.get("LB"))))
    return claims


def text_tells(world: str) -> bool:
    """Whether the text of pages says something about change, so that clusters by content can work."""
    return world in (ARCHIVES, TWorld(process=TEXT_TELLS).label)


def _if_text_tells(world: str, judgement: Judgement) -> Judgement:
    """No judgement on clusters by content in a world whose text says nothing about change."""
    if text_tells(world) or judgement[0] is None:
        return judgement
    label = TWorld(process=TEXT_TELLS).label
    return None, judgement[1], f"in this world text says nothing about change beyond the location; see '{label}'"


_NO_CLUSTERS: Judgement = (None, "not measured", "this world has no such neighbourhoods")


def _compare_means(curves: dict[str, Curve], first: str, second: str, at: Iterable[int]) -> Judgement:
    """The means of two policies over a range of d."""
    if first not in curves or second not in curves:
        return _NO_CLUSTERS
    shared = [d for d in at if d in curves[first] and d in curves[second]]
    means = [mean_at(curves[name], shared) for name in (first, second)]
    higher = sum(fmean(curves[first][d]) > fmean(curves[second][d]) for d in shared)
    measured = f"{first} {interval(means[0])}, {second} {interval(means[1])} on average; "
    return above(*means), f"{measured}{first} above at {higher} of {len(shared)} d", ""


def _peak(curve: Curve | None, kind: str) -> Judgement:
    """Whether the best d, or one that cannot be told from it, is T's."""
    if not curve:
        return _NO_CLUSTERS
    best = max(curve, key=lambda d: fmean(curve[d]))
    level = {d for d in curve if above(curve[best], curve[d]) is not True}
    measured = f"best at d = {_range_text(level)} with {interval(curve[best])}"
    measured += "".join(f", {fmean(curve[d]):.3f} at {d}" for d in BEST_D[kind] if d not in level and d in curve)
    if len(level) > len(curve) / 2:
        return None, f"{measured}: flat", "most d cannot be told from the best"
    return bool(level & set(BEST_D[kind])), measured, ""


def _falls(curve: Curve | None) -> Judgement:
    """Whether ChangeRatio largely decreases above d = 0."""
    if not curve:
        return _NO_CLUSTERS
    higher = mean_at(curve, [d for d in curve if d > 0])
    drop = [1 - after / max(before, 1e-9) for before, after in zip(curve[0], higher, strict=True)]
    measured = f"{interval(curve[0])} at 0, {interval(higher)} on average above: {100 * fmean(drop):.0f} % less"
    return reaches(drop, LARGELY), measured, ""


def _range_text(values: Iterable[int]) -> str:
    ordered = sorted(values)
    return ", ".join(map(str, ordered)) if len(ordered) < 3 else f"{ordered[0]} to {ordered[-1]}"


def _positive(curve: Curve | None) -> Judgement:
    if not curve:
        return _NO_CLUSTERS
    up, down = (mean_at(curve, [d for d in curve if d * sign > 0]) for sign in (1, -1))
    return above(up, down), f"mean {interval(up)} for d > 0, {interval(down)} for d < 0", ""


def of_fig_6(rows: Sequence[Row]) -> list[Claim]:
    """T's policies against earlier ones; round-robin's order is a reading."""
    claims = []
    worlds = {world: {row["policy"]: row["by_seed"] for row in part} for world, part in by_world(rows).items()}
    why_gsb = _why_gsb(worlds)
    for world, ratio in worlds.items():
        ours = {name: ratio[name] for name in (f"{kind}({d})" for kind, d in CHOSEN_D.items()) if name in ratio}
        shown = ", ".join(f"{name} {interval(values)}" for name, values in ours.items())
        judged = {name: values for name, values in ours.items() if text_tells(world) or not name.startswith("CB")}
        for one in SENTENCES["round-robin"].readings:
            if one.name not in ratio:
                continue
            others = {"RNS": ratio["RNS"], "RR": ratio[one.name], "GSB": ratio["GSB"]}
            best = max(others.values(), key=fmean)
            baseline = [fmean(pair) for pair in zip(others["RNS"], others["RR"], strict=True)]
            limit = f"no policy can be above 1 / {fmean(baseline):.2f} = {1 / fmean(baseline):.1f} times"
            better = both(*(above(values, best) for values in judged.values()))
            earlier = ", ".join(f"{name} {interval(values)}" for name, values in others.items())
            gsb = both(above(others["GSB"], others["RNS"]), above(others["GSB"], others["RR"]))
            judgements: dict[str, Judgement] = {
                "rr-like-rns": _similar(others["RR"], others["RNS"]),
                "gsb-over-rns": (gsb, earlier, ""),
                "ours-over-all": (better, f"{shown}; best of the others {interval(best)}", why_gsb),
                "three-times": _ratios_to(ours, baseline, 3.0, limit),
            }
            claims += [claim(name, world, judged_so, reading=one.name) for name, judged_so in judgements.items()]
        claims.append(claim("twice", world, _ratios_to(ours, ratio["GSB"], 2.0, why_gsb)))
    return claims


def _why_gsb(worlds: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Why GSB comes close: how it and DB change where all sites are alike."""
    generated, alike = worlds.get(TWorld().label, {}), worlds.get(TWorld(process=SITES_ALIKE).label, {})
    shared = [name for name in ("GSB", f"DB({CHOSEN_D['DB']})") if name in generated and name in alike]
    changes = ", ".join(f"{name} {fmean(generated[name]):.3f} becomes {fmean(alike[name]):.3f}" for name in shared)
    return f"{_SITES_DIFFER}: where all sites are alike, {changes}" if shared else ""


def _similar(first: Sequence[float], second: Sequence[float]) -> Judgement:
    times = [one / other for one, other in zip(first, second, strict=True)]
    return (
        within(times, 1 - SIMILAR, 1 + SIMILAR),
        f"RR {interval(first)}, RNS {interval(second)}: {interval(times)} times",
        "",
    )


def _ratios_to(ours: Mapping[str, Sequence[float]], baseline: Sequence[float], expected: float, why: str) -> Judgement:
    """The best of T's three policies reaches about `expected` times the baseline, or more."""
    times = {
        name: [one / max(other, 1e-9) for one, other in zip(values, baseline, strict=True)]
        for name, values in ours.items()
    }
    measured = ", ".join(f"{name} {interval(values)} times" for name, values in times.items())
    return reaches(max(times.values(), key=fmean), expected * (1 - ABOUT)), measured, why


def of_fig_7(rows: Sequence[Row]) -> list[Claim]:
    """Cycle length and budget."""
    claims = []
    for world, world_rows in by_world(rows).items():
        value = {(row["weeks"], row["resources"], row["d"]): row["by_seed"] for row in world_rows}
        by_weeks = [_mean_where(value, 0, weeks) for weeks in WEEKS]
        by_resources = [_mean_where(value, 1, resources) for resources in RESOURCES]
        shape = _same_shape(value)
        claims += [
            claim("longer", world, (_rises(by_weeks), _by_setting("weeks", WEEKS, by_weeks), "")),
            claim("smaller-r", world, (_rises(by_resources[::-1]), _by_setting("R =", RESOURCES, by_resources), "")),
            claim("shape", world, (*shape, "assumed: the best d depends on cycle length and R")),
        ]
    return claims


_Settings = dict[tuple[int, int, int], list[float]]


def _mean_where(value: _Settings, column: int, equals: int) -> list[float]:
    """The mean over all settings with this value in a column, by seed."""
    found = [values for at, values in value.items() if at[column] == equals]
    return [fmean(of_seed) for of_seed in zip(*found, strict=True)]


def _same_shape(value: _Settings) -> tuple[bool | None, str]:
    """The lowest correlation of the curves of two budgets with the same cycle length, by seed; and the best d."""
    seeds = len(next(iter(value.values())))
    all_d = sorted({at[2] for at in value})
    lowest = []
    for seed in range(seeds):
        lines = {
            (weeks, resources): [value[weeks, resources, d][seed] for d in all_d]
            for weeks in WEEKS
            for resources in RESOURCES
        }
        pairs = [
            correlation(lines[weeks, one], lines[weeks, other])
            for weeks in WEEKS
            for one, other in combinations(RESOURCES, 2)
            if len(set(lines[weeks, one])) > 1 and len(set(lines[weeks, other])) > 1
        ]
        lowest.append(min(pairs, default=0.0))
    peaks = {max(all_d, key=lambda d: fmean(value[weeks, resources, d])) for weeks in WEEKS for resources in RESOURCES}
    return reaches(lowest, ALIKE), f"lowest correlation {interval(lowest)}; peaks at d = {_range_text(peaks)}"


def _rises(values: Sequence[Sequence[float]]) -> bool | None:
    """Whether the values rise from each to the next; None where two neighbours are too close to tell."""
    return both(*(above(later, earlier) for earlier, later in pairwise(values)))


def _by_setting(word: str, names: Sequence[int], values: Sequence[Sequence[float]]) -> str:
    return ", ".join(f"{word} {name:,}: {interval(value)}" for name, value in zip(names, values, strict=True))


def of_fig_8(rows: Sequence[Row]) -> list[Claim]:
    """Download probability by PageRank."""
    claims = []
    for world, world_rows in by_world(rows).items():
        if not world_rows or any(None in row["weighted_by_seed"] for row in world_rows):
            claims.append(claim("pra", world, (None, "no links, so no PageRank", "")))
            continue
        weighted, plain = curves_of(world_rows, value="weighted_by_seed"), curves_of(world_rows)
        means = {name: mean_at(curve, curve) for name, curve in weighted.items()}
        gain = [one / other for one, other in zip(means["PRA"], means["DB"], strict=True)]
        unweighted = ", ".join(f"{interval(mean_at(plain[name], plain[name]))}" for name in ("PRA", "DB"))
        measured = (
            f"PRA {interval(means['PRA'])}, DB {interval(means['DB'])}: {interval(gain)} times; unweighted {unweighted}"
        )
        constant = means.get(CONSTANT_PHI)
        why = f"tested: {CONSTANT_PHI} in place of PageRank gives {interval(constant)}" if constant else ""
        claims.append(claim("pra", world, (within(gain, 2 * (1 - ABOUT), 2 * (1 + ABOUT)), measured, why)))
    return claims
