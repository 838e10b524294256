"""What a page says about itself: title, author, language and the dates on which it was published and modified.

Several sources tell when a page was published: its URL, meta elements, JSON-LD, marked elements (`itemprop`, `<time>`)
and what stands beside the heading. They vote, each with a weight that grows with how often it is right; only where none
says anything, weaker ones are asked. Only dates of the page itself count: those of comments, related pages and the
frame do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

from turbohtml import Document, Element

from recrawl.characters import storable
from recrawl.compare.tree.blocks import BlockKind, ContentBlock, ContentTree
from recrawl.compare.tree.builder import resolved
from recrawl.compare.tree.stated import MODIFIED_META, PUBLISHED_META, Statements, language_tag

_ARTICLES = re.compile(
    r"article|posting|report|webpage|discussion|qapage|question|recipe|videoobject|howto|guide|review"
)
_AUTHOR_META = (
    "author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author",
    "citation_author", "twitter:data1", "byl", "article:author_name", "dc.contributor",
)  # fmt: skip
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero gennaio januari janeiro jänner",
            "feb february februar février febrero febbraio februari fevereiro févr",
            "mar march märz mars marzo maart março mrz",
            "apr april avril abril aprile avr",
            "may mai mayo maggio mei maio",
            "jun june juni juin junio giugno junho",
            "jul july juli juillet julio luglio julho juil",
            "aug august août agosto augustus",
            "sep sept september septembre septiembre settembre setembro",
            "oct october oktober octobre octubre ottobre outubro okt",
            "nov november novembre noviembre novembro",
            "dec december dezember décembre diciembre dicembre dezembro dez déc",
        ),
        1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WORD_START = r"(?:\b|(?-i:(?<=[a-z])(?=[A-Z])))"
"""Where a word begins, also one that lost the space before it with the elements."""
_FORMS = (
    re.compile(r"(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>[0-2]\d|3[01])(?:T?\d{4,6})?(?!\d)"),
    re.compile(r"(?P<y>(?:19|20)\d\d)年\s?(?P<m>\d{1,2})月\s?(?P<d>\d{1,2})日"),
    re.compile(
        rf"{_WORD_START}(?P<n>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<y>(?:19|20)\d\d)(?!\d)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+(?:of|de))?[\s-]+(?P<n>{_MONTH})\.?,?(?:\s+(?:of|de))?[\s-]+"
        r"(?P<y>(?:19|20)\d\d)(?!\d)",
        re.IGNORECASE,
    ),
    re.compile(r"(?<!\d)(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>(?:19|20)\d\d)(?!\d)"),
    re.compile(rf"\b(?P<y>(?:19|20)\d\d)\s+(?P<n>{_MONTH})\.?\s+(?P<d>\d{{1,2}})\b", re.IGNORECASE),
    re.compile(r"(?<![\d/])(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>(?:19|20)\d\d)(?!\d)"),
    re.compile(r"(?<![\d-])(?P<m>\d{1,2})-(?P<d>\d{1,2})-(?P<y>(?:19|20)\d\d)(?!\d)"),
)
_AMBIGUOUS = _FORMS[-2:]
_MONTH_FIRST = re.compile(r"en(?:-us)?\Z")
"""Languages of pages on which 3/10/2023 is in March."""
_URL_DATE = re.compile(
    rf"/((?:19|20)\d\d)[/-](\d{{1,2}}|{_MONTH})[/-](\d{{1,2}})(?=[/._-]|$)|/((?:19|20)\d\d)(\d\d)(\d\d)(?=[/._-])",
    re.IGNORECASE,
)
_MODIFIED_WORD = re.compile(
    r"updat|modif|edited|revis|reviewed|changed|aktualisiert|geändert|mis à jour", re.IGNORECASE
)
_PUBLISHED_WORD = re.compile(r"publish|posted|written|created|released|veröffentlicht|publié|publicado", re.IGNORECASE)
_PUBLISHED_LABEL = re.compile(
    r"(?:date )?(?:(?:first |originally )?(?:published|posted)|publish(?:ing|ed)? date|publication date)"
    r"(?: (?:on|at))?\s*:?\s*",
    re.IGNORECASE,
)
_ORIGINALLY = re.compile(r"\b(?:originally|first)\s+(?:published|posted)\b", re.IGNORECASE)
_OTHER_PLACE = re.compile(
    r"comment|related|sidebar|footer|(?<!elementor-)widget|recommend|popular|trending|latest|recent|more-|event"
)
_BYLINE = re.compile(r"(?:^|\b)(?:written\s+)?by:?\s+(.{3,60})", re.IGNORECASE)
_EARLIEST = 1993
_SURE, _UNSURE = 1.0, 0.5
"""Weights of a date that stands alone, and of one among others."""
_A_DAY = timedelta(days=1)
_MAX_FIELD = 500
_NEAR_HEADING = 12
"""Blocks before and after the heading in which a date is looked for."""


class StatedFields(NamedTuple):
    """What a page says about itself; None where it says nothing."""

    title: str | None
    author: str | None
    published: date | None
    modified: date | None
    language: str | None
    canonical: str | None = None
    """The URL that the page names as its own."""
    licence: str | None = None
    ai_use: str | None = None
    """What it says about uses by machines (`noai`, `tdm-reservation`)."""


def fields(page: Document, said: Statements, tree: ContentTree, latest: date | None = None) -> StatedFields:
    """The fields of a page; dates after `latest` are not believed."""
    language = _language(page, said)
    dates = _Dates(latest, day_first=not _MONTH_FIRST.match(language or "en"))
    main = list(_main_objects(said))
    heading = _heading(tree)
    modified = (
        dates.first(item.get("dateModified") for item in main)
        or dates.first(said.meta.get(name) for name in MODIFIED_META)
        or dates.first(_marked(page, "dateModified"))
    )
    published = _published(page, said, tree, main, dates, modified, heading) or dates.updated(tree.blocks)
    if modified is not None and published is not None and modified < published:
        modified = None
    return StatedFields(
        _title(said, tree, main, heading), _author(page, said, main), published, modified, language,
        _linked(page, ("canonical",), tree.url), _licence(page, said, main, tree.url), _ai_use(said),
    )  # fmt: skip


def _linked(page: Document, relations: tuple[str, ...], base: str) -> str | None:
    """The target of the first link with one of these relations."""
    for node in page.iter_elements(["link", "a"]):
        said = (node.attr("rel") or "").lower().split()
        if any(name in said for name in relations) and (found := resolved(node.attr("href") or "", base)):
            return found
    return None


def _licence(page: Document, said: Statements, main: list[dict[str, Any]], base: str) -> str | None:
    """The licence of the page: its URL, or what it is said to be."""
    for item in main:
        value = item.get("license")
        value = value.get("url") or value.get("@id") or value.get("name") if isinstance(value, dict) else value
        if isinstance(value, str) and value.strip():
            return " ".join(storable(value).split())[:_MAX_FIELD]
    if found := _linked(page, ("license", "licence"), base):
        return found
    for key in ("dcterms.license", "dc.rights", "dcterms.rights", "license"):
        if text := " ".join(storable(said.meta.get(key, "")).split())[:_MAX_FIELD]:
            return text
    return None


def _ai_use(said: Statements) -> str | None:
    found = [word.strip() for word in said.meta.get("robots", "").lower().split(",") if word.strip().startswith("noai")]
    stated = [(key, said.meta[key]) for key in ("tdm-reservation", "tdm-policy") if key in said.meta]
    found += [f"{key}: {' '.join(text.split())[:200]}" for key, text in stated]
    return storable("; ".join(found)) or None


def _main_objects(said: Statements) -> Iterator[dict[str, Any]]:
    """The objects that are the page: articles first, then any with a date."""
    articles = [item for item in said.objects if _ARTICLES.search(_type(item)) and "comment" not in _type(item)]
    articles.sort(key=lambda item: ("page" in _type(item) and "qa" not in _type(item), "video" in _type(item)))
    yield from articles


def _type(item: dict[str, Any]) -> str:
    kind = item.get("@type")
    return " ".join(str(one) for one in kind).lower() if isinstance(kind, list) else str(kind or "").lower()


def _published(
    page: Document, said: Statements, tree: ContentTree, main: list[dict[str, Any]], dates: _Dates,
    modified: date | None, heading: int,
) -> date | None:  # fmt: skip
    """The date on which the page was published, elected by its sources."""
    address = dates.of_url(tree.url)
    meta = dates.first(said.meta.get(name) for name in PUBLISHED_META)
    times, named = dates.all(_times(page)), dates.all(_named(page))
    shown = [
        (1.0, dates.near(tree.blocks, heading)),
        (_SURE if len({*times}) == 1 else _UNSURE, next(iter(times), None)),
        (0.6 * (_SURE if len({*named}) == 1 else _UNSURE), next(iter(named), None)),
        (1.2, dates.said_published(tree.blocks)),
    ]
    if meta is not None and meta != modified:  # what is shown is the date of an update
        shown = [(_UNSURE * weight if found == modified else weight, found) for weight, found in shown]
    votes = [
        (6.0, address),
        (2.5, meta),
        (1.1, dates.first(item.get("datePublished") for item in main)),
        (0.9, dates.first(_marked(page, "datePublished"))),
        *shown,
        (0.2, dates.first(item.get(key) for item in main for key in ("dateCreated", "uploadDate"))),
        (2.0, dates.said_original(tree.blocks)),
    ]
    if meta is not None and address is None:  # the same moment in another time zone
        votes = [(weight, meta if found and abs(found - meta) <= _A_DAY else found) for weight, found in votes]
    return _elected(votes)


def _elected(votes: Iterable[tuple[float, date | None]]) -> date | None:
    """The date with most votes; of equal ones the first.

    >>> _elected([(1.8, date(2024, 5, 2)), (1.0, date(2024, 5, 1)), (0.9, date(2024, 5, 1))])
    datetime.date(2024, 5, 1)
    """
    found: dict[date, float] = {}
    for weight, voted in votes:
        if voted is not None:
            found[voted] = found.get(voted, 0.0) + weight
    return max(found, key=lambda one: found[one], default=None)


class _Dates:
    """Reads dates, up to the latest that is believed."""

    def __init__(self, latest: date | None, *, day_first: bool = False) -> None:
        self._latest = latest
        self._day_first = day_first
        """Whether 3/10/2023 is in October."""

    def first(self, texts: Iterable[Any]) -> date | None:
        """The first text that is a date."""
        return next((found for text in texts if isinstance(text, str) and (found := self.read(text))), None)

    def all(self, texts: Iterable[str | None]) -> list[date]:
        """The dates of the texts that are dates."""
        return [found for text in texts if text and (found := self.read(text)) is not None]

    def read(self, text: str) -> date | None:
        """The first date in a text."""
        text = text[:200]
        for form in _FORMS:
            for found in form.finditer(text):
                parts = found.groupdict()
                month = _MONTHS[parts["n"].lower()] if parts.get("n") else int(parts["m"])
                day = int(parts["d"])
                if self._day_first and form in _AMBIGUOUS and month <= 12:
                    month, day = day, month
                if (made := self._made(int(parts["y"]), month, day)) is not None:
                    return made
        return None

    def of_url(self, url: str) -> date | None:
        """The date in the path of a URL."""
        found = _URL_DATE.search(url)
        if not found:
            return None
        year, month, day = (found[at] or found[at + 3] for at in (1, 2, 3))
        return self._made(int(year), _MONTHS.get(month.lower()) or int(month), int(day))

    def near(self, blocks: list[ContentBlock], heading: int) -> date | None:
        """The date that stands beside the heading, or one said to be that of publication."""
        start = max(heading, 0)
        around = sorted(
            range(max(0, start - 4), min(len(blocks), start + _NEAR_HEADING)),
            key=lambda at: (abs(at - start), at < start),
        )
        updated = None
        for number in around:
            text = blocks[number].text
            if len(text) > 200 or _OTHER_PLACE.search(blocks[number].element.names):
                continue
            if (found := self.read(text)) is not None:
                if not _MODIFIED_WORD.search(text) or _PUBLISHED_WORD.search(text):
                    return found
                updated = updated or found
        return updated

    def said_published(self, blocks: list[ContentBlock]) -> date | None:
        """The first date that is said to be that of publication, beside the word or under it."""
        before = ""
        for block in blocks:
            text = block.text
            if block.kind is BlockKind.TEXT and len(text) <= 120 and not _OTHER_PLACE.search(block.element.names):
                said = _PUBLISHED_LABEL.match(text)
                under = not said and _PUBLISHED_LABEL.fullmatch(before) is not None
                if (said or under) and (found := self.read(text)) is not None:
                    return found
            before = text[:40]
        return None

    def said_original(self, blocks: list[ContentBlock]) -> date | None:
        """The date of the first publication of a page that was published again."""
        for block in blocks:
            text = block.text if len(block.spans) <= 20 else ""
            said = _ORIGINALLY.search(text[:300])
            if said and (found := self.read(text[said.end() : said.end() + 60])) is not None:
                return found
        return None

    def updated(self, blocks: list[ContentBlock]) -> date | None:
        """The first date that is said to be that of an update or of publication, anywhere on the page."""
        for block in blocks:
            if block.kind is BlockKind.TEXT and len(text := block.text) <= 120:
                said = _MODIFIED_WORD.search(text) or _PUBLISHED_WORD.search(text)
                if said and (found := self.read(text[said.start() :])) is not None:
                    return found
        return None

    def _made(self, year: int, month: int, day: int) -> date | None:
        if month > 12 >= day:
            month, day = day, month
        try:
            made = date(year, month, day)
        except ValueError:
            return None
        return made if year >= _EARLIEST and (self._latest is None or made <= self._latest) else None


def _marked(page: Document, name: str) -> Iterator[str | None]:
    """The values of an `itemprop`, outside comments."""
    for node in page.select(f'[itemprop~="{name}"]'):
        if not _elsewhere(node):
            yield node.attr("content") or node.attr("datetime") or node.text[:200]


def _times(page: Document) -> Iterator[str | None]:
    """The `<time>` elements of the page itself, those that are said to be of its publication first."""
    found = [node for node in page.iter_elements("time") if not _elsewhere(node)][:50]
    ranked = sorted(found, key=_rank)
    for node in ranked:
        yield node.attr("datetime") or ""
        yield node.text[:200]


def _rank(node: Element) -> int:
    names = f"{node.attr('class') or ''} {node.attr('itemprop') or ''} {node.attr('pubdate') is not None}".lower()
    if "updated" in names and "published" not in names:
        return 2
    return 0 if "publish" in names or "entry-date" in names or "true" in names else 1


def _named(page: Document) -> Iterator[str]:
    """The texts of short elements whose names speak of a date."""
    seen = 0
    for node in page.select('[class*="date"],[class*="publish"],[class*="posted"],[id*="date"],[class*="byline"]'):
        if seen >= 20:
            return
        if not _elsewhere(node) and len(text := node.text.strip()) < 200:
            seen += 1
            if not _MODIFIED_WORD.search(text):
                yield text


def _elsewhere(node: Element) -> bool:
    """Whether an element is in a comment, a list of other pages or the frame."""
    at: Any = node
    for _ in range(12):
        if not isinstance(at, Element) or at.tag in ("body", "main", "article"):
            return False
        if at.tag in ("aside", "footer", "nav"):
            return True
        if _OTHER_PLACE.search(f"{at.attr('class') or ''} {at.attr('id') or ''}".lower()):
            return True
        at = at.parent
    return False


def _heading(tree: ContentTree) -> int:
    """The number of the block that is the heading of the page; -1 for none."""
    wanted = set(tree.title.lower().split())
    best, at = 0.0, -1
    for number, block in enumerate(tree.blocks[:2_000]):
        if block.kind is BlockKind.HEADING and block.level <= 2:
            words = set(block.text.lower().split())
            score = len(words & wanted) / max(len(words), 1) + (block.level == 1)
            if score > best:
                best, at = score, number
    return at


def _title(said: Statements, tree: ContentTree, main: list[dict[str, Any]], heading: int) -> str | None:
    headline = next((text for item in main if isinstance(text := item.get("headline"), str) and text.strip()), "")
    shown = tree.blocks[heading].text if heading >= 0 else ""
    for text in (shown if tree.blocks and heading >= 0 and tree.blocks[heading].level == 1 else "",
                 headline, said.meta.get("og:title", ""), shown, tree.title):  # fmt: skip
        if folded := " ".join(storable(text).split())[:_MAX_FIELD]:
            return folded
    return None


def _author(page: Document, said: Statements, main: list[dict[str, Any]]) -> str | None:
    for item in main:
        if name := _person(item.get("author")):
            return name
    for key in _AUTHOR_META:
        if (name := _clean_name(said.meta.get(key, ""))) and (key != "twitter:data1" or "reading" not in name):
            return name
    for selector in ('[itemprop~="author"]', 'a[rel~="author"]', '[class*="author-name"]', '[class*="byline"]'):
        node = page.select_one(selector)
        if node is not None:
            text = " ".join(node.text[:300].split())
            found = _BYLINE.search(text)
            if name := _clean_name(found[1] if found else text):
                return name
    return None


def _person(value: Any) -> str:
    people = value if isinstance(value, list) else [value]
    names = [_clean_name(one.get("name") if isinstance(one, dict) else one) for one in people[:10]]
    return ", ".join(dict.fromkeys(filter(None, names)))[:_MAX_FIELD]


def _clean_name(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    if not isinstance(value, str):
        return ""
    text = " ".join(storable(value)[:300].split())
    text = re.sub(r"^(?:written\s+)?by:?\s+", "", text, flags=re.IGNORECASE)
    return text if 1 < len(text) <= 100 and "://" not in text and not text.startswith("@") else ""


def _language(page: Document, said: Statements) -> str | None:
    root = page.root
    declared = (root.attr("lang") or root.attr("xml:lang") or "") if isinstance(root, Element) else ""
    stated = (declared, said.meta.get("content-language", ""), said.meta.get("og:locale", ""))
    return next(filter(None, map(language_tag, stated)), None)
