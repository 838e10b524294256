"""Parse HTML text into a tree, as the HTML Standard has it.

The parser takes time proportional to the tree that it makes: a million nested elements take it a tenth of a second. One
rule of the Standard makes a large tree of a small page: formatting elements that are not closed are opened again in
every paragraph. Such a page is refused; one whose tree does not even fit into memory is a `MemoryError`.

In one place the parser differs from browsers: it reads the contents of `noscript`, which browsers that run scripts do
not. An `iframe` that does not end there would take the rest of the page with it, and is closed.
"""

from __future__ import annotations

import re
from typing import cast

import turbohtml
from turbohtml import Document, Namespace

from recrawl.errors import Unreadable

_FEW_ELEMENTS = 10_000
_UNCLOSED = re.compile(
    r"(<noscript\b[^>]{0,500}>[^<]{0,100}<iframe\b[^>]{0,2000}>)[^<]{0,200}(?=</noscript)", re.IGNORECASE
)
_EMPTIED = ("template", "selectedcontent")


def parse(html: str) -> Document:
    """The page's tree. The contents of a `template` are not part of it, since a browser does not show them, and neither
    is the copy of a chosen option.

    Raises `Unreadable` for a page that has more elements than characters; most pages have one in fifty.

    >>> parse("<p>one<template><p>two</template>").html
    '<html><head></head><body><p>one<template></template></p></body></html>'
    >>> parse("<body><noscript><iframe src=a /></noscript><p>two").find("p").text
    'two'
    """
    if not html.isascii():
        try:
            html.encode()
        except UnicodeEncodeError:  # half characters, of a script that wrote the page
            html = html.encode("utf-8", "ignore").decode()
    if "<iframe" in html:
        html = _UNCLOSED.sub(r"\1</iframe>", html)
    tree = turbohtml.parse(html, positions=False, allow_declarative_shadow_roots=False)
    elements = int(cast("float", tree.xpath("count(//*)")))
    if elements > len(html) + _FEW_ELEMENTS:
        raise Unreadable(f"not parsed: unclosed tags make {elements:,} elements of {len(html):,} characters")
    for node in list(tree.iter_elements(_EMPTIED)):
        if node.namespace is Namespace.HTML:
            node.clear()
    return tree
