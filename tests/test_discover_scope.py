"""Scope (spec K1): the site, the depth and the patterns that a user names, and nothing beyond them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.discover.scope import Scope, Scopes, site
from recrawl.discover.urls import canonical
from recrawl.errors import UsageError

SEED = "https://a.example/docs/"


def refuses(url: str, at: int = 1, **wanted: Any) -> str | None:
    return Scope(SEED, **wanted).refuses(url, at)


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://a.example/", True),
        ("http://a.example/x", True),
        ("https://www.a.example/", False),
        ("https://b.a.example/", False),
        ("https://a.example.evil.example/", False),
        ("https://a.example:8443/", False),
        ("https://b.example/?https://a.example/", False),
    ],
)
def test_a_site_is_a_host(url, same):
    assert refuses(url) == (None if same else "other-site")


def test_ports_and_bare_hosts():
    assert Scope("http://127.0.0.1:8080").refuses("http://127.0.0.1:8080/x", 1) is None
    assert Scope("http://127.0.0.1:8080").refuses("http://127.0.0.1:8081/x", 1) == "other-site"
    assert Scope("HTTPS://A.Example").refuses("https://a.example/", 0) is None
    assert site("https://[::1]:8080/x//y") == "[::1]:8080"


def test_depth():
    assert refuses("https://a.example/x", 3, depth=3) is None
    assert refuses("https://a.example/x", 4, depth=3) == "too-deep"
    assert refuses("https://a.example/x", 1, depth=0) == "too-deep"
    assert refuses("https://a.example/x", 10**6) is None


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("/docs/*", "https://a.example/docs/a/b", True),
        ("/docs/*", "https://a.example/docs/a?x=1", True),
        ("/docs/*", "https://a.example/old/docs/a", False),
        ("/docs", "https://a.example/docs/a", False),
        ("*.html", "https://a.example/a.html", True),
        ("*.html", "https://a.example/a.html?x=1", True),
        ("*replytocom=*", "https://a.example/a?replytocom=5", True),
        ("/v[0-9]/*", "https://a.example/v1/x", True),
        ("/v[0-9]/*", "https://a.example/vx/x", False),
        ("/straße/*", "https://a.example/stra%C3%9Fe/x", True),
        ("https://a.example/docs/*", "https://a.example/docs/a", True),
        ("https://a.example/docs/*", "http://a.example/docs/a", False),
        ("*://a.example/docs/*", "http://a.example/docs/a", True),
        ("re:/[0-9]+$", "https://a.example/x/12", True),
        ("re:/[0-9]+$", "https://a.example/x/12/", False),
        ("re:(?i)DOCS", "https://a.example/docs/a", True),
    ],
)
def test_patterns(pattern, url, matches):
    assert refuses(url, include=(pattern,)) == (None if matches else "not-included")
    assert refuses(url, exclude=(pattern,)) == ("excluded" if matches else None)


def test_any_include_will_do_and_any_exclude_bars():
    wanted: dict[str, Any] = {
        "include": ("/a/*", "/b/*", "re:^https://a[.]example/c$"),
        "exclude": ("*/x", "re:secret"),
    }
    said = [refuses(f"https://a.example{path}", **wanted) for path in ("/a/1", "/b/1", "/c", "/d", "/a/x", "/b/secret")]
    assert said == [None, None, None, "not-included", "excluded", "excluded"]


def test_the_seed_is_always_admitted():
    wanted: dict[str, Any] = {"depth": 0, "include": ("/other/*",), "exclude": ("*",)}
    assert refuses(SEED, 99, **wanted) is None
    assert refuses("http://a.example/docs/", 99, **wanted) is None
    assert refuses(SEED + "x", 0, **wanted) == "excluded"
    assert Scope("https://a.example", exclude=("*",)).refuses("https://a.example/", 5) is None


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"include": ("re:[",)}, "invalid regular expression"),
        ({"include": ("re:[[a]",)}, "invalid regular expression"),
        ({"exclude": ("re:(a",)}, "invalid regular expression"),
        ({"include": ("docs",)}, "can never match; start it with '/'"),
        ({"include": ("",)}, "can never match"),
        ({"depth": -1}, "invalid depth -1 of https://a.example/docs/"),
        ({"limit": -5}, "limit"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(wanted, sentence):
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        Scope(SEED, **wanted)


@pytest.mark.parametrize("seed", ["", "a.example", "ftp://a.example/", "mailto:a@b.example"])
def test_a_seed_is_an_address(seed):
    with pytest.raises(UsageError, match="is not a valid URL"):
        Scope(seed)


def test_a_scope_is_a_value():
    assert Scope(SEED, depth=2) == Scope(SEED, depth=2)
    assert Scope(SEED, depth=2) != Scope(SEED, depth=3)
    assert hash(Scope(SEED)) == hash(Scope(SEED))


def test_scopes_admit_what_any_of_them_admits():
    docs = Scope(SEED, include=("/docs/*",))
    news = Scope("http://a.example/news/", depth=1, include=("/news/*",))
    other = Scope("https://b.example/")
    scopes = Scopes([docs, news, other])
    assert scopes.of("https://a.example/x") == [docs, news]
    assert scopes.of("https://c.example/x") == []
    assert scopes.refuses("https://a.example/docs/x", 9) is None
    assert scopes.refuses("https://a.example/news/x", 1) is None
    assert scopes.refuses("https://a.example/news/x", 2) == "too-deep"
    assert scopes.refuses("https://a.example/x", 1) == "not-included"
    assert scopes.refuses("https://b.example/x", 9) is None
    assert scopes.refuses("https://c.example/", 0) == "other-site"
    assert Scopes([]).refuses(SEED, 0) == "other-site"


@given(st.text(max_size=20), st.text("a/.*?[]!-(|)\\", max_size=12))
def test_a_pattern_is_refused_at_once_or_works(text, pattern):
    url = canonical(text, SEED) or SEED
    for candidate in (pattern, "/" + pattern, "re:" + pattern, "https://" + pattern):
        try:
            scope = Scope(SEED, exclude=(candidate,))
        except UsageError:
            continue
        assert scope.refuses(url, 1) in {None, "excluded", "other-site"}
