"""Writes the generated pages of the reference: `python -m recrawl.cli.reference docs/reference`.

Commands, settings, policies, the parameters of generated webs and the failure words are read from the very objects
that the program uses, so the pages cannot say anything else. Everything here is a function of the code alone, with
one exception: the picture of the demo is what `recrawl demo` prints on the day, so `main` draws it and no test
compares it.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from rich.console import Console
from rich.text import Text

from recrawl.choose import POLICIES, parameters
from recrawl.cli import MODULES, VERBS
from recrawl.lab.synth import PARAMETERS
from recrawl.model import Failure
from recrawl.settings import SETTINGS

_MADE = "<!-- Written by `make docs` from the code; edit that, not this. -->\n"
_WIDTH = 120

FAILURES: dict[Failure, str] = {
    Failure.ADDRESS: "The name leads to a private, loopback or otherwise inner address; see `--allow-private`.",
    Failure.DNS: "The host's name could not be resolved.",
    Failure.CONNECT: "The server did not accept a connection.",
    Failure.TLS: "The encrypted connection failed, most often because of the certificate.",
    Failure.TIMEOUT: "The connection, the download or a pause in it took longer than its setting allows.",
    Failure.CUT_OFF: "The connection ended before the answer did.",
    Failure.BAD_RESPONSE: "What came is not an HTTP answer that can be understood.",
    Failure.BAD_ENCODING: "The body could not be decompressed.",
    Failure.TOO_LARGE: "The page is larger than `max_bytes` after decompression.",
    Failure.BAD_URL: "The address cannot be asked for.",
    Failure.REDIRECT_LOOP: "Redirects lead back to where they began.",
    Failure.REDIRECT_LIMIT: "More redirects in a row than `redirects` allows.",
    Failure.REDIRECT_BAD: "A redirect that names no usable address.",
    Failure.REDIRECT_AWAY: "A redirect to an address that is not to be kept: another site, or left out by a rule.",
    Failure.ROBOTS: "robots.txt does not allow the page.",
    Failure.ROBOTS_UNREACHABLE: "robots.txt could not be read (5xx, 429, no answer), so the server is left alone.",
    Failure.HELD_OFF: "The server does not answer, or asks us to stay away for longer than `patience`.",
    Failure.LIMIT: "The site has as many pages as its `--limit` allows.",
    Failure.CLIENT_ERROR: "The server answered 4xx, but not 404, 410 or 429.",
    Failure.SERVER_ERROR: "The server answered 5xx.",
    Failure.RATE_LIMITED: "The server still answered 429 after `retries` tries.",
    Failure.STATUS: "A status that means neither a page nor an error.",
    Failure.MISSING: "404 or 410, but not yet often enough to believe it: see [deletions](../guides/deletions.md).",
    Failure.MOVED: "A permanent redirect: the new address is visited instead.",
    Failure.CONTENT_TYPE: "A content type that is not in `content_types`.",
    Failure.PARSE_TIMEOUT: "Reading the page took longer than `parse_seconds`.",
    Failure.PARSE_CRASH: "The process that read the page died of it.",
    Failure.TOO_DEEP: "The page is nested so deeply, or left open so often, that parsing it would take minutes.",
    Failure.INTERNAL: "A mistake in recrawl. Please report it.",
}  # fmt: skip
"""What each word means, for people."""


def commands() -> str:
    """Every verb: what it does, its arguments and options, an example."""
    parts = [
        "# Commands\n",
        "`recrawl -C DIR VERB` works on the repository in DIR, otherwise on the one in this folder or a folder above.",
        "Every verb has `--help`; `--json` prints JSON. The exit code is 0 when all went well, 1 when it did not,",
        "2 when the command was not understood, 130 when it was interrupted.\n",
        "Durations are written `30s`, `10m`, `6h`, `2d`, `1w`, also joined: `1h30m`. Times are written `2026-03-01`,",
        "`2026-03-01T12:00` (UTC unless it says otherwise), or as a duration, which means that long ago.\n",
        _table(("verb", "does"), [(f"[`{verb}`](#recrawl-{verb})", text) for verb, text in VERBS.items()]),
    ]
    for verb in VERBS:
        module = importlib.import_module(f"recrawl.cli.{MODULES.get(verb, verb)}")
        if hasattr(module, "command"):
            parts.append(_verb(f"recrawl {verb}", module.command, module.EXAMPLE))
            continue
        parts.append(f"## recrawl {verb}\n\n{VERBS[verb]} Its own verbs follow.\n")
        for info in module.app.registered_commands:
            name = info.name or info.callback.__name__
            parts.append(_verb(f"recrawl {verb} {name}", info.callback, info.epilog, level="###"))
    return "\n".join(parts)


def _verb(title: str, command: Callable[..., Any], example: str, level: str = "##") -> str:
    text = inspect.getdoc(command) or ""
    text = re.sub(r"\n\n((?: {4}.*\n?)+)", lambda block: f"\n\n```toml\n{inspect.cleandoc(block[1])}\n```\n", text)
    arguments, options = [], []
    for name, info, default, kind in _parameters(command):
        told = (info.help or "").replace("|", "\\|")
        if isinstance(info, typer.models.ArgumentInfo):
            arguments.append((f"`{info.metavar or name.upper()}`", told))
        else:
            shown = "" if default in (None, "", False) else f"`{default}`"
            options.append((_spelling(name, info, kind), told, shown))
    parts = [f"{level} {title}\n\n{text}\n"]
    if arguments:
        parts.append(_table(("argument", "means"), arguments))
    parts.append(_table(("option", "means", "default"), options))
    parts.append(f"```sh\n{example.removeprefix('Example: ')}\n```\n")
    return "\n".join(parts)


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, what typer was told, default and type of each parameter, apart from the context."""
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
    # Within Annotated, typer keeps the first spelling where a default would be.
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
            "They stand in `recrawl.toml` under `[settings]`; `recrawl config NAME VALUE` changes one and leaves",
            "comments as they are. What is not there has its default. A misspelt name is refused, with the nearest",
            "right one.\n",
            _table(
                ("setting", "default", "means"),
                [(f"`{row.name}`", f"`{_toml(row.default)}`", row.help) for row in SETTINGS],
            ),
            "What is kept for one site (`depth`, `limit`, `include`, `exclude`, `allow_private`, `delay`) and filters",
            "for noise stand beside them: see [file formats](file-formats.md#recrawltoml).\n",
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
        "A policy decides which pages a cycle visits. Name one with `--policy` or in the setting `policy`, with its",
        "parameters in brackets: `fixed-interval(days=3)`. How they work is told in",
        "[the policy contract](../concepts/policies.md).\n",
    ]
    for name, kind in POLICIES.items():
        text = inspect.getdoc(kind) or ""
        said, _, _ = text.partition("\nParameters\n")
        said, _, _ = said.partition("\nExample\n")
        told = _told(text)
        given = [(f"`{key}`", f"`{value}`", told.get(key, "")) for key, value in parameters(name).items()]
        parts.append(f"## {name}\n\n{said.strip()}\n")
        if given:
            parts.append(_table(("parameter", "default", "means"), given))
        parts.append(f"Needs beyond the book's columns: {', '.join(sorted(kind.needs)) or 'nothing'}.")
        parts.append(f"Source: {kind.source}.\n")
    return "\n".join(parts)


def _told(text: str) -> dict[str, str]:
    """What a docstring says of parameters.

    >>> _told("Does.\\n\\nParameters\\n----------\\ndays\\n    The\\n    interval.\\n\\nExample\\n")
    {'days': 'The interval.'}
    """
    lines = text.partition("\nParameters\n")[2].partition("\nExample\n")[0].splitlines()[1:]
    told: dict[str, str] = {}
    name = ""
    for line in filter(str.strip, lines):
        if line.startswith(" "):
            told[name] = f"{told[name]} {line.strip()}".strip()
        else:
            name = line.strip()
            told[name] = ""
    return told


def synth() -> str:
    """Every parameter of a generated web."""
    return "\n".join(
        [
            "# Parameters of a generated web\n",
            "For `recrawl lab synth`, as `--set NAME=VALUE`; some have an option of their own. Letters name the",
            "publication that a default follows: T is Tan et al. 2007, B Barbosa et al. 2003, Q Al-Qaaideh 2009.\n",
            _table(
                ("parameter", "default", "means"),
                [(f"`{row.name}`", f"`{row.default}`", row.help) for row in PARAMETERS],
            ),
        ]
    )


def failures() -> str:
    """Every failure word with a sentence."""
    return "\n".join(
        [
            "# Failure words\n",
            "A visit that brought no page says why in one of these words: in `recrawl log URL --visits`, in",
            "`recrawl why`, in the summary of a run, and in the column `failure` of the table `visits`. A failure is",
            "neither a change nor the lack of one. The words are stored, so they stay as they are.\n",
            _table(("word", "means"), [(f"`{word.value}`", FAILURES[word]) for word in Failure]),
        ]
    )


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |") + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "settings.md": settings,
    "policies.md": policies,
    "synth.md": synth,
    "failures.md": failures,
}
"""File name to what writes it."""


def page(name: str) -> str:
    """A generated page, whole."""
    return _MADE + "\n" + PAGES[name]().rstrip() + "\n"


def picture() -> str:
    """What `recrawl demo` prints on a terminal, as SVG."""
    ours, theirs = pty.openpty()  # tables are drawn for terminals only
    environment = {**os.environ, "COLUMNS": str(_WIDTH), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "recrawl", "demo"]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment):  # noqa: S603
        os.close(theirs)
        written = b"".join(_until_closed(ours))
    os.close(ours)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=_WIDTH, file=nowhere, force_terminal=True)
        console.print(Text("$ recrawl demo", style="bold"))
        console.print(Text.from_ansi(written.decode().replace("\r\n", "\n")))
    drawn = console.export_svg(title="recrawl demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # a picture must not fetch anything


def _until_closed(fd: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:  # how Linux says that the other side of a terminal is closed
            return
        if not chunk:
            return
        yield chunk


def main(folder: Path) -> None:
    """Write all pages, and the picture of the demo into the folder `images` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (folder / name).write_text(page(name), encoding="utf-8")
        print(f"wrote {folder / name}")
    image = folder.parent / "images" / "demo.svg"
    image.parent.mkdir(exist_ok=True)
    print("running the demo for its picture ...")
    image.write_text(picture(), encoding="utf-8")
    print(f"wrote {image}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
