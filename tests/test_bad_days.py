"""Bad days of sites: four days on which everything goes wrong in one way, then the site is as it was.

All kinds share one repository, each as a site of its own. After `HEALED` daily turns every page must be live again with
its current text, and nothing may have been taken for gone that only failed. The clock is put forward, not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pycurl
import pytest

from recrawl.fetch.http import Client
from recrawl.model import Answer, Failure
from recrawl.record.storage import Storage
from tests.world import Asked, Reply, Repo, Site, moved, page, sitemap, text

BAD_CYCLES = 10
BAD_HOURS = 9.5
HEALED = 8
"""Daily turns after which all pages are back."""
LEAVES = [f"/leaf{number}" for number in range(7)]
PATHS = ["/", *LEAVES]
FOREIGN = "foreign.localhost"

Bad = Callable[[Asked], Reply | None]


def body(kind: str, path: str, *, healed: bool) -> bytes:
    """The true page; the fourth leaf changes during the bad days."""
    if path == "/":
        return page(f"front of {kind}", *LEAVES, title=kind)
    return page(f"leaf {path[1:]} of {kind} {'mended' if healed and path == LEAVES[3] else 'usual'}", "/", title=path)


def always(reply: Reply) -> Bad:
    return lambda _: reply


def pages_only(reply: Reply) -> Bad:
    """Sitemaps are as ever."""
    return lambda asked: None if asked.path.endswith(".xml") else reply


def on(path: str, reply: Reply) -> Bad:
    return lambda asked: reply if asked.path == path else None


def to(where: str, status: int) -> Bad:
    """Everything but the target leads there."""
    return lambda asked: None if asked.path == where else moved(where, status)


def away(status: int) -> Bad:
    return lambda asked: moved(f"http://{FOREIGN}:{asked.headers['host'].rpartition(':')[2]}/", status)


def login(status: int) -> Bad:
    wall = Reply(page("Please log in", title="Login"))
    return lambda asked: wall if asked.path == "/login" else moved("/login", status)


def garbled(asked: Asked) -> Reply | None:
    """Text in an encoding that nobody names, one byte off."""
    right = body("garbled", asked.path, healed=False).decode()
    return Reply(right.encode("utf-16-le")[1:]) if asked.path in PATHS else None


def mixed(asked: Asked) -> Reply | None:
    """Each leaf in another way."""
    ways = [Reply(b"", 404), Reply(b"", 500), moved("/", 301), Reply(b""), Reply(b"", 403), moved("/leaf0", 302)]
    return ways[int(asked.path[-1]) % len(ways)] if asked.path in LEAVES else None


KINDS: dict[str, Bad] = {
    "404": always(Reply(page("Not here"), 404)),
    "404-empty": always(Reply(b"", 404)),
    "410": always(Reply(page("Gone"), 410)),
    "404-but-front": lambda asked: None if asked.path == "/" else Reply(b"", 404),
    "404-front": on("/", Reply(b"", 404)),
    "400": always(Reply(b"", 400)),
    "401": always(Reply(page("Who are you?"), 401)),
    "403": always(Reply(page("Forbidden"), 403)),
    "451": always(Reply(b"", 451)),
    "429": always(Reply(b"", 429)),
    "429-retry-after": always(Reply(b"", 429, {"Retry-After": "7200"})),
    "500": always(Reply(page("Oops"), 500)),
    "502": always(Reply(page("Bad gateway"), 502)),
    "503": always(Reply(page("Busy"), 503)),
    "503-retry-after": always(Reply(page("Busy"), 503, {"Retry-After": "7200"})),
    "503-one-page": on("/leaf0", Reply(b"", 503)),
    "204": always(Reply(b"", 204)),
    "304-unasked": always(Reply(b"", 304)),
    "301-to-front": to("/", 301),
    "308-to-front": to("/", 308),
    "302-to-front": to("/", 302),
    "301-to-one-leaf": to("/leaf0", 301),
    "301-to-foreign-host": away(301),
    "302-to-foreign-host": away(302),
    "301-to-login": login(301),
    "302-to-login": login(302),
    "302-to-itself": lambda asked: moved(asked.path, 302),
    "301-in-a-circle": lambda asked: moved("/leaf1" if asked.path != "/leaf1" else "/leaf2", 301),
    "301-without-location": always(Reply(b"", 301)),
    "timeout": always(Reply(wait=60)),
    "slow-drip": pages_only(Reply(page("slow"), pace=0.3)),
    "closes-at-once": always(Reply(cut=0)),
    "closes-in-the-head": always(Reply(b"", cut=10)),
    "truncated": always(Reply(b"x" * 999, cut=300)),
    "dns": always(Reply(b"", 500)),
    "tls": always(Reply(b"", 500)),
    "wrong-certificate": always(Reply(b"", 500)),
    "unreachable": always(Reply(b"", 500)),
    "refused": lambda _: None,
    "empty-body": always(Reply(b"")),
    "login-wall": always(Reply(page("Please log in", title="Login"))),
    "parked": always(Reply(page("This domain is for sale", "/ads", title="For sale"))),
    "maintenance": always(Reply(page("We will be back soon", title="Maintenance"))),
    "soft-404": lambda asked: None if asked.path == "/" else Reply(page("Sorry, this page does not exist")),
    "charset-garbage": garbled,
    "wrong-type": always(Reply(b"\x89PNG" * 99, kind="image/png")),
    "bad-encoding": always(Reply(b"no gzip", headers={"Content-Encoding": "gzip"})),
    "no-links": on("/", Reply(page("no links today"))),
    "mixed": mixed,
    "robots-disallow": lambda _: None,
    "robots-500": lambda _: None,
    "robots-429": lambda _: None,
    "robots-closes": lambda _: None,
    "sitemap-empty": on("/sitemap.xml", Reply(b"", kind="application/xml")),
    "sitemap-404": on("/sitemap.xml", Reply(b"", 404)),
    "sitemap-lists-nothing": on("/sitemap.xml", sitemap()),
    "sitemap-timeout": on("/sitemap.xml", Reply(wait=60)),
    "sitemap-503": on("/sitemap.xml", Reply(b"", 503, {"Retry-After": "3600"})),
}

ROBOTS: dict[str, Reply] = {
    "robots-disallow": text("User-agent: *\nDisallow: /\n"),
    "robots-500": Reply(b"", 500),
    "robots-429": Reply(b"", 429),
    "robots-closes": Reply(cut=0),
}

WIRE = {
    "dns": Failure.DNS,
    "tls": Failure.TLS,
    "wrong-certificate": Failure.TLS,
    "unreachable": Failure.CONNECT,
}
"""Kinds for which no loopback server can stand: the client's answer is replaced."""

GONE_IS_RIGHT = {kind for kind in KINDS if kind.startswith(("404", "410", "301", "308"))} | {"mixed"}
"""Kinds in which the server itself says that pages are not there any more."""


class Web:
    """All sites, one host name each, and one server of its own that can be down."""

    def __init__(self) -> None:
        self.bad = False
        self.healed = False
        self.site = Site()
        self.down = Site()
        self.site.every = self._answer
        self.site["/robots.txt"] = self._robots
        self.down.every = lambda asked: self._page("refused", asked)
        self.down["/robots.txt"] = text("")

    def url(self, kind: str, path: str = "/") -> str:
        return self.down.url(path) if kind == "refused" else self.site.url(path, f"{kind}.localhost")

    def kind_of(self, url: str) -> str:
        return "refused" if url.startswith(self.down.url("")) else url.partition("//")[2].partition(".")[0]

    def _robots(self, asked: Asked) -> Reply:
        kind = asked.host.partition(".")[0]
        return ROBOTS[kind] if self.bad and kind in ROBOTS else text("")

    def _answer(self, asked: Asked) -> Reply | None:
        kind = asked.host.partition(".")[0]
        if asked.host == FOREIGN:
            return Reply(page("somebody else's page", "/more"))
        instead = KINDS[kind](asked) if self.bad else None
        return instead or self._page(kind, asked)

    def _page(self, kind: str, asked: Asked) -> Reply:
        if asked.path == "/sitemap.xml" and kind.startswith("sitemap"):
            return sitemap(*(self.url(kind, path) for path in PATHS))
        if asked.path not in PATHS:
            return Reply(page("Not here"), 404)
        return Reply(body(kind, asked.path, healed=self.healed))

    def on_the_wire(self, client: Client, handle: pycurl.Curl, number: int, message: str) -> tuple[int, Answer]:
        """What the client makes of a request; while days are bad, some hosts cannot be reached."""
        ticket, answer = _END(client, handle, number, message)
        failure = WIRE.get(self.kind_of(answer.url)) if self.bad else None
        if failure is None:
            return ticket, answer
        return ticket, replace(answer, status=0, headers=(), body=b"", failure=failure, detail="as told", fields={})


_END = Client._end


@dataclass
class Story:
    """What became of all sites."""

    web: Web
    states: dict[str, str]
    bodies: dict[str, bytes]
    searchable: set[str]
    gone: set[str]
    """URLs that counted as gone or moved when the bad days were over."""
    shared: list[dict[str, object]]
    """The brakes at that time."""


PATIENT = {"timeout": 60, "connect_timeout": 60, "stall": 60}
"""While all servers are well, a page that answers late is a sign of a loaded machine."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("bad") / "repo"
    repo = Repo.create(folder, **PATIENT, patience=0.2, retries=1)
    web = Web()

    def end(client: Client, handle: pycurl.Curl, number: int, message: str) -> tuple[int, Answer]:
        return web.on_the_wire(client, handle, number, message)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Client, "_end", end))
        stack.enter_context(web.site)
        with web.down:
            repo.crawl(*(web.url(kind) for kind in KINDS))
        assert len(repo.sql("SELECT 1 FROM pages WHERE state = 1")) == len(KINDS) * len(PATHS)
        web.bad = True
        repo.config(**dict.fromkeys(PATIENT, 1))
        for _ in range(BAD_CYCLES):
            repo.later(hours=BAD_HOURS)
            repo.cycle(2000)
        repo.config(**PATIENT)
        gone = {url for url, state in repo.states().items() if state in ("gone", "moved")}
        shared = repo.json("status")["brakes"]
        web.bad, web.healed = False, True
        with web.down:
            for _ in range(HEALED):
                repo.later(days=1)
                repo.crawl()
                repo.cycle(2000)
        states = repo.states()
        yield Story(web, states, bodies(repo.folder), repo.found("leaf"), gone, shared)


def bodies(folder: Path) -> dict[str, bytes]:
    """The newest version of every page."""
    with Storage(folder) as storage:
        found = {}
        for number, url in storage.store.pages.visited():
            version = storage.store.versions.pick(number, None)
            assert version is not None
            found[url] = storage.body(version)[2]
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_after_bad_days_every_page_is_back(story: Story, kind: str) -> None:
    urls = {path: story.web.url(kind, path) for path in PATHS}
    assert {path: story.states[url] for path, url in urls.items()} == dict.fromkeys(PATHS, "live")
    assert {path: story.bodies[url] == body(kind, path, healed=True) for path, url in urls.items()} == dict.fromkeys(
        PATHS, True
    )
    assert {urls[path] for path in LEAVES} <= story.searchable


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in GONE_IS_RIGHT])
def test_bad_days_delete_nothing_that_only_fails(story: Story, kind: str) -> None:
    assert not [url for url in story.gone if story.web.kind_of(url) == kind]


@pytest.mark.parametrize("kind", ["404", "404-empty", "410", "301-to-front", "308-to-front", "301-to-foreign-host"])
def test_the_bad_days_were_long_enough_for_pages_to_count_as_gone(story: Story, kind: str) -> None:
    assert len([url for url in story.gone if story.web.kind_of(url) == kind]) >= len(LEAVES)


@pytest.mark.parametrize("kind", ["login-wall", "parked", "maintenance", "soft-404", "302-to-login", "empty-body"])
def test_a_site_with_one_text_is_braked(story: Story, kind: str) -> None:
    assert story.web.url(kind, "") in [brake["site"] for brake in story.shared]


def test_nothing_of_foreign_sites_is_kept(story: Story) -> None:
    assert {state for url, state in story.states.items() if FOREIGN in url} <= {"dropped"}
