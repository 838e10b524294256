"""T's statements about its figures, judged against measured rows, world by world.

Each function takes the rows of one experiment and returns one verdict per statement and world. "About" means within 20
%, "similar" within 10 %, and differences under 2 % decide nothing. Two rules were set after a first small run: the 2 %,
and that the best of T's three policies must reach at least 80 % of "three times" and "twice". Before, any difference
decided, and any of the three within 20 % was enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from recrawl.lab.experiments.result import Claim, Row, by_world
from recrawl.lab.experiments.tan2007.published import BEST_D, CHOSEN_D, PAGES, RESOURCES, STATEMENTS, TABLE_1, WEEKS
from recrawl.lab.experiments.tan2007.replays import ARCHIVES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TWorld

ABOUT = 0.2
SIMILAR = 0.1
MARGIN = 0.02
"""Relative differences below this decide nothing."""
_CYCLES_OFF = 3
"""A crossing agrees with T's if it is at most this many cycles away."""

Judgement = tuple[bool | None, str, str]
"""Whether the statement holds (None: cannot be said), the measured numbers, and the reason where it does not hold."""


def _claim(name: str, world: str, judgement: Judgement, *, given: bool = False) -> Claim:
    """The claim on a world, with the reason that applies there."""
    place, says = STATEMENTS[name]
    holds, measured, why = judgement
    if world == TWorld(together=False).label:
        why = "this is the control world: pages are independent of their neighbours"
    why = why or _WHY.get(name, "")
    if world == TWorld(process=SITES_ALIKE).label and why.startswith(_SITES_DIFFER):
        why = ""  # this world is the test of that reason
    elif world != TWorld().label and why.startswith(("tested", "not explained")):
        why = f"not tested here; on the generated world: {why}"  # a test on one world proves nothing for another
    return Claim.of(place, says, world, holds, measured, why, given=given)


_SITES_DIFFER = "tested: differences between sites raise GSB"
_FOLLOWS_UNCHANGED = "assumed: φ also follows samples that did not change this time"
_WHY = {
    "cb-over-db": "assumed: clusters are larger than directories, and content predicts change less well than location",
    "peak-LB": "not explained: the same without the links to a site's top page (tested on 60,000 pages)",
    "rr-like-rns": "assumed: round-robin's pages have all waited long, randomly drawn pages not always",
    "slow-start": "assumed: one change on one visit gives λ = 1",
    "wha-passes": _FOLLOWS_UNCHANGED,
    "ha-passes": _FOLLOWS_UNCHANGED,
    "pra": "tested on 60,000 pages: a constant φ with the same mean does as well (0.370, 0.371)",
}
"""Reasons that the run itself does not show; each says whether a separate run tested it or whether it is assumed."""


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
        judgement = (middle > 0.5 and deep < 0.1, measured, "the sites are structured differently")
        claims.append(_claim("depth", world, judgement, given=world != ARCHIVES))
    return claims


Curve = dict[int, float]


def of_fig_5(rows: Sequence[Row]) -> list[Claim]:
    """The kinds of neighbourhood."""
    claims = []
    for world, world_rows in by_world(rows).items():
        curves: dict[str, Curve] = {}
        for row in world_rows:
            curves.setdefault(row["policy"], {})[row["d"]] = row["change_ratio"]
        claims.append(_claim("db-over-lb", world, _compare_means(curves, "DB", "LB", range(-6, 9))))
        claims.append(_claim("cb-over-db", world, _compare_means(curves, "CB", "DB", range(4))))
        claims += [_claim(f"peak-{kind}", world, _peak(curves.get(kind), kind)) for kind in BEST_D]
        claims += [_claim(f"positive-{kind}", world, _positive(curves.get(kind))) for kind in ("DB", "LB")]
    return claims


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
        worse = [name for name, value in ours.items() if value <= others]
        limit = f"no policy can be above 1 / {baseline:.2f} = {1 / baseline:.1f} times" if baseline else ""
        claims += [
            _claim("rr-like-rns", world, _similar(ratio["RR"], ratio["RNS"])),
            _claim("gsb-over-rns", world, (
                is_above(ratio["GSB"], max(ratio["RNS"], ratio["RR"])),
                f"GSB {ratio['GSB']:.3f}, RNS {ratio['RNS']:.3f}, RR {ratio['RR']:.3f}", "")),
            _claim("ours-over-all", world, (not worse, f"{shown}; best of the others {others:.3f}", why_gsb)),
            _claim("three-times", world, _ratios_to(ours, baseline, 3.0, limit)),
            _claim("twice", world, _ratios_to(ours, ratio["GSB"], 2.0, why_gsb)),
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
            _claim("longer", world, (by_weeks == sorted(by_weeks), _by_setting("weeks", WEEKS, by_weeks), "")),
            _claim("smaller-r", world, (by_resources == sorted(by_resources, reverse=True),
                                        _by_setting("R =", RESOURCES, by_resources), "")),
            _claim("shape", world, (found[-1] - found[0] <= 1, f"peaks at d = {_range_text(set(found))}",
                                    "the best d depends on cycle length and R")),
        ]  # fmt: skip
    return claims


def _by_setting(word: str, names: Sequence[int], values: Sequence[float]) -> str:
    return ", ".join(f"{word} {name:,}: {value:.3f}" for name, value in zip(names, values, strict=True))


def of_fig_8(rows: Sequence[Row]) -> list[Claim]:
    """Download probability by PageRank."""
    claims = []
    for world, world_rows in by_world(rows).items():
        weighted = {(row["policy"], row["d"]): row["weighted"] for row in world_rows}
        plain = {(row["policy"], row["d"]): row["change_ratio"] for row in world_rows}
        if None in weighted.values() or not world_rows:
            claims.append(_claim("pra", world, (None, "no links, so no PageRank", "")))
            continue
        means = [fmean(v for (policy, _), v in weighted.items() if policy == name) for name in ("PRA", "DB")]
        plain_means = [fmean(v for (policy, _), v in plain.items() if policy == name) for name in ("PRA", "DB")]
        gain = means[0] / means[1] - 1
        weighted_text = f"PRA {means[0]:.3f}, DB {means[1]:.3f}: {100 * gain:+.0f} %"
        measured = f"{weighted_text}; unweighted {plain_means[0]:.3f}, {plain_means[1]:.3f}"
        claims.append(_claim("pra", world, (about(1 + gain, 2.0), measured, "")))
    return claims


def of_fig_9(rows: Sequence[Row]) -> list[Claim]:
    """Download probability by history, over many cycles."""
    claims = []
    for world, world_rows in by_world(rows).items():
        lines: dict[str, Curve] = {}
        for row in world_rows:
            lines.setdefault(row["policy"], {})[row["cycle"]] = row["change_ratio"]
        last = sorted(set.intersection(*(set(line) for line in lines.values())))
        early = [cycle for cycle in last if 2 <= cycle <= 5]
        late = [cycle for cycle in last if cycle > 5]
        mean = _averages(lines)
        start = {name: mean(name, early) for name in ("HA", "WHA", "RNS")}
        slow = all(start[name] <= start["RNS"] * (1 + SIMILAR) for name in ("HA", "WHA"))
        wha, ha = mean("WHA", late), mean("HA", late)
        claims += [
            _claim("slow-start", world, (slow, ", ".join(f"{k} {v:.3f}" for k, v in start.items()), "")),
            _claim("wha-over-ha", world, (is_above(wha, ha), f"from cycle 6 on WHA {wha:.3f}, HA {ha:.3f}", "")),
            _claim("wha-passes", world, _passes(lines, "WHA", 16, last)),
            _claim("ha-passes", world, _passes(lines, "HA", 18, last)),
        ]  # fmt: skip
    return claims


def _averages(lines: dict[str, Curve]) -> Callable[[str, Sequence[int]], float]:
    def mean(name: str, cycles: Sequence[int]) -> float:
        return fmean(lines[name][cycle] for cycle in cycles) if cycles else 0.0

    return mean


def _passes(lines: dict[str, Curve], name: str, expected: int, cycles: Sequence[int]) -> Judgement:
    """Whether a line stays above DB's from about the expected cycle on."""
    behind = [cycle for cycle in cycles if lines[name][cycle] <= lines["DB"][cycle]]
    first = next((cycle for cycle in cycles if not behind or cycle > behind[-1]), None)
    last_third = cycles[-(len(cycles) // 3 or 1) :]
    mean = _averages(lines)
    measured = (
        f"in the last {len(last_third)} cycles {name} {mean(name, last_third):.3f}, DB {mean('DB', last_third):.3f}"
    )
    course = "stays below DB to the end" if first is None else f"stays above DB from cycle {first} on"
    return first is not None and abs(first - expected) <= _CYCLES_OFF, f"{course}; {measured}", ""
