"""Queries that may read every page and visit; in a large repository they run in a child process.

There such a query takes seconds of CPU time and hundreds of megabytes. In the service's own process it would block
other responses and the memory would not be freed. In a small repository starting a process would take longer than the
query.
"""

from __future__ import annotations

import json
from typing import Any

from recrawl.operations import Operation, declared
from recrawl.repository.processes import run_module
from recrawl.repository.repository import Repository
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem

WHY, PREDICT = (declared(Repository)[name] for name in ("page_why", "page_predict"))
LARGE = 50_000
"""Pages above which queries run in a child process."""
_TIME_LIMIT = 120.0
"""Seconds."""


def explained(context: Context, operation: Operation, url: str) -> dict[str, Any]:
    """Return what an operation answers about a page, as its command prints it with `--json`."""
    with context.dedicated() as repository:
        if repository.page_count <= LARGE:
            found: dict[str, Any] = getattr(repository, operation.function.__name__)(url).as_dict()
            return found
    answer: dict[str, Any] = run_command(context, *operation.about["process"], "--json", "--", url)
    return answer


def run_command(context: Context, *words: str) -> Any:
    """Run a recrawl command on the served repository and return its JSON output."""
    with context.long_query():
        try:
            out = run_module("recrawl", "-C", str(context.folder), *words, seconds=_TIME_LIMIT)
        except TimeoutError:
            detail = f"The query took more than {_TIME_LIMIT:g} s: use 'recrawl {words[0]}' on the command line."
            raise Problem(503, detail) from None
    return json.loads(out)
