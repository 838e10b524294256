"""The changes of a repository as an Atom feed, from where the last call stopped.

    python examples/changes_feed.py DIR > changes.atom

The number of the last change is kept in DIR/changes_feed.id: each call prints the changes that were recorded since.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import recrawl

ATOM = "http://www.w3.org/2005/Atom"


def feed(changes: Iterable[recrawl.Change]) -> str:
    """The feed, in the order of the changes."""
    root = ET.Element("feed", xmlns=ATOM)
    _text(root, "title", "Changes seen by recrawl")
    _text(root, "id", "urn:recrawl:changes")
    updated = _text(root, "updated", "1970-01-01T00:00:00Z")
    for change in changes:
        entry = ET.SubElement(root, "entry")
        _text(entry, "title", f"{change.outcome}: {change.title or change.url}")
        _text(entry, "id", f"{change.url}#{change.id}")
        _text(entry, "updated", change.time.isoformat())
        ET.SubElement(entry, "link", href=change.url)
        updated.text = change.time.isoformat()
    return ET.tostring(root, encoding="unicode")


def _text(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    element.text = text
    return element


def main(folder: str) -> None:
    """Print the feed and keep the number of the last change."""
    with recrawl.open(folder) as repo:
        mark = repo.folder / "changes_feed.id"
        changes = list(repo.changes(after=int(mark.read_text()) if mark.is_file() else -1))
        print(feed(changes))
        if changes:
            Path(mark).write_text(f"{changes[-1].id}\n")


if __name__ == "__main__":
    main(sys.argv[1])
