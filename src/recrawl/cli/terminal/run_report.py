"""A crawl or cycle on the terminal: a progress bar while it runs, a summary at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import typer

from recrawl.cli.terminal.output import as_json, count, note, say
from recrawl.cli.terminal.signals import Stop
from recrawl.model import NOT_FAILED, SKIPPED, Outcome
from recrawl.repository.results.failures import in_words
from recrawl.repository.results.runs import Progress, Report, counts
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


def describe_outcomes(outcomes: Counter[Outcome], failures: Counter[str]) -> str:
    """Visits by outcome, as in '3 new, 1 changed'."""
    numbers = counts(outcomes, failures)
    words = ("new", "changed", "gone", "unchanged", "missing", "skipped", "failed")
    return ", ".join(f"{numbers[word]:,} {word}" for word in words if numbers[word]) or "nothing"


def end_run(report: Report, stop: Stop, *, json: bool) -> None:
    """Print the summary of a crawl or cycle; exit with 1 if no page answered, and name the cause; or as stopped."""
    if json:
        as_json(report.as_dict())
    else:
        print_report(report)
    stop.end(finished=report.finished)
    if report.fruitless:
        causes = [
            (word, number) for word, number in (report.failures + report.left).most_common() if word not in NOT_FAILED
        ]
        note(f"recrawl: no page could be downloaded; {in_words(causes[0][0])}")
        raise typer.Exit(1)


def print_report(report: Report) -> None:
    """Print the summary of a crawl or cycle."""
    resumed = " (resumed)" if report.resumed else ""
    end = "" if report.finished else "; stopped early, the next one resumes it"
    outcomes = describe_outcomes(report.outcomes, report.failures)
    visits = f"{count(report.visits, 'visit')} in {span(report.seconds)}: {outcomes}"
    say(f"{report.kind} {report.cycle}{resumed}: {visits}{end}")
    if report.found:
        say(f"  {count(report.found, 'page')} found, {report.received / 1e6:.1f} MB received")
    if report.requisites:
        say(f"  {count(report.requisites, 'page requisite')} requested, {report.requisite_bytes / 1e6:.1f} MB received")
    if report.work:
        say("  policy: " + ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in report.work.items()))
    for text in report.notes:
        note(text)
    for failure, number in report.failures.most_common(_MOST_FAILURES):
        kind = "skipped" if failure in SKIPPED else "missing" if failure in NOT_FAILED else "failed"
        say(f"  {number:,} {kind}, {in_words(failure)}")
    for cause, number in report.left.most_common(_MOST_FAILURES):
        say(f"  {number:,} left for the next run, {in_words(cause)}")
    for warning in report.warnings[:_MOST_WARNINGS]:
        note(f"warning: {warning}")
