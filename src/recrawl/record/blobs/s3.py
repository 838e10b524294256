"""A prefix in a bucket of an S3 API, through obstore. Its address is the user's own configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from recrawl.durable_files import replacing
from recrawl.errors import StorageFailure
from recrawl.record.blobs.protocol import Blobs
from recrawl.record.blobs.target import BlobTarget

_CLIENT: Any = {"connect_timeout": "5s", "timeout": "10min", "allow_http": True}
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_REGION = "us-east-1"
"""Most servers of the S3 API accept any region; AWS wants the right one."""
_STEP = 1 << 22
_Result = TypeVar("_Result")


class S3Blobs(Blobs):
    """Objects in a bucket."""

    def __init__(self, target: BlobTarget) -> None:
        self._target = target
        given = {"endpoint": target.endpoint, "region": target.region or _region()}
        self._store = S3Store(
            target.bucket,
            prefix=target.prefix or None,
            config={name: value for name, value in given.items() if value} | {"checksum_algorithm": "SHA256"},  # type: ignore[arg-type]
            client_options=_CLIENT,
            retry_config=_RETRY,
        )

    @property
    def name(self) -> str:
        """The place, without options."""
        return self._target.name

    def put(self, name: str, path: Path) -> None:
        """One PUT that fails if the name is taken; then the bytes are compared."""
        try:
            self._try(lambda: obstore.put(self._store, name, path, mode="create", use_multipart=False))
        except FileNotFoundError as error:  # so says obstore of a bucket, too
            raise self._failure(error) from None
        except AlreadyExistsError:
            if not self._same(name, path):
                raise StorageFailure(
                    f"{self.name}/{name} exists and holds other bytes: give each repository a prefix of its own"
                ) from None

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """One GET with a range."""
        return bytes(self._try(lambda: obstore.get_range(self._store, name, start=start, length=length)))

    def fetch(self, name: str, path: Path) -> None:
        """One GET, into a draft that gets its name at the end."""
        found = self._try(lambda: obstore.get(self._store, name))
        with replacing(path) as draft, draft.open("wb") as file:
            self._try(lambda: file.writelines(found.stream(_STEP)))

    def size(self, name: str) -> int:
        """One HEAD."""
        try:
            return int(self._try(lambda: obstore.head(self._store, name))["size"])
        except FileNotFoundError:
            return -1

    def remove(self, name: str) -> None:
        """One DELETE."""
        self._try(lambda: obstore.delete(self._store, name))

    def _same(self, name: str, path: Path) -> bool:
        """Whether an object holds the bytes of a file."""
        size = path.stat().st_size
        if self.size(name) != size:
            return False
        with path.open("rb") as file:
            return all(
                self.get_range(name, start, min(_STEP, size - start)) == file.read(_STEP)
                for start in range(0, size, _STEP)
            )

    def _try(self, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        except (FileNotFoundError, AlreadyExistsError):
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self._failure(error) from None  # the cause could show headers of the request

    def _failure(self, error: Exception) -> StorageFailure:
        said = " ".join(str(error).partition("Debug source")[0].split())
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            advice = "check the keys (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) and their rights"
        elif isinstance(error, FileNotFoundError):
            advice = "create the bucket, or correct the URL in archive.toml"
        else:
            advice = "check that the object store runs and that the endpoint is right"
        return StorageFailure(f"{self.name} cannot be used ({said[:300]}): {advice}")


def _region() -> str:
    return "" if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") else _REGION
