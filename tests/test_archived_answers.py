"""What the archive holds besides versions: redirects as they happened, 404s, 410s, robots.txt; and that pywb agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from recrawl.record.warc import IDENTICAL
from tests.test_replay_pywb import _manage, _replay, python  # noqa: F401
from tests.world import Reply, Repo, Site, moved, page, text


class Record(NamedTuple):
    """A response or revisit."""

    kind: str
    path: str
    status: int
    body: bytes
    fields: dict[str, str]


def archived(repo: Repo, web: Site) -> list[Record]:
    """The responses and revisits in the archive, in order, with their digests checked."""
    found = []
    for path in sorted((repo.folder / "archive").iterdir()):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                body = record.content_stream().read()
                fields = dict(record.rec_headers.headers)
                if record.rec_type in ("response", "revisit"):
                    where = fields["WARC-Target-URI"].removeprefix(web.url("/")[:-1])
                    status = int(record.http_headers.get_statuscode()) if record.http_headers else 0
                    found.append(Record(record.rec_type, where, status, body, fields))
    return found


def of(records: list[Record], path: str) -> list[tuple[str, int]]:
    return [(record.kind, record.status) for record in records if record.path == path]


def clean(repo: Repo) -> None:
    assert repo.json("check")["problems"] == []
    for path in (repo.folder / "archive").iterdir():
        checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=False))
        checker.process_all()
        assert checker.exit_value == 0


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_redirect_and_its_target_are_records_of_their_own(repo: Repo, site: Callable[..., Site], status: int) -> None:
    target = page("the target")
    web = site({"/": page("front", "/a"), "/a": moved("/b", status), "/b": moved("/c?x=1", status), "/c?x=1": target})
    repo.crawl(web.url())
    records = archived(repo, web)
    assert of(records, "/a") == [("response", status)]
    assert of(records, "/b") == [("response", status)]
    assert of(records, "/c?x=1") == [("response", 200)]
    assert next(one.body for one in records if one.path == "/c?x=1") == target
    assert "the target" in repo.run("show", web.url("/a")).out
    clean(repo)


def test_a_revisit_after_redirects_refers_to_the_record_that_is_there(repo: Repo, site: Callable[..., Site]) -> None:
    target = page("the target")
    web = site({"/": page("front", "/a"), "/a": moved("/b", 302), "/b": target, "/c": target})
    repo.crawl(web.url())
    repo.later(days=1)
    repo.cycle()
    web["/a"] = moved("/c", 302)  # the same bytes, elsewhere
    repo.later(days=1)
    repo.cycle()
    web["/a"] = target  # and without a redirect
    repo.later(days=1)
    repo.cycle()
    records = archived(repo, web)
    assert repo.outcomes(web.url("/a")) == ["new", "unchanged", "unchanged", "unchanged"]
    assert of(records, "/b") == [("response", 200), ("revisit", 200)]
    assert of(records, "/c") == [("revisit", 200)]
    assert of(records, "/a") == [("response", 302)] * 3 + [("revisit", 200)]
    original = next(one for one in records if one.path == "/b")
    for again in (one for one in records if one.kind == "revisit" and one.path != "/"):
        assert again.fields["WARC-Profile"] == IDENTICAL
        assert again.fields["WARC-Refers-To"] == original.fields["WARC-Record-ID"]
        assert again.fields["WARC-Refers-To-Target-URI"] == web.url("/b")
        assert again.fields["WARC-Refers-To-Date"] == original.fields["WARC-Date"]
    clean(repo)


@pytest.mark.parametrize("status", [301, 308])
def test_a_permanent_redirect_is_archived(repo: Repo, site: Callable[..., Site], status: int) -> None:
    web = site({"/": page("front", "/a"), "/a": moved("/b", status), "/b": page("new place")})
    repo.crawl(web.url())
    records = archived(repo, web)
    assert of(records, "/a") == [("response", status)]
    assert of(records, "/b") == [("response", 200)]
    clean(repo)


@pytest.mark.parametrize("status", [404, 410])
def test_a_missing_page_is_archived(repo: Repo, site: Callable[..., Site], status: int) -> None:
    web = site({"/": page("front", "/a"), "/a": Reply(page("no such page"), status)})
    repo.crawl(web.url())
    records = archived(repo, web)
    assert of(records, "/a") == [("response", status)]
    assert b"no such page" in next(one.body for one in records if one.path == "/a")
    clean(repo)


def test_a_redirect_that_leads_away_or_nowhere_is_archived(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("front", "/a", "/b"), "/a": moved("https://other.example/", 302), "/b": moved("/b", 302)})
    repo.crawl(web.url())
    records = archived(repo, web)
    assert of(records, "/a") == [("response", 302)]
    assert of(records, "/b") == [("response", 302)]


def test_robots_txt_is_archived_even_if_it_forbids_everything(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("front"), "/robots.txt": text("User-agent: *\nDisallow: /\n")})
    repo.crawl(web.url())
    (robots,) = archived(repo, web)
    assert (robots.path, robots.status, robots.body) == ("/robots.txt", 200, b"User-agent: *\nDisallow: /\n")
    clean(repo)


def test_a_robots_txt_that_is_too_long_says_so(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("front"), "/robots.txt": text("# comment\n" * 60_000)})
    repo.crawl(web.url())
    robots = next(one for one in archived(repo, web) if one.path == "/robots.txt")
    assert (len(robots.body), robots.fields["WARC-Truncated"]) == (512_000, "length")
    clean(repo)


def test_a_304_keeps_its_headers(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": Reply(page("front"), headers={"Cache-Control": "max-age=60"}, etag='"one"')})
    repo.crawl(web.url())
    repo.later(days=1)
    repo.cycle()
    again = next(one for one in archived(repo, web) if one.kind == "revisit")
    assert again.fields["X-HTTP-304-Cache-Control"] == "max-age=60"
    clean(repo)


def test_the_first_record_says_how_the_file_was_made(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("front")})
    repo.config(contact="https://example.org/us")
    repo.crawl(web.url())
    (path,) = (repo.folder / "archive").iterdir()
    with path.open("rb") as file:
        record = next(iter(ArchiveIterator(file)))
        said = dict(line.split(": ", 1) for line in record.content_stream().read().decode().splitlines())
    assert said["software"].startswith("recrawl/")
    assert said["operator"] == "https://example.org/us"
    assert said["robots"] == "classic (RFC 9309)"
    assert "https://example.org/us" in said["http-header-user-agent"]
    assert {"format", "conformsTo"} <= said.keys()


def test_pywb_replays_a_redirect_and_its_target(
    repo: Repo,
    site: Callable[..., Site],
    tmp_path: Path,
    python: Path,  # noqa: F811
) -> None:
    target = page("the target")
    web = site({"/": page("front", "/a", "/gone"), "/a": moved("/b", 302), "/b": target})
    repo.crawl(web.url())
    repo.later(days=1)
    repo.cycle()
    folder = tmp_path / "pywb"
    folder.mkdir()
    _manage(python, folder, "init", "history")
    _manage(python, folder, "add", "history", *(str(path) for path in (repo.folder / "archive").iterdir()))
    paths = [f"/history/{year}id_/{web.url(path)}" for year in ("2020", "2040") for path in ("/a", "/b", "/gone")]
    first_a, first_b, gone, second_a, second_b, _ = _replay(python, folder, paths)
    assert (first_a[0], second_a[0]) == (302, 302)
    assert (first_b[0], second_b[0], gone[0]) == (200, 200, 404)
    assert hashlib.sha1(first_b[2].encode()).digest() == hashlib.sha1(target).digest()
    assert second_b[2] == first_b[2]
