"""`recrawl check`: verify database, archive and index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, say
from recrawl.cli.terminal.session import repository
from recrawl.errors import DiskFull, StorageFailure
from recrawl.parameters import Wait

if TYPE_CHECKING:
    from recrawl.repository.checking import CheckReport

EXAMPLE = "Example: recrawl check --repair"


def command(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    truth: Annotated[
        bool, typer.Option("--truth", help="Read every stored version again, and compare all with the archive alone.")
    ] = False,
    erased: Annotated[
        bool, typer.Option("--erased", help="Read every file, to prove that nothing is left of what was erased.")
    ] = False,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="With --erased: a text that no file may have; repeatable.")
    ] = None,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Verify database, archive and index against each other. Exits with 1 if a problem is left.

    Every record of the archive is read, so a large repository takes a while. With --repair, the index is rebuilt, an
    archive file that lost its end is cut after its last sound record, versions whose record is damaged are marked as
    lost (the next visit downloads the page in full), and counters are computed again. What a crash leaves behind needs
    no repair: the next writing command sees to it. With --truth, texts, titles, changes and what a search finds are
    computed from the WARC records alone and compared with what the database and the index say. With --erased, every
    file of the repository is read, as it is and decompressed, for addresses that were erased and for each --text.
    """
    from recrawl.repository.checking import unusable  # lazy: the help does without

    try:
        with repository(ctx) as repo:
            report = repo.check(repair=repair, truth=truth, erased=erased, texts=text or (), wait=wait)
    except DiskFull:
        raise
    except StorageFailure as error:
        report = unusable(error)
    if json:
        as_json(report.as_dict())
    else:
        _print(report)
    if not report.clean:
        raise typer.Exit(1)


def _print(report: CheckReport) -> None:
    for text in report.notes:
        note(text)
    for problem in report.problems:
        say(f"{problem.part}: {problem.what}" + (f"; repaired: {problem.repaired}" if problem.repaired else ""))
    what = count(len(report.problems), "problem") if report.problems else "no problem"
    versions, records = count(report.versions, "version"), count(report.records, "record")
    say(f"{what} in {count(report.pages, 'page')}, {versions}, {records} ({report.bytes / 1e6:,.1f} MB)")
    if not report.clean:
        note("'recrawl check --repair' repairs what can be repaired")
