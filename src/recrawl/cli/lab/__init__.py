"""`recrawl lab`: replay policies on histories, repeat published experiments, generate and serve webs.

compare.py    `lab compare`: policies at several budgets and cycle lengths
label.py      `lab label`: judge given changes at every level: bytes, text, content
options.py    options that these commands share, and the cache folder
predict.py    `lab predict`: accuracy of change prediction on archives
reproduce.py  `lab reproduce`: tables and figures of the publications
run.py        `lab run`: replay archives under policies
serve.py      `lab serve`: archives over HTTP, at an adjustable time
synth.py      `lab synth`: generate a web as an archive
"""

from __future__ import annotations

import typer

from recrawl.cli.lab.compare import compare_command
from recrawl.cli.lab.label import label_command
from recrawl.cli.lab.predict import predict_command
from recrawl.cli.lab.reproduce import reproduce_command
from recrawl.cli.lab.run import run_command
from recrawl.cli.lab.serve import serve_command
from recrawl.cli.lab.synth import synth_command
from recrawl.extras import require_lab

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, callback=require_lab)
for _name, _command, _example in (
    ("run", run_command, "run world.parquet --policy round-robin --policy greedy --budget 0.02"),
    (
        "compare",
        compare_command,
        "compare world.parquet --policy random --policy clairvoyant --budget 40 --chart c.svg",
    ),
    ("reproduce", reproduce_command, "reproduce q-example"),
    ("predict", predict_command, "predict daily.parquet --method 2d --days 10"),
    ("label", label_command, "label sites/ --pairs changes.tsv --json"),
    ("synth", synth_command, "synth world.parquet --sites 3 --pages 100 --days 30 --set births=0.02"),
    ("serve", serve_command, "serve world.parquet --port 8080 --speed 3600 --at 2024-01-15T12:00"),
):
    app.command(_name, epilog=f"Example: recrawl lab {_example}")(_command)
