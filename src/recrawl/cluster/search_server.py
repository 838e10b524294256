"""Searches in the index of a shard, answered over HTTP by the worker that has it.

The index of a shard is on the disk of the machine that runs it. Who asks needs the token, which is in the tables of the
cluster, as is the address of each worker.
"""

from __future__ import annotations

import hmac
import json
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from recrawl.errors import RecrawlError, UsageError
from recrawl.http_server import HttpServer, listen
from recrawl.record.index_files import INDEXED, is_complete
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.repository.reader import Reader

_FACT = "search token"
_LARGEST = 10_000
"""Bytes of a question."""


def token_of(cluster: ClusterStore) -> str:
    """The token of a cluster, made by whoever needs it first."""
    return cluster.fact(_FACT) or cluster.first_fact(_FACT, secrets.token_urlsafe(24))


def address_name(shard: int) -> str:
    """The name of the fact that says where a shard is searched."""
    return f"search {shard}"


class SearchServer:
    """Answers searches in the index of one shard until the end of the `with` block."""

    def __init__(self, cluster: ClusterStore, shard: int, folder: Path, address: str = "127.0.0.1") -> None:
        """`folder` is the working folder of the shard, `address` the one at which others reach this machine."""
        self._folder = folder
        self._token = token_of(cluster)
        self._bound = listen(host=address)
        host = f"[{address}]" if ":" in address else address
        self.url = f"http://{host}:{self._bound.getsockname()[1]}/search"
        app = Starlette(routes=[Route("/search", self._answer, methods=["POST"])])
        self._server = HttpServer(app, self._bound, timeout_graceful_shutdown=1)
        self._cluster, self._shard = cluster, shard

    def __enter__(self) -> Self:
        self._server.start(f"search {self._shard}")
        self._cluster.set_fact(address_name(self._shard), self.url)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        self._bound.close()

    async def _answer(self, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {self._token}".encode()):
            return JSONResponse({"error": "the token is missing or wrong"}, 401)
        body = await request.body()
        if len(body) > _LARGEST:
            return JSONResponse({"error": "the question is too long"}, 413)
        return await run_in_threadpool(self._search, body)

    def _search(self, body: bytes) -> Response:
        index = self._folder / "index"  # made by the first crawl on this machine
        try:
            question: dict[str, Any] = json.loads(body)
            with Reader(self._folder) as repository:
                store = repository.storage.store
                if not index.is_dir() and not store.pages.any():
                    return JSONResponse({"hits": []})
                if not is_complete(index, int(store.meta.get(INDEXED, -1))):
                    return JSONResponse({"error": "this machine has not indexed all pages of the shard yet"}, 503)
                hits = repository.search(question.pop("query"), **question)
        except (UsageError, KeyError, TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except RecrawlError as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse({"hits": [{**hit.as_dict(), "at": hit.time.timestamp()} for hit in hits]})
