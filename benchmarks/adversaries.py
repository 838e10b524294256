"""What honest sites keep beside one that takes what belongs to the others, and what fair shares cost without one.

    python -m benchmarks.adversaries beside [ARCHIVE...] [--kind K] [--policy P] [--seeds 3]
    python -m benchmarks.adversaries live [--kind K] [--seeds 3] [--days 30]
    python -m benchmarks.adversaries honest ARCHIVE... [--samples 10] [--seeds 2] [--change content]
    python -m benchmarks.adversaries scale [--pages 1000000] [--sites 100000]

`beside` puts an adversary of each kind beside the sites of the archives, or beside one generated site of 150 pages that
change every 2 to 11 days. It has as many pages as they have together. Finds, freshness and age of the honest pages are
compared with those that the same pages have alone, with the part of the budget that is theirs by their number of pages.

`live` is the same with the real crawler: an honest site of 150 pages and another one, both on this machine, crawled
over days of a clock that is put forward.

`honest` compares the finds under fair shares (`auto`) with those without (1): for all archives together, or for samples
of so many sites.

`scale` plans one cycle with shares and without, in processes of their own, where one page in ten belongs to sites that
are rewritten for every visit. With as many sites as pages it is a farm.

Each line is a JSON object, printed as soon as it is known; the last ones sum up over seeds or samples, with 95 %
intervals.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
from tests.world import Asked, Reply, Repo, Site, page

from benchmarks.default_policy import BUDGETS
from benchmarks.opinion import part
from recrawl.book import Book
from recrawl.choose import POLICIES, make_policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.choose.budget.fair import claims
from recrawl.choose.protocol import needs_of
from recrawl.choose.shock.policy import Shock
from recrawl.columns import DAY
from recrawl.lab.experiments.intervals import interval
from recrawl.lab.histories.history import ABSENT, HOSTILE, History, assemble
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.metrics import Record
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.synth.adversaries import with_adversary
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes
from recrawl.parameters import ADVERSARIES

PAGES = 150
LACKING = frozenset({"links", "clusters", "words", "arrivals"})
"""Parts of a book that an adversary has not."""


def told(**row: Any) -> None:
    print(json.dumps(row), flush=True)


def policies() -> list[str]:
    """All policies that can run beside an adversary."""
    return [name for name in POLICIES if not needs_of(make_policy(name)) & LACKING]


# -- beside an adversary ---------------------------------------------------------------------------------------------


def generated(seed: int, days: int) -> History:
    """One site whose pages change every 2 to 11 days."""
    rng = np.random.default_rng(seed)
    times = []
    for _ in range(PAGES):
        pause = rng.uniform(2, 11)
        times.append(np.concatenate(([0.0], np.arange(rng.uniform(0, pause), days + 1, pause) * DAY)))
    page = np.repeat(np.arange(PAGES), list(map(len, times)))
    urls = [f"https://honest.example/{number}" for number in range(PAGES)]
    return assemble(urls, page, np.concatenate(times), np.arange(len(page)), change="text", carries=frozenset())


def beside(asked: argparse.Namespace) -> None:
    kinds, names = asked.kind or ADVERSARIES, asked.policy or ["shock"]
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    whole = open_history(asked.archives, asked.change, asked.cache) if asked.archives else None
    for seed, kind in itertools.product(range(1, asked.seeds + 1), kinds):
        honest = generated(seed, asked.days) if whole is None else part(whole, np.arange(len(whole.sites)))
        both = with_adversary(honest, kind, len(honest))
        share = _share(both, asked.days)
        for name in names:
            budget = max(2, round(asked.budget * len(both)))
            alone = _replayed(honest, name, round(budget * share), seed, asked.days, "auto")
            found, visits = alone.found.sum(), alone.visits.sum()
            for shares in ("auto", "1") if asked.without else ("auto",):
                record = _replayed(both, name, budget, seed, asked.days, shares)
                assert record.honest is not None
                row = {
                    "finds kept": float(record.site_found[record.honest].sum() / max(found, 1)),
                    "freshness": float(record.freshness.mean()),
                    "freshness alone": float(alone.freshness.mean()),
                    "age": float(record.age.mean()),
                    "age alone": float(alone.age.mean()),
                    "visits": float(record.site_visits[record.honest].sum() / max(record.visits.sum(), 1)),
                    "visits kept": float(record.site_visits[record.honest].sum() / max(visits, 1)),
                    "share": share,
                }
                rows.setdefault((name, f"{kind}, site_share={shares}"), []).append(row)
                told(policy=name, kind=kind, site_share=shares, seed=seed, **_rounded(row))
    for (name, kind), some in rows.items():
        told(
            policy=name,
            kind=kind,
            seeds=len(some),
            **{key: str(interval([row[key] for row in some])) for key in some[0]},
        )


def _replayed(history: History, policy: str, budget: int, seed: int, days: int, share: str) -> Record:
    setup = Setup(budget=max(1, budget), cycle=DAY, cycles=days, seed=seed, samples=1, site_share=share)
    return replay(history, make_policy(policy), setup)


def _share(history: History, days: int) -> float:
    """The honest pages' mean share of the pages that are there."""
    last = np.append(history.time[1:], np.inf)
    last[history.first[1:] - 1] = np.inf
    lives = np.where(
        history.version == ABSENT, 0.0, np.minimum(last, days * DAY) - np.minimum(history.time, days * DAY)
    )
    hostile = history.facts[HOSTILE][history.page_of] > 0
    return float(lives[~hostile].sum() / lives.sum())


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) for key, value in row.items()}


# -- live -----------------------------------------------------------------------------------------------------------

LIVE = ("rewriting", "sitemap", "feed", "last-modified")
"""What the other site does: it rewrites every page for every visit, and says so nowhere, in a sitemap or in a feed; or
it changes nothing and has a new Last-Modified for every visit."""


def live(asked: argparse.Namespace) -> None:
    """The real crawler beside such a site, over so many days of a clock that is put forward."""
    kinds = asked.kind or LIVE
    rows: dict[str, list[dict[str, Any]]] = {}
    for seed in range(1, asked.seeds + 1):
        alone = lived("", seed, asked)
        for kind in kinds:
            both = lived(kind, seed, asked)
            row = {
                "visits": both["honest"] / max(both["visits"], 1),
                "finds kept": both["finds"] / max(alone["finds"], 1),
                "held": float(both["held"]),
            }
            rows.setdefault(kind, []).append(row)
            told(live=kind, seed=seed, alone=alone, both=both, **_rounded(row))
    for kind, some in rows.items():
        told(live=kind, seeds=len(some), **{key: str(interval([row[key] for row in some])) for key in some[0]})


def lived(kind: str, seed: int, asked: argparse.Namespace) -> dict[str, int]:
    """Visits and finds of an honest site; without a kind alone, with half of the budget."""
    rng, days, budget = np.random.default_rng(seed), asked.days, max(2, round(asked.budget * 2 * PAGES))
    paths = ["/", *(f"/{number}" for number in range(1, PAGES))]
    pause, begin = rng.uniform(2, 11, PAGES), rng.random(PAGES)
    numbers, calls = {path: number for number, path in enumerate(paths)}, itertools.count()
    with tempfile.TemporaryDirectory() as folder, Site() as honest, Site() as wild:
        repo = Repo.create(Path(folder) / "repo")

        def calm(request: Asked) -> bytes | Reply | None:
            number = numbers.get(request.path)
            if number is None:
                return None
            edition = int(repo.ahead / DAY / pause[number] + begin[number])
            return page(words(f"{number}x{edition}"), *paths)

        def hostile(request: Asked) -> bytes | Reply | None:
            number, stamp = numbers.get(request.path), format_datetime(datetime.fromtimestamp(repo.now(), UTC), True)
            if number is None:
                return listing(kind, request.path, wild, paths, repo.now(), stamp)
            text = words(f"{number}x" if kind == "last-modified" else f"{number}x{next(calls)}")
            body = page(text, *paths)
            if kind == "feed":
                body = b"<link rel=alternate type='application/rss+xml' href='/feed.xml'>" + body
            return Reply(body, modified=stamp if kind == "last-modified" else "")

        honest.every, wild.every = calm, hostile
        sites = (honest, wild) if kind else (honest,)
        for site in sites:
            repo.crawl(site.url())
            site.forget()
        changed = held = 0
        for _ in range(days):
            repo.later(days=1)
            repo.cycle(budget if kind else budget // 2)
            spending = repo.json("status")["spending"]
            held += any(row["site"] == wild.url().rstrip("/") for row in spending["held"])
            changed += sum(row["updates"] for row in spending["sites"] if row["site"] == honest.url().rstrip("/"))
        visits = [sum(request.path in numbers for request in site.log) for site in (honest, wild)]
    return {"honest": visits[0], "visits": sum(visits), "finds": changed, "held": held}


def words(name: str) -> str:
    return " ".join(f"word{name}x{part}" for part in range(40))


def listing(kind: str, path: str, site: Site, paths: list[str], now: float, stamp: str) -> Reply | None:
    """A sitemap or a feed that says that all pages have changed just now."""
    urls = [site.url(one) for one in paths]
    if kind == "sitemap" and path == "/sitemap.xml":
        at = datetime.fromtimestamp(now, UTC).isoformat()
        rows = "".join(f"<url><loc>{url}</loc><lastmod>{at}</lastmod></url>" for url in urls)
        return Reply(f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{rows}</urlset>".encode())
    if kind == "feed" and path == "/feed.xml":
        rows = "".join(f"<item><link>{url}</link><guid>{url}</guid><pubDate>{stamp}</pubDate></item>" for url in urls)
        return Reply(f"<rss version='2.0'><channel>{rows}</channel></rss>".encode(), kind="application/rss+xml")
    return None


# -- without one -----------------------------------------------------------------------------------------------------


def honest(asked: argparse.Namespace) -> None:
    history = open_history(asked.archives, asked.change, asked.cache)
    rng = np.random.default_rng(14)
    sites = len(history.sites)
    samples = [np.sort(rng.choice(sites, asked.sites, replace=False)) for _ in range(asked.samples)] or [
        np.arange(sites)
    ]
    kept: dict[float, list[float]] = {}
    for number, (some, budget) in enumerate(itertools.product(samples, asked.budgets)):
        chosen = part(history, some)
        visits = max(1, round(budget * len(chosen)))
        finds: dict[str, list[int]] = {"auto": [], "1": []}
        for seed, share in itertools.product(range(1, asked.seeds + 1), finds):
            finds[share].append(int(_replayed(chosen, "shock", visits, seed, asked.days, share).found.sum()))
        ratio = sum(finds["auto"]) / max(sum(finds["1"]), 1)
        kept.setdefault(budget, []).append(ratio)
        told(
            sample=number // len(asked.budgets), sites=len(some), pages=len(chosen), change=asked.change, budget=budget
        )
        told(visits=visits, finds=finds, kept=round(ratio, 4))
    for budget, ratios in kept.items():
        told(budget=budget, change=asked.change, samples=len(ratios), kept=str(interval(ratios)), least=min(ratios))


# -- scale -----------------------------------------------------------------------------------------------------------


class Rewritten:
    """A world in which some sites have changed, and one page in fifty of the others."""

    def __init__(self, book: Book, hostile: Any, rng: np.random.Generator) -> None:
        self.changed = hostile | (rng.random(len(book)) < 0.02)

    def visit(self, picks: Any) -> Outcomes:
        what = np.where(self.changed[picks.pages], Outcome.CHANGED, Outcome.UNCHANGED)
        return Outcomes(picks.pages, what.astype(np.int8))


def planned(pages: int, sites: int, fair: bool) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    book = Book.blank(pages, now=30 * DAY)
    book.site = (np.arange(pages) * sites // pages).astype(np.int32)
    book.folder = book.site.astype(np.int64)
    book.form = book.site.astype(np.int64) * 8 + np.arange(pages) % 5
    hostile = book.site % 10 == 0
    book.visits[:] = rng.integers(1, 6, pages) * np.where(hostile, 5, 1)
    book.changes[:] = np.where(hostile, book.visits, 1 + rng.binomial(book.visits - 1, 0.2))
    book.last_visit = book.now - rng.integers(1, 30, pages) * DAY
    book.last_try = book.last_visit.copy()
    book.last_change = np.where(hostile, book.last_visit, book.last_visit * rng.random(pages))
    policy, world, budget = Shock(), Rewritten(book, hostile, rng), pages // 100
    seen = list(drive(policy, world, book, budget, seed=1))  # so that there is a memory to begin from
    whole = Outcomes(np.concatenate([some.pages for some in seen]), np.concatenate([some.what for some in seen]))
    note(policy, book, whole, np.full(len(whole), book.now))
    book.now += DAY
    chosen: Any = policy
    began, claiming = time.process_time(), 0.0
    if fair:
        found = claims(book, budget, policy)
        claiming = time.process_time() - began
        chosen = Budgeted(policy, Allowance(), reserved=found.reserved, hope=found.hope)
    visits = [some.pages for some in drive(chosen, world, book, budget, seed=2)]
    seconds = time.process_time() - began
    taken = np.concatenate(visits)
    return {
        "site_share": "auto" if fair else "1",
        "seconds": round(seconds, 2),
        "claims": round(claiming, 2),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "visits": len(taken),
        "hostile": round(float(hostile[taken].mean()), 3),
    }


def scale(asked: argparse.Namespace) -> None:
    for number in range(asked.seeds):
        for share in ("auto", "1") if number % 2 else ("1", "auto"):
            again = [sys.executable, "-m", "benchmarks.adversaries", "planned", "--pages", str(asked.pages)]
            again += ["--sites", str(asked.sites), *(["--without"] if share == "1" else [])]
            told(
                pages=asked.pages,
                sites=asked.sites,
                **json.loads(subprocess.run(again, check=True, capture_output=True).stdout),
            )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=("beside", "live", "honest", "scale", "planned"))
    ask.add_argument("archives", nargs="*", type=Path)
    ask.add_argument("--kind", action="append", choices=(*ADVERSARIES, *LIVE[1:]), help="repeatable; all by default")
    ask.add_argument("--policy", action="append", help="repeatable; all: every policy that can run; shock by default")
    ask.add_argument("--without", action="store_true", help="`beside`: measure also without shares")
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--days", type=int, default=60, help="cycles, one a day")
    ask.add_argument(
        "--budget", type=float, default=0.1, help="of `beside`: visits of a cycle, as a share of all pages"
    )
    ask.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS), help="of `honest`")
    ask.add_argument("--samples", type=int, default=0, help="of `honest`: so many samples; all sites together if 0")
    ask.add_argument("--sites", type=int, default=14, help="sites of a sample, or of `scale`")
    ask.add_argument("--pages", type=int, default=1_000_000, help="of `scale`")
    ask.add_argument("--change", default="text", help="what counts as change, as in `recrawl lab run`")
    ask.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recrawl" / "facts")
    asked = ask.parse_args()
    asked.policy = policies() if asked.policy == ["all"] else asked.policy
    if asked.what == "planned":
        told(**planned(asked.pages, asked.sites, fair=not asked.without))
        return
    {"beside": beside, "live": live, "honest": honest, "scale": scale}[asked.what](asked)


if __name__ == "__main__":
    main()
