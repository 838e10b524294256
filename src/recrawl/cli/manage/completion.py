"""`recrawl completion`: shell completion."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from recrawl.cli.terminal.completions import COMPLETE_VARIABLE
from recrawl.cli.terminal.output import AsJson, as_json, say

EXAMPLE = "Example: recrawl completion bash"


class Shell(StrEnum):
    """Shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(
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
