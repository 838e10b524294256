"""Which blocks of a page are its content: what a reader came for, as opposed to the frame of its site.

Each block gets a probability from features of its text, its place, the elements around it and the rest of the page, by
decision trees that were fitted on labelled pages (`python -m benchmarks.extraction fit`). Which blocks a page keeps
follows from the probabilities: the choice whose words have the highest expected agreement (F1) with the content.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.compare.content.judge import LineEvidence
from recrawl.compare.content.lines import Line
from recrawl.compare.tree.blocks import Ancestor, BlockKind, ContainerKind, ContentBlock, ContentTree

_GROUPS = (
    "nav|menu|breadcrumb|crumb|toc|skip|pagination|pager|paging|tabs|tablist|toolbar",  # nav
    "foot|copyright|legal|bottom|colophon|disclaimer",  # foot
    "header|masthead|topbar|banner|hero|^top$",  # head
    "side|aside|rail|widget|secondary|column|^col$",  # side
    (
        "relat|recommend|similar|^more$|^also$|popular|trending|latest|recent|upsell|cross|suggest|next|"
        "prev|carousel|slider|swiper|featured|teaser|promo|^read$"
    ),  # related
    "social|share|sharing|follow|facebook|twitter|like",  # social
    (
        "cookie|consent|gdpr|modal|popup|dialog|overlay|drawer|toast|tooltip|offcanvas|dropdown|flyout|lightbox"
    ),  # cookie
    "advert|sponsor|^ads?$|outbrain|taboola|banner",  # ad
    (
        "form|search|login|signin|signup|subscri|newsletter|filter|sort|facet|input|button|btn|select|"
        "cart|cta|checkout|contact|account"
    ),  # form
    "comment|disqus|repl|discuss|respond",  # comment
    "post|thread|topic|message|forum|answer|question|reaction|cooked",  # forum
    "review|rating|stars|testimonial|feedback|customer",  # review
    "meta|byline|author|date|time|tag|categor|info|bio|avatar|badge|label|publish|caption|credit",  # meta
    "article|entry|story|blog|single|^post$|rich|prose|markdown|wysiwyg|^rte$|body|copy|text",  # article
    "content|main|body|page|primary",  # content
    "title|headline|heading|subtitle|name",  # title
    (
        "product|pdp|item|price|sku|variant|swatch|gallery|description|detail|spec|feature|shipping|stock|offer"
    ),  # product
    "list|grid|card|collection|catalog|result|tile|row|item|archive|feed|loop",  # list
    "accordion|collaps|faq|^tab$|tabpanel|panel|toggle|expand|details|disclosure",  # fold
    "section|block|module|service|feature|about|benefit|step|wrapper|container|row",  # service
    "highlight|code|doc|api|reference|sphinx|guide",  # code
    "hidden|^sr$|visually|screen|noprint|^none$|mobile|print|a11y",  # utility
)
"""Words in the names of elements, in groups."""
_EACH_GROUP = tuple(re.compile(words) for words in _GROUPS)
_TAG_GROUPS = {
    "nav": 0, "footer": 1, "header": 2, "aside": 3, "main": 4, "article": 5, "section": 6, "form": 7, "table": 8,
    "ul": 9, "ol": 9, "dl": 9, "figure": 10, "figcaption": 10, "blockquote": 11, "details": 12, "dialog": 13, "a": 14,
    "li": 15, "p": 16, "button": 17, "label": 17, "address": 18, "td": 8,
}  # fmt: skip
_TAGS = 19
_ROLES = {
    "navigation": 0, "contentinfo": 1, "banner": 2, "complementary": 3, "search": 7, "main": 4, "article": 5,
    "dialog": 13, "alertdialog": 13, "form": 7, "tabpanel": 12, "menu": 0, "menubar": 0, "button": 17,
}  # fmt: skip
_NAME_WORD = re.compile("[a-z]{2,40}")
_LONG = 8
"""A paragraph of as many words is not repeated."""
_FEW_PAGES = 4
"""With fewer other pages nothing is known of a site."""
_NO_KEY = Line.of("").key
_MAX_JUDGED = 20_000
"""Blocks that are judged together; the parts of a longer page are judged apart."""
_ROWS = 512
"""Blocks that pass through the trees together."""
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?。\uff01\uff1f](?:\s|$|[\"”\u2019)])")
_DATE = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\bago\b|\b20\d\d\b",
    re.IGNORECASE,
)
_PRICE = re.compile(r"[$€£¥₹]\s?\d|\d\s?(?:€|USD|EUR|GBP)")
_WORD_GROUPS = (
    "copyright rights reserved privacy terms cookie cookies legal",
    "log login sign signin signup subscribe newsletter register account email e mail password",
    "share tweet facebook twitter linkedin instagram follow whatsapp pinterest copy youtube x",
    "more learn view shop show load click started buy cart bag basket add",
    "related recommended popular trending latest recent next previous also similar",
    "comment comments reply replies leave likes like",
    "by written author posted published updated min minutes read ago",
    "search menu skip filter sort home back contact toggle close wishlist open",
    "review reviews rating ratings stars verified star helpful",
    "shipping returns delivery stock sold quantity size color colour sku price sale",
    "we our us you your i my",
    (
        "jan feb mar apr may jun jul aug sep oct nov dec january february march april june july august "
        "september october november december"
    ),
)
"""Words of texts, in groups."""
_GROUPS_OF = {word: 1 << number for number, words in enumerate(_WORD_GROUPS) for word in words.split()}
_READ_WORDS = 30
"""Of a block's words, those in which the words of these groups are looked for."""
_SAMPLE = 300
"""Characters of a block in which letters and digits are counted."""
_FULL_STOPS = frozenset(".!?。")
_UPPER, _DIGIT, _MARKS = re.compile("[A-Z]"), re.compile("[0-9]"), re.compile("[|·•»\u203a]")
_KINDS = {kind: number for number, kind in enumerate(BlockKind)}
_CONTAINER_KINDS = (
    ContainerKind.ITEM, ContainerKind.QUOTE, ContainerKind.CAPTION, ContainerKind.TERM, ContainerKind.DEFINITION,
    ContainerKind.CELL, ContainerKind.FORM,
)  # fmt: skip
_CONTAINER_BITS = {kind: 1 << number for number, kind in enumerate(_CONTAINER_KINDS)}
_URL_WORDS = (
    r"/products?/|/p/|/dp/|/itm/|/item",
    r"/collections?|/categor|/shop|/c/|/store",
    r"forum|thread|topic|/t/|discuss|community|/questions/|viewtopic|showthread",
    r"docs?[./]|/documentation|/guide|/reference|/manual|/api|/wiki|/help",
    r"blog|news|article|/20\d\d|/posts?/|story",
    r"/services?|/solutions?|/about|/features?|/platform",
    r"/tags?/|/topics?/|/list|/search|/browse|/directory|/events?|/jobs?|/courses?|/archive",
)
"""What the URLs of kinds of pages have in them."""
_URL = tuple(re.compile(word) for word in _URL_WORDS)
_TYPES = (
    ("newsarticle", "article", "blogposting", "techarticle", "report"), ("product", "productgroup", "offer"),
    ("itemlist", "collectionpage", "offercatalog", "searchresultspage"),
    ("discussionforumposting", "qapage", "question", "comment"), ("service", "localbusiness", "professionalservice"),
    ("webpage", "website"), ("faqpage",), ("course", "event", "jobposting", "recipe", "book", "movie"),
)  # fmt: skip


_WITHIN, _SAID = 20, 21
"""Columns of `_text_features` that hold bits."""


class _TextMeasures(NamedTuple):
    """What is measured of a block's text alone."""

    words: int
    linked: float
    row: tuple[float | bool, ...]


class _Forest(NamedTuple):
    """Decision trees, one node after the other; a leaf leads to itself."""

    roots: Int32s
    features: Int32s
    limits: Float32s
    below: Int32s
    above: Int32s
    values: Float32s
    depth: int


@cache
def _forest() -> _Forest:
    told = json.loads(Path(__file__).with_name("main_content.json").read_text())
    below, above = np.array(told["below"], np.int32), np.array(told["above"], np.int32)
    return _Forest(
        np.array(told["roots"], np.int32), np.array(told["features"], np.int32), np.array(told["limits"], np.float32),
        below, above, np.array(told["values"], np.float32), told["depth"],
    )  # fmt: skip


def judge(tree: ContentTree) -> None:
    """Give each block the probability that it is content."""
    blocks = judged_blocks(tree)
    for block in tree.blocks:
        block.main = 0.0
    for start in range(0, len(blocks), _MAX_JUDGED):
        part = replace(tree, blocks=blocks[start : start + _MAX_JUDGED])
        for block, probability in zip(part.blocks, probabilities(block_features(part)).tolist(), strict=True):
            block.main = probability


def weigh_site(tree: ContentTree, known: LineEvidence) -> None:
    """Correct the probabilities of a judged page by the other pages of its site: what they share is frame.

    Headings stay as they are: the menus of a site name its pages as their headings do.
    """
    if known.pages < _FEW_PAGES:
        return
    for block in tree.blocks:
        if block.kind in (BlockKind.TEXT, BlockKind.TABLE, BlockKind.CONTROL):
            keys = [key for line in block.text.split("\n") if (key := Line.of(line).key) != _NO_KEY]
            pages = [known.pages_with(key, added=True) for key in keys]
            if pages and sum(pages) >= 2 * len(pages):
                block.main *= max(0.0, 1.0 - sum(pages) / (len(pages) * known.pages)) ** 2


def judged_blocks(tree: ContentTree) -> list[ContentBlock]:
    """The blocks that a reader may read."""
    return [block for block in tree.blocks if block.kind is not BlockKind.OTHER]


def probabilities(features: Floats) -> Floats:
    """For each row of features, the probability that the block is content."""
    forest = _forest()
    found = np.empty(len(features))
    for start in range(0, len(features), _ROWS):
        rows = features[start : start + _ROWS].astype(np.float32)
        at = np.repeat(forest.roots[None, :], len(rows), axis=0)
        row = np.arange(len(rows))[:, None]
        for _ in range(forest.depth):
            at = np.where(rows[row, forest.features[at]] <= forest.limits[at], forest.below[at], forest.above[at])
        found[start : start + len(rows)] = forest.values[at].sum(axis=1)
    chance: Floats = 1.0 / (1.0 + np.exp(-found))
    return chance


def main_blocks(tree: ContentTree) -> list[ContentBlock]:
    """The blocks of a judged page that are its content, in order; what the user has named is as he says.

    A paragraph that stands there twice (for small screens, in a quote) is kept once.
    """
    blocks = judged_blocks(tree)
    chances = np.array([block.main for block in blocks])
    words = np.array([len(_WORD.findall(block.text)) for block in blocks], np.float64)
    kept = best_choice(chances, words).tolist()
    said = set[str]()
    for number, block in enumerate(blocks):
        if kept[number] and block.kind is BlockKind.TEXT and words[number] >= _LONG:
            text = block.text
            kept[number] = text not in said
            said.add(text)
    chosen = [block.element.chosen for block in blocks] if tree.has_choice else [None] * len(blocks)
    return [
        block for block, keep, choice in zip(blocks, kept, chosen, strict=True) if (keep if choice is None else choice)
    ]


def best_choice(chances: Floats, words: Floats) -> Flags:
    """The blocks whose words have the highest expected F1 with the content: those above a limit that fits the page.

    >>> best_choice(np.array([0.9, 0.4, 0.1]), np.array([10.0, 10.0, 10.0])).tolist()
    [True, True, False]
    """
    order = np.argsort(-chances, kind="stable")
    expected = chances * words
    agreement = 2 * np.cumsum(expected[order]) / np.maximum(np.cumsum(words[order]) + expected.sum(), 1.0)
    kept = np.zeros(len(chances), np.bool_)
    if len(order):
        kept[order[: int(np.argmax(agreement)) + 1]] = True
    return kept


def block_features(tree: ContentTree) -> Floats:
    """One row for each block."""
    blocks = tree.blocks
    count = len(blocks)
    texts = [block.text for block in blocks]
    lowered = [_WORD.findall(text.lower()) for text in texts]
    own = [_text_features(block, text, words) for block, text, words in zip(blocks, texts, lowered, strict=True)]
    words = np.array([one.words for one in own], np.float64)
    linked = np.array([one.linked for one in own], np.float64)
    kinds = np.array([_KINDS[block.kind] for block in blocks], np.int64)
    ends = np.array([len(_SENTENCE_END.findall(text)) for text in texts], np.float64)
    prose = np.where((kinds == 1) & (linked < 0.5), np.where(words >= 8, words, 0.0), 0.0) * (ends > 0)
    texts_of = np.array([one.row for one in own], np.float64).reshape(count, -1)
    columns: list[Floats] = [texts_of, _bits(texts_of[:, _WITHIN], len(_CONTAINER_KINDS))]
    columns.append(_bits(texts_of[:, _SAID], len(_WORD_GROUPS)))
    columns.append(_places(blocks, words, linked, prose))
    columns.append(_sequence(words, linked, prose, ends, kinds))
    columns.append(_against_page(tree, texts, lowered))
    columns.append(np.repeat(_page_row(tree, words, linked, prose, kinds, texts)[None, :], count, axis=0))
    return np.hstack(columns)


def _text_features(block: ContentBlock, text: str, found: Sequence[str]) -> _TextMeasures:
    words, size = len(found), max(len(text), 1)
    spans = block.spans if not block.rows else [span for row in block.rows for cell in row for span in cell]
    linked = styled = links = images = 0
    for span in spans:
        if span.image:
            images += 1
        elif span.link:
            linked += len(span.text)
            links += 1
        if span.style & 1:
            styled += len(span.text)
    start = text[:_SAMPLE]
    said = 0
    for word in found[:_READ_WORDS]:
        said |= _GROUPS_OF.get(word, 0)
    within = 0
    depth = 0
    for container in block.within:
        within |= _CONTAINER_BITS.get(container.kind, 0)
        depth += container.kind is ContainerKind.LIST
    last = text[-1:]
    row = (
        words, size / max(words, 1), min(1.0, linked / size), links, min(1.0, styled / size), images,
        len(_UPPER.findall(start)) / max(len(start), 1), len(_DIGIT.findall(start)) / max(len(start), 1),
        text.count(","), len(_SENTENCE_END.findall(text)), last in _FULL_STOPS, last == ":", len(_MARKS.findall(text)),
        text.count("\n"), len(_DATE.findall(start)), len(_PRICE.findall(start)), _KINDS[block.kind], block.level,
        len(block.rows), depth, within, said, start[:1].islower(), start[:1].isdigit(), len(set(found)) / max(words, 1),
    )  # fmt: skip
    return _TextMeasures(words, min(1.0, linked / size), row)


@lru_cache(maxsize=16_384)
def _word_groups(word: str) -> int:
    """The groups of a word in a name, as bits."""
    return sum(1 << number for number, group in enumerate(_EACH_GROUP) if group.search(word))


@lru_cache(maxsize=4_096)
def _named(names: str) -> int:
    """The groups of names, as bits."""
    found = 0
    for word in _NAME_WORD.findall(names):
        found |= _word_groups(word)
    return found


def _bits(masks: Floats | Ints, count: int) -> Floats:
    """A column for each bit."""
    found: Floats = (masks.astype(np.int64)[:, None] >> np.arange(count) & 1).astype(np.float64)
    return found


class _Areas:
    """The elements around the blocks, outer ones before inner ones, with what stands in them."""

    def __init__(self, blocks: Sequence[ContentBlock]) -> None:
        self.number: dict[int, int] = {}
        self.parent: list[int] = []
        self.elements: list[Ancestor] = []
        self.own: list[int] = []
        self.near: list[int] = []
        self.named: list[int] = []
        self.tags: list[int] = []
        self.signature: list[str] = []
        self.of = np.array([self._of(block.element) for block in blocks], np.int64)

    def _of(self, element: Ancestor) -> int:
        waiting = []
        at: Ancestor | None = element
        while at is not None and id(at) not in self.number:
            waiting.append(at)
            at = at.parent
        for one in reversed(waiting):
            self._add(one)
        return self.number[id(element)]

    def _add(self, element: Ancestor) -> None:
        parent = self.number[id(element.parent)] if element.parent is not None else -1
        self.number[id(element)] = len(self.parent)
        self.parent.append(max(parent, 0))
        self.elements.append(element)
        own = _named(element.names) if element.names else 0
        tags = 1 << _TAG_GROUPS[element.tag] if element.tag in _TAG_GROUPS else 0
        tags |= 1 << _ROLES[element.role] if element.role in _ROLES else 0
        near = own
        at = parent
        for _ in range(3):
            if at < 0:
                break
            near |= self.own[at]
            at = self.parent[at] if at else -1
        self.own.append(own)
        self.near.append(near)
        self.named.append(own | (self.named[parent] if parent >= 0 else 0))
        self.tags.append(tags | (self.tags[parent] if parent >= 0 else 0))
        above = self.signature[parent].rsplit("/", 1)[0] if parent >= 0 else ""
        self.signature.append(f"{element.tag}.{element.names[:60]}/{above}"[:200])

    def sums(self, *columns: Floats) -> Floats:
        """What the blocks in each element add up to, one column for each."""
        total = np.zeros((len(self.parent), len(columns)))
        np.add.at(total, self.of, np.column_stack(columns))
        rows, parent = total.tolist(), self.parent
        for number in range(len(rows) - 1, 0, -1):
            row, above = rows[number], rows[parent[number]]
            for column, value in enumerate(row):
                above[column] += value
        return np.array(rows, np.float64).reshape(total.shape)

    def inside(self, marked: Flags) -> Floats:
        """For each element, how many of those around it and itself are marked."""
        found: list[float] = []
        for number, (mark, parent) in enumerate(zip(marked.tolist(), self.parent, strict=True)):
            found.append(mark + (found[parent] if number else 0))
        return np.array(found, np.float64)


def _places(blocks: Sequence[ContentBlock], words: Floats, linked: Floats, prose: Floats) -> Floats:
    """Features of the elements around each block."""
    count = len(blocks)
    areas = _Areas(blocks)
    own, parent = areas.of, np.array(areas.parent, np.int64)
    sums = areas.sums(words, words * linked, prose, np.ones(count))
    sizes, blocks_in = np.maximum(sums[:, 0], 1.0), sums[:, 3]
    total, total_prose = max(float(words.sum()), 1.0), float(prose.sum())
    around = np.column_stack([np.log1p(sums[:, 0]), sums[:, 1] / sizes, sums[:, 2] / sizes, np.log1p(blocks_in)])
    depth = areas.inside(np.ones(len(parent), np.bool_))
    columns: list[Floats] = [
        depth[own][:, None],
        np.array([[float(block.element.hidden)] for block in blocks]),
        _bits(np.array(areas.tags)[own], _TAGS),
        _bits(np.array(areas.named)[own], len(_GROUPS)),
        _bits(np.array(areas.near)[own], len(_GROUPS)),
    ]
    levels = [own]
    for _ in range(7):
        levels.append(parent[levels[-1]])
    columns += [around[levels[level]] for level in (1, 2, 3, 5, 7)]
    section = _nearest(areas, (sums[:, 0] >= 0.05 * total) & (blocks_in > 1))[own]
    first = np.full(len(parent), count, np.int64)
    np.minimum.at(first, section, np.arange(count))
    last = np.zeros(len(parent), np.int64)
    np.maximum.at(last, section, np.arange(count))
    columns += [
        np.column_stack(
            [sums[section, 0] / total, sums[section, 1] / sizes[section], sums[section, 2] / sizes[section]]
        ),
        np.column_stack([first[section], last[section]]) / count,
    ]
    kinds = list(dict.fromkeys(areas.signature))
    at = {signature: number for number, signature in enumerate(kinds)}
    signature = np.array([at[one] for one in areas.signature], np.int64)[own]
    same, same_words = np.bincount(signature), np.bincount(signature, words)
    same_linked = np.bincount(signature, words * linked)
    columns.append(np.column_stack([
        same[signature], same_words[signature] / total, same_linked[signature] / np.maximum(same_words[signature], 1),
        same_words[signature] / same[signature],
    ]))  # fmt: skip
    for share in (0.5, 0.8, 0.95):
        holding = sums[:, 2] >= share * total_prose
        shared, all_of = areas.inside(holding)[own], float(holding.sum())
        columns.append(np.column_stack([shared == all_of, all_of - shared, depth[own] - shared]))
    h1 = next((i for i, block in enumerate(blocks) if block.kind is BlockKind.HEADING and block.level == 1), -1)
    if h1 >= 0:
        on_way = np.zeros(len(parent), np.bool_)
        on_way[[areas.number[id(element)] for element in blocks[h1].element.chain()]] = True
        common = areas.inside(on_way)[own]
        columns.append(np.column_stack([np.arange(count) - h1, float(on_way.sum()) - common, common]))
    else:
        columns.append(np.tile([-9_999.0, -1.0, -1.0], (count, 1)))
    return np.hstack(columns)


def _nearest(areas: _Areas, marked: Flags) -> Ints:
    """For each element, itself or the nearest around it that is marked; the outermost if none is."""
    found: list[int] = []
    for number, (mark, parent) in enumerate(zip(marked.tolist(), areas.parent, strict=True)):
        found.append(number if mark or not number else found[parent])
    return np.array(found, np.int64)


def _sequence(words: Floats, linked: Floats, prose: Floats, ends: Floats, kinds: Ints) -> Floats:
    """Features of the blocks before and after each block, and of its position."""
    count = len(words)
    logs = np.log1p(words)
    columns = []
    for step in (-3, -2, -1, 1, 2, 3):
        for column, outside in ((logs, 0.0), (linked, 0.0), (kinds.astype(np.float64), -1.0), (ends, 0.0)):
            columns.append(_shifted(column, step, outside))
    for width in (4, 12):
        columns += [_around(column, width) for column in (words, words * linked, prose)]
    before = np.concatenate([[0.0], np.cumsum(words)])[:-1]
    prose_before = np.concatenate([[0.0], np.cumsum(prose)])[:-1]
    total, total_prose = max(float(words.sum()), 1.0), max(float(prose.sum()), 1.0)
    places = np.arange(count, dtype=np.float64)
    columns += [places, places / max(count, 1), before / total, prose_before / total_prose, places[::-1].copy()]
    columns += _heading_distance(kinds, words)
    return np.column_stack(columns) if count else np.zeros((0, len(columns)))


def _heading_distance(kinds: Ints, words: Floats) -> list[Floats]:
    """Blocks and words since the last heading."""
    blocks_since, words_since = np.zeros(len(kinds)), np.zeros(len(kinds))
    blocks, size = 0.0, 0.0
    for number, kind in enumerate(kinds.tolist()):
        if kind == 0:
            blocks, size = 0.0, 0.0
        blocks_since[number], words_since[number] = blocks, size
        blocks += 1
        size += words[number]
    return [blocks_since, words_since]


def _shifted(column: Floats, step: int, outside: float) -> Floats:
    """The values of blocks some steps away."""
    moved = np.full(len(column), outside)
    if step > 0:
        moved[:-step] = column[step:]
    else:
        moved[-step:] = column[:step]
    return moved


def _around(column: Floats, width: int) -> Floats:
    """The mean over the blocks around each block."""
    sums = np.concatenate([[0.0], np.cumsum(column)])
    places = np.arange(len(column))
    low, high = np.maximum(places - width, 0), np.minimum(places + width + 1, len(column))
    mean: Floats = (sums[high] - sums[low]) / np.maximum(high - low, 1)
    return mean


def _against_page(tree: ContentTree, texts: Sequence[str], lowered: Sequence[list[str]]) -> Floats:
    """How each block agrees with what the page says about itself elsewhere, and whether it is repeated."""
    said = [set(_WORD.findall(text.lower())) for text in (tree.title, tree.description)]
    long_said = _pairs(_WORD.findall(tree.stated.lower()))
    repeated = Counter(" ".join(one) for one in lowered)
    met: Counter[str] = Counter()
    rows = []
    for text, found in zip(texts, lowered, strict=True):
        own = set(found)
        row = [len(own & other) / max(len(own), 1) for other in said]
        row.append(len(own & said[0]) / max(len(said[0]), 1))
        pairs = _pairs(found)
        row.append(len(pairs & long_said) / len(pairs) if pairs else float(text in tree.stated) * 0.5)
        phrase = " ".join(found)
        row += [float(repeated[phrase]), float(met[phrase])]
        met[phrase] += 1
        rows.append(row)
    return np.array(rows, np.float64).reshape(len(texts), -1)


def _pairs(found: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(found))


def _page_row(
    tree: ContentTree, words: Floats, linked: Floats, prose: Floats, kinds: Ints, texts: Sequence[str]
) -> Floats:
    """Features of the whole page."""
    total = max(float(words.sum()), 1.0)
    try:
        parts = urlsplit(tree.url)
        path = f"{parts.hostname or ''}{parts.path}".lower()
        depth = parts.path.strip("/").count("/") + bool(parts.path.strip("/"))
    except ValueError:
        path, depth = "", 0
    types = tree.types
    row = [
        math.log1p(total), math.log1p(len(words)), float((words * linked).sum()) / total, float(prose.sum()) / total,
        float((words >= 25).sum()), *(float((kinds == kind).mean()) if len(kinds) else 0.0 for kind in range(5)),
        sum(1.0 for text in texts if _PRICE.search(text[:100])), float(depth),
        *(bool(word.search(path)) for word in _URL),
        *(any(name in types for name in names) for names in _TYPES),
        float("article" in tree.og_type), float("product" in tree.og_type), math.log1p(len(tree.stated)),
    ]  # fmt: skip
    return np.array(row, np.float64)
