"""The command line: git-like commands, one module each.

`recrawl COMMAND` imports only the module of that command, so that `recrawl --help` and small queries start quickly.
Commands parse options and print; the work is done by `recrawl.repository` and `recrawl.lab`.

manage/      create a repository, say what it tracks, verify it: init, add, rm, config, access, import, export,
             chunks, sink, check, move
refresh/     visit pages: crawl, cycle, run, serve, demo
read/        list what is stored: status, sites, pages, changes, log, show, diff, search
explain/     explain and estimate: why, predict, rates, anchor, noise, policies, plugins
cluster.py   `recrawl cluster`: start, join, status, stop, move, drain
lab/         `recrawl lab`: run, compare, predict, reproduce, synth, serve
terminal/    what commands share: options, output, tables, progress, opening a repository
reference.py, api_reference.py, failure_reference.py, markdown.py  the generated pages of docs/reference
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
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.terminal import output
from recrawl.cli.terminal.completions import COMPLETE_VARIABLE, words_to_complete
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
    "serve": "Run the service: scheduler, dashboard, API.",
    "status": "Show size, age and the last cycles.",
    "sites": "List the sites.",
    "pages": "List the pages.",
    "changes": "List what changed.",
    "log": "List the versions of a page.",
    "show": "Print a version of a page.",
    "diff": "Compare two versions of a page.",
    "why": "Explain why a page was visited or not.",
    "predict": "Estimate whether a page has changed by now.",
    "rates": "Estimate how often pages change.",
    "search": "Search the newest version of every page.",
    "anchor": "Find the page that links a site's newest pages.",
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
    "move": "Move the facts to PostgreSQL or back.",
    "demo": "Crawl and refresh a small generated web.",
    "completion": "Print a script for shell completion.",
    "cluster": "Run and watch a repository on many machines.",
    "lab": "Replay policies, repeat experiments, generate and serve webs.",
}
"""Command to help text, in the order in which users need them."""

_FOLDERS = {
    "manage": (
        "init",
        "add",
        "rm",
        "tag",
        "config",
        "access",
        "import",
        "export",
        "chunks",
        "sink",
        "check",
        "move",
        "completion",
    ),
    "refresh": ("crawl", "cycle", "recheck", "run", "serve", "demo"),
    "read": ("status", "sites", "pages", "changes", "log", "show", "diff", "search"),
    "explain": ("why", "predict", "rates", "anchor", "noise", "policies", "plugins"),
}
_RENAMED = {"import": "imports", "export": "exports"}
"""Commands whose module has another name: `import` is a keyword of Python."""
MODULES = {"lab": "recrawl.cli.lab", "cluster": "recrawl.cli.cluster"} | {
    verb: f"recrawl.cli.{folder}.{_RENAMED.get(verb, verb)}" for folder, verbs in _FOLDERS.items() for verb in verbs
}
"""Command to its module."""
_NO_HEADER = "--no-header"
"""Accepted anywhere on the command line: tables in a pipe begin with their first row."""
_UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for wrong usage; it has no public name of its own."""
_GROUPS = {"cluster", "lab"}
_TAKE_MINUS = {"diff", "search", "config"}
"""Commands whose arguments may begin with a minus: versions counted from the newest, excluded search terms."""


def main() -> None:
    """Run the command `recrawl`; `recrawl.__main__` calls this."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end like on Ctrl-C: temporary files are removed
    code = invoke(sys.argv[1:])
    gc.freeze()  # the interpreter would search all modules for cycles at its end, several times
    sys.exit(code)


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
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
        verb, given = _verb(arguments), _without_header(arguments)
        if verb and verb not in VERBS:
            raise UnknownName("command", verb, VERBS)
        missing = not verb and not {"--help", "--version"} & set(given)
        ended = app_of(verb)(args=["--help"] if missing else given, prog_name="recrawl", standalone_mode=not as_json)
        if isinstance(ended, int) and ended:
            return ended
    except RecrawlError as error:
        _complain(error, str(error), error.exit_code, as_json=as_json)
        return error.exit_code
    except _UsageProblem as error:  # raised only with --json; typer prints it otherwise
        _complain(error, error.format_message(), error.exit_code, as_json=True)
        return int(error.exit_code)
    except SystemExit as leave:  # typer exits this way
        return (leave.code if isinstance(leave.code, int) else 0) or _flushed() or 2 * missing
    except KeyboardInterrupt:
        typer.echo("recrawl: stopped", err=True)
        return 130
    except BrokenPipeError:
        _silence()  # the reader closed the pipe
        return 0
    except OSError as error:
        _silence()
        output.note(f"recrawl: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    return _flushed()


def _without_header(arguments: Sequence[str]) -> list[str]:
    """Obey --no-header wherever it stands before a `--`, and take it out."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != _NO_HEADER]
    output.show_header(len(kept) == end)
    return [*kept, *arguments[end:]]


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


def app_of(verb: str) -> typer.Typer:
    """The program with one command, or with a stub of each for the help if `verb` is empty."""
    app = typer.Typer(
        name="recrawl",
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
            module = importlib.import_module(MODULES[name])
            if name in _GROUPS:
                app.add_typer(module.app, name=name, help=text)
            else:
                context = {"ignore_unknown_options": name in _TAKE_MINUS}
                app.command(name, help=module.command.__doc__, epilog=module.EXAMPLE, context_settings=context)(
                    module.command
                )
        elif not verb:
            app.command(name, help=text)(_stub)
    return app


def _stub() -> None:
    """A command that the help lists but that is not run."""


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
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version, header
    ctx.obj = folder
