"""Fast paths of a visit give what the slow ways give: links, requisites, text, priors, the brake, rows, headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.change_prior import FURTHEST, LARGEST, _weights, change_prior, change_priors, features
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.text import plain, visible
from recrawl.crawl.visits import results
from recrawl.crawl.visits.live import Prefetch
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.shared_text import SharedTexts
from recrawl.discover.requisites import Requisites, _add_link, _FoundUrls, absolute, of_page, style_urls
from recrawl.discover.urls import canonical
from recrawl.fetch.http import parse_head
from recrawl.fetch.lanes import Lanes
from recrawl.model import Answer, RequisiteLevel, State
from recrawl.record.rows import Batch, NewPage, PageState, RequisiteBatch, UnchangedPage, unvisited
from recrawl.record.store import SqliteStore

WHITE = "".join(filter(str.isspace, map(chr, range(0x110000))))
SOUP = st.lists(
    st.sampled_from(
        [
            *("<p>", "</p>", "<b>", " ", "\n", "\t\u00a0", "one", "two ", "\x1f", "<br>", "<li>", "<svg>", "</svg>"),
            *(
                "<style>p{}</style>",
                "<STYLE>@import 'a.css';</STYLE>",
                "<style>@IMPORT url(b.css)</style>",
                "<template>",
            ),
            *("<link rel=stylesheet href=c.css>", "<link href=d.css>", "<LINK rel='preload' as=style href=e.css>"),
            *("<base>", "<base href=/x/>", "<base href>", "<base href='https://b.example/'>", "</template>"),
            *("<script>three</script>", "<noscript>four</noscript>", "<link rel=icon href=f.ico>", "<frameset>"),
        ]
    ),
    max_size=14,
).map("".join)


@given(
    st.lists(st.sampled_from(["../", "./", "a", "b/", "/", ".", "x.html", "#c", "?d=1", "..", ":", " "]), max_size=6)
)
@pytest.mark.parametrize("folders", ["", "x/", "x/y/", "x//y/z/"])
def test_links_to_parent_folders_are_joined_as_the_parser_joins_them(folders: str, parts: list[str]) -> None:
    link, base = "../" + "".join(parts), f"https://a.example/{folders}page.html"
    # A leading tab means nothing to the parser but keeps the link off the fast path.
    assert canonical(link, base) == canonical("\t" + link, base)


@given(SOUP, st.sampled_from([RequisiteLevel.CSS, RequisiteLevel.ALL]))
def test_stylesheets_are_those_that_selectors_find(html: str, level: RequisiteLevel) -> None:
    tree, url = parse(html), "https://a.example/p/"
    node = tree.select_one("base[href]")
    found = _FoundUrls(url if node is None else absolute(node.attr("href") or "", url) or url)
    for element in tree.select("link[rel], style"):
        if element.tag == "style":
            found.add_style(style_urls(element.text), level)
        else:
            _add_link(found, element, level)
    assert of_page(tree, url, level) == Requisites(*found.requisites())


@given(SOUP)
def test_the_text_is_that_of_all_text_nodes(html: str) -> None:
    tree = parse(html)
    for node in tree.select("script, style, noscript"):
        node.decompose()
    root = tree.find("body") or tree.find("frameset")
    assert visible(parse(html)) == ("" if root is None else " ".join(" ".join(root.strings).split()))


@given(
    st.text(st.sampled_from("ab\u00e9\u4e2d\U0001f600\ud800" + WHITE), max_size=60),
    st.sampled_from(["", "x" * 1000, " " * 1000]),
)
def test_white_space_is_folded_as_splitting_folds_it(text: str, rest: str) -> None:
    assert plain(text + rest) == " ".join((text + rest).split())
    assert plain(rest + text + WHITE) == " ".join((rest + text).split())


def test_each_white_space_is_folded() -> None:
    text = "".join(f"{'word' * 10}{space}" for space in WHITE * 2)
    assert plain(text) == " ".join(text.split())


@given(st.text("ab /.-_0129\u0662", max_size=40), st.text("a 0129\u0662\u00e9,", max_size=60), st.floats(0, 3e9))
def test_the_prior_is_the_weighted_sum_of_the_features(path: str, text: str, at: float) -> None:
    url, (mean, spread, weight, total) = f"https://a.example/{path}", _weights()
    for value, middle, width, factor in zip(features(url, text, at), mean, spread, weight, strict=True):
        total += factor * min(max((value - middle) / width, -FURTHEST), FURTHEST)
    assert change_prior(url, text, at) == min(max(total, -LARGEST), LARGEST)


@given(
    st.lists(st.tuples(st.text("ab/.-_0129", max_size=20), st.text("a 2019\u00e9", max_size=40), st.floats(0, 3e9))),
)
def test_the_priors_of_many_pages_are_those_of_each(pages: list[tuple[str, str, float]]) -> None:
    assert change_priors(pages) == [change_prior(*one) for one in pages]


@given(st.lists(st.sampled_from(["2024", "1999", "20", "20245", "a", " ", "b1", "\u0662"]), max_size=12).map("".join))
def test_numbers_and_years_are_counted_as_regular_expressions_find_them(text: str) -> None:
    numbers = re.findall("[0-9]+", text)
    share, years, different = (features("https://a.example/", text, 1.72e9)[place] for place in (-7, -6, -5))
    assert share == len(numbers) / (text.count(" ") + 1)
    found = [number for number in numbers if len(number) == 4 and 1980 <= int(number) < 2050]
    assert (round(2.718281828459045**years), different) == (len(found) + 1, len(set(found)))


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with closing(SqliteStore(Path(":memory:"), create=True)) as made:
        pages = [NewPage(n, n, 0, 0, 0, -1, 0.0, 0, 0, 0, f"https://a.example/{n}") for n in range(300)]
        needed = RequisiteBatch(pages=[(n, 1, bytes([n % 250])) for n in range(0, 300, 2)])
        made.commit(Batch(pages=pages, requisites=needed), [])
        yield made


def test_requisites_come_with_the_rows_of_pages(store: SqliteStore) -> None:
    lanes = Lanes(delay=0.0)
    for page in range(300):
        lanes.push(0, page)
    ahead = Prefetch(store, lanes, lambda: 0.0, requisites=True)
    asked: list[str] = []
    store.db.set_trace_callback(asked.append)
    while (turn := lanes.pop(0.0)) is not None:
        page = turn[1]
        ahead.take(page, 0)
        assert ahead.needs(page) == (None if page % 2 else (1, bytes([page % 250])))
        lanes.done(0, 0.0, status=200)
    assert len(asked) == 9  # rows, hints and requisites, a hundred pages at a time


def test_a_table_of_any_length_is_read_to_its_end(store: SqliteStore) -> None:
    rows = [row for (row,) in store.db.execute("SELECT id FROM pages ORDER BY id")]
    assert rows == list(range(300))
    assert list(store.db.execute("SELECT id FROM pages WHERE id < 0")) == []


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=60))
def test_the_brake_is_that_of_counting_all_recent_pages_at_every_visit(visits: list[tuple[int, int]]) -> None:
    texts, stored = SharedTexts(), {page: bytes([100 + page]) for page in range(13)}
    recent: dict[int, tuple[bytes, bytes]] = {}
    brake = b""
    for page, number in visits:
        digest = bytes([number]) if number else stored[page]
        before, former = stored[page], recent.pop(page, (b"", b""))[1]
        recent[page] = (digest, former if before == digest else before)
        same = [it for it, (text, _) in recent.items() if text == digest]
        expected: list[int] = []
        if brake:
            if 4 * sum(text == brake for text, _ in recent.values()) < len(recent):
                brake = b""
            expected = [page] if digest == brake else []
        elif len({was for text, was in recent.values() if text == digest and was}) >= 5 and 2 * len(same) > len(recent):
            brake, expected = digest, same
        assert texts.refuses(0, page, digest, before, 0.0, "") == expected
        if not expected:
            stored[page] = digest


@given(
    st.sampled_from([State.LIVE, State.MISSING, State.BARRED]),
    *(st.integers(0, 2), st.integers(0, 1), st.sampled_from([-1, 5]), st.sampled_from([200, 304])),
    *(st.sampled_from(["", '"a"', '"b"', "\u00e9", "x" * 600]), st.sampled_from(["", '"a"'])),
)
def test_the_short_row_of_an_unchanged_page_says_what_the_whole_row_says(
    state: State, failures: int, misses: int, target: int, status: int, sent: str, stored: str
) -> None:
    before = unvisited(7)._replace(
        state=int(state), failures=failures, misses=misses, target=target, payload=b"p" * 20, etag=stored, visits=3
    )
    visit = PageVisit(7, "http://a.example/", 0, 0, 0, before, None, None, "http://a.example/")
    answer = Answer.made(visit.url, status, [("ETag", sent)] if sent else [], at=9.0)
    row = results.unchanged(visit, 1, 1, answer).state
    whole = results._back(before, answer, before.quiet + 1 if status == 304 else 0)
    if isinstance(row, PageState):
        assert row == whole
    else:
        assert before._replace(**row._asdict()) == whole
    live = state is State.LIVE and not failures and not misses and target < 0
    assert isinstance(row, UnchangedPage) == live


_BLOCK = st.lists(
    st.sampled_from([b"A: b\r\n", b"ETag: x\r\n", b"junk\r\n", b"A: " + b"c" * 300 + b"\r\n"]), max_size=4
)


@given(st.lists(st.tuples(st.sampled_from([b"103", b"200", b"x"]), _BLOCK), max_size=3), _BLOCK, st.booleans())
def test_the_last_header_block_counts(
    blocks: list[tuple[bytes, list[bytes]]], trailers: list[bytes], ended: bool
) -> None:
    """Whether there is one block, as nearly always, or interim answers before it and trailers behind it."""
    lines = [line for status, block in blocks for line in (b"HTTP/1.1 " + status + b"\r\n", *block, b"\r\n")]
    lines = lines + trailers if ended or not lines else lines[:-1]
    status, expected = blocks[-1] if blocks else (b"", trailers)
    found, headers, fields = parse_head(lines)
    pairs = [line.decode().strip().split(": ") for line in expected if b":" in line]
    assert found == (int(status) if status.isdigit() else 0)
    assert [list(pair) for pair in headers] == pairs
    assert fields == {name.lower(): value for name, value in pairs}
