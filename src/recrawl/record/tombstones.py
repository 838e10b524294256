"""The addresses that were erased and must not come back: keyed digests, from which no address can be read.

The key belongs to the repository. Whoever has both can try whether a given address was erased, but cannot list any.
All of them are one value of the store, so that a move, a division and every database carry them.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterable
from hashlib import blake2b

from recrawl.record.store.site_tables import MetaTable

TOMBSTONES = "tombstones"
"""The name of the value."""
_SIZE = 12
_PAGES, _SITES = "pages", "sites"


class Tombstones:
    """The digests of erased pages and of erased sites (origins), each with the number of the erasure."""

    def __init__(self, meta: MetaTable) -> None:
        self._meta = meta
        stored = json.loads(meta.get(TOMBSTONES, "{}"))
        self._key = bytes.fromhex(stored.get("key", "")) or secrets.token_bytes(16)
        self._known: dict[str, dict[bytes, int]] = {_PAGES: {}, _SITES: {}}
        for number, kinds in stored.get("erasures", {}).items():
            for kind, packed in kinds.items():
                self._known[kind] |= dict.fromkeys(_unpacked(packed), int(number))

    def __bool__(self) -> bool:
        return any(self._known.values())

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def covers(self, url: str, origin_of: Callable[[str], str]) -> int:
        """The number of the erasure that has erased a URL, alone or with its site; 0 if none has."""
        pages, sites = self._known[_PAGES], self._known[_SITES]
        found = pages.get(self._digest(url), 0) if pages else 0
        return found or (sites.get(self._digest(origin_of(url)), 0) if sites else 0)

    def add(self, erasure: int, pages: Iterable[str], sites: Iterable[str]) -> None:
        """Keep these URLs and all of these origins away; `save` stores it."""
        for kind, texts in ((_PAGES, pages), (_SITES, sites)):
            self._known[kind] |= dict.fromkeys(map(self._digest, texts), erasure)

    def lift(self, texts: Iterable[str]) -> int:
        """Let these URLs and origins come back; how many were kept away. `save` stores it."""
        digests = [self._digest(text) for text in texts]
        found = [known.pop(digest, 0) for known in self._known.values() for digest in digests]
        return sum(number > 0 for number in found)

    def save(self) -> None:
        """Store them; in a transaction of the caller or in one of its own."""
        erasures: dict[int, dict[str, list[bytes]]] = {}
        for kind, known in self._known.items():
            for digest, number in known.items():
                erasures.setdefault(number, {}).setdefault(kind, []).append(digest)
        packed = {
            number: {kind: base64.b64encode(b"".join(sorted(digests))).decode() for kind, digests in kinds.items()}
            for number, kinds in sorted(erasures.items())
        }
        self._meta.set(TOMBSTONES, json.dumps({"key": self._key.hex(), "erasures": packed} if packed else {}))

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SIZE, key=self._key).digest()


def _unpacked(text: str) -> list[bytes]:
    packed = base64.b64decode(text)
    return [packed[start : start + _SIZE] for start in range(0, len(packed), _SIZE)]
