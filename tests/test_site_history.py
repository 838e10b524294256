"""The whole crawler on whole histories of sites: what it records as changed is what changed, no more and no less.

A web is served as it was at one time, crawled, moved on to another time, refreshed. What must come of it is computed
here from the bodies that the server gives, without any of the crawler's own code.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from recrawl.compare.parsing.document import parse
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.model import Outcome, State
from tests.crashes import Bench, ask, judge

_DATA = Path(__file__).parents[1].parent / "shared" / "data" / "sites"
_SITES = ("apache__daffodil-site", "sympy__sympy.github.com", "httpwg__httpwg.github.io")
_REFRESH = re.compile(rb'<meta http-equiv="refresh" content="0;')


def text_of(body: bytes) -> str:
    """The words of a page that people see."""
    try:
        page = body.decode()
    except UnicodeDecodeError:
        page = body.decode("windows-1252", "replace")
    tree = parse(page)
    tree.remove("script,style,noscript,template")
    root = tree.find("body") or tree.find("frameset")
    return " ".join(" ".join(root.strings).split()) if root is not None else ""


class History:
    """A repository that follows a web, and what it should have seen."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.texts: dict[str, str] = {}
        """The text of each page when it was last downloaded, as it should be."""
        self.away: set[str] = set()
        """Pages that sent browsers on when they were first seen."""
        self.waiting: set[str] = set()
        """Copies that the last cycle did not visit."""
        self.total: Counter[str] = Counter()

    def begin(self, at: float) -> None:
        """Crawl for the first time."""
        self.bench.clock.set(at)
        summary = self.bench.crawl(self.folder)
        for url, what in self.seen(summary.cycle.id).items():  # links that lead nowhere are part of real sites
            assert (what is Outcome.NEW) == (self.served(url, at)[0] == 200), url
        self._take_new(at)

    def refresh(self, at: float) -> None:
        """Move the web on, visit every page, and judge what came of it; then crawl for what is new."""
        before, copies = self.states(), self.copies()
        self.bench.clock.set(at)
        cycle = self.bench.cycle(self.folder).cycle.id
        seen = self.seen(cycle)
        live = {url for url, state in before.items() if state is State.LIVE}
        assert live <= set(seen) | self.braked(cycle) | self.copies() | copies
        self.waiting = (copies & live) - set(seen)
        visitable = {State.LIVE, State.MISSING, State.GONE, State.MOVED}  # what is not there is checked ever less often
        assert {before[url] for url in seen if url not in self.away} <= visitable
        expected = {url: self._expected(url, at, before[url]) for url in seen}
        assert {url: what.name for url, what in seen.items() if what.name not in expected[url]} == {}
        after = self.states()
        for url, what in seen.items():
            self.total[what.name] += 1
            if what in (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED):
                assert after[url] is State.LIVE
            elif url in self.away:
                assert after[url] in (State.FOUND, State.MISSING, State.GONE, State.MOVED)
            else:
                assert after[url] in (State.MISSING, State.GONE, State.MOVED)
        self.bench.clock.set(at + 0.25)  # no answer comes twice at one time
        self.bench.crawl(self.folder)
        self._take_new(at)
        judge(self.folder)

    def _expected(self, url: str, at: float, before: State) -> tuple[str, ...]:
        status, body = self.served(url, at)
        if status == 200 and before in (State.GONE, State.MOVED):
            self.texts[url] = text_of(body)
            return ("NEW", "CHANGED")  # it is back
        if status == 404:
            return ("GONE", "FAILED")
        if status == 301:
            return ("FAILED", "GONE")
        assert status == 200
        if url not in self.texts:
            return ("NEW",)
        text = text_of(body)
        changed = text != self.texts[url]
        self.texts[url] = text
        return ("CHANGED",) if changed else ("UNCHANGED",)

    def _take_new(self, at: float) -> None:
        """Every page that is there is known and live, or gone in our eyes and about to be looked at again."""
        states = self.states()
        archive = self.bench.archive
        for page in archive.pages_at(at).tolist():
            url = self.bench.server.url_of(archive.urls[page])
            if url in self.waiting:
                assert states[url] is State.LIVE
            elif self.served(url, at)[0] != 200:
                assert states[url] in (State.FOUND, State.MISSING, State.GONE, State.MOVED), url
            elif url not in self.texts:
                assert states[url] is State.LIVE, url
                self.total["born"] += 1
            else:
                assert states[url] in (State.LIVE, State.MISSING), url
        for url, state in states.items():
            status, body = self.served(url, at)
            if state is State.LIVE and url not in self.waiting:
                assert status == 200
                self.texts.setdefault(url, text_of(body))
            elif state is State.FOUND:
                assert status == 301, url
                self.away.add(url)

    def served(self, url: str, at: float) -> tuple[int, bytes]:
        """Status and body that the server gives; a page that sends browsers on at once is a redirect.

        The page that a site shows for missing ones says so, whatever its status is.
        """
        status, body = self.bench.served(url, at)
        if url.endswith("/404.html"):
            return 404, body
        return (301 if status == 200 and _REFRESH.search(body) else status), body

    def states(self) -> dict[str, State]:
        return {url: State(state) for url, state in ask(self.folder, "SELECT url, state FROM pages")}

    def braked(self, cycle: int) -> set[str]:
        sql = "SELECT p.url FROM visits v JOIN pages p ON p.id = v.page WHERE v.cycle = ? AND v.failure = 'shared-text'"
        return {url for (url,) in ask(self.folder, sql, cycle)}

    def copies(self) -> set[str]:
        """Pages that show what another one does: they are visited when that changes, or after a month."""
        return {url for (url,) in ask(self.folder, "SELECT url FROM pages WHERE same_as != 0")}

    def seen(self, cycle: int) -> dict[str, Outcome]:
        """The outcomes of a cycle, but for pages that suddenly share one text: those keep what they had."""
        sql = """SELECT p.url, v.outcome FROM visits v JOIN pages p ON p.id = v.page
                 WHERE v.cycle = ? AND ifnull(v.failure, '') != 'shared-text'"""
        return {url: Outcome(outcome) for url, outcome in ask(self.folder, sql, cycle)}


def follow(archive: Archive, folder: Path, steps: int) -> Counter[str]:
    """Take a repository through an archive, at times between which equally much happens."""
    moments = np.unique(np.quantile(archive.times[archive.times > archive.start], np.linspace(0, 1, steps)))
    with Bench(archive) as bench:
        history = History(bench, bench.create(folder, sitemap_hours=0.0))
        history.begin(archive.start + 0.5)
        for moment in moments.tolist():
            history.refresh(moment + 0.5)
    return history.total


def test_a_generated_world_is_followed_exactly(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    world = SyntheticWorld(
        seed=11,
        sites=2,
        pages=50,
        days=30,
        size_min=1000,
        size_max=5000,
        links=12,
        change_rate=0.2,
        births=0.02,
        removals=0.01,
        noise=0.1,
    )
    write(world, path)
    total = follow(Archive.open([path]), tmp_path / "repo", steps=6)
    assert min(total["CHANGED"], total["UNCHANGED"]) > 50
    assert min(total["GONE"], total["born"]) > 5


@pytest.mark.parametrize("name", _SITES)
def test_a_real_site_is_followed_exactly(tmp_path: Path, name: str) -> None:
    path = _DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"shared/data has no {path.name}")
    total = follow(Archive.open([path]), tmp_path / "repo", steps=5)
    assert min(total["CHANGED"], total["UNCHANGED"]) > 10
