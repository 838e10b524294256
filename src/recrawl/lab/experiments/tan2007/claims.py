"""What T says about its figures, held against rows that were measured, world by world.

Each function takes the rows of one experiment and gives one verdict for each sentence and world. What "about" and
"similar" mean is fixed here, once: within a fifth, and within a tenth. Nothing is said of differences under 2 %.
(The 2 %, and that the best of T's three policies must come to four fifths of "three times" and "twice" or more, were
set after a first small run; before, any difference decided, and any of the three within a fifth would do.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from recrawl.lab.experiments.result import Claim, Row
from recrawl.lab.experiments.tan2007.published import BEST_D, CHOSEN_D, PAGES, RESOURCES, SAYS, TABLE_1, WEEKS
from recrawl.lab.experiments.tan2007.replays import ARCHIVES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TWorld

ABOUT = 0.2
SIMILAR = 0.1
MARGIN = 0.02
"""Differences of less than this share say nothing either way."""
_CYCLES_OFF = 3
"""A crossing is where T has it when it is at most so many cycles away."""

Judged = tuple[bool | None, str, str]
"""Holds or not or cannot be said; the numbers; the reason where it does not."""


def _claim(name: str, world: str, judged: Judged, *, given: bool = False) -> Claim:
    """Why something does not hold in the control needs no search: neighbours are strangers there."""
    place, says = SAYS[name]
    holds, measured, why = judged
    if world == TWorld(together=False).label:
        why = "the control: nothing that is true of a page says anything about its neighbours"
    why = why or _WHY.get(name, "")
    if world == TWorld(nature=SITES_ALIKE).label and why.startswith(_SITES_DIFFER):
        why = ""  # that world is the test
    elif world != TWorld().label and why.startswith(("tested", "not explained")):
        why = f"not tested here; on the made world, {why}"  # what was tried there is no proof for others
    return Claim.of(place, says, world, holds, measured, why, given=given)


_SITES_DIFFER = "tested: it is the difference between sites that lifts GSB"
_BLIND = "supposed: φ leads on from samples that did not change this time"
_WHY = {
    "cb-over-db": "supposed: clusters are larger than directories, and content tells less about change than place",
    "peak-LB": "not explained: it is so without the links to the top of a site too (tried on 60,000 pages)",
    "rr-like-rns": "supposed: round-robin's pages have all waited long, some of those drawn at random have not",
    "slow-start": "supposed: one change seen on one visit makes λ = 1",
    "wha-passes": _BLIND,
    "ha-passes": _BLIND,
    "pra": "tested on 60,000 pages: a fixed φ of the same mean, blind to everything, does as well (0.370, 0.371)",
}
"""Reasons that the run itself does not show: each says whether it was tested in a run of its own, or is supposed."""


def _worlds(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["world"], []).append(row)
    return found


def about(value: float, wanted: float) -> bool:
    """
    >>> about(2.5, 3), about(2.3, 3)
    (True, False)
    """
    return abs(value / wanted - 1) <= ABOUT


def is_above(one: float, other: float) -> bool | None:
    """Whether one is greater, None when they are too close to say.

    >>> is_above(1.1, 1.0), is_above(1.0, 1.1), is_above(1.01, 1.0)
    (True, False, None)
    """
    return None if abs(one - other) < MARGIN * max(one, other) else one > other


def of_table_1(rows: Sequence[Row], *, exact: bool) -> list[Claim]:
    """The world has the pages of table 1."""
    pages = {row["domain"]: row["pages"] for row in rows}
    same = all(pages.get(domain.name) == domain.pages for domain in TABLE_1)
    total = sum(pages.values())
    holds = same if exact else None
    why = "the world is smaller than T's" if not exact else "the world was not made to the table"
    says = f"{PAGES:,} pages, .edu and .com together more than 70 %."
    measured = f"{total:,} pages, {100 * (pages.get('edu', 0) + pages.get('com', 0)) / total:.1f} % .edu and .com"
    return [Claim.of("table 1", says, TWorld().label, holds, measured, why, given=True)]


def of_fig_4(rows: Sequence[Row]) -> list[Claim]:
    """Where pages lie."""
    claims = []
    for world, mine in _worlds(rows).items():
        total = sum(row["pages"] for row in mine)
        middle = sum(row["pages"] for row in mine if row["depth"] in (2, 3, 4)) / total
        deep = sum(row["pages"] for row in mine if row["depth"] >= 7) / total
        measured = f"{100 * middle:.0f} % at 2 to 4, {100 * deep:.2f} % at 7 and more"
        judged = (middle > 0.5 and deep < 0.1, measured, "the sites lie otherwise")
        claims.append(_claim("depth", world, judged, given=world != ARCHIVES))
    return claims


Curve = dict[int, float]


def of_fig_5(rows: Sequence[Row]) -> list[Claim]:
    """Neighbourhoods."""
    claims = []
    for world, mine in _worlds(rows).items():
        curves: dict[str, Curve] = {}
        for row in mine:
            curves.setdefault(row["policy"], {})[row["d"]] = row["change_ratio"]
        claims.append(_claim("db-over-lb", world, _over(curves, "DB", "LB", range(-6, 9))))
        claims.append(_claim("cb-over-db", world, _over(curves, "CB", "DB", range(4))))
        claims += [_claim(f"peak-{kind}", world, _peak(curves.get(kind), kind)) for kind in BEST_D]
        claims += [_claim(f"positive-{kind}", world, _positive(curves.get(kind))) for kind in ("DB", "LB")]
    return claims


_NO_CLUSTERS: Judged = (None, "not measured", "this world carries no such neighbourhood")


def _over(curves: dict[str, Curve], one: str, other: str, at: Iterable[int]) -> Judged:
    """The mean over a range of d."""
    if one not in curves or other not in curves:
        return _NO_CLUSTERS
    shared = [d for d in at if d in curves[one] and d in curves[other]]
    first, second = (fmean(curves[name][d] for d in shared) for name in (one, other))
    above = sum(curves[one][d] > curves[other][d] for d in shared)
    measured = f"{one} {first:.3f}, {other} {second:.3f} on average; {one} above at {above} of {len(shared)} d"
    return is_above(first, second), measured, ""


def _peak(curve: Curve | None, kind: str) -> Judged:
    if not curve:
        return _NO_CLUSTERS
    best = max(curve, key=lambda d: curve[d])
    level = {d for d in curve if curve[best] - curve[d] < 0.005}
    measured = f"best at d = {_span(level)} with {curve[best]:.3f}"
    measured += "".join(f", {curve[d]:.3f} at {d}" for d in BEST_D[kind] if d not in level)
    if len(level) == len(curve):
        return None, f"{measured}: flat", "no d differs from another"
    return bool(level & set(BEST_D[kind])), measured, ""


def _span(values: Iterable[int]) -> str:
    ordered = sorted(values)
    return ", ".join(map(str, ordered)) if len(ordered) < 3 else f"{ordered[0]} to {ordered[-1]}"


def _positive(curve: Curve | None) -> Judged:
    if not curve:
        return _NO_CLUSTERS
    up, down = (fmean(curve[d] for d in curve if d * sign > 0) for sign in (1, -1))
    return is_above(up, down), f"mean {up:.3f} above zero, {down:.3f} below", ""


def of_fig_6(rows: Sequence[Row]) -> list[Claim]:
    """Against what was there before."""
    claims = []
    worlds = {world: {row["policy"]: row["change_ratio"] for row in mine} for world, mine in _worlds(rows).items()}
    lifted = _lifted(worlds)
    for world, ratio in worlds.items():
        ours = {name: ratio[name] for name in (f"{kind}({d})" for kind, d in CHOSEN_D.items()) if name in ratio}
        base = fmean((ratio["RNS"], ratio["RR"]))
        shown = ", ".join(f"{name} {value:.3f}" for name, value in ours.items())
        others = max(ratio["RNS"], ratio["RR"], ratio["GSB"])
        worse = [name for name, value in ours.items() if value <= others]
        limit = f"no policy can be above 1 / {base:.2f} = {1 / base:.1f} times" if base else ""
        claims += [
            _claim("rr-like-rns", world, _alike(ratio["RR"], ratio["RNS"])),
            _claim("gsb-over-rns", world, (
                is_above(ratio["GSB"], max(ratio["RNS"], ratio["RR"])),
                f"GSB {ratio['GSB']:.3f}, RNS {ratio['RNS']:.3f}, RR {ratio['RR']:.3f}", "")),
            _claim("ours-over-all", world, (not worse, f"{shown}; best of the others {others:.3f}", lifted)),
            _claim("three-times", world, _times(ours, base, 3.0, limit)),
            _claim("twice", world, _times(ours, ratio["GSB"], 2.0, lifted)),
        ]  # fmt: skip
    return claims


def _lifted(worlds: Mapping[str, Mapping[str, float]]) -> str:
    """Why GSB comes so close: what becomes of it, and of DB, where all sites are alike."""
    made, alike = worlds.get(TWorld().label, {}), worlds.get(TWorld(nature=SITES_ALIKE).label, {})
    both = [name for name in ("GSB", f"DB({CHOSEN_D['DB']})") if name in made and name in alike]
    moved = ", ".join(f"{name} {made[name]:.3f} becomes {alike[name]:.3f}" for name in both)
    return f"{_SITES_DIFFER}: where all are alike, {moved}" if both else ""


def _alike(one: float, other: float) -> Judged:
    return abs(one / other - 1) <= SIMILAR, f"RR {one:.3f}, RNS {other:.3f} ({one / other:.2f} times)", ""


def _times(ours: dict[str, float], base: float, wanted: float, why: str) -> Judged:
    """The best of T's three: about so many times as much, or more."""
    times = {name: value / base for name, value in ours.items()}
    measured = ", ".join(f"{name} {value:.2f} times" for name, value in times.items())
    return max(times.values()) >= wanted * (1 - ABOUT), measured, why


def of_fig_7(rows: Sequence[Row]) -> list[Claim]:
    """Length of a cycle, and budget."""
    claims = []
    for world, mine in _worlds(rows).items():
        value = {(row["weeks"], row["resources"], row["d"]): row["change_ratio"] for row in mine}
        by_weeks = [fmean(value[at] for at in value if at[0] == weeks) for weeks in WEEKS]
        by_resources = [fmean(value[at] for at in value if at[1] == resources) for resources in RESOURCES]
        peaks = {
            (weeks, resources): max((at for at in value if at[:2] == (weeks, resources)), key=lambda at: value[at])[2]
            for weeks in WEEKS
            for resources in RESOURCES
        }
        found = sorted(peaks.values())
        claims += [
            _claim("longer", world, (by_weeks == sorted(by_weeks), _listed("weeks", WEEKS, by_weeks), "")),
            _claim("smaller-r", world, (by_resources == sorted(by_resources, reverse=True),
                                        _listed("R =", RESOURCES, by_resources), "")),
            _claim("shape", world, (found[-1] - found[0] <= 1, f"peaks at d = {_span(set(found))}",
                                    "the best d moves with cycle and R")),
        ]  # fmt: skip
    return claims


def _listed(word: str, names: Sequence[int], values: Sequence[float]) -> str:
    return ", ".join(f"{word} {name:,}: {value:.3f}" for name, value in zip(names, values, strict=True))


def of_fig_8(rows: Sequence[Row]) -> list[Claim]:
    """Popularity."""
    claims = []
    for world, mine in _worlds(rows).items():
        weighted = {(row["policy"], row["d"]): row["weighted"] for row in mine}
        plain = {(row["policy"], row["d"]): row["change_ratio"] for row in mine}
        if None in weighted.values() or not mine:
            claims.append(_claim("pra", world, (None, "no links, so no PageRank", "")))
            continue
        means = [fmean(v for (policy, _), v in weighted.items() if policy == name) for name in ("PRA", "DB")]
        bare = [fmean(v for (policy, _), v in plain.items() if policy == name) for name in ("PRA", "DB")]
        gain = means[0] / means[1] - 1
        measured = (
            f"PRA {means[0]:.3f}, DB {means[1]:.3f}: {100 * gain:+.0f} %; unweighted {bare[0]:.3f}, {bare[1]:.3f}"
        )
        claims.append(_claim("pra", world, (about(1 + gain, 2.0), measured, "")))
    return claims


def of_fig_9(rows: Sequence[Row]) -> list[Claim]:
    """The long run."""
    claims = []
    for world, mine in _worlds(rows).items():
        lines: dict[str, Curve] = {}
        for row in mine:
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


def _passes(lines: dict[str, Curve], name: str, wanted: int, cycles: Sequence[int]) -> Judged:
    """The first cycle from which on a line stays above DB's."""
    behind = [cycle for cycle in cycles if lines[name][cycle] <= lines["DB"][cycle]]
    first = next((cycle for cycle in cycles if not behind or cycle > behind[-1]), None)
    third = cycles[-(len(cycles) // 3 or 1) :]
    mean = _averages(lines)
    measured = f"in the last {len(third)} cycles {name} {mean(name, third):.3f}, DB {mean('DB', third):.3f}"
    said = "stays below DB to the end" if first is None else f"stays above DB from cycle {first} on"
    return first is not None and abs(first - wanted) <= _CYCLES_OFF, f"{said}; {measured}", ""
