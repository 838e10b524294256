"""Queries that may read every page and visit; in a large repository they run in a child process.

There such a query takes seconds of CPU time and hundreds of megabytes. In the service's own process it would block
other responses and the memory would not be freed. In a small repository starting a process would take longer than the
query.
"""

from __future__ import annotations

import json
from typing import Any

from recrawl.serve.context import Context
from recrawl.serve.jobs.processes import run_module
from recrawl.serve.problems import Problem

LARGE = 50_000
"""Pages above which queries run in a child process."""
_TIME_LIMIT = 120.0
"""Seconds."""


def why(context: Context, url: str) -> tuple[list[str], dict[str, Any] | None]:
    """Return why a page is visited or not, in sentences, and what the next cycle plans for it."""
    with context.dedicated() as repository:
        found = repository.why(url).as_dict() if repository.page_count <= LARGE else None
    found = found or run_command(context, "why", "--json", "--", url)
    return found["why"], found["plan"]


def predict(context: Context, url: str) -> dict[str, Any]:
    """Return the probability that a page has changed since its last visit, and what it is based on."""
    with context.dedicated() as repository:
        found: dict[str, Any] | None = repository.predict(url).as_dict() if repository.page_count <= LARGE else None
    return found or run_command(context, "why", "--chance", "--json", "--", url)


def run_command(context: Context, *words: str) -> Any:
    """Run a recrawl command on the served repository and return its JSON output."""
    with context.long_query():
        try:
            out = run_module("recrawl", "-C", str(context.folder), *words, seconds=_TIME_LIMIT)
        except TimeoutError:
            detail = f"The query took more than {_TIME_LIMIT:g} s: use 'recrawl {words[0]}' on the command line."
            raise Problem(503, detail) from None
    return json.loads(out)
