"""Playback of stored pages: what was in force at a time, made inert: without scripts, links to other stored pages."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from turbohtml import Document, Element, Text

from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.parsing.media_types import HTML
from recrawl.crawl.visits.stored_text import header, sniff
from recrawl.discover.requisites import absolute, base_of, with_srcset_urls, with_urls
from recrawl.discover.urls import canonical, key
from recrawl.errors import DamagedRecord, NotKnown
from recrawl.record.archive import Place
from recrawl.record.rows import RequisiteRow, VersionRow
from recrawl.record.warc import read_body
from recrawl.repository.reader import Reader

_REMOVED = (
    "script, base, meta[http-equiv], iframe, frame, object, embed, applet, portal, fencedframe, template, param,"
    " animate, animateMotion, animateTransform, set, foreignObject script"
)


_KEPT_LINKS = frozenset({"stylesheet", "icon"})


_DROPPED = frozenset(
    (
        *("action", "archive", "async", "autofocus", "autoplay", "cite", "classid", "code", "codebase", "crossorigin"),
        *("data", "data-src", "download", "fetchpriority", "formaction", "formmethod", "formtarget", "http-equiv"),
        *("imagesizes", "imagesrcset", "integrity", "is", "longdesc", "manifest", "nonce", "ping", "profile"),
        *("shadowrootmode", "src", "srcdoc", "target", "usemap"),
    )
)


"""Attributes that run, send or load something, or that the rewriting makes wrong."""


_IMAGES = frozenset({"img", "input", "image"})


_FILE_LINKS = frozenset({"image", "use", "link"})


_PREFIX = "recrawl-archive:"


"""Stands for the address of the archive in cached stylesheets."""


def inert_page(tree: Document, url: str, prefix: str) -> None:
    """Make a parsed page at `url` inert; `prefix` and a URL are the address of that URL in the archive."""
    base = base_of(tree, url)
    tree.remove(_REMOVED)
    tree.strip_tags("noscript")  # scripts are off: what is meant for that case is shown
    for node in tree.find_all("link"):
        if not _KEPT_LINKS & set((node.attr("rel") or "").lower().split()):
            node.decompose()
    for node in tree.iter_elements():
        _clean(node, base, prefix)
    for node in tree.find_all("style"):
        node.set_text(_safe_in_style(inert_stylesheet(node.text, base, prefix)))


def inert_stylesheet(css: str, url: str, prefix: str, *, inline: bool = False) -> str:
    """A stylesheet at `url` whose URLs lead to the archive; `inline` if it is the value of a `style` attribute."""
    return _neutral(css, url, inline).replace(_PREFIX, prefix)


@lru_cache(maxsize=64)
def _neutral(css: str, url: str, inline: bool) -> str:
    """The stylesheet for any archive; cached, since parsing takes long and the pages of a site share theirs."""

    def replace(written: str, imported: bool) -> str:
        del imported
        if written.startswith("#") or written[:5].lower() == "data:":
            return written
        found = absolute(written, url)
        return f"{_PREFIX}{found}" if found else ""

    return with_urls(css, replace, inline=inline)


def _clean(node: Element, base: str, prefix: str) -> None:
    """Remove or replace the attributes of an element."""
    attributes, tag = node.attrs, node.tag.lower()
    for name in list(attributes):
        value = node.attr(name)
        written = (value or "").strip()
        replaced: str | None = value or ""
        if name.startswith("on"):
            replaced = None
        elif name == "style":
            replaced = inert_stylesheet(written, base, prefix, inline=True)
        elif name == "srcset":
            replaced = with_srcset_urls(written, lambda it: _address(it, base, prefix) or "about:blank")
        elif name in {"poster", "background"} or (name == "src" and tag in _IMAGES):
            replaced = _address(written, base, prefix)
        elif name.rpartition(":")[2] == "href":
            replaced = _address(written, base, prefix, file=tag in _FILE_LINKS)
        elif name in _DROPPED:
            replaced = None
        if replaced is None:
            del attributes[name]
        elif replaced != value:
            attributes[name] = replaced


def _address(written: str, base: str, prefix: str, *, file: bool = True) -> str | None:
    """The address of a URL in the archive; an image that the page itself contains stays."""
    if written.startswith("#") or (file and written[:11].lower() == "data:image/"):
        return written
    found = absolute(written, base)
    return f"{prefix}{found}" if found else None


def _safe_in_style(css: str) -> str:
    """The stylesheet as the contents of a `style` element, which it cannot end."""
    return css.replace("</", "<\\/")


_MAX_REDIRECTS = 6


_PLAIN = "text/plain; charset=utf-8"


_MARK = "data-recrawl-mark"


_RULE = f'[{_MARK}="%s"]{{background:%s!important;outline:2px solid %s!important;color:#000!important}}'


FIRST_CHANGE = "recrawl-first-change"


"""Id of the place where two versions of a page first differ."""


_PLACE = f"#{FIRST_CHANGE}{{scroll-margin-top:25vh!important}}"


_STYLE = f"<style>{_PLACE}{_RULE % ('added', '#c9f2d4', '#1d7a3c')}{_RULE % ('removed', '#ffd9d6', '#b3261e')}</style>"


_SILENT = frozenset({"script", "style", "title", "noscript", "template", "textarea"})


class Shown(NamedTuple):
    """A document or a file of the archive."""

    content_type: str
    body: bytes


def show(repo: Reader, version: int, url: str, prefix: str, *, against: int | None = None, kind: str = "") -> Shown:
    """What a URL showed at the time of a version; raises NotKnown if the archive does not have it.

    `prefix` and a URL are the address of that URL in the archive. In the page of the version, the text that the
    version `against` lacks is marked as `kind`: added or removed.
    """
    store = repo.storage.store
    row = store.versions.get(version)
    if row is None:
        raise NotKnown(f"there is no version {version}")
    page = store.pages.number(key(canonical(url) or url))
    if page == row.page:
        return _page(
            repo, row, url, prefix, store.versions.pick(row.page, against) if against is not None else None, kind
        )
    requisite = _requisite(repo, url)
    if requisite is not None:
        return _file(repo, requisite, row.at, prefix)
    other = store.versions.in_force(page, row.at) if page is not None else None
    if other is None:
        raise NotKnown("the archive does not have this URL")
    return _page(repo, other, url, prefix, None, "")


def _page(repo: Reader, row: VersionRow, url: str, prefix: str, against: VersionRow | None, kind: str) -> Shown:
    """A version of a page, inert; one that is not HTML as text."""
    _, headers, body = repo.storage.body(row)
    content_type = header(headers, "content-type")
    mime = content_type.partition(";")[0].strip().lower() or sniff(body)
    text = decode(body, content_type).text
    if not mime.startswith(HTML):
        return Shown(_PLAIN, text.encode("utf-8", "replace"))
    tree = parse(text)
    style = ""
    if against is not None:
        _, headers, body = repo.storage.body(against)
        style = _mark_changes(tree, parse(decode(body, header(headers, "content-type")).text), kind=kind)
    place = repo.storage.store.pages.get(row.page)
    final = place.state.archived_url if row.id == place.state.version and place.state.archived_url else url
    inert_page(tree, final, prefix)
    return Shown("text/html; charset=utf-8", (tree.html + style).encode("utf-8", "replace"))


def _mark_changes(tree: Document, other: Document, *, kind: str) -> str:
    """Mark the elements of `tree` with text that `other` lacks, as added or removed; returns the style of the marks.

    Each text node counts as often as it occurs. The place of the first difference gets the id `FIRST_CHANGE`, in both
    pages, also where only the other one has text of its own.
    """
    for node in tree.select(f"[{_MARK}], #{FIRST_CHANGE}"):  # a page that marks itself would show what is not there
        for name in (_MARK, "id"):
            if node.attr(name) in (FIRST_CHANGE, "added", "removed"):
                del node.attrs[name]
    nodes = _texts(tree)
    here, there = [words for _, words in nodes], [words for _, words in _texts(other)]
    own, lost = _lacking(here, there), _lacking(there, here)
    for place in own:
        parent = nodes[place][0].parent
        if isinstance(parent, Element):
            parent.attrs[_MARK] = kind
    places = [place for place in own[:1] + [_place_in(here, there, at) for at in lost[:1]] if place < len(nodes)]
    at = _anchor(nodes[min(places)][0]) if places else None
    if at is not None:
        at.attrs["id"] = FIRST_CHANGE
    return _STYLE


def _lacking(texts: list[str], others: list[str]) -> list[int]:
    """The places of texts that are not among the others, each counted as often as it occurs.

    >>> _lacking(["a", "b", "a"], ["a", "c"])
    [1, 2]
    """
    left = Counter(others)
    found = []
    for place, words in enumerate(texts):
        if left[words]:
            left[words] -= 1
        else:
            found.append(place)
    return found


def _place_in(texts: list[str], others: list[str], at: int) -> int:
    """The place among texts that follows what stands before a place of the others.

    >>> _place_in(["a", "b", "a", "d"], ["a", "b", "a", "new", "d"], 3)
    3
    """
    before = Counter(others[:at])
    place = 0
    for number, words in enumerate(texts):
        if before[words]:
            before[words] -= 1
            place = number + 1
    return min(place, max(0, len(texts) - 1))


def _anchor(node: Text) -> Element | None:
    """The closest element around a text that has no id of its own."""
    around = (above for above in node.ancestors if isinstance(above, Element))
    return next((above for above in around if "id" not in above.attrs), None)


def _texts(tree: Document) -> list[tuple[Text, str]]:
    """The text nodes of the body that show something, with their words."""
    body = tree.find("body")
    found = []
    for node in body.descendants if body is not None else ():
        if isinstance(node, Text) and not (isinstance(node.parent, Element) and node.parent.tag in _SILENT):
            words = " ".join(node.data.split())
            if words:
                found.append((node, words))
    return found


def _requisite(repo: Reader, url: str) -> RequisiteRow | None:
    """The requisite of a URL, where its redirects lead."""
    requisites = repo.storage.store.requisites
    row = requisites.find(key(url))
    for _ in range(_MAX_REDIRECTS):
        if row is None or row.target < 0:
            return row
        target = next(iter(requisites.get_many([row.target])), None)
        row = None if target is None else requisites.find(target.key)
    return None


def _file(repo: Reader, row: RequisiteRow, at: float, prefix: str) -> Shown:
    version = repo.storage.store.requisites.closest(row.id, at)
    if version is None:
        raise NotKnown("the archive does not have this file")
    try:
        body = read_body(repo.storage.archive.read(Place(version.warc, version.start, version.length)))[2]
    except (OSError, ValueError, KeyError) as error:
        raise DamagedRecord(f"the record of {row.url} is damaged: {error}") from error
    if row.style or version.mime.lower().startswith("text/css"):
        css = inert_stylesheet(decode(body, version.mime).text, row.url, prefix)
        return Shown("text/css; charset=utf-8", css.encode("utf-8", "replace"))
    return Shown(version.mime if version.mime.isascii() else "", body)
