"""`recrawl lab`: replay policies on histories, repeat published experiments, generate and serve webs.

replays.py   `lab run`, `lab compare`: policies on archives; options that the commands share
evaluate.py  `lab predict`, `lab label`, `lab extract`, `lab reproduce`: accuracy, judged changes, published results
serve.py     `lab serve`: archives over HTTP, at an adjustable time
synth.py     `lab synth`: generate a web as an archive
"""

from __future__ import annotations

import importlib

import typer

from recrawl.cli.declared import as_command

_EXAMPLES = {
    "run": "run world.parquet --policy round-robin --policy greedy --budget 0.02",
    "compare": "compare world.parquet --policy random --policy clairvoyant --budget 40 --chart c.svg",
    "reproduce": "reproduce q-example",
    "predict": "predict daily.parquet --method 2d --days 10",
    "label": "label sites/ --pairs changes.tsv --json",
    "extract": "extract pages.parquet --json",
    "synth": "synth world.parquet --sites 3 --pages 100 --days 30 --set births=0.02",
    "serve": "serve world.parquet --port 8080 --speed 3600 --at 2024-01-15T12:00",
}
_MODULES = {"run": "replays", "compare": "replays"} | dict.fromkeys(
    ("predict", "label", "extract", "reproduce"), "evaluate"
)
"""Commands whose module has another name."""


def app_with(wanted: str = "") -> typer.Typer:
    """The commands of the lab; only the wanted one, if it is one of them: each loads what it needs."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, example in _EXAMPLES.items():
        if wanted not in _EXAMPLES or name == wanted:
            module = importlib.import_module(f"recrawl.cli.lab.{_MODULES.get(name, name)}")
            function = getattr(module, f"{name}_command")
            app.command(name, epilog=f"Example: recrawl lab {example}")(as_command(function))
    return app
