"""What the headers of an answer mean: robots directives, refreshes, false encodings; why a server is unreachable."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from recrawl.fetch.http import parse_head
from recrawl.model import Failure
from tests.world import Asked, Reply, Repo, Site, moved, page, text

Start = Callable[..., Site]
ZSTD = b"\x28\xb5\x2f\xfd\x04\x58\x19\x00\x00hey\x00\x01\x02\x03"


# -- X-Robots-Tag ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "indexed", "followed"),
    [
        ("noindex", False, True),
        ("nofollow", True, False),
        ("NoIndex, NoFollow", False, False),
        ("none", False, False),
        ("all", True, True),
        ("recrawl: noindex", False, True),
        ("otherbot: noindex", True, True),
        ("otherbot: noindex, nofollow", True, True),
        ("unavailable_after: Sat, 25 Jun 2010 15:00:00 GMT", True, True),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", False, True),
        ("max-snippet: 20, max-image-preview:large", True, True),
    ],
)
def test_x_robots_tag_is_obeyed_like_the_meta_tag(
    repo: Repo, site: Start, tag: str, indexed: bool, followed: bool
) -> None:
    here = site({"/": Reply(page("walrus", "/more"), headers={"X-Robots-Tag": tag}), "/more": page("narwhal")})
    repo.crawl(here.url("/"))
    assert (here.url("/") in repo.found("walrus")) == indexed
    assert ("/more" in here.asked()) == followed


def test_x_robots_tag_counts_for_plain_text_too(repo: Repo, site: Start) -> None:
    headers = {"X-Robots-Tag": "noindex"}
    here = site({"/": page("root", "/a", "/b"), "/a": Reply(b"walrus", kind="text/plain", headers=headers)})
    here["/b"] = Reply(b"walrus", kind="text/plain")
    repo.crawl(here.url("/"))
    assert repo.found("walrus") == {here.url("/b")}


def test_a_page_that_becomes_noindex_by_its_header_leaves_the_search(repo: Repo, site: Start) -> None:
    here = site({"/": page("walrus")})
    repo.crawl(here.url("/"))
    assert repo.found("walrus")
    here["/"] = Reply(page("walrus"), headers={"X-Robots-Tag": "noindex"})
    for _ in range(2):
        repo.later(hours=2)
        repo.cycle()
    assert repo.outcomes(here.url("/")) == ["new", "unchanged", "unchanged"]
    assert repo.found("walrus") == set()
    assert len(repo.json("log", here.url("/"))) == 2, "one version more for the header, not one for each visit"


def test_a_304_with_the_header_hides_the_page_too(repo: Repo, site: Start) -> None:
    here = site({"/": Reply(page("walrus"), etag='"1"')})
    repo.crawl(here.url("/"))
    here["/"] = Reply(page("walrus"), etag='"1"', headers={"X-Robots-Tag": "noindex"})
    for _ in range(3):
        repo.later(hours=2)
        repo.cycle()
    assert repo.found("walrus") == set()
    assert repo.outcomes(here.url("/")) == ["new", "unchanged", "unchanged", "unchanged"]
    assert len(here.requests("/")) == 5, "one request more, once"


# -- Refresh --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0; url=/next", "5;URL='/next'", "0, /next", '1; url="/next"'])
def test_the_refresh_header_is_a_link_like_the_meta_tag(repo: Repo, site: Start, value: str) -> None:
    here = site({"/": Reply(page("root"), headers={"Refresh": value}), "/next": page("walrus")})
    repo.crawl(here.url("/"))
    assert repo.found("walrus") == {here.url("/next")}


def test_the_refresh_header_of_plain_text(repo: Repo, site: Start) -> None:
    here = site({"/": Reply(b"root", headers={"Refresh": "0; url=/next"}, kind="text/plain"), "/next": page("walrus")})
    repo.crawl(here.url("/"))
    assert repo.found("walrus") == {here.url("/next")}


# -- the status line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [b"2000", b"2", b"9" * 5000, b"-20", b"abc", b""])
def test_a_status_that_has_not_three_digits_is_none(status: bytes) -> None:
    assert parse_head([b"HTTP/1.1 " + status + b" OK\r\n", b"A: b\r\n"]) == (0, (("A", "b"),), {"a": "b"})


# -- Content-Encoding -----------------------------------------------------------------------------------


def _labelled(label: str) -> Callable[[Asked], Reply]:
    return lambda _: Reply(page("walrus"), headers={"Content-Encoding": label})


@pytest.mark.parametrize("label", ["gzip", "br", "deflate", "klingon", "utf-8"])
def test_a_plain_body_with_a_false_label_is_read(repo: Repo, site: Start, label: str) -> None:
    here = site({"/": _labelled(label)})
    repo.crawl(here.url("/"))
    assert repo.found("walrus") == {here.url("/")}
    assert here.requests("/")[-1].headers["accept-encoding"] == "identity"
    assert "walrus" in repo.run("show", here.url("/")).out


def test_a_robots_txt_with_a_false_label_is_read(repo: Repo, site: Start) -> None:
    label = {"Content-Encoding": "gzip"}
    rules = Reply(b"User-agent: *\nDisallow: /b\n", kind="text/plain", headers=label)
    listing = "<urlset><url><loc>{}</loc></url></urlset>"
    here = site(
        {"/": page("root", "/a", "/b"), "/a": page("a"), "/b": page("b"), "/robots.txt": rules, "/c": page("c")}
    )
    here["/sitemap.xml"] = Reply(listing.format(here.url("/c")).encode(), kind="application/xml", headers=label)
    repo.crawl(here.url("/"))
    assert sorted(here.asked()) == ["/", "/a", "/c"]


def test_a_server_that_sends_zstd_unasked_is_asked_for_plain_text(repo: Repo, site: Start) -> None:
    def zealous(asked: Asked) -> Reply:
        if asked.headers.get("accept-encoding") == "identity":
            return Reply(page("walrus"))
        return Reply(ZSTD, headers={"Content-Encoding": "zstd"})

    here = site({"/": zealous})
    repo.crawl(here.url("/"))
    assert repo.found("walrus") == {here.url("/")}


@pytest.mark.parametrize("label", ["zstd", "gzip"])
def test_zstd_all_the_same_fails_with_a_clear_cause(repo: Repo, site: Start, label: str) -> None:
    here = site({"/": Reply(ZSTD, headers={"Content-Encoding": label})})
    repo.crawl(here.url("/"))
    (visit,) = repo.visits(here.url("/"))
    assert visit["failure"] == Failure.BAD_ENCODING
    assert visit["detail"] == f"the body is zstd, labelled '{label}'; only gzip, deflate and br can be decoded"
    assert len(here.requests("/")) == 2


def test_a_broken_gzip_stream_is_no_page(repo: Repo, site: Start) -> None:
    packed = bytearray(gzip.compress(page("walrus" * 99)))
    packed[20] ^= 0xFF
    here = site({"/": Reply(bytes(packed), headers={"Content-Encoding": "gzip"})})
    repo.crawl(here.url("/"))
    assert repo.outcomes(here.url("/")) == [Failure.BAD_ENCODING]
    assert "gzip" in repo.visits(here.url("/"))[0]["detail"]


# -- servers that cannot be reached ----------------------------------------------------------------------


@pytest.fixture
def plain() -> Iterator[socket.socket]:
    """A port that speaks no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as client:
                        client.recv(1000)
                        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("kind", "word", "detail"),
    [
        ("dns", Failure.UNREACHABLE_DNS, "resolve"),
        ("tls", Failure.UNREACHABLE_TLS, "TLS"),
        ("refused", Failure.UNREACHABLE_CONNECT, "onnect"),
        ("timeout", Failure.UNREACHABLE_TIMEOUT, "timed out"),
    ],
)
def test_the_cause_is_named_everywhere(
    repo: Repo, site: Start, plain: socket.socket, kind: str, word: Failure, detail: str
) -> None:
    silent = site({"/robots.txt": Reply(b"", wait=30)})
    if kind == "timeout":
        repo.config(timeout=1, stall=1)
    url = {
        "dns": "http://no-such-host.invalid/",
        "tls": f"https://127.0.0.1:{plain.getsockname()[1]}/",
        "refused": f"http://127.0.0.1:{_closed_port()}/",
        "timeout": silent.url("/"),
    }[kind]
    assert repo.crawl(url)["failures"] == {word: 1}
    (visit,) = repo.visits(url)
    assert visit["failure"] == word
    assert detail in visit["detail"]
    assert word in repo.run("log", url, "--visits").out
    assert detail in repo.run("log", url, "--visits").out
    assert f"{word} (robots.txt: " in repo.run("why", url).out
    assert repo.crawl()["failures"] == {word: 1}, "the cause outlives the run"
    assert silent.asked() == [], "nothing is requested from a server without robots.txt"


def test_a_robots_txt_with_a_server_error_is_named_too(repo: Repo, site: Start) -> None:
    here = site({"/": page("root"), "/robots.txt": Reply(b"", 503)})
    repo.crawl(here.url("/"))
    (visit,) = repo.visits(here.url("/"))
    assert (visit["failure"], visit["detail"]) == (Failure.ROBOTS_UNREACHABLE, "robots.txt: HTTP 503")


def test_an_unreachable_server_costs_its_pages_no_failure_and_no_budget(repo: Repo, site: Start) -> None:
    with Site({"/": page("root", "/a"), "/a": page("a")}) as here:
        repo.crawl(here.url("/"))
    repo.later(days=2)
    assert repo.cycle()["failures"] == {Failure.UNREACHABLE_CONNECT: 2}
    assert repo.sql("SELECT max(failures) FROM pages") == [(0,)]


# -- redirects to other sites that are kept -------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_kept_site_is_followed_there(repo: Repo, site: Start, status: int) -> None:
    other = site({"/": page("other root"), "/target": page("walrus")})
    here = site({"/": page("root", "/away"), "/away": moved(other.url("/target"), status)})
    repo.add(other.url("/"))
    repo.crawl(here.url("/"))
    states = repo.states()
    assert states[here.url("/away")] == "moved"
    assert states[other.url("/target")] == "live"
    assert repo.found("walrus") == {other.url("/target")}
    assert other.log[0].path == "/robots.txt"


def test_a_kept_page_that_redirects_for_a_while_to_another_kept_site_stays(repo: Repo, site: Start) -> None:
    other = site({"/": page("other root"), "/target": page("narwhal")})
    here = site({"/": page("root", "/a"), "/a": page("walrus")})
    repo.add(other.url("/"))
    repo.crawl(here.url("/"))
    here["/a"] = moved(other.url("/target"), 302)
    for _ in range(3):
        repo.later(days=1)
        repo.cycle()
    assert repo.states()[here.url("/a")] == "live"
    assert repo.outcomes(here.url("/a"))[1:] == [Failure.REDIRECT_AWAY] * 3
    repo.crawl()
    assert repo.found("narwhal") == {other.url("/target")}


def test_two_kept_sites_that_redirect_to_each_other_end(repo: Repo, site: Start) -> None:
    one, two = site(), site()
    one["/"], two["/"] = moved(two.url("/"), 302), moved(one.url("/"), 302)
    repo.crawl(one.url("/"), two.url("/"))
    assert len(one.asked()) + len(two.asked()) <= 4
    assert Failure.REDIRECT_LOOP in repo.outcomes(one.url("/")) + repo.outcomes(two.url("/"))


def test_a_redirect_between_kept_sites_obeys_the_robots_txt_of_the_other(repo: Repo, site: Start) -> None:
    other = site(
        {"/": page("other root"), "/target": page("walrus"), "/robots.txt": text("User-agent: *\nDisallow: /t")}
    )
    here = site({"/": page("root", "/away"), "/away": moved(other.url("/target"), 302)})
    repo.add(other.url("/"))
    repo.crawl(here.url("/"))
    assert "/target" not in other.asked()
    assert repo.outcomes(other.url("/target")) == [Failure.ROBOTS]
