"""Blocks as plain text and as Markdown.

The Markdown is CommonMark with tables, strikethrough and fenced code as GitHub has them. It holds no HTML: whatever the
page's text looks like, a reader that allows HTML shows the text, and no element, link or image that the page has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.tree.blocks import (
    CODE,
    EMPHASIS,
    STRONG,
    STRUCK,
    BlockKind,
    Container,
    ContainerKind,
    ContentBlock,
    ContentTree,
    Row,
    Span,
    spans_text,
)

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~#$])")
_LINE_START = re.compile(r"(?m)^([ \t]*)([-+=:](?=[-+=:\s]|$)|\d{1,9}[.)](?=\s|$))")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_UNESCAPED = re.compile(r"\\([\\`*_\[\]<>&|~#$])")
_TICKS = re.compile("`+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARKERS = ((STRONG, "**"), (EMPHASIS, "*"), (STRUCK, "~~"))
_STYLE_MARKS = ("*", "~")
_URL_SAFE = "!#$%&'*+,/:;=?@[]~"


def plain_text(blocks: Iterable[ContentBlock]) -> str:
    """The text of blocks: one line for each, for each line break and for each row of a table.

    >>> plain_text([ContentBlock(BlockKind.HEADING, [Span("News")]), ContentBlock(BlockKind.TEXT, [Span("Rain.")])])
    'News\\nRain.'
    """
    return "\n".join(text for block in blocks if block.kind is not BlockKind.OTHER and (text := block.text))


class ShownLine(NamedTuple):
    """A line of a page, for people."""

    text: str
    parts: tuple[str, ...]
    """The stretches of the page that it holds: the cells of a row of a table, or itself."""


def text_lines(tree: ContentTree, noise: Noise = NO_NOISE) -> list[ShownLine]:
    """All text of a page in lines, with its frame. It has the words of the text that is compared, in their order.

    >>> from recrawl.compare.tree.documents import parse_html
    >>> page = parse_html("<p>one<b>self</b>, two<p>three<br>four<table><tr><th>a<th>b<tr><td>c<td>d</table>")
    >>> [line.text for line in text_lines(page.tree)]
    ['oneself, two', 'three', 'four', 'a b', 'c d']
    """
    found = [line for block in tree.blocks for line in _lines(block) if line.text]
    if not noise.patterns:
        return found
    erased = noise.erase("\n".join(line.text for line in found)).split("\n")
    if len(erased) == len(found):  # only lines in which something was noise change
        pairs = zip(found, erased, strict=True)
        found = [
            line if line.text == text else ShownLine(folded := " ".join(text.split()), (folded,))
            for line, text in pairs
        ]
        return [line for line in found if line.text]
    return [ShownLine(folded, (folded,)) for text in erased if (folded := " ".join(text.split()))]


def _lines(block: ContentBlock) -> Iterator[ShownLine]:
    if block.element.tag == "input" or any(one.tag == "noscript" for one in block.element.chain()):
        return  # not in the text that is compared
    if block.kind is BlockKind.TABLE:
        for row in block.rows:
            parts = [part for cell in row for line in spans_text(cell).split("\n") if (part := line.strip())]
            yield ShownLine(" ".join(parts), tuple(parts))
    else:
        for line in block.text.split("\n"):
            yield ShownLine(line.rstrip() if block.kind is BlockKind.CODE else line.strip(), (line,))


def markdown(blocks: Iterable[ContentBlock]) -> str:
    r"""Blocks as Markdown.

    >>> where = (Container(ContainerKind.LIST), Container(ContainerKind.ITEM))
    >>> spans = [Span("a <b> "), Span("c*", STRONG), Span(" d", 0, "https://e.org/")]
    >>> heading = ContentBlock(BlockKind.HEADING, [Span("News")], level=2)
    >>> print(markdown([heading, ContentBlock(BlockKind.TEXT, spans, where)]))
    ## News
    <BLANKLINE>
    - a \<b\> **c\*** [d](https://e.org/)
    """
    lines: list[str] = []
    last: tuple[Container, ...] = ()
    shown: set[int] = set()
    markers: dict[int, str] = {}
    ended: dict[int, tuple[int, str]] = {}
    for block in blocks:
        content = _content(block)
        if not content:
            continue
        common = _common(last, block.within)
        first, rest = "", ""
        new_list = False
        for depth, container in enumerate(block.within):
            if container.kind is ContainerKind.QUOTE:
                first, rest = f"{first}> ", f"{rest}> "
            elif container.kind is ContainerKind.LIST:
                if id(container) not in markers:
                    before = ended.get(depth)
                    beside = before is not None and depth == common and bool(lines)
                    markers[id(container)] = "*" if beside and before is not None and before[1] == "-" else "-"
                    new_list = True
                ended[depth] = (id(container), markers[id(container)])
            elif container.kind is ContainerKind.ITEM:
                above = block.within[depth - 1] if depth else None
                style = markers.get(id(above), "-")
                marker = f"{container.number}{'.' if style == '-' else ')'} " if container.number else f"{style} "
                if id(container) in shown:
                    first += " " * len(marker)
                else:
                    shown.add(id(container))
                    first += marker
                rest += " " * len(marker)
        if lines:
            inner = block.within[common - 1] if common else None
            begins, follows = (one[common : common + 1] for one in (block.within, last))
            in_items = all(one and one[0].kind is ContainerKind.ITEM for one in (begins, follows))
            tight = inner is not None and inner.kind is ContainerKind.LIST and in_items and not new_list
            if not tight:
                lines.append(_prefix(block.within[:common]).rstrip())
        lines.append(f"{first}{content[0]}".rstrip())
        verbatim = block.kind is BlockKind.CODE
        lines += [f"{rest}{line}" if verbatim and line else f"{rest}{line}".rstrip() for line in content[1:]]
        last = block.within
        for depth in [depth for depth in ended if depth >= len(last)]:
            del ended[depth]
    return "\n".join(lines)


def html(blocks: Iterable[ContentBlock]) -> str:
    r"""Blocks as HTML for a reader. Of the page there is only text, and links that name it; nothing is loaded.

    >>> spans = [Span("a <b>", 0, "https://e.org/"), Span(" "), Span("map", 0, "", "https://e.org/i")]
    >>> html([ContentBlock(BlockKind.TEXT, spans)])
    '<p dir="auto"><a href="https://e.org/" rel="noopener noreferrer nofollow">a &lt;b&gt;</a> <em>map</em></p>\n'
    """
    shown: str = _reader().render(markdown(blocks))
    return shown


@lru_cache(maxsize=1)
def _reader() -> Any:
    from markdown_it import MarkdownIt  # lazy: few commands show a page to a reader

    parser: Any = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image_text)
    parser.core.ruler.push("reader", _for_readers)
    return parser


def _for_readers(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):  # below the one that says which page is shown
            token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"
        if token.type in ("paragraph_open", "heading_open", "td_open", "th_open"):
            token.attrSet("dir", "auto")
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("rel", "noopener noreferrer nofollow")


def _image_text(_: Any, tokens: Sequence[Any], at: int, *__: Any) -> str:
    name = escape(_UNESCAPED.sub(r"\1", tokens[at].content))
    return f"<em>{name}</em>" if name else ""


def _common(one: Sequence[Container], other: Sequence[Container]) -> int:
    """How many of the outer containers are the same."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left is not right:
            break
        count += 1
    return count


def _prefix(within: Sequence[Container]) -> str:
    """What stands before a further line in these containers."""
    prefix = ""
    for container in within:
        if container.kind is ContainerKind.QUOTE:
            prefix += "> "
        elif container.kind is ContainerKind.ITEM:
            prefix += " " * (len(str(container.number)) + 2 if container.number else 2)
    return prefix


def _content(block: ContentBlock) -> list[str]:
    """The lines of a block, without what its containers put before them."""
    match block.kind:
        case BlockKind.OTHER:
            return []
        case BlockKind.CODE:
            return _fenced(block.text, block.language)
        case BlockKind.TABLE:
            return _table(block.rows)
        case BlockKind.HEADING:
            text = _inline(block.spans, line_breaks=False)
            return [f"{'#' * min(max(block.level, 1), 6)} {text}"] if text else []
        case _:
            spans = block.spans
            if any(container.kind is ContainerKind.TERM for container in block.within):
                spans = [span._replace(style=span.style | STRONG) for span in spans]
            text = _LINE_START.sub(_escaped_start, _inline(spans, line_breaks=True))
            return text.split("\n") if text else []


def _escaped_start(found: re.Match[str]) -> str:
    mark = found[2]
    return f"\\{mark}" if not mark[0].isdigit() else f"{mark[:-1]}\\{mark[-1]}"


def _fenced(code: str, language: str) -> list[str]:
    code = _CONTROLS.sub("", code.replace("\r\n", "\n").replace("\r", "\n"))
    fence = "`" * max(3, max(map(len, _TICKS.findall(code)), default=0) + 1)
    return [f"{fence}{language}", *code.split("\n"), fence]


def _table(rows: Sequence[Row]) -> list[str]:
    width = max(map(len, rows), default=0)
    lines = []
    for number, row in enumerate(rows):
        cells = [_inline(cell, line_breaks=False, in_table=True) for cell in row]
        lines.append(f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |")
        if not number:
            lines.append(f"|{' --- |' * width}")
    return lines


def _inline(spans: Sequence[Span], *, line_breaks: bool, in_table: bool = False) -> str:
    """Spans as Markdown, on one line unless `line_breaks`."""
    if not line_breaks:
        spans = [span._replace(text=span.text.replace("\n", " ")) for span in spans]
    pieces: list[str] = []
    groups = [(link, list(group)) for link, group in groupby(spans, key=lambda span: span.link)]
    for number, (link, group) in enumerate(groups):
        before = pieces[-1][-1:] if pieces and pieces[-1] else ""
        after = _first_character(groups[number + 1][1]) if number + 1 < len(groups) else ""
        if not link:
            pieces.append("".join(_styled(group, before, after, in_table)))
            continue
        on_one_line = [span._replace(text=span.text.replace("\n", " ")) for span in group]
        text = "".join(_styled(on_one_line, "[", "]", in_table))
        inner = text.strip()
        if not inner:
            pieces.append(text)
            continue
        start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if not start and before == "!":
            pieces[-1] = f"{pieces[-1][:-1]}\\!"  # with the bracket it would begin an image
        pieces.append(f"{start}[{inner}]({_destination(link)}){end}")
    text = "".join(pieces).strip()
    return text.replace("\n", "\\\n") if line_breaks else text


def _first_character(spans: Sequence[Span]) -> str:
    return "[" if spans[0].link or spans[0].image else spans[0].text[:1]


def _styled(spans: Sequence[Span], before: str, after: str, in_table: bool) -> Iterator[str]:
    """The text of spans with their styles; one that could not be told from its neighbours has no style."""
    for number, span in enumerate(spans):
        if span.image:
            piece = f"![{_escaped(span.text)}]({_destination(span.image)})"
        elif span.style & CODE and span.text.strip() and "\n" not in span.text:
            piece = _code_span(span.text, in_table)
        else:
            following = _first_character(spans[number + 1 :]) if number + 1 < len(spans) else after
            piece = _emphasised(span, before, following)
        before = piece[-1:] or before
        yield piece


def _emphasised(span: Span, before: str, after: str) -> str:
    text = _escaped(span.text)
    core = text.strip()
    if not core or not span.style or "\n" in core:
        return text
    start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    opens = start or not before or not before.isalnum() or core[0].isalnum()
    closes = end or not after or not after.isalnum() or core[-1].isalnum()
    if not (opens and closes) or (not start and before in _STYLE_MARKS) or (not end and after in _STYLE_MARKS):
        return text
    for style, marker in _MARKERS:
        if span.style & style:
            core = f"{marker}{core}{marker}"
    return f"{start}{core}{end}"


def _code_span(text: str, in_table: bool) -> str:
    core = " ".join(_CONTROLS.sub("", text).split())
    if in_table:
        core = core.replace("|", "\\|")
    ticks = "`" * (max(map(len, _TICKS.findall(core)), default=0) + 1)
    pad = " " if core.startswith("`") or core.endswith("`") else ""
    start, end = (" " if text[:1].isspace() else ""), (" " if text[-1:].isspace() else "")
    return f"{start}{ticks}{pad}{core}{pad}{ticks}{end}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _CONTROLS.sub("", text))


def _destination(url: str) -> str:
    """A URL as the destination of a link: nothing in it ends the link or is read as Markdown."""
    return _ENTITY.sub("&amp;", quote(url, safe=_URL_SAFE, encoding="utf-8", errors="replace"))
