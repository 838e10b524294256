"""Whether the golden numbers notice a mistake: mutants of the code that chooses and learns, each with a wrong rule.

    python -m benchmarks.mutants [--only NAME ...]

A mutant is a copy of `recrawl.choose` and `recrawl.learn` in which one piece of code is another. It is caught if any
of the policies named beside it finds something else on the golden world than `tests/golden.json` says (`tests.test_golden`
compares all policies). Each line is the mutant, and the policies that caught it. The first line is the control: the code
as it is, which nothing may catch. Exit code 1 if a mutant survives or the control does not.
"""

# ruff: noqa: E501  # one line per mutant

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "recrawl"


class Mutant(NamedTuple):
    """A piece of code in a file, what stands there instead, and policies that use it."""

    file: str
    code: str
    instead: str
    policies: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file, and the code that is another."""
        return f"{self.file}: {self.code.strip().splitlines()[0]} -> {self.instead.strip().splitlines()[0]}"


def mutants(file: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of one file: code, replacement, and policies, separated by `|`."""
    return [Mutant(file, code, instead, tuple(policies.split("|"))) for code, instead, policies in changes]


_3D = "predicted(method=3d, k=3, retrain=3)"
MUTANTS = [
    # The documents' policies.
    *mutants(
        "choose/papers/sampling.py",
        ("free[sample] = False", "pass", "sampling|sampling(d=8, phi=ha, batch=1)"),
        ("rate(found + weight, compared)", "rate(found, compared)", "sampling(d=8, phi=ha, batch=1)"),
        ("np.where(seen.changed, self.changed[seen.pages]", "np.where(~seen.changed, self.changed[seen.pages]", "sampling"),
        ("counted * (counted + 1) / 2", "counted * (counted + 1) / 3", "sampling(neighbours=links, d=2, phi=wha)"),
        ("return (scale + 1) / 11.0", "return (scale + 1) / 12.0", "sampling(neighbours=clusters, d=3, phi=pra)"),
        ("return -np.expm1(-rate_per_cycle)", "return np.minimum(rate_per_cycle, 1.0)", "sampling(d=8, phi=ha, batch=1)"),
        ("weighted[found] += number[found]", "weighted[found] += 1", "sampling(neighbours=links, d=2, phi=wha)"),
        ("compared = np.maximum(book.visits - 1.0, 0.0)", "compared = np.maximum(book.visits - 0.0, 0.0)",
         "sampling(phi=ha, n=visits)"),
    ),
    *mutants(
        "learn/structure/neighbours.py",
        ("range(min(self._d + 1, self._nearest.shape[1]))", "range(min(self._d, self._nearest.shape[1]))",
         "sampling(neighbours=clusters, d=0)|sampling(neighbours=clusters, d=3, phi=pra)"),
        ("yield hops if self._d > 0 else -hops, edge[free[edge]]", "yield hops if self._d > 0 else -hops, edge[:0]",
         "sampling(neighbours=links, d=2, phi=wha)"),
    ),
    *mutants(
        "choose/papers/round_robin.py",
        ("place = (done[pages] >= present) + rng", "place = (done[pages] < present) + rng", "round-robin(order=shuffled)"),
        ("np.lexsort((visits, since))", "np.lexsort((since, visits))", "round-robin"),
        ("np.maximum(book.weight[pages], 1e-12)", "1.0", "round-robin(order=accesses)"),
    ),
    *mutants(
        "choose/papers/anchor_depth.py",
        ("_EARLY * self.every * HOUR", "_EARLY * self.every * DAY", "anchor-depth(n=1)|anchor-depth"),
        ("~dynamic[due]))]", "dynamic[due]))]", "anchor-depth(per_site=2)"),
        ("int(self.rest * budget), budget - len(seldom)", "int(self.rest * budget), budget", "anchor-depth(n=3, slow=30, rest=0.5)"),
        ("(depth <= most)", "(depth < most)", "anchor-depth(n=1)|anchor-depth"),
    ),
    *mutants(
        "learn/structure/anchor.py",
        ("score *= CLOSER ** away[pages]", "score *= 0.1 ** away[pages]", "anchor-depth|anchor-depth(n=1)"),
        ("np.lexsort((pages, -score, away[pages], -believed, book.site[pages]))",
         "np.lexsort((pages, -away[pages], book.site[pages]))", "anchor-depth|anchor-depth(n=1)"),
    ),
    *mutants(
        "learn/structure/depth.py",
        ("level += 1", "level += 2", "anchor-depth(n=1)|anchor-depth"),
        (">= np.nan_to_num(table.uniform, nan=1.0)[:, None]", ">= 2 * np.nan_to_num(table.uniform, nan=1.0)[:, None]",
         "anchor-depth|grouped(inner=anchor-depth)|anchor-depth(rest=1)"),
    ),
    *mutants(
        "choose/papers/explore.py",
        ("np.argsort(book.last_try[old]", "np.argsort(-book.last_try[old]", "explore(order=path)"),
        ("return -book.depth.astype(np.float64)", "return book.depth.astype(np.float64)", "explore(order=path)"),
        ('return -age if self.order == "depth" else age', "return age", "explore(order=depth)"),
    ),
    *mutants(
        "learn/structure/pagerank.py",
        ("damping: float = 0.85", "damping: float = 0.1", "explore|sampling(neighbours=clusters, d=3, phi=pra)"),
    ),
    *mutants(
        "choose/papers/change_frequency.py",
        ("return rate * waited", "return rate", "change-frequency"),
        ("(1.0 + expected) * np.exp", "(1.0 + expected / 2) * np.exp", "change-frequency(allocation=optimal)"),
        ("rate[~observed] = rate[observed].mean()", "rate[~observed] = rate[observed].max()", "change-frequency"),
    ),
    *mutants(
        "learn/rates.py",
        ("np.log((n + 0.5) / (n - x + 0.5))", "x / n", "change-frequency|lambda-crawl(estimator=regular)"),
    ),
    # Sites.
    *mutants(
        "choose/papers/by_site/site_sampling.py",
        ("np.lexsort((rng.random(len(rate)), -rate))", "np.lexsort((rng.random(len(rate)), rate))", "greedy"),
        ("np.where(deck.left == deck.size, overall,", "np.where(deck.left == deck.size, 0.0,", "greedy(level=directory)|greedy(sample=1000)|greedy"),
        ("room = np.minimum(pages, each)", "room = np.minimum(pages, each + 1)", "greedy(sample=3)"),
        ("given = apportion(downloads, rate, space)", "given = apportion(downloads, rate**2, space)", "proportional"),
        ("changes / np.maximum(visits, 1), np.nan)", "changes / np.maximum(visits, 1) / 2, np.nan)", "greedy(sample=optimal)|greedy(sample=optimal, level=cluster)"),
    ),
    *mutants(
        "choose/papers/by_site/sample_size.py",
        ("np.sqrt(pages * share))))", "pages * share)))", "greedy|proportional"),
        ("half = max(1, budget // 2)", "half = max(1, budget // 8)", "greedy|proportional(level=cluster)|greedy(level=directory)"),
        ("centre + half, 1", "centre, 1", "adaptive-sampling(kappa=1, confidence=0.5)|adaptive-sampling"),
    ),
    *mutants(
        "choose/papers/by_site/adaptive_sampling.py",
        ("accepted = undecided & (low > limit) & ~silent", "accepted = undecided & (high > limit) & ~silent",
         "adaptive-sampling(kappa=1, confidence=0.5)|adaptive-sampling"),
        ("max(1, budget // 4)", "max(1, budget // 16)", "adaptive-sampling|adaptive-sampling(level=cluster)|frequency-adaptive"),
    ),
    *mutants(
        "choose/papers/by_site/frequency_greedy.py",
        ("np.where(earned < 5,", "np.where(earned < 1,", "frequency-greedy|frequency-greedy(sample=1, most=1, versions=1)"),
        ("most = max(1, int(self.most * budget))", "most = max(1, budget)", "frequency-greedy"),
        ("(turn == newest[own])", "(turn > 0)", "frequency-greedy|frequency-greedy(level=directory)"),
    ),
    *mutants(
        "choose/papers/by_site/version_history.py",
        ("np.minimum(self.compared, versions)", "np.maximum(self.compared, 1)", "frequency-greedy|frequency-adaptive"),
        ("(history.flags[seen.pages] << 1) | seen.changed", "(history.flags[seen.pages] << 1) | ~seen.changed", "frequency-greedy"),
    ),
    *mutants(
        "choose/papers/by_site/grouped.py",
        ("(turn + step) % groups", "turn % groups", "grouped|grouped(inner=proportional, groups=100)"),
    ),
    *mutants(
        "choose/papers/predicted.py",
        ("round(self.explore * budget)", "round(2 * self.explore * budget)", "predicted|predicted(method=1d)"),
    ),
    *mutants(
        "learn/pooled/learner.py",
        ("0.5 ** np.minimum(book.failures", "0.9 ** np.minimum(book.failures", "predicted|predicted(method=1d)"),
        ("if cycles % int(self.retrain) == 0:", "if False:", "predicted(retrain=1, explore=0)|predicted"),
        ("feature_names().index(BASELINE)\n        parts", "0\n        parts", "predicted(method=1d)"),
    ),
    *mutants(
        "learn/pooled/features.py",
        ("1.0 - (1.0 - share) ** gap_ratio", "share + 0.0 * gap_ratio", "predicted(method=1d)"),
        ("day_rate, 1.0)), no_change)", "mean_rate, 1.0)), no_change)", "predicted(method=1d)"),
    ),
    *mutants(
        "learn/pooled/ledger.py",
        ("_WEEKDAY_DECAY = 0.9", "_WEEKDAY_DECAY = 0.2", "predicted(method=1d)"),
    ),
    *mutants(
        "learn/experts/panels.py",
        ('if machines.method == "bagging":', 'if machines.method == "never":', "predicted(method=bagging, k=3, retrain=3)"),
        ('classifiers.boosting if machines.method == "boosting"', 'classifiers.boosting if machines.method == "never"', "predicted(method=boosting, k=3, retrain=3)"),
    ),
    *mutants(
        "learn/experts/online_learner.py",
        ("_MAX_MARGIN = 2.0", "_MAX_MARGIN = 0.01", f"{_3D}|predicted(method=2d, retrain=3)"),
    ),
    # Revisit rules of other crawlers.
    *mutants(
        "choose/crawlers/nutch.py",
        ("base = at - self._offset(age)", "base = at", "nutch(interval=86400)|nutch(max=604800, cap=604800, fill=true)|nutch"),
        ("at + DAY, fetched.due", "at + 2 * DAY, fetched.due", "nutch(interval=86400)|nutch(sync=false, interval=86400)"),
    ),
    *mutants(
        "choose/crawlers/stormcrawler.py",
        ("state.interval * (1 + self.incr)", "state.interval * (2 + self.incr)", "stormcrawler"),
        ("(1 - self.decr) * state.interval + self.decr * self.min", "state.interval", "stormcrawler"),
    ),
    *mutants(
        "choose/crawlers/heritrix1.py",
        ("state.wait * self.factor, state.wait / self.factor", "state.wait / self.factor, state.wait * self.factor", "heritrix1"),
        ("np.clip(moved, self.min, self.max)", "np.clip(moved, self.max, self.max)", "heritrix1|heritrix1(factor=2, fill=true)"),
    ),
    *mutants(
        "choose/crawlers/manifoldcf.py",
        ("average = between / np.maximum(changes, 1)", "average = between / 2", "manifoldcf"),
    ),
    *mutants(
        "choose/crawlers/norconex.py",
        ("np.where(lastmod > processed, processed, np.inf)", "np.where(lastmod < processed, processed, np.inf)", "norconex"),
    ),
    *mutants(
        "choose/crawlers/marginalia.py",
        ("np.clip(unchanged / np.maximum(visited, 1), low, high)", "np.clip(unchanged / np.maximum(visited, 1), low, 0.1)", "marginalia"),
    ),
    # Optimal allocation.
    *mutants(
        "choose/optimal/lambda_crawl.py",
        ("np.sqrt(rate / price) - rate, 0.0)", "np.sqrt(rate / price), 0.0)", "lambda-crawl(penalty=binary, estimator=naive)"),
        ("due[open_] = visits * waited[open_]", "due[open_] = visits", "lambda-crawl"),
        ("rate**2 + 4 * rate / price", "rate**2 + rate / price", "lambda-crawl"),
    ),
    *mutants(
        "choose/optimal/ncis.py",
        ("missed * rate, false)", "rate, false)", "ncis|ncis(estimator=naive)"),
    ),
    *mutants(
        "learn/value.py",
        ('"age": lambda: np.where(early, a / b * w**3 / 3,', '"age": lambda: np.where(True, a / b * w**3 / 3,', "optimal-age"),
        ('"freshness": lambda: np.where(early, a / b * w**2 / 2,', '"freshness": lambda: np.where(True, a / b * w**2 / 2,', "optimal-freshness"),
    ),
    *mutants(
        "learn/rates.py",
        ("SHAPE = 0.5", "SHAPE = 5.0", "optimal-freshness|optimal-age|lambda-crawl"),
        ("for group in levels:", "for group in ():", "optimal-freshness|lambda-crawl"),
    ),
    # The default policy.
    *mutants(
        "choose/shock/plan.py",
        ("time = np.sqrt(time * waited)", "time = waited", "shock(objective=age)"),
        ("value[page] *= 1 + curiosity", "value[page] *= 1 - curiosity", "shock"),
        ("low: Flags = self.probability[pages] < CERTAIN", "low: Flags = self.probability[pages] < 0", "shock"),
        ("due *= np.maximum(self._unsignalled(size), MIN_PROBE_SHARE)", "due *= 3", "shock(probe=1)|shock"),
    ),
    *mutants(
        "choose/shock/shard.py",
        ("book.now - book.last_try[pages] > patience * round_", "book.now - book.last_try[pages] < 0", "shock(patience=0.3)"),
        ("self._rng.random() < self._policy.explore", "self._rng.random() > self._policy.explore", "shock(explore=1, probe=0, experts=none)|shock"),
    ),
    *mutants(
        "learn/shocks/model.py",
        ("PAGE_WEIGHT = 0.25", "PAGE_WEIGHT = 4.0", "shock"),
        ("SHOCK_WEIGHT = 3.0", "SHOCK_WEIGHT = 300.0", "shock"),
        ("self.watched[pages] += exposure", "self.watched[pages] += 2 * exposure", "shock"),
        ("FORGET = 0.02", "FORGET = 0.5", "shock"),
    ),
    *mutants(
        "learn/shocks/new_pages.py",
        ("INITIAL = np.array([0.7, 0.3, 0.1])", "INITIAL = np.array([0.01, 0.01, 0.01])", "shock"),
        ("FIRST_CRAWL = 7 * DAY", "FIRST_CRAWL = 700 * DAY", "shock"),
    ),
    *mutants(
        "learn/shocks/change_model.py",
        ("_PAGE_FADE = 0.15", "_PAGE_FADE = 0.9", "shock"),
    ),
    *mutants(
        "learn/hints.py",
        ("_PRIOR_WEIGHT = 1.0", "_PRIOR_WEIGHT = 1e9", "shock|ncis"),
        ("count * log - rest[:, None] * missed", "count * log", "shock|ncis"),
        ("np.log(doubt[rows] + (1 - doubt[rows]) * np.exp(log))", "log", "shock|ncis"),
    ),
]  # fmt: skip


def caught_by(mutant: Mutant, tree: Path, history: object, golden: dict[str, object]) -> list[str]:
    """The policies that find something else with the mutant; modules are loaded anew from the changed tree."""
    file = tree / "recrawl" / mutant.file
    original = file.read_text(encoding="utf-8")
    if original.count(mutant.code) < 1:
        raise SystemExit(f"no such code: {mutant.name}")
    file.write_text(original.replace(mutant.code, mutant.instead, 1), encoding="utf-8")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(_differing(mutant, tree, history, golden)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = json.loads(pipe.read() or b"null")
    os.waitpid(child, 0)
    file.write_text(original, encoding="utf-8")
    if answer is None:
        raise SystemExit(f"the process of a mutant ended: {mutant.name}")
    return list(answer)


def _differing(mutant: Mutant, tree: Path, history: object, golden: dict[str, object]) -> list[str]:
    changed = ("recrawl.choose", "recrawl.learn", "recrawl.loop", "recrawl.lab.replays", "tests.")
    for name in [name for name in sys.modules if name.startswith(changed)]:
        del sys.modules[name]
    package = sys.modules["recrawl"]
    package.__path__ = [str(tree / "recrawl")]
    differing = []
    for policy in mutant.policies:
        try:
            from tests.test_golden import numbers  # lazy: its modules are loaded anew

            if numbers(history, policy) != golden[policy]:  # type: ignore[arg-type]
                differing.append(policy)
        except Exception:  # noqa: BLE001  # a mutant that fails is noticed too
            differing.append(f"{policy} ({traceback.format_exc().splitlines()[-1]})")
    return differing


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only mutants whose name contains this")
    asked = parser.parse_args()
    from tests.test_golden import FILE, made  # lazy: loads all policies, which --help does not need

    golden = json.loads(FILE.read_text(encoding="utf-8"))
    chosen = [one for one in MUTANTS if not asked.only or any(part in one.name for part in asked.only)]
    used = tuple(dict.fromkeys(policy for mutant in chosen for policy in mutant.policies))
    control = Mutant("__init__.py", '"""', '"""', used)
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "src"
        shutil.copytree(SOURCE, tree / "recrawl", ignore=shutil.ignore_patterns("__pycache__"))
        history = made(Path(folder))
        wrong = caught_by(control, tree, history, golden)
        sys.stdout.write(f"control: {len(used)} policies, [{', '.join(wrong)}] differ\n")
        for mutant in chosen:
            found = caught_by(mutant, tree, history, golden)
            survivors += not found
            sys.stdout.write(f"{'caught' if found else 'SURVIVED'}  {mutant.name}  [{', '.join(found)}]\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} of {len(chosen)} mutants were caught\n")
    sys.exit(survivors > 0 or bool(wrong))


if __name__ == "__main__":
    main()
