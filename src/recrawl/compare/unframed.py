"""The texts of a page outside the elements that by their tag or role belong to the frame of its site.

It is what copies of a page are known by: a quarter of the work of finding the content lines (`compare.content.lines`),
and as good for that.
"""

from __future__ import annotations

from collections import Counter

from turbohtml import Document

from recrawl.compare.content.places import FRAME_ELEMENTS

_FRAME = f"{FRAME_ELEMENTS},script,style,noscript"


def unframed_texts(tree: Document) -> list[str]:
    """The texts between the tags of a page, in order, without those in its frame and without empty ones.

    >>> from recrawl.compare.parsing.document import parse
    >>> unframed_texts(parse("<nav><p>Home</nav><h1>News</h1><p>Welcome, <b>all</b> <footer>(c)"))
    ['News', 'Welcome,', 'all']
    """
    body = tree.find("body")
    if body is None:
        return []
    texts = [*filter(None, map(str.strip, body.strings))]
    framed = Counter(text for node in body.select(_FRAME) for text in map(str.strip, node.strings))
    if not framed:
        return texts
    found = []
    for text in texts:
        if framed[text] > 0:
            framed[text] -= 1
        else:
            found.append(text)
    return found
