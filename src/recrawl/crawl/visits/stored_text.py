"""The text of a stored page: what its digest is made of, and what people read."""

from __future__ import annotations

from recrawl.compare import text
from recrawl.compare.document import parse
from recrawl.compare.encoding import decode
from recrawl.compare.noise.filters import NO_NOISE, Noise

HTML = ("text/html", "application/xhtml+xml")
_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript")


def read_text(body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> str:
    """The text of a stored page, as its digest is made of it."""
    content_type = header(headers, "content-type")
    mime = content_type.partition(";")[0].strip().lower() or sniff(body)
    if not mime.startswith(HTML):
        return plain(body, content_type, mime, noise)[0]
    return text.visible(parse(decode(body, content_type).text), noise)


def read_page(body: bytes, headers: tuple[tuple[str, str], ...]) -> tuple[str, int]:
    """The text of a stored page, with whatever noise there is, and its number of images."""
    content_type = header(headers, "content-type")
    mime = content_type.partition(";")[0].strip().lower() or sniff(body)
    if not mime.startswith(HTML):
        return plain(body, content_type, mime, NO_NOISE)[0], 0
    tree = parse(decode(body, content_type).text)
    return text.visible(tree), len(tree.css("img"))


def read_lines(body: bytes, headers: tuple[tuple[str, str], ...], noise: Noise) -> list[str]:
    """The text of a stored page by lines, for people."""
    content_type = header(headers, "content-type")
    mime = content_type.partition(";")[0].strip().lower() or sniff(body)
    if not mime.startswith(HTML):
        return decode(body, content_type).text.splitlines() if mime.startswith(_TEXTUAL) else ["(not text)"]
    return text.lines(parse(decode(body, content_type).text), noise)


def plain(body: bytes, content_type: str, mime: str, noise: Noise) -> tuple[str, str]:
    """Text and encoding of what is not HTML; both empty when it is no text at all."""
    if not (mime.startswith(_TEXTUAL) or mime.endswith(("+xml", "+json"))):
        return "", ""
    decoded = decode(body, content_type)
    return text.plain(decoded.text, noise), decoded.encoding


def header(headers: tuple[tuple[str, str], ...], name: str) -> str:
    """The last header of that name, which is given in lower case; empty when there is none."""
    return next((value for key, value in reversed(headers) if key.lower() == name), "")


def sniff(body: bytes) -> str:
    """What a body without a content type most likely is."""
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<":
        return "text/html"
    return "application/octet-stream" if b"\0" in body[:512] else "text/plain"
