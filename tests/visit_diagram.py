"""The diagrams of docs/concepts/visits.md, from the code: `python -m tests.visit_diagram docs/concepts/visits.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from recrawl.crawl.visits.machine import TRANSITIONS, Phase, Thing

BEGIN, END = "<!-- diagrams: written by `make docs` from the code; edit that, not this -->", "<!-- end of diagrams -->"
_NAMES = {
    "PageVisit": "A page",
    "RobotsRead": "robots.txt",
    "SitemapRead": "A sitemap",
    "FeedRead": "A feed",
    "AbsentRead": "An address that cannot exist",
    "RequisiteRead": "A stylesheet, image, font or script",
    "StoredScan": "A stored page that is searched for what it needs",
    "SiteLogin": "A login",
}


def diagrams() -> str:
    """A diagram for each kind of thing, and what the phases mean."""
    phases = "\n".join(f"| {phase.name} | {phase.value} |" for phase in Phase)
    parts = [_diagram(kind) for kind in TRANSITIONS]
    return "\n\n".join([f"| phase | |\n| --- | --- |\n{phases}", *parts])


def _diagram(kind: type[Thing]) -> str:
    lines = [
        f"    {'[*]' if start is None else start.name} --> {'[*]' if end is Phase.ENDED else end.name}: {why}"
        for (start, end), why in TRANSITIONS[kind].items()
    ]
    return "\n".join([f"### {_NAMES[kind.__name__]}", "", "```mermaid", "stateDiagram-v2", *lines, "```"])


def drawn(page: str) -> str:
    """The page with the diagrams of now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{diagrams()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(drawn(file.read_text(encoding="utf-8")), encoding="utf-8")
