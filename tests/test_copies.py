"""One page at many addresses is one page: from the crawl to changes, alerts, feeds, chunks, the budget and search."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from recrawl.repository.alerts.matching import match_visits
from recrawl.repository.repository import Repository
from recrawl.settings import Alert
from tests.world import Asked, Page, Reply, Repo, Site, moved, page

Start = Callable[..., Site]
WORDS = (
    "The harbour master counted eleven herons on the old pier this morning and wrote all of their names into a green "
    "book that nobody else may read before the winter is over"
)
OTHER = (
    "A committee of gardeners has decided that tulips are to be planted along the tramway in spring while roses must "
    "wait until somebody finds out who has hidden the shovels behind the library"
)


def article(words: str = WORDS, canonical: str = "/a", frame: str = "", title: str = "Herons") -> bytes:
    """A page that says which address is its own."""
    claim = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    menu = f"<nav>{frame}</nav>" if frame else ""
    parts = "".join(f"<p>{words} {number}</p>" for number in ("one", "two", "three", "four", "five", "six"))
    return f"<!doctype html><title>{title}</title>{claim}<body>{menu}<h1>{title}</h1>{parts}</body>".encode()


def three(words: str = WORDS) -> dict[str, Page]:
    """An article at three addresses, one of them without a menu."""
    return {
        "/": page("the front of a harbour", "/print/a", "/a/", "/a", "/b"),
        "/a": article(words, frame="Home News"),
        "/a/": article(words, frame="Home News"),
        "/print/a": article(words),
        "/b": article(OTHER, canonical="/b", title="Tulips"),
    }


@pytest.fixture
def crawled(repo: Repo, site: Start) -> tuple[Repo, Site]:
    """A repository with the three addresses."""
    here = site(three())
    repo.crawl(here.url("/"))
    return repo, here


def told(repo: Repo, here: Site) -> list[tuple[str, str]]:
    """The changes that are told, as (path, outcome)."""
    return sorted((row["url"].removeprefix(here.url("")), row["outcome"]) for row in repo.json("changes"))


def test_a_search_finds_one_page_with_its_other_addresses(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    (hit,) = repo.json("search", "herons")
    assert hit["url"] == here.url("/a")
    assert set(hit["also"]) == {here.url("/a/"), here.url("/print/a")}
    assert f"also at {here.url('/print/a')}" in repo.run("search", "herons").out
    assert repo.found("tulips") == {here.url("/b")}


def test_every_address_stays_a_page_with_versions(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    assert set(repo.states().values()) == {"live"}
    assert "eleven herons" in repo.run("show", here.url("/print/a")).out
    assert repo.run("check", "--truth").code == 0


def test_what_is_new_and_what_changes_is_told_once(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    assert told(repo, here) == [("/", "new"), ("/a", "new"), ("/b", "new")]
    here.pages.update(three(WORDS.replace("eleven", "twelve")))
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert {"/a/", "/print/a"} <= {*here.asked()}, "their page has changed"
    assert told(repo, here) == [("/", "new"), ("/a", "changed"), ("/a", "new"), ("/b", "new")]
    assert repo.found("twelve") == {here.url("/a")}
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert sorted(here.asked()) == ["/", "/a", "/b"]


def test_the_budget_visits_the_page_that_stands_for_the_others(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert sorted(here.asked()) == ["/", "/a", "/b"]
    here.forget()
    repo.later(days=40)
    repo.cycle(1000, "--policy", "round-robin")
    assert sorted(here.asked()) == ["/", "/a", "/a/", "/b", "/print/a"], "others are asked now and then"


def test_a_copy_that_differs_is_a_page_again(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    here["/print/a"] = article("Nobody reads the green book any more, said the baker " + OTHER[::-1])
    repo.later(days=40)
    repo.cycle(1000, "--policy", "round-robin")
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert repo.found("baker") == {here.url("/print/a")}
    assert ("/print/a", "changed") in told(repo, here)
    (hit,) = repo.json("search", '"eleven herons"')
    assert hit["also"] == [here.url("/a/")]
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert "/print/a" in here.asked()


def test_chunks_are_of_one_address(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    rows = [json.loads(line) for line in repo.run("chunks").out.splitlines()]
    assert {row["url"] for row in rows if "herons" in row["text"]} == {here.url("/a")}


def test_a_home_page_that_all_claim_is_not_believed(repo: Repo, site: Start) -> None:
    names = [f"/{word}" for word in ("ash", "birch", "cedar", "dogwood", "elm")]
    words = WORDS.split()[::-1]
    pages = {name: article(" ".join([name[1:]] * 3 + words[index:]), "/") for index, name in enumerate(names)}
    here = site({"/": article(OTHER, "/") + b"".join(f"<a href={name}>x</a>".encode() for name in names), **pages})
    repo.crawl(here.url("/"))
    for name in names:
        assert repo.found(name[1:]) == {here.url(name)}


def test_index_html_and_the_folder_are_one_page(repo: Repo, site: Start) -> None:
    front = article(canonical="") + b"<a href='/index.html'>home</a>"
    here = site({"/": front, "/index.html": front})
    repo.crawl(here.url("/"))
    (hit,) = repo.json("search", "herons")
    assert (hit["url"], hit["also"]) == (here.url("/"), [here.url("/index.html")])


def test_short_pages_with_the_same_text_stay_apart(repo: Repo, site: Start) -> None:
    here = site({"/": page("front", "/x", "/y"), "/x": page("same words"), "/y": page("same words")})
    repo.crawl(here.url("/"))
    assert repo.found('"same words"') == {here.url("/x"), here.url("/y")}


# -- pages that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [False, True])
def test_a_refresh_is_a_redirect(repo: Repo, site: Start, header: bool) -> None:
    tag = b"" if header else b'<meta http-equiv="refresh" content="0; url=/a">'
    old = Reply(b"<title>Moved</title>" + tag, headers={"Refresh": "0; url=/a"} if header else {})
    here = site({"/": page("front", "/old"), "/old": old, "/a": article()})
    repo.crawl(here.url("/"))
    states = repo.states()
    assert (states[here.url("/old")], states[here.url("/a")]) == ("moved", "live")
    assert repo.found("moved") == set()


def test_a_slow_refresh_is_a_page(repo: Repo, site: Start) -> None:
    slow = b'<title>Weather</title><meta http-equiv="refresh" content="30; url=/a">now sunny'
    here = site({"/": page("front", "/w"), "/w": slow, "/a": article()})
    repo.crawl(here.url("/"))
    assert set(repo.states().values()) == {"live"}


def test_refreshes_that_lead_back_end(repo: Repo, site: Start) -> None:
    def to(where: str) -> bytes:
        return f'<title>x</title><meta http-equiv="refresh" content="0; url={where}">'.encode()

    here = site({"/": page("front", "/x", "/z"), "/x": to("/y"), "/y": to("/x"), "/z": to("/z")})
    repo.crawl(here.url("/"))
    assert len(here.asked()) == 4
    assert repo.outcomes(here.url("/y")) == ["redirect-loop"]
    assert repo.states()[here.url("/z")] == "live", "it reloads itself"


@pytest.mark.parametrize(
    "title", ["Sorry, page not found", "404 - Seite nicht gefunden", "ページが見つかりません | 港"]
)
def test_a_page_that_says_it_is_not_there_is_missing(repo: Repo, site: Start, title: str) -> None:
    lost = f"<title>{title}</title><p>Try the search of our harbour".encode()
    here = site({"/": page("front", "/a", "/lost"), "/a": article(), "/lost": lost})
    repo.crawl(here.url("/"))
    assert repo.outcomes(here.url("/lost")) == ["not-found"]
    here["/a"] = lost
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert repo.states()[here.url("/a")] == "missing"
    assert repo.found("herons") == {here.url("/a")}, "what was live keeps its last good version"
    assert "eleven herons" in repo.run("show", here.url("/a")).out
    here["/a"] = article()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert repo.states()[here.url("/a")] == "live"
    assert told(repo, here) == [("/", "new"), ("/a", "new")]


# -- addresses that cannot exist ---------------------------------------------------------------------------------------


def soft(paths: set[str], text: str) -> Callable[[Asked], bytes | Reply | None]:
    """A server that answers 200 and this text, in which {path} is what was asked, for all but these paths."""

    def answer(asked: Asked) -> bytes | None:
        return None if asked.path in paths else f"<title>Harbour</title><p>{text.format(path=asked.path)}".encode()

    return answer


def absent_asked(here: Site) -> list[str]:
    """The random addresses that were asked for."""
    return [path for path in here.asked() if "/no-" in path]


@pytest.mark.parametrize("text", ["The ferry has left for other shores", "There is no ferry to {path} any more today"])
def test_what_a_site_shows_for_any_address_is_no_page(repo: Repo, site: Start, text: str) -> None:
    here = site(
        {"/": page("front", *"abcd", "fifth", "lost", "gone"), **{f"/{it}": page(f"pier {it}") for it in "abcd"}}
    )
    here["/lost"] = here["/gone"] = b"<p>The ferry has left for other shores"
    here["/fifth"] = page("pier five, which goes away later")
    repo.crawl(here.url("/"))
    assert absent_asked(here) == [], "nothing is asked before pages look alike"
    del here.pages["/lost"], here.pages["/gone"], here.pages["/fifth"]
    here.every = soft({*here.pages}, text)
    for days in (1, 2, 3):
        repo.later(days=days)
        repo.cycle(1000, "--policy", "round-robin")
    assert len(absent_asked(here)) == 1, "once a month is enough"
    states = repo.states()
    assert {path for path in ("/lost", "/gone", "/fifth") if states[here.url(path)] in ("missing", "gone")} == {
        *("/lost", "/gone", "/fifth")
    }
    assert all(states[here.url(f"/{it}")] == "live" for it in "abcd")
    assert "pier five" in repo.run("show", here.url("/fifth")).out
    assert "cannot exist" in repo.run("why", here.url("/fifth")).out


def test_equal_pages_of_a_site_that_answers_404_stay_pages(repo: Repo, site: Start) -> None:
    here = site({"/": page("front", *"abcde"), **{f"/{it}": page(f"pier {it}") for it in "abc"}})
    here["/d"] = here["/e"] = page("a pier that looks like another")
    repo.crawl(here.url("/"))
    for days in (1, 2):
        repo.later(days=days)
        repo.cycle(1000, "--policy", "round-robin")
    assert len(absent_asked(here)) == 1
    assert set(repo.states().values()) == {"live"}


def test_pages_that_lead_where_any_address_leads_are_missing(repo: Repo, site: Start) -> None:
    here = site({"/": page("front", *"abcdefgh"), **{f"/{it}": page(f"pier {it}") for it in "abcdefgh"}})
    repo.crawl(here.url("/"))
    home = moved("/", 302)
    del here.pages["/d"], here.pages["/e"]
    here.every = lambda asked: None if asked.path in here.pages else home
    for days in (1, 2, 3):
        repo.later(days=days)
        repo.cycle(1000, "--policy", "round-robin")
    states = repo.states()
    assert {states[here.url("/d")], states[here.url("/e")]} <= {"missing", "gone"}
    assert {states[here.url(path)] for path in ("/", "/a", "/b", "/c")} == {"live"}
    assert "cannot exist" in repo.run("why", here.url("/d")).out


# -- what is learned -------------------------------------------------------------------------------------------------


def shop(values: range) -> dict[str, Page]:
    """Two pages with a parameter that changes nothing, and one that does."""
    links = [f"/{name}?from={value}" for name in "xy" for value in values]
    pages: dict[str, Page] = {"/": page("a front", "/x", "/y", "/z?n=1", "/z?n=2", *links)}
    for name, words in (("x", WORDS), ("y", OTHER)):
        pages |= {path: article(words, canonical="") for path in [f"/{name}", *links] if path.startswith(f"/{name}")}
    return pages | {f"/z?n={n}": article(WORDS.replace("eleven", f"{n} more") * n, canonical="") for n in (1, 2)}


def test_a_parameter_that_never_changes_a_page_is_left_out_of_new_urls(repo: Repo, site: Start) -> None:
    here = site(shop(range(3)))
    repo.crawl(here.url("/"))
    (learned,) = repo.json("noise", "--copies")["parameters"]
    assert (learned["name"], learned["copies"]) == ("from", 6)
    here.pages.update(shop(range(6)))
    for kept, asked in (("", []), ("from", ["/x?from=5", "/y?from=5"])):
        here.forget()
        repo.run("config", "keep_parameters", kept)
        repo.later(days=1)
        repo.cycle(1000, "--policy", "round-robin")
        if kept:
            here["/"] = page("an other front", *(f"/{name}?from=5" for name in "xy"))
            repo.later(days=1)
            repo.cycle(1000, "--policy", "round-robin")
        repo.crawl()
        assert [path for path in here.asked() if path.endswith("=5")] == asked


def test_noise_lists_copies_and_whose_word_is_believed(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    found = repo.json("noise", "--copies")
    assert found["groups"] == [{"url": here.url("/a"), "also": [here.url("/a/"), here.url("/print/a")]}]
    assert found["claims"] == [{"site": here.url(""), "right": 2, "wrong": 0, "believed": True}]
    assert f"also at {here.url('/print/a')}" in repo.run("noise", "--copies").out


def test_why_says_which_page_stands_for_a_copy(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    assert f"It is a copy of {here.url('/a')}" in repo.run("why", here.url("/print/a")).out
    assert "It stands for 2 other URLs" in repo.run("why", here.url("/a")).out


# -- repositories of earlier versions, mirrors, alerts ---------------------------------------------------------------


def test_a_repository_of_an_earlier_version_learns_its_copies_and_tells_nothing(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    with contextlib.closing(sqlite3.connect(repo.folder / "recrawl.db")) as db, db:
        db.execute("UPDATE pages SET sketch = NULL, claim = 0, same_as = NULL")
        db.execute("UPDATE visits SET copy = 0")
    assert len(told(repo, here)) == 5
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert len(told(repo, here)) == 5, "what was told stays told"
    (hit,) = repo.json("search", "herons")
    assert hit["url"] == here.url("/a")
    assert len(hit["also"]) == 2
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert sorted(here.asked()) == ["/", "/a", "/b"]


def test_a_host_with_and_without_www_is_one(repo: Repo, site: Start) -> None:
    here = site({"/": article(canonical="")})
    repo.crawl(here.url("/", "www.localhost"), here.url("/", "localhost"))
    (hit,) = repo.json("search", "herons")
    assert (hit["url"], hit["also"]) == (here.url("/", "localhost"), [here.url("/", "www.localhost")])
    here.forget()
    repo.later(days=1)
    repo.cycle(1000, "--policy", "round-robin")
    assert here.asked() == ["/"]


def test_an_alert_is_of_one_address(crawled: tuple[Repo, Site]) -> None:
    repo, here = crawled
    with Repository(repo.folder, clock=repo.now) as opened:
        rule = Alert("all", "feed")
        found, _ = match_visits(opened, (rule,), repo.now())
    paths = sorted(body["url"].removeprefix(here.url("")) for body in found)
    assert len(paths) == 3
    assert sum("a" in path for path in paths) == 1


def test_a_changes_feed_and_a_sink_have_one_address(crawled: tuple[Repo, Site], tmp_path: Path) -> None:
    repo, _here = crawled
    repo.run("sink", "add", "files", "markdown", tmp_path / "out")
    repo.run("sink", "run", "files")
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*.md")]
    assert sum("eleven herons" in text for text in texts) == 1
