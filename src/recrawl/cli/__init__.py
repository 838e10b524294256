"""The command line: git-like verbs, one file each.

Only the verb that is asked for is imported, so that `recrawl --help` and small questions answer at once.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from recrawl.errors import RecrawlError, UnknownName
from recrawl.version import __version__

VERBS: dict[str, str] = {
    "init": "Make a repository.",
    "add": "Name sites or pages to keep.",
    "rm": "Stop keeping a site or page.",
    "crawl": "Discover and download what is new.",
    "cycle": "Refresh: one cycle with a budget.",
    "run": "Refresh for ever, cycle after cycle.",
    "serve": "Run the service: scheduler, dashboard, API.",
    "status": "What is there, and when it was last looked at.",
    "sites": "List the sites.",
    "pages": "List the pages.",
    "changes": "What changed.",
    "log": "The versions of a page.",
    "show": "A version of a page.",
    "diff": "What changed between two versions of a page.",
    "why": "Why a page was visited, or was not.",
    "predict": "How likely a page has changed by now, and why.",
    "rates": "How often pages change, and how sure that is.",
    "search": "Search the newest version of every page.",
    "anchor": "The page that links a site's newest pages, and change by depth.",
    "noise": "Propose filters for what changes without news.",
    "policies": "List the policies, with their sources.",
    "config": "List, show or change settings.",
    "import": "Take in a URL list or a Parquet archive.",
    "export": "Write a URL list or a Parquet archive.",
    "demo": "See it all work on a small living web.",
    "lab": "The laboratory: make and serve living webs.",
}
"""Verb to help, in the order in which people need them."""

MODULES = {"import": "imports", "export": "exports", "run": "running"}  # names that Python or we have taken
_GROUPS = {"lab"}
_TAKE_MINUS = {"diff", "search", "config"}
"""Verbs whose arguments may begin with a minus: versions counted from the end, words that must not occur."""


def main() -> None:
    """The entry point of the command `recrawl`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; 0 went well, 1 did not, 2 was not understood."""
    # Our matrices are small: on a busy machine threads that share one wait for each other far longer than it takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        verb = _verb(arguments)
        if verb and verb not in VERBS:
            raise UnknownName("verb", verb, VERBS)
        missing = not verb and not {"--help", "--version"} & set(arguments)
        _app(verb)(args=["--help"] if missing else list(arguments), prog_name="recrawl")
    except RecrawlError as error:
        typer.echo(f"recrawl: {error}", err=True)
        return error.exit_code
    except SystemExit as leave:  # how typer says that it is done
        return (leave.code if isinstance(leave.code, int) else 0) or _flushed() or 2 * missing
    except KeyboardInterrupt:
        typer.echo("recrawl: stopped", err=True)
        return 130
    except BrokenPipeError:
        _silence()  # whoever read our output has had enough
        return 0
    except OSError as error:
        _silence()
        typer.echo(f"recrawl: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", err=True)
        return 1
    return _flushed()


def _flushed() -> int:
    """What was printed must have arrived: a full disk shows only now."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _silence()
        typer.echo(f"recrawl: the output could not be written: {error}", err=True)
        return 1
    return 0


def _silence() -> None:
    """Let Python's own last flush at exit go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _verb(arguments: Sequence[str]) -> str:
    """The first word that is not an option of `recrawl` itself."""
    rest = iter(arguments)
    for word in rest:
        if word == "-C":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def _app(verb: str) -> typer.Typer:
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
    # Typer looks closely at every command that it is given, so it gets the one that is asked for; all for the help.
    for name, text in VERBS.items():
        if name == verb:
            module = importlib.import_module(f"recrawl.cli.{MODULES.get(name, name)}")
            if name in _GROUPS:
                app.add_typer(module.app, name=name, help=text)
            else:
                loose = {"ignore_unknown_options": name in _TAKE_MINUS}
                app.command(name, help=module.command.__doc__, epilog=module.EXAMPLE, context_settings=loose)(
                    module.command
                )
        elif not verb:
            app.command(name, help=text)(_elsewhere)
    return app


def _elsewhere() -> None:
    """Stands in for verbs that were not asked for, so that the help can list them."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


def _options(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option("-C", metavar="DIR", help="Work on the repository in DIR, not on the one around here."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
    ctx.obj = folder
