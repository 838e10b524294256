"""An S3 server on loopback (moto's), which can refuse for a while, and what tests want to know about its objects."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import obstore
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from obstore.store import S3Store
from werkzeug.serving import make_server

BUCKET = "pages"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "walrus", "AWS_REGION": "us-east-1"}


class ObjectStore:
    """A server with one bucket."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self.refusing = False
        """Whether it answers 503."""
        self.requests: list[str] = []
        """Method, path and range of each request."""
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self._server.port}"

    def url(self, prefix: str, **options: object) -> str:
        """The URL of a prefix for `recrawl init --archive`."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}{more}"

    def create_bucket(self) -> None:
        """Make the bucket."""
        request = urllib.request.Request(f"{self.endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request).close()

    def objects(self, prefix: str) -> dict[str, int]:
        """Names and sizes of the objects under a prefix."""
        found: Any = obstore.list(self._client(prefix)).collect()
        return {it["path"].removeprefix(f"{prefix}/"): it["size"] for it in found}

    def read(self, prefix: str, name: str) -> bytes:
        """The bytes of an object."""
        return bytes(obstore.get(self._client(prefix), name).bytes())

    def write(self, prefix: str, name: str, data: bytes) -> None:
        """Make or replace an object."""
        obstore.put(self._client(prefix), name, data)

    def remove(self, prefix: str, name: str) -> None:
        """Remove an object."""
        obstore.delete(self._client(prefix), name)

    def _client(self, prefix: str) -> S3Store:
        options: Any = {"allow_http": True}
        keys: Any = {name.removeprefix("AWS_").lower(): value for name, value in KEYS.items()}
        return S3Store(BUCKET, prefix=prefix, endpoint=self.endpoint, client_options=options, **keys)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        words = (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", ""))
        self.requests.append(" ".join(words).strip())
        if self.refusing:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer

    @contextmanager
    def running(self) -> Iterator[ObjectStore]:
        """Serve until the end of the block."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
