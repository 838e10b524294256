"""The command line: git-like commands, one module each.

`recrawl COMMAND` imports only the module of that command, so that `recrawl --help` and small queries start quickly.
Commands parse options and print; the work is done by `recrawl.repository` and `recrawl.lab`.

watch.py     keep sites or pages in one command: watch
alert.py     alert rules
track.py     create a repository, say what it tracks: init, add, rm, tag, config, access
refresh.py   visit pages: crawl, cycle, recheck, run; serve, mcp
demo.py      a repository that stays fresh, on a small web
read.py      list what is stored: status, usage, sites, pages, changes, log, show, diff, search
explain.py   explain and estimate: why, anchor, noise, policies, plugins
exchange.py  other systems: import, export, chunks, sink
maintain.py  verify, repair, move; completion
erase.py     take pages out, with all traces of them; thin out old versions
cluster.py   `recrawl cluster`: start, join, status, stop, move, drain
lab/         `recrawl lab`: run, compare, predict, reproduce, synth, serve
declared.py  options and arguments of commands, from the declarations in `recrawl.parameters`
terminal/    what commands share: output, tables, progress, opening a repository
reference.py  the generated pages of docs/reference
manual.py    man pages
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from recrawl.cli.declared import as_command
from recrawl.cli.terminal import output
from recrawl.cli.terminal.completions import COMPLETE_VARIABLE, words_to_complete
from recrawl.cli.terminal.signals import exit_code, stop_at_once
from recrawl.errors import RecrawlError, UnknownName
from recrawl.version import __version__

VERBS: dict[str, str] = {
    "init": "Create a repository.",
    "add": "Add sites or pages to track.",
    "rm": "Stop tracking a site or page.",
    "crawl": "Discover and download new pages.",
    "cycle": "Refresh once, within a budget.",
    "recheck": "Visit pages or sites now.",
    "run": "Refresh continuously.",
    "watch": "Keep sites or pages: download them, then print changes.",
    "serve": "Run the service: scheduler, dashboard, API.",
    "mcp": "Answer an assistant over standard input and output.",
    "status": "Show size, age and the last cycles.",
    "usage": "Show what takes space on the disk.",
    "sites": "List the sites.",
    "pages": "List the pages.",
    "changes": "List what changed.",
    "log": "List the versions of a page.",
    "show": "Print a version of a page.",
    "diff": "Compare two versions of a page.",
    "why": "Explain visits; how likely and how often pages change.",
    "search": "Search the newest version of every page.",
    "anchor": "Find the page that links a site's newest pages.",
    "alert": "Be told of changes by mail, webhook, chat or feed.",
    "noise": "Suggest filters for noise (dates, counters, ads).",
    "policies": "List the policies and their sources.",
    "plugins": "List the plug-ins of installed packages.",
    "tag": "Tag pages and sites.",
    "config": "List, show or change settings.",
    "access": "Set headers, cookies, logins and proxies of sites.",
    "import": "Import URL lists, Parquet, WARC or git histories.",
    "export": "Export versions, archives, tables or URLs.",
    "chunks": "Print changed chunks of pages for retrieval corpora.",
    "sink": "Deliver every change to another system.",
    "check": "Verify database, archive and index.",
    "erase": "Erase pages, sites or old versions with all traces.",
    "thin": "Thin out old versions by rules.",
    "move": "Move the facts to PostgreSQL or back.",
    "demo": "Crawl and refresh a small generated web.",
    "completion": "Print a script for shell completion.",
    "cluster": "Run and watch a repository on many machines.",
    "lab": "Replay policies, repeat experiments, generate and serve webs.",
}
"""Command to help text, in the order in which users need them."""
DAILY = ("watch", "init", "add", "crawl", "cycle", "run", "serve", "status", "changes", "diff", "search")
MORE = {
    "Sites and pages": ("sites", "pages", "log", "show", "recheck", "tag", "rm"),
    "Why and when": ("why", "anchor", "noise", "policies"),
    "Settings": ("alert", "config", "access", "plugins", "completion"),
    "Other systems": ("import", "export", "chunks", "sink", "mcp"),
    "Maintenance": ("usage", "check", "erase", "thin", "move", "cluster"),
    "Try and compare": ("demo", "lab"),
}
"""The commands that are not used daily, by what they are for."""
OLD_SPELLINGS = {"predict": ("why", "--chance"), "rates": ("why", "--rate")}
"""Commands that have become part of another one; they work, and say the new spelling."""

_OF_MODULE = {
    "track": ("init", "add", "rm", "tag", "config", "access"),
    "refresh": ("crawl", "cycle", "recheck", "run", "serve", "mcp"),
    "demo": ("demo",),
    "watch": ("watch",),
    "alert": ("alert",),
    "read": ("status", "usage", "sites", "pages", "changes", "log", "show", "diff", "search"),
    "explain": ("why", "anchor", "noise", "policies", "plugins"),
    "exchange": ("import", "export", "chunks", "sink"),
    "maintain": ("check", "move", "completion"),
    "erase": ("erase", "thin"),
    "cluster": ("cluster",),
    "lab": ("lab",),
}
MODULES = {verb: f"recrawl.cli.{module}" for module, verbs in _OF_MODULE.items() for verb in verbs}
"""Command to its module."""
_NO_HEADER = "--no-header"
"""Accepted anywhere on the command line: tables in a pipe begin with their first row."""
_WIDE = "--wide"
"""Accepted anywhere too: tables on a terminal may be wider than it, and show URLs whole."""
_UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for wrong usage; it has no public name of its own."""
GROUPS = {"cluster", "lab"}
"""Commands that have commands."""
_INTERRUPTED = 130
_TAKE_MINUS = {"diff", "search", "config"}
"""Commands whose arguments may begin with a minus: versions counted from the newest, excluded search terms."""


def main() -> None:
    """Run the command `recrawl`; `recrawl.__main__` calls this."""
    signal.signal(signal.SIGTERM, stop_at_once)  # end like on Ctrl-C: temporary files are removed
    code = invoke(sys.argv[1:])
    gc.freeze()  # the interpreter would search all modules for cycles at its end, several times
    sys.exit(code)


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0 success, 1 failure, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM."""
    arguments, renamed = _in_new_spelling(arguments)
    code = _invoked(arguments)
    if renamed and not code:
        output.note(renamed)
    return code


def _invoked(arguments: Sequence[str]) -> int:
    # The matrices are small: on a busy machine, BLAS threads wait for each other longer than the work takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    as_json = "--json" in arguments
    missing, asked = False, words_to_complete()
    try:
        if asked is not None:
            from typer.completion import completion_init  # type: ignore[attr-defined] # lazy: only a shell asks

            completion_init()
            verb = _verb(asked)
            app_of(verb if verb in VERBS else "")(args=[], prog_name="recrawl", complete_var=COMPLETE_VARIABLE)
        verb, given = _verb(arguments), _without_looks(arguments)
        if verb and verb not in VERBS:
            raise UnknownName("command", verb, VERBS)
        missing = not verb and not {"--help", "--version", "--all"} & set(given)
        app = app_of(verb, _verb(arguments[arguments.index(verb) + 1 :]) if verb in GROUPS else "")
        ended = app(args=["--help"] if missing else given, prog_name="recrawl", standalone_mode=not as_json)
        if isinstance(ended, int) and ended:
            return ended
    except (RecrawlError, ModuleNotFoundError) as raised:
        error = _as_ours(raised)
        _complain(error, str(error), error.exit_code, as_json=as_json)
        return error.exit_code
    except _UsageProblem as error:  # raised only with --json; typer prints it otherwise
        _complain(error, error.format_message(), error.exit_code, as_json=True)
        return int(error.exit_code)
    except SystemExit as leave:  # typer exits this way
        if leave.code == _INTERRUPTED:  # typer knows no other signal than Ctrl-C
            return exit_code()
        return (leave.code if isinstance(leave.code, int) else 0) or _flushed() or 2 * missing
    except KeyboardInterrupt:
        typer.echo("recrawl: stopped", err=True)
        return exit_code()
    except BrokenPipeError:
        _silence()  # the reader closed the pipe
        return 0
    except OSError as error:
        _silence()
        output.note(f"recrawl: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    return _flushed()


def _in_new_spelling(arguments: Sequence[str]) -> tuple[Sequence[str], str]:
    """The arguments with the command as it is called today, and what to say if it was called otherwise."""
    verb = _verb(arguments)
    if verb not in OLD_SPELLINGS:
        return arguments, ""
    new = OLD_SPELLINGS[verb]
    place = next(at for at, word in enumerate(arguments) if word == verb and arguments[at - 1 : at] != ["-C"])
    told = f"recrawl: 'recrawl {verb}' is 'recrawl {' '.join(new)}' now; the old spelling goes on working"
    return [*arguments[:place], *new, *arguments[place + 1 :]], told


def _without_looks(arguments: Sequence[str]) -> list[str]:
    """Obey --no-header and --wide wherever they stand before a `--`, and take them out."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    output.show_header(_NO_HEADER not in arguments[:end])
    output.show_wide(_WIDE in arguments[:end])
    return [*(word for word in arguments[:end] if word not in (_NO_HEADER, _WIDE)), *arguments[end:]]


def _as_ours(error: RecrawlError | ModuleNotFoundError) -> RecrawlError:
    """The error, or what a missing package means for the user; others are raised again."""
    if isinstance(error, RecrawlError):
        return error
    from recrawl.extras import missing_extra  # lazy: only for this error

    missing = missing_extra(error)
    if missing is None:
        raise error
    return missing


def _complain(error: Exception, message: str, code: int, *, as_json: bool) -> None:
    """Print an error to standard error: a line of text, or with --json a line of JSON."""
    if as_json:
        typer.echo(json.dumps({"error": message, "kind": type(error).__name__, "exit_code": code}), err=True)
    else:
        output.note(f"recrawl: {message}")


def _flushed() -> int:
    """Flush standard output and return the exit code: a full disk shows only now."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _silence()
        output.note(f"recrawl: cannot write the output: {error}")
        return 1
    return 0


def _silence() -> None:
    """Send Python's own flush at exit to /dev/null."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _verb(arguments: Sequence[str]) -> str:
    """The first argument that is not an option of `recrawl` itself."""
    rest = iter(arguments)
    for word in rest:
        if word == "-C":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def command_of(verb: str) -> Any:
    """The function of a command; `cluster` and `lab` are none themselves."""
    return getattr(importlib.import_module(MODULES[verb]), f"{verb}_" if iskeyword(verb) else verb)


def inner_app(verb: str, part: str = "") -> typer.Typer:
    """The commands of `cluster` or `lab`; of the lab, only `part` if it is one of them."""
    module = importlib.import_module(MODULES[verb])
    app: typer.Typer = module.app_with(part) if verb == "lab" else module.app
    return app


def app_of(verb: str, part: str = "") -> typer.Typer:
    """The program with one command, or with a stub of each for the help if `verb` is empty."""
    app = typer.Typer(
        name="recrawl",
        cls=ProgramHelp if not verb else None,
        help="Keep a local copy of web pages up to date with a limited number of downloads.",
        epilog="Example: recrawl init news && cd news && recrawl add https://example.org && recrawl crawl",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    # Typer inspects every command it is given, so it gets only the requested one; stubs of all for the help.
    for name, text in VERBS.items():
        if name == verb:
            if name in GROUPS:
                app.add_typer(inner_app(name, part), name=name, help=text)
            else:
                function = command_of(name)
                context = {"ignore_unknown_options": name in _TAKE_MINUS}
                app.command(name, help=function.__doc__, epilog=function.example, context_settings=context)(
                    as_command(function)
                )
        elif not verb:
            app.command(name, help=text)(_stub)
    return app


def _stub() -> None:
    """A command that the help lists but that is not run."""


def _list_all(show: bool) -> None:
    if show:
        for title, verbs in {"Daily": DAILY, **MORE}.items():
            typer.echo(f"{title}:")
            for verb in verbs:
                typer.echo(f"  {verb:<12}{VERBS[verb]}")
        raise typer.Exit


class ProgramHelp(typer.core.TyperGroup):
    """The help of the program: what is used daily comes first; the others follow by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        del ctx
        with formatter.section("Daily commands"):
            formatter.write_dl([(verb, VERBS[verb]) for verb in DAILY])
        with formatter.section("More commands; 'recrawl --all' says what each does"):
            formatter.write_dl([(title, ", ".join(verbs)) for title, verbs in MORE.items()])


def _version(show: bool) -> None:
    if show:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


def _options(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(
            "-C", metavar="DIR", help="Use the repository in DIR instead of the one in or above the current folder."
        ),
    ] = None,
    header: Annotated[
        bool, typer.Option(_NO_HEADER, help="Print tables in a pipe without their heading; allowed anywhere.")
    ] = False,
    wide: Annotated[
        bool, typer.Option(_WIDE, help="Let tables be wider than the terminal, with whole URLs; allowed anywhere.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", callback=_list_all, is_eager=True, help="List all commands with what they do.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version, header, wide, every
    ctx.obj = folder
