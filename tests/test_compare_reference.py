"""Steps of the reader process against plain implementations of the same, on hostile markup and texts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from turbohtml import Document, Element, Text

from recrawl.compare import significance
from recrawl.compare.common_ends import split_texts
from recrawl.compare.content import changed_lines as changes
from recrawl.compare.content import lines as content
from recrawl.compare.content import places
from recrawl.compare.content.judge import content_words
from recrawl.compare.content.lines import Line
from recrawl.compare.divergence import distance
from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.significance import _test, significant, split_significant
from recrawl.compare.tree.documents import parse_html
from recrawl.compare.tree.renderers import text_lines
from recrawl.words import mostly_spaceless, share_of_words, words

_PIECES = [
    *(
        "<p>",
        "</p>",
        "<b>",
        "</b>",
        "<i class=nav>",
        "</i>",
        "<a href=x id=menu-1>",
        "</a>",
        "<span>",
        "</span>",
        "<em>",
    ),
    *(
        "<div class='top menu'>",
        "</div>",
        "<nav>",
        "</nav>",
        "<footer role=banner>",
        "</footer>",
        "<h1>",
        "</h1>",
        "<h2>",
    ),
    *("<table>", "<tr>", "<td>", "</table>", "<ul>", "<li>", "</ul>", "<pre>", "</pre>", "<listing>", "<textarea>"),
    *(
        "</textarea>",
        "<script>",
        "</script>",
        "<style>",
        "</style>",
        "<noscript>",
        "<template>",
        "</template>",
        "<svg>",
    ),
    *("</svg>", "<math><mi>", "<select><option>", "</select>", "<br>", "<hr>", "<body class=header>", "<frameset>"),
    *("<!-- tea -->", "<title>", "</title>", "<form>", "<button>", "<font>", "<code>", "</code>", "<main id=toc>"),
    *("<iframe class=menu>", "</iframe>", "<xmp>", "</xmp>", "<noembed>", "<p title=' class=' role=search>", "<?a b?>"),
    *(
        "tea",
        " ",
        "\n",
        "  cup\n of ",
        "Tea!",
        "&nbsp;",
        "&lt;b&gt;",
        "\x05",
        " \x06 ",
        "\x1e",
        "\x01\x02",
        "{% a\n b %}",
    ),
    *(
        "$Id: x$",
        "ﬁne",
        "e\u0301",
        "\u2003",
        "Σ",
        "日本",
        "12 May 2024",
        "updated: 3.5.2024",
        "\xa0x",
        "<",
        "&",
        "\x0c",
    ),
]
_MARKUP = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)
_NOISES = st.sampled_from(
    [Noise(), Noise(selectors=("nav",)), Noise(patterns=("tea",)), Noise(frame=("p",), content=("b",))]
)
_TEXTS = st.lists(
    st.sampled_from(["tea", "cup", "of", "the", "ΑΣ", "Σ", "日本", "x,y", "\n", "\u2003", ""]), max_size=60
)
_KEYS = st.lists(
    st.sampled_from(["tea", "a cup", "menu 1", "menu 2", "updated 3 may 2024", "updated 4 may 2024"]), max_size=12
)


def _plain_lines(tree: Document, noise: Noise) -> list[str]:
    """The stretches of a page, with one walk for each inline tag."""
    root = text.visible_root(tree, noise)
    if root is None:
        return []
    for tag in sorted(text.INLINE):
        for node in tree.select(tag):
            node.unwrap()
    for comment in [node for node in root.descendants if not isinstance(node, Element | Text)]:
        comment.extract()
    root.normalize()
    for block in root.select("pre,textarea,listing,xmp"):
        block.replace_with(Text(text.BREAK + text.BREAK.join(block.strings).replace("\n", text.BREAK) + text.BREAK))
    found = [line for part in text.BREAK.join(root.strings).split(text.BREAK) if (line := " ".join(part.split()))]
    if noise.patterns:
        erased = noise.erase("\n".join(found)).split("\n")
        found = [line for part in erased if (line := " ".join(part.split()))]
    return found


def _mark_places(tree: Document, noise: Noise) -> None:
    """Put marks into the tree itself, around the elements that selectors find."""
    body = tree.find("body")
    if body is None:
        return
    for node in body.select("h1,h2,h3,h4,h5,h6"):
        _surround(node, *places.HEADING)
    for selector in (places.FRAME_ELEMENTS, *noise.frame):
        for node in body.select(selector):
            _surround(node, *places.ELEMENT)
    for selector in noise.content:
        for node in body.select(selector):
            _surround(node, *places.OWN)
    found = body.select("[class],[id]")
    for node in [node for node in found for name in ("class", "id") if name in node.attrs][:2_000]:
        names = f"{node.attr('class') or ''} {node.attr('id') or ''}"
        if places._FRAME_CLASS.search(names) and node.tag not in places._NEVER_FRAME:
            _surround(node, *places.NAMED)


def _surround(node: Element, before: str, after: str) -> None:
    node.insert_before(Text(f"{text.BREAK}{before}{text.BREAK}"))
    node.insert_after(Text(f"{text.BREAK}{after}{text.BREAK}"))


def _plain_content(tree: Document, noise: Noise) -> list[Line]:
    """`content.lines` from folded lines."""
    _mark_places(tree, noise)
    depth = [0, 0, 0, 0]
    found: list[Line] = []
    named: list[bool] = []
    for line in _plain_lines(tree, noise):
        if line in content._MARKS:
            kind, step = content._MARKS[line]
            depth[kind] += step
        elif (plain := Line.of(line)).text:
            found.append(Line(plain.text, plain.key, depth[0] > 0, depth[2] > 0, depth[3] > 0))
            named.append(depth[1] > 0)
    sizes = [len(line.text) for line in found]
    believed = sum(size for size, mine in zip(sizes, named, strict=True) if mine) <= 0.95 * sum(sizes)
    return [line._replace(framed=line.framed or (believed and mine)) for line, mine in zip(found, named, strict=True)]


@given(_MARKUP, _NOISES)
def test_lines_are_those_of_a_walk_for_each_inline_tag(markup: str, noise: Noise) -> None:
    """So the lines that people see have the keys by which frame and content are told apart."""
    if noise.patterns:
        return
    found = text_lines(parse_html(markup, noise=noise).tree)
    assert [" ".join(part.split()) for line in found for part in line.parts] == _plain_lines(parse(markup), noise)


@given(_MARKUP, _NOISES)
def test_lines_of_content_are_those_of_folded_lines(markup: str, noise: Noise) -> None:
    assert content.lines(parse(markup), noise) == _plain_content(parse(markup), noise)


@given(_MARKUP, _MARKUP, _MARKUP, _MARKUP, _NOISES)
def test_lines_of_two_versions_are_those_of_each(start: str, old: str, new: str, end: str, noise: Noise) -> None:
    before, after = (f"{start}<p>one</p>{middle}<p>two</p>{end}" for middle in (old, new))
    one, two, *others = trees = [parse(version) for version in (before, after, before, after)]
    for tree in trees:
        text.visible(tree, noise)
    assert content.version_lines(one, two, noise) == [content.lines(tree, noise) for tree in others]


@pytest.mark.parametrize("names", [900, 1_100, 2_100])
def test_only_the_first_classes_and_ids_are_examined(names: int) -> None:
    page = "<body id=menu>" + "".join(f"<p class=c{n} id=i{n}>tea {n}" for n in range(names)) + "<p class=nav>cup"
    lines = content.lines(parse(page))
    assert (lines == _plain_content(parse(page), Noise()), lines[-1].framed) == (True, names < 1_000)


def _plain_surplus(version: Sequence[Line], surplus: Counter[int]) -> list[int]:
    found = []
    for place, line in enumerate(version):
        if surplus[line.key] > 0:
            surplus[line.key] -= 1
            found.append(place)
    return found


def _plain_instead(old: Sequence[Line], new: Sequence[Line]) -> tuple[list[tuple[int, bool, int]], int]:
    """For each changed line its key, whether it was added, and the line in its place, by whole counters and walks."""
    before, after = Counter(line.key for line in old), Counter(line.key for line in new)
    removed, added = _plain_surplus(old, before - after), _plain_surplus(new, after - before)
    partner: dict[tuple[bool, int], int] = {}

    def skeleton(line: Line) -> str:
        return changes._SKELETON.sub("0", line.text)

    alike = defaultdict(list)
    for place in reversed(removed):
        alike[skeleton(old[place])].append(place)
    for place in added:
        if alike[skeleton(new[place])]:
            other = alike[skeleton(new[place])].pop()
            partner[True, place], partner[False, other] = old[other].key, new[place].key

    def anchor(version: Sequence[Line], place: int) -> int:
        return next((line.key for line in reversed(version[:place]) if before[line.key] and after[line.key]), 0)

    there = defaultdict(list)
    for place in removed:
        if (False, place) not in partner:
            there[anchor(old, place)].append(place)
    for place in added:
        if (True, place) not in partner and there[anchor(new, place)]:
            other = there[anchor(new, place)].pop(0)
            partner[True, place], partner[False, other] = old[other].key, new[place].key
    rows = [(old[place].key, False, partner.get((False, place), 0)) for place in removed]
    rows += [(new[place].key, True, partner.get((True, place), 0)) for place in added]
    return rows, sum(len(line.text.split()) for line in [*old, *new])


@given(_KEYS, _KEYS, _KEYS, _KEYS)
def test_changed_lines_are_those_of_a_whole_comparison(
    start: list[str], old: list[str], new: list[str], end: list[str]
) -> None:
    versions = [list(map(Line.of, [*start, *middle, *end])) for middle in (old, new)]
    found = [(change.key, change.added, change.instead) for change in changes.changed_lines(*versions)]
    assert (found, content_words(*versions)) == _plain_instead(*versions)


@given(_TEXTS, _TEXTS, _TEXTS, _TEXTS)
def test_texts_are_split_between_words(start: list[str], old: list[str], new: list[str], end: list[str]) -> None:
    before, after = (" ".join([*start, *middle, *end]) for middle in (old, new))
    common, *parts = split_texts(before, after)
    for whole, part in zip((before, after), parts, strict=True):
        assert Counter(common.split()) + Counter(part.split()) == Counter(whole.split())
        assert Counter(words(common)) + Counter(words(part)) == Counter(words(whole))


@given(_TEXTS, _TEXTS, _TEXTS, st.integers(1, 12))
def test_distance_and_significance_are_those_of_whole_texts(
    start: list[str], old: list[str], new: list[str], times: int
) -> None:
    before, after = (" ".join(" ".join([*start * times, *middle, *start]).split()) for middle in (old, new))
    a, b = before.split(), after.split()
    if mostly_spaceless(before, after):
        a, b = words(before), words(after)
        size: Callable[[Counter[str]], float] = share_of_words
    else:
        if len(before) + len(after) > 12 * (len(a) + len(b)):
            a, b = words(before), words(after)
        size = Counter[str].total
    apart = size(Counter(a) - Counter(b)) + size(Counter(b) - Counter(a))
    total = size(Counter(a)) + size(Counter(b))
    assert distance(before, after) == (math.ceil(apart - 1e-6), math.ceil(total - 1e-6))
    one, other = Counter(words(before)), Counter(words(after))
    both = sorted(one.keys() | other.keys())
    counts = np.array([[count[word] for word in both] for count in (one, other)], np.float64)
    tested = _test(counts[0], counts[1], np.zeros(len(both), np.int64), np.ones(1, np.bool_))
    assert significant(before, after) == (before != after and bool(tested[0]))


@given(st.lists(st.sampled_from("abcdefghij"), max_size=12), st.lists(st.sampled_from("abcdxyz"), max_size=12))
@pytest.mark.parametrize("times", [4, 12, 90])
def test_a_slight_change_is_one_that_the_whole_test_calls_insignificant(
    times: int, old: list[str], new: list[str]
) -> None:
    start = " ".join(["a b c d e a b a f g h i j k l m n o p"] * times)
    texts = split_texts(f"{start} {' '.join(old)} end", f"{start} {' '.join(new)} end")
    fast = split_significant(texts)
    with mock.patch.object(significance, "_slight", return_value=False):
        assert split_significant(texts) == fast


def test_small_changes_of_long_texts_are_slight() -> None:
    text = "It is said that the page of the day is the first of the site and that it is a page. " * 30
    texts = split_texts(f"{text}Revision 7 of it {text}", f"{text}Revision 8 of it {text}")
    assert significance._slight(texts.common, Counter(["7"]), Counter(["8"]))
    assert not significance._slight(texts.common, Counter(["seven"] * 80), Counter(["8"]))
