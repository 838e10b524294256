"""T's statements about its figures, judged against measured rows, world by world.

Each function takes the rows of one experiment and returns one verdict per statement and world. "About" means within 20
%, "similar" within 10 %, and differences under 2 % decide nothing. Two rules were set after a first small run: the 2 %,
and that the best of T's three policies must reach at least 80 % of "three times" and "twice". Before, any difference
decided, and any of the three within 20 % was enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from recrawl.lab.experiments.result import Claim, Row, by_world
from recrawl.lab.experiments.tan2007.published import BEST_D, CHOSEN_D, PAGES, RESOURCES, STATEMENTS, TABLE_1, WEEKS
from recrawl.lab.experiments.tan2007.replays import ARCHIVES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TEXT_TELLS, TWorld

ABOUT = 0.2
SIMILAR = 0.1
CONSTANT_PHI = "φ = 0.3"
MARGIN = 0.02
"""Relative differences below this decide nothing."""

Judgement = tuple[bool | None, str, str]
"""Whether the statement holds (None: cannot be said), the measured numbers, and the reason where it does not hold."""


def claim(name: str, world: str, judgement: Judgement, *, given: bool = False) -> Claim:
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
    return Claim.of(place, says, world, holds, measured, why, given=given)


_SITES_DIFFER = "tested: differences between sites raise GSB"
_FOLLOWS_UNCHANGED = "assumed: φ also follows samples that did not change this time"
_WHY = {
    "db-over-lb": "assumed: links and directories lead to nearly the same pages here",
    "cb-over-db": "assumed: clusters are larger than directories, and content predicts change less well than location",
    "peak-DB": "assumed: directories are larger or deeper than on T's sites",
    "peak-LB": "assumed: one hop already reaches most of the pages that change together",
    "peak-CB": "assumed: neighbouring clusters change about as often",
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
}
"""Reasons that the run itself does not show; where a run tested a reason, the reason says which figures."""


def about(value: float, expected: float) -> bool:
    """
    >>> about(2.5, 3), about(2.3, 3)
    (True, False)
    """
    return abs(value / expected - 1) <= ABOUT


def is_above(first: float, second: float) -> bool | None:
    """Whether `first` is greater; None when they are too close to tell.

    >>> is_above(1.1, 1.0), is_above(1.0, 1.1), is_above(1.01, 1.0)
    (True, False, None)
    """
    return None if abs(first - second) < MARGIN * max(first, second) else first > second


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


Curve = dict[int, float]


def of_fig_5(rows: Sequence[Row]) -> list[Claim]:
    """The kinds of neighbourhood."""
    claims = []
    for world, world_rows in by_world(rows).items():
        curves: dict[str, Curve] = {}
        for row in world_rows:
            curves.setdefault(row["policy"], {})[row["d"]] = row["change_ratio"]
        claims.append(claim("db-over-lb", world, _compare_means(curves, "DB", "LB", range(-6, 9))))
        by_content = _compare_means(curves, "CB", "DB", range(4))
        claims.append(claim("cb-over-db", world, _if_text_tells(world, by_content)))
        peaks = {kind: _peak(curves.get(kind), kind) for kind in BEST_D}
        peaks["CB"] = _if_text_tells(world, peaks["CB"])
        claims += [claim(f"peak-{kind}", world, peak) for kind, peak in peaks.items()]
        claims += [claim(f"positive-{kind}", world, _positive(curves.get(kind))) for kind in ("DB", "LB")]
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
    mean_1, mean_2 = (fmean(curves[name][d] for d in shared) for name in (first, second))
    above = sum(curves[first][d] > curves[second][d] for d in shared)
    measured = f"{first} {mean_1:.3f}, {second} {mean_2:.3f} on average; {first} above at {above} of {len(shared)} d"
    return is_above(mean_1, mean_2), measured, ""


def _peak(curve: Curve | None, kind: str) -> Judgement:
    if not curve:
        return _NO_CLUSTERS
    best = max(curve, key=lambda d: curve[d])
    level = {d for d in curve if curve[best] - curve[d] < 0.005}
    measured = f"best at d = {_range_text(level)} with {curve[best]:.3f}"
    measured += "".join(f", {curve[d]:.3f} at {d}" for d in BEST_D[kind] if d not in level)
    if len(level) == len(curve):
        return None, f"{measured}: flat", "ChangeRatio does not depend on d"
    return bool(level & set(BEST_D[kind])), measured, ""


def _range_text(values: Iterable[int]) -> str:
    ordered = sorted(values)
    return ", ".join(map(str, ordered)) if len(ordered) < 3 else f"{ordered[0]} to {ordered[-1]}"


def _positive(curve: Curve | None) -> Judgement:
    if not curve:
        return _NO_CLUSTERS
    up, down = (fmean(curve[d] for d in curve if d * sign > 0) for sign in (1, -1))
    return is_above(up, down), f"mean {up:.3f} for d > 0, {down:.3f} for d < 0", ""


def of_fig_6(rows: Sequence[Row]) -> list[Claim]:
    """T's policies against earlier ones."""
    claims = []
    worlds = {
        world: {row["policy"]: row["change_ratio"] for row in world_rows}
        for world, world_rows in by_world(rows).items()
    }
    why_gsb = _why_gsb(worlds)
    for world, ratio in worlds.items():
        ours = {name: ratio[name] for name in (f"{kind}({d})" for kind, d in CHOSEN_D.items()) if name in ratio}
        baseline = fmean((ratio["RNS"], ratio["RR"]))
        shown = ", ".join(f"{name} {value:.3f}" for name, value in ours.items())
        others = max(ratio["RNS"], ratio["RR"], ratio["GSB"])
        judged = {name: value for name, value in ours.items() if text_tells(world) or not name.startswith("CB")}
        worse = [name for name, value in judged.items() if value <= others]
        limit = f"no policy can be above 1 / {baseline:.2f} = {1 / baseline:.1f} times" if baseline else ""
        claims += [
            claim("rr-like-rns", world, _similar(ratio["RR"], ratio["RNS"])),
            claim("gsb-over-rns", world, (
                is_above(ratio["GSB"], max(ratio["RNS"], ratio["RR"])),
                f"GSB {ratio['GSB']:.3f}, RNS {ratio['RNS']:.3f}, RR {ratio['RR']:.3f}", "")),
            claim("ours-over-all", world, (not worse, f"{shown}; best of the others {others:.3f}", why_gsb)),
            claim("three-times", world, _ratios_to(ours, baseline, 3.0, limit)),
            claim("twice", world, _ratios_to(ours, ratio["GSB"], 2.0, why_gsb)),
        ]  # fmt: skip
    return claims


def _why_gsb(worlds: Mapping[str, Mapping[str, float]]) -> str:
    """Why GSB comes close: how it and DB change where all sites are alike."""
    generated, alike = worlds.get(TWorld().label, {}), worlds.get(TWorld(process=SITES_ALIKE).label, {})
    both = [name for name in ("GSB", f"DB({CHOSEN_D['DB']})") if name in generated and name in alike]
    changes = ", ".join(f"{name} {generated[name]:.3f} becomes {alike[name]:.3f}" for name in both)
    return f"{_SITES_DIFFER}: where all sites are alike, {changes}" if both else ""


def _similar(first: float, second: float) -> Judgement:
    return abs(first / second - 1) <= SIMILAR, f"RR {first:.3f}, RNS {second:.3f} ({first / second:.2f} times)", ""


def _ratios_to(ours: dict[str, float], baseline: float, expected: float, why: str) -> Judgement:
    """The best of T's three policies reaches about `expected` times the baseline, or more."""
    times = {name: value / baseline for name, value in ours.items()}
    measured = ", ".join(f"{name} {value:.2f} times" for name, value in times.items())
    return max(times.values()) >= expected * (1 - ABOUT), measured, why


def of_fig_7(rows: Sequence[Row]) -> list[Claim]:
    """Cycle length and budget."""
    claims = []
    for world, world_rows in by_world(rows).items():
        value = {(row["weeks"], row["resources"], row["d"]): row["change_ratio"] for row in world_rows}
        by_weeks = [fmean(value[at] for at in value if at[0] == weeks) for weeks in WEEKS]
        by_resources = [fmean(value[at] for at in value if at[1] == resources) for resources in RESOURCES]
        peaks = {
            (weeks, resources): max((at for at in value if at[:2] == (weeks, resources)), key=lambda at: value[at])[2]
            for weeks in WEEKS
            for resources in RESOURCES
        }
        found = sorted(peaks.values())
        claims += [
            claim("longer", world, (_rises(by_weeks), _by_setting("weeks", WEEKS, by_weeks), "")),
            claim("smaller-r", world, (_rises(by_resources[::-1]),
                                        _by_setting("R =", RESOURCES, by_resources), "")),
            claim("shape", world, (found[-1] - found[0] <= 1, f"peaks at d = {_range_text(set(found))}",
                                    "assumed: the best d depends on cycle length and R")),
        ]  # fmt: skip
    return claims


def _rises(values: Sequence[float]) -> bool | None:
    """Whether the values rise; None if the first and the last are too close to tell."""
    return None if is_above(values[-1], values[0]) is None else list(values) == sorted(values)


def _by_setting(word: str, names: Sequence[int], values: Sequence[float]) -> str:
    return ", ".join(f"{word} {name:,}: {value:.3f}" for name, value in zip(names, values, strict=True))


def of_fig_8(rows: Sequence[Row]) -> list[Claim]:
    """Download probability by PageRank."""
    claims = []
    for world, world_rows in by_world(rows).items():
        weighted = {(row["policy"], row["d"]): row["weighted"] for row in world_rows}
        plain = {(row["policy"], row["d"]): row["change_ratio"] for row in world_rows}
        if None in weighted.values() or not world_rows:
            claims.append(claim("pra", world, (None, "no links, so no PageRank", "")))
            continue
        means = [fmean(v for (policy, _), v in weighted.items() if policy == name) for name in ("PRA", "DB")]
        plain_means = [fmean(v for (policy, _), v in plain.items() if policy == name) for name in ("PRA", "DB")]
        gain = means[0] / means[1] - 1
        weighted_text = f"PRA {means[0]:.3f}, DB {means[1]:.3f}: {100 * gain:+.0f} %"
        constant = [value for (policy, _), value in weighted.items() if policy == CONSTANT_PHI]
        why = f"tested: {CONSTANT_PHI} in place of PageRank gives {fmean(constant):.3f}" if constant else ""
        measured = f"{weighted_text}; unweighted {plain_means[0]:.3f}, {plain_means[1]:.3f}"
        claims.append(claim("pra", world, (about(1 + gain, 2.0), measured, why)))
    return claims
