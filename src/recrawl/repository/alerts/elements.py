"""The text of chosen elements of a version: those of a selector, without those that are left out."""

from __future__ import annotations

from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.visits.stored_text import header, read_lines
from recrawl.errors import DamagedRecord
from recrawl.record.rows import VersionRow
from recrawl.repository.reader import Reader


def lines_of(repo: Reader, row: VersionRow, noise: Noise, selector: str = "", ignore: str = "") -> list[str]:
    """Return the text by lines, or of each chosen element; nothing if the record is damaged."""
    try:
        _, headers, body = repo.storage.body(row)
    except DamagedRecord:
        return []
    if not (selector or ignore):
        return read_lines(body, headers, noise)
    tree = parse(decode(body, header(headers, "content-type")).text)
    if ignore:
        tree.remove(ignore)
    if not selector:
        tree.remove("script, style, noscript, template")
    return [" ".join(" ".join(node.strings).split()) for node in tree.select(selector or "title, body")]
