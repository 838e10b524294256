"""A crawl or cycle on the terminal: a progress bar while it runs, a summary at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from recrawl.cli.terminal.output import count, note, say
from recrawl.model import Outcome
from recrawl.repository.values import Progress, Report
from recrawl.times import span

_MOST_WARNINGS = 10
_MOST_FAILURES = 5


class ProgressTarget(NamedTuple):
    """Where a run reports its progress: a bar on a terminal, or nowhere."""

    report: Callable[[Progress], None] | None
    close: Callable[[], None]


@contextmanager
def watched(*, quiet: bool) -> Iterator[ProgressTarget]:
    """Show progress on a terminal unless `quiet`: pass `report` as the run's `progress`, `close` before printing."""
    if quiet or not sys.stderr.isatty():
        yield ProgressTarget(None, lambda: None)
        return
    from recrawl.cli.terminal.progress import RunBar  # lazy: rich loads slowly

    bar = RunBar(describe_outcomes)
    try:
        yield ProgressTarget(bar, bar.close)
    finally:
        bar.close()


def describe_outcomes(outcomes: Counter[Outcome]) -> str:
    """Visits by outcome, as in '3 new, 1 changed'."""
    words = ("new", "changed", "gone", "unchanged", "failed")
    parts = [(outcomes[Outcome[word.upper()]], word) for word in words]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing"


def print_report(report: Report) -> None:
    """Print the summary of a crawl or cycle."""
    resumed = " (resumed)" if report.resumed else ""
    end = "" if report.finished else "; stopped early, the next one resumes it"
    visits = f"{count(report.visits, 'visit')} in {span(report.seconds)}: {describe_outcomes(report.outcomes)}"
    say(f"{report.kind} {report.cycle}{resumed}: {visits}{end}")
    if report.found:
        say(f"  {count(report.found, 'page')} found, {report.received / 1e6:.1f} MB received")
    if report.work:
        say("  policy: " + ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in report.work.items()))
    for text in report.notes:
        note(text)
    for failure, number in report.failures.most_common(_MOST_FAILURES):
        say(f"  {number:,} x {failure}")
    for warning in report.warnings[:_MOST_WARNINGS]:
        note(f"warning: {warning}")
