"""A run as people watch it: a progress line on a terminal, a summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recrawl.cli.output import count, note, say
from recrawl.crawl.cycles import Summary
from recrawl.crawl.tally import RunCounts
from recrawl.model import Outcome
from recrawl.repository.times import span

_WARNINGS = 10
"""Of more than this, the rest is left out."""


@contextmanager
def watched(title: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[RunCounts], None]]:
    """A function for the engine to report to."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    # Rich takes a while to load, and is of use on a terminal only.
    from recrawl.cli import run_bar as bars  # lazy: loads slowly

    with bars.bar(title, total, news_of) as report:
        yield report


def news_of(tally: RunCounts) -> str:
    """Counts in a few words."""
    words = ("new", "changed", "gone", "unchanged", "failed")
    parts = [(tally.outcomes[Outcome[word.upper()]], word) for word in words]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing"


def tell(summary: Summary) -> None:
    """A run for people."""
    tally = summary.tally
    name = f"{summary.cycle.kind} {summary.cycle.id}"
    how = " (resumed)" if summary.resumed else ""
    end = "" if summary.finished else "; stopped before its end, the next one goes on from here"
    say(f"{name}{how}: {count(tally.visits, 'visit')} in {span(summary.seconds)}: {news_of(tally)}{end}")
    if tally.found:
        say(f"  {count(tally.found, 'page')} found, {tally.received / 1e6:.1f} MB received")
    for text in summary.notes:
        note(text)
    for failure, number in tally.failures.most_common(5):
        say(f"  {number:,} x {failure}")
    for warning in tally.warnings[:_WARNINGS]:
        note(f"ignored: {warning}")
