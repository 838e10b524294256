"""What most commands begin with: common options, opening the repository, Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

import recrawl
from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import note
from recrawl.repository.repository import Repository

AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow private and loopback IP addresses (for local tests).")
]
Budget = Annotated[
    float | None, typer.Option(help="Limit of visits; below 1, a share of the pages. Default: the setting.")
]
Bytes = Annotated[
    str,
    typer.Option(
        "--bytes", metavar="AMOUNT", help="Limit of bytes per cycle, e.g. 200MB; 0 is no limit. Default: the setting."
    ),
]
Delay = Annotated[
    float | None, typer.Option("--delay", metavar="SECONDS", help="Seconds between requests to one server.")
]
Change = Annotated[
    str,
    typer.Option(
        "--change",
        metavar="LEVEL",
        help="A change is: text, content, significant, divergence:X, words:N, relevance:FILE. Default: the setting.",
    ),
]
KeptRequisites = Annotated[
    str,
    typer.Option(
        "--requisites",
        metavar="LEVEL",
        help="What to keep to show pages as they looked: none, css, all. Default: the setting.",
    ),
]
Render = Annotated[
    str,
    typer.Option(
        "--render",
        metavar="WHEN",
        help="Render pages that need JavaScript: never, auto, always. Default: the setting.",
    ),
]
Screenshots = Annotated[
    str,
    typer.Option(
        "--screenshots",
        metavar="WHEN",
        help="Take screenshots: never, changed (of each new version), always. Default: the setting.",
    ),
]
PolicyText = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="P",
        autocompletion=completions.policies,
        help="Policy that chooses the pages: a name from 'recrawl policies', or module:Class(args).",
    ),
]
Url = Annotated[str, typer.Argument(metavar="URL", help="A page.")]
Wait = Annotated[bool, typer.Option(help="Wait if another command is writing to the repository.")]


def repository(ctx: typer.Context) -> Repository:
    """The repository in or above the current folder, or the one that `-C` names."""
    return recrawl.open(ctx.obj or Path(), notify=note)


class Stop:
    """Ctrl-C: the first one ends the run cleanly, the second one at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        note("\nstopping after recording what was downloaded (Ctrl-C again to stop at once)")

    def __call__(self) -> bool:
        return self.requested
