"""Page requisites: what is fetched besides pages, when, how often, and how it is recorded."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.model import RequisiteLevel
from recrawl.record import warc
from tests.crashes import judge
from tests.world import Asked, Page, Reply, Repo, Site, moved, page, text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def css(words: str, etag: str = "") -> Reply:
    return Reply(words.encode(), kind="text/css", etag=etag)


def png(body: bytes = PNG) -> Reply:
    return Reply(body, kind="image/png")


def styled(words: str, *links: str, head: str = "<link rel=stylesheet href=/s.css>", body: str = "") -> bytes:
    return page(words, *links).replace(b"<title>", head.encode() + b"<title>") + body.encode()


def records(repo: Repo, url: str) -> list[str]:
    """The kinds of the records of a URL: response, or the profile of a revisit."""
    kinds = []
    for path in sorted((repo.folder / "archive").iterdir()):
        with path.open("rb") as file:
            heads = [one.rec_headers for one in ArchiveIterator(file) if one.rec_type in ("response", "revisit")]
        kinds += [
            it.get_header("WARC-Profile") or "response" for it in heads if it.get_header("WARC-Target-URI") == url
        ]
    return kinds


def failures(repo: Repo) -> dict[str, str]:
    return {url.rpartition("/")[2]: why for url, why in repo.sql("SELECT url, failure FROM requisites WHERE failures")}


HOME = styled("Home", "/a", "/b", body="<img src=/i.png srcset='/j.png 2x'><script src=/x.js></script>")
SITE: dict[str, Page] = {
    "/": HOME,
    "/a": styled("A", body="<img src=/i.png>"),
    "/b": styled("B", head="<style>@import '/t.css';</style><link rel=icon href=/f.ico>"),
    "/s.css": css("@import 'u.css'; body { background: url(bg.png) }"),
    "/t.css": css("p { color: red }"),
    "/u.css": css("@font-face { font-family: F; src: url('/f.woff2') }"),
    "/bg.png": png(),
    "/i.png": png(PNG + b"i"),
    "/j.png": png(PNG + b"j"),
    "/x.js": Reply(b"1", kind="text/javascript"),
    "/f.ico": Reply(b"icon", kind="image/x-icon"),
    "/f.woff2": Reply(b"font", kind="font/woff2"),
}
SHEETS = {"/s.css", "/t.css", "/u.css"}
FILES = {"/bg.png", "/i.png", "/j.png", "/x.js", "/f.ico", "/f.woff2"}


@pytest.mark.parametrize(("level", "wanted"), [("none", set()), ("css", SHEETS), ("all", SHEETS | FILES)])
def test_each_level_fetches_its_requisites_once_and_after_the_pages(
    tmp_path: Path, level: str, wanted: set[str]
) -> None:
    repo = Repo.create(tmp_path / "repo", requisites=level)
    with Site(SITE) as site:
        repo.crawl(site.url("/"))
        asked = site.asked()
        assert Counter(asked) == Counter({"/", "/a", "/b"} | wanted)
        assert set(asked[:3]) == {"/", "/a", "/b"}
        for path in wanted:
            assert records(repo, site.url(path)) == ["response"]
    assert set(repo.pages()) == {site.url(path) for path in ("/", "/a", "/b")}
    assert repo.json("status")["pages"] == 3
    assert repo.found("red") == set()
    assert {row["url"] for row in repo.json("changes")} == set(repo.pages())
    judge(repo.folder)


def test_css_is_the_default_and_a_site_may_have_a_level_of_its_own(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(SITE) as one, Site(SITE) as two:
        repo.add(one.url("/"))
        repo.add(two.url("/"), "--requisites", "all")
        repo.crawl()
        assert set(one.asked()) == {"/", "/a", "/b"} | SHEETS
        assert set(two.asked()) == {"/", "/a", "/b"} | SHEETS | FILES


@pytest.mark.parametrize("words", [("config", "requisites", "images"), ("add", "a.example", "--requisites", "images")])
def test_an_unknown_level_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    repo = Repo.create(tmp_path / "repo")
    assert "'images'" in repo.run(*words, code=2).err


def test_a_requisite_is_requested_again_after_its_interval_alone_and_conditionally(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisite_hours=24)
    pages: dict[str, Page] = {"/": styled("Home"), "/s.css": css("p { color: red }", etag='"1"')}
    with Site(pages) as site:
        repo.crawl(site.url("/"))
        repo.later(hours=2)
        repo.cycle()
        assert len(site.requests("/s.css")) == 1
        repo.later(hours=25)
        repo.cycle()
        assert site.requests("/s.css")[1].headers["if-none-match"] == '"1"'
        site["/s.css"] = css("p { color: blue }", etag='"2"')
        repo.later(hours=25)
        repo.cycle()
        site["/s.css"] = css("p { color: blue }")
        repo.later(hours=25)
        repo.cycle()
        kinds = records(repo, site.url("/s.css"))
    assert kinds == ["response", warc.NOT_MODIFIED, "response", warc.IDENTICAL]
    assert repo.sql("SELECT count(*) FROM requisite_versions") == [(2,)]
    judge(repo.folder)


def test_a_requisite_that_no_page_uses_any_more_is_left_alone(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisite_hours=1)
    pages: dict[str, Page] = {"/": styled("Home"), "/s.css": css("p {}"), "/new.css": css("b {}")}
    with Site(pages) as site:
        repo.crawl(site.url("/"))
        site["/"] = styled("Home, sweet home", head="<link rel=stylesheet href=/new.css>")
        for _ in range(2):
            repo.later(hours=2)
            repo.cycle()
        assert len(site.requests("/s.css")) == 1
        assert len(site.requests("/new.css")) == 2


def test_equal_bytes_are_stored_once_whatever_their_url(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all")
    pages: dict[str, Page] = {"/": page("Home") + b"<img src=/a.png><img src=/b.png>", "/a.png": png(), "/b.png": png()}
    with Site(pages) as site:
        repo.crawl(site.url("/"))
        kinds = [records(repo, site.url(path)) for path in ("/a.png", "/b.png")]
    assert sorted(kinds) == [[warc.IDENTICAL], ["response"]]
    assert repo.sql("SELECT count(DISTINCT start), count(*) FROM requisite_versions") == [(1, 2)]
    judge(repo.folder)


def test_the_budget_limits_a_run_and_the_next_one_goes_on(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all", requisite_budget=4)
    images: dict[str, Page] = {f"/{number}.png": png(PNG + bytes([number])) for number in range(10)}
    with Site({"/": page("Home") + "".join(f"<img src={path}>" for path in images).encode(), **images}) as site:
        repo.crawl(site.url("/"))
        assert len(site.asked()) == 1 + 4
        for _ in range(2):
            repo.later(hours=2)
            repo.cycle(1)
        assert Counter(path for path in site.asked() if path != "/") == Counter(set(images))


def test_the_byte_limit_ends_a_run_of_requisites(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all", requisite_bytes="50kB")
    images: dict[str, Page] = {f"/{number}.png": png(bytes([number]) * 20_000) for number in range(10)}
    with Site({"/": page("Home") + "".join(f"<img src={path}>" for path in images).encode(), **images}) as site:
        repo.crawl(site.url("/"))
        assert len(site.asked()) == 1 + 3


def test_requisites_of_other_servers_obey_their_robots_txt_and_the_address_rules(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all")
    with Site() as site:
        there, elsewhere = site.url("", host="cdn.localhost"), site.url("", host="other.localhost")
        site["/"] = page("Home") + f"<img src={there}/in/a.png><img src={there}/out/b.png>".encode()
        site["/in/a.png"], site["/out/b.png"] = png(), png(PNG + b"b")
        site["/robots.txt"] = lambda asked: text("User-agent: *\nDisallow: /out/\n" if "cdn" in asked.host else "")
        repo.crawl(site.url("/"))
        assert site.asked() == ["/"]  # only the site itself was allowed to be private
        assert set(failures(repo).values()) == {"address-refused"}
        repo.later(days=2)
        repo.run("cycle", "--allow-private", "--budget", 9)
        assert [one.path for one in site.log if one.host.startswith("cdn.")] == ["/robots.txt", "/in/a.png"]
        assert failures(repo) == {"b.png": "robots-disallowed"}
        repo.later(hours=1)
        assert elsewhere not in str(repo.json("sites"))
    assert [row["url"] for row in repo.json("sites")] == [site.url("")]


def test_redirects_are_followed_and_recorded(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    pages: dict[str, Page] = {"/": styled("Home"), "/s.css": moved("/new.css"), "/new.css": css("@import '/loop.css';")}
    with Site({**pages, "/loop.css": moved("/loop.css")}) as site:
        repo.crawl(site.url("/"))
        assert site.asked() == ["/", "/s.css", "/new.css", "/loop.css"]
        assert records(repo, site.url("/s.css")) == ["response"]
    assert failures(repo) == {"loop.css": "redirect-bad"}


def test_a_chain_of_imports_ends(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site({"/": styled("Home")}) as site:
        site.every = lambda asked: css(f"@import '{asked.path}x';") if "css" in asked.path else None
        repo.crawl(site.url("/"))
        assert len(site.asked()) == 1 + 7


def test_what_is_no_requisite_is_not_kept(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all", max_bytes=1000)
    body = "<img src=/page><img src=/film.mp4><img src=/large.png><img src=/none.png><img src='data:image/png,x'>"
    replies: dict[str, Page] = {
        "/page": page("An error"),
        "/film.mp4": Reply(bytes(99), kind="video/mp4"),
        "/large.png": png(bytes(2000)),
    }
    with Site({"/": page("Home") + body.encode(), **replies}) as site:
        repo.crawl(site.url("/"))
    assert failures(repo) == {
        "page": "content-type", "film.mp4": "content-type", "large.png": "too-large", "none.png": "HTTP 404",
    }  # fmt: skip
    assert repo.sql("SELECT count(*) FROM requisite_versions") == [(0,)]


def test_a_stylesheet_that_is_hard_to_read_costs_only_itself(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", parse_seconds=60.0)
    hard = "a { b: url(c) }" * 100_000
    with Site({"/": styled("Home", "/a"), "/a": page("A"), "/s.css": css(hard)}) as site:
        assert repo.crawl(site.url("/"))["new"] == 2
        assert records(repo, site.url("/s.css")) == ["response"]


def test_stored_pages_get_their_requisites_when_the_level_rises(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="none")
    with Site(SITE) as site:
        site["/"] = Reply(HOME, etag='"1"')
        repo.crawl(site.url("/"))
        assert site.asked() == ["/", "/a", "/b"]
        for level, wanted in (("css", SHEETS), ("all", FILES)):
            site.forget()
            repo.config(requisites=level)
            repo.later(hours=2)
            repo.cycle()
            assert wanted <= set(site.asked()), level
    assert RequisiteLevel(repo.sql("SELECT min(level) FROM page_requisites")[0][0]) is RequisiteLevel.ALL
    judge(repo.folder)


def test_a_killed_crawl_goes_on_with_its_requisites(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", requisites="all", requisite_budget=99)
    reached, go = threading.Event(), threading.Event()
    images: dict[str, Page] = {f"/{number}.png": png(PNG + bytes([number])) for number in range(6)}

    def slow(_: Asked) -> Reply:
        reached.set()
        return Reply(b"late", kind="image/png", until=go)

    body = "".join(f"<img src={path}>" for path in ("/0.png", "/slow.png", *images))
    with Site({"/": styled("Home", body=body), "/s.css": css("p {}"), **images, "/slow.png": slow}) as site:
        repo.add(site.url("/"))
        process = repo.start("crawl")
        assert reached.wait(120)
        process.kill()
        repo.wait(process)
        go.set()
        repo.crawl()
        wanted = {"/", "/s.css", "/slow.png", *images}
        assert set(site.asked()) == wanted
        assert {path: records(repo, site.url(path)) for path in wanted} == {key: ["response"] for key in wanted}
    judge(repo.folder)
