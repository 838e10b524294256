"""The generated pages of docs/reference: commands, settings, policies, the Python API, failures."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pty
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from rich.console import Console
from rich.text import Text

import recrawl
from recrawl import errors, lab, testing
from recrawl.choose import POLICIES, parameter_texts, parameters
from recrawl.choose.shards.rounds import why_one_shard
from recrawl.cli import GROUPS, VERBS, command_of, inner_app
from recrawl.cli.declared import as_command
from recrawl.lab.synth import PARAMETERS
from recrawl.model import Failure
from recrawl.operations import described_fields, evaluated, members_of, parameters_of
from recrawl.parameters import SiteRules
from recrawl.repository import checking
from recrawl.repository.access import ENTRIES
from recrawl.repository.explain import anchors, noise, prediction, rates
from recrawl.repository.results import difference, rows, runs, values
from recrawl.repository.results.failures import FAILURES
from recrawl.settings import SETTINGS

_INTRODUCTION = """\
The names of the first five sections are attributes of `recrawl` (or of the module shown), loaded on first use. The
others are types of results. [Use recrawl from Python](../guides/python.md) shows them at work. Values are frozen
dataclasses with times as `datetime` in UTC; `as_dict()` returns what the command line prints with `--json`.
"""
_SECTIONS: dict[str, list[tuple[str, Any]]] = {
    "Repositories": [(f"recrawl.{name}", getattr(recrawl, name)) for name in ("open", "init", "Repository")],
    "Pages, versions and changes": [
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("Page", "Version", "Change")),
        ("Difference", difference.Difference),
        ("Rows", rows.Rows),
    ],
    "Visits of other crawlers": [
        (f"recrawl.{name}", getattr(recrawl, name)) for name in ("Answer", "Request", "Failure")
    ],
    "Policies": [
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("Policy", "Book", "Picks", "Outcomes", "Outcome")),
        *((f"recrawl.{name}", getattr(recrawl, name)) for name in ("make_policy", "drive")),
        *((f"recrawl.testing.{name}", getattr(testing, name)) for name in ("check_policy", "GeneratedWeb")),
    ],
    "Lab": [(f"recrawl.lab.{name}", getattr(lab, name)) for name in lab.__all__],
    "Other values": [
        *((name, getattr(runs, name)) for name in ("Progress", "Report", "Plan", "PlannedVisit")),
        *((name, getattr(values, name)) for name in ("Status", "Site", "Visit", "SearchHit", "Explanation")),
        *((name, getattr(runs, name)) for name in ("Import", "Removal", "Attempt")),
        ("CheckReport", checking.CheckReport),
        ("CheckProblem", checking.CheckProblem),
        ("Prediction", prediction.Prediction),
        ("Rate", rates.Rate),
        ("PageRate", rates.PageRate),
        ("SiteAnchor", anchors.SiteAnchor),
        ("NoiseProposal", noise.NoiseProposal),
        ("Preview", noise.Preview),
    ],
    "Errors": [
        (f"recrawl.errors.{name}", value)
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.RecrawlError)
    ],
}
MISBEHAVIOUR = "## Misbehaving servers, and the answer"
"""Heading of the part of the page that the tests write: `python -m tests.misbehaving docs/reference/failures.md`."""
_COMEBACK = """## How pages come back

A failed visit deletes nothing. The next try comes after an hour, then after twice as long each time, up to 30 days.
When many pages of a site fail and one of them answers again, the others that failed for the same reason are visited in
the next cycle. Within a run, pages that failed at their last visit come after all others of their server, and a page
that is refused (429, 503) is retried last: a pause that the server did not ask for becomes longer only as further pages
are refused, so that a few broken pages do not keep the others away.

`shared-text` ends by itself: only the shared text is refused, any other text of the page is recorded. `recrawl status`
and the dashboard name the sites. For pages that are gone or have moved, see
[deletion](../concepts/deletion.md#recovery).
"""
_FILES = (
    ("the index is damaged", "counts as none; `status` says so", "`search` exits with 1; `crawl`, `cycle` rebuild it"),
    ("garbage in the database", "one line; exit code 1", "`check --repair`, or restore a copy"),
    ("a damaged record of the archive", "`show`, `diff` of that version: one line; exit code 1", "`check --repair`"),
    ("a damaged record, while exporting", "the version is left out and listed", "`check --repair`"),
    ("an archive file lost its end", "writing commands: one line; exit code 1", "restore it, or `check --repair`"),
    ("the disk is full", "one line; exit code 1; nothing committed is lost", "free space, run the command again"),
    ("a read-only file system", "all queries work; writing commands: one line; exit code 1", ""),
    (
        "a command is asked to stop (Ctrl-C, SIGTERM)",
        "it ends in order; exit code 130 or 143; 0 if all was done, and of `run` and `serve`",
        "",
    ),
    ("a command is killed", "the next one continues; nothing is lost or doubled", "nothing to do"),
    ("a reader process is killed", "`parse-crash` for its page; a new process takes over", "nothing to do"),
)
"""What happens to the files, what recrawl answers, and what to do."""
_KILLS = """`python -m benchmarks.kills --count 1000` kills (SIGKILL) `crawl`, `cycle`, `import`, `noise`, `serve`,
`export` and `check` at random moments: the command, the processes it has started, or both. After each kill it runs
`recrawl check`, compares versions and visits with those recorded before, runs the command again to its end, and
compares the repository with one that was never disturbed. With `--signal TERM` it asks the command to stop instead.
`python -m benchmarks.disk_full` does the same on disks that fill up.
"""
"""How it is shown that nothing is lost."""
_HEADER = "<!-- Written by `make docs` from the code; edit that, not this. -->\n"
_WIDTH = 120


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table with these headings."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |") + "\n"


def api() -> str:
    """The page, in sections."""
    parts = ["# Python API\n", _INTRODUCTION]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}\n")
        for name, value in names:
            parts += _class(name, value) if isinstance(value, type) else _function(name, value, "###")
    return "\n".join(parts)


def _function(name: str, function: Callable[..., Any], level: str) -> Iterator[str]:
    yield f"{level} {name.rpartition('.')[2] if level == '####' else name}\n"
    yield f"```py\n{_signature(name.rpartition('.')[2], function)}\n```\n"
    yield f"{_markdown(inspect.getdoc(function) or '')}\n"
    own = inspect.signature(function).parameters
    group = [f"- `{one.name}`: {one.about.help}" for one in parameters_of(function).values() if one.name not in own]
    if group:
        yield "By keyword:\n\n" + "\n".join(group) + "\n"


def _class(name: str, kind: type[Any]) -> Iterator[str]:
    yield f"### {name}\n"
    if dataclasses.is_dataclass(kind) or "__init__" not in vars(kind):
        yield f"{_markdown(inspect.getdoc(kind) or '')}\n"
    else:
        yield f"```py\n{_signature(name.rpartition('.')[2], kind.__init__)}\n```\n"
        yield f"{_markdown(inspect.getdoc(kind) or '')}\n"
    fields = list(_fields(kind))
    if fields:
        rows_ = "\n".join(f"| `{field}` | `{annotation}` | {text} |" for field, annotation, text in fields)
        yield f"| field | type | meaning |\n| --- | --- | --- |\n{rows_}\n".replace("|  |", "| |")
    for member in _members(kind):
        value = inspect.getattr_static(kind, member)
        if isinstance(value, property):
            yield f"#### {member}\n"
            yield f"Property. {_markdown(inspect.getdoc(value) or '')}\n"
        else:
            yield from _function(member, getattr(kind, member), "####")


def _members(kind: type[Any]) -> Iterator[str]:
    """Public methods and properties that the class or a base of recrawl defines, in the order of the source."""
    seen = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for owner in kind.__mro__:
        if owner.__module__.startswith("recrawl."):
            for name, value in vars(owner).items():
                documented = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
                if documented and not name.startswith("_") and name not in {"of", "as_dict", *seen}:
                    seen.add(name)
                    yield name


def _fields(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Public fields of a dataclass or named tuple with the docstrings that follow them in the source."""
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "_fields"):
        return
    for name, annotation, text in described_fields(kind):
        yield name, annotation.replace("|", "\\|"), text.replace("|", "\\|")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """
    >>> def search(self, query: str, *, limit: int = 10) -> list[str]: ...
    >>> _signature("search", search)
    'search(query: str, *, limit: int = 10) -> list[str]'
    """
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        stars = (
            "*"
            if parameter.kind is parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind is parameter.VAR_KEYWORD
            else ""
        )
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{_annotation(': ', _plain(parameter, function))}{default}")
    returns = "" if function.__name__ == "__init__" else _annotation(" -> ", signature.return_annotation)
    line = f"{name}({', '.join(parts)}){returns}"
    return line if len(line) <= 110 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){returns}"


def _plain(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """The annotation of a parameter; without its description, where that is declared."""
    hint = evaluated(parameter.annotation, vars(inspect.getmodule(function)))
    return get_args(hint)[0] if get_origin(hint) is Annotated else parameter.annotation


def _annotation(before: str, annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + text.replace("collections.abc.", "").replace("datetime.datetime", "datetime")


def _default(value: Any) -> str:
    return "..." if callable(value) else repr(value)


def _markdown(text: str) -> str:
    """A docstring as Markdown: sections of parameters become lists, examples of the interpreter become code.

    >>> print(_markdown("Does it.\\n\\nParameters\\n----------\\ndays\\n    The\\n    interval.\\n"))
    Does it.
    <BLANKLINE>
    Parameters:
    <BLANKLINE>
    - `days`: The interval.
    """
    text, _, parameters = text.partition("\nParameters\n")
    text = re.sub(r"(^>>> .*(?:\n(?!$).*)*)", r"```py\n\1\n```", text.strip(), flags=re.MULTILINE)
    text = re.sub(r"(?:^    .*\n?(?:\n(?=    ))?)+", _fenced, text, flags=re.MULTILINE)
    if parameters:
        items = re.sub(r"\n {4,}", " ", parameters.partition("\nExample\n")[0].partition("\n")[2].strip("\n"))
        rows_ = (line.split(" ", 1) for line in items.splitlines() if line.strip())
        text += "\n\nParameters:\n\n" + "\n".join(f"- `{row[0]}`: {row[-1]}" for row in rows_)
    return text


def _fenced(block: re.Match[str]) -> str:
    return f"```py\n{textwrap.dedent(block[0]).strip()}\n```\n"


def failures() -> str:
    """Every failure with its explanation."""
    return "\n".join(
        [
            "# Failure words\n",
            "A failed visit has one of these reasons. `recrawl log URL --visits`, `recrawl why`, the summary of a run",
            "and the column `failure` of the table `visits` show it. A failure is neither a change nor the lack of",
            "one. The words are stored in databases, so they do not change.\n",
            table(("word", "meaning"), [(f"`{word.value}`", FAILURES[word]) for word in Failure]),
            _COMEBACK,
            "## Files, disks and processes\n",
            "[Damaged files](../guides/crash-and-backup.md#damaged-files) says more about `recrawl check`.\n",
            table(("what happens", "answer", "what to do"), _FILES),
            _KILLS,
        ]
    )


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
        if verb not in GROUPS:
            function = command_of(verb)
            parts.append(_verb(f"recrawl {verb}", as_command(function), function.example))
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


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "settings.md": settings,
    "policies.md": policies,
    "synth.md": synth,
    "failures.md": failures,
    "api.md": api,
}
"""File name to the function that generates the page."""


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
