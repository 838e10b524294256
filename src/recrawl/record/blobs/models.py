"""The files of `models/` in the object store: each is put under its digest, then recorded under its name.

They can be computed again from store and archive, so that only a folder without a file gets one: that of a new machine.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from recrawl.record.blobs.protocol import Blobs
from recrawl.record.store.site_tables import MetaTable

_RECORDED = "models"
"""The value of the store with the digest of each file, as JSON."""


def put_models(blobs: Blobs, folder: Path, meta: MetaTable) -> None:
    """Put the files that have changed; `StorageFailure` if the object store cannot be used."""
    recorded = _recorded(meta)
    before = dict(recorded)
    for path in sorted(folder.glob("*.npz")):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if recorded.get(path.name) != digest:
            blobs.put(_object(path.name, digest), path)
            recorded[path.name] = digest
    if recorded != before:
        meta.set(_RECORDED, json.dumps(recorded, sort_keys=True))
        for name, digest in before.items():
            if recorded[name] != digest:
                blobs.remove(_object(name, digest))


def get_models(blobs: Blobs, folder: Path, meta: MetaTable) -> None:
    """Get the files that the folder lacks."""
    for name, digest in _recorded(meta).items():
        path = folder / name
        if not path.exists():
            folder.mkdir(exist_ok=True)
            try:
                blobs.fetch(_object(name, digest), path)
            except FileNotFoundError:  # removed by hand: it is computed again
                continue


def model_objects(meta: MetaTable) -> list[str]:
    """The objects of all files that are recorded."""
    return [_object(name, digest) for name, digest in _recorded(meta).items()]


def _recorded(meta: MetaTable) -> dict[str, str]:
    return dict(json.loads(meta.get(_RECORDED, "{}")))


def _object(name: str, digest: str) -> str:
    return f"models/{name.removesuffix('.npz')}-{digest[:32]}.npz"
