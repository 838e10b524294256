"""Generates pages of the reference: `python -m recrawl.cli.reference docs/reference`.

Commands, settings, policies, the parameters of generated webs and the failures come from the objects that the program
uses, so the pages always match the code. One exception: the picture of the demo is what `recrawl demo` prints that
day; `main` draws it, and no test compares it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pty
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from rich.console import Console
from rich.text import Text

from recrawl.choose import POLICIES, parameter_texts, parameters
from recrawl.choose.shards.splitting import why_one_shard
from recrawl.cli import MODULES, VERBS, inner_app
from recrawl.cli.api_reference import api
from recrawl.cli.declared import as_command
from recrawl.cli.failure_reference import MISBEHAVIOUR, failures
from recrawl.cli.markdown import table
from recrawl.lab.synth import PARAMETERS
from recrawl.operations import members_of
from recrawl.parameters import SiteRules
from recrawl.repository.access import ENTRIES
from recrawl.settings import SETTINGS

_HEADER = "<!-- Written by `make docs` from the code; edit that, not this. -->\n"
_WIDTH = 120


def commands() -> str:
    """Every command: purpose, arguments, options, an example."""
    parts = [
        "# Commands\n",
        "`recrawl -C DIR COMMAND` uses the repository in DIR; without `-C`, the one in or above the current folder.",
        "Every command has `--help`; `--json` prints JSON. Exit codes: 0 success, 1 failure, 2 wrong usage,",
        "130 interrupted. Errors go to standard error; with `--json` they are one line of JSON: `error`, `kind` and",
        "`exit_code`.\n",
        "In a pipe, tables are tab-separated and begin with a line of headings; `--no-header` leaves it out.",
        "On a terminal, they fit its width: URLs are shortened in the middle; `--wide` shows all of them.\n",
        "Write durations as `30s`, `10m`, `6h`, `2d`, `1w`, or combined: `1h30m`. Write times as `2026-03-01`,",
        "`2026-03-01T12:00` (UTC unless the time names a zone), as a duration, which means that long ago,",
        "or in words: `today`, `yesterday`, `last week`, `3 days ago`.\n",
        table(("command", "does"), [(f"[`{verb}`](#recrawl-{verb})", text) for verb, text in VERBS.items()]),
    ]
    for verb in VERBS:
        module = importlib.import_module(MODULES[verb])
        if hasattr(module, "command"):
            parts.append(_verb(f"recrawl {verb}", as_command(module.command), module.EXAMPLE))
            continue
        parts.append(f"## recrawl {verb}\n\n{VERBS[verb]} Its commands follow.\n")
        for info in inner_app(verb).registered_commands:
            assert info.callback is not None
            name = info.name or info.callback.__name__
            parts.append(_verb(f"recrawl {verb} {name}", info.callback, info.epilog or "", level="###"))
    return "\n".join(parts)


def _verb(title: str, command: Callable[..., Any], example: str, level: str = "##") -> str:
    text = inspect.getdoc(command) or ""
    text = re.sub(r"\n\n((?: {4}.*\n?)+)", lambda block: f"\n\n```toml\n{inspect.cleandoc(block[1])}\n```\n", text)
    arguments, options = [], []
    for name, info, default, kind in _parameters(command):
        text_ = (info.help or "").replace("|", "\\|")
        if isinstance(info, typer.models.ArgumentInfo):
            arguments.append((f"`{info.metavar or name.upper()}`", text_))
        else:
            shown = "" if default is None or default is False or default == "" else f"`{default}`"
            options.append((_spelling(name, info, kind), text_, shown))
    parts = [f"{level} {title}\n\n{text}\n"]
    if arguments:
        parts.append(table(("argument", "meaning"), arguments))
    parts.append(table(("option", "meaning", "default"), options))
    parts.append(f"```sh\n{example.removeprefix('Example: ')}\n```\n")
    return "\n".join(parts)


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, typer annotation, default and type of each parameter except the context."""
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind, *notes = get_args(parameter.annotation) or (parameter.annotation,)
        if notes and isinstance(notes[0], typer.models.ParameterInfo):
            default = None if parameter.default is inspect.Parameter.empty else parameter.default
            yield name, notes[0], default, kind


def _spelling(name: str, info: Any, kind: Any) -> str:
    """
    >>> _spelling("time_limit", typer.Option("--for", metavar="DURATION"), str)
    '`--for DURATION`'
    >>> _spelling("limit", typer.Option(), int | None), _spelling("no_wait", typer.Option(), bool)
    ('`--limit NUMBER`', '`--no-wait`')
    """
    # Within Annotated, typer stores the first spelling as the default.
    given = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
    spelled = next(iter(given), f"--{name.replace('_', '-')}")
    kinds = get_args(kind) if isinstance(kind, types.UnionType) or get_origin(kind) is list else (kind,)
    word = info.metavar or ("NUMBER" if kinds[0] in (int, float) else "TEXT")
    return f"`{spelled}`" if bool in kinds else f"`{spelled} {word}`"


def settings() -> str:
    """Every setting with its default."""
    return "\n".join(
        [
            "# Settings\n",
            "Settings are stored in `recrawl.toml` under `[settings]`. `recrawl config NAME VALUE` changes one and",
            "keeps comments. A missing setting has its default. A misspelt name is an error that suggests the",
            "nearest one.\n",
            table(
                ("setting", "default", "meaning"),
                [(f"`{row.name}`", f"`{_toml(row.default)}`", row.help) for row in SETTINGS],
            ),
            "Noise filters, alerts and the rules of a site are in the same file: see",
            "[file formats](file-formats.md#recrawltoml).\n",
            "## Rules of a site\n",
            "Entries of `[[seed]]`, which `recrawl add URL` sets by options of the same name.\n",
            table(("rule", "meaning"), [(f"`{name}`", one.about.help) for name, one in members_of(SiteRules).items()]),
            "## Access to a site\n",
            "Entries of `[[access]]`, which `recrawl access SITE ENTRY=VALUE` sets; see",
            "[sites behind a login or a proxy](../guides/logins-and-proxies.md). A *reference* is `${NAME}` or",
            "`${file:PATH}`.\n",
            table(("entry", "meaning"), [(f"`{name}`", text) for name, text in ENTRIES.items()]),
        ]
    )


def _toml(value: Any) -> str:
    """
    >>> _toml(True), _toml(["a", "b"]), _toml("x"), _toml(0.5)
    ('true', '["a", "b"]', '"x"', '0.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def policies() -> str:
    """Every policy, from its docstring."""
    parts = [
        "# Policies\n",
        "A policy chooses the pages that a cycle visits. Select one with `--policy` or the setting `policy`, with its",
        "parameters in parentheses: `fixed-interval(days=3)`. The interface is described in",
        "[policies](../concepts/policies.md); your own class works as `module:Class(args)`, see",
        "[write a policy](../guides/write-a-policy.md).\n",
    ]
    for name, kind in POLICIES.items():
        text = inspect.getdoc(kind) or ""
        summary, _, _ = text.partition("\nParameters\n")
        summary, _, _ = summary.partition("\nExample\n")
        meanings = parameter_texts(text)
        given = [(f"`{key}`", f"`{value}`", meanings.get(key, "")) for key, value in parameters(name).items()]
        parts.append(f"## {name}\n\n{summary.strip()}\n")
        if given:
            parts.append(table(("parameter", "default", "meaning"), given))
        parts.append(f"Needs beyond the book's columns: {', '.join(sorted(kind.needs)) or 'nothing'}.")
        why = why_one_shard(kind())
        parts.append(f"Shards: {f'runs on one, because {why}' if why else 'can be split'}.")
        parts.append(f"Source: {kind.source}.\n")
    return "\n".join(parts)


def synth() -> str:
    """Every parameter of a generated web."""
    return "\n".join(
        [
            "# Parameters of a generated web\n",
            "Set with `recrawl lab synth --set NAME=VALUE`; some have an option of their own. Letters name the",
            "publication that a default follows: T is Tan et al. 2007, B Barbosa et al. 2003, Q Al-Qaaideh 2009.\n",
            table(
                ("parameter", "default", "meaning"),
                [(f"`{row.name}`", f"`{row.default}`", row.help) for row in PARAMETERS],
            ),
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "settings.md": settings,
    "policies.md": policies,
    "synth.md": synth,
    "failures.md": failures,
    "api.md": api,
}
"""File name to the function that generates the page."""


def page(name: str, before: str = "") -> str:
    """The complete text of a generated page; `before` is what it was, of which the part by the tests stays."""
    _, heading, by_tests = before.partition(MISBEHAVIOUR)
    return _HEADER + "\n" + PAGES[name]().rstrip() + "\n" + (f"\n{heading}{by_tests}" if heading else "")


def picture() -> str:
    """What `recrawl demo` prints on a terminal, as SVG."""
    reader, writer = pty.openpty()  # tables need a terminal
    environment = {**os.environ, "COLUMNS": str(_WIDTH), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "recrawl", "demo"]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, env=environment):  # noqa: S603
        os.close(writer)
        written = b"".join(_until_closed(reader))
    os.close(reader)
    with Path(os.devnull).open("w", encoding="utf-8") as devnull:
        console = Console(record=True, width=_WIDTH, file=devnull, force_terminal=True)
        console.print(Text("$ recrawl demo", style="bold"))
        console.print(Text.from_ansi(written.decode().replace("\r\n", "\n")))
    drawn = console.export_svg(title="recrawl demo", unique_id="demo")
    return re.sub(
        r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL
    )  # the picture must not load fonts from the network


def _until_closed(fd: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:  # Linux: the other side of the terminal is closed
            return
        if not chunk:
            return
        yield chunk


def main(folder: Path) -> None:
    """Write all pages, and the picture of the demo to the folder `images` beside theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        before = (folder / name).read_text(encoding="utf-8") if (folder / name).exists() else ""
        (folder / name).write_text(page(name, before), encoding="utf-8")
        print(f"wrote {folder / name}")
    image = folder.parent / "images" / "demo.svg"
    image.parent.mkdir(exist_ok=True)
    print("running the demo for its picture ...")
    image.write_text(picture(), encoding="utf-8")
    print(f"wrote {image}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
