"""Commands for other systems: import, export, chunks, sink."""

from __future__ import annotations

import json as json_lines
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, as_json, count, note, repository, say, table
from recrawl.cli.terminal.signals import Stop
from recrawl.errors import UnknownName, UsageError
from recrawl.parameters import ImportOptions, Wait
from recrawl.times import iso, moment, stamp

if TYPE_CHECKING:
    from recrawl.lab.formats.source_kinds import Kind
    from recrawl.lab.formats.version_rows import Taken
    from recrawl.repository.exchange import Selection
    from recrawl.repository.export.chunks import ChunkChange
    from recrawl.repository.repository import Repository

_WORDS: dict[str, Literal["git", "warc"]] = {"git": "git", "warc": "warc"}
_UPDATE_EVERY = 0.2
_ACTIONS = ("add", "list", "remove", "run", "parked", "retry", "drop")
_COLUMNS = {"name": "name", "kind": "kind", "target": "target", "waiting": ">waiting", "parked": ">parked"} | {
    "problem": "problem"
}
_PARKED = {"number": ">number", "receiver": "receiver", "since": "since", "outcome": "outcome", "url": "url"} | {
    "tries": ">tries",
    "error": "error",
}


@example("Example: recrawl import git site --base-url https://example.org --out site.parquet")
def import_(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[git | warc] FILE...",
            help="A URL list (one per line; - for standard input), Parquet or WARC files, or a git repository.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.parquet", help="Write the history (git or WARC) to this archive instead."),
    ] = None,
    wait: Wait = False,
    json: AsJson = False,
    **options: Unpack[ImportOptions],
) -> None:
    """Import URLs (a text file) or histories of pages (Parquet, WARC, a site's git repository).

    URLs become known pages, whatever their site; the next crawl downloads them. Histories are recorded as if the
    pages had been visited at those times; pages that were visited before are skipped. With --out, the history is
    written as a Parquet archive (url, time, html) for the lab, and no repository is needed.

    Of WARC, WACZ and ARC files, the answers that a crawl would keep are taken, with their headers: pages of all
    content types that the settings name, and 404 and 410. Digests are computed; those that the files state are
    compared, never believed. At the end a table says what became of the records of each type.

    In a git repository, every commit on the branch that changes an .html or .htm file adds a version of that page, at
    the time of the commit; index.html is the page of its folder. The words git and warc are optional.
    """
    from recrawl.lab.formats.version_rows import Window  # lazy: the help does without
    from recrawl.repository import exchange  # lazy: the help does without
    from recrawl.repository.exchange import Selection  # lazy: the help does without

    word = _WORDS.get(str(files[0])) if len(files) > 1 else None
    files = files[1:] if word else files
    kinds: dict[Path, Kind | None] = {file: word or exchange.kind_of(file) for file in files}
    if out is not None:
        times = (options.get("since"), options.get("until"))
        first, last = (None if text is None else int(moment(text, time.time())) for text in times)
        window = Window(first, last, options.get("limit"))
        selection = Selection(options.get("base_url"), options.get("branch"), options.get("root"), window)
        _to_archive(kinds, out, selection, json=json)
        return
    _to_repository(repository(ctx), kinds, {"kind": word, "wait": wait, **options}, json=json)


def _to_repository(repo: Repository, kinds: dict[Path, Kind | None], options: dict[str, Any], *, json: bool) -> None:
    from recrawl.repository import exchange  # lazy: the help does without

    lists = [file for file, kind in kinds.items() if kind is None]
    histories = [file for file, kind in kinds.items() if kind is not None]
    with repo, _conversion_line(quiet=json) as on_converted, _page_bar(quiet=json) as on_page:
        urls = exchange.lines_of(map(_read, lists))
        imported = repo.import_history(*histories, urls=urls, converting=on_converted, progress=on_page, **options)
    if json:
        as_json(imported.as_dict())
        return
    for line in imported.refused[:5]:
        note(f"not a valid URL: {line[:200]}")
    _print_remarks(imported.remarks or {})
    if imported.records is not None:
        _print_records(imported.records)
        _print_became(imported.became or {})
    refused = f"; refused {len(imported.refused):,}" if imported.refused else ""
    say(f"imported {imported.pages:,} new pages and {imported.versions:,} versions{refused}")


def _read(file: Path) -> str:
    return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig", errors="replace")


def _to_archive(kinds: dict[Path, Kind | None], out: Path, selection: Selection, *, json: bool) -> None:
    """`--out`: write an archive and print what is in it."""
    from recrawl.lab.formats.source_kinds import CARRIES  # lazy: the help does without
    from recrawl.repository import exchange  # lazy: the help does without

    selection.check({kind for kind in kinds.values() if kind})
    if out.suffix != ".parquet" or not out.parent.is_dir():
        raise UsageError(f"invalid --out {out}: use a name that ends in .parquet, in an existing folder")
    other = next((file for file, kind in kinds.items() if kind not in ("git", "warc")), None)
    if other is not None:
        raise UsageError(f"--out needs a git repository or WARC files; {other} is neither")
    if len(set(kinds.values())) > 1:
        raise UsageError("--out takes a git repository or WARC files, not both")
    kind = next(iter(kinds.values()))
    assert kind is not None
    begun = time.monotonic()
    with _conversion_line(quiet=json) as on_converted:
        taken = exchange.convert(kind, list(kinds), out, selection, on_converted)
    if json:
        as_json(_described(kind, out, taken, time.monotonic() - begun))
        return
    _print_remarks(taken.remarks)
    if taken.records:
        _print_records(taken.as_dict())
    versions, removals = count(taken.rows - taken.removals, "version"), count(taken.removals, "removal")
    size = out.stat().st_size / 1e6
    say(f"wrote {out}: {versions} and {removals} of {count(taken.pages, 'page')}, {size:,.1f} MB")
    say(f"from {stamp(taken.start)} to {stamp(taken.end)}; contains {', '.join(CARRIES[kind])}")


def _print_records(records: dict[str, Any]) -> None:
    """How many records of WARC files were taken or left out, by type."""
    rows: list[dict[str, Any]] = []
    for kind, counts in records.items():
        rows.append({"type": kind, "records": counts["read"], "taken": counts["taken"], "left": None, "why": ""})
        reasons = sorted(counts["left_out"].items(), key=lambda one: -one[1])
        rows += [{"type": kind, "left": number, "why": why} for why, number in reasons]
    table(rows, {"type": "type", "records": ">records", "taken": ">taken", "left": ">left out", "why": "because"})


def _print_became(counts: dict[str, int]) -> None:
    """What became of the records that were taken."""
    words = {
        "new": "new pages",
        "changed": "changes",
        "unchanged": "unchanged",
        "gone": "removals",
        "failed": "failures",
    }
    words["known"] = "of pages that were visited before"
    became = [f"{number:,} {words[what]}" for what, number in counts.items() if number]
    say(f"taken records: {', '.join(became) or 'none'}")


def _print_remarks(remarks: dict[str, int]) -> None:
    for what, number in remarks.items():
        note(f"{number:,} {what}")


def _described(kind: Kind, out: Path, taken: Taken, seconds: float) -> dict[str, Any]:
    from recrawl.lab.formats.source_kinds import CARRIES  # lazy: the help does without

    return {
        "archive": str(out),
        "kind": kind,
        "carries": list(CARRIES[kind]),
        "pages": taken.pages,
        "versions": taken.rows - taken.removals,
        "removals": taken.removals,
        "start": iso(taken.start),
        "end": iso(taken.end),
        "bytes": out.stat().st_size,
        "remarks": taken.remarks,
        **({"records": taken.as_dict()} if taken.records else {}),
        "seconds": round(seconds, 3),
    }


@contextmanager
def _conversion_line(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show the progress of a conversion; yields the function to report it to."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # lazy: the help does without

    from recrawl.cli.terminal.progress import progress  # lazy: the help does without

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress(*columns, quiet=quiet) as bars:
        task = bars.add_task("", total=None)
        last = 0.0

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _UPDATE_EVERY:
                last = now
                bars.update(task, description=f"{what}: {done:,}" + (f" of {total:,}" if total else ""))

        yield report


@contextmanager
def _page_bar(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show the imported pages; yields the function to report them to."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # lazy: the help does without

    from recrawl.cli.terminal.progress import progress  # lazy: the help does without

    with progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), quiet=quiet) as bars:
        task = bars.add_task("importing pages", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@example("Example: recrawl export news.wacz --since 7d")
def export(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write: .parquet, .wacz, .warc.gz or .cdxj; otherwise a URL list; - for standard output."
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Export only what was recorded since then, as in 7d.")
    ] = None,
    table: Annotated[
        Literal["pages", "visits", "versions", "changes"] | None,
        typer.Option(help="Write this table as Parquet, one column per field."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Export versions, archive records, tables or URLs; the ending of the file name selects the format.

    A .parquet file holds all versions of all pages (url, time, html), or one table with --table. A .wacz file holds
    the archived records with an index and a list of pages, for ReplayWeb.page and pywb; .warc.gz and .cdxj hold the
    records and the index alone. Any other name gets the URLs, one per line.
    """
    with repository(ctx) as repo:
        if str(file) == "-":
            if since is not None or table is not None:
                raise UsageError("--since and --table need the name of a file")
            if json:
                as_json([{"url": url} for url in repo.urls()])
            else:
                for url in repo.urls():
                    sys.stdout.write(f"{url}\n")
            return
        left_out: list[str] = []
        rows = repo.export(file, since=since, table=table, left_out=left_out.append)
    if json:
        as_json({"file": str(file), "rows": rows, **({"left_out": left_out} if left_out else {})})
        return
    note(f"wrote {rows:,} rows to {file}")
    for sentence in left_out:
        note(f"left out: {sentence}")


@example("Example: recrawl chunks --state corpus.state")
def chunks(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="TIME", help="Only what changed since then, e.g. 2d.")] = "",
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Continue where the last call with this file stopped, and update it."),
    ] = None,
    words: Annotated[int, typer.Option(min=20, max=10_000, help="Words of a chunk, at most.")] = 300,
    overlap: Annotated[
        int, typer.Option(min=0, max=1_000, help="Words of the chunk before that are repeated, at most half a chunk.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Print chunks of pages as JSON lines: "put" for new ones, "update" where all but the text changed, and "delete".

    The id of a chunk follows from its site and its text, so that only what is new is embedded again. What several pages
    of a site say is printed once. Menus, footers and other parts of the site's frame are left out. The state file
    is updated after the last line is written: if the command is interrupted, the next call prints the same lines again.
    With --json, the lines become one JSON list.
    """
    from recrawl.repository.export.chunks import Cursor  # lazy: the help does without

    if since and state is not None:
        raise UsageError("use --since or --state, not both")
    with repository(ctx) as repo:
        if state is None:
            after = Cursor.since(repo, moment(since, time.time())) if since else None
            _write(repo.chunks(after=after, words=words, overlap=overlap), json=json)
            return
        with repo.chunk_export(state, words=words, overlap=overlap) as export:
            _write(export, json=json)
            export.commit()


def _write(changes: Iterable[ChunkChange], *, json: bool) -> None:
    rows = (change.as_dict() for change in changes)
    if json:
        as_json(list(rows))
    else:
        for row in rows:
            sys.stdout.write(json_lines.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()


@example("Example: recrawl sink add search opensearch https://search.example:9200/pages --secret '${SEARCH_KEY}'")
def sink(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="add, list, remove, run, parked, retry or drop.")
    ] = "list",
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the sink; 'run' and 'parked' without one take all.")
    ] = "",
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="opensearch, webhook, postgres, markdown, chunks, or of a plug-in.")
    ] = "",
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help="A URL, or a folder or file.")] = "",
    site: Annotated[str, typer.Option(metavar="SITE", help="Only changes of this site.")] = "",
    secret: Annotated[
        str,
        typer.Option(metavar="REFERENCE", help="Token or password: '${NAME}' of the environment, or '${file:PATH}'."),
    ] = "",
    max_body: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Send a change without its text if its body is larger; 0: no limit. Default: webhook 1MB, "
            "opensearch 10MB, others none.",
        ),
    ] = "",
    from_now: Annotated[bool, typer.Option("--from-now", help="Skip what is stored already.")] = False,
    number: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="For 'retry' and 'drop': a parked change; may be given several times."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="For 'retry' and 'drop': all parked changes of NAME.")] = False,
    json: AsJson = False,
) -> None:
    """Deliver every change to a sink: at least once, the changes of a page in order, resumed after a crash.

    'run' and 'serve' deliver by themselves; 'sink run' delivers now. What fails is tried again with growing pauses. A
    change that the receiver refuses, or that failed 12 times, is parked and holds up nothing: 'parked' lists those of
    sinks and alerts, 'retry' sends them again, 'drop' drops them. Secrets are referred to, never stored or shown.
    """
    numbers = number or []
    _check(action, name, kind, target, chosen=bool(numbers) or every)
    with repository(ctx) as repo:
        if action == "parked":
            _parked(repo, name, as_rows=json)
        elif action in ("retry", "drop"):
            done = (repo.retry_parked if action == "retry" else repo.drop_parked)(name, numbers)
            word = "to be sent again" if action == "retry" else "dropped"
            if json:
                as_json({"changes": done})
            else:
                say(f"{count(done, 'change')} {word}")
        elif action == "run":
            _run(repo, name, as_rows=json)
        else:
            if action == "add":
                repo.add_sink(name, kind, target, site=site, secret=secret, max_body=max_body, from_now=from_now)
            elif action == "remove":
                repo.remove_sink(name)
            rows = [state.as_dict() for state in repo.sinks()]
            if json:
                as_json(rows)
            elif action == "list":
                table(rows, _COLUMNS)
            else:
                say(f"{'added' if action == 'add' else 'removed'} the sink {name}")


def _check(action: str, name: str, kind: str, target: str, *, chosen: bool) -> None:
    """Raise `UsageError` unless the action has what it needs."""
    if action not in _ACTIONS:
        raise UnknownName("action of sink", action, _ACTIONS)
    if action == "add" and not (name and kind and target):
        raise UsageError("name the sink, its kind and its target: recrawl sink add NAME KIND TARGET")
    if action == "remove" and not name:
        raise UsageError("name the sink: recrawl sink remove NAME")
    if action in ("retry", "drop") and not (name and chosen):
        raise UsageError(f"say which changes: recrawl sink {action} NAME --number NUMBER, or --all")


def _parked(repo: Repository, name: str, *, as_rows: bool) -> None:
    rows = [parked.as_dict() for parked in repo.parked(name)]
    if as_rows:
        as_json(rows)
    else:
        table(rows, _PARKED)


def _run(repo: Repository, name: str, *, as_rows: bool) -> None:
    """Deliver to one sink or to all, side by side; end with code 1 if something could not be delivered."""
    from recrawl.repository.sinks.delivery import failure, run  # lazy: the help does without

    names = [name] if name else [state.rule.name for state in repo.sinks()]
    stop = Stop()
    done = run(repo, names, stop, at_once=True)
    if as_rows:
        states: list[dict[str, Any]] = [state.as_dict() for state in repo.sinks() if state.rule.name in done]
        as_json([row | {"sent": done[row["name"]].delivered} for row in states])
    else:
        for one, counts in done.items():
            say(f"{one}: {count(counts.delivered, 'change')} delivered")
    failed = {one: counts for one, counts in done.items() if counts.error is not None}
    for one, counts in failed.items():
        note(f"recrawl: sink {one}: {failure(one, counts)}")
    if failed:
        raise typer.Exit(max(counts.error.exit_code for counts in failed.values() if counts.error))
    stop.end(finished=False)
