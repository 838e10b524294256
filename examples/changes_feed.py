"""What changed in a repository, as an Atom feed on standard output.

    python examples/changes_feed.py DIR > changes.atom

It asks the command line for JSON, as any program in any language can.
"""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

ATOM = "http://www.w3.org/2005/Atom"


def feed(changes: list[dict[str, str]]) -> str:
    """The feed, newest entry first."""
    root = ET.Element("feed", xmlns=ATOM)
    _text(root, "title", "Changes seen by recrawl")
    _text(root, "id", "urn:recrawl:changes")
    _text(root, "updated", changes[0]["at"] if changes else "1970-01-01T00:00:00Z")
    for change in changes:
        entry = ET.SubElement(root, "entry")
        _text(entry, "title", f"{change['outcome']}: {change['title'] or change['url']}")
        _text(entry, "id", f"{change['url']}#{change['at']}")
        _text(entry, "updated", change["at"])
        ET.SubElement(entry, "link", href=change["url"])
    return ET.tostring(root, encoding="unicode")


def _text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = text


def main(folder: str) -> None:
    """Ask, and print."""
    command = [sys.executable, "-m", "recrawl", "-C", folder, "changes", "--limit", "100", "--json"]
    asked = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    print(feed(json.loads(asked.stdout)))


if __name__ == "__main__":
    main(sys.argv[1])
