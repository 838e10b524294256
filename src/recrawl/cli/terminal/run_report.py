"""A crawl or cycle on the terminal: a progress bar while it runs, a summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recrawl.cli.terminal.output import count, note, say
from recrawl.crawl.cycles import Summary
from recrawl.crawl.tally import RunCounts
from recrawl.model import Outcome
from recrawl.times import span

_MOST_WARNINGS = 10
_MOST_FAILURES = 5


@contextmanager
def watched(title: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[RunCounts], None]]:
    """Show progress on a terminal; yields the function that the run reports its counts to."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from recrawl.cli.terminal.progress import run_bar  # lazy: rich loads slowly

    with run_bar(title, total, describe_counts) as report:
        yield report


def describe_counts(counts: RunCounts) -> str:
    """Visits by outcome, as in '3 new, 1 changed'."""
    words = ("new", "changed", "gone", "unchanged", "failed")
    parts = [(counts.outcomes[Outcome[word.upper()]], word) for word in words]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing"


def print_summary(summary: Summary) -> None:
    """Print the summary of a crawl or cycle."""
    counts = summary.tally
    name = f"{summary.cycle.kind} {summary.cycle.id}"
    resumed = " (resumed)" if summary.resumed else ""
    end = "" if summary.finished else "; stopped early, the next one resumes it"
    say(f"{name}{resumed}: {count(counts.visits, 'visit')} in {span(summary.seconds)}: {describe_counts(counts)}{end}")
    if counts.found:
        say(f"  {count(counts.found, 'page')} found, {counts.received / 1e6:.1f} MB received")
    for text in summary.notes:
        note(text)
    for failure, number in counts.failures.most_common(_MOST_FAILURES):
        say(f"  {number:,} x {failure}")
    for warning in counts.warnings[:_MOST_WARNINGS]:
        note(f"ignored: {warning}")
