"""Questions that may look at every page and visit: asked in a process of their own where there are many.

Such a question takes seconds of computing and hundreds of megabytes there. In the service's own process it would hold
up all other answers meanwhile, and the memory would stay; so the command line is asked, at a low priority. Where there
are few pages, starting a process would take longer than the answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from recrawl.errors import UsageError
from recrawl.record.storage import Storage
from recrawl.repository import prediction
from recrawl.repository.why import reasons
from recrawl.serve.context import Context
from recrawl.serve.jobs.priority import lower_priority
from recrawl.serve.problems import Problem

LARGE = 50_000
"""Pages from which on another process is asked."""
_PATIENCE = 120.0
_POLITE = 5


def why(context: Context, page: dict[str, Any]) -> tuple[list[str], dict[str, Any] | None]:
    """Why a page is visited or not, in sentences; and what the next cycle plans with it."""
    with context.apart() as repository:
        if not _large(repository):
            return reasons(repository, context.settings(), page, context.clock())
    told = command(context, "why", "--json", "--", page["url"])
    return told["why"], told["plan"]


def foretold(context: Context, page: dict[str, Any]) -> dict[str, Any]:
    """How likely a page has changed by now."""
    with context.apart() as repository:
        if not _large(repository):
            return prediction.foretold(repository, page, context.clock())
    found: dict[str, Any] = command(context, "predict", "--json", "--", page["url"])
    return found


def command(context: Context, *words: str) -> Any:
    """What a command of ours prints as JSON, about the repository that is served."""
    line = [sys.executable, "-m", "recrawl", "-C", str(context.folder), *words]
    with context.places:
        child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        lower_priority(child.pid, _POLITE)
        try:
            out, err = child.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Problem(503, f"This takes too long here: use 'recrawl {words[0]}'.") from None
    if child.returncode:
        raise UsageError(err.strip().removeprefix("recrawl: ")[:500] or "this could not be told")
    return json.loads(out)


def _large(repository: Storage) -> bool:
    return repository.store.next_id("pages") > LARGE
