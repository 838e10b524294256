"""What counts as a change, live: content by default, other levels on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recrawl.crawl.state.site_frames import SiteFrame
from recrawl.repository.alerts.rules import Update, applies
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Alert
from tests.complaints import complaint
from tests.serving import Asker
from tests.world import Repo, Site, page

_WORDS = ["amber", "basil", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "juniper", "kale", "lilac"]


def _site_pages(banner: str, **bodies: str) -> dict[str, bytes]:
    """A front page and twelve articles, all with the same banner."""

    def html(text: str) -> bytes:
        return f"<html><body><div><p>{banner}</div><div>{text}</div></body></html>".encode()

    links = " ".join(f"<p><a href='/{word}'>{word}</a>" for word in _WORDS)
    pages = {"/": html(links)}
    pages |= {f"/{word}": html(f"<p>{bodies.get(word, f'All about {word}')}") for word in _WORDS}
    return pages


@pytest.fixture
def crawled(repo: Repo, site: Callable[..., Site]) -> tuple[Repo, Site]:
    """A crawled site of thirteen pages."""
    server = site(_site_pages("Welcome to the herbarium"))
    repo.crawl(server.url("/"))
    return repo, server


def _next_day(repo: Repo, server: Site, pages: dict[str, bytes], *options: object) -> dict[str, int]:
    server.pages.update(pages)
    repo.later(days=1)
    report: dict[str, int] = repo.cycle(100, "--policy", "round-robin", *options)
    return report


def test_a_new_banner_on_every_page_is_no_change_but_its_versions_are_kept(crawled: tuple[Repo, Site]):
    repo, server = crawled
    report = _next_day(repo, server, _site_pages("Closed for renovation until May"))
    assert report["changed"] == 0
    url = server.url("/kale")
    assert repo.outcomes(url)[-1] == "unchanged"
    versions = repo.json("log", url)
    assert len(versions) == 2
    assert versions[0]["content"] is False
    assert "renovation" in repo.run("show", url, "--text").out


def test_visits_that_found_only_the_frame_changed_are_counted_apart(crawled: tuple[Repo, Site]):
    repo, server = crawled
    _next_day(repo, server, _site_pages("Closed for renovation", kale="Kale was replaced by spinach today"))
    _next_day(repo, server, {"/new": page("nobody links here")})
    counts = [(row["unchanged"], row["frame_only"]) for row in repo.json("status")["cycles"]]
    assert counts == [(13, 0), (12, 12), (0, 0)]
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        assert "recrawl_frame_only_total 12.0\n" in ask.get("/metrics").text
        assert [row["frame_only"] for row in ask.get("/api/v1/cycles").json["items"]] == [0, 12, 0]
        assert ask.get("/api/v1/status").json["last_cycle"]["frame_only"] == 0


def test_news_under_a_new_banner_is_a_change(crawled: tuple[Repo, Site]):
    repo, server = crawled
    report = _next_day(repo, server, _site_pages("Closed for renovation", kale="Kale was replaced by spinach today"))
    assert report["changed"] == 1
    (change,) = repo.json("changes", "--since", "12h")
    assert change["url"] == server.url("/kale")
    assert change["significance"] > 0.3
    assert 0 < change["content_share"] <= 1


def test_every_text_change_counts_if_the_user_says_so(crawled: tuple[Repo, Site]):
    repo, server = crawled
    assert _next_day(repo, server, _site_pages("Closed"), "--change", "text")["changed"] == 13


def test_a_site_may_have_a_definition_of_its_own(repo: Repo, site: Callable[..., Site]):
    server = site(_site_pages("Welcome"))
    repo.add(server.url("/"), "--allow-private", "--change", "text")
    repo.crawl()
    assert _next_day(repo, server, _site_pages("Goodbye"))["changed"] == 13


def test_divergence_and_relevance_drive_a_cycle(crawled: tuple[Repo, Site], tmp_path: Path):
    repo, server = crawled
    queries = tmp_path / "queries.txt"
    queries.write_text("spinach\n", encoding="utf-8")
    relevant = _site_pages("Welcome to the herbarium", kale="Kale with spinach", iris="Iris with something else")
    assert _next_day(repo, server, relevant, "--change", f"relevance:{queries}")["changed"] == 1
    slightly = _site_pages(
        "Welcome to the herbarium", hazel="All about the hazel", kale="Entirely other words here now"
    )
    assert _next_day(repo, server, slightly, "--change", "divergence:0.5")["changed"] == 1
    few = _site_pages("Welcome to the herbarium", hazel="All about the hazel", kale="Entirely other words here today")
    assert _next_day(repo, server, few, "--change", "words:3")["changed"] == 0
    many = _site_pages("Welcome to the herbarium", hazel="All about the hazel", kale="Nothing is as it was before")
    assert _next_day(repo, server, many, "--change", "words:3")["changed"] == 1


def test_a_counter_on_a_page_of_its_own_is_learned(repo: Repo, site: Callable[..., Site]):
    def visited(count: int, text: str = "The tide table") -> bytes:
        return f"<html><body><p>{text}<p>You are number {count} here</body></html>".encode()

    server = site({"/tide": visited(100)})
    repo.add(server.url("/tide"), "--depth", 0, "--allow-private")
    repo.crawl()
    changed = [_next_day(repo, server, {"/tide": visited(100 + n)})["changed"] for n in range(1, 6)]
    assert changed[0] == 1, "nothing is known about the line yet"
    assert changed[3:] == [0, 0]
    assert _next_day(repo, server, {"/tide": visited(200, "The tide table for June")})["changed"] == 1


def test_a_rotating_quote_on_a_page_of_its_own_is_learned(repo: Repo, site: Callable[..., Site]):
    quotes = ("Still waters run deep", "Haste makes waste", "Practice makes perfect")

    def shown(number: int, article: str = "The tide table") -> bytes:
        return f"<html><body><h1>Harbour</h1><p>{quotes[number % 3]}<p>{article}</body></html>".encode()

    server = site({"/tide": shown(0)})
    repo.add(server.url("/tide"), "--depth", 0, "--allow-private")
    repo.crawl()
    changed = [_next_day(repo, server, {"/tide": shown(n)})["changed"] for n in range(1, 9)]
    assert changed[:2] == [1, 1], "the page never had these texts"
    assert changed[5:] == [0, 0, 0]
    assert _next_day(repo, server, {"/tide": shown(9, "The tide table for June")})["changed"] == 1
    assert _next_day(repo, server, {"/tide": shown(10, "The tide table for June")})["changed"] == 0
    assert _next_day(repo, server, {"/tide": shown(10, "The tide table for July")})["changed"] == 1


def test_a_front_page_that_changes_at_every_visit_counts_every_time(repo: Repo, site: Callable[..., Site]):
    def front(day: int) -> bytes:
        stories = "".join(f"<p>The council of {'abcdefghijklmnopqrst'[n] * 4} has met" for n in range(day, day + 5))
        return f"<html><body><h1>News</h1>{stories}</body></html>".encode()

    server = site({"/news": front(0)})
    repo.add(server.url("/news"), "--depth", 0, "--allow-private")
    repo.crawl()
    assert [_next_day(repo, server, {"/news": front(n)})["changed"] for n in range(1, 9)] == [1] * 8


def test_the_frame_survives_a_restart_and_is_small(crawled: tuple[Repo, Site]):
    repo, server = crawled
    ((stored,),) = repo.sql("SELECT length(data) FROM frames")
    assert 0 < stored < 13 * 400
    repo.sql("DELETE FROM frames")
    assert _next_day(repo, server, _site_pages("Closed for renovation"))["changed"] == 0, "learned from stored pages"


def test_a_fast_crawl_counts_no_more_pages_than_a_slow_one(repo: Repo, site: Callable[..., Site]):
    paths = [f"/{number}" for number in range(80)]
    server = site({"/": page("Front", *paths), **{path: page(f"Page {path}") for path in paths}})
    repo.run("config", "per_server", "64")
    repo.crawl(server.url("/"))
    ((stored,),) = repo.sql("SELECT data FROM frames")
    assert len(SiteFrame.unpack(stored).members) == 6, "all pages are in one directory"


def test_a_page_that_could_not_be_read_leaves_its_place_in_the_census_to_another():
    frame = SiteFrame()
    for number in range(6):
        assert frame.wants(1)
        frame.await_page(number, 1)
    assert not frame.wants(1)
    assert frame.wants(2), "a page of another directory"
    frame.release(3)
    assert frame.wants(1)


def test_an_invalid_level_is_refused_before_anything_is_visited(repo: Repo):
    for wrong in ("contents", "divergence:2", "relevance:", "relevance:/no/such/file"):
        complaint(repo.run("cycle", "--change", wrong, code=None))
    assert repo.run("config", "change", "contents", code=None).code == 2


def test_a_page_that_is_not_html_is_compared_by_its_text(repo: Repo, site: Callable[..., Site]):
    server = site({"/": page("Files", "/notes.txt"), "/notes.txt": b"one"})
    repo.crawl(server.url("/"))
    assert _next_day(repo, server, {"/notes.txt": b"two"})["changed"] == 1


def test_diff_folds_the_frame(crawled: tuple[Repo, Site]):
    repo, server = crawled
    _next_day(repo, server, _site_pages("Closed for renovation", kale="Kale was replaced by spinach today"))
    told = repo.run("diff", server.url("/kale")).out
    assert "spinach" in told
    assert "renovation" not in told
    assert "2 changed lines of the site's frame not shown" in told
    assert "renovation" in repo.run("diff", server.url("/kale"), "--frame").out
    row = repo.json("diff", server.url("/kale"))
    assert row["content"] is True
    assert row["frame_lines"] == 2
    assert "renovation" in row["diff"]
    assert "renovation" not in row["content_diff"]


def test_noise_lists_what_was_learned_as_frame(crawled: tuple[Repo, Site]):
    repo, server = crawled
    rows = repo.json("noise", "--frame", server.url("/"))
    assert rows[0] == {"text": "Welcome to the herbarium", "pages": 6, "of": 6}
    assert "herbarium" in repo.run("noise", "--frame", server.url("/")).out


@pytest.mark.parametrize(("rule", "changed"), [("content = ['div:first-child']", 13), ("frame = ['div']", 0)])
def test_a_user_can_overrule_the_frame(crawled: tuple[Repo, Site], rule: str, changed: int):
    repo, server = crawled
    with (repo.folder / "recrawl.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n[[filter]]\n{rule}\n")
    pages = _site_pages("Closed for renovation", kale="Kale was replaced by spinach today")
    assert _next_day(repo, server, pages)["changed"] == changed


def test_snippets_quote_the_content(repo: Repo, site: Callable[..., Site]):
    server = site(_site_pages("All about herbs and their gardens", kale="The gardens of Kew grow kale"))
    repo.crawl(server.url("/"))
    hits = {hit["url"]: hit["snippet"] for hit in repo.json("search", "gardens")}
    assert "Kew" in hits[server.url("/kale")].replace("[", "").replace("]", "")[:40]


@pytest.mark.parametrize(("significance", "sent"), [(0.4, False), (0.7, True), (None, True)])
def test_an_alert_takes_a_threshold_of_significance(significance: float | None, sent: bool):
    update = Update(1, 2, "https://a.example/", 3.0, "changed", "A", 0.1, False, significance, None, None)
    assert applies(Alert("news", "feed", significance=0.6), update) is sent
