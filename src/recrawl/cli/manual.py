"""Writes the man pages: `python -m recrawl.cli.manual man/man1`. They come from the same help as `--help`.

recrawl.1 lists the commands; recrawl-COMMAND.1 describes one, recrawl-lab-COMMAND.1 one of the lab.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from recrawl.cli import VERBS, app_of
from recrawl.version import __version__


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of every man page."""
    top = typer.main.get_command(app_of(""))
    yield "recrawl", _page("recrawl", top, see=[f"recrawl-{verb}" for verb in VERBS])
    for verb in VERBS:
        yield from _of(f"recrawl {verb}", _commands(typer.main.get_command(app_of(verb)))[verb])


def _of(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """The page of a command, and those of its own commands."""
    inner = _commands(command)
    yield name.replace(" ", "-"), _page(name, command, see=[f"{name} {one}".replace(" ", "-") for one in inner])
    for one, below in inner.items():
        yield from _of(f"{name} {one}", below)


def _commands(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def _page(name: str, command: Any, see: list[str]) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    text = inspect.cleandoc(command.help or "")
    first, _, rest = text.partition("\n\n")
    title = name.replace(" ", "-")
    parts = [
        f'.TH {_escaped(title.upper())} 1 "" "recrawl {__version__}"',
        f".SH NAME\n{_escaped(title)} \\- {_escaped(' '.join(first.split()))}",
        f".SH SYNOPSIS\n.B {_escaped(name)}\n{_escaped(' '.join(command.collect_usage_pieces(context)))}",
    ]
    if rest:
        parts.append(".SH DESCRIPTION\n" + _paragraphs(rest))
    records = [record for record in (one.get_help_record(context) for one in command.get_params(context)) if record]
    if records:
        parts.append(
            ".SH OPTIONS\n" + "\n".join(f".TP\n.B {_escaped(left)}\n{_escaped(right)}" for left, right in records)
        )
    inner = _commands(command)
    if inner:
        rows = (f".TP\n.B {_escaped(one)}\n{_escaped(below.get_short_help_str(200))}" for one, below in inner.items())
        parts.append(".SH COMMANDS\n" + "\n".join(rows))
    if command.epilog:
        parts.append(f".SH EXAMPLE\n{_escaped(command.epilog.removeprefix('Example: '))}")
    if see:
        parts.append(".SH SEE ALSO\n" + ",\n".join(f".BR {_escaped(one)} (1)" for one in see))
    return "\n".join(parts) + "\n"


def _paragraphs(text: str) -> str:
    """Paragraphs of a help text; one that begins with \\b keeps its lines."""
    made = []
    for part in text.split("\n\n"):
        keeps = part.startswith("\b")
        lines = part.lstrip("\b\n").splitlines()
        made.append(".nf\n" + "\n".join(map(_escaped, lines)) + "\n.fi" if keeps else _escaped(" ".join(lines)))
    return "\n.PP\n".join(made)


def _escaped(text: str) -> str:
    """Text as roff prints it: backslashes and minus signs escaped, no line that begins as a request."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def main(folder: Path) -> None:
    """Write all man pages to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    print(f"wrote {len(list(folder.glob('*.1')))} man pages to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
