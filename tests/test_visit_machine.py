"""The machine of visits: events in, actions out. No server, no store; `test_simulate` tries combinations."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.compare.validators import ValidatorTrust
from recrawl.crawl.options import CrawlOptions, SiteOptions
from recrawl.crawl.visits import machine as m
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.servers import Server
from recrawl.discover.redirect_habits import RedirectHabits
from recrawl.discover.scope import Scope, Scopes
from recrawl.fetch.lanes import Lanes
from recrawl.fetch.robots import Robots
from recrawl.model import Answer, Failure, Outcome, State, Unvisited
from recrawl.record.rows import PageRow, unvisited
from tests.visit_diagram import drawn
from tests.world import Repo, page

ORIGIN = "https://a.example"
NOW = 1_700_000_000.0


class Stand:
    """A machine with one server, driven by hand."""

    def __init__(self, *, robots: str | None = "", limit: int | None = None, **options: Any) -> None:
        values = {"delay": 2.0, "sitemaps": False, "feed_age": 0.0, **options}
        self.options = CrawlOptions(
            clock=lambda: NOW, timer=lambda: NOW, agent="test", scopes=Scopes([Scope(ORIGIN + "/")]), **values
        )
        ways = Lanes(delay=self.options.delay, patience=self.options.patience)
        self.machine = m.VisitMachine(self.options, ways, checks=True)
        age = self.options.robots_age
        rules = None if robots is None else Robots.from_answer(200, robots.encode(), NOW, agent="test", max_age=age)
        habits = RedirectHabits.load("")
        self.server = Server(0, ORIGIN, rules, ValidatorTrust(), habits, SiteOptions(limit=limit), 0, 0)
        self.tell(m.ServerNeeded(self.server))

    def tell(self, event: m.MachineEvent, now: float = NOW) -> list[Any]:
        return self.machine.handle(event, now, now)

    def turn(self, now: float = NOW) -> list[Any]:
        return self.tell(m.NextTurn(room=9, unparsed=0), now)

    def choose(self, *pages: int) -> None:
        self.tell(m.PagesChosen([(page, self.server, False) for page in pages], [0.5] * len(pages), 1))

    def row(self, page: int, now: float = NOW) -> list[Any]:
        return self.tell(m.RowRead(page, PageRow(f"{ORIGIN}/{page}", 0, 1, 0, unvisited(page))), now)

    def request(self, page: int = 7, now: float = NOW) -> m.PageVisit:
        """Choose a page and let it be requested."""
        self.choose(page)
        (look,) = self.turn(now)
        assert look == m.ReadRow(page, 0, explores=False)
        (sent,) = self.row(page, now)
        assert sent.request.url == f"{ORIGIN}/{page}"
        assert isinstance(sent.thing, m.PageVisit)
        return sent.thing

    def answer(
        self, visit: m.Thing, status: int = 200, now: float = NOW, body: bytes = b"<p>", **fields: str
    ) -> list[Any]:
        headers = [(name.replace("_", "-"), value) for name, value in fields.items()]
        url = visit.request_url if isinstance(visit, m.PageVisit) else ORIGIN + "/robots.txt"
        return self.tell(m.AnswerCame(visit, Answer.made(url, status, headers, body, at=now)), now)


def test_a_new_page_is_requested_parsed_and_recorded() -> None:
    stand = Stand()
    visit = stand.request()
    assert stand.answer(visit) == [m.ParseThing(visit)]
    reading, linked = Reading(0, digest=b"d"), np.zeros(0, np.int64)
    (record,) = stand.tell(m.ThingParsed(visit, reading, linked))
    assert record.finding.reading is reading
    assert stand.tell(m.VisitRecorded(visit, int(Outcome.NEW), 100, State.LIVE)) == []
    assert stand.machine.take_outcomes() == [(7, int(Outcome.NEW), 100)]
    assert stand.server.live == 1
    assert not stand.machine.busy
    assert [phase.name for _, _, phase in visit.steps] == ["WAITING", "ASKED", "PARSING", "RECORDING", "ENDED"]


def test_robots_txt_comes_first_and_forbids() -> None:
    stand = Stand(robots=None)
    stand.choose(7, 8)
    (sent,) = stand.turn()
    assert sent.request.url == f"{ORIGIN}/robots.txt"
    assert stand.turn(NOW + 1000) == [], "pages wait for robots.txt"
    (kept,) = stand.answer(sent.thing, 200, NOW + 1, body=b"User-agent: *\nDisallow: /7")
    assert isinstance(kept, m.ArchiveAnswer)
    assert stand.turn(NOW + 2) == [], "the pause counts from the answer"
    assert stand.turn(NOW + 3.5) == [m.ReadRow(7, 0, explores=False)]
    (record,) = stand.row(7, NOW + 3.5)
    assert record.finding == m.VisitFailed(Failure.ROBOTS, "")
    assert stand.turn(NOW + 3.5) == [m.ReadRow(8, 0, explores=False)], "what was not requested costs no pause"


def test_a_refused_page_is_tried_again_and_no_more_often_than_allowed() -> None:
    stand = Stand(retries=2)
    visit, now = stand.request(), NOW
    for _ in range(2):
        assert stand.answer(visit, 503, now) == []
        assert visit.phase is m.Phase.WAITING
        now += 1000
        (sent,) = stand.turn(now)
        assert sent.thing is visit
    (record,) = stand.answer(visit, 503, now)
    assert record.finding.failure is Failure.SERVER_ERROR


def test_a_server_that_asks_for_a_long_pause_gets_no_more_requests() -> None:
    """The pages that wait have an outcome; the one that was refused has failed, the others were held off."""
    stand = Stand(retries=1, patience=60.0)
    visit = stand.request()
    stand.choose(8)
    actions = {type(action): action for action in stand.answer(visit, 503, retry_after="600")}
    assert actions.keys() == {m.RecordVisit, m.ReadRow}
    refused = actions[m.RecordVisit]
    assert (refused.visit, refused.finding.failure) == (visit, Failure.SERVER_ERROR)
    (record,) = stand.row(8)
    assert record.finding.failure is Failure.HELD_OFF
    assert stand.server.held_until == NOW + 600


def test_the_bytes_of_a_site_end_its_visits_with_an_outcome() -> None:
    stand = Stand()
    stand.tell(m.BytesLimited(1e9, 50.0))
    visit = stand.request()
    stand.choose(8, 9)
    answer = Answer.made(visit.url, 404, at=NOW, received=51)
    actions = stand.tell(m.AnswerCame(visit, answer))
    assert [type(action) for action in actions] == [m.ArchiveAnswer, m.RecordVisit]
    assert stand.machine.take_outcomes() == [(8, int(Unvisited.HELD), 0), (9, int(Unvisited.HELD), 0)]


def files(stand: Stand, now: float) -> list[str]:
    """The paths that are requested, one turn after the other; each redirects to /hidden.xml."""
    asked, waiting = [], True
    while waiting:
        now += 1000
        for action in (it for it in stand.turn(now) if isinstance(it, m.SendRequest)):
            asked.append(action.request.url.removeprefix(ORIGIN))
            answer = Answer.made(action.request.url, 302, [("Location", "/hidden.xml")], at=now)
            stand.tell(m.AnswerCame(action.thing, answer), now)
        waiting = bool(len(stand.machine.lanes))
    return asked


def test_a_sitemap_that_redirects_to_what_robots_txt_forbids_is_not_followed() -> None:
    """One that robots.txt names is allowed by that."""
    rules = "User-agent: *\nDisallow: /hidden\nDisallow: /map\nSitemap: https://a.example/map.xml"
    stand = Stand(robots=rules, sitemaps=True, robots_age=1e9)
    assert files(stand, NOW) == ["/map.xml"]


def test_nothing_is_read_from_a_server_whose_robots_txt_cannot_be_read_any_more() -> None:
    stand = Stand(robots="", sitemaps=True, robots_age=500.0)
    (sent,) = stand.turn(NOW + 600)
    assert sent.request.url == f"{ORIGIN}/robots.txt", "it has expired"
    stand.answer(sent.thing, 503, NOW + 600)
    assert stand.turn(NOW + 700) == [m.RecordListing(stand.server, complete=False)], "the sitemap waits no more"
    assert not stand.machine.busy


def test_an_event_that_cannot_come_raises_with_the_story() -> None:
    stand = Stand()
    visit = stand.request()
    stand.answer(visit)
    with pytest.raises(m.ImpossibleTransition, match=r"AnswerCame when not ASKED(.|\n)*RowRead +-> ASKED"):
        stand.answer(visit)


def test_a_broken_invariant_is_found() -> None:
    stand = Stand()
    visit = stand.request()
    visit.retries = 99
    with pytest.raises(m.BrokenInvariant, match=r"too many retries(.|\n)*PageVisit 7"):
        stand.turn()


def test_servers_take_turns_with_the_browser() -> None:
    """However many pages of one server wait for it, those of another one wait for a page of each other server."""
    stand = Stand(delay=0.0)
    servers = {0: stand.server}
    for number, name in ((1, "b"), (2, "c")):
        origin, habits = f"https://{name}.example", RedirectHabits.load("")
        servers[number] = Server(number, origin, stand.server.robots, ValidatorTrust(), habits, SiteOptions(), 0, 0)
        stand.tell(m.ServerNeeded(servers[number]))
    for server in servers.values():
        server.render = "always"
    loads: list[m.PageVisit] = []

    def arrives(number: int, server: int) -> None:
        stand.tell(m.PagesChosen([(number, servers[server], False)], [0.5], 1))
        stand.turn()
        (sent,) = stand.tell(
            m.RowRead(number, PageRow(f"{servers[server].origin}/{number}", server, 1, 0, unvisited(number))), NOW
        )
        loads.extend(
            it.visit for it in stand.answer(sent.thing, content_type="text/html") if isinstance(it, m.RenderPage)
        )

    for number in range(6):
        arrives(number, 0)
    arrives(6, 1)
    arrives(7, 1)
    arrives(8, 2)
    assert stand.machine.rendering == 9
    for number in range(9):
        done = stand.tell(m.PageRendered(loads[number], None))
        loads += [it.visit for it in done if isinstance(it, m.RenderPage)]
    assert [visit.page for visit in loads] == [0, 1, 6, 8, 2, 7, 3, 4, 5]
    assert stand.machine.rendering == 0


def test_every_phase_has_a_way_out_and_can_be_reached() -> None:
    for kind, steps in m.TRANSITIONS.items():
        starts: set[Any] = {start for start, _ in steps}
        ends: set[Any] = {end for _, end in steps}
        leads: set[Any] = {m.Phase.ENDED}
        assert ends - starts == {m.Phase.ENDED}, kind
        assert starts - ends == {None}, kind
        reached: set[Any] = {None}
        more: set[Any]
        while more := {end for start, end in steps if start in reached} - reached:
            reached |= more
        assert reached == starts | ends, kind
        while more := {start for start, end in steps if end in leads} - leads:
            leads |= more
        assert leads == starts | ends, kind


def test_the_diagrams_of_the_docs_are_those_of_the_code() -> None:
    page = (Path(__file__).parent.parent / "docs/concepts/visits.md").read_text(encoding="utf-8")
    assert drawn(page) == page, "run `make docs`"


def test_a_plain_cycle_loads_nothing_of_clusters_databases_browsers_and_logins(repo: Repo, site: Any) -> None:
    """Two modules are loaded to ask whether the folder is a cluster, and whether the store is in PostgreSQL."""
    here = site({"/": page("Home", "/a"), "/a": page("A")})
    repo.crawl(here.url("/"))
    code = "import sys; from recrawl.cli import invoke; invoke(sys.argv[1:]); print('LOADED', *sys.modules)"
    words = ["-C", str(repo.folder), "cycle", "--budget", "2"]
    told = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded = told.stdout.partition("LOADED")[2].split()
    assert "recrawl.crawl.visits.machine" in loaded
    assert not {"psycopg", "obstore", "ray", "playwright", "scrapy"} & set(loaded)
    apart = ("recrawl.crawl.render", "recrawl.crawl.login", "recrawl.cluster.", "recrawl.record.store.postgres.")
    questions = ["recrawl.cluster.opening", "recrawl.record.store.postgres.target"]
    assert sorted(name for name in loaded if name.startswith(apart)) == questions


def test_the_machine_does_no_io_and_reads_no_clock() -> None:
    """It imports nothing that could; `lint-imports` checks packages, this the module."""
    tree = ast.parse(Path(m.__file__).read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    roots = {name.partition(".")[0] for name in names if name and not name.startswith("recrawl")}
    assert roots == {"__future__", "collections", "dataclasses", "enum", "math", "msgspec", "typing", "urllib"}
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not {call for call in calls if call.endswith((".clock", ".timer", "open"))}
