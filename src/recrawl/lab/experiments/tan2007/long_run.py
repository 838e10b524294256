"""T's figure 9, the adaptive download probability over many cycles, and T's wish: the same over a longer time.

HA and WHA are run with both readings of n: all cycles, as T prints it (eq. 6), and the page's own visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean

from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row, by_world
from recrawl.lab.experiments.tan2007.claims import SIMILAR, Curve, Judgement, claim, is_above
from recrawl.lab.experiments.tan2007.published import CYCLES
from recrawl.lab.experiments.tan2007.replays import ReplaySetting, budget_text, describe_worlds, run_settings, sampling

_CYCLES_OFF = 3
"""A crossing agrees with T's if it is at most this many cycles away."""
LONG = 52
"""Cycles of the longer run: two years of two weeks each."""
_TABLE = {"world": "world", "policy": "policy", "cycle": ">cycle", "change_ratio": ">ChangeRatio"}
BY_HISTORY = {f"{name} ({n})": (phi, n) for name, phi in (("HA", "ha"), ("WHA", "wha")) for n in ("cycles", "visits")}
"""HA and WHA with both readings of n."""


def fig_9(options: ExperimentOptions) -> Result:
    """ChangeRatio in each of 24 cycles: status, history, weighted history, random."""
    rows = run_settings(options, _settings())
    notes = [
        "T's figure has no printed values; only T's statements about it are compared.",
        f"T plots {CYCLES} cycles of two weeks.",
        "HA and WHA: *cycles* divides by all cycles so far, as T prints it; *visits* (ours) by the page's own.",
    ]
    return _result(rows, of_fig_9, "Fig. 9: the long run", describe_worlds(options), notes)


def longer(options: ExperimentOptions) -> Result:
    """The same over 52 cycles, on archives: the generated world has one year."""
    rows = run_settings(options, _settings(LONG), generated_too=False)
    notes = [f"T leaves the longer run to future work (§6.2). {LONG} cycles of two weeks need archives of two years."]
    return _result(rows, of_longer, "Over two years", describe_worlds(options)[2:], notes)


def _settings(cycles: int = 0) -> list[ReplaySetting]:
    texts = {
        "DB": sampling("DB", 1),
        **{name: sampling("DB", 1, phi, n=n) for name, (phi, n) in BY_HISTORY.items()},
        "RNS": "random",
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
                mean, low, high = values
                keys = ("world", "policy", "weeks", "resources", "budget", "pages", "seeds")
                yield {
                    **{key: row[key] for key in keys},
                    "cycle": cycle,
                    "change_ratio": mean,
                    "low": low,
                    "high": high,
                }


def of_fig_9(rows: Sequence[Row]) -> list[Claim]:
    """T's statements, for both readings of n."""
    claims = []
    for world, world_rows in by_world(rows).items():
        lines = _lines(world_rows)
        last = sorted(set.intersection(*(set(line) for line in lines.values())))
        early, late = [cycle for cycle in last if 2 <= cycle <= 5], [cycle for cycle in last if cycle > 5]
        for n in ("cycles", "visits"):
            ha, wha = f"HA ({n})", f"WHA ({n})"
            if ha not in lines:
                continue
            start = {name: _mean(lines[name], early) for name in (ha, wha, "RNS")}
            slow = all(start[name] <= start["RNS"] * (1 + SIMILAR) for name in (ha, wha))
            means = [_mean(lines[name], late) for name in (wha, ha)]
            claims += [
                claim("slow-start", world, (slow, ", ".join(f"{k} {v:.3f}" for k, v in start.items()), "")),
                claim("wha-over-ha", world,
                      (is_above(*means), f"from cycle 6 on {wha} {means[0]:.3f}, {ha} {means[1]:.3f}", "")),
                claim("wha-passes", world, _passes(lines, wha, 16, last)),
                claim("ha-passes", world, _passes(lines, ha, 18, last)),
            ]  # fmt: skip
    return claims


def of_longer(rows: Sequence[Row]) -> list[Claim]:
    """Whether the history-adaptive strategies outperform DB in the long run (T §7)."""
    claims = []
    for world, world_rows in by_world(rows).items():
        lines = _lines(world_rows)
        last = sorted(set.intersection(*(set(line) for line in lines.values())))
        half = last[len(last) // 2 :]
        for n in ("cycles", "visits"):
            mean = {name: _mean(lines[name], half) for name in (f"WHA ({n})", f"HA ({n})", "DB", "RNS")}
            best = is_above(mean[f"WHA ({n})"], max(mean["DB"], mean[f"HA ({n})"]))
            shown = ", ".join(f"{name} {value:.3f}" for name, value in mean.items())
            claims.append(claim("long-run", world, (best, f"cycles {half[0]} to {half[-1]}: {shown}", "")))
    return claims


def _lines(rows: Iterable[Row]) -> dict[str, Curve]:
    lines: dict[str, Curve] = {}
    for row in rows:
        lines.setdefault(row["policy"], {})[row["cycle"]] = row["change_ratio"]
    return lines


def _mean(line: Curve, cycles: Sequence[int]) -> float:
    return fmean(line[cycle] for cycle in cycles) if cycles else 0.0


def _passes(lines: dict[str, Curve], name: str, expected: int, cycles: Sequence[int]) -> Judgement:
    """Whether a line stays above DB's from about the expected cycle on."""
    behind = [cycle for cycle in cycles if lines[name][cycle] <= lines["DB"][cycle]]
    first = next((cycle for cycle in cycles if not behind or cycle > behind[-1]), None)
    last_third = cycles[-(len(cycles) // 3 or 1) :]
    means = ", ".join(f"{one} {_mean(lines[one], last_third):.3f}" for one in (name, "DB"))
    course = "stays below DB to the end" if first is None else f"stays above DB from cycle {first} on"
    measured = f"{name} {course}; in the last {len(last_third)} cycles {means}"
    return first is not None and abs(first - expected) <= _CYCLES_OFF, measured, ""
