"""Commands that verify, repair and move a repository, and completion in a shell: check, move, completion."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from recrawl.cli.declared import example
from recrawl.cli.terminal.completions import COMPLETE_VARIABLE
from recrawl.cli.terminal.output import AsJson, as_json, count, note, repository, say
from recrawl.errors import DiskFull, StorageFailure, UsageError
from recrawl.parameters import Wait

if TYPE_CHECKING:
    from recrawl.repository.checking import CheckReport


@example("Example: recrawl check --repair")
def check(
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


@example("Example: recrawl move --to 'postgresql://crawler:${CRAWL_PASSWORD}@db.example/crawl?schema=news'")
def move(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option(metavar="URL", help="'postgresql://user:${NAME}@host/database?schema=NAME', or sqlite."),
    ] = "",
    archive: Annotated[str, typer.Option(metavar="URL", help="'s3://bucket/prefix?endpoint=URL', or folder.")] = "",
    shards: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Make the repository a cluster of shards, or with 0 a cluster one repository.",
        ),
    ] = None,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Move sites, pages, visits and versions to another store, or the archive and models to an object store.

    With --to, the old store stays in use until every row of the copy was compared with it. It is not deleted. With
    --archive, files are put into the object store, and kept in the folder as far as its cache has room; or all
    of them are got back. If the command is interrupted, run it again: it goes on where it stopped. The service of the
    repository must not run.

    With --shards and both, the repository becomes a cluster: recrawl move --shards 32
    --to 'postgresql://db.example/crawl?schema=news' --archive 's3://pages/news'. It stays in use, as it is,
    until all of the cluster was compared with it.
    """
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without

    if shards is not None:
        _divide(ctx, to, archive, shards, wait=wait, json=json)
        return
    if bool(to) == bool(archive):
        raise UsageError("name what to move: either --to or --archive; a cluster needs --shards and both")
    if archive:
        _move_archive(ctx, archive, wait=wait, json=json)
        return
    with repository(ctx) as repo, detailed(quiet=json) as bar:
        task = bar.add_task("copying", total=None, detail="")
        moved = repo.move(
            to, wait=wait, progress=lambda table, rows: bar.update(task, detail=f"{table}: {count(rows, 'row')}")
        )
    if json:
        as_json(moved._asdict())
        return
    say(f"moved {count(moved.rows, 'row')} to {moved.to}")
    note(f"the old store is still there: {moved.old}")


def _divide(ctx: typer.Context, to: str, archive: str, shards: int, *, wait: bool, json: bool) -> None:
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.cluster.commands.division import divide_repository  # lazy: needs the extra `postgres`
    from recrawl.cluster.opening import is_cluster  # lazy: few commands move
    from recrawl.repository.opening import patience  # lazy: the help does without

    with repository(ctx) as repo:
        folder = repo.folder
    if is_cluster(folder) != (shards == 0):
        raise UsageError(
            "this repository is not a cluster; name a number of shards from 1 on"
            if shards == 0
            else "this repository is a cluster already: the number of its shards never changes"
        )
    if not shards:
        _join(folder, to, archive, json=json)
        return
    with detailed(quiet=json) as bar:
        task = bar.add_task("dividing", total=None, detail="")
        moved = divide_repository(
            folder,
            store=to,
            archive=archive,
            shards=shards,
            wait=patience(wait, note),
            progress=lambda part, done: bar.update(task, detail=f"{part}: {done:,}"),
        )
    if json:
        as_json(moved._asdict())
        return
    what = f"{count(moved.rows, 'row')} and {count(moved.files, 'archive file')}"
    say(f"divided {what} into {count(moved.shards, 'shard')}, in {moved.to} and {moved.archive}")
    note(f"the old store is still there: {moved.old}; start the workers with 'recrawl cluster start'")


def _join(folder: Path, to: str, archive: str, *, json: bool) -> None:
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.cluster.commands.joining import join_cluster  # lazy: needs the extra `postgres`

    with detailed(quiet=json) as bar:
        task = bar.add_task("joining", total=None, detail="")
        moved = join_cluster(
            folder,
            store=to,
            archive=archive,
            progress=lambda part, done: bar.update(task, detail=f"{part}: {done:,}"),
        )
    if json:
        as_json(moved._asdict())
        return
    what = f"{count(moved.rows, 'row')} and {count(moved.files, 'archive file')}"
    say(f"joined {what} of all shards in {moved.to} and {moved.archive}")
    note(f"the tables of the cluster are still there: {moved.old}")


def _move_archive(ctx: typer.Context, to: str, *, wait: bool, json: bool) -> None:
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without

    with repository(ctx) as repo, detailed(quiet=json) as bar:
        task = bar.add_task("copying", total=None, detail="")
        moved = repo.move_archive(
            to, wait=wait, progress=lambda _, files: bar.update(task, detail=count(files, "archive file"))
        )
    if json:
        as_json(moved._asdict())
        return
    say(f"moved {count(moved.files, 'archive file')} to {moved.to}")


class Shell(StrEnum):
    """Shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@example("Example: recrawl completion bash")
def completion(
    ctx: typer.Context,  # noqa: ARG001
    shell: Annotated[Shell, typer.Argument(help="Your shell.")],
    json: AsJson = False,
) -> None:
    """Print a script that completes commands, options, policies, settings, sites and states in your shell.

    bash: append it to ~/.bashrc. zsh: append it to ~/.zshrc, after compinit. fish: write it to
    ~/.config/fish/completions/recrawl.fish.
    """
    script = get_completion_script(prog_name="recrawl", complete_var=COMPLETE_VARIABLE, shell=shell.value)
    as_json({"shell": shell.value, "script": script}) if json else say(script)
