"""`recrawl lab label`: judge given changes of an archive at every level."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.lab.options import Archives, Workers
from recrawl.cli.terminal.output import AsJson, as_json, table

_COLUMNS = {
    "url": "page",
    "before": ">before",
    "after": ">after",
    "bytes": "bytes",
    "text": "text",
    "content": "content",
    "content_share": ">share",
    "significance": ">significance",
}


def label_command(
    archives: Archives,
    pairs: Annotated[
        Path,
        typer.Option(
            metavar="FILE.tsv", help="Tab-separated file with the columns url, before and after (seconds UTC)."
        ),
    ],
    workers: Workers = None,
    json: AsJson = False,
) -> None:
    """Judge changes: do two versions of a page differ in bytes, text and content, and how significantly.

    Each pair is judged by the pages of its site at that time and before. Other columns of the file are passed through.
    """
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.lab.labels import judge_pairs, read_pairs  # lazy: loads pyarrow

    wanted = read_pairs(pairs)
    with detailed() as bars:
        task = bars.add_task("judging", total=len(wanted), detail="")

        def progress(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, detail=f"{done:,} of {total:,} changes")

        rows = judge_pairs(archives, wanted, progress, workers=workers)
    if json:
        as_json(rows)
    else:
        table(rows, _COLUMNS)
