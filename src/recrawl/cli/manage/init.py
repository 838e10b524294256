"""`recrawl init`: create a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say

EXAMPLE = "Example: recrawl init news"


def command(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="Folder of the repository. Default: the current one.")] = None,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Keep the facts in PostgreSQL: 'postgresql://user:${NAME}@host/database?schema=NAME'."
        ),
    ] = "",
    archive: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Keep archive files and models in an object store: 's3://bucket/prefix?endpoint=URL'."
        ),
    ] = "",
    shards: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="Divide the repository into shards for many machines; needs --store and --archive."
        ),
    ] = 0,
    json: AsJson = False,
) -> None:
    """Create a repository: a folder with settings, database, archive and search index.

    With --store, sites, pages, visits and versions are in a schema of a PostgreSQL database; archive, index and models
    stay in the folder. The password is a reference: ${NAME} for an environment variable, ${file:PATH} for a file that
    only you can read.

    With --archive, finished archive files and models are in a bucket of an S3 API; the folder has a cache of them. The
    keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

    With --shards, the repository is a cluster: its sites are divided into so many shards, which the workers of several
    machines crawl and refresh with one budget. The number never changes: take four to eight times as many as machines.
    """
    from recrawl.repository.repository import Repository  # lazy: the help does without

    where = folder or ctx.obj or Path()
    if shards:
        from recrawl.cluster.layout import create_cluster  # lazy: needs the extra `postgres`

        create_cluster(where, store=store, archive=archive, shards=shards)
    else:
        Repository.create(where, store=store, archive=archive).close()
    if json:
        as_json({"folder": str(where)} | ({"shards": shards} if shards else {}))
        return
    say(f"created a {'cluster' if shards else 'repository'} in {where}")
    say("next: recrawl add https://example.org, then recrawl crawl")
