"""What an operation of the API costs with msgspec, with FastAPI and pydantic, and with Litestar.

    pip install fastapi litestar
    python -m benchmarks.api_frameworks [--requests 1000] [--rounds 5]

The same two operations, written as each library wants it: a list of 50 changes, and a site with its rules, sent as JSON
with limits and no unknown fields. Requests go to the application itself, without a server. Each library runs in
processes of its own, in turn; a figure is the least of the rounds, in CPU time. `import` is what loading the library
costs after Starlette, `document` the making of the OpenAPI document. What is not installed is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any

ROWS = 50
ROW = {
    "url": "https://example.org/news/1",
    "at": datetime(2026, 3, 1, tzinfo=UTC),
    "outcome": "changed",
    "title": "A title",
    "divergence": 0.25,
    "significant": True,
    "new_links": 3,
}
SENT = {"url": "https://example.org/", "limit": 500, "depth": 3, "delay": 0.5, "include": ["/docs/*", "/news/*"]}
LOADED = {"msgspec": ("msgspec", "recrawl.operations"), "fastapi": ("fastapi",), "litestar": ("litestar",)}
Made = tuple[Any, Callable[[], Any]]
"""An application, and what makes its document."""


def structs(struct: Any, **options: Any) -> SimpleNamespace:
    """The types of both operations: a list of changes, the change, what is sent for a site, and the answer to it."""

    class Change(struct):  # type: ignore[misc]
        id: int
        url: str
        at: datetime
        outcome: str
        title: str | None
        divergence: float | None
        significant: bool | None
        new_links: int | None

    class Added(struct):  # type: ignore[misc]
        url: str
        limit: int | None

    globals().update(Change=Change)

    class Changes(struct):  # type: ignore[misc]
        items: list[Change]

    class Rules(struct, **options):  # type: ignore[misc]
        url: str
        limit: int | None = None
        depth: int | None = None
        delay: float | None = None
        include: list[str] | None = None

    return SimpleNamespace(Changes=Changes, Change=Change, Rules=Rules, Added=Added)


def with_msgspec() -> Made:
    """The way of `recrawl.serve.api`."""
    import msgspec
    from starlette.applications import Starlette

    from recrawl.operations import Described, declared, operation
    from recrawl.serve.api.openapi import document
    from recrawl.serve.api.routes import route

    made = structs(msgspec.Struct)
    globals().update(made=made, Described=Described)

    class Declared:
        """The operations."""

        @operation(http="GET /changes")
        async def changes(
            self, _: Any, *, limit: Annotated[int, Described("Rows.", least=1, most=500)] = 50
        ) -> made.Changes:
            """List changes."""
            return made.Changes(items=[made.Change(id=number, **ROW) for number in range(limit)])

        @operation(http="POST /sites")
        async def add(
            self,
            _: Any,
            *,
            url: Annotated[str, Described("URL.")],
            limit: Annotated[int | None, Described("Limit.", least=0)] = None,
            depth: Annotated[int | None, Described("Depth.", least=0)] = None,
            delay: Annotated[float | None, Described("Delay.", least=0)] = None,
            include: Annotated[list[str] | None, Described("Patterns.")] = None,
        ) -> made.Added:
            """Add a site."""
            del depth, delay, include
            return made.Added(url=url, limit=limit)

    operations = tuple(declared(Declared).values())
    context: Any = Declared()
    return Starlette(routes=[route(one, context) for one in operations]), lambda: document(operations)


def with_fastapi() -> Made:
    """FastAPI with pydantic."""
    import pydantic
    from fastapi import FastAPI, Query

    made = structs(pydantic.BaseModel, extra="forbid")
    globals().update(made=made, Query=Query)
    app = FastAPI()

    @app.get("/api/v1/changes")
    async def changes(limit: Annotated[int, Query(ge=1, le=500)] = 50) -> made.Changes:
        return made.Changes(items=[made.Change(id=number, **ROW) for number in range(limit)])

    @app.post("/api/v1/sites")
    async def add(rules: made.Rules) -> made.Added:
        return made.Added(url=rules.url, limit=rules.limit)

    return app, app.openapi


def with_litestar() -> Made:
    """Litestar with msgspec."""
    import msgspec
    from litestar import Litestar, get, post
    from litestar.params import Parameter

    made = structs(msgspec.Struct, forbid_unknown_fields=True)
    globals().update(made=made, Parameter=Parameter)

    @get("/api/v1/changes")
    async def changes(limit: Annotated[int, Parameter(ge=1, le=500)] = 50) -> made.Changes:
        return made.Changes(items=[made.Change(id=number, **ROW) for number in range(limit)])

    @post("/api/v1/sites", status_code=200)
    async def add(data: made.Rules) -> made.Added:
        return made.Added(url=data.url, limit=data.limit)

    app = Litestar([changes, add])
    return app, app.openapi_schema.to_schema


KINDS = {"msgspec": with_msgspec, "fastapi": with_fastapi, "litestar": with_litestar}


async def ask(app: Any, method: str, path: str, query: bytes, body: bytes) -> int:
    """Send a request to an application; the status of the answer."""
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": query, "root_path": "", "state": {}}
    scope |= {"headers": [(b"host", b"localhost"), (b"content-type", b"application/json")]}
    scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


def measured(kind: str, requests: int) -> dict[str, float]:
    """The costs with one library, in this process."""
    importlib.import_module("starlette.applications")
    before, begun = set(sys.modules), time.process_time()
    for name in LOADED[kind]:
        importlib.import_module(name)
    found = {"import": 1e3 * (time.process_time() - begun), "modules": float(len(set(sys.modules) - before))}
    app, document = KINDS[kind]()
    begun = time.process_time()
    document()
    found["document"] = 1e3 * (time.process_time() - begun)

    async def run(*asked: Any) -> float:
        status = await ask(app, *asked)
        assert status == 200, (kind, status)
        start = time.process_time()
        for _ in range(requests):
            await ask(app, *asked)
        return 1e6 * (time.process_time() - start) / requests

    found["list"] = asyncio.run(run("GET", "/api/v1/changes", b"limit=50", b""))
    found["site"] = asyncio.run(run("POST", "/api/v1/sites", b"", json.dumps(SENT).encode()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kind", choices=sorted(KINDS), help="measure this one here, as JSON")
    given = parser.parse_args()
    if given.kind:
        print(json.dumps(measured(given.kind, given.requests)))
        return
    rounds: dict[str, list[dict[str, float]]] = {}
    for _ in range(given.rounds):
        for kind in KINDS:
            words = ["-m", "benchmarks.api_frameworks", "--kind", kind, "--requests", str(given.requests)]
            ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
            if ended.returncode:
                print(f"{kind}: {ended.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            else:
                rounds.setdefault(kind, []).append(json.loads(ended.stdout))
    print("| with | import, ms | modules | document, ms | list of 50, µs | site with rules, µs |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind, found in rounds.items():
        least = {name: min(one[name] for one in found) for name in found[0]}
        print(
            f"| {kind} | "
            + " | ".join(f"{value:,.3g}" if value < 100 else f"{value:,.0f}" for value in least.values())
            + " |"
        )


if __name__ == "__main__":
    main()
