"""One spelling for each address (spec K4): as browsers read links, plus our own rules."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.discover.urls import DEFAULT_RULES, UrlRules, canonical, directory, join, key, keys, origin, prepare

BASE = "https://site.example/a/b/c.html?q=1"

# Text that looks like addresses: pieces that parsers disagree on, in any order.
ODD = """
    http: https: // / \\ . .. %2e %2E%2e ;jsessionid=1 (S(x)) ? & = # @ : 80 443 [::1] host.example Ä ß % %41
    %4 %c3%a4 %25 a b utm_x sid 1.2.3.4 0x7f xn-- xn--a \ud800 \ufdd0 。 \u200c | ' [] +
"""
PIECES = st.sampled_from([*ODD.split(), " ", "\t", "\n", "\0"])
ADDRESSES = st.one_of(
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(PIECES, max_size=12).map(lambda p: "https://host.example/" + "".join(p)),
    st.text(st.characters(), max_size=60),
    st.text(max_size=30).map(lambda host: f"http://{host}/"),
)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("d.html", "https://site.example/a/b/d.html"),
        ("./d.html", "https://site.example/a/b/d.html"),
        ("../d.html", "https://site.example/a/d.html"),
        ("../../../../d", "https://site.example/d"),
        ("/d/./e/../f/", "https://site.example/d/f/"),
        ("/d/%2e%2E/f", "https://site.example/f"),
        ("/d//e", "https://site.example/d//e"),
        ("/", "https://site.example/"),
        ("", "https://site.example/a/b/c.html?q=1"),
        ("#top", "https://site.example/a/b/c.html?q=1"),
        ("?x=2", "https://site.example/a/b/c.html?x=2"),
        ("d.html#part", "https://site.example/a/b/d.html"),
        ("//Other.Example/x", "https://other.example/x"),
        ("HTTP://Other.EXAMPLE/X", "http://other.example/X"),
        ("https:d.html", "https://site.example/a/b/d.html"),
        ("https://site.example", "https://site.example/"),
        ("https://site.example/x/./y", "https://site.example/x/y"),
        ("https://site.example.evil.example/x", "https://site.example.evil.example/x"),
        ("\\d\\e", "https://site.example/d/e"),
        ("  /d \n", "https://site.example/d"),
        ("/d\t/e\n/f", "https://site.example/d/e/f"),
        ("ht\ntps://other.example/", "https://other.example/"),
        ("/d e", "https://site.example/d%20e"),
        ("/\x01x", "https://site.example/%01x"),
        ("/d #x", "https://site.example/d%20"),
        ("/d \n#x", "https://site.example/d%20"),
        ("/d\x01#x", "https://site.example/d%01"),
        (" #x", "https://site.example/a/b/c.html?q=1"),
        ("/d#x ", "https://site.example/d"),
    ],
)
def test_links_are_joined_as_browsers_do(link, expected):
    assert canonical(link, BASE) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.example:80/", "http://a.example/"),
        ("https://a.example:443/", "https://a.example/"),
        ("http://a.example:443/", "http://a.example:443/"),
        ("https://a.example:08443/", "https://a.example:8443/"),
        ("https://user:secret@a.example/x@y", "https://a.example/x@y"),
        ("https://user@host@a.example/", "https://a.example/"),
        ("https://Bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("https://a。example/", "https://a.example/"),
        ("https://%61.example/", "https://a.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
        ("https:\\\\a.example\\b", "https://a.example/b"),
        ("https://a.example/ä", "https://a.example/%C3%A4"),
        ("https://a.example/%c3%a4%7e%41%2f", "https://a.example/%C3%A4~A%2F"),
        ("https://a.example/100%", "https://a.example/100%25"),
        ("https://a.example/%%34%31", "https://a.example/%2541"),
        ("https://a.example/?q=%7e%2b+%2526", "https://a.example/?q=~%2B+%2526"),
        ("https://a.example/?", "https://a.example/"),
        ("https://a.example/?#x", "https://a.example/"),
        ("https://a.example./x", "https://a.example/x"),
        ("https://a.example.:8443/x./y", "https://a.example:8443/x./y"),
        ("https://a.example..", "https://a.example/"),
        ("https://user@a.example./", "https://a.example/"),
        ("http://0x7f../", "http://0.0.0.127/"),
        ("http://1.2.3.4.:80/", "http://1.2.3.4/"),
        ("https://a.example/x|y%7cz", "https://a.example/x%7Cy%7Cz"),
        ("https://a.example/x[1]%5b2%5D", "https://a.example/x%5B1%5D%5B2%5D"),
        ("https://a.example/x(1)%282%29!%21*%2a", "https://a.example/x(1)(2)!!**"),
        ("https://a.example/o'neil%27s", "https://a.example/o%27neil%27s"),
        ("https://a.example/?a[]=1&a%5B%5D=2", "https://a.example/?a%5B%5D=1&a%5B%5D=2"),
        ("https://a.example/?q={x}^`\\|'(y)%28", "https://a.example/?q=%7Bx%7D%5E%60%5C%7C%27(y)("),
        ("https://a.example/%2F%3F%23%3B%2C", "https://a.example/%2F%3F%23%3B%2C"),
        ("https://a.example/index.html", "https://a.example/index.html"),
        ("https://a.example/b/", "https://a.example/b/"),
    ],
)
def test_absolute_addresses_have_one_spelling(url, expected):
    assert canonical(url) == expected


HOPELESS = """
    x /x //a.example/ mailto:a@b.example javascript:void(0) JaVaScRiPt:1 data:,x tel:1 ftp://a.example/
    file:///etc/passwd ws://a.example/ about:blank blob:https://a.example/1 http:// https://?x http:///
    http://@/ http://:80/ https://a%20b.example/ https://a%00.example/ http://[::1 http://[12345::]/
    http://[::g]/ http://1.2.3.256/ http://1.2.3.4.5.6/ https://a.example:65536/ https://a.example:x/
    https://a.example:-1/ https://a.example/\ud800 \0 http://./ http://..:80/x http://u@./
"""


@pytest.mark.parametrize("url", [*HOPELESS.split(), "", " ", "https://a b.example/"])
def test_what_cannot_be_crawled_is_none(url):
    assert canonical(url) is None


def test_other_schemes_are_none_on_a_page_too():
    for link in ("mailto:a@b.example", "javascript:void(0)", "data:text/html,x", "tel:+1", "http://[::1"):
        assert canonical(link, BASE) is None


def test_a_base_that_is_no_address_is_left_out():
    assert canonical("https://a.example/x", "not an address") == "https://a.example/x"
    assert canonical("x", "mailto:a@b.example") is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("b=2&a=1", "a=1&b=2"),
        ("a=2&a=1&A=0", "A=0&a=2&a=1"),
        ("b=&a", "a&b="),
        ("&&a=1&", "a=1"),
        ("x=1&utm_source=n&UTM_Medium=m&fbclid=f&gclid=g", "x=1"),
        ("utm_source=n", ""),
        ("srsltid=AfmBOo&gad_source=1&gad_campaignid=2&x=1", "x=1"),
        ("utm=1&futm_x=2&gclid2=3", "futm_x=2&gclid2=3&utm=1"),
        ("PHPSESSID=0a&jsessionid=1&ASPSESSIONIDABC=2&x=1", "x=1"),
        ("sid=1234", "sid=1234"),
        ("sid=0cc175b9c0f1b6a831c399e269772661&t=5", "t=5"),
        ("s=how+do+crawlers+decide", "s=how+do+crawlers+decide"),
        ("%75tm_source=n&a=1", "a=1"),
    ],
)
def test_queries_keep_what_matters_in_order_of_name(query, expected):
    assert canonical(f"https://a.example/p?{query}") == "https://a.example/p" + (f"?{expected}" if expected else "")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a;jsessionid=0F3A", "/a"),
        ("/a;JSESSIONID=0F3A.node1/b?x=1", "/a/b?x=1"),
        ("/a;v=1;sid=5;w=2", "/a;v=1;w=2"),
        ("/a/..;jsessionid=1/b", "/b"),
        ("/(S(lit3py55t21z5v55vlm25s55))/page.aspx", "/page.aspx"),
        ("/(X(1)S(lit3py55))/(S(b))", "/"),
        ("/%28S%28lit3py55%29%29/page.aspx", "/page.aspx"),
        ("/wiki/Crawler_(web)", "/wiki/Crawler_(web)"),
    ],
)
def test_session_ids_in_paths_are_cut(path, expected):
    assert canonical("https://a.example" + path) == "https://a.example" + expected


def test_long_addresses_are_refused_at_the_limit():
    rules = UrlRules(max_length=40)
    start = "https://a.example/"
    for link, base in (
        ("x" * 22, start),
        ("/" + "x" * 22, start),
        (start + "x" * 22, ""),
        ("./" + "x" * 22, start),
    ):
        assert canonical(link, base, rules) == start + "x" * 22
        assert canonical(link + "x", base, rules) is None
    assert canonical(start + "?utm_source=" + "x" * 100, "", rules) == start
    assert canonical("x" * 10_000_000, BASE) is None


def test_rules_are_values():
    assert UrlRules() == DEFAULT_RULES
    assert hash(UrlRules()) == hash(DEFAULT_RULES)
    assert pickle.loads(pickle.dumps(DEFAULT_RULES)) == DEFAULT_RULES
    url = "https://a.example/?ref=y&utm_source=x"
    assert canonical(url, rules=UrlRules(tracking=("re?",))) == "https://a.example/?utm_source=x"
    assert canonical(url, rules=UrlRules(tracking=())) == url


@given(ADDRESSES, ADDRESSES)
@example("http://@@/", "")
@example("https://a.example/%%%34%31", "")
@example("/.;jsessionid=1/;jsessionid=2/..", "https://a.example/x/(S(a))/..;sid=/y")
def test_canonical_is_idempotent_and_never_raises(url, base):
    once = canonical(url, base)
    if once is None:
        return
    assert canonical(once) == once
    assert canonical(once, base) == once
    assert canonical(once, BASE) == once
    assert once.startswith((origin(once) + "/", directory(once)))
    assert once.isascii()
    assert "#" not in once
    assert "@" not in origin(once)
    assert once.startswith(("http://", "https://"))


@given(st.text("ab01-_~./:#?%;( ", max_size=14))
@example("//a/b")
@example("a/../b")
@example(".")
@example("a:b")
def test_the_fast_path_says_what_the_parser_says(link):
    # A leading tab means nothing to the parser but keeps the link off the fast path.
    for start in ("", "https://site.example", "https://site.example/"):
        assert canonical(start + link, BASE) == canonical("\t" + start + link, BASE)


def test_a_prepared_base_joins_alike():
    base = prepare(BASE)
    assert base is not None
    assert join("../x", base) == canonical("../x", BASE)
    assert prepare("mailto:x") is None


def test_origin_and_directory():
    assert origin("https://a.example:8443/x/y?u=https://b.example/") == "https://a.example:8443"
    assert directory("https://a.example/x/y?u=https://b.example/z") == "https://a.example/x/"
    assert directory("https://a.example/x/y/") == "https://a.example/x/y/"
    assert directory("https://a.example/") == "https://a.example/"
    assert directory("https://a.example/?/") == "https://a.example/"


def test_keys_are_stable_and_alike_one_by_one():
    urls = [f"https://a.example/{i}" for i in range(100)]
    many = keys(urls)
    assert many.dtype == np.int64
    assert many.tolist() == [key(url) for url in urls]
    assert len(set(many.tolist())) == 100
    assert (many < 0).any()
    assert key("https://a.example/") == 4390621623597688445, "keys are stored: changing them orphans every page"
    assert keys([]).shape == (0,)
