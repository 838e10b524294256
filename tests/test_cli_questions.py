"""The verbs that only ask: status, sites, pages, changes, log, show, diff, why, search, noise, policies."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from recrawl.choose import POLICIES
from recrawl.choose.papers.round_robin import RoundRobin
from tests.complaints import complaint, usage
from tests.world import Page, Reply, Repo, Site, moved, page, text

Start = Callable[..., Site]


class Past(NamedTuple):
    """A repository with a past, only to be read, and its site."""

    repo: Repo
    url: Callable[[str], str]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    repo = Repo.create(tmp_path_factory.mktemp("past") / "repo")
    links = ["/a", "/b", "/gone", "/old", "/private/x", "/broken", "/ticker", "/file"]
    pages: dict[str, Page] = {
        "/robots.txt": text("User-agent: *\nDisallow: /private/"),
        "/": page("The front page", *links, title="Front"),
        "/a": page("alpha first edition", title="Alpha"),
        "/b": page("beta never changes", title="Beta"),
        "/gone": page("soon gone", title="Going"),
        "/old": moved("/b"),
        "/broken": Reply(b"", 500),
        "/ticker": _ticker(1000),
        "/file": text("plain words <b> here"),
    }
    repo.config(change="text")  # the ticker's number is to count as a change
    with Site(pages) as site:
        repo.crawl(site.url())
        for number, edition in enumerate(["second", "third"], 1):
            repo.later(hours=30)
            site["/a"] = page(f"alpha {edition} edition", title=f"Alpha {edition}")
            site["/ticker"] = _ticker(1000 + 7 * number)
            site["/gone"] = Reply(page("Not here"), 404)
            repo.cycle()
        for number in range(3, 6):
            repo.later(hours=60)
            site["/ticker"] = _ticker(1000 + 7 * number)
            repo.cycle()
        repo.run("import", _list(repo, site.url("/unvisited")))
        yield Past(repo, site.url)


def _ticker(count: int) -> bytes:
    """A page on which nothing changes but a counter."""
    return page(f"Much text that stays as it is.</p><p id=visitors>visitors: {count}", title="Ticker")


def _unmarked(shown: str) -> str:
    """A difference without the marks around the words that differ within a line."""
    return re.sub(r"\[-|-\]|\{\+|\+\}", "", shown)


def _list(repo: Repo, *urls: str) -> str:
    file = repo.folder.parent / "urls.txt"
    file.write_text("\n".join(urls))
    return str(file)


# -- status and sites ----------------------------------------------------------------------------------------


def test_status(past: Past) -> None:
    told = past.repo.json("status")
    assert told["sites"] == 1
    assert told["pages"] == sum(told["states"].values()) == len(past.repo.pages())
    assert told["versions"] == past.repo.sql("SELECT count(*) FROM versions")[0][0]
    assert told["archive_bytes"] > 0
    assert told["searchable"] == len(past.repo.found("*"))
    assert set(told["age_seconds"]) == {"p10", "p50", "p90", "p100"}
    assert told["cycles"][0]["kind"] == "import"
    shown = past.repo.run("status").out
    assert f"{told['pages']:,} pages" in shown
    assert "shock" in shown


def test_status_of_an_empty_repository(repo: Repo) -> None:
    told = repo.json("status")
    assert (told["pages"], told["visits"], told["last_visit"], told["cycles"]) == (0, 0, None, [])
    assert "0 pages" in repo.run("status").out


def test_status_says_one_site(past: Past) -> None:
    """Small numbers are read by people: one site is not '1 sites'."""
    assert "1 site," in past.repo.run("status").out


def test_sites(past: Past) -> None:
    (row,) = past.repo.json("sites")
    assert row["url"].rstrip("/") == past.url("").rstrip("/")
    assert row["pages"] == len(past.repo.pages())
    assert row["robots_status"] == 200
    assert "HTTP 200" in past.repo.run("sites").out


def test_sites_before_the_first_crawl(repo: Repo) -> None:
    repo.run("add", "example.org", "http://127.0.0.1:4548/", "http://127.0.0.1:45487/")
    assert [row["url"] for row in repo.json("sites")] == [
        "https://example.org/",
        "http://127.0.0.1:4548/",
        "http://127.0.0.1:45487/",
    ]


def test_a_site_is_not_hidden_by_a_shorter_one(repo: Repo) -> None:
    repo.run("import", _list(repo, "http://127.0.0.1:4548/x"))
    repo.run("add", "http://127.0.0.1:45487/")
    assert len(repo.json("sites")) == 2


# -- pages ---------------------------------------------------------------------------------------------------


def test_states(past: Past) -> None:
    states = {url.removeprefix(past.url("")): state for url, state in past.repo.states().items()}
    assert states == {
        "/": "live",
        "/a": "live",
        "/b": "live",
        "/gone": "gone",
        "/old": "moved",
        "/private/x": "barred",
        "/broken": "found",
        "/ticker": "live",
        "/file": "live",
        "/unvisited": "found",
    }


@pytest.mark.parametrize("state", ["found", "live", "gone", "moved", "barred", "missing", "dropped"])
def test_pages_by_state(past: Past, state: str) -> None:
    rows = past.repo.json("pages", "--state", state)
    assert {row["url"] for row in rows} == {url for url, value in past.repo.states().items() if value == state}


def test_pages_by_misspelt_state(past: Past) -> None:
    complaint(past.repo.run("pages", "--state", "lve", code=None), "did you mean 'live'")


def test_pages_limit(past: Past) -> None:
    everything = past.repo.json("pages")
    assert past.repo.json("pages", "--limit", 3) == everything[:3]
    assert past.repo.json("pages", "--limit", 0) == []
    assert past.repo.json("pages", "--limit", -1) == everything


def test_pages_have_times_and_titles(past: Past) -> None:
    row = past.repo.pages()[past.url("/a")]
    assert row["title"] == "Alpha third"
    assert (row["visits"], row["changes"]) == (6, 3)
    assert dt.datetime.fromisoformat(row["last_change"]) < dt.datetime.fromisoformat(row["last_visit"])


@pytest.mark.parametrize("verb", [["pages"], ["changes"], ["search", "alpha"]], ids=lambda words: words[0])
def test_one_site_by_any_of_its_names(past: Past, verb: list[str]) -> None:
    """By address, by any page of it, or by its bare name, which cannot mean another."""
    everything = past.repo.json(*verb)
    for name in (past.url("/"), past.url(""), past.url("/a"), past.url("").removeprefix("http://")):
        assert past.repo.json(*verb, "--site", name) == everything


@pytest.mark.parametrize("verb", [["pages"], ["changes"], ["search", "alpha"]], ids=lambda words: words[0])
def test_unknown_site(past: Past, verb: list[str]) -> None:
    complaint(past.repo.run(*verb, "--site", "elsewhere.example", code=None), "elsewhere.example", "recrawl sites")


# -- changes -------------------------------------------------------------------------------------------------


def test_changes(past: Past) -> None:
    rows = past.repo.json("changes")
    alpha = [(row["outcome"], row["title"]) for row in rows if row["url"] == past.url("/a")]
    assert alpha == [("changed", "Alpha third"), ("changed", "Alpha second"), ("new", "Alpha")]
    assert [row["outcome"] for row in rows if row["url"] == past.url("/gone")] == ["gone", "new"]
    times = [dt.datetime.fromisoformat(row["at"]) for row in rows]
    second = dt.timedelta(seconds=1)  # visits that were under way together may be told in any order
    assert all(newer >= older - second for newer, older in itertools.pairwise(times))
    assert all(row["divergence"] > 0 for row in rows if row["outcome"] == "changed")


def test_changes_since(past: Past) -> None:
    rows = past.repo.json("changes")
    first = rows[-1]["at"]
    assert past.repo.json("changes", "--since", first) == rows
    after = past.repo.json("changes", "--since", "220h")
    assert after == [row for row in rows if row["outcome"] != "new"][: len(after)]
    assert past.repo.json("changes", "--since", "2100-01-01") == []
    assert past.repo.json("changes", "--since", "1h30m") == [row for row in rows if row["at"] >= rows[0]["at"]]


@pytest.mark.parametrize("since", ["yesterdy", "2026-13-01", "5 parsecs", "--", "1e999d"])
def test_changes_since_an_invalid_time(past: Past, since: str) -> None:
    complaint(past.repo.run("changes", f"--since={since}", code=None), f"'{since}'", "2d")


def test_changes_limit(past: Past) -> None:
    assert len(past.repo.json("changes", "--limit", 2)) == 2


# -- one page ------------------------------------------------------------------------------------------------


def test_log(past: Past) -> None:
    rows = past.repo.json("log", past.url("/a"))
    assert [(row["number"], row["what"], row["title"]) for row in rows] == [
        (3, "changed", "Alpha third"),
        (2, "changed", "Alpha second"),
        (1, "new", "Alpha"),
    ]
    assert all(row["url"] == past.url("/a") for row in rows)


def test_log_of_visits(past: Past) -> None:
    assert past.repo.outcomes(past.url("/a")) == ["new", "changed", "changed", "unchanged", "unchanged", "unchanged"]
    assert past.repo.outcomes(past.url("/broken"))[0] == "http-5xx"
    assert "http-5xx" in past.repo.run("log", past.url("/broken"), "--visits").out


def test_page_by_a_bare_name(past: Past) -> None:
    """Nothing else is known under it."""
    bare = past.url("/a").removeprefix("http://")
    assert past.repo.json("log", bare) == past.repo.json("log", past.url("/a"))


@pytest.mark.parametrize("verb", ["log", "show", "diff", "why", "noise"])
def test_unknown_page(past: Past, verb: str) -> None:
    complaint(past.repo.run(verb, past.url("/nowhere"), code=None), past.url("/nowhere"), "recrawl pages")
    complaint(past.repo.run(verb, "ftp://x", code=None), "'ftp://x'")


@pytest.mark.parametrize("verb", ["show", "diff", "noise"])
@pytest.mark.parametrize("path", ["/unvisited", "/private/x", "/broken"])
def test_page_that_was_never_downloaded(past: Past, verb: str, path: str) -> None:
    complaint(past.repo.run(verb, past.url(path), code=None), "never downloaded", "recrawl why")


def test_show(past: Past) -> None:
    assert "alpha third edition" in past.repo.run("show", past.url("/a")).out
    told = past.repo.json("show", past.url("/a"))
    assert told["title"] == "Alpha third"
    assert "alpha third edition" in told["text"]
    assert told["mime"] == "text/html"


@pytest.mark.parametrize(
    ("at", "words"),
    [("1", "first"), ("2", "second"), ("-1", "third"), ("-3", "first"), ("2100-01-01", "third"), ("0s", "third")],
)
def test_show_at(past: Past, at: str, words: str) -> None:
    assert f"alpha {words} edition" in past.repo.run("show", past.url("/a"), f"--at={at}").out


def test_show_at_a_time_between(past: Past) -> None:
    second = past.repo.json("log", past.url("/a"))[1]["at"]
    moment = dt.datetime.fromisoformat(second)
    for offset, words in ((0, "second"), (-60, "first"), (60, "second")):
        at = (moment + dt.timedelta(seconds=offset)).isoformat()
        assert f"alpha {words} edition" in past.repo.run("show", past.url("/a"), "--at", at).out


def test_show_takes_the_times_that_log_shows(past: Past) -> None:
    """A time copied from the log names that version, although it is rounded to the second."""
    rows = past.repo.run("log", past.url("/a"), "--no-header").out.splitlines()
    for row, words in zip(rows, ["third", "second", "first"], strict=True):
        assert f"alpha {words}" in past.repo.run("show", past.url("/a"), "--at", row.split("\t")[1]).out


@pytest.mark.parametrize(
    ("at", "said"), [("0", "1 to 3"), ("4", "1 to 3"), ("-4", "1 to 3"), ("2000-01-01", "no version"), ("x", "'x'")]
)
def test_show_at_an_invalid_time(past: Past, at: str, said: str) -> None:
    complaint(past.repo.run("show", past.url("/a"), f"--at={at}", code=None), said)


def test_show_source_is_the_bytes(past: Past) -> None:
    process = past.repo.start("show", past.url("/a"), "--source", "--at", "1")
    assert past.repo.wait(process).out.encode() == page("alpha first edition", title="Alpha")
    assert past.repo.json("show", past.url("/a"), "--source")["source"].startswith("<!doctype html>")


def test_show_plain_text(past: Past) -> None:
    assert "plain words <b> here" in past.repo.run("show", past.url("/file"), "--text").out
    assert "plain words \\<b\\> here" in past.repo.run("show", past.url("/file")).out


def test_diff(past: Past) -> None:
    shown = _unmarked(past.repo.run("diff", past.url("/a")).out)
    assert "-alpha second edition" in shown
    assert "+alpha third edition" in shown


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (["1"], "first", "third"),
        (["1", "2"], "first", "second"),
        (["2", "1"], "second", "first"),
        (["--", "-3", "-2"], "first", "second"),
        (["-3", "-2"], "first", "second"),
        (["-2", "-1"], "second", "third"),
    ],
    ids=str,
)
def test_diff_of_two(past: Past, words: list[str], old: str, new: str) -> None:
    shown = _unmarked(past.repo.run("diff", past.url("/a"), *words).out)
    assert f"-alpha {old} edition" in shown
    assert f"+alpha {new} edition" in shown


def test_diff_as_json(past: Past) -> None:
    told = past.repo.json("diff", past.url("/a"), "1", "2")
    assert told["url"] == past.url("/a")
    assert told["old"] < told["new"]
    assert "+alpha second edition" in _unmarked(told["diff"])


def test_divergence_is_of_the_versions_that_are_compared(past: Past) -> None:
    """What is stored with a version compares it with the one before; of any other two it says nothing."""
    same = past.repo.json("diff", past.url("/a"), "2", "2")
    assert not same["divergence"]
    stored = past.repo.json("log", past.url("/a"))[1]["divergence"]
    assert past.repo.json("diff", past.url("/a"), "1", "2")["divergence"] == pytest.approx(stored)


def test_diff_of_a_version_with_itself(past: Past) -> None:
    assert "only one version" not in past.repo.run("diff", past.url("/a"), "1", "1").out
    assert "no difference" in past.repo.run("diff", past.url("/a"), "1", "1").out
    assert "only one version" in past.repo.run("diff", past.url("/b")).out


@pytest.mark.parametrize("words", [["7"], ["1", "9"], ["0"], ["x"], ["1", "x"]], ids=str)
def test_diff_of_invalid_versions(past: Past, words: list[str]) -> None:
    complaint(past.repo.run("diff", past.url("/a"), *words, code=None))


# -- why -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/a", ["It is live", "unchanged", "had waited", "cycle"]),
        ("/unvisited", ["never"]),
        ("/private/x", ["robots.txt"]),
        ("/old", ["moved"]),
        ("/gone", ["gone"]),
        ("/broken", ["http-5xx", "failed attempts", "next try after"]),
    ],
)
def test_why(past: Past, path: str, words: list[str]) -> None:
    shown = past.repo.run("why", past.url(path)).out
    for word in words:
        assert word in shown
    told = past.repo.json("why", past.url(path))
    assert told["url"] == past.url(path)
    assert told["why"]


@pytest.mark.parametrize("policy", ["anchor-depth", "nutch", "sampling(phi=pra)", "grouped"])
def test_why_with_policies_that_need_or_remember_something(past: Past, policy: str) -> None:
    past.repo.config(policy=policy)
    try:
        told = past.repo.json("why", past.url("/a"))
    finally:
        past.repo.config(policy="round-robin")
    assert told["plan"]["policy"] == policy
    assert "next cycle" in told["why"][-1]


def test_why_with_a_policy_that_cannot_run_here(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is to say of the page is said; for the next cycle there is a sentence."""
    past.repo.config(policy="round-robin")
    monkeypatch.setattr(RoundRobin, "needs", frozenset({"weather"}))
    shown = past.repo.run("why", past.url("/a")).out
    assert "It is live." in shown
    assert "Cannot plan the next cycle: round-robin needs weather, which a repository does not have." in shown
    assert past.repo.json("why", past.url("/a"))["plan"] is None


def test_why_a_page_that_moved_says_where(past: Past) -> None:
    assert past.url("/b") in past.repo.run("why", past.url("/old")).out


def test_why_of_an_import_is_no_crawl(past: Past, repo: Repo) -> None:
    file = repo.folder.parent / "past.parquet"
    past.repo.run("export", file)
    repo.run("import", file)
    shown = repo.run("why", past.url("/a")).out
    assert "import" in shown
    assert "as a crawl downloads" not in shown


def test_why_missing(repo: Repo, site: Start) -> None:
    web = site({"/": page("front", "/a"), "/a": page("a")})
    repo.crawl(web.url())
    del web["/a"]
    repo.later(hours=2)
    repo.cycle()
    assert "confirmed" in repo.run("why", web.url("/a")).out


def test_why_many_pages_are_ahead(repo: Repo, site: Start) -> None:
    web = site({"/": page("front", "/a", "/b"), "/a": page("a"), "/b": page("b")})
    repo.crawl(web.url())
    repo.config(budget=1)
    told = {path: repo.json("why", web.url(path))["plan"] for path in ("/", "/a", "/b")}
    assert sorted(plan["place"] for plan in told.values()) == [1, 2, 3]
    (first,) = (path for path, plan in told.items() if plan["place"] == 1)
    assert "would visit it" in repo.run("why", web.url(first)).out
    web.forget()
    repo.json("cycle")
    assert web.asked() == [first]


# -- search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (["alpha"], {"/a"}),
        (["ALPHA"], {"/a"}),
        (["first"], set()),
        (['"third edition"'], {"/a"}),
        (["title:beta"], {"/b"}),
        (["+beta -alpha"], {"/b"}),
        (["beta", "alpha"], {"/a", "/b"}),
        (["beta", "-never"], set()),
        (["soon"], set()),
        (["plain"], {"/file"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_search(past: Past, query: list[str], found: set[str]) -> None:
    hits = past.repo.json("search", *query)
    assert {hit["url"].removeprefix(past.url("")) for hit in hits} == found


def test_search_by_stated_language_and_date(repo: Repo, site: Callable[..., Site]) -> None:
    dated = '<html lang="{}"><title>t</title><meta property="article:modified_time" content="{}"><p>news'
    web = site({
        "/": page("news", "/de", "/at"),
        "/de": dated.format("de", "2020-05-01").encode(),
        "/at": dated.format("de-AT", "2024-05-01").encode(),
    })  # fmt: skip
    repo.crawl(web.url("/"))

    def found(*options: str) -> set[str]:
        return {hit["url"].rpartition("/")[2] for hit in repo.json("search", "news", *options)}

    assert found("--language", "de") == {"de", "at"}
    assert found("--language", "de-at") == {"at"}
    assert found("--before", "2023-01-01") == {"de"}
    assert found("--since", "2023-01-01") == {"at", ""}, "a page without a date counts as dated when it was recorded"
    assert found("--since", "2023-01-01", "--until", "2025-01-01") == {"at"}


def test_search_reports_no_results(past: Past) -> None:
    result = past.repo.run("search", "zebra")
    assert (result.out, result.err) == ("", "nothing found\n")


@pytest.mark.parametrize("query", ["((", '"open', "nofield:x", "AND OR", "[a TO b]", "page:x", "a:b:c", "/x", "^", "~"])
def test_invalid_queries(past: Past, query: str) -> None:
    result = past.repo.run("search", query, code=None)
    if result.code:
        said = complaint(result, "query")
        for word in ("ParseIntError", "kind:", "Rust"):
            assert word not in said


def test_query_is_a_url(past: Past) -> None:
    """People paste addresses; the colon in them is not meant as a field."""
    assert past.repo.run("search", past.url("/a"), code=None).code == 0


def test_empty_query(past: Past) -> None:
    complaint(past.repo.run("search", " ", code=None), "query")


def test_search_limit(past: Past) -> None:
    assert len(past.repo.json("search", "*", "--limit", 2)) == 2
    usage(past.repo.run("search", "x", "--limit", 0, code=None), "--limit")


def test_search_with_a_huge_limit(past: Past) -> None:
    """In a process of its own, as it might take this one along."""
    result = past.repo.wait(past.repo.start("search", "alpha", "--limit", 10**12))
    assert result.code in (0, 2), result.err[:200]


def test_search_quotes_the_newest_version(past: Past) -> None:
    (hit,) = past.repo.json("search", "third edition", "--limit", 1)
    assert hit["snippet"] == "alpha third edition"
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["third", "edition"]
    (hit,) = past.repo.json("search", "plain")
    assert hit["snippet"] == "plain words <b> here"


def test_search_finds_pages_whose_bodies_are_missing(repo: Repo, site: Start) -> None:
    repo.crawl(site({"/": page("a word of text", title="Front")}).url())
    for file in (repo.folder / "archive").iterdir():
        file.rename(repo.folder / file.name)
    (hit,) = repo.json("search", "word")
    assert (hit["title"], hit["snippet"], hit["marks"]) == ("Front", "", [])


def test_search_without_an_index(repo: Repo, site: Start) -> None:
    web = site({"/": page("word")})
    repo.config(index=False)
    repo.crawl(web.url())
    complaint(repo.run("search", "word", code=None), "config index true")
    repo.config(index=True)
    repo.run("cycle", "--budget", 1)
    assert repo.found("word") == {web.url()}


# -- noise and policies --------------------------------------------------------------------------------------


def test_noise(past: Past) -> None:
    rows = past.repo.json("noise")
    assert {row["url"] for row in rows} == {past.url("/ticker")}
    assert past.repo.json("noise", past.url("/ticker")) == rows
    assert past.repo.json("noise", past.url("/b")) == []
    assert "no suggestion" in past.repo.run("noise", past.url("/b")).err


def test_policies(past: Past) -> None:
    rows = past.repo.json("policies")
    assert [row["name"] for row in rows] == [*POLICIES, "clairvoyant"]
    assert all(row["what"] and row["source"] for row in rows)
    assert {row["name"]: row["parameters"] for row in rows}["round-robin"] == {"order": "fixed"}
    assert "order=fixed" in past.repo.run("policies").out
