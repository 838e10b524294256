"""T's figure 9, the adaptive download probability over many cycles, and T's wish: the same over a longer time.

HA and WHA are run with each reading of T's sentences on their history: as T has it (§3, eqs. 5 to 8), and with each of
its sentences read in its other way, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from recrawl.lab.experiments.intervals import above, both, interval, reaches, within
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row, by_world
from recrawl.lab.experiments.tan2007.claims import SIMILAR, Curve, Judgement, claim, curves_of, mean_at
from recrawl.lab.experiments.tan2007.published import CYCLES
from recrawl.lab.experiments.tan2007.replays import ReplaySetting, budget_text, describe_worlds, run_settings, sampling

_CYCLES_OFF = 3
"""A crossing agrees with T's if it is at most this many cycles away."""
LONG = 52
"""Cycles of the longer run: two years of two weeks each."""
_TABLE = {"world": "world", "policy": "policy", "cycle": ">cycle", "change_ratio": ">ChangeRatio"}
AS_T = "as T"
"""The first reading of every sentence."""


def readings_of_history() -> dict[str, str]:
    """The parameters of `sampling` for each reading of HA and WHA, by its name."""
    others = {
        one.name: one.replay.removeprefix("sampling(").removesuffix(")")
        for sentence in ("sample", "today", "n")
        for one in SENTENCES[sentence].readings[1:]
    }
    return {AS_T: "", **others}


def fig_9(options: ExperimentOptions) -> Result:
    """ChangeRatio in each of 24 cycles: status, history, weighted history, random."""
    rows = run_settings(options, _settings())
    notes = [
        "T's figure has no printed values; only T's statements about it are compared.",
        f"T plots {CYCLES} cycles of two weeks.",
        (
            f"*{AS_T}*: changed samples lead, n counts cycles, and λ includes the comparison just made; "
            "the other readings differ in one of these."
        ),
    ]
    return _result(rows, of_fig_9, "Fig. 9: the long run", describe_worlds(options), notes)


def longer(options: ExperimentOptions) -> Result:
    """The same over 52 cycles, on archives: the generated world has one year."""
    rows = run_settings(options, _settings(LONG), generated_too=False)
    notes = [f"T leaves the longer run to future work (§6.2). {LONG} cycles of two weeks need archives of two years."]
    return _result(rows, of_longer, "Over two years", describe_worlds(options)[2:], notes)


def _settings(cycles: int = 0) -> list[ReplaySetting]:
    texts = {"DB": sampling("DB", 1), "RNS": "random"}
    texts |= {
        f"{name} ({reading})": sampling("DB", 1, name.lower(), reading=given)
        for reading, given in readings_of_history().items()
        for name in ("HA", "WHA")
    }
    return [ReplaySetting(name, text, 2, 25_000, {}, cycles) for name, text in texts.items()]


def _result(
    rows: Sequence[Row], judge: Callable[[Sequence[Row]], list[Claim]], title: str, worlds: list[str], notes: list[str]
) -> Result:
    lines = list(by_cycle(rows))
    picture = Picture(
        "line", "cycle", "change_ratio", title, "cycle", "ChangeRatio", colour="policy", facet="world", low="low",
        high="high", notes=(f"{budget_text(rows, 2)}; d = 1",) if rows else (),
    )  # fmt: skip
    return Result(lines, claims=judge(lines), pictures=[picture], worlds=worlds, notes=notes, table=_TABLE)


def by_cycle(rows: Iterable[Row]) -> Iterator[Row]:
    """One row for each cycle of each row."""
    for row in rows:
        for cycle, values in enumerate(row["by_cycle"], 1):
            if values is not None:
                mean, low, high = interval(values)
                keys = ("world", "policy", "weeks", "resources", "budget", "pages", "seeds")
                yield {
                    **{key: row[key] for key in keys},
                    "cycle": cycle,
                    "change_ratio": mean,
                    "low": low,
                    "high": high,
                    "by_seed": values,
                }


def of_fig_9(rows: Sequence[Row]) -> list[Claim]:
    """T's statements, for each reading of its history."""
    claims = []
    for world, world_rows in by_world(rows).items():
        lines = curves_of(world_rows, "cycle")
        shared = sorted(set.intersection(*(set(line) for line in lines.values())))
        first, late = [cycle for cycle in shared if 2 <= cycle <= 5], [cycle for cycle in shared if cycle > 5]
        last = shared[-(len(shared) // 3 or 1) :]
        for reading in readings_of_history():
            ha, wha = f"HA ({reading})", f"WHA ({reading})"
            if ha not in lines or not first or not late:
                continue
            start = {name: mean_at(lines[name], first) for name in (ha, wha, "RNS", "DB")}
            later = {name: mean_at(lines[name], late) for name in (wha, ha)}
            end = {name: mean_at(lines[name], last) for name in (wha, ha, "DB")}
            ratios = [[one / max(other, 1e-9) for one, other in zip(start[name], start["RNS"], strict=True)]
                      for name in (ha, wha)]  # fmt: skip
            judgements: dict[str, Judgement] = {
                "slow-start": (both(*(_at_most(of, 1 + SIMILAR) for of in ratios)), shown(start), ""),
                "begins-below": (both(*(above(start["DB"], start[name]) for name in (ha, wha))), shown(start), ""),
                "wha-over-ha": (above(later[wha], later[ha]), f"from cycle 6 on {shown(later)}", ""),
                "wha-passes": _passes(lines, wha, 16, shared),
                "ha-passes": _passes(lines, ha, 18, shared),
                "overtakes": (
                    both(*(above(end[name], end["DB"]) for name in (ha, wha))),
                    f"cycles {last[0]} to {last[-1]}: {shown(end)}",
                    "",
                ),
            }
            claims += [claim(name, world, judged, reading=reading) for name, judged in judgements.items()]
    return claims


def of_longer(rows: Sequence[Row]) -> list[Claim]:
    """Whether the history-adaptive strategies outperform DB in the long run (T §7)."""
    claims = []
    for world, world_rows in by_world(rows).items():
        lines = curves_of(world_rows, "cycle")
        cycles = sorted(set.intersection(*(set(line) for line in lines.values())))
        half = cycles[len(cycles) // 2 :]
        for reading in readings_of_history():
            mean = {name: mean_at(lines[name], half) for name in (f"WHA ({reading})", f"HA ({reading})", "DB", "RNS")}
            wha, *others = mean.values()
            best = both(*(above(wha, other) for other in others))
            measured = f"cycles {half[0]} to {half[-1]}: {shown(mean)}"
            claims.append(claim("long-run", world, (best, measured, ""), reading=reading))
    return claims


def shown(values: Mapping[str, Sequence[float]]) -> str:
    """The means with their intervals."""
    return ", ".join(f"{name} {interval(one)}" for name, one in values.items())


def _at_most(values: Sequence[float], most: float) -> bool | None:
    return reaches([-value for value in values], -most)


def _passes(lines: dict[str, Curve], name: str, expected: int, cycles: Sequence[int]) -> Judgement:
    """Whether a line stays above DB's from about the expected cycle on, in each seed."""
    firsts = []
    for seed in range(len(lines[name][cycles[0]])):
        behind = [cycle for cycle in cycles if lines[name][cycle][seed] <= lines["DB"][cycle][seed]]
        firsts.append(next((cycle for cycle in cycles if not behind or cycle > behind[-1]), None))
    passed = [float(first) for first in firsts if first is not None]
    course = f"stays above DB in {len(passed)} of {len(firsts)} seeds"
    if not passed:
        return False, course, ""
    measured = f"{course}, from cycle {interval(passed)} on"
    if len(passed) < len(firsts):
        return (None if 2 * len(passed) > len(firsts) else False), measured, ""
    return within(passed, expected - _CYCLES_OFF, expected + _CYCLES_OFF), measured, ""
