"""The whole crawler in a simulator, and whether the simulator notices mistakes: `python -m benchmarks.simulate`.

    python -m benchmarks.simulate --seeds 10000      crawls of so many seeds, each with crashes and other faults
    python -m benchmarks.simulate --seed 17          one of them: what it came to, or its story
    python -m benchmarks.simulate --resume           cycles that are made twice, undisturbed and with crashes, and must
                                                     choose the same pages although servers answer at other speeds
    python -m benchmarks.simulate --mutants          wrong rules, each of which some seed must catch

`recrawl.testing.simulate` says what is real and what is simulated. A mutant is the module of the machine, the lanes or
the loop in which one piece of code is another. It is caught if any seed breaks a rule. The first line is the control:
the code as it is, which nothing may catch. Exit code 1 if a seed fails, a mutant survives or the control does not.
"""

# ruff: noqa: E501  # one line per wrong rule

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from recrawl.testing.simulate import Code, Simulation, WrongCrawl, resume_exactly, simulate


class WrongRule(NamedTuple):
    """A piece of code in a module, and what stands there instead."""

    what: str
    module: str
    code: str
    instead: str


MACHINE, LANES, LOOP = "recrawl.crawl.visits.machine", "recrawl.fetch.lanes", "recrawl.loop"
MUTANTS = [
    WrongRule("no pause after an answer", LANES, "lane.free = now + max(lane.delay, min(seconds", "lane.free = now and min(0.0, min(seconds"),
    WrongRule("two requests at once", LANES, " or lane.in_flight >= self._per_server:", " or lane.in_flight >= 2:"),
    WrongRule("Retry-After is ignored", LANES, "(parse_retry_after(retry_after, now) or back_off)", "back_off"),
    WrongRule("back-off is ignored", LANES, "max(lane.free, lane.hold, lane.back_off)", "max(lane.free, lane.hold)"),
    WrongRule("holds are ignored", LANES, "max(lane.free, lane.hold, lane.back_off)", "max(lane.free, lane.back_off)"),
    WrongRule("Crawl-delay is ignored", LANES, "else ours, min(seconds, self._max_delay))", "else ours, 0.0)"),
    WrongRule("what is skipped stays under way", LANES, "        lane.in_flight -= 1\n        lane.free = now\n", "        lane.free = now\n"),
    WrongRule("retries without end", MACHINE, "visit.retries < self._options.retries:", "visit.retries < 1000:"),
    WrongRule("redirects without end", MACHINE, "elif len(visit.redirects) >= self._options.redirects:", "elif len(visit.redirects) >= 1000:"),
    WrongRule("a visit is recorded twice", MACHINE, "        self._actions.append(RecordVisit(visit, finding))", "        self._actions += [RecordVisit(visit, finding)] * 2"),
    WrongRule("an outcome is dropped", MACHINE, "            self.outcomes.append((visit.page, event.outcome, event.received))", "            pass"),
    WrongRule("an outcome is told twice", MACHINE, "            self.outcomes.append((visit.page, event.outcome, event.received))", "            self.outcomes += [(visit.page, event.outcome, event.received)] * 2"),
    WrongRule("robots.txt is ignored", MACHINE, "            refusal = server.refuses(visit.request_url, new=first and self.exploring)", "            refusal = None"),
    WrongRule("robots.txt is not read", MACHINE, "elif not self._options.outside and self._robots_due(work.server):", "elif self._options.outside:"),
    WrongRule("robots.txt is read once for ever", MACHINE, "return server.robots is None or server.robots.expired(self._at)", "return server.robots is None"),
    WrongRule("pages do not wait for robots.txt", MACHINE, "        self._pause(work, thing)\n        self._send(", "        self._send("),
    WrongRule("robots.txt does not forbid requisites", MACHINE, "refusal = server.refuses(thing.row.url, new=False)", "refusal = None"),
    WrongRule("robots.txt does not forbid sitemaps", MACHINE, "forbidden = not thing.named and not _allows(work.server, thing.url)", "forbidden = False"),
    WrongRule("sitemaps are read from a closed server", MACHINE, "work.sitemaps.stopped |= work.server.closed", "work.sitemaps.stopped |= False"),
    WrongRule("a lane stays on hold", MACHINE, "        self.lanes.hold(work.server.id, work.server.held_until)\n\n    def _set_pace", "\n    def _set_pace"),
    WrongRule("the limit of a site is ignored", MACHINE, "new=first and self.exploring)", "new=False)"),
    WrongRule("a first visit counts for ever", MACHINE, "            self._work[visit.server].server.pending_new -= 1", "            pass"),
    WrongRule("the bytes of a cycle are ignored", MACHINE, "if self._bytes.used_up and len(self.lanes):", "if self._bytes.used_up and self._options.outside:"),
    WrongRule("the bytes of a site are ignored", MACHINE, "elif self._bytes.closed(server.id):", "elif self._options.outside:"),
    WrongRule("pages of a dead server are lost", MACHINE, "            self._actions.append(ReadRow(page, server.id, explores=False))", "            pass"),
    WrongRule("a page that cannot be parsed is lost", MACHINE, "            self._finish(visit, VisitFailed(Failure(reading.failure), reading.detail, answer))\n", ""),
    WrongRule("a page that is missing is parsed", MACHINE, "            self._finish(visit, PageMissing(answer))\n", "            self._page_body(server, visit, answer)\n            self._parse(visit)\n"),
    WrongRule("the browser takes two pages at once", MACHINE, "while self._to_render and self._rendering is None:", "while self._to_render:"),
    WrongRule("the browser forgets the next page", MACHINE, "        self._parse(visit)\n        self._render_next()\n", "        self._parse(visit)\n"),
    WrongRule("logins without end", MACHINE, "if work.logins >= _MAX_LOGINS or visit.logins:", "if False:"),
    WrongRule("pages do not wait for a login", MACHINE, "        self._pause(work, thing)\n        self._begin(", "        self._begin("),
    WrongRule("what has ended is kept", MACHINE, "        self._others.discard(thing)\n", ""),
    WrongRule("found pages are not visited", MACHINE, "            self.lanes.push(server.id, page)\n        for server in {", "            pass\n        for server in {"),
    WrongRule("requisites without a budget", MACHINE, "self._requisites_left -= not thing.demanded", "self._requisites_left -= False"),
    WrongRule("a requisite is requested twice", MACHINE, "            if row.id not in self._queued:\n", "            if True:\n"),
    WrongRule("commit only at the end", MACHINE, "batch = results >= self._options.commit_visits or now >= self._batch_by", "batch = False"),
    WrongRule("commit by size alone", MACHINE, "batch = results >= self._options.commit_visits or now >= self._batch_by", "batch = results >= self._options.commit_visits"),
    WrongRule("commit by time alone", MACHINE, "batch = results >= self._options.commit_visits or now >= self._batch_by", "batch = now >= self._batch_by"),
    WrongRule("the awaited pages are not awaited", MACHINE, "        lacking = self._left & slow()", "        return True"),
    WrongRule("slow servers are not awaited", MACHINE, "now - it.steps[-1][0] >= _LONG", "now - it.steps[-1][0] >= 0.5"),
    WrongRule("choices follow the speed of servers", LOOP, "there = set(due).intersection(self._known)", "there = set(self._known)"),
    WrongRule("recorded visits are made again", LOOP, "page not in self._recorded for page in chosen", "page >= 0 for page in chosen"),
    WrongRule("lost visits are not made again", LOOP, "        if self._again:\n            self._add(self._world.visit(WAIT))", "        pass"),
    WrongRule("what was told is not told again", LOOP, "        if not self._sent:\n            return False", "        self._sent.clear()\n        if not self._sent:\n            return False"),
]  # fmt: skip
_NAMES = {MACHINE: "machine", LANES: "lanes", LOOP: "loop"}


def mutant(rule: WrongRule) -> Code:
    """The code with this wrong rule."""
    source = importlib.import_module(rule.module)
    assert source.__file__ is not None
    text = Path(source.__file__).read_text(encoding="utf-8")
    if text.count(rule.code) < 1:
        raise LookupError(f"{rule.what}: the code is not there any more: {rule.code}")
    name = f"{rule.module}_with_a_wrong_rule"
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text.replace(rule.code, rule.instead), f"{rule.module}: {rule.what}", "exec"), module.__dict__)
    return replace(Code(), **{_NAMES[rule.module]: module})


def caught_by(code: Code, seeds: int, *, checks: bool = True) -> tuple[int, str] | None:
    """The first seed that catches it, and what it says; None if none does."""
    for seed in range(seeds):
        try:
            simulate(seed, code=code, checks=checks)
            resume_exactly(seed, code=code, checks=checks)
        except WrongCrawl as error:
            return seed, str(error).partition("\n")[0]
    return None


def try_mutants(seeds: int) -> bool:
    """Print what catches each mutant; whether all are caught."""
    survivors = 0
    control = caught_by(Code(), seeds)
    print(f"control: {'nothing catches it' if control is None else control}")
    for rule in MUTANTS:
        code = mutant(rule)
        found, alone = caught_by(code, seeds), caught_by(code, seeds, checks=False)
        survivors += found is None
        first = "SURVIVES" if found is None else f"seed {found[0]}: {found[1].partition(': ')[2][:90]}"
        print(f"{rule.what}: {first}{'' if alone is None else f' (without invariants: seed {alone[0]})'}", flush=True)
    print(f"{len(MUTANTS)} mutants, {len(MUTANTS) - survivors} caught")
    return not survivors and control is None


def try_seeds(seeds: range, *, as_json: bool, simulated: Callable[[int], Simulation] = simulate) -> bool:
    """Simulate each seed; whether all pass."""
    total, failures, failed, begun = Counter[str](), Counter[str](), [], time.process_time()
    for number, seed in enumerate(seeds, 1):
        try:
            run = simulated(seed)
        except WrongCrawl as error:
            failed.append(seed)
            print(error, file=sys.stderr)
            continue
        for name in ("events", "crashes", "visits", "requests", "commits", "seconds"):
            total[name] += getattr(run, name)
        failures += run.failures
        if number % 1000 == 0:
            print(f"{number} seeds, {len(failed)} failed", file=sys.stderr, flush=True)
    used = time.process_time() - begun
    result = {
        "seeds": len(seeds),
        "failed": failed,
        **{name: round(value) for name, value in total.items()},
        "cpu_seconds": round(used, 1),
        "events_per_second": round(total["events"] / used) if used else 0,
        "outcomes": dict(failures.most_common()),
    }
    print(json.dumps(result) if as_json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulate", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="seeds to simulate (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first one (0)")
    parser.add_argument("--seed", type=int, help="one seed alone")
    parser.add_argument("--resume", action="store_true", help="compare cycles with crashes to undisturbed ones")
    parser.add_argument("--mutants", action="store_true", help="try wrong rules instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    if chosen.mutants:
        passed = try_mutants(min(chosen.seeds, 1000))
    elif chosen.seed is not None:
        passed = try_seeds(range(chosen.seed, chosen.seed + 1), as_json=chosen.json)
    else:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        passed = try_seeds(seeds, as_json=chosen.json, simulated=resume_exactly if chosen.resume else simulate)
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()
