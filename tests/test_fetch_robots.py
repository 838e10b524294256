"""robots.txt: RFC 9309, the failures around it, and files made to hurt."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.robots import GIVE_UP, MAX_BYTES, RETRY, Robots

SITE = "https://www.example.org"
NOW = 1_700_000_000.0


def rules(text: str | bytes, agent: str = "recrawl") -> Robots:
    body = text if isinstance(text, bytes) else text.encode()
    return Robots.from_answer(200, body, NOW, agent=agent)


def allowed(text: str | bytes, path: str, agent: str = "recrawl") -> bool:
    return rules(text, agent).allows(SITE + path)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: *\nDisallow: /a", "/ab", False),
        ("User-agent: *\nDisallow: /a", "/b", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        # The longest rule wins, and of two equally long ones the one that allows.
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nAllow: /a/b\nDisallow: /a", "/a/c", False),
        ("User-agent: *\nDisallow: /p\nAllow: /p", "/p", True),
        ("User-agent: *\nDisallow: /*.php$", "/x.php", False),
        ("User-agent: *\nDisallow: /*.php$", "/x.php?y", True),
        ("User-agent: *\nDisallow: /*?s=", "/x?s=1", False),
        # Paths are compared by case, names are not.
        ("User-agent: *\nDisallow: /A", "/a", True),
        ("USER-AGENT: ReCrawl\nDISALLOW: /a", "/a", False),
        # Percent-encoding does not matter.
        ("User-agent: *\nDisallow: /ä", "/%C3%A4", False),
        ("User-agent: *\nDisallow: /%7ejoe", "/~joe", False),
        # Our own group counts alone; several of them are one.
        ("User-agent: *\nDisallow: /\n\nUser-agent: recrawl\nDisallow: /x", "/a", True),
        ("User-agent: recrawl\nAllow:\nUser-agent: a\nAllow:\nUser-agent: recrawl\nDisallow: /", "/", False),
        ("User-agent: recrawl\n\nUser-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: other\nUser-agent: recrawl\nDisallow: /a", "/a", False),
        ("User-agent: other\nDisallow: /a", "/a", True),
        ("User-agent: other\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/a", True),
        ("User-agent: recrawler\nDisallow: /a", "/a", True),
        ("User-agent: rec\nDisallow: /a", "/a", True),
        ("User-agent: recrawl/2.0 (test)\nDisallow: /a", "/a", False),
        ("User-agent: recrawl*\nDisallow: /a", "/a", False),
        # Lines that mean nothing do not end a group.
        ("User-agent: recrawl\nNoindex: /q\nUser-agent: other\nDisallow: /a", "/a", False),
        ("User-agent: *\nSitemap: http://x/s\nDisallow: /a", "/a", False),
        # Rules without a group count for nobody; comments are none of our business.
        ("Disallow: /a", "/a", True),
        ("User-agent: * # all\nDisallow: /a # secret", "/a", False),
        ("#User-agent: *\nDisallow: /a", "/a", True),
        # What people write.
        ("User-agent:*\rDisallow:/a\r", "/a", False),
        ("User agent: *\nDissallow: /a", "/a", False),
        ("user-agent *\ndisallow /a", "/a", False),
        ("  User-agent : *\n\tDisallow\t:\t/a", "/a", False),
        ("User-agent: *\nDisallowed: /a", "/a", True),
        ("<html><body>User-agent: *<br>Disallow: /a</body>", "/a", True),
    ],
)  # fmt: skip
def test_rules(text: str, path: str, expected: bool) -> None:
    assert allowed(text, path) is expected


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a",
        "User-agent: *\nDisallow: /a".encode("utf-16"),
        "User-agent: *\nDisallow: /a".encode("utf-16-le"),
        b"User-agent: *\n\xff\xfe\x00 junk\nDisallow: /a",
        b"User-agent: *\nDisallow: /\x00a",
        b"\x00\x00User-agent: *\nDisallow: /a",
        "User-agent: *\nFoo:\u2028\x85\x0b\nDisallow: /a".encode(),
    ],
)
def test_encodings_and_zero_bytes(body: bytes) -> None:
    assert not allowed(body, "/a")
    assert allowed(body, "/b")


def test_an_agent_with_version_is_matched_by_its_name() -> None:
    assert rules("User-agent: recrawl\nDisallow: /", "Recrawl/0.1 (+https://x)").agent == "recrawl"
    assert not allowed("User-agent: recrawl\nDisallow: /", "/a", "Recrawl/0.1 (+https://x)")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451, 301, 304])
def test_absent_means_all_allowed(status: int) -> None:
    robots = Robots.from_answer(status, b"User-agent: *\nDisallow: /", NOW, agent="recrawl")
    assert robots.allows(SITE + "/a")
    assert not robots.hold_off
    assert robots.expires == NOW + 86400


@pytest.mark.parametrize(
    ("status", "failure"), [(500, False), (503, False), (429, False), (999, False), (0, False), (200, True)]
)
def test_unreachable_means_hold_off(status: int, failure: bool) -> None:
    robots = Robots.from_answer(status, b"User-agent: *\nAllow: /", NOW, agent="recrawl", failure=failure)
    assert robots.hold_off
    assert not robots.allows(SITE + "/a")
    assert robots.expires == NOW + RETRY
    assert robots.held_since == NOW


def test_waits_double_up_to_a_day_and_after_thirty_days_all_is_allowed() -> None:
    now = NOW
    robots = Robots.from_answer(500, b"", now, agent="recrawl")
    waits = []
    while robots.hold_off:
        waits.append(robots.expires - now)
        now = robots.expires
        robots = Robots.from_answer(500, b"", now, agent="recrawl", held_since=robots.held_since)
        assert len(waits) < 100
    assert waits[:5] == [300, 300, 600, 1200, 2400]
    assert max(waits) == 86400
    assert GIVE_UP <= now - NOW < GIVE_UP + 86400
    assert robots.allows(SITE + "/a")
    assert robots.held_since == NOW
    # One good answer, and the count starts anew.
    assert Robots.from_answer(200, b"", now, agent="recrawl", held_since=NOW).held_since == 0.0


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nRequest-rate: 1/10", 10.0),
        ("User-agent: *\nRequest-rate: 2/1m", 30.0),
        ("User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/5", 5.0),
        ("User-agent: *\nCrawl-delay: -1", 0.0),
        ("User-agent: *\nCrawl-delay: nan", 0.0),
        ("User-agent: *\nCrawl-delay: 1e999", 0.0),
        ("User-agent: *\nRequest-rate: 1/" + "9" * 400, 0.0),
        ("User-agent: *\nRequest-rate: 1/" + "9" * 9999, 0.0),
        ("User-agent: other\nCrawl-delay: 9", 0.0),
        ("", 0.0),
    ],
)
def test_delay(text: str, delay: float) -> None:
    assert rules(text).delay == delay


def test_sitemaps_are_kept_in_order_and_once() -> None:
    text = "Sitemap: https://x/b.xml\nUser-agent: *\nDisallow: /\nsitemap:https://x/a.xml\nSitemap: https://x/b.xml\nSitemap:"
    assert rules(text).sitemaps == ("https://x/b.xml", "https://x/a.xml")
    assert len(rules("".join(f"Sitemap: /{i}\n" for i in range(5000))).sitemaps) == 1000


def test_only_the_first_500_kib_count_and_no_half_line() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    filler = "#" * 99 + "\n"
    body = (head + filler * (MAX_BYTES // 100)).encode()[: MAX_BYTES - 12] + b"\nDisallow: /bcd\nDisallow: /e\n"
    robots = rules(body)
    assert len(robots.body) <= MAX_BYTES
    assert robots.body.endswith(b"\n")
    assert [robots.allows(SITE + path) for path in ("/a", "/b", "/bcd", "/e")] == [False, True, True, True]
    assert rules(b"x" * (2 * MAX_BYTES)).body == b""


@given(
    st.integers(0, 1000),
    st.one_of(st.binary(max_size=300), st.text("uUserAagnt: -*/$adisow#\n\r?%", max_size=300).map(str.encode)),
    st.floats(0, 4e9),
    st.booleans(),
    st.floats(0, 4e9),
    st.text(max_size=30),
)
def test_any_answer_gives_rules_and_a_stored_copy_gives_the_same(
    status: int, body: bytes, now: float, failure: bool, since: float, path: str
) -> None:
    first = Robots.from_answer(status, body, now, agent="recrawl", failure=failure, held_since=since)
    again = Robots.from_answer(
        first.status,
        first.body,
        first.fetched,
        agent=first.agent,
        failure=first.failure,
        held_since=first.held_since,
    )
    assert first == again
    assert first.allows(SITE + "/" + path) is again.allows(SITE + "/" + path)
    assert first.expires >= now
    assert first.delay >= 0


@pytest.mark.parametrize("url", ["http://[", "http://x/\ud800", "", "javascript:1", "http://x/%zz%"])
def test_addresses_that_are_none_do_not_raise(url: str) -> None:
    assert rules("User-agent: *\nDisallow: /q").allows(url) in (True, False)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules("").delay = 1.0  # type: ignore[misc]


HOSTILE = {
    "100,000 rules": "User-agent: *\n" + "".join(f"Disallow: /x{i}\n" for i in range(100_000)),
    "100,000 wildcard rules": "User-agent: *\n" + "".join(f"Disallow: /*q{i}$\n" for i in range(100_000)),
    "one rule again and again": "User-agent: *\n" + "Disallow: /*a*a*a*a*b\n" * 25_000,
    "one rule of wildcards": "User-agent: *\nDisallow: /" + "*a" * 250_000 + "b\n",
    "wildcards": "User-agent: *\n" + "".join(f"Disallow: /{'*a' * 99}{i}\n" for i in range(2_400)),
    "dollars": "User-agent: *\nDisallow: /" + "$" * 400_000,
    "percents": "User-agent: *\nDisallow: /" + "%" * 400_000,
    # Every rule counts for every agent of its group: n agents and n rules are n² in a plain reader.
    "many agents, many rules": "".join(f"User-agent: {i}\n" for i in range(14_000)) + "Allow: /x\n" * 20_000,
    "many groups of ours": "User-agent: *\nDisallow: /x\n" * 18_000,
    "spaces": "User-agent:" + " " * 250_000 + "*\nDisallow" + " " * 240_000 + "/x",
    "line ends": "\r" * 500_000,
    "colons": "User-agent: *\n" + ":" * 400_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_cost_little(name: str) -> None:
    before = time.process_time()
    robots = rules(HOSTILE[name])
    for number in range(10):
        robots.allows(f"{SITE}/{'a' * 2000}{number}")
    # Generous: it takes a tenth of that; without the guards, minutes or hours.
    assert time.process_time() - before < 3.0


def test_rules_beyond_the_bound_keep_us_out_of_more_never_of_less() -> None:
    text = "User-agent: *\n" + "".join(f"Disallow: /d{i}/*.pdf\n" for i in range(6000)) + "Allow: /d5999/*\n"
    robots = rules(text)
    assert robots.allows(SITE + "/d1/a.html")
    assert not robots.allows(SITE + "/d1/a.pdf")
    assert not robots.allows(SITE + "/d5999/a.pdf")
    assert not robots.allows(SITE + "/d5999/a.html")
    assert robots.allows(SITE + "/other")
    assert not rules(text + "Disallow: *x\n").allows(SITE + "/other")


@pytest.mark.parametrize("mark", [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_a_partial_byte_order_mark_hides_no_group(mark: bytes) -> None:
    robots = Robots.from_answer(200, mark + b"User-agent: *\nDisallow: /x", 0.0, agent="recrawl")
    assert not robots.allows("https://a.example/x")
