"""A stored page without anything that runs, sends or loads: its URLs lead to the archive, all else is removed.

Whoever shows it must still put it into a sandbox: no rewriting of hostile markup is certain to be complete.
"""

from __future__ import annotations

from functools import lru_cache

from turbohtml import Document, Element

from recrawl.discover.requisites import absolute, base_of, with_srcset_urls, with_urls

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
